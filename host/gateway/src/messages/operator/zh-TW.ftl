# What an operator's terminal shows, in Traditional Chinese.

note-dry-run = 試跑，因為設定了 { $variable }：不會寫入任何內容到 Slack
note-dry-run-hint = 帳本寫到 `dryrun-events-YYYY-MM.log`；現在回答的訊息，在這個 home 會視為已回答
note-console = 前端：console，因為沒有 Slack token
note-console-hint = 要連接 Slack，請執行 `pmk-host init`，或設定 PMK_SLACK_APP_TOKEN 與 PMK_SLACK_BOT_TOKEN，或 gateway.json 的 `slack`
note-no-tokens = 沒有連接 Slack：gateway.json 設定了 Slack，但缺少 token；改在這裡對話
note-no-tokens-hint = 請設定 PMK_SLACK_APP_TOKEN 與 PMK_SLACK_BOT_TOKEN，或交給 `pmk-host init`；`--front console` 表示在這裡對話
note-sim = 模型：{ doctor-model-unnamed }
note-sim-hint = 要用真正的模型，請執行 `pmk-host init`，或設定 ANTHROPIC_API_KEY 並使用 `--model anthropic-api`

status-level = { $level ->
    [healthy] 健康
    [degraded] 部分異常
   *[down] 停止服務
}
status-because = 原因
status-in-a-line = { $level }：{ $reasons }
status-reasons-between = ；
status-process = 行程
status-work = 使用中
status-work-is = 由 `pmk-host { $command }` 使用（pid { $pid }）：請等它結束
status-phase = 階段
status-phase-is = { $phase ->
    [leaving] 結束中
    [starting] 啟動中
   *[ready] 就緒
}，啟動於 { $since }
status-supervised = 服務管理
status-supervised-is = { $supervised ->
    [yes] 是
   *[no] 否
}
status-heartbeat = 心跳
status-heartbeat-is = { $heartbeat ->
    [over] 最後一次
    [fresh] 正常
    [aging] 偏慢
   *[stale] 停止
}，{ $seconds } 秒前
status-heartbeat-none = 無
status-refusal = 遭拒
status-config = 沒有採用
status-config-hint = 請修正 gateway.json；`{ $command }` 會列出所有問題
status-experiment-is = 實驗 `{ $experiment }` 沒有開始：{ $why }
status-experiment-goes-on = 實驗 `{ $experiment }` 的修改，先前的實驗組照常進行：{ $why }
status-experiment-hint = 請修正 gateway.json 的 `experiment`，或用 `{ $command }` 結束它；如果只是缺了檔案，請重新啟動閘道
status-sockets = 連線
status-sockets-are = 已連上 { $open } 條，共 { $of } 條；最近 10 分鐘重連 { $reconnects } 次
status-store = 資料庫
status-store-is = `{ $name }`{ $state ->
    [used] ，{ $hosts } 台主機正在使用
    [unknown] ；無法得知誰在使用：{ $error }
   *[free] ，目前沒有人使用
}
status-unstorable-hint = 請清出磁碟空間，或讓閘道可以寫入；在那之前收到的訊息都不會回報收到，所以 Slack 會在一段時間內重送
status-host = 主機
status-host-is = `{ $name }` { $does ->
    [works] 正在處理 { $turns } 個對話
    [deaf] 收不到 Slack 的訊息或無法在 Slack 發言，正在處理 { $turns } 個對話
   *[silent] 沒有消息
}，版本 { $version }，從 { $since } 起，{ $seconds } 秒前有消息
status-policies = 策略
status-policies-with = { $policies }，設定為 { $settings }
status-policies-is = { $refused ->
    [yes] { $policies }，沒有採用為所有主機選的策略：{ $why }
   *[no] { $policies }
}
status-suspended = 暫停
status-ledger = 帳本
status-ledger-is = 從 { $since } 起：{ $error }
status-ledger-hint = 請確認磁碟還有空間，而且閘道可以寫入；待寫的內容都留著，可以寫入時就會補上

reason-nobody = 這裡沒有閘道在執行
reason-starting = 正在啟動
reason-heart-stopped = 閘道在執行，但心跳已經停了
reason-heart-late = 心跳延遲了
reason-silent = 閘道沒有回應，所以不知道連線的狀況
reason-leaving = 正在結束
reason-reconnecting = 正在重新連線
reason-reconnects = 最近重連了 { $count } 次
reason-token-refused = Slack 不接受這個應用程式或它的 token
reason-store-away = 無法使用資料庫
reason-config-unused = gateway.json 有變更，但無法使用
reason-waiting = 帳本有 { $count } 行等著寫入
