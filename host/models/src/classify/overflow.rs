//! Patterns for providers' messages about a prompt that is too long, and for telling them from people's text about the
//! same topic. All lower case and without backticks.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::words::{pattern, set};

/// What is too long, and that it is: an explicit pattern needs both.
const OVERFLOW: &[&str] = &[
    // Anthropic, Bedrock, Mistral, `claude`, and compatible servers.
    r"\b(?:prompt|input)(?: text| length)? (?:is |are )?too (?:long|large)\b",
    r"\btoo many (?:input|prompt) tokens\b",
    // `exceed context limit`, `exceeds the available context size`, `exceeds model context window` …
    r"\bexceed(?:s|ed|ing)? (?:the |a |your |this |its |available |configured |model |model's |maximum |max |allowed )*context (?:window|length|size|limit|budget)\b",
    // … and the other way round: `context size has been exceeded`, `context window exceeds limit`.
    r"\bcontext[ _](?:window|length|size|limit) (?:has been |have been |was |is |would be )?exceed(?:s|ed)\b",
    // OpenAI, OpenRouter, vLLM, DeepSeek, xAI.
    r"\b(?:model|endpoint)'s maximum (?:context|prompt|input) (?:length|limit|size|window)\b",
    r"\bmaximum (?:context|prompt|input) length (?:is|of) (?:only )?\d",
    r"^maximum context length(?: exceeded)?$",
    r"\bcontext (?:length|size|window) is only \d",
    r"\bmaximum allowed input length\b",
    // Gemini, Cohere, Bedrock, Z.AI: some property of the prompt exceeds a maximum.
    r"\b(?:input|prompt|request|messages?|tokens?|length)\b[^.:;]{0,60}\bexceeds? (?:the )?(?:model's |model )?(?:maximum|max)(?: number of| limit of| allowed| input| prompt| token)* (?:tokens?|length|size|limit|\d)",
    r"\b(?:input|prompt|request|messages?|tokens?)\b[^.:;]{0,60}\bexceed(?:s|ed)? (?:the )?(?:configured |model |model's |input |maximum )*(?:token limit\b|(?:limit|maximum) (?:of )?\(?\d|model limit\b)",
    r"\b(?:input|prompt)\b[^.:;]{0,60}\bexceeds? (?:the |model )*limit\b",
    r"\btokens in the prompt exceeds\b",
    // Together, Z.AI, LM Studio, vLLM.
    r"\b(?:longer|larger|greater|more) than (?:the )?(?:model's |model )?(?:maximum |max )?(?:context (?:length|size|window)|model length|tokens? allowed)",
    // Mistral, DS4, Codex, Groq, Cerebras, Qwen, TGI, LM Studio, in this order.
    r"\btoo large for model\b.{0,80}\bmaximum context length",
    r"\bprompt has [\d,]+ tokens, but the configured context size is\b",
    r"\bran out of room in the model's context window\b",
    r"\breduce the length of (?:the |your )?(?:messages|prompt|input|conversation)\b",
    r"\bcurrent length is [\d,]+ while limit is\b",
    r"\brange of input length should be\b",
    r"\binputs tokens \+ max_new_tokens must be <=",
    r"\binputs must have less than [\d,]+ tokens",
    r"\bkeep the first [\d,]+ tokens when context\b",
    r"\bcontext length of only [\d,]+ tokens\b",
    // Something must be less than, or must not exceed, a value.
    r"\b(?:prompt|input)s?[ _](?:tokens?|length|len|size|ids)\b[^.:;]{0,30}\b(?:must|should|has to|have to) be (?:(?:less|fewer|smaller|shorter) than|at most|no (?:more|longer|larger|greater) than|within|<=?|≤)\W{0,3}(?:or equal to |the )*(?:max_\w+|max(?:imum)?\b|\d)",
    r"\b(?:prompt|input)s?[ _](?:tokens?|length|len|size|ids)\b[^.:;]{0,30}\b(?:must not|should not|may not|can ?not|can't) (?:exceed|be (?:greater|longer|larger|more) than)\W{0,3}(?:the )?(?:max_\w+|max(?:imum)?\b|\d)",
    // Codes within a text.
    r"\b(?:msg_too_long|context_length_exceeded|(?:model_)?context_window_exceeded|(?:prompt|request)_too_(?:long|large)|model_max_prompt_tokens_exceeded)\b",
    // Chinese proxies.
    r"上下文(?:长度|長度|窗口|視窗)?(?:过长|過長|超出|超过|超過|超限)",
    r"(?:超出|超过|超過)(?:了)?(?:模型)?(?:的)?(?:最大)?上下文",
    r"(?:压缩|壓縮)上下文",
    r"(?:输入|輸入|提示(?:词|詞)?|对话|對話|消息|訊息)(?:的|总|總|内容|內容|文本|文字|长度|長度|tokens?|数量|數量|数|數|[\s(（]*\d[\d,]*[)）]?\s*)*(?:过长|過長|太长|太長|超长|超長|超限|超出|超过|超過)",
];

/// Matches anywhere in a sentence of an error.
static EXPLICIT: LazyLock<RegexSet> = LazyLock::new(|| set(OVERFLOW));

/// The same for a text that is not known to be an error: the sentence must be the whole message, after an optional
/// label such as `mistral: `.
static EXPLICIT_ALONE: LazyLock<RegexSet> = LazyLock::new(|| {
    let alone = |pattern: &&str| {
        let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
        format!(
            r"^(?:[^:：]{{1,60}}[:：]\s*)*(?:the |your |this |an? |decoder |please |exceeds the |invalid params, |请|請|当前|當前|您的|你的)*(?:(?:input|prompt|requested|request|messages?|conversation|history|tokens?|max_tokens|total|payload|codex|trying)\b[^.!?]{{0,40}})?(?:{pattern})(?:$|\s*[^a-z\s㈀-鿿]| (?:of|or|by|for|the|allowed|limit|requested|tokens?|maximum|then|which|is|but|your|messages|window)\b|限|模型|长度|長度|后|後)"
        )
    };
    set(&OVERFLOW.iter().map(alone).collect::<Vec<_>>())
});

/// Weak hints: sufficient where the status says that the request was at fault, and nothing else is named.
static HINT: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\bcontext\b.{0,80}\b(?:exceed|overflow|too (?:long|large|big)|over the limit)",
        r"\b(?:exceed|overflow)\w*\b.{0,80}\bcontext\b",
        r"\b(?:prompt|input|conversation|history|messages?|request)\b.{0,60}\b(?:too (?:long|large|big)|over the limit|exceed\w*)",
        r"\btoo many tokens\b",
        r"\btokens?\b.{0,60}\b(?:exceed\w*|over the limit)",
    ])
});

/// Things that may be too large even if the prompt is not.
static NOT_THE_PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:images?|files?|attachments?|video|audio|pdf|pages?|schema|tools?|functions?|names?|fields?|parameters?|headers?|url|metadata|title|max_tokens|stop|temperature)\b",
    )
});

/// Narration or questions: not part of a provider's error.
static NARRATED: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"(?:^|\s)i(?:'\w+)?\s|\b(?:let's|let me|let us|my|he|she|bug)\b",
        // 「當…時」 is a condition, 「當前」 means "current"; 「如果」 is a condition only where it is about the size.
        r"^[當当](?:前面|[^前次日天月下])[^，,]*(?:[時时]|的[話话])",
        r"如果[^，,]{0,20}(?:上下文|输入|輸入|提示|对话|對話|太长|太長|过长|過長|超)",
        r"我(?:[^們们]|$)",
        r"^(?:if|when|whenever|once|because|while|although|since|unless|suppose|imagine|why|what|how|who|and|so|but|then)\b",
        r"\b(?:if|when|whenever|once) (?:an?|the|your|you|we|it|that|this)\b",
        r"\b(?:say|said|says|think|thinks|ask|asks|asked|write|wrote|believes?|noticed?|knows?) (?:that|whether|if)\b",
    ])
});

/// The same, for anywhere in a text without a status.
static PROSE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|\s)i(?:'\w+)?\s|\b(?:let's|let me|let us|my|our|we|we're|he|she|they|people|bug|because|means|often|usually|sometimes|always|common|explains?|example|imagine|why|how|if|once|said|says)\b|\bwhen (?:an?|the|your|you|it|that|this)\b|\?(?:\s|$)|我|們|们|如果|為什麼|为什么|怎麼|怎么",
    )
});

/// Whether a sentence of an error says that the prompt is too long.
pub(super) fn is_said(words: &str) -> bool {
    sentences(words).any(|sentence| EXPLICIT.is_match(sentence) && !NARRATED.is_match(sentence))
}

/// Whether a text that is not known to be an error says that, and nothing else.
pub(super) fn is_all_that_is_said(words: &str) -> bool {
    sentences(words).any(|sentence| EXPLICIT_ALONE.is_match(sentence))
}

/// Whether an error hints at an overflow.
pub(super) fn is_hinted_at(words: &str) -> bool {
    let hints = |sentence| HINT.is_match(sentence) && !NOT_THE_PROMPT.is_match(sentence);
    sentences(words).any(|sentence| hints(sentence) && !is_prose(sentence))
}

/// Whether it is narration or a question.
pub(super) fn is_prose(words: &str) -> bool {
    NARRATED.is_match(words) || PROSE.is_match(words)
}

/// The sentences of a text; a full stop within a number or a name does not end one.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    static END: LazyLock<Regex> = LazyLock::new(|| pattern(r"[.!?](?:\s+|$)|[。！？\n]+"));
    END.split(text).map(str::trim).filter(|sentence| !sentence.is_empty())
}
