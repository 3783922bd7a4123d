# What an operator's terminal shows, in English.

note-dry-run = dry run, because { $variable } is set: nothing is written to Slack
note-dry-run-hint = the ledger goes to `dryrun-events-YYYY-MM.log`; messages answered now count as answered in this home
note-console = front: console, because there are no Slack tokens
note-console-hint = to connect Slack, run `pmk-host init`, or set PMK_SLACK_APP_TOKEN and PMK_SLACK_BOT_TOKEN, or `slack` in gateway.json
note-no-tokens = Slack is not connected: gateway.json configures it, but its tokens are missing; you talk here instead
note-no-tokens-hint = set PMK_SLACK_APP_TOKEN and PMK_SLACK_BOT_TOKEN, or give them to `pmk-host init`; `--front console` means here
note-sim = model: { doctor-model-unnamed }
note-sim-hint = for a real model, run `pmk-host init`, or use `--model anthropic-api` with ANTHROPIC_API_KEY set

status-level = { $level ->
    [healthy] healthy
    [degraded] degraded
   *[down] down
}
status-because = because
status-in-a-line = { $level }: { $reasons }
status-reasons-between = {"; "}
status-process = process
status-work = in use
status-work-is = by `pmk-host { $command }` (pid { $pid }): wait until it has finished
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
    [over] last
    [fresh] fresh,
    [aging] aging,
   *[stale] stale,
} { $seconds } s ago
status-heartbeat-none = none
status-refusal = refused
status-config = not in use
status-config-hint = correct gateway.json; `{ $command }` names everything that is wrong with it
status-experiment-is = experiment `{ $experiment }` was not started: { $why }
status-experiment-goes-on = the change to experiment `{ $experiment }`, whose previous arms go on: { $why }
status-experiment-hint = correct `experiment` in gateway.json, or end it with `{ $command }`; if only a file was missing, restart the gateway
status-sockets = sockets
status-sockets-are = { $open } of { $of } connected, { $reconnects ->
    [one] one reconnect
   *[other] { $reconnects } reconnects
} in the last 10 minutes
status-store = store
status-store-is = `{ $name }`{ $state ->
    [used] , in use by { $hosts ->
        [one] one host
       *[other] { $hosts } hosts
    }
    [unknown] ; users unknown: { $error }
   *[free] , not in use
}
status-unstorable-hint = make room on that disk, or let the gateway write there; what arrives until then is not acknowledged, so Slack sends it again for a while
status-host = host
status-host-is = `{ $name }` { $does ->
    [works] works on { $turns ->
        [one] one conversation
       *[other] { $turns } conversations
    }
    [deaf] receives nothing from Slack or may not post there, works on { $turns ->
        [one] one conversation
       *[other] { $turns } conversations
    }
   *[silent] is silent
}, version { $version }, since { $since }, last heard from { $seconds } s ago
status-policies = policies
status-policies-with = { $policies } with { $settings }
status-policies-is = { $refused ->
    [yes] { $policies }, not those chosen for all hosts: { $why }
   *[no] { $policies }
}
status-suspended = suspended
status-ledger = ledger
status-ledger-is = since { $since }: { $error }
status-ledger-hint = check that the disk has room and that the gateway may write there; lines are kept and written once that works

reason-nobody = no gateway is running here
reason-starting = it is starting
reason-heart-stopped = it is running, but its heartbeat has stopped
reason-heart-late = its heartbeat is late
reason-silent = it does not answer, so the state of its sockets is unknown
reason-leaving = it is stopping
reason-reconnecting = it is reconnecting
reason-reconnects = it has reconnected { $count } times recently
reason-token-refused = Slack refuses this app or its token
reason-store-away = it cannot use its database
reason-config-unused = gateway.json was changed and cannot be used
reason-waiting = { $count ->
    [one] { $count } ledger line is waiting
   *[other] { $count } ledger lines are waiting
} to be written
