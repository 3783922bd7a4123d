//! Words that people use whatever they ask about. A [`stop word`](crate::stop_words) is not searched for at all; these
//! are, with less weight: `公司` in two texts does not mean that they are about the same thing.
//!
//! Both lists come from the language, not from any texts; the evaluation data was not used for them
//! (`docs/retrieval.md`).

use std::{collections::HashSet, sync::LazyLock};

use rust_stemmers::{Algorithm, Stemmer};

use crate::{script::fold, stop_words::is_stop_word};

const ENGLISH: &str = "company office team people person customer client user system order number day week month year time today \
    tomorrow yesterday work working new old change need find make please problem issue question error page file data list name \
    thing way long far many out add create delete remove set show run start stop open close send receive move keep check look \
    see try call ask answer tell help begin end turn put take bring pay buy sell read write first last next same different main \
    big small slow fast good bad right wrong full empty free one two three several per web site app mobile phone search table \
    column link button compute calculate happen mean per version colleague";

const CHINESE: &str = "公司 員工 同事 部門 主管 客人 客戶 顧客 人員 新人 系統 資料 文件 申請 處理 問題 時間 日期 今天 明天 昨天 今年 明年 去年 本月 \
    下月 上月 每月 每天 每年 每週 下週 上週 本週 一天 多久 幾天 幾號 哪裡 辦公 公室 使用 進行 開始 結束 確認 查詢 看到 找到 無法 辦理 通知 \
    更新 修改 新增 設定 功能 流程 規定 方式 方法 情況 狀況 原因 內容 名稱 號碼 工作 上班 下班 東西 事情 請教 不見 失敗 壞了 打開 反應 沒反應 \
    負責 專案 產品 商品 服務 網站 手機 電腦 中心 單位 地方 地點 費用 價格 金額 數量 購物 公告 安排 提供 需求 標準 條件 範圍 結果 消息 訊息 \
    影響 開放 取得 準備 完成 取消 選擇 顯示 出現 發生 解決 檢查 管理 登記 預約 換成 更換 買的 送的 用的 寄到 收到 拿到 找誰 誰要";

/// Chinese words for asking, counting and connecting, in addition to the stop words.
const ASKING: &str = "什麼時候 甚麼時候 什麼時間 什麼地方 什麼人 為什麼會 會怎樣 怎麼會 怎麼了 是什麼 有什麼 我的 你的 您的 他的 她的 我們的 你們的 大家的 有人 沒人 有沒有人 誰有 還有 每位 何時 何地 何處 何人 哪天 哪間 哪家 哪位 哪台 哪一 哪幾 哪邊 哪兒 幾次 幾點 幾號 幾天 幾家 幾間 多久 多快 多長 多大 多高 \
    該 應 啥 咋 次 天 月 年 號 位 份 家 間 台 張 件 條 找 還沒 一直 老是 總是 突然 常常 經常 通常 直接 另外 其他 別的 全部 所有 任何 自己 \
    別人 人家 大概 大約 到底 究竟 剛剛 剛才 馬上 立刻 盡快 趕快 快點 下次 上次 這次 每次 一次 每個 每個月";

/// Function words of one character that also begin a word which the dictionary may not know (`請款`, `下單`), and those
/// that end one (`帳號`, `稅後`).
const BEGINNINGS: &str = "請 問 說 對 會 到 來 去 做 用 上 下 中 裡 後 前 時 地 過 應 年 月 次 天 台 張 件 條 找";
const ENDS: &str = "會 到 對 上 下 中 裡 後 前 時 年 月 次 天 台 張 件 條 號 位 份 家 間";

static EVERYDAY: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let stemmer = Stemmer::create(Algorithm::English);
    let english = ENGLISH.split_whitespace().map(|word| stemmer.stem(word).into_owned());
    english.chain(CHINESE.split_whitespace().map(fold)).collect()
});

static ASKING_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| folded(ASKING));
static BEGINNING_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| folded(BEGINNINGS));
static END_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| folded(ENDS));

fn folded(words: &str) -> HashSet<String> {
    words.split_whitespace().map(fold).collect()
}

/// Whether a term of a folded text is an everyday word.
pub(crate) fn is_everyday(term: &str) -> bool {
    EVERYDAY.contains(term)
}

/// Whether a word of a folded text is a function word, which only asks or connects.
pub(crate) fn says_nothing(word: &str) -> bool {
    is_stop_word(word) || ASKING_WORDS.contains(word)
}

/// Whether a word of a folded text is a function word that also begins other words.
pub(crate) fn begins_words(word: &str) -> bool {
    BEGINNING_WORDS.contains(word)
}

/// Whether a word of a folded text is a function word that also ends other words.
pub(crate) fn ends_words(word: &str) -> bool {
    END_WORDS.contains(word)
}
