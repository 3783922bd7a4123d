//! Requests in the format of the Messages API.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use pmk_core::{Block, Image, ImageType, Language, Message, Role};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Images, Request,
    tool_ids::{self, Ids},
};

/// The body of one call.
///
/// The protocol requires three things that a conversation does not have: tool ids that are unique and plain, a
/// definition of every tool that the history mentions, and marks for how much of the prompt may be cached.
pub fn body(model: &str, max_tokens: u32, request: &Request) -> Vec<u8> {
    let ids = tool_ids::unique(&request.messages, Ids::Plain);
    let cached = last_stable(&request.messages);
    let messages = request
        .messages
        .iter()
        .zip(&ids)
        .enumerate()
        .map(|(index, (message, ids))| WireMessage {
            role: message.role,
            content: content(message, ids, &request.images, cached == Some(index)),
        })
        .collect();
    let system = (!request.system.trim().is_empty()).then(|| {
        [WireBlock { body: BlockBody::Text { text: Cow::Borrowed(&request.system) }, cache_control: Some(EPHEMERAL) }]
    });
    let tools = tools(request);
    // No tools are offered: the definitions are needed for the history only.
    let tool_choice = (request.tools.is_empty() && !tools.is_empty()).then(|| json!({"type": "none"}));
    let body = Body { model, max_tokens, stream: true, system, tools, tool_choice, messages };
    serde_json::to_vec(&body).expect("text and JSON values can always be written as JSON")
}

/// The last message that the next request will have in its prefix as well, so that everything up to it is worth
/// caching. The very last message is not: retrieved and recalled text is in it for one call only.
fn last_stable(messages: &[Arc<Message>]) -> Option<usize> {
    messages.len().checked_sub(2)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[WireBlock<'a>; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: Role,
    content: Vec<WireBlock<'a>>,
}

#[derive(Serialize)]
struct WireBlock<'a> {
    #[serde(flatten)]
    body: BlockBody<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockBody<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source,
    },
    ToolUse {
        id: &'a str,
        name: Cow<'a, str>,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The bytes of an image.
#[derive(Serialize)]
struct Source {
    r#type: &'static str,
    media_type: ImageType,
    data: String,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
}

const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

fn content<'a>(message: &'a Message, ids: &'a [Cow<'_, str>], images: &Images, cached: bool) -> Vec<WireBlock<'a>> {
    let mut ids = ids.iter();
    let mut blocks: Vec<WireBlock<'a>> = message
        .blocks
        .iter()
        .map(|block| {
            let mut id_or = |own: &'a str| ids.next().map_or(own, |id| id.as_ref());
            let body = match block {
                Block::Text { text } => BlockBody::Text { text: Cow::Borrowed(text) },
                Block::Image(image) => picture(image, images),
                Block::ToolUse { id, name, input } => {
                    BlockBody::ToolUse { id: id_or(id), name: tool_ids::name(name), input }
                }
                Block::ToolResult { tool_use_id, content, is_error } => {
                    // The API refuses an error without a word.
                    let content = if *is_error && content.trim().is_empty() { "[error]" } else { content.as_str() };
                    BlockBody::ToolResult { tool_use_id: id_or(tool_use_id), content, is_error: *is_error }
                }
            };
            WireBlock { body, cache_control: None }
        })
        .collect();
    if cached && let Some(last) = blocks.last_mut() {
        last.cache_control = Some(EPHEMERAL);
    }
    blocks
}

fn picture<'a>(image: &Image, images: &Images) -> BlockBody<'a> {
    match images.base64(image) {
        Some(data) => BlockBody::Image { source: Source { r#type: "base64", media_type: image.media_type, data } },
        None => BlockBody::Text { text: Cow::Owned(image.in_words(Language::English)) },
    }
}

/// The tools that are offered, followed by those that only the history mentions: the API refuses tool blocks of
/// undefined tools.
fn tools(request: &Request) -> Vec<Value> {
    let offered = request
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}));
    let mentioned: BTreeSet<Cow<'_, str>> = request
        .messages
        .iter()
        .flat_map(|message| &message.blocks)
        .filter_map(|block| match block {
            Block::ToolUse { name, .. } => Some(tool_ids::name(name)),
            _ => None,
        })
        .filter(|name| request.tools.iter().all(|tool| tool.name != *name))
        .collect();
    let mentioned = mentioned.into_iter().map(|name| json!({"name": name, "input_schema": {"type": "object"}}));
    offered.chain(mentioned).collect()
}

#[cfg(test)]
mod tests {
    use pmk_core::{ImageId, Origin, message};

    use super::*;
    use crate::Tool;

    fn sent(system: &str, messages: Vec<Message>) -> Value {
        let messages = message::shared(messages);
        let request = Request { system: system.into(), messages, max_answer_tokens: 10, ..Request::default() };
        serde_json::from_slice(&body("m", 10, &request)).expect("JSON")
    }

    fn call(id: &str) -> Message {
        let block = |id: &str| Block::ToolUse { id: id.into(), name: "grep".into(), input: json!({"q": 1}) };
        Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![block(id), block(id)] }
    }

    fn results(id: &str) -> Message {
        let block = |content: &str| Block::ToolResult {
            tool_use_id: id.into(),
            content: content.into(),
            is_error: content == "b",
        };
        Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![block("a"), block("b")] }
    }

    #[test]
    fn a_plain_conversation() {
        let body = sent("be kind", vec![Message::user("a"), Message::assistant("b"), Message::user("c")]);
        let cache = json!({"type": "ephemeral"});
        assert_eq!(
            body,
            json!({
                "model": "m", "max_tokens": 10, "stream": true,
                "system": [{"type": "text", "text": "be kind", "cache_control": cache}],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "a"}]},
                    {"role": "assistant", "content": [{"type": "text", "text": "b", "cache_control": cache}]},
                    {"role": "user", "content": [{"type": "text", "text": "c"}]},
                ],
            })
        );
    }

    #[test]
    fn one_question_alone_has_nothing_to_cache() {
        let body = sent(" ", vec![Message::user("a")]);
        assert_eq!(body.get("system"), None);
        assert_eq!(body["messages"][0]["content"][0].get("cache_control"), None);
    }

    #[test]
    fn an_image_goes_with_its_bytes_and_as_words_without() {
        let image = Image { sha256: ImageId::of(b"bytes"), media_type: ImageType::Webp, width: 4, height: 3 };
        let text = |text: &str| Block::Text { text: text.into() };
        let blocks = vec![text("this"), Block::Image(image.clone()), text("what is it?")];
        let message = Message { role: Role::User, origin: Origin::Attachment, blocks };
        let images = [(image.sha256, b"bytes".as_slice().into())].into_iter().collect();
        let request = Request { messages: message::shared([message]), images, ..Request::default() };
        let content = |request: &Request| {
            serde_json::from_slice::<Value>(&body("m", 10, request)).expect("JSON")["messages"][0]["content"].clone()
        };
        assert_eq!(
            content(&request),
            json!([
                {"type": "text", "text": "this"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "Ynl0ZXM="}},
                {"type": "text", "text": "what is it?"},
            ])
        );
        let without = Request { images: Images::default(), ..request };
        assert_eq!(content(&without)[1]["text"], "[an image, 4×3, which is not shown]");
    }

    #[test]
    fn repeated_and_odd_tool_ids_become_unique_and_stay_paired() {
        let messages =
            vec![Message::user("q"), call("x"), results("x"), call("x"), results("x"), call("é:1"), results("é:1")];
        let body = sent("", messages);
        let ids = |at: usize, key: &str| -> Vec<String> {
            (0..2).map(|n| body["messages"][at]["content"][n][key].as_str().expect("an id").to_owned()).collect()
        };
        for (at, expected) in [(1, ["x", "x-2"]), (3, ["x-3", "x-4"]), (5, ["toolu___1", "toolu___1-2"])] {
            assert_eq!(ids(at, "id"), expected);
            assert_eq!(ids(at + 1, "tool_use_id"), expected);
        }
        assert_eq!(body["messages"][2]["content"][1]["is_error"], true);
        assert_eq!(body["tools"], json!([{"name": "grep", "input_schema": {"type": "object"}}]));
        assert_eq!(body["tool_choice"], json!({"type": "none"}));
    }

    /// Once, a name that one server had made up was refused by the next one.
    #[test]
    fn a_name_that_was_made_up_is_sent_and_defined_as_a_plain_one() {
        let call = |name: &str| Block::ToolUse { id: "x".into(), name: name.into(), input: json!({}) };
        let blocks = vec![call("functions.mra_ask"), call("functions:mra_ask"), call(""), call("mra_ask")];
        let body = sent("", vec![Message { role: Role::Assistant, origin: Origin::Assistant, blocks }]);
        let names: Vec<&Value> = (0..4).map(|at| &body["messages"][0]["content"][at]["name"]).collect();
        assert_eq!(names, ["functions_mra_ask", "functions_mra_ask", "unknown", "mra_ask"]);
        let defined: Vec<&Value> = body["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
        assert_eq!(defined, ["functions_mra_ask", "mra_ask", "unknown"]);
    }

    /// Imported conversations have such results; every question in them was refused.
    #[test]
    fn a_failed_result_without_a_word_was_sent_as_it_was() {
        let block =
            |content: &str, is_error| Block::ToolResult { tool_use_id: "x".into(), content: content.into(), is_error };
        let blocks = vec![block("", true), block(" \n", true), block("gone", true), block("", false)];
        let body = sent("", vec![Message { role: Role::User, origin: Origin::ToolResult, blocks }]);
        let contents: Vec<&Value> = (0..4).map(|at| &body["messages"][0]["content"][at]["content"]).collect();
        assert_eq!(contents, ["[error]", "[error]", "gone", ""]);
    }

    #[test]
    fn offered_tools_may_be_called() {
        let schema = json!({"type": "object", "properties": {"repo": {"type": "string"}}});
        let tool = Tool { name: "mra_ask".into(), description: "search".into(), input_schema: schema.clone() };
        let messages = message::shared([Message::user("q"), call("x"), results("x")]);
        let request = Request {
            system: String::new(),
            messages,
            max_answer_tokens: 10,
            tools: [tool].into(),
            ..Request::default()
        };
        let body: Value = serde_json::from_slice(&body("m", 10, &request)).expect("JSON");
        let history_only = json!({"name": "grep", "input_schema": {"type": "object"}});
        let offered = json!({"name": "mra_ask", "description": "search", "input_schema": schema});
        assert_eq!(body["tools"], json!([offered, history_only]));
        assert_eq!(body.get("tool_choice"), None);
    }
}
