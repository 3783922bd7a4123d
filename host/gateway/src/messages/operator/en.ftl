# What an operator's terminal shows, in English.

note-dry-run = dry run, because { $variable } is set: nothing that writes reaches Slack
note-dry-run-hint = the ledger goes to `dryrun-events-YYYY-MM.log`; what is answered counts as answered in this home
note-console = front: console, because there are no Slack tokens
note-console-hint = `pmk-host init` connects Slack; so do PMK_SLACK_APP_TOKEN and PMK_SLACK_BOT_TOKEN, or `slack` in gateway.json
note-no-tokens = Slack is not connected: gateway.json is about it, but its tokens are not there; you talk here instead
note-no-tokens-hint = set PMK_SLACK_APP_TOKEN and PMK_SLACK_BOT_TOKEN, or let `pmk-host init` take them; `--front console` means here
note-sim = model: { doctor-model-unnamed }
note-sim-hint = `pmk-host init` chooses a real one; so does `--model anthropic-api` with ANTHROPIC_API_KEY set

status-level = { $level ->
    [healthy] healthy
    [degraded] degraded
   *[down] down
}
status-because = because
status-in-a-line = { $level }: { $reasons }
status-reasons-between = {"; "}
status-process = process
status-phase = phase
status-phase-is = { $phase ->
    [leaving] leaving
    [starting] starting
   *[ready] ready
}, started { $since }
status-supervised = supervised
status-supervised-is = { $supervised ->
    [yes] yes
   *[no] no
}
status-heartbeat = heartbeat
status-heartbeat-is = { $heartbeat ->
    [over] the last one
    [fresh] fresh
    [aging] aging
   *[stale] stale
}, { $seconds } s ago
status-heartbeat-none = none
status-sockets = sockets
status-sockets-are = { $open } of { $of } connected, { $reconnects } reconnects in the last 10 minutes
status-store = store
status-store-is = `{ $name }`{ $state ->
    [used] , in use by { $hosts ->
        [one] one host
       *[other] { $hosts } hosts
    }
    [unknown] ; who uses it is not known: { $error }
   *[free] , in use by nobody
}
status-host = host
status-host-is = `{ $name }` { $does ->
    [works] works on { $turns ->
        [one] one conversation
       *[other] { $turns } conversations
    }
    [deaf] hears nothing from Slack, and works on { $turns ->
        [one] one conversation
       *[other] { $turns } conversations
    }
   *[silent] is silent
}, version { $version }, since { $since }, last heard of { $seconds } s ago
status-policies = policies
status-policies-is = { $refused ->
    [yes] { $policies }, and not those that were chosen for all hosts: { $why }
   *[no] { $policies }
}
status-ledger = ledger
status-ledger-is = since { $since }: { $error }
status-ledger-hint = is there room on the disk, and may it write there? They are kept, and written once they can be

reason-nobody = no gateway runs here
reason-starting = it is starting
reason-heart-stopped = it runs, but its heart has stopped
reason-heart-late = its heartbeat is late
reason-silent = it does not answer, so the state of its sockets is unknown
reason-leaving = it ends
reason-reconnecting = it is reconnecting
reason-reconnects = it has reconnected { $count } times lately
reason-store-away = it does not reach its database
reason-waiting = { $count ->
    [one] { $count } line of the ledger waits
   *[other] { $count } lines of the ledger wait
} to be written
