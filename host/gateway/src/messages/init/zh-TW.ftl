
# `pmk-host init` 問的和說的。

init-model = 由誰回答？
init-model-anthropic-api = anthropic-api：Claude，用 Anthropic 的金鑰
init-model-openai = openai：OpenAI，或任何相容的伺服器
init-model-claude-cli = claude-cli：這台機器上的 `claude` 程式，用它的登入
init-model-sim = sim：引用對話的替身；不需要金鑰，資料不離開這台機器
init-key = Anthropic 的金鑰（不會顯示；留空則改設 ANTHROPIC_API_KEY）
init-front = 大家在哪裡對話？
init-front-slack = Slack
init-front-console = 就在這個終端機
init-app-token = App 層級的 token，xapp-…（不會顯示；留空則改設 PMK_SLACK_APP_TOKEN）
init-bot-token = 機器人的 token，xoxb-…（不會顯示；留空則改設 PMK_SLACK_BOT_TOKEN）
init-wrong-kind = 這是別的 token：這一個的開頭是 { $begins }
app-description = 回答問題，並記得團隊回答過的事
app-command = 查看並調整閘道
manifest-steps = 1. https://api.slack.com/apps?new_app=1，選「From a manifest」：選工作區，貼上上面的 JSON
    2. 「Install App」：安裝，取得機器人的 token（xoxb-…）
    3. 「Basic Information」的「App-Level Tokens」：建立一個，scope 是 `{ $scope }`，取得它（xapp-…）
manifest-next = 4. 交給 `pmk-host init`，或設 PMK_SLACK_BOT_TOKEN 與 PMK_SLACK_APP_TOKEN；然後 `pmk-host run`
init-written = 已寫入 { $path }；只有你能讀
init-variable = 執行閘道的地方要設定 { $name }
init-next = 接下來：{ $command }
init-mend = 接下來：解決有 ✗ 的項目，再檢查一次：{ $command }
