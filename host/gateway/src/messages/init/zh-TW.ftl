
# `pmk-host init` 問的和說的。

init-model = 由哪個模型回答？
init-model-anthropic-api = anthropic-api：Claude，用金鑰
init-model-openai = openai：OpenAI，或相容的伺服器
init-model-claude-cli = claude-cli：這台機器上的 `claude`
init-model-sim = sim：不需要金鑰的替身
init-address-about = 伺服器的網址，例如 Ollama 是 http://localhost:11434/v1；留空表示 OpenAI 本身。
init-kept-address-about = 按 Enter 會保留 { $variable }。要用 OpenAI 本身，請輸入 https://api.openai.com/v1。
init-address = 網址
init-long-name-about = 按 Enter 會採用 { $variable }。
init-name = 模型名稱
init-key-about = 金鑰不會顯示。如果執行閘道的環境已設定 { $variable }，請留空。
init-own-key-about = 金鑰不會顯示。如果伺服器不需要金鑰，或執行閘道的環境已設定 { $variable }，請留空。
init-kept-about = 輸入的內容不會顯示。留空表示保留 gateway.json 裡的值。
init-kept-token-about = 開頭是 { $variable }，輸入的內容不會顯示。留空表示保留 gateway.json 裡的值。
init-key = 金鑰
init-app-token-about = app token，開頭是 xapp-，不會顯示。如果執行閘道的環境已設定 { $variable }，請留空。
init-app-token = app token
init-bot-token-about = bot token，開頭是 xoxb-，不會顯示。如果執行閘道的環境已設定 { $variable }，請留空。
init-bot-token = bot token
init-wrong-kind = token 不對：必須以 { $begins } 開頭
init-taken = 收到
init-left-out = 略過
init-kept = 保留
init-needed = 那個伺服器沒有預設的模型
init-no-address = 必須是 https://…，或這台機器上的 http://
init-parted = 已移除 { $provider } 的 `apiKey` 和 `baseUrl`：現在由別的供應商回答
init-moved = 已移除 `apiKey`：它屬於別的網址，不屬於新的 `baseUrl`
init-front = 大家在哪裡對話？
init-front-slack = Slack
init-front-console = 就在這個終端機
app-description = 回答問題，並記得團隊回答過的事
app-command = 查看並調整閘道
manifest-steps = 1. https://api.slack.com/apps?new_app=1，選「From a manifest」：選工作區，貼上剛才輸出的 JSON（如果轉向到檔案，就在那個檔案裡）
    2. 「Install App」：安裝，並複製 bot token（xoxb-…）
    3. 「Basic Information」的「App-Level Tokens」：建立一個，scope 是 `{ $scope }`，並複製下來（xapp-…）
manifest-next = 4. 交給 `pmk-host init`，或設定 PMK_SLACK_BOT_TOKEN 與 PMK_SLACK_APP_TOKEN；然後執行 `pmk-host run`
init-written = 已寫入 { $path }；只有你能讀
init-slack-stays = 仍然設定了 Slack 的 token：不加 `--front console`，閘道就會連接 Slack
init-variable = 請在執行閘道的環境裡設定 { $name }
init-credential = 請把 { $name } 放進 /etc/credstore，systemd 會從那裡交給閘道
init-next = 接下來：{ $command }
init-restart = 請重新啟動執行閘道的服務，它可能有這裡沒有的 token；如果不是由服務執行：{ $command }
init-mend = 接下來：修正標示 ✗ 的項目，再檢查一次：{ $command }
