//! Tool calls and their results as text.

use std::sync::Arc;

use pmk_core::{Block, Message};

use super::{fence, tools};

/// Returns a message without calls and results, for a server that does not accept them: calls become
/// directives as the model would write them now, results become text.
pub fn as_text(message: Arc<Message>) -> Arc<Message> {
    if !message.has_tools() {
        return message;
    }
    let text = |block: &Block| match block {
        Block::Text { .. } | Block::Image(_) => None,
        Block::ToolUse { name, input, .. } => match tools::read_call(name, input) {
            Ok(directive) => Some(fence::write(&directive)),
            Err(_) => Some(format!("[called {name} {input}]")),
        },
        Block::ToolResult { content, .. } if content.trim().is_empty() => Some("[no result]".to_owned()),
        Block::ToolResult { content, is_error: false, .. } => Some(content.clone()),
        Block::ToolResult { content, is_error: true, .. } => Some(format!("[error] {content}")),
    };
    let as_text = |block: &Block| match text(block) {
        Some(text) => Block::Text { text },
        None => block.clone(),
    };
    let blocks = message.blocks.iter().map(as_text).collect();
    Arc::new(Message { role: message.role, origin: message.origin, blocks })
}

#[cfg(test)]
mod tests {
    use pmk_core::{Origin, Role};
    use serde_json::json;

    use super::*;
    use crate::directive::{Directive, parse};

    #[test]
    fn calls_read_like_directives_and_results_like_what_was_said() {
        let call = |name: &str, input| Block::ToolUse { id: "1".into(), name: name.into(), input };
        let result =
            |content: &str, is_error| Block::ToolResult { tool_use_id: "1".into(), content: content.into(), is_error };
        let blocks = vec![
            Block::Text { text: "Let me look.".into() },
            call("mra_ask", json!({"repo": "erp", "question": "where\nis ```it```?"})),
            call("escalate", json!({"question": "who?", "reason": "live"})),
            call("bash", json!({"command": "id"})),
        ];
        let said = as_text(Arc::new(Message { role: Role::Assistant, origin: Origin::Assistant, blocks }));
        let parsed = parse(&said.plain_text());
        assert_eq!(
            parsed.directive,
            Some(Directive::MraAsk { repo: "erp".into(), question: "where is \'\'\'it\'\'\'?".into() })
        );
        assert!(
            parsed.visible.contains("Let me look.") && parsed.visible.contains(r#"[called bash {"command":"id"}]"#)
        );
        assert!(said.plain_text().contains("```escalate\nquestion: who?\nreason: live\n```"));

        let blocks = vec![result("found", false), result("no", true), result(" ", false)];
        let told = as_text(Arc::new(Message { role: Role::User, origin: Origin::ToolResult, blocks }));
        let texts: Vec<&str> = told.blocks.iter().filter_map(Block::content).collect();
        assert_eq!(texts, ["found", "[error] no", "[no result]"]);
        assert!(!said.has_tools() && !told.has_tools());
    }

    #[test]
    fn what_has_no_tools_is_sent_as_it_is() {
        let message = Arc::new(Message::user("q"));
        assert!(Arc::ptr_eq(&as_text(Arc::clone(&message)), &message));
    }
}
