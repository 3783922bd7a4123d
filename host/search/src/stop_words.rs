//! Words that say nothing about the subject of a text: pronouns, particles, auxiliaries, question words.

use std::{collections::HashSet, sync::LazyLock};

const ENGLISH: &str = "a about above after again all also am an and any anybody anyone are as at be because been before being \
    below between both but by can could did do does doing done down during each either else for from further get gets \
    give gives go goes got had has have having he hello her here hers hi him his how i if in into is it its just know \
    let like may maybe me might mine more most much must my need no nor not now of off ok on once only or other our \
    ours out over own please same say says see shall she should so some such tell than thank thanks that the their \
    theirs them then there these they this those through to too under until up us use used very want was we were what \
    when where whether which while who whom whose why will with without would yes you your yours \
    s t d ll m re ve don doesn didn isn aren wasn weren won";

const CHINESE: &str = "的 了 是 在 有 和 與 与 及 或 也 都 就 還 还 又 很 不 沒 没 嗎 吗 呢 吧 啊 喔 哦 呀 嘛 啦 我 你 您 他 她 它 \
    這 这 那 哪 誰 谁 其 之 者 所 被 把 將 将 從 从 到 對 对 為 为 以 於 于 而 但 若 如 則 则 只 才 再 要 會 会 能 可 想 請 请 \
    問 问 讓 让 給 给 跟 個 个 些 每 各 說 说 去 來 来 做 用 上 下 中 裡 里 後 后 前 時 时 得 地 著 着 過 过 \
    我們 我们 你們 你们 他們 他们 大家 這個 这个 那個 那个 哪個 哪个 這些 这些 那些 哪些 這裡 这里 那裡 那里 哪裡 哪里 \
    這樣 这样 那樣 那样 怎麼 怎么 怎樣 怎样 如何 什麼 什么 甚麼 為什麼 为什么 為何 为何 是否 是不是 有沒有 有没有 \
    可以 可否 能否 能不能 可不可以 請問 请问 謝謝 谢谢 知道 一下 一個 一个 一些 多少 幾個 几个 還是 还是 或是 或者 以及 \
    因為 因为 所以 但是 不過 不过 如果 的話 的话 就是 不是 沒有 没有 已經 已经 應該 应该 可能 需要 想要 關於 关于 對於 对于 \
    現在 现在 目前 時候 时候 之後 之后 之前 以後 以后 以前 怎麼樣 怎么样 怎麼辦 怎么办 麼 么 們 们 幾 几 嗨 您好 你好 幫 帮 幫忙 帮忙 \
    告訴 告诉 個月 个月 這是 这是 那是 都是 也是 是的 我要 我想 不能 不會 不会 不到 要不要 會不會 会不会";

static STOP_WORDS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| ENGLISH.split_whitespace().chain(CHINESE.split_whitespace()).collect());

/// Whether a word, in lower case and unstemmed, is a stop word.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(word)
}
