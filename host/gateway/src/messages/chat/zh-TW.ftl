
# 終端機裡的對話。

chat-begin = pmk-host { $version }：輸入問題後按 Enter；之前說過的都記得
chat-model = 模型  { $model }，可容納 { $window } token
chat-model-sim = 模型  sim，只會引用你說過的話；`pmk-host init` 可以設定真正的模型
chat-policy = 策略  { $policies }；其他策略見 `pmk-host demo`
chat-keys = /help 說明還能輸入什麼，/quit 離開
chat-help = /help      這份說明
    /context   模型看得到這個對話的哪些部分
    /policy    由哪些策略決定
    /pmk       還能要閘道做什麼：`/pmk help`
    /yes /no   回覆剛才徵詢你同意的問題（如果有）
    停         停止正在進行的回答；`stop` 也是
    /quit      離開；`exit`、Ctrl-D、連按兩次 Ctrl-C 也是；進行中的回答仍會顯示
    Ctrl-C     清空這一行
    回答下方的暗色行說明由哪個策略決定，以及用掉模型可容納的多少。
chat-unknown = 沒有 { $word } 這個指令；/help 會列出可用的指令
chat-too-many = 多了參數 { $word }；/help 會列出可用的指令
chat-leave = 再按一次 Ctrl-C 就離開
chat-stopped = 閘道正在停止：還在輸入列裡的內容不會送出
chat-waits = :hourglass_flowing_sand: 模型還沒有回答（{ $seconds } 秒）
chat-no-word = 沒有問題在等你回覆
chat-no-effect = 你的回覆沒有作用：{ $error }
chat-not-stored = 你的訊息沒有存下來：{ $error }
chat-turn = { $tokens } / { $limit } token
chat-decided = { $policy }：{ $size }
chat-dropped = 略去 { $turns } 輪
chat-shortened = 縮短 { $messages } 則訊息
chat-recalled = 再次附上 { $messages } 則訊息
