//! Messages: a role, content blocks, and an origin that says how the message came to be.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::image::Image;

/// Who speaks, as the model is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person, or the host with tool results.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The role's code in the contract.
    pub const fn code(self) -> u8 {
        match self {
            Role::User => 1,
            Role::Assistant => 2,
        }
    }
}

/// How a message came to be. It decides whether the message starts a turn, which cap applies, and
/// what the guard protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A person wrote it.
    User,
    /// The model wrote it.
    Assistant,
    /// The knowledge-base seed, first message of a session.
    Seed,
    /// The acknowledgement that makes the seed a pair.
    SeedAck,
    /// The answer of `mra ask`.
    MraResult,
    /// The result of a tool.
    ToolResult,
    /// What a person attached to a message: files, images, forwarded messages.
    Attachment,
    /// A summary carried over from an older session or a compacted range.
    Summary,
    /// A marker for the turns that earlier prunes dropped.
    Marker,
    /// Atoms found for the new message; never stored.
    Retrieval,
    /// Archived turns shown again; never stored.
    Recall,
}

impl Origin {
    /// Every origin, in the order of the contract's codes.
    pub const ALL: [Origin; 11] = [
        Origin::User,
        Origin::Assistant,
        Origin::Seed,
        Origin::SeedAck,
        Origin::MraResult,
        Origin::ToolResult,
        Origin::Attachment,
        Origin::Summary,
        Origin::Marker,
        Origin::Retrieval,
        Origin::Recall,
    ];

    /// The origin's code in the contract, from 1.
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The name used in notices, events and files.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::User => "user",
            Origin::Assistant => "assistant",
            Origin::Seed => "seed",
            Origin::SeedAck => "seed-ack",
            Origin::MraResult => "mra-result",
            Origin::ToolResult => "tool-result",
            Origin::Attachment => "attachment",
            Origin::Summary => "summary",
            Origin::Marker => "marker",
            Origin::Retrieval => "retrieval",
            Origin::Recall => "recall",
        }
    }

    /// The origin with that name.
    pub fn from_name(name: &str) -> Option<Origin> {
        Origin::ALL.into_iter().find(|origin| origin.name() == name)
    }

    /// Whether a user message of this origin starts a turn (it must also carry no tool result).
    pub const fn starts_turn(self) -> bool {
        matches!(self, Origin::User | Origin::Assistant | Origin::Attachment)
    }
}

/// One piece of a message's content, in the shape of Anthropic's Messages API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// Not blank: providers refuse that.
        text: String,
    },
    /// The model calls a tool.
    ToolUse {
        /// Assigned by the model; may repeat within a conversation.
        id: String,
        /// The tool's name.
        name: String,
        /// An object that matches the tool's schema.
        input: Value,
    },
    /// A tool's result; in the user message right after the call.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// As text.
        content: String,
        /// Whether the tool failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A picture that a person attached.
    Image(Image),
}

impl Block {
    /// The text that may be shortened: that of a text block or a tool result.
    pub fn content(&self) -> Option<&str> {
        match self {
            Block::Text { text } => Some(text),
            Block::ToolResult { content, .. } => Some(content),
            Block::ToolUse { .. } | Block::Image(_) => None,
        }
    }

    /// Its approximate size in bytes, to copy, read or write.
    pub fn bytes(&self) -> u64 {
        match self {
            Block::Text { text } => text.len() as u64,
            Block::ToolResult { content, .. } => content.len() as u64,
            Block::ToolUse { input, .. } => json_bytes(input),
            Block::Image(_) => IMAGE_BYTES,
        }
    }

    /// Whether it is a blank text, which providers refuse.
    pub fn is_blank(&self) -> bool {
        matches!(self, Block::Text { text } if text.trim_start().is_empty())
    }

    /// The same block with other content.
    pub(crate) fn with_content(&self, replaced: String) -> Block {
        match self {
            Block::Text { .. } => Block::Text { text: replaced },
            Block::ToolResult { tool_use_id, is_error, .. } => {
                Block::ToolResult { tool_use_id: tool_use_id.clone(), content: replaced, is_error: *is_error }
            }
            Block::ToolUse { .. } | Block::Image(_) => self.clone(),
        }
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks, as the model is told.
    pub role: Role,
    /// How the message came to be.
    pub origin: Origin,
    /// The content, in order.
    pub blocks: Vec<Block>,
}

impl AsRef<Message> for Message {
    fn as_ref(&self) -> &Message {
        self
    }
}

impl Message {
    /// Creates a message of one text block.
    pub fn text(role: Role, origin: Origin, text: impl Into<String>) -> Self {
        Message { role, origin, blocks: vec![Block::Text { text: text.into() }] }
    }

    /// Creates a message from a person.
    pub fn user(text: impl Into<String>) -> Self {
        Message::text(Role::User, Origin::User, text)
    }

    /// Creates a message from the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message::text(Role::Assistant, Origin::Assistant, text)
    }

    /// Whether all its blocks are blank.
    pub fn is_blank(&self) -> bool {
        self.blocks.iter().all(Block::is_blank)
    }

    /// Whether it contains a tool call or a tool result.
    pub fn has_tools(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. } | Block::ToolResult { .. }))
    }

    /// Its images, in order.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Image(image) => Some(image),
            _ => None,
        })
    }

    /// All texts and tool results, separated by line feeds.
    pub fn plain_text(&self) -> String {
        plain_text(&self.blocks)
    }
}

/// Wraps messages so that they can be passed on without being copied.
pub fn shared(messages: impl IntoIterator<Item = Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}

/// All texts and tool results of the blocks, separated by line feeds.
pub fn plain_text(blocks: &[Block]) -> String {
    let mut out = String::new();
    for content in blocks.iter().filter_map(Block::content) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(content);
    }
    out
}

/// The approximate size of a reference to an image: its id and dimensions.
const IMAGE_BYTES: u64 = 160;

/// The approximate size of JSON.
fn json_bytes(value: &Value) -> u64 {
    const SMALL: u64 = 8;
    SMALL
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len() as u64,
            Value::Array(values) => values.iter().map(json_bytes).sum(),
            Value::Object(fields) => fields.iter().map(|(name, value)| name.len() as u64 + json_bytes(value)).sum(),
        }
}

/// Characters (Unicode scalar values) of all text and tool results.
pub fn chars(blocks: &[Block]) -> usize {
    blocks.iter().filter_map(Block::content).map(|content| content.chars().count()).sum()
}
