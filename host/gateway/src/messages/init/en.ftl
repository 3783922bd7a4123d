
# What `pmk-host init` asks and tells.

init-model = What answers?
init-model-anthropic-api = anthropic-api: Claude, with a key
init-model-openai = openai: OpenAI, or any like server
init-model-claude-cli = claude-cli: `claude` of this machine
init-model-sim = sim: a stand-in that needs no key
init-address-about = Where is the server? As http://localhost:11434/v1 for Ollama; empty: OpenAI itself.
init-address = Address
init-name = Name of the model
init-key-about = The key is not shown. Leave it empty where { $variable } is set for the gateway.
init-own-key-about = The key is not shown. Leave it empty where the server wants none, or { $variable } is set for the gateway.
init-key = Key
init-app-token-about = The app-level token begins with xapp-. It is not shown. Leave it empty where { $variable } is set for the gateway.
init-app-token = App-level token
init-bot-token-about = The bot token begins with xoxb-. It is not shown. Leave it empty where { $variable } is set for the gateway.
init-bot-token = Bot token
init-wrong-kind = That is another token: this one begins with { $begins }
init-taken = taken
init-left-out = left out
init-needed = That server has no usual one
init-no-address = https://…, or http:// on this machine
init-parted = `apiKey` and `baseUrl` of { $provider } are taken out: another provider answers now
init-front = Where do people talk?
init-front-slack = Slack
init-front-console = here, in the terminal
app-description = Answers questions, and remembers what a team has answered
app-command = Look at the gateway and change it
manifest-steps = 1. https://api.slack.com/apps?new_app=1, "From a manifest": choose the workspace, paste the JSON above
    2. "Install App": install it, and take the bot token (xoxb-…)
    3. "Basic Information", "App-Level Tokens": make one with the scope `{ $scope }`, and take it (xapp-…)
manifest-next = 4. `pmk-host init` takes them, or PMK_SLACK_BOT_TOKEN and PMK_SLACK_APP_TOKEN; then `pmk-host run`
init-written = { $path } is written; only you may read it
init-variable = { $name } is to be set where the gateway runs
init-credential = { $name } is to be in /etc/credstore, from where systemd hands it over
init-next = Next: { $command }
init-mend = Next: mend what has a ✗, and look again: { $command }
