//! Regression: messages that a rule misclassified or missed; each left a conversation without an answer.

use super::overflows::{Case, all_overflow};

const ONCE_MISSED: &[Case] = &[
    // Text in angle brackets is a tag only where it really is one.
    (
        "dashscope",
        Some(400),
        r#"{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]","type":"invalid_request_error","param":null,"code":"invalid_parameter_error"}}"#,
        None,
        Some(129_024),
    ),
    (
        "dashscope",
        None,
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
        None,
        Some(129_024),
    ),
    // What the answer leaves of the window for the prompt is not the window.
    (
        "vllm",
        Some(400),
        r#"{"error":{"message":"You passed 193 input tokens and requested 8000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 192 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=193)","type":"BadRequestError","param":"input_tokens","code":400}}"#,
        None,
        Some(8_192),
    ),
    ("proxy", Some(400), "<|im_start|> the prompt is too long: 12 tokens > 10 maximum", Some(12), Some(10)),
    ("proxy", Some(400), "[400] prompt is too long: 12 tokens > 10 maximum", Some(12), Some(10)),
    // A page without a title, and XML, have their text between the tags.
    ("proxy", Some(400), "<html><body><h1>Prompt is too long</h1></body></html>", None, None),
    (
        "proxy",
        Some(400),
        "<?xml version=\"1.0\"?><Error><Code>ValidationException</Code><Message>Input is too long for requested model.</Message></Error>",
        None,
        None,
    ),
    // "Current" is not a condition, and neither is advice that follows.
    ("proxy", Some(400), r#"{"error":{"message":"當前輸入長度超過模型最大上下文長度"}}"#, None, None),
    ("proxy", Some(400), "当前对话上下文过长，请新建对话", None, None),
    ("proxy", Some(400), "当前请求的上下文长度超出限制，如果问题持续请联系客服", None, None),
    ("proxy", Some(400), "當次請求的上下文過長", None, None),
    ("proxy", Some(400), "我们的模型无法处理：上下文过长", None, None),
    ("proxy", Some(400), "当前输入长度(150000)超过最大限制(131072)", Some(150_000), Some(131_072)),
    (
        "proxy",
        Some(400),
        "模型最大上下文长度为 32,768，当前请求 40000 个token，上下文超出限制",
        Some(40_000),
        Some(32_768),
    ),
    ("proxy", Some(400), "輸入內容過長，最多 3000 字", None, None),
    // Something must be less than a value.
    (
        "vllm",
        Some(400),
        "length of prompt_tokens (9120) must be less than max_seq_len (8192)",
        Some(9_120),
        Some(8_192),
    ),
    (
        "vllm",
        None,
        r#"{"error":{"message":"length of prompt_tokens (9120) must be less than max_seq_len (8192)"}}"#,
        Some(9_120),
        Some(8_192),
    ),
    ("lmdeploy", Some(422), "prompt length 9120 should not exceed max_model_len 8192", Some(9_120), Some(8_192)),
    ("trt", Some(400), "Input length (9120) must be <= max_input_len (8192).", Some(9_120), Some(8_192)),
    ("tgi", Some(400), "number of input tokens must be at most 8192", None, Some(8_192)),
    ("proxy", Some(400), "input_tokens cannot be greater than 8192", None, Some(8_192)),
];

#[test]
fn words_that_a_rule_once_missed() {
    all_overflow(ONCE_MISSED);
}
