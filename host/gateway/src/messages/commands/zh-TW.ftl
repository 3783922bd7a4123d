# What commands answer with, in Traditional Chinese.

commands = 可用的指令：
help-more = 不用 `/pmk`：`停`（或在問題上按 ⏹）停止回答，按 🔁 再問一次，`verbose off`、`progress`、`summary`、`full` 決定這裡顯示多少工具呼叫。
usage = 用法：
unknown-command = :grey_question: 未知的指令 { $word }，`/pmk help` 會列出全部
unknown-admin-command = :grey_question: 未知的 admin 子指令 { $word }，`/pmk admin help` 會列出全部
argument-missing = :grey_question: 缺少 { $wanted }
argument-too-many = :grey_question: 多了參數 { $word }
argument-no-person = :grey_question: 認不出 { $word } 是誰，請在 `@` 後面選人，或提供像 `U…` 這樣的 id
argument-no-channel = :grey_question: 認不出頻道 { $word }，請在 `#` 後面選頻道，或提供像 `C…` 這樣的 id
argument-not-of = :grey_question: { $word } 不符合 { $wanted }
only-in-dm = :no_entry_sign: `/pmk admin` 只能在私訊裡使用，沒有執行任何動作
only-admins = :no_entry_sign: 限管理員使用，沒有執行任何動作。管理員可用 `/pmk admin admins add` 加入您；第一位在主機上用成員 ID 加入，例如 `pmk-host admin add U012AB3CD`
only-people = :no_entry_sign: `/pmk admin` 只接受本人輸入，這則訊息來自應用程式，沒有執行任何動作

about-help = 顯示這份說明
about-context = 我看得到這個對話的哪些部分
about-policy = 由哪些策略決定
about-open = 在這個頻道開案，之後在這裡問我的都屬於這個案件
about-show = 顯示這個頻道進行中的案件
about-close = 結案
about-cases = 列出這個頻道的案件
about-admin-help = 管理員的指令，限私訊
about-admin-status = 目前的設定
about-admin-audience-set = 設定某人的受眾，也就是模型對他說話的方式
about-admin-audience-unset = 取消某人自己的受眾
about-admin-audience-default = 設定預設的受眾
about-admin-audience-set-channel = 設定頻道的受眾；個人的設定優先
about-admin-audience-unset-channel = 取消頻道自己的受眾
about-admin-audience-list = 列出所有受眾設定
about-admin-escalation-add = 在某個儲存庫或預設的名單加入可轉問的人
about-admin-escalation-remove = 從名單移除
about-admin-escalation-list = 列出可轉問的人
about-admin-atoms-list = 列出同事給過的回答
about-admin-atoms-show = 顯示其中一則
about-admin-atoms-approve = 立即採用
about-admin-atoms-reject = 刪除
about-admin-admins-list = 列出管理員
about-admin-admins-add = 加入管理員
about-admin-admins-remove = 移除管理員
about-admin-audit = 最近的變更，預設 20 筆，最多 100 筆，被拒絕的也列出

window = :mag: 看得到的：{ $messages } 則訊息，{ $tokens } / { $limit } token
window-dropped = - 更早略去的：{ $turns } 輪
window-older = - 較早的 { $turns } 輪：{ $tokens } token
window-group = - { $messages } 則訊息，{ $tokens } token：{ $origin ->
    [user] { $text }
    [seed] 對話開頭附上的內容
    [summary] 先前內容的摘要
   *[other] { $origin }
}
policies = :clipboard: 由誰決定，依序詢問：
policy-layer = - { $name }（{ $digest }）：{ $decides }
policy-suspension = - :warning: { $skipped }
suspension = { $skipped }；最近一次失敗：{ $reason }
skipped = { $policy } 暫停：{ $decision } 由下一層決定；{ $left ->
    [0] 下次決定時重試
   *[other] 再 { $left } 次決定後重試
}
policy-of-arm = - 屬於實驗 { $experiment } 的實驗組 { $arm }

status = :gear: 目前的設定
    - mra 工作區：{ $workspace }
    - 預設 ingest：{ $ingest }
    - 預設受眾：`{ $audience }`
    - 管理員人數：{ $admins }
    - 轉問名單人數：{ $pools }
nothing = 無
default-audience = 其他人：`{ $audience }`
contacts = 可轉問的人：
admins = 管理員：{ $list }
no-atoms = 找不到任何 atom
more-atoms = …還有 { $more } 則，在主機上執行 `pmk-host atoms list` 可列出全部
atom = { $id }，{ $status }，{ $scope }，由 { $contributor } 提供
    { $question }
atom-status = { $status ->
    [approved] 已採用
    [flagged] 待審，內容像是對模型下指令
   *[pending] 待審
}
no-changes = 還沒有任何變更

changed-default-audience = :white_check_mark: 預設受眾改為 { $audience }
changed-audience = :white_check_mark: { $id } 的受眾是 { $audience }
changed-no-audience = :white_check_mark: { $id } 不再有自己的受眾
changed-contact = :white_check_mark: { $user } 已在 { $pool } 的名單上
changed-no-contact = :white_check_mark: { $user } 已不在 { $pool } 的名單上
changed-admin = :white_check_mark: { $user } 是管理員
changed-no-admin = :white_check_mark: { $user } 不再是管理員

failed = :x: 沒有完成：{ $why }
failed-no-audience = :x: { $id } 沒有自己的受眾
failed-no-pool = :x: 沒有 { $pool } 這份名單
failed-in-pool = :x: { $user } 已經在 { $pool } 的名單上
failed-not-in-pool = :x: { $user } 不在 { $pool } 的名單上
failed-is-admin = :x: { $user } 已經是管理員
failed-no-admin = :x: { $user } 不是管理員
failed-blocked = :x: { $user } 在封鎖名單上
failed-last-admin = :x: 不能移除最後一位管理員，請先加入另一位
failed-no-atom = :x: 沒有 id 以 { $prefix } 開頭的 atom
failed-many-atoms = :x: 不只一個 id 以 { $prefix } 開頭，請多打幾個字

refused-form = 寫法不符
refused-word = 沒有這個指令
refused-blocked = 在封鎖名單上
refused-place = 不是在私訊裡
refused-person = 不是管理員
refused-by-app = 由應用程式發出
