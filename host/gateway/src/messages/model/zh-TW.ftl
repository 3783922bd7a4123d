# What the model is told of what it wanted done, in Traditional Chinese.

mra-found = 這是 `{ $call }` 的結果，請根據它回答剛才的問題：
mra-went-wrong = `{ $call }` 失敗：
mra-say-so = 請向提問者如實說明這次查詢失敗及其原因，並就已知的部分回答，不要猜測。
mra-not-started = { $message }
mra-exited = 結束代碼 { $code }
mra-signalled = 因訊號 { $signal } 而結束
mra-printed-nothing = 沒有輸出任何內容
mra-timed-out = { $seconds } 秒內沒有回答
mra-cancelled = 查詢已取消
mra-without-a-word = { $what }，stderr 沒有內容

bad-no-repo = 沒有指明儲存庫
bad-repo = `{ $repo }` 不是儲存庫的名稱：請用字母、數字、`.`、`_` 和 `-`，巢狀的各段之間用 `/`；任何一段都不能以 `-` 開頭，也不能是 `.` 或 `..`
bad-no-question = 問題是空的
bad-long-question = 問題有 { $chars } 個字元，最多 { $most } 個
bad-tool = 沒有 `{ $tool }` 這個工具，可用的有 { $tools }
bad-tool-none = 沒有 `{ $tool }` 這個工具，現在也沒有其他工具：請直接用文字回答
bad-input = `{ $tool }` 需要 `{ $key }`，而且不能是空的

flaw-key = `{ $tag }` 缺少 `{ $key }`
flaw-open = `{ $tag }` 沒有結尾
flaw-extra = `{ $tag }` 前面已經有另一個區塊
flawed = { $flaws }；一行寫一個欄位，`repo: …` 與 `question: …`，最後以三個反引號結束區塊，或是不寫區塊直接回答
flawed-too = 沒有執行：{ $flawed }

told-used-up = 這個問題可用的呼叫次數已經用完：請用已有的內容回答，並說明還缺什麼
told-echo = 沒有執行：這個呼叫照抄了對話或結果裡的文字，不是你自己的判斷
told-beside-calls = 沒有執行：區塊和工具呼叫不能並用，請改為呼叫 `{ $tool }`
told-no-code = 這裡沒有程式碼可查，請直接回答
told-not-listed = `{ $repo }` 不在可以查的儲存庫之中，可以查的有：{ $listed }
told-bounded = 沒有提問：{ $of ->
    [person] 同一個人
   *[conversation] 同一個對話
}每小時最多 { $most } 次這樣的提問，已經用完；不要再試，請告訴提問者
told-switched-off = 沒有提問：這裡已關閉這項功能；不要再試，請告訴提問者
told-just-answered = 負責的人剛剛回答了，請轉達他說的內容
told-already = 沒有轉問：這個討論串已經在等另一個問題的答案；請告訴提問者，這個問題要等那個答案來了再問
told-too-long = 沒有轉問：問題太長，沒有人讀得完；請縮短到 2,000 個字元以內再試，或告訴提問者
told-nobody = 沒有設定可以轉問的人：請告訴提問者，並說明管理員可以設定
told-in-group = 沒有轉問：在這個多人私訊裡，沒辦法轉問對話以外的人；請告訴提問者改在與你的私訊裡提問
told-proposed = 還沒有轉問：這個問題不是提問者自己提的，所以先請提問者過目，同意之後才會轉問；請這樣告訴對方
told-asked = 已經在同一個討論串向負責的人轉問，答案稍後才到
told-asked-apart = 已經私訊負責的人轉問，答案稍後才到

pass-on = 先前轉問的問題有回覆了。請整理成給提問者的回答：先說結論，保留所有事實、數字與名稱，不要加入回覆中沒有的內容，用提問者的語言。
pass-on-question = 問題：{ $question }
pass-on-reason = 轉問原因：{ $reason }
pass-on-exchange = 其間的往來：
pass-on-reply = { $user } 的回覆：
