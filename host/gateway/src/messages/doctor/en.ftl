
# What `pmk-host doctor` finds, and `pmk-host init` with it.

doctor-see = see { $page }
doctor-because-of-config = not checked, because of gateway.json
doctor-because-of-home = not read, because of the home
doctor-until-set = not checked; still to be set: { $variables }
doctor-passed = not checked here: systemd passes { $credentials } to the service
doctor-passed-hint = to check with them, as root: `{ $command }`
doctor-offline = not asked, because of `--offline`
doctor-late = what it needs was not available within { $seconds } s
doctor-late-hint = a command in gateway.json that prints a secret takes too long: run it by hand

doctor-home-well = `{ $path }`: uid { $uid }, mode { $mode }, { $mib } MiB free
doctor-home-not-seen = cannot access `{ $path }`: { $error }
doctor-home-say = give `--home DIR`
doctor-home-none-yet = `{ $path }` does not exist yet
doctor-home-first-run = the first `pmk-host run` creates it
doctor-home-open = other users can read `{ $path }` (mode { $mode }), which holds people's conversations
doctor-home-network = `{ $path }` is on a network file system ({ $kind }), where locks are unreliable
doctor-home-network-hint = keep the home on a local disk, with `--home DIR`
doctor-home-little-room = `{ $path }`: only { $mib } MiB free
doctor-home-make-room = free up space on that disk
doctor-home-not-written = cannot create a file in `{ $path }`: { $error }
doctor-home-ledger-not-written = cannot write the ledger file `{ $path }`: { $error }
doctor-home-file-not-written = cannot write `{ $path }`: { $error }
doctor-home-write-hint = let the account that runs pmk-host write there, or give `--home DIR`

doctor-store-none = none yet: the first `pmk-host run` creates it
doctor-store-database = `{ $name }`, schema { $schema }{ $older ->
    [yes] {"; the next start upgrades it to schema "}{ $known }
   *[no] {""}
}{ $used ->
    [yes] {"; in use by "}{ $host }
   *[no] {""}
}
doctor-store-well = schema { $schema }, { $mib } MiB{ $older ->
    [yes] {"; the next start upgrades it to schema "}{ $known }, after a backup
   *[no] {""}
}{ $read ->
    [no] {"; too large to read in full here, use `pmk-host store check`"}
   *[yes] {""}
}

doctor-config-none = none: every setting has its default
doctor-config-well = valid
doctor-config-hint = fix `{ $path }`, see docs/settings.md

doctor-tls-well = { $count } root certificates of this system
doctor-tls-inside = this system has no root certificates: for Slack, { $count } built-in ones from Mozilla are used
doctor-tls-misled = { $variable } names no root certificates that can be read: for Slack, { $count } built-in ones from Mozilla are used
doctor-tls-misled-hint = correct or unset { $variable }; models cannot be reached until then
doctor-tls-hint = install the package `ca-certificates`; models cannot be reached without it

doctor-slack-none = no tokens, so people talk at the console
doctor-slack-none-hint = to connect Slack: `pmk-host slack manifest`, see docs/slack.md#the-app
doctor-slack-console = people talk at the console
doctor-slack-kinds = both tokens are set and of the right kind
doctor-slack-bot = @{ $name } in { $team }
doctor-slack-silent = Slack did not answer within { $seconds } s
doctor-slack-silent-hint = check the network: Slack is reached directly, without HTTPS_PROXY; see also https://slack-status.com
doctor-slack-socket = Socket Mode is on and accepts the app token
doctor-scopes-all = all that the gateway uses
doctor-scopes-unknown = unknown
doctor-scopes-untold = Slack does not say which are granted
doctor-scopes-without = without `{ $scope }` { $goes }
doctor-scopes-goes = { $goes ->
    [attached-files] attached files are not read
    [channel-history] part of an answer may be posted twice in such a channel after a crash, mentions during an outage are not read afterwards, a thread is not read before its first mention, and every question in one needs a mention
    [command] there is no `/pmk`
    [direct-messages] a contact may be asked twice after a crash
    [files] very long answers are cut instead of posted as a file
    [group-messages] questions in group direct messages may be missed, and what was asked there during an outage is not read afterwards
    [names] people have no names for the model, only their ids
    [prompts] suggested prompts are not shown
   *[reactions] a contact's "later" is acknowledged with words, not a reaction
}
doctor-scopes-hint = add it under OAuth & Permissions and reinstall the app; see docs/slack.md#the-app

doctor-admins-none = none: nobody is told when something needs a person
doctor-admins-hint = add yourself with `{ $command }`, but with your own member ID: it is in the menu of your Slack profile

doctor-clock-of-certificates = certificates count as expired or not valid yet, so it is probably wrong
doctor-clock-unknown = can be compared only when Slack or the model answers
doctor-clock-well = within a minute of { $whose ->
    [slack] Slack's
   *[model] the model's
}
doctor-clock-off = { $minutes } min { $way ->
    [behind] behind
   *[ahead] ahead of
} { $whose ->
    [slack] Slack's
   *[model] the model's
}
doctor-clock-hint = set it, preferably with NTP: `timedatectl set-ntp true`

doctor-model-well = { $model } answers
doctor-model-unnamed = sim, a stand-in that quotes the conversation, because no model is set
doctor-model-sim = { $model }, a built-in stand-in
doctor-model-claude = { $model }: the program `claude` is installed; it was not asked
doctor-model-claude-hint = to see whether it is logged in, run `claude -p hello` as the account that runs pmk-host, or `pmk-host doctor` without `--offline`
doctor-model-offline = { $model } was not asked, because of `--offline`
doctor-model-later = it accepts the key; try again later
doctor-model-credentials = check the key or login, see docs/models.md
doctor-model-billing = check the provider's billing page
doctor-model-name = check the name after the colon, and the address (`baseUrl`, OPENAI_BASE_URL): on most self-hosted servers it ends in `/v1`; see docs/models.md
doctor-model-clock = check this machine's clock, or renew the server's certificate: it counts as expired or not valid yet
doctor-model-network = check the network, any proxy and the provider's address
doctor-model-small = it answers, but such a small request may not suit it: ask it something with `pmk-host run`

layers-over = {" over "}
doctor-policies-hint = `pmk-host policy inspect POLICY`, see docs/policies.md

doctor-mra-well = `{ $program }` in `{ $workspace }`
doctor-mra-alone = `{ $program }`, without a workspace
doctor-mra-none = no workspace is set, so code is not looked into
doctor-mra-missing = the program `{ $program }` was not found
doctor-mra-missing-hint = install it, or set `mra.command` in gateway.json, see docs/knowledge.md
doctor-mra-no-folder = the workspace `{ $workspace }` is not a folder
doctor-mra-no-folder-hint = fix `mraWorkspace` in gateway.json, or PMK_MRA_WORKSPACE

doctor-gateway-work = none is running in this home, which `pmk-host { $command }` is using (pid { $pid })
doctor-gateway-work-hint = wait until it has finished
doctor-gateway-none = none is running in this home
doctor-gateway-well = running and healthy (pid { $pid })
doctor-gateway-not-well = running (pid { $pid }): { $reasons }
doctor-gateway-again = run `{ $stop }` and start it again; see docs/operating.md#is-it-well
