//! The requests that the Messages API refuses, with its messages (from Anthropic's documentation and error messages).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::images;

/// The maximum length of a tool's name.
const MAX_NAME_CHARS: usize = 128;

/// Why a request is refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
}

impl Refusal {
    pub fn invalid(message: impl Into<String>) -> Self {
        Refusal { status: 400, code: "invalid_request_error", message: message.into() }
    }

    fn auth(message: &str) -> Self {
        Refusal { status: 401, code: "authentication_error", message: message.to_owned() }
    }
}

/// The tokens of a prompt as this stand-in counts them, deliberately unlike the product: one for each character from
/// U+2E80 on, one for every four bytes of the rest, and five for each block.
pub fn count_tokens(body: &Value) -> u64 {
    let system = blocks(&body["system"]).map(block_tokens);
    let messages = array(&body["messages"]).iter().flat_map(|message| blocks(&message["content"])).map(block_tokens);
    system.chain(messages).sum()
}

/// The tokens up to the last cache mark.
pub fn cached_tokens(body: &Value) -> u64 {
    let messages = array(&body["messages"]).iter().flat_map(|message| blocks(&message["content"]));
    let mut sum = 0;
    let mut cached = 0;
    for block in blocks(&body["system"]).chain(messages) {
        sum += block_tokens(block);
        if block.get("cache_control").is_some() {
            cached = sum;
        }
    }
    cached
}

fn block_tokens(block: &Value) -> u64 {
    if let Some(Ok((width, height))) = image(block, 1) {
        return (width * height / 750 + 5) as u64;
    }
    let text = match block {
        Value::String(text) => text.clone(),
        block => match block["type"].as_str() {
            Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
            Some("tool_use") => format!("{}{}", block["name"], block["input"]),
            _ => block["content"].as_str().map_or_else(|| block["content"].to_string(), str::to_owned),
        },
    };
    let (wide, narrow): (Vec<char>, Vec<char>) = text.chars().partition(|&c| c >= '\u{2e80}');
    let bytes: usize = narrow.into_iter().map(char::len_utf8).sum();
    (wide.len() + bytes.div_ceil(4) + 5) as u64
}

/// Checks the content of an image block.
fn image(block: &Value, of: usize) -> Option<Result<(usize, usize), String>> {
    let source = &block["source"];
    let word = |key: &str| source[key].as_str().unwrap_or_default();
    is(block, "image").then(|| match word("type") {
        "base64" => images::look_at(word("media_type"), word("data"), of),
        _ => Err("image.source: this stand-in only takes base64".to_owned()),
    })
}

/// The number of images in a request.
pub fn count_images(body: &Value) -> usize {
    let blocks = array(&body["messages"]).iter().flat_map(|message| blocks(&message["content"]));
    blocks.filter(|block| is(block, "image")).count()
}

/// The last text of the last user message that has one.
pub fn question(body: &Value) -> &str {
    let users = array(&body["messages"]).iter().rev().filter(|message| message["role"] == "user");
    users
        .flat_map(|message| blocks(&message["content"]).collect::<Vec<_>>().into_iter().rev())
        .find_map(|block| block.as_str().or_else(|| block["text"].as_str()))
        .unwrap_or_default()
}

/// The number of tool calls in a request.
pub fn count_calls(body: &Value) -> usize {
    let blocks = array(&body["messages"]).iter().flat_map(|message| blocks(&message["content"]));
    blocks.filter(|block| is(block, "tool_use")).count()
}

/// The system prompt, and everything after the model's last message.
pub fn said_now(body: &Value) -> String {
    let messages = array(&body["messages"]);
    let since = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
    let said = messages[since..].iter().flat_map(|message| blocks(&message["content"]));
    let texts = blocks(&body["system"])
        .chain(said)
        .filter_map(|block| block.as_str().or_else(|| block["text"].as_str()).or_else(|| block["content"].as_str()));
    texts.collect::<Vec<_>>().join("\n")
}

/// The blocks of a message or of the system prompt: a string counts as one block.
fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    let alone = content.is_string().then_some(content);
    alone.into_iter().chain(array(content))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), Refusal> {
    match headers.get("x-api-key").map(String::as_str) {
        None => return Err(Refusal::auth("x-api-key header is required")),
        Some(super::KEY) => {}
        Some(_) => return Err(Refusal::auth("invalid x-api-key")),
    }
    if headers.get("anthropic-version").map(String::as_str) != Some("2023-06-01") {
        return Err(Refusal::invalid("anthropic-version: \"2023-06-01\" is a required header"));
    }
    if !headers.get("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return Err(Refusal::invalid("content-type: must be application/json"));
    }
    Ok(())
}

/// Where there are no tools, refuses any request that offers some or has tool calls or results in its history.
pub fn check_tools(body: &Value, without_tools: Option<&Refusal>) -> Result<(), Refusal> {
    let mut blocks = array(&body["messages"]).iter().flat_map(|message| blocks(&message["content"]));
    let speaks_of_tools = ["tools", "tool_choice"].iter().any(|key| body.get(*key).is_some())
        || blocks.any(|block| is(block, "tool_use") || is(block, "tool_result"));
    without_tools.filter(|_| speaks_of_tools).map_or(Ok(()), |refusal| Err(refusal.clone()))
}

/// Where images are not supported, refuses any request with images.
pub fn check_images(body: &Value, without_images: Option<&Refusal>) -> Result<(), Refusal> {
    without_images.filter(|_| count_images(body) > 0).map_or(Ok(()), |refusal| Err(refusal.clone()))
}

/// Checks a prompt against the window, together with the room for its answer where that counts.
pub fn check_window(prompt_tokens: u64, answer: Option<u64>, window: u64, is_terse: bool) -> Result<(), Refusal> {
    if prompt_tokens > window {
        let numbers = format!(": {prompt_tokens} tokens > {window} maximum");
        return Err(too_long("prompt is too long", &numbers, is_terse));
    }
    if let Some(answer) = answer
        && prompt_tokens.saturating_add(answer) > window
    {
        let numbers =
            format!(": {prompt_tokens} + {answer} > {window}, decrease input length or `max_tokens` and try again");
        return Err(too_long("input length and `max_tokens` exceed context limit", &numbers, is_terse));
    }
    Ok(())
}

fn too_long(what: &str, numbers: &str, is_terse: bool) -> Refusal {
    Refusal::invalid(format!("{what}{}", if is_terse { "" } else { numbers }))
}

pub fn check_body(body: &Value) -> Result<(), Refusal> {
    let require = |holds: bool, message: &str| if holds { Ok(()) } else { Err(Refusal::invalid(message)) };
    require(body["model"].as_str().is_some_and(|model| !model.is_empty()), "model: Field required")?;
    require(body["max_tokens"].is_u64(), "max_tokens: Field required")?;
    require(body["max_tokens"] != 0, "max_tokens: Input should be greater than or equal to 1")?;
    require(body["stream"] == true, "stream: this stand-in only streams")?;
    require(body["messages"].is_array(), "messages: Field required")?;
    require(!array(&body["messages"]).is_empty(), "messages: at least one message is required")?;
    for block in blocks(&body["system"]) {
        check_text(block, "system")?;
    }
    let messages = merged(array(&body["messages"]))?;
    require(messages[0].0 == "user", "messages: first message must use the \"user\" role")?;
    require(
        messages.last().is_some_and(|(role, _)| *role == "user"),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )?;
    for (at, (role, content)) in messages.iter().enumerate() {
        check_content(at, role, content, count_images(body))?;
    }
    check_pairs(&messages)?;
    check_definitions(array(&body["tools"]))?;
    let all = || messages.iter().flat_map(|(_, content)| content.iter().copied());
    let has_tools = !array(&body["tools"]).is_empty();
    require(
        has_tools || !all().any(|block| is(block, "tool_use") || is(block, "tool_result")),
        "Requests which include `tool_use` or `tool_result` blocks must define tools.",
    )?;
    require(has_tools || body["tool_choice"].is_null(), "tool_choice: may only be specified while providing `tools`")?;
    let marks = all().chain(blocks(&body["system"])).filter(|block| block.get("cache_control").is_some()).count();
    require(marks <= 4, &format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}."))
}

/// Checks the tools that a request defines.
fn check_definitions(tools: &[Value]) -> Result<(), Refusal> {
    let mut names = BTreeSet::new();
    for (at, tool) in tools.iter().enumerate() {
        let place = format!("tools.{at}.custom");
        let missing = |field: &str| Refusal::invalid(format!("{place}.{field}: Field required"));
        let name = tool["name"].as_str().ok_or_else(|| missing("name"))?;
        check_name(name, &place)?;
        let schema = tool["input_schema"].as_object().ok_or_else(|| missing("input_schema"))?;
        match schema.get("type") {
            None => return Err(missing("input_schema.type")),
            Some(kind) if kind == "object" => {}
            Some(_) => return Err(Refusal::invalid(format!("{place}.input_schema.type: Input should be 'object'"))),
        }
        if !names.insert(name) {
            return Err(Refusal::invalid("tools: Tool names must be unique."));
        }
    }
    Ok(())
}

/// Checks the name of a tool.
fn check_name(name: &str, place: &str) -> Result<(), Refusal> {
    let is_name = is_tool_id(name) && name.len() <= MAX_NAME_CHARS;
    let refusal = || format!("{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,{MAX_NAME_CHARS}}}$'");
    if is_name { Ok(()) } else { Err(Refusal::invalid(refusal())) }
}

/// Merges adjacent messages of the same role, as the API does.
fn merged(messages: &[Value]) -> Result<Vec<(&str, Vec<&Value>)>, Refusal> {
    let mut out: Vec<(&str, Vec<&Value>)> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = match message["role"].as_str() {
            Some(role @ ("user" | "assistant")) => role,
            other => return Err(Refusal::invalid(format!("messages: Unexpected role \"{}\".", other.unwrap_or("")))),
        };
        let content: Vec<&Value> = blocks(&message["content"]).collect();
        if content.is_empty() {
            return Err(Refusal::invalid(format!("messages.{at}: {role} messages must have non-empty content")));
        }
        match out.last_mut() {
            Some((last, before)) if *last == role => before.extend(content),
            _ => out.push((role, content)),
        }
    }
    Ok(out)
}

fn is(block: &Value, kind: &str) -> bool {
    block["type"] == kind
}

fn check_text(block: &Value, whose: &str) -> Result<(), Refusal> {
    let Some(text) = block.as_str().or_else(|| block["text"].as_str()) else {
        return Err(Refusal::invalid(format!("{whose}: text: Field required")));
    };
    if text.is_empty() {
        return Err(Refusal::invalid(format!("{whose}: text content blocks must be non-empty")));
    }
    if text.trim().is_empty() {
        return Err(Refusal::invalid(format!("{whose}: text content blocks must contain non-whitespace text")));
    }
    Ok(())
}

fn check_content(at: usize, role: &str, content: &[&Value], images: usize) -> Result<(), Refusal> {
    for (index, block) in content.iter().enumerate() {
        let place = format!("messages.{at}.content.{index}");
        match (block["type"].as_str(), role) {
            (Some("text"), _) => check_text(block, "messages")?,
            (None, _) if block.is_string() => check_text(block, "messages")?,
            (Some("tool_use"), "assistant") => {
                if !block["id"].as_str().is_some_and(is_tool_id) {
                    let message = format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'");
                    return Err(Refusal::invalid(message));
                }
                check_name(block["name"].as_str().unwrap_or_default(), &format!("{place}.tool_use"))?;
                if !block["input"].is_object() {
                    return Err(Refusal::invalid(format!(
                        "{place}.tool_use.input: Input should be a valid dictionary"
                    )));
                }
            }
            (Some("tool_result"), "user") => {
                let is_empty = blocks(&block["content"]).all(|part| part == "");
                if block["is_error"] == true && is_empty {
                    let message = format!("{place}.tool_result: content cannot be empty if `is_error` is true");
                    return Err(Refusal::invalid(message));
                }
            }
            (Some("image"), "user") => {
                let looked = image(block, images).unwrap_or(Ok((0, 0)));
                looked.map_err(|why| Refusal::invalid(format!("{place}.image.source.base64: {why}")))?;
            }
            (Some(kind @ ("tool_use" | "tool_result")), _) => {
                let message = format!("messages.{at}: `{kind}` blocks can not be in `{role}` messages");
                return Err(Refusal::invalid(message));
            }
            (kind, _) => {
                let message = format!("{place}: Input tag '{}' found using 'type' is unknown", kind.unwrap_or("none"));
                return Err(Refusal::invalid(message));
            }
        }
    }
    Ok(())
}

fn is_tool_id(id: &str) -> bool {
    !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Checks that every call has exactly one result at the beginning of the next message, and every result its call in the
/// message before.
fn check_pairs(messages: &[(&str, Vec<&Value>)]) -> Result<(), Refusal> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut calls: Vec<&str> = Vec::new();
    for (at, (_, content)) in messages.iter().enumerate() {
        let mut answered: BTreeSet<&str> = BTreeSet::new();
        for (index, block) in content.iter().enumerate().filter(|(_, block)| is(block, "tool_result")) {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if !calls.contains(&id) {
                return Err(Refusal::invalid(format!(
                    "messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )));
            }
            if !answered.insert(id) {
                return Err(Refusal::invalid(format!(
                    "messages.{at}.content.{index}: each tool_use must have a single result. Found multiple \
                     `tool_result` blocks with id: {id}"
                )));
            }
        }
        let first: BTreeSet<&str> = content
            .iter()
            .take_while(|block| is(block, "tool_result"))
            .filter_map(|block| block["tool_use_id"].as_str())
            .collect();
        let open: Vec<&str> = calls.iter().copied().filter(|id| !first.contains(id)).collect();
        if !open.is_empty() {
            return Err(unanswered(at - 1, &open));
        }
        calls = content.iter().filter(|block| is(block, "tool_use")).filter_map(|block| block["id"].as_str()).collect();
        if !calls.iter().all(|id| seen.insert(id)) {
            return Err(Refusal::invalid("messages: `tool_use` ids must be unique"));
        }
    }
    Ok(())
}

fn unanswered(at: usize, ids: &[&str]) -> Refusal {
    Refusal::invalid(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(messages: Value) -> String {
        verdict_with(json!([tool("t")]), messages)
    }

    fn verdict_with(tools: Value, messages: Value) -> String {
        let body = json!({"model": "m", "max_tokens": 1, "stream": true, "tools": tools, "messages": messages});
        check_body(&body).err().map(|refusal| refusal.message).unwrap_or_default()
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "input_schema": {"type": "object"}})
    }

    fn call(id: &str) -> Value {
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "t", "input": {}}]})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": "r"})
    }

    #[test]
    fn histories_are_checked() {
        let user = |content: Value| json!({"role": "user", "content": content});
        let hello = user(json!("hello"));
        let failed = |content: &str| {
            user(json!([{"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": true}]))
        };
        for (messages, words) in [
            (json!([hello, call("a"), failed("no")]), ""),
            (json!([hello, call("a"), failed("")]), "content cannot be empty if `is_error` is true"),
            (json!([hello]), ""),
            (json!([hello, hello]), ""),
            (json!([hello, {"role": "assistant", "content": "hi"}, hello]), ""),
            (json!([hello, call("a"), user(json!([result("a"), {"type": "text", "text": "and?"}]))]), ""),
            (json!([]), "at least one message"),
            (json!([{"role": "assistant", "content": "hi"}, hello]), "first message must use the \"user\" role"),
            (json!([hello, {"role": "assistant", "content": "hi"}]), "must end with a user message"),
            (json!([{"role": "system", "content": "hi"}]), "Unexpected role \"system\""),
            (json!([user(json!([]))]), "must have non-empty content"),
            (json!([user(json!(""))]), "text content blocks must be non-empty"),
            (json!([user(json!([{"type": "text", "text": " "}]))]), "non-whitespace text"),
            (json!([user(json!([{"type": "image"}]))]), "image.source: this stand-in only takes base64"),
            (json!([user(json!([{"type": "video"}]))]), "'video'"),
            (json!([hello, call("a"), hello]), "without `tool_result` blocks immediately after: a."),
            (
                json!([hello, call("a"), user(json!([{"type": "text", "text": "x"}, result("a")]))]),
                "without `tool_result` blocks immediately after",
            ),
            (json!([user(json!([result("a")]))]), "unexpected `tool_use_id` found"),
            (json!([hello, call("a"), user(json!([result("a"), result("a")]))]), "must have a single result"),
            (
                json!([hello, call("a"), user(json!([result("a")])), call("a"), user(json!([result("a")]))]),
                "ids must be unique",
            ),
            (json!([hello, call("a b"), hello]), "should match pattern"),
        ] {
            let verdict = verdict(messages.clone());
            assert!(
                if words.is_empty() { verdict.is_empty() } else { verdict.contains(words) },
                "{messages}: {verdict}"
            );
        }
    }

    #[test]
    fn tools_are_checked() {
        let hello = json!([{"role": "user", "content": "hello"}]);
        let pattern = "name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
        let [first, second] = [0, 1].map(|at| format!("tools.{at}.custom.{pattern}"));
        for (tools, words) in [
            (json!([tool("a"), tool("b")]), ""),
            (json!([tool("a"), tool("a")]), "tools: Tool names must be unique."),
            (json!([tool("a.b")]), first.as_str()),
            (json!([tool("a"), tool(&"b".repeat(129))]), second.as_str()),
            (json!([{"input_schema": {"type": "object"}}]), "tools.0.custom.name: Field required"),
            (json!([{"name": "a"}]), "tools.0.custom.input_schema: Field required"),
            (json!([{"name": "a", "input_schema": {}}]), "tools.0.custom.input_schema.type: Field required"),
            (
                json!([{"name": "a", "input_schema": {"type": "array"}}]),
                "tools.0.custom.input_schema.type: Input should be 'object'",
            ),
        ] {
            assert_eq!(verdict_with(tools.clone(), hello.clone()), words, "{tools}");
        }
        let mut odd = call("a");
        odd["content"][0]["name"] = "functions.t".into();
        let messages = json!([hello[0], odd, {"role": "user", "content": [result("a")]}]);
        assert_eq!(verdict(messages), format!("messages.1.content.0.tool_use.{pattern}"));
    }

    #[test]
    fn fields_are_required() {
        let good =
            json!({"model": "m", "max_tokens": 1, "stream": true, "messages": [{"role": "user", "content": "a"}]});
        assert!(check_body(&good).is_ok());
        for field in ["model", "max_tokens", "messages"] {
            let mut body = good.clone();
            body.as_object_mut().expect("an object").remove(field);
            let refusal = check_body(&body).expect_err(field);
            assert_eq!(refusal.message, format!("{field}: Field required"));
        }
        let mut body = good.clone();
        body["messages"] =
            json!([{"role": "user", "content": "a"}, call("a"), {"role": "user", "content": [result("a")]}]);
        assert!(check_body(&body).expect_err("no tools").message.contains("must define tools"));
    }

    #[test]
    fn the_room_for_an_answer_counts_where_it_is_to() {
        let verdict = |prompt, answer, is_terse| {
            check_window(prompt, answer, 10, is_terse).err().map(|refusal| refusal.message).unwrap_or_default()
        };
        assert_eq!((verdict(10, None, false), verdict(6, Some(4), false)), (String::new(), String::new()));
        assert_eq!(verdict(11, Some(1), false), "prompt is too long: 11 tokens > 10 maximum");
        assert_eq!(verdict(11, None, true), "prompt is too long");
        let exceeds = "input length and `max_tokens` exceed context limit";
        assert_eq!(
            verdict(7, Some(4), false),
            format!("{exceeds}: 7 + 4 > 10, decrease input length or `max_tokens` and try again")
        );
        assert_eq!(verdict(7, Some(4), true), exceeds);
    }

    #[test]
    fn what_is_said_now_ends_with_the_models_last_words() {
        let messages = json!([{"role": "user", "content": "early"}, call("a"), {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "found"}, {"type": "text", "text": "and now?"},
        ]}]);
        assert_eq!(said_now(&json!({"system": "be brief", "messages": messages})), "be brief\nfound\nand now?");
    }

    #[test]
    fn tokens_are_counted_by_the_rule_in_the_docs() {
        let body = json!({"system": [{"type": "text", "text": "abcde", "cache_control": {}}],
            "messages": [{"role": "user", "content": "預算 ok"}]});
        assert_eq!(count_tokens(&body), (2 + 5) + (2 + 1 + 5));
        assert_eq!(cached_tokens(&body), 7);
        assert_eq!(question(&body), "預算 ok");
    }
}
