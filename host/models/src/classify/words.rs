//! Patterns for providers' messages about everything but a prompt that is too long. All lower case and without
//! backticks, as the classifier compares them.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// Compiles a pattern of the classifier.
pub(super) fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("the pattern is a regular expression")
}

/// Compiles a set of patterns, any of which may match.
pub(super) fn set<S: AsRef<str>>(sources: &[S]) -> RegexSet {
    RegexSet::new(sources).expect("the patterns are regular expressions")
}

/// Looks like an overflow but is not: settings, other limits, room for the answer.
pub(super) static NO_OVERFLOW: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\bcontext window (?:is )?too small\b",
        r"\bprompt template\b",
        r"\breasoning is mandatory\b",
        r"\bupload limit\b",
        r"\bstring_above_max_length\b",
        r"\binvalid 'user'",
        r"\bmaximum allowed number of output tokens\b",
        r"\bcompletion tokens, whereas\b",
    ])
});

pub(super) static RATE_LIMIT: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"rate[ _-]?limit",
        r"\btoo many (?:concurrent )?requests\b",
        r"\bthrottl",
        r"\bper (?:min(?:ute)?|hour|day)\b",
        r"\b[rt]p[md]\b",
        r"\btoo many tokens, please wait\b",
        r"\bresource[ _]?(?:has been )?exhausted\b",
        r"\bquota (?:limit )?exceeded\b|\bquota_exceeded\b",
        r"\b(?:usage|concurrency|daily|weekly|monthly) limit\b",
        r"\bservice tier capacity exceeded\b",
        r"每(?:分钟|分鐘|小时|小時|秒|天|日)",
        r"请求过于频繁|频率限制|频率超限|請求過於頻繁|配额|配額",
    ])
});

pub(super) static BILLING: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\bcredit balance\b",
        r"\binsufficient (?:credits?|balance|funds|quota)\b|\binsufficient_quota\b",
        r"\b(?:purchase|buy|add) (?:more )?credits\b",
        r"\bmore credits\b",
        r"\bpayment required\b",
        r"\bbilling (?:details|issue|hard limit|settings)\b",
        r"\bexceeded your current quota\b",
        r"\bapi usage limits\b",
        r"\bmaximum token limit exceeded\b",
        r"余额不足|餘額不足|欠费|欠費|充值|额度不足",
    ])
});

pub(super) static REFUSAL: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\bcontent (?:filtering|management|usage)? ?policy\b",
        r"\b(?:usage|safety) polic(?:y|ies)\b",
        r"\bsafety (?:system|filter|setting|reasons)",
        r"\b(?:was|were|been|is) (?:flagged|moderated)\b",
        r"\brequires moderation\b",
        r"\bmodel (?:has )?(?:refused|declined)\b|\brefusal\b",
        r"\b(?:can't|cannot|can not|won't|unable to) (?:help|assist) (?:you )?with\b",
        r"\bi (?:must|have to) (?:decline|refuse)\b",
    ])
});

/// Azure's content filter, for which a prompt can be too long.
pub(super) static TOO_LONG_FOR_A_FILTER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\bcontent[ _]filter\w*\b.{0,200}\b(?:prompt|input)\b.{0,60}\b(?:too long|exceed)"));

pub(super) static AUTH: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\b(?:invalid|incorrect|missing|expired) (?:x-)?api[ -]key\b",
        r"\bapi key (?:is )?(?:not valid|invalid|expired|missing)\b",
        r"\binvalid_api_key\b|\bapi_key_invalid\b",
        r"\bauthentication (?:failed|error|required)\b",
        r"\bnot logged in\b",
        r"\btoken (?:has |is )?expired\b",
    ])
});

pub(super) static MALFORMED_HISTORY: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\btool_use ids were found without tool_result blocks\b",
        r"\btool_use block must have a corresponding tool_result\b",
        r"\btool_result block must have a corresponding tool_use\b",
        r"\bunexpected tool_use_id found in tool_result blocks\b",
        r"\bmultiple tool_result blocks with id\b",
        r"\beach tool_use must have a single result\b",
        r"\btool_use ids must be unique\b",
        // Bedrock, in its own spelling.
        r"\bexpected toolresult blocks\b",
        r"\bnumber of toolresult blocks\b.{0,80}\btooluse blocks\b",
        // OpenAI, Moonshot, DeepSeek; Responses; Mistral; Gemini.
        r"\bmust be followed by tool messages\b",
        r"\brespon(?:se|d) to a prece+ding message with 'tool_calls'",
        r"\bno tool (?:output found for function call|call found for function call output)\b",
        r"\btool_call_id\b.{0,60}\bnot found\b",
        r"\bnot the same number of function calls and responses\b",
        r"\bunexpected role 'tool' after role\b",
        r"\bfunction response parts\b.{0,60}\bfunction call parts\b",
        r"\bfunction call turn comes immediately after\b",
        r"\bfailed to parse tool call arguments as json\b",
        // Other requirements on the history.
        r"\broles must alternate\b",
        r"\bfirst message must use the .user. role\b|\bconversation must start with a user message\b",
        r"\btext content blocks must (?:be non-empty|contain non-whitespace text)\b",
        r"\bmust have non-empty content\b",
    ])
});

/// Ollama, vLLM, OpenRouter, llama.cpp, OpenAI and servers that forward to them, about tools of any kind.
pub(super) static NO_TOOLS: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\b(?:do|does) not (?:currently )?support (?:the use of |the )?(?:tools?|tool[ _-](?:use|calls?|calling|choice)|function[ _-]?call(?:s|ing)?|functions)\b",
        r"\b(?:tools?|tool[ _-](?:use|calls?|calling|choice)|function[ _-]?calling) (?:is|are) not (?:supported|available|enabled|allowed|implemented)\b",
        r"\btool choice requires --|--enable-auto-tool-choice|--tool-call-parser",
        r"\btools? (?:param(?:eter)?s? )?requires? --jinja\b",
        r"\bno endpoints found that support tool use\b",
        r"\b(?:unsupported|unrecognized|unknown|unexpected)\b.{0,40}\b(?:parameter|argument|field|key|property)s?\b.{0,20}\W(?:tools|tool_choice|functions)(?:\W|$)",
        r"(?:^|\n)\W?(?:tools|tool_choice)\W{1,3}extra inputs are not permitted",
        r"不(?:支持|支援)(?:使用)?(?:工具|函数|函式|函數)|(?:工具|函数|函式|函數)(?:调用|調用|呼叫)不(?:支持|支援)",
    ])
});

/// The same servers, about images.
pub(super) static NO_IMAGES: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\b(?:do|does) not (?:currently )?support (?:the use of )?(?:images?|image[ _-](?:inputs?|urls?)|pictures?|vision|multi-?modal)\b",
        r"\b(?:images?|image[ _-](?:inputs?|urls?)|pictures?|vision|multi-?modal inputs?) (?:is|are) not (?:supported|enabled|allowed|implemented)\b",
        r"\bno endpoints found that support image input\b",
        r"\bmissing data required for image input\b",
        r"不(?:支持|支援)(?:输入|輸入)?(?:图片|圖片|图像|圖像|影像|视觉|視覺|多模态|多模態)",
    ])
});

/// Words for images.
pub(super) static IMAGES: LazyLock<RegexSet> =
    LazyLock::new(|| set(&[r"\b(?:images?|pictures?|vision|multi-?modal)\b", r"图片|圖片|图像|圖像|影像"]));

pub(super) static UNKNOWN_MODEL: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\bmodels?[ :/]+['\x22]?[\w./:@-]+['\x22]? (?:is |was |does |do |could )?not (?:be )?(?:found|exist)\b",
        r"\bmodel not (?:found|exist)\b|\bis not a valid model\b|\b(?:unknown|invalid|no such|unsupported) model\b",
        r"\bmodel ['\x22][^'\x22]+['\x22] is not (?:supported|available)\b",
        r"模型[^，。]{0,40}(?:不存在|未找到|找不到)",
    ])
});

/// Errors in a request other than its size or any other class: a tool's schema, a setting, an image.
static AT_FAULT: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\binput_schema\b|\b(?:invalid|unsupported) (?:json )?schema\b",
        r"\b(?:unsupported|unknown|unrecognized|missing required) (?:request )?(?:parameter|argument)s?\b",
        r"\bextra inputs are not permitted\b",
        r"\bcould not finish the message\b",
        r"\b(?:temperature|top_p|top_k|stream_options|max_(?:completion_|output_|new_)?tokens)\b.{0,60}\b(?:must|should|unsupported|not supported|out of range|too large)\b",
        r"\b(?:image|file|attachment|pdf|audio|video)s?\b.{0,40}\bexceeds?\b",
    ])
});

/// OpenAI's newer models, wherever they are served.
pub(super) static WANTS_MAX_COMPLETION_TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\bmax_tokens\W{1,3}(?:is )?(?:not supported|unsupported)\b.{0,80}\bmax_completion_tokens\b")
});

/// The field that asks for token counts in a stream, and its own one.
pub(super) static STREAM_OPTIONS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:\b|_)(?:stream_options|include_usage)\b"));

/// The id of a call, as fields are named: `tool_calls[0].id`, `tool_calls 0 id`, `toolUseId`, `call_id`, and in words.
pub(super) static CALL_ID: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:\b|_)(?:tool[ _-]?(?:calls?|uses?|results?)|calls?)(?:'s)?[\W\d_]{0,12}ids?\b|\bids? (?:of|for) (?:\w+ ){0,2}(?:tool|function)[ _-]?(?:calls?|uses?)\b",
    )
});

/// Words that do not occur in a sentence about a setting.
static OF_THE_PROMPT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?:prompt|input|context|conversation|history)\b|输入|輸入|上下文"));

/// What is measured in bytes is no prompt.
pub(super) static BYTES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\bpayload\b|\b(?:kilo|mega)?bytes?\b|\d ?[km]i?b\b"));

/// Whether an error is about the prompt, and not about the request as a whole.
pub(super) fn names_the_prompt(words: &str) -> bool {
    OF_THE_PROMPT.is_match(words) || words.contains("token")
}

/// Whether an error names a fault that has nothing to do with the length of the prompt.
pub(super) fn names_a_fault(words: &str) -> bool {
    words.split(['\n', '。']).any(|part| AT_FAULT.is_match(part) && !OF_THE_PROMPT.is_match(part))
}

pub(super) static OVERLOADED: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\boverload",
        r"\bat capacity\b|\bcapacity limits\b",
        r"\bhigh (?:demand|load)\b",
        r"\b(?:service|temporarily) unavailable\b",
        r"\binternal (?:server )?error\b|\bserver (?:had an )?error\b",
        r"\bbad gateway\b",
        r"\bmodel is not ready\b",
        r"过载|負載|负载|繁忙|访问量过大|服务器(?:内部)?错误|服务暂时不可用",
    ])
});

pub(super) static TIMEOUT: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[r"\btimed out\b", r"\btime-?out\b", r"\bdeadline exceeded\b", r"e(?:socket)?timedout", r"超时|逾時"])
});

pub(super) static TRANSPORT: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"\be(?:connreset|connrefused|connaborted|notfound|ai_again|pipe|hostunreach|netunreach)\b",
        r"\bsocket hang up\b|\bother side closed\b|\bbroken pipe\b",
        r"\bconnection (?:was |has been )?(?:reset|refused|closed|aborted|error)\b|\bnetwork error\b",
        r"\bfetch failed\b|\bno such host\b",
        r"\bstream (?:ended|was aborted|was closed)\b",
        r"网络错误|网络异常|连接错误",
    ])
});
