# What the gateway itself says, in Traditional Chinese. The words of the seeds stand where they give any.

thinking = 思考中…
at-work = 正在處理…
away = :zzz: pmk gateway 暫離
back = :wave: pmk gateway 重新上線
back-after = :wave: pmk gateway 重新上線（離線約 { $minutes } 分鐘）
late = :alarm_clock: 這則回答晚了約 { $count } { $unit ->
    [minutes] 分鐘
    [hours] 小時
   *[days] 天
}
mra-goes-on = 正在查詢 { $repo }…第 { $steps } 步
asking-mra = 正在查詢 { $repo }…

trimmed = :scissors: { $turns ->
    [0] 對話過長，已略去先前內容的摘要
   *[other] 對話過長，已自動裁掉 { $turns } 輪舊訊息
}
compacted = :scissors: { $turns ->
    [0] 對話過長，先前內容的摘要已縮短
   *[other] 對話過長，較舊的 { $turns } 輪已整理成摘要
}
rotated = :scissors: { $turns ->
    [0] 對話過長，已帶著較短的摘要重新開始
   *[other] 對話過長，已帶著摘要重新開始，先前的 { $turns } 輪不再顯示給模型
}
rotated-for-admins = :recycle: `{ $session }` 太長，已在新的 session 繼續；{ $entries } 則訊息留在封存裡
recovery-failed = :rotating_light: `{ $session }` 的提示太長，所有縮短的方法都試過仍然不行，提問者收到的是道歉而不是回答
parked = :x: 我們這邊出了問題，這則訊息暫時無法回答；訊息已保留{ $admins ->
    [know] ，也已通知管理員
   *[do-not] {""}
}，修好後會接著回答。您可以繼續在這裡發問
parked-for-admins = :rotating_light: `{ $session }` 有一則訊息無法回答，已先擱置：{ $why }。修好之後請在主機上用 `pmk-host sessions retry { $session }` 重新處理；`pmk-host sessions parked` 會列出全部
rest-parked-for-admins = :rotating_light: `{ $session }` 有一則訊息已經回答，但回答以外的部分送不出去，已先擱置：{ $why }。修好之後請在主機上用 `pmk-host sessions retry { $session }` 補送；`pmk-host sessions parked` 會列出全部
no-tools = :warning: 模型 { $model } 的伺服器不接受工具呼叫，之後改請它把要做的事寫成文字，效果會差一些。要再試工具，請停止閘道（同一個資料庫的所有主機），在主機上執行 `pmk-host model forget`，再啟動
policy-suspended = :rotating_light: 策略 { $policy } 已失敗 { $failures } 次，暫停一段時間，改由下一層決定：{ $reason }
policy-refused = :rotating_light: 新的策略無法使用，仍由原來的策略決定：{ $reason }
model-refuses = :rotating_light: 模型 { $model } 拒絕所有人的問題：{ $what }（提示：請在主機上用 `pmk-host doctor` 檢查金鑰、帳號與模型名稱；它恢復回答時會再通知您，但如果重新啟動過閘道就不會，那時請自己問它一個問題）
model-answers-again = :white_check_mark: 模型 { $model } 又能回答了
front-refused = :rotating_light: Slack 不再接受我的新連線；現有的連線仍可使用，我會繼續重試：{ $what }（提示：{ $hint }）
front-accepted = :white_check_mark: Slack 又接受我的連線了
front-unmuted = :white_check_mark: Slack 又接受我的 bot token 了：在那之前沒有人得到回答，我也無法通知任何人
left-unread = :warning: 離線之後最多補讀 { $most } 個對話，另有 { $count } 個沒有補讀：當時在那裡問的問題，要再問一次才會有回答
partly-read = :warning: 離線之後有 { $count } 個對話太長，或 Slack 沒有傳回全部，只補讀了一部分：在沒有補讀的部分問的問題，要再問一次才會有回答
arm-stopped-for-failures = :no_entry: 實驗 `{ $experiment }` 已停用實驗組 `{ $arm }`：它的 { $of } 個對話中有 { $bad } 個發生策略失敗，`{ $control }` 的 { $control-of } 個中有 { $control-bad } 個；它的對話改由 `{ $control }` 繼續
arm-stopped-for-overflows = :no_entry: 實驗 `{ $experiment }` 已停用實驗組 `{ $arm }`：它的 { $of } 個對話中有 { $bad } 個發生提示太長，`{ $control }` 的 { $control-of } 個中有 { $control-bad } 個；它的對話改由 `{ $control }` 繼續
experiment-refused = :warning: 實驗 `{ $experiment }` 沒有開始：{ $why }
experiment-change-refused = :warning: 實驗 `{ $experiment }` 的修改沒有採用，先前的實驗組照常進行：{ $why }
files-not-read = :paperclip: 沒有讀取：{ $files }
file-not-read = { $name }（{ $why ->
    [no-text] 不是文字
    [odd-image] 模型無法讀取的圖片格式
    [no-images] 圖片，而目前的模型無法讀取圖片
    [too-large] 超過 { $most } KiB
    [large-image] 圖片超過 { $most } KiB 或 8,000 像素
    [gone] 已刪除
    [elsewhere] 不在 Slack 上
    [not-allowed] 應用程式不能讀取檔案：需要 scope `files:read`
    [not-shared] 沒有分享給這個應用程式
    [off] 這裡不讀取檔案
   *[other] 無法取得
}）
more-files = 另外 { $count } 個（檔案太多）
images-refused = :paperclip: 模型的伺服器拒收圖片，這個回答沒有參考圖片。
between = 、
pair = { $name }：{ $value }
told-no-words = （這則訊息本身沒有文字：要說的內容已引用在上面。）
too-long = :x: 對話太長，請開新 thread 重新提問
message-too-long = :x: 這則訊息太長：約 { $tokens } token，上限 { $limit }，請縮短或分成幾則
cut-short = :scissors: 這個回答太長，一則訊息放不下，也無法以檔案送出。其餘 { $chars } 個字元已保留，管理員可在主機上用 `pmk-host sessions show { $key } --full` 查看
message-too-long-by-itself = :x: 這則訊息太長：約 { $tokens } token，請縮短或分成幾則
notice-in-person = :incoming_envelope: 這是關於您提出的問題，Slack 不讓我在那裡發訊息。
in-person = :incoming_envelope: Slack 不讓我在您提問的地方回答，所以送到這裡。
nothing-to-read = :grey_question: 這則訊息沒有文字可讀
blocked = 這個帳號在封鎖名單上，訊息不會得到回答

verbose = { $verbosity ->
    [off] 不再顯示工具呼叫，也不顯示進度
    [progress] 工具呼叫進行時只顯示進度
    [summary] 每次工具呼叫會顯示一行摘要
   *[full] 每次工具呼叫會顯示一行摘要，讀者的受眾都是 `tech` 時再加上結果
}
mra-asked = :wrench: `mra ask { $repo }`：{ $outcome ->
    [ok] 完成
   *[failed] 失敗
}（{ $seconds } 秒）

model-busy = :x: 模型現在太忙，請稍後再問一次
model-account = :x: 模型的帳號有問題（金鑰或帳務），請通知管理員
model-unknown = :x: 伺服器沒有模型 { $model }，請通知管理員
model-refused = :x: 模型拒絕回答這個問題
model-timeout = :x: 模型沒有在時限內回答，請再問一次
model-unreachable = :x: 連不上模型，請再問一次
model-failed = :x: 模型回報錯誤，請再問一次；若一再發生請通知管理員
stopped = :raised_hand: 已停止
erased-question = （這則訊息已刪除）
erased-answer = （這則回答已刪除）
model-silent = :x: 模型沒有寫出回答，請換個說法再問一次
model-out-of-words = :x: 模型還沒寫出文字，回答的長度上限就用完了，多半是思考太久；請把問題拆小一點再問

escalated = :raising_hand: 這個問題需要專人回答，我已經在討論串轉問，一有答案就會通知您。
escalated-apart = :raising_hand: 這個問題需要專人回答，我已經私訊負責的人，一有答案就會通知您。
used-up = :no_entry: { $kind ->
    [escalate] 沒有轉問：同一個人、同一個對話每小時最多轉問 { $most } 次。請稍後再試，或直接詢問負責的人。
   *[other] 沒有再查程式碼：同一個人、同一個對話每小時最多查 { $most } 次，請稍後再試。
}
switched-off = :no_entry: { $kind ->
    [escalate] 沒有轉問：這裡已關閉轉問功能，請直接詢問負責的人。
   *[other] 沒有查程式碼：這裡已關閉查程式碼的功能。
}
proposed = :question: 這個問題需要專人回答。因為問題不是您自己提的，先請您過目，您同意之後才會轉問。
proposal = :question: { $asker } 要用您的名義把這個問題轉問專人嗎？
    { $question }
proposal-react = 請按 :white_check_mark: 轉問，或按 :x: 不轉問。24 小時後視為不轉問。
proposal-type = 請輸入 /yes 轉問，或輸入 /no 不轉問。24 小時後視為不轉問。
proposal-dropped = :x: 沒有轉問。
proposal-expired = :hourglass: 沒有轉問：24 小時內沒有收到您的確認，請重新提問。
already-asked = :hourglass: 這個討論串還在等另一個問題的答案，請等到答案來了再問，或開新討論串提問。
confirm-again = :hourglass: 這個討論串還在等另一個問題的答案。您的問題已保留，等那個答案來了，請再確認一次。
nobody-to-ask = :warning: 這個問題需要專人回答，但沒有設定可以轉問的人，請通知管理員。
nobody-reached = :warning: 負責的人都聯絡不到：傳給他們的訊息都沒有送達，請通知管理員。
escalation = { $contacts } 想請您協助回答 { $asker } 的問題：
    { $question }
escalation-reason = 原因：{ $reason }
escalation-tried = 已先查過：知識庫中 { $atoms } 則相關回答、程式碼 { $mra } 次，都沒有答案。
reply-to-this = 請直接回覆這則訊息，我會轉達。
asked-back = { $asker } 關於您的問題，{ $contact } 想先確認：
    { $text }
asker-replied = { $contacts } 關於剛才的問題，{ $asker } 補充：
    { $text }
is-it-an-answer = :grey_question: { $contact } 這是給提問者的答案嗎？
    { $text }
    是的話請按 :white_check_mark:，我會轉達；不是請按 :x:，我會當作您自己的訊息來回答，並繼續等您的答案。
answer-taken = :white_check_mark: 謝謝，我會轉達。
not-meant = :ok_hand: 好的，我會當作您自己的訊息來回答，並繼續等您對那個問題的答案。
still-waiting = :ok_hand: 好的，我會繼續等您的答案。
passed-back = :speech_balloon: 已經轉達給提問者，回覆一到就會告訴您。
passed-on = :incoming_envelope: 已經轉達給負責的人。
files-not-passed-on = :paperclip: 我只能轉達文字。{ $readers } 收不到這些檔案，或只收到一部分：{ $files }。請您直接傳給對方。
answer-added-to = { $asker } 關於這個問題的答案，{ $contact } 補充：
    { $question }

    { $text }
addition-passed-on = :incoming_envelope: 已經轉達給提問的人。記下來的回答不會跟著改；如果內容有誤，請在它的通知按 :x: 刪除。
answered-by = :white_check_mark: { $contributor } 已經回答了這個問題，不用再費心了，謝謝！
    { $question }
answer-taken-back = :leftwards_arrow_with_hook: { $contributor } 收回了剛才的答案，這個問題還在等人回答；您若知道，請在這裡回覆。
    { $question }
answered-already = :information_source: 謝謝！這個問題已經有答案，或提問者不再需要，所以沒有再轉達。
withdrawn = :ok_hand: 好的，不再等這個答案了。
not-needed = :information_source: { $asker } 不再需要這個問題的答案，不用再費心了，謝謝！
    { $question }
reply-here = 請直接在這個討論串回覆，我會轉達。
reply-or-mention = 請在這個討論串回覆，我會轉達。如果我沒有反應，請再回覆一次並提及我。

answer-arrived = { $asker } 您先前的問題，{ $contributor } 回覆了：
atom-pending = :inbox_tray: { $contributor } 的回答已經記下來，24 小時後會用來回答類似的問題：
    { $question }
    請 { $contributor } 按 :white_check_mark: 立即採用，或按 :x: 刪除。（{ $id }）
atom-flagged = :inbox_tray: { $contributor } 的回答已經記下來，但讀起來像是給模型的指令，所以不會自動採用，需要有人同意：
    { $question }
    請 { $contributor } 按 :white_check_mark: 採用，或按 :x: 刪除。（{ $id }）
atom-approved = :white_check_mark: 已採用，之後會用來回答類似的問題。（{ $id }）
atom-rejected = :x: 已刪除，不會用來回答其他問題。（{ $id }）
atom-unreadable = :warning: 這個決定還不算數，因為無法讀取 atom 的檔案：{ $why }
    等檔案修好，被問的人就可以決定。
atom-copied = :warning: 這個決定還不算數，因為{ $why }
    等副本刪掉，或拿掉副本裡的 `approval`，被問的人就可以決定。

button-like = 有幫助
button-dislike = 沒有幫助
button-approve = 採用
button-reject = 刪除
button-yes = 是
button-no = 否
button-again = 再試一次
not-theirs = :lock: 只有訊息中點名的人可以決定。
not-theirs-again = :lock: 只有提問的人或管理員可以再問一次。
not-awaited = :information_source: 這件事已經決定了。
asked-once-more = :repeat: 模型在這裡沒有回答，問題已重新問過一次。
nothing-again = :information_source: 這個問題已經在等回答，或者已經不在了。

case-opened = :file_folder: 案件 { $case } 已開案。從現在起，在這個頻道問我的都屬於這個案件，直到用 `/pmk close` 結案為止。
    { $title }
case-shown = :file_folder: 案件 { $case }，{ $since } 開案{ $signed ->
    [no] {""}
   *[other] （{ $by }）
}，{ $messages } 則訊息
    { $title }
case-closed = :white_check_mark: 案件 { $case } 已結案：{ $messages } 則訊息、{ $hypotheses } 個假設、{ $questions } 個待查問題。在主機上執行 `pmk-host case export { $case }` 可匯出成檔案。
    { $title }
case-hypothesis = 假設：{ $text }
case-question = 待查：{ $text }
case-more = 還有 { $count } 個
case-tracked = :pushpin: pmk auto-tracked（案件 { $case }）
case-noted-alone = 已記下。
cases = :file_folder: 這個頻道的案件：
cases-line = { $case }（{ $state ->
    [open] 進行中
   *[closed] 已結案
}，{ $since } 開案）：{ $title }
cases-none = :file_folder: 這個頻道沒有案件。用 `/pmk open TITLE` 開案。
case-open-already = :warning: 這個頻道已有進行中的案件 { $case }，請先用 `/pmk close` 結案。
    { $title }
case-none-open = :warning: 這個頻道沒有進行中的案件。用 `/pmk open TITLE` 開案。
case-no-title = :warning: 案件需要標題：`/pmk open TITLE`
case-title-too-long = :warning: 標題有 { $chars } 個字元，最多 { $most } 個字元。
case-not-a-channel = :no_entry_sign: 案件屬於頻道，請在頻道裡使用這個指令。
case-failed = :x: 現在無法讀寫案件，請再試一次；若一再發生請通知管理員。
