
# `pmk-host doctor` 檢查到的，`pmk-host init` 也用。

doctor-see = 見 { $page }
doctor-because-of-config = 沒有檢查，因為 gateway.json 有問題
doctor-because-of-home = 沒有讀取，因為 home 有問題
doctor-until-set = 沒有檢查；還要設定：{ $variables }
doctor-passed = 這裡沒有檢查：{ $credentials } 由 systemd 交給服務
doctor-passed-hint = 要帶著它們檢查，請以 root 執行：`{ $command }`
doctor-offline = 沒有詢問，因為 `--offline`
doctor-late = { $seconds } 秒內沒有取得需要的資料
doctor-late-hint = gateway.json 裡印出密鑰的指令太慢：請手動執行看看

doctor-home-well = `{ $path }`：uid { $uid }，權限 { $mode }，還有 { $mib } MiB 可用
doctor-home-not-seen = 無法存取 `{ $path }`：{ $error }
doctor-home-say = 請用 `--home DIR` 指定
doctor-home-none-yet = 還沒有 `{ $path }`
doctor-home-first-run = 第一次執行 `pmk-host run` 時會建立
doctor-home-open = 其他使用者可以讀取 `{ $path }`（權限 { $mode }），裡面有大家的對話
doctor-home-network = `{ $path }` 在網路檔案系統（{ $kind }）上，檔案鎖定不可靠
doctor-home-network-hint = 請用 `--home DIR` 把 home 放在本機磁碟上
doctor-home-little-room = `{ $path }`：只剩 { $mib } MiB 可用
doctor-home-make-room = 請在這個磁碟騰出空間
doctor-home-not-written = 無法在 `{ $path }` 建立檔案：{ $error }
doctor-home-ledger-not-written = 無法寫入帳本的檔案 `{ $path }`：{ $error }
doctor-home-file-not-written = 無法寫入 `{ $path }`：{ $error }
doctor-home-write-hint = 請讓執行 pmk-host 的帳號可以寫入這裡，或用 `--home DIR` 指定別的 home

doctor-store-none = 還沒有：第一次執行 `pmk-host run` 時會建立
doctor-store-database = `{ $name }`，schema { $schema }{ $older ->
    [yes] ；下次啟動時會升級到 schema { $known }
   *[no] {""}
}{ $used ->
    [yes] ；{ $host } 正在使用
   *[no] {""}
}
doctor-store-well = schema { $schema }，{ $mib } MiB{ $older ->
    [yes] ；下次啟動時會先備份，再升級到 schema { $known }
   *[no] {""}
}{ $read ->
    [no] ；檔案太大，這裡沒有全部讀取，請用 `pmk-host store check`
   *[yes] {""}
}

doctor-config-none = 沒有這個檔案：全部採用預設值
doctor-config-well = 內容沒有問題
doctor-config-hint = 請修正 `{ $path }`，見 docs/settings.md

doctor-tls-well = 這個系統的 { $count } 張根憑證
doctor-tls-inside = 這個系統沒有根憑證：連線到 Slack 用的是內建的 { $count } 張 Mozilla 根憑證
doctor-tls-misled = { $variable } 指定的地方讀不到根憑證：連線到 Slack 用的是內建的 { $count } 張 Mozilla 根憑證
doctor-tls-misled-hint = 請修正或取消設定 { $variable }；在那之前無法連線到模型
doctor-tls-hint = 請安裝套件 `ca-certificates`；沒有它就無法連線到模型

doctor-slack-none = 沒有 token，所以大家在 console 對話
doctor-slack-none-hint = 要連接 Slack：`pmk-host slack manifest`，見 docs/slack.md#the-app
doctor-slack-console = 大家在 console 對話
doctor-slack-kinds = 兩個 token 都有，種類也正確
doctor-slack-bot = { $team } 工作區的 @{ $name }
doctor-slack-silent = Slack 在 { $seconds } 秒內沒有回應
doctor-slack-silent-hint = 請檢查網路：Slack 是直接連線的，不經過 HTTPS_PROXY；也可以看 https://slack-status.com
doctor-slack-socket = Socket Mode 已開啟，也接受 app token
doctor-scopes-all = 閘道會用到的都有
doctor-scopes-unknown = 無從得知
doctor-scopes-untold = Slack 沒有說明授予了哪些 scope
doctor-scopes-without = 缺少 `{ $scope }`：{ $goes }
doctor-scopes-goes = { $goes ->
    [attached-files] 不會讀取附加的檔案
    [channel-history] 當機之後，這類頻道裡的回答可能有一部分重複，中斷期間的提及無法補讀，討論串在第一次提及之前的內容不會讀取，其中的每個問題也都要提及機器人
    [command] 沒有 `/pmk` 可用
    [direct-messages] 當機之後，可轉問的人可能會被問兩次
    [files] 很長的回答會被截斷，而不是以檔案送出
    [group-messages] 可能收不到多人私訊裡的問題，中斷期間的也無法補讀
    [names] 模型看不到大家的名字，只看得到 id
    [prompts] 不會顯示開場的建議
   *[reactions] 可轉問的人說「稍後」時，會以文字而不是表情符號回應來表示收到
}
doctor-scopes-hint = 請在 OAuth & Permissions 加上，並重新安裝應用程式；見 docs/slack.md#the-app

doctor-admins-none = 沒有管理員：需要人處理的事，不會通知任何人
doctor-admins-hint = 請用 `{ $command }` 加入自己，並換成您的成員 ID：它在 Slack 個人檔案的選單裡

doctor-clock-of-certificates = 憑證被當成過期或尚未生效，所以時鐘可能不準
doctor-clock-unknown = 要有 Slack 或模型的回應才能比對
doctor-clock-well = 與{ $whose ->
    [slack] {" Slack "}
   *[model] 模型
}的時間相差不到一分鐘
doctor-clock-off = 比{ $whose ->
    [slack] {" Slack "}
   *[model] 模型
}的時間{ $way ->
    [behind] 慢
   *[ahead] 快
} { $minutes } 分鐘
doctor-clock-hint = 請校正時間，最好用 NTP：`timedatectl set-ntp true`

doctor-model-well = { $model } 有回應
doctor-model-unnamed = sim，只會引用對話的替身，因為沒有指定模型
doctor-model-sim = { $model }，內建的替身
doctor-model-claude = { $model }：已安裝 `claude` 程式；沒有詢問它
doctor-model-claude-hint = 要知道有沒有登入，請以執行 pmk-host 的帳號執行 `claude -p hello`，或執行 `pmk-host doctor`，不加 `--offline`
doctor-model-offline = 沒有詢問 { $model }，因為 `--offline`
doctor-model-later = 金鑰有效；請稍後再試
doctor-model-credentials = 請檢查金鑰或登入，見 docs/models.md
doctor-model-billing = 請查看供應商的帳單頁面
doctor-model-name = 請檢查冒號後的名稱，以及網址（`baseUrl`、OPENAI_BASE_URL）：自架的伺服器，大多以 `/v1` 結尾；見 docs/models.md
doctor-model-clock = 請檢查這台機器的時鐘，或更新伺服器的憑證：它被當成過期或尚未生效
doctor-model-network = 請檢查網路、代理伺服器（如果有）與供應商的網址
doctor-model-small = 它有回應，但這麼小的請求可能不適合它：請用 `pmk-host run` 問它看看

layers-over = {"，其下是 "}
doctor-policies-hint = `pmk-host policy inspect POLICY`，見 docs/policies.md

doctor-mra-well = `{ $program }`，工作區是 `{ $workspace }`
doctor-mra-alone = `{ $program }`，沒有工作區
doctor-mra-none = 沒有指定工作區，所以不會查詢程式碼
doctor-mra-missing = 找不到程式 `{ $program }`
doctor-mra-missing-hint = 請安裝，或在 gateway.json 用 `mra.command` 指定，見 docs/knowledge.md
doctor-mra-no-folder = 工作區 `{ $workspace }` 不是資料夾
doctor-mra-no-folder-hint = 請修正 gateway.json 的 `mraWorkspace`，或 PMK_MRA_WORKSPACE

doctor-gateway-work = 這個 home 沒有閘道在執行，`pmk-host { $command }` 正在使用它（pid { $pid }）
doctor-gateway-work-hint = 請等它結束
doctor-gateway-none = 這個 home 沒有閘道在執行
doctor-gateway-well = 閘道在執行，狀況良好（pid { $pid }）
doctor-gateway-not-well = 閘道在執行（pid { $pid }）：{ $reasons }
doctor-gateway-again = 請執行 `{ $stop }`，再重新啟動；見 docs/operating.md#is-it-well
