//! Blocks, as Slack takes them: those kinds that a bot here may use, with their bounds.

use serde_json::Value;

/// What all blocks and the text of a message may have together, in characters. Slack documents 12,000 for Markdown, and was
/// seen to refuse messages of a little over 13,200.
const MAX_MESSAGE_CHARS: usize = 13_200;
const MAX_MARKDOWN_CHARS: usize = 12_000;
const MAX_BLOCKS: usize = 50;

/// The blocks of a message, or why Slack does not take them.
pub(super) fn read(body: &Value, text: &str) -> Result<Vec<Value>, &'static str> {
    let blocks = match &body["blocks"] {
        Value::Null => return Ok(vec![]),
        Value::Array(blocks) if blocks.len() <= MAX_BLOCKS => blocks.clone(),
        _ => return Err("invalid_blocks"),
    };
    for block in &blocks {
        judge(block)?;
    }
    if text.chars().count() + markdown(&blocks).chars().count() > MAX_MESSAGE_CHARS {
        return Err("msg_blocks_too_long");
    }
    Ok(blocks)
}

fn judge(block: &Value) -> Result<(), &'static str> {
    match block["type"].as_str() {
        Some("markdown") => {
            let text = block["text"].as_str().filter(|text| !text.trim().is_empty()).ok_or("invalid_blocks")?;
            if text.chars().count() > MAX_MARKDOWN_CHARS {
                return Err("msg_blocks_too_long");
            }
            Ok(())
        }
        _ => Err("invalid_blocks"),
    }
}

/// The Markdown in blocks.
pub(super) fn markdown(blocks: &[Value]) -> String {
    let texts = blocks.iter().filter(|block| block["type"] == "markdown").filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}
