
# What `pmk-host init` asks and tells.

init-model = What answers?
init-model-anthropic-api = anthropic-api: Claude, with a key of Anthropic's
init-model-openai = openai: OpenAI, or any server that speaks its API
init-model-claude-cli = claude-cli: the program `claude` of this machine, with its login
init-model-sim = sim: a stand-in that quotes the conversation; no key, nothing leaves this machine
init-key = Anthropic's key (not shown; leave it empty to set ANTHROPIC_API_KEY instead)
init-front = Where do people talk?
init-front-slack = Slack
init-front-console = here, in the terminal
init-app-token = The app-level token, xapp-… (not shown; leave it empty to set PMK_SLACK_APP_TOKEN instead)
init-bot-token = The bot token, xoxb-… (not shown; leave it empty to set PMK_SLACK_BOT_TOKEN instead)
init-wrong-kind = That is another token: this one begins with { $begins }
app-description = Answers questions, and remembers what a team has answered
app-command = Look at the gateway and change it
manifest-steps = 1. https://api.slack.com/apps?new_app=1, "From a manifest": choose the workspace, paste the JSON above
    2. "Install App": install it, and take the bot token (xoxb-…)
    3. "Basic Information", "App-Level Tokens": make one with the scope `{ $scope }`, and take it (xapp-…)
manifest-next = 4. `pmk-host init` takes them, or PMK_SLACK_BOT_TOKEN and PMK_SLACK_APP_TOKEN; then `pmk-host run`
init-written = { $path } is written; only you may read it
init-variable = { $name } is to be set where the gateway runs
init-next = Next: { $command }
init-mend = Next: mend what has a ✗, and look again: { $command }
