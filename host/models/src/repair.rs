//! Repairs a request that a provider refuses because of its tool calls.

use std::sync::Arc;

use pmk_core::{Message, Role, history, request};

use super::Request;

/// The same request without what no provider accepts: calls without a result, results without a call, empty messages,
/// answers before the first question or after the last. For one retry after
/// [`ErrorClass::MalformedHistory`](super::ErrorClass::MalformedHistory).
///
/// `None` where that changes nothing, or leaves nothing to answer: a retry would fail again.
pub fn repair(request: &Request) -> Option<Request> {
    let repaired = history::repair(request.messages.iter().map(|message| Message::clone(message)).collect());
    let mut messages = request::alternate(repaired.messages.into_iter().map(|(_, message)| Arc::new(message)));
    // A removed call may have been the answer to the last question, which is then asked again.
    while messages.last().is_some_and(|message| message.role == Role::Assistant) {
        messages.pop();
    }
    (!messages.is_empty() && messages != request.messages).then(|| Request { messages, ..request.clone() })
}

#[cfg(test)]
mod tests {
    use pmk_core::{Block, Origin, message};
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> Block {
        Block::ToolUse { id: id.into(), name: "mra_ask".into(), input: json!({}) }
    }

    fn result(id: &str) -> Block {
        Block::ToolResult { tool_use_id: id.into(), content: "42".into(), is_error: false }
    }

    fn text(text: &str) -> Block {
        Block::Text { text: text.into() }
    }

    fn assistant(blocks: Vec<Block>) -> Message {
        Message { role: Role::Assistant, origin: Origin::Assistant, blocks }
    }

    fn results(blocks: Vec<Block>) -> Message {
        Message { role: Role::User, origin: Origin::ToolResult, blocks }
    }

    fn repaired(messages: Vec<Message>) -> Option<Vec<Message>> {
        let messages = message::shared(messages);
        let request = Request { system: "Be brief.".into(), messages, max_answer_tokens: 7, ..Request::default() };
        let repaired = repair(&request)?;
        assert_eq!((repaired.system.as_str(), repaired.max_answer_tokens), ("Be brief.", 7), "the rest stays");
        assert_eq!(repair(&repaired), None, "once is enough");
        Some(repaired.messages.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    #[test]
    fn a_sound_request_is_not_sent_again() {
        assert_eq!(repaired(vec![Message::user("q")]), None);
        let round = vec![
            Message::user("q"),
            assistant(vec![text("let me see"), call("a"), call("b")]),
            results(vec![result("b"), result("a")]),
        ];
        assert_eq!(repaired(round), None);
        assert_eq!(repaired(vec![]), None);
    }

    #[test]
    fn what_has_no_partner_goes_and_what_has_one_stays() {
        let left = repaired(vec![
            Message::user("q"),
            assistant(vec![text("let me see"), call("a"), call("b")]),
            results(vec![result("a"), result("z")]),
        ]);
        let wanted =
            vec![Message::user("q"), assistant(vec![text("let me see"), call("a")]), results(vec![result("a")])];
        assert_eq!(left, Some(wanted));
    }

    #[test]
    fn a_second_result_of_the_same_call_goes() {
        let left =
            repaired(vec![Message::user("q"), assistant(vec![call("a")]), results(vec![result("a"), result("a")])]);
        assert_eq!(left.map(|messages| messages[2].blocks.len()), Some(1));
    }

    #[test]
    fn the_question_comes_last_again() {
        let left = repaired(vec![Message::user("q"), assistant(vec![text("let me see"), call("a")])]);
        assert_eq!(left, Some(vec![Message::user("q")]));
    }

    #[test]
    fn repeated_ids_are_told_apart() {
        let left = repaired(vec![
            Message::user("q"),
            assistant(vec![call("a")]),
            results(vec![result("a")]),
            assistant(vec![call("a")]),
            results(vec![result("a")]),
        ]);
        let last = left.expect("a change").pop().expect("messages");
        assert_eq!(last.blocks, [result("a_2")]);
    }

    #[test]
    fn roles_alternate_again() {
        let left = repaired(vec![Message::assistant("hello"), Message::user("q"), Message::user("r")]);
        let left = left.expect("a change");
        assert_eq!((left.len(), left[0].blocks.len()), (1, 2));
    }

    #[test]
    fn nothing_to_ask_is_not_sent() {
        assert_eq!(repaired(vec![results(vec![result("a")])]), None);
        assert_eq!(repaired(vec![Message::assistant("hello")]), None);
    }
}
