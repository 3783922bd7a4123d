
# `pmk-host demo` 說的話。

demo-title = 一段 { $turns } 個問題的客服對話，在 { $window } token 的視窗裡重播 { $lanes } 次。
demo-none = 沒選策略
demo-none-about = 預設策略，沒有設定視窗：全部送出，直到遭拒收。
demo-says = { $lane }：{ $answer }
demo-rung = { $rung ->
    [trim] 裁切
    [compact] 整理成摘要
    [rotate] 換新 session
   *[give-up] 放棄
}
demo-policy-about = 每次呼叫之前決定模型看得到什麼。
demo-question = 第 { $turn }／{ $turns } 問：{ $asked }
demo-refused = { $refused ->
    [0] 從未拒收
   *[other] 拒收 { $refused } 次
}
demo-refuses = 模型拒收：{ $tokens } token 太多了
demo-recovered = 已復原（{ $rungs }）
demo-left-out = 略去 { $turns } 輪
demo-asked = 最後問起第 { $turn } 問說過的事：
demo-no-answer = 沒有回答
demo-recalled = 找回 { $messages } 則訊息
demo-heading-policy = 策略
demo-heading-largest = 最大請求
demo-heading-refused = 拒收
demo-heading-recovery = 復原
demo-heading-left-out = 略去輪數
demo-heading-recalled = 找回
demo-heading-found = 回答
demo-right = 正確
demo-wrong = 遺失
demo-next = 接下來：
demo-next-run = 在小視窗裡聊聊
demo-next-compare = 用自己的對話比一比
