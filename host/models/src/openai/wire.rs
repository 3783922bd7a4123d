//! Requests in the format of chat completions.

use std::borrow::Cow;

use pmk_core::{Block, Language, Message, Role};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Images, Request,
    tool_ids::{self, Ids},
};

/// The name of the answer's token limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// `max_completion_tokens`
    Completion,
    /// `max_tokens`
    Tokens,
}

/// How a request is written: not all servers know the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub room: Room,
    /// Whether token counts are asked for, which a stream does not include by default.
    pub has_counts: bool,
    pub ids: Ids,
}

/// The body of one call.
pub fn body(model: &str, form: Form, max_tokens: u32, request: &Request) -> Vec<u8> {
    let Form { room, has_counts, ids } = form;
    let ids = tool_ids::unique(&request.messages, ids);
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.trim().is_empty() {
        messages.push(WireMessage::System { content: &request.system });
    }
    for (message, ids) in request.messages.iter().zip(&ids) {
        match message.role {
            Role::User => push_user(&mut messages, message, ids, &request.images),
            Role::Assistant => messages.push(assistant(message, ids)),
        }
    }
    let tools = request.tools.iter().map(|tool| WireTool {
        r#type: "function",
        function: Offered { name: &tool.name, description: &tool.description, parameters: &tool.input_schema },
    });
    let body = Body {
        model,
        stream: true,
        stream_options: has_counts.then_some(StreamOptions { include_usage: true }),
        max_completion_tokens: (room == Room::Completion).then_some(max_tokens),
        max_tokens: (room == Room::Tokens).then_some(max_tokens),
        tools: tools.collect(),
        messages,
    };
    serde_json::to_vec(&body).expect("text and JSON values can always be written as JSON")
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: Offered<'a>,
}

#[derive(Serialize)]
struct Offered<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: Option<&'a str>,
        content: Cow<'a, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

/// The bytes of an image.
#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Option<&'a str>,
    r#type: &'static str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

/// Each tool result is a separate message, right after the calls; the user's text follows them.
fn push_user<'a>(messages: &mut Vec<WireMessage<'a>>, message: &'a Message, ids: &'a [Cow<'_, str>], images: &Images) {
    let mut ids = ids.iter().map(|id| &**id);
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for block in &message.blocks {
        match block {
            Block::ToolResult { content, is_error, .. } => {
                // The format has no field for errors.
                let content =
                    if *is_error { Cow::Owned(format!("[error] {content}")) } else { Cow::Borrowed(content.as_str()) };
                messages.push(WireMessage::Tool { tool_call_id: ids.next(), content });
            }
            Block::Text { text } => texts.push(Cow::Borrowed(text.as_str())),
            Block::Image(image) => match images.base64(image) {
                Some(data) => {
                    parts.extend(text_part(&mut texts));
                    let url = format!("data:{};base64,{data}", image.media_type.name());
                    parts.push(Part::ImageUrl { image_url: ImageUrl { url } });
                }
                None => texts.push(Cow::Owned(image.in_words(Language::English))),
            },
            Block::ToolUse { .. } => {
                ids.next();
            }
        }
    }
    if !parts.is_empty() {
        parts.extend(text_part(&mut texts));
        messages.push(WireMessage::User { content: Content::Parts(parts) });
    } else if !texts.is_empty() {
        messages.push(WireMessage::User { content: Content::Text(joined(texts)) });
    }
}

/// The texts so far as one part of a content that has images as well.
fn text_part<'a>(texts: &mut Vec<Cow<'a, str>>) -> Option<Part<'a>> {
    let text = joined(std::mem::take(texts));
    (!text.is_empty()).then_some(Part::Text { text })
}

/// The texts as one.
fn joined(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match texts.len() {
        1 => texts.remove(0),
        _ => texts.join("\n\n").into(),
    }
}

fn assistant<'a>(message: &'a Message, ids: &'a [Cow<'_, str>]) -> WireMessage<'a> {
    let mut ids = ids.iter().map(|id| &**id);
    let mut texts = Vec::new();
    let mut tool_calls = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Text { text } => texts.push(Cow::Borrowed(text.as_str())),
            Block::ToolUse { name, input, .. } => {
                let function = Called { name: tool_ids::name(name), arguments: input.to_string() };
                tool_calls.push(WireCall { id: ids.next(), r#type: "function", function });
            }
            Block::ToolResult { .. } => {
                ids.next();
            }
            // Only people attach images.
            Block::Image(_) => {}
        }
    }
    let content = (!texts.is_empty()).then(|| joined(texts));
    WireMessage::Assistant { content, tool_calls }
}

#[cfg(test)]
mod tests {
    use pmk_core::{Image, ImageId, ImageType, Origin, message};
    use serde_json::json;

    use super::*;
    use crate::Tool;

    const FORM: Form = Form { room: Room::Tokens, has_counts: true, ids: Ids::AsGiven };

    fn sent_as(form: Form, request: &Request) -> Value {
        serde_json::from_slice(&body("m", form, 10, request)).expect("JSON")
    }

    fn sent(request: &Request) -> Value {
        sent_as(FORM, request)
    }

    #[test]
    fn a_plain_conversation() {
        let messages = message::shared([Message::user("a"), Message::assistant("b"), Message::user("c")]);
        let request = Request { system: "be kind".into(), messages, ..Request::default() };
        assert_eq!(
            sent(&request),
            json!({
                "model": "m", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 10,
                "messages": [
                    {"role": "system", "content": "be kind"}, {"role": "user", "content": "a"},
                    {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
                ],
            })
        );
        let body = sent_as(Form { room: Room::Completion, has_counts: false, ..FORM }, &request);
        assert_eq!((body.get("max_tokens"), &body["max_completion_tokens"]), (None, &json!(10)));
        assert_eq!(body.get("stream_options"), None);
    }

    /// Regression: a proxy keeps what it has to give back to its model in the id of a call, and got something else.
    #[test]
    fn an_id_goes_back_to_its_server_as_it_came_and_short_to_one_that_wants_it_so() {
        let long = format!("call_1__thought__{}+/=", "A".repeat(300));
        let call = |id: &str| Block::ToolUse { id: id.into(), name: "a".into(), input: json!({}) };
        let result = |id: &str| Block::ToolResult { tool_use_id: id.into(), content: "found".into(), is_error: false };
        let message = |role, origin, blocks| Message { role, origin, blocks };
        let request = Request {
            messages: message::shared([
                message(Role::Assistant, Origin::Assistant, vec![call(&long), call("functions.a:0"), call(&long)]),
                message(Role::User, Origin::ToolResult, vec![result(&long), result("functions.a:0"), result(&long)]),
            ]),
            ..Request::default()
        };
        for (ids, wanted) in [
            (Ids::AsGiven, [long.as_str(), "functions.a:0", &format!("{long}-2")]),
            (Ids::Short, ["call00001", "call00002", "call00003"]),
        ] {
            let body = sent_as(Form { ids, ..FORM }, &request);
            let called = (0..3).map(|at| &body["messages"][0]["tool_calls"][at]["id"]).collect::<Vec<_>>();
            let answered = (1..4).map(|at| &body["messages"][at]["tool_call_id"]).collect::<Vec<_>>();
            assert_eq!(
                (called.as_slice(), answered.as_slice()),
                (wanted.map(|id| json!(id)).each_ref().as_slice(), called.as_slice()),
                "{ids:?}"
            );
        }
    }

    #[test]
    fn an_image_goes_with_its_bytes_and_as_words_without() {
        let image = Image { sha256: ImageId::of(b"bytes"), media_type: ImageType::Webp, width: 4, height: 3 };
        let text = |text: &str| Block::Text { text: text.into() };
        let blocks = vec![text("this"), Block::Image(image.clone()), text("what is it?")];
        let message = Message { role: Role::User, origin: Origin::Attachment, blocks };
        let images = [(image.sha256, b"bytes".as_slice().into())].into_iter().collect();
        let request = Request { messages: message::shared([message]), images, ..Request::default() };
        let content = |request: &Request| sent(request)["messages"][0]["content"].clone();
        assert_eq!(
            content(&request),
            json!([
                {"type": "text", "text": "this"},
                {"type": "image_url", "image_url": {"url": "data:image/webp;base64,Ynl0ZXM="}},
                {"type": "text", "text": "what is it?"},
            ])
        );
        let without = Request { images: Images::default(), ..request };
        assert_eq!(content(&without), "this\n\n[an image, 4×3, which is not shown]\n\nwhat is it?");
    }

    /// Once, a name that one server had made up was refused by the next one.
    #[test]
    fn a_name_that_was_made_up_is_sent_as_a_plain_one() {
        let call = |name: &str| Block::ToolUse { id: "x".into(), name: name.into(), input: json!({}) };
        let long = "mra_".repeat(20);
        let blocks = vec![call("functions.mra_ask"), call(""), call("mra_ask"), call(&long)];
        let message = Message { role: Role::Assistant, origin: Origin::Assistant, blocks };
        let body = sent(&Request { messages: message::shared([message]), ..Request::default() });
        let names: Vec<&Value> = (0..4).map(|at| &body["messages"][0]["tool_calls"][at]["function"]["name"]).collect();
        assert_eq!(names, ["functions_mra_ask", "unknown", "mra_ask", &long[..64]]);
    }

    #[test]
    fn calls_and_results_stay_paired() {
        let call = |name: &str| Block::ToolUse { id: "x".into(), name: name.into(), input: json!({"q": name}) };
        let result =
            |content: &str, is_error| Block::ToolResult { tool_use_id: "x".into(), content: content.into(), is_error };
        let text = |text: &str| Block::Text { text: text.into() };
        let messages = vec![
            Message::user("q"),
            Message {
                role: Role::Assistant,
                origin: Origin::Assistant,
                blocks: vec![text("look"), call("a"), call("b")],
            },
            Message {
                role: Role::User,
                origin: Origin::ToolResult,
                blocks: vec![result("1", false), result("2", true), text("and?")],
            },
        ];
        let tool = Tool { name: "a".into(), description: "d".into(), input_schema: json!({"type": "object"}) };
        let body = sent(&Request { messages: message::shared(messages), tools: [tool].into(), ..Request::default() });
        let function = |name: &str| json!({"name": name, "arguments": format!("{{\"q\":\"{name}\"}}")});
        assert_eq!(
            body["messages"],
            json!([
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": "look", "tool_calls": [
                    {"id": "x", "type": "function", "function": function("a")},
                    {"id": "x-2", "type": "function", "function": function("b")},
                ]},
                {"role": "tool", "tool_call_id": "x", "content": "1"},
                {"role": "tool", "tool_call_id": "x-2", "content": "[error] 2"},
                {"role": "user", "content": "and?"},
            ])
        );
        let function = json!({"name": "a", "description": "d", "parameters": {"type": "object"}});
        assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
    }
}
