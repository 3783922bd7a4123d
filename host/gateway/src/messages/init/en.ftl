
# What `pmk-host init` asks and tells.

init-model = Which model answers?
init-model-anthropic-api = anthropic-api: Claude, with a key
init-model-openai = openai: OpenAI, or any compatible server
init-model-claude-cli = claude-cli: `claude` on this machine
init-model-sim = sim: a stand-in that needs no key
init-address-about = Server address, such as http://localhost:11434/v1 for Ollama; leave it empty for OpenAI itself.
init-kept-address-about = Enter keeps { $variable }. For OpenAI itself, type https://api.openai.com/v1.
init-address = Address
init-long-name-about = Enter takes { $variable }.
init-name = Model name
init-key-about = The key is not shown. Leave it empty if { $variable } is set for the gateway.
init-own-key-about = The key is not shown. Leave it empty if the server needs none or { $variable } is set for the gateway.
init-kept-about = What you type is not shown. Leave it empty to keep what gateway.json has.
init-kept-token-about = It begins with { $variable }. What you type is not shown. Leave it empty to keep what gateway.json has.
init-key = Key
init-app-token-about = The app-level token begins with xapp-. It is not shown. Leave it empty if { $variable } is set for the gateway.
init-app-token = App-level token
init-bot-token-about = The bot token begins with xoxb-. It is not shown. Leave it empty if { $variable } is set for the gateway.
init-bot-token = Bot token
init-wrong-kind = Wrong token: it must begin with { $begins }
init-taken = received
init-left-out = skipped
init-kept = kept
init-needed = That server has no default model
init-no-address = Must be https://…, or http:// on this machine
init-parted = `apiKey` and `baseUrl` of { $provider } were removed: another provider answers now
init-moved = `apiKey` was removed: it is for another address than the new `baseUrl`
init-front = Where do people talk?
init-front-slack = Slack
init-front-console = here, in the terminal
app-description = Answers questions, and remembers what a team has answered
app-command = Inspect and change the gateway
manifest-steps = 1. https://api.slack.com/apps?new_app=1, "From a manifest": choose the workspace and paste the JSON that was just printed (if you redirected it: from that file)
    2. "Install App": install it and copy the bot token (xoxb-…)
    3. "Basic Information", "App-Level Tokens": create one with the scope `{ $scope }` and copy it (xapp-…)
manifest-next = 4. Give them to `pmk-host init`, or set PMK_SLACK_BOT_TOKEN and PMK_SLACK_APP_TOKEN; then `pmk-host run`
init-written = Wrote { $path }; only you can read it
init-slack-stays = Slack's tokens are still set: without `--front console`, the gateway goes to Slack
init-variable = Set { $name } where the gateway runs
init-credential = Put { $name } in /etc/credstore, from where systemd passes it on
init-next = Next: { $command }
init-restart = restart the service that runs the gateway; it may have tokens that are not here. If none does: { $command }
init-mend = Next: fix what is marked ✗, then check again: { $command }
