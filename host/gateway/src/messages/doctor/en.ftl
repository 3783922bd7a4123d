
# What `pmk-host doctor` finds, and `pmk-host init` with it.

doctor-see = see { $page }
doctor-because-of-config = not looked at, because of gateway.json
doctor-because-of-home = not read, because of the home
doctor-until-set = not looked at; still to be set: { $variables }
doctor-offline = not asked, because of `--offline`
doctor-late = what it takes was not there within { $seconds } s
doctor-late-hint = a command that gateway.json names for a secret takes too long: run it by hand

doctor-home-well = `{ $path }`: uid { $uid }, mode { $mode }, { $mib } MiB are free
doctor-home-no-folder = `{ $path }` is no folder
doctor-home-not-seen = cannot look at `{ $path }`: { $error }
doctor-home-say = say `--home DIR`
doctor-home-none-yet = there is no `{ $path }` yet
doctor-home-first-run = the first `pmk-host run` makes it
doctor-home-open = other users can look into `{ $path }` (mode { $mode }), where people's conversations are
doctor-home-network = `{ $path }` is on a network file system ({ $kind }), where locks cannot be relied on
doctor-home-network-hint = keep the home on a disk of this machine, with `--home DIR`
doctor-home-little-room = `{ $path }`: only { $mib } MiB are free
doctor-home-make-room = make room on that disk
doctor-home-not-written = no file can be made in `{ $path }`: { $error }
doctor-home-write-hint = let the account that runs pmk-host write there, or say `--home DIR`

doctor-store-none = there is none yet: the first `pmk-host run` makes it
doctor-store-database = `{ $name }`, schema { $schema }{ $older ->
    [yes] {"; the next start takes it to schema "}{ $known }
   *[no] {""}
}{ $used ->
    [yes] {"; in use by "}{ $host }
   *[no] {""}
}
doctor-store-well = schema { $schema }, { $mib } MiB{ $older ->
    [yes] {"; the next start takes it to schema "}{ $known }, after a backup
   *[no] {""}
}{ $read ->
    [no] {"; too large to be read for a look, `pmk-host store check` does"}
   *[yes] {""}
}

doctor-config-none = there is none: everything has its default
doctor-config-well = it makes sense
doctor-config-hint = correct `{ $path }`, see docs/settings.md

doctor-tls-well = { $count } root certificates of this system
doctor-tls-inside = this system has no root certificates: Slack is reached by { $count } of Mozilla's, which are inside
doctor-tls-hint = install the package `ca-certificates`; models are reached by it alone

doctor-slack-none = there are no tokens, so people talk at the console
doctor-slack-none-hint = to connect Slack: `pmk-host slack manifest`, see docs/slack.md#the-app
doctor-slack-console = people talk at the console
doctor-slack-kinds = both tokens are there, and of the right kinds
doctor-slack-bot = @{ $name } in { $team }
doctor-slack-silent = Slack has not answered within { $seconds } s
doctor-slack-silent-hint = check the network and a proxy; see also https://slack-status.com
doctor-slack-socket = Socket Mode is on, and takes the app token
doctor-scopes-all = all that the gateway makes use of
doctor-scopes-unknown = nobody says which there are
doctor-scopes-untold = Slack does not say which there are
doctor-scopes-without = without `{ $scope }` { $goes }
doctor-scopes-goes = { $goes ->
    [attached-files] attached files are not read
    [channel-history] after a crash a part of an answer may come twice in such a channel, mentions of an outage are not read back, a thread is not read before its first mention, and every question in one needs a mention
    [command] there is no `/pmk`
    [direct-messages] after a crash a contact may be asked twice
    [files] very long answers are cut instead of coming as a file
    [group-messages] questions in direct messages of several people may not be heard, and what was asked there is not read back
    [prompts] nobody is shown what to begin with
   *[reactions] a contact's "later" is acknowledged by words, not by a reaction
}
doctor-scopes-hint = add it under OAuth & Permissions and install the app again; see docs/slack.md#the-app

doctor-clock-unknown = compared only where Slack or the model answers
doctor-clock-well = within a minute of what { $whose ->
    [slack] Slack
   *[model] the model
} says
doctor-clock-off = { $minutes } min { $way ->
    [behind] behind
   *[ahead] ahead of
} what { $whose ->
    [slack] Slack
   *[model] the model
} says
doctor-clock-hint = set it, best by NTP: `timedatectl set-ntp true`

doctor-model-well = { $model } answers
doctor-model-unnamed = sim, a stand-in that quotes the conversation, because no model is named
doctor-model-sim = { $model }, a stand-in inside the program
doctor-model-claude = { $model }: the program `claude` is there; it was not asked
doctor-model-claude-hint = `claude -p hello`, by the account that runs pmk-host, says whether it is logged in; so does `pmk-host doctor` without `--offline`
doctor-model-offline = { $model } was not asked, because of `--offline`
doctor-model-later = it takes the key; try again a little later
doctor-model-credentials = check the key or the login, see docs/models.md
doctor-model-billing = look at the provider's page on billing
doctor-model-name = check the name after the colon, and the address (`baseUrl`, OPENAI_BASE_URL): on most servers of one's own it ends in `/v1`; see docs/models.md
doctor-model-network = check the network, a proxy, and the address of the provider
doctor-model-small = it answers; so small a request may not suit it: ask it something by `pmk-host run`

layers-over = {" over "}
doctor-policies-hint = `pmk-host policy inspect POLICY`, see docs/policies.md

doctor-mra-well = `{ $program }` in `{ $workspace }`
doctor-mra-alone = `{ $program }`, without a workspace
doctor-mra-none = no workspace is named, so nobody is asked about code
doctor-mra-missing = the program `{ $program }` is not there
doctor-mra-missing-hint = install it, or name it by `mra.command` in gateway.json, see docs/knowledge.md
doctor-mra-no-folder = the workspace `{ $workspace }` is no folder
doctor-mra-no-folder-hint = correct `mraWorkspace` in gateway.json, or PMK_MRA_WORKSPACE

doctor-gateway-none = none runs in this home
doctor-gateway-well = one runs and is healthy (pid { $pid })
doctor-gateway-not-well = one runs (pid { $pid }): { $reasons }
doctor-gateway-again = `pmk-host stop`, and start it again; see docs/operating.md#is-it-well
