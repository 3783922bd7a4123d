//! Recognises small talk and questions about the conversation itself: a greeting, thanks, "what can you do", "what did
//! I say". A text is of such a kind if nothing is left of it without the words of that kind. So "hello there, sim!" is
//! a greeting, and "hello world is our first program" is not.

use super::terms;

/// Small talk, which is answered although it states nothing. In order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passing {
    Help,
    Thanks,
    Bye,
    Greeting,
    /// Yes, no, well.
    Word,
}

/// Subjects of questions that no sentence of a conversation answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What the person has said.
    WasSaid,
    /// Who or what the simulation is, and what it can do.
    StandIn,
}

/// Words of each kind; of Chinese words, a longer one precedes the shorter ones that it contains.
const HELP: &[&str] =
    &["help", "usage", "使用說明", "說明書", "說明", "幫忙", "幫助", "幫我", "怎麼用", "怎麼使用", "求助", "救命"];
const THANKS: &[&str] = &["thanks", "thank", "thx", "cheers", "謝謝", "多謝", "感謝", "感恩", "謝了", "謝啦", "辛苦了"];
const BYE: &[&str] =
    &["bye", "goodbye", "farewell", "cya", "goodnight", "再見", "拜拜", "掰掰", "再會", "晚安", "下次見", "明天見"];
const GREETING: &[&str] = &[
    "hello",
    "hi",
    "hey",
    "hiya",
    "howdy",
    "greetings",
    "morning",
    "afternoon",
    "evening",
    "welcome",
    "大家好",
    "你好",
    "您好",
    "妳好",
    "哈囉",
    "哈嘍",
    "嗨",
    "早安",
    "午安",
    "早上好",
    "下午好",
    "晚上好",
    "早",
];
const WORD: &[&str] = &[
    "ok",
    "okay",
    "yes",
    "yeah",
    "yep",
    "nope",
    "sure",
    "fine",
    "great",
    "good",
    "nice",
    "cool",
    "perfect",
    "right",
    "well",
    "understood",
    "沒問題",
    "知道了",
    "了解",
    "瞭解",
    "收到",
    "明白",
    "好的",
    "可以",
    "不錯",
    "太好",
    "很好",
    "對",
    "嗯",
    "行",
    "好",
];
const KINDS: [(Passing, &[&str]); 5] = [
    (Passing::Help, HELP),
    (Passing::Thanks, THANKS),
    (Passing::Bye, BYE),
    (Passing::Greeting, GREETING),
    (Passing::Word, WORD),
];

/// Words that accompany them and have no meaning of their own.
const FILLERS: &[&str] = &[
    "again",
    "day",
    "everybody",
    "everyone",
    "folks",
    "friend",
    "just",
    "later",
    "lot",
    "need",
    "now",
    "really",
    "see",
    "sim",
    "some",
    "team",
    "today",
    "too",
    "very",
    "大家",
    "各位",
    "一下",
    "需要",
    "非常",
    "真的",
    "今天",
    "你",
    "您",
    "妳",
    "我",
    "的",
    "了",
    "嗎",
    "呢",
    "吧",
    "啊",
    "呀",
    "喔",
    "哦",
    "囉",
    "啦",
    "很",
    "太",
    "請",
    "要",
    "們",
    "是",
];

/// Words about the conversation.
const TALK: &[&str] = &[
    "earlier",
    "far",
    "just",
    "last",
    "mention",
    "mentioned",
    "said",
    "saying",
    "talked",
    "told",
    "before",
    "還記得",
    "記不記得",
    "記得",
    "剛剛",
    "剛才",
    "之前",
    "先前",
    "前面",
    "說過",
    "講過",
    "提過",
    "提到",
    "告訴",
    "說到",
    "說",
    "講",
    "聊",
    "過",
    "跟",
    "對",
    "話",
    "事",
    "到",
    "些",
    "曾",
];

/// Words of questions to somebody unknown.
const BEING: &[&str] = &[
    "able",
    "ai",
    "bot",
    "capable",
    "doing",
    "function",
    "help",
    "human",
    "kind",
    "made",
    "model",
    "name",
    "purpose",
    "real",
    "robot",
    "sim",
    "sort",
    "work",
    "worked",
    "working",
    "機器人",
    "語言模型",
    "模型",
    "名字",
    "功能",
    "用途",
    "稱呼",
    "幫忙",
    "幫助",
    "可以",
    "能夠",
    "好不好",
    "好嗎",
    "能",
    "會",
    "做",
    "作",
    "幫",
    "用",
    "叫",
    "名",
    "人",
    "東西",
    "事情",
    "事",
    "些",
    "好",
    "真",
];

/// Whether it is a function word: one that asks, connects or points.
fn is_grammar(word: &str) -> bool {
    terms::is_stop_word(word) || word.chars().count() == 1 && !terms::has_content(word)
}

/// The words of a text in lower case: those of scripts with spaces, and each run of Chinese.
fn words(lower: &str) -> Vec<&str> {
    let kind = |c: char| c.is_alphanumeric().then(|| terms::is_wide(c));
    let mut words = Vec::new();
    let (mut start, mut was) = (0, None);
    for (at, is) in lower.char_indices().map(|(at, c)| (at, kind(c))).chain([(lower.len(), None)]) {
        if is != was {
            words.extend(was.map(|_: bool| &lower[start..at]));
            (start, was) = (at, is);
        }
    }
    words
}

/// The length of the longest of these lists' words that a run begins with.
fn beginning<'a>(run: &str, lists: impl Iterator<Item = &'a [&'a str]>) -> Option<usize> {
    lists.flatten().filter(|word| run.starts_with(**word)).map(|word| word.len()).max()
}

/// Whether a word consists only of words of these lists and function words.
fn is_made_of(word: &str, lists: &[&[&str]]) -> bool {
    if !word.starts_with(terms::is_wide) {
        return is_grammar(word) || lists.iter().any(|list| list.contains(&word));
    }
    let mut run = word;
    while let Some(first) = run.chars().next() {
        let grammar = is_grammar(&run[..first.len_utf8()]).then(|| first.len_utf8());
        match beginning(run, lists.iter().copied()).or(grammar) {
            Some(length) => run = &run[length..],
            None => return false,
        }
    }
    true
}

/// Longer texts are not taken for small talk, whatever their words.
const MOST_WORDS: usize = 12;

fn is_short(words: &[&str]) -> bool {
    !words.is_empty() && words.len() <= MOST_WORDS && words.iter().all(|word| word.chars().count() <= 3 * MOST_WORDS)
}

/// The kind of small talk that a text consists of, if any.
pub fn all_of(text: &str) -> Option<Passing> {
    // Most texts are longer, and this is checked for every question.
    if text.len() > 200 {
        return None;
    }
    let lower = text.to_lowercase();
    let words = words(&lower);
    let lists = [HELP, THANKS, BYE, GREETING, WORD, FILLERS];
    if !is_short(&words) || !words.iter().all(|word| is_made_of(word, &lists)) {
        return None;
    }
    let has = |list: &[&str]| {
        words.iter().any(|word| {
            list.iter().any(|known| if word.starts_with(terms::is_wide) { word.contains(known) } else { word == known })
        })
    };
    KINDS.into_iter().find(|(_, list)| has(list)).map(|(kind, _)| kind)
}

/// Whether a text consists only of words of this list and function words.
fn only(text: &str, list: &[&str]) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    is_short(&words) && words.iter().all(|word| is_made_of(word, &[list]))
}

/// Words for the person who asks, and for the one who is asked.
const FIRST_PERSON: [&str; 5] = ["i", "me", "my", "we", "our"];
const SECOND_PERSON: [&str; 3] = ["you", "your", "yours"];

fn names_the_one_who_asks(text: &str) -> bool {
    text.contains('我') || words(&text.to_lowercase()).iter().any(|word| FIRST_PERSON.contains(word))
}

/// Whether a text addresses somebody.
pub fn names_the_one_asked(text: &str) -> bool {
    text.contains(['你', '您', '妳']) || words(&text.to_lowercase()).iter().any(|word| SECOND_PERSON.contains(word))
}

/// What a question is about, if its subject is neither in the conversation nor anything specific.
pub fn subject(question: &str) -> Option<Subject> {
    if names_the_one_who_asks(question) && only(question, TALK) {
        Some(Subject::WasSaid)
    } else if names_the_one_asked(question) && only(question, BEING) {
        Some(Subject::StandIn)
    } else {
        None
    }
}

/// A question without the words that only introduce it, such as 「你還記得…嗎」, and without the kind of what it asks for: the
/// answer to 「我叫什麼名字」 contains a name, but not the word "name".
pub fn asked_for(question: &str) -> String {
    const ASKING: [&str; 8] = ["還記不記得", "記不記得", "還記得", "記得", "知不知道", "知道", "告訴", "可不可以"];
    let plain = ASKING.iter().fold(question.to_owned(), |question, asking| question.replace(asking, "，"));
    let bare = without_kinds(&plain);
    if terms::has_content(&bare) { bare } else { plain }
}

/// Removes a short word after 「什麼」.
fn without_kinds(question: &str) -> String {
    const WHAT: &str = "什麼";
    let (mut kept, mut rest) = (String::new(), question);
    while let Some((before, after)) = rest.split_once(WHAT) {
        kept.push_str(before);
        kept.push_str(WHAT);
        let kind = after.find(|c| !terms::is_wide(c) || terms::is_stop(c)).unwrap_or(after.len());
        let is_short = after[..kind].chars().count() <= 2;
        rest = if is_short && !before.ends_with('為') { &after[kind..] } else { after };
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_in_passing_is_told_from_what_says_something() {
        for (text, kind) in [
            ("hello there", Some(Passing::Greeting)),
            ("Good morning!", Some(Passing::Greeting)),
            ("早安，大家", Some(Passing::Greeting)),
            ("你好嗎？", Some(Passing::Greeting)),
            ("help", Some(Passing::Help)),
            ("Can you help me, please?", Some(Passing::Help)),
            ("我需要幫忙", Some(Passing::Help)),
            ("thanks a lot!", Some(Passing::Thanks)),
            ("非常感謝您", Some(Passing::Thanks)),
            ("bye for now", Some(Passing::Bye)),
            ("再見囉", Some(Passing::Bye)),
            ("好", Some(Passing::Word)),
            ("ok", Some(Passing::Word)),
            ("hello world is our first program", None),
            ("謝謝小安昨天的報告", None),
            ("The help desk opens at nine.", None),
            ("", None),
            ("好用的工具", None),
        ] {
            assert_eq!(all_of(text), kind, "{text}");
        }
    }

    #[test]
    fn questions_about_the_talk_are_told_from_those_about_something() {
        for (text, expected) in [
            ("what did I say?", Some(Subject::WasSaid)),
            ("What did I just tell you?", Some(Subject::WasSaid)),
            ("我說過什麼？", Some(Subject::WasSaid)),
            ("我剛剛跟你說了什麼", Some(Subject::WasSaid)),
            ("who are you?", Some(Subject::StandIn)),
            ("what can you do", Some(Subject::StandIn)),
            ("你能做什麼？", Some(Subject::StandIn)),
            ("你會做什麼？", Some(Subject::StandIn)),
            ("您叫什麼名字？", Some(Subject::StandIn)),
            ("what did I say about the launch?", None),
            ("你知道發表會是哪一天嗎？", None),
            ("我叫什麼名字？", None),
            ("Where?", None),
        ] {
            assert_eq!(subject(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_asked_for_is_looked_for_and_not_the_word_for_it() {
        for (question, asked) in [
            ("我叫什麼名字？", "我叫什麼？"),
            ("你還記得我喜歡什麼顏色嗎？", "你，我喜歡什麼嗎？"),
            ("為什麼延期？", "為什麼延期？"),
            ("什麼時候發表？", "什麼時候發表？"),
            ("什麼顏色？", "什麼顏色？"),
        ] {
            assert_eq!(asked_for(question), asked);
        }
    }
}
