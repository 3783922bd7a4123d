//! Conversations for testing policies.

use std::sync::Arc;

use pmk_core::{
    Block, Entry, History, Message, Origin, Role, Transcript,
    history::{self, SEED_PREFIXES},
    structure,
};
use pmk_search::MemoryArchive;

/// Builds a conversation message by message.
///
/// ```
/// use pmk_policy_sdk::testing::Conversation;
///
/// let transcript = Conversation::new()
///     .seed("the workspace")
///     .turn("where is the budget?", "in `budget.rs`")
///     .ask("and who calls it?")
///     .tool("grep", "main.rs:12: budget()")
///     .transcript();
/// assert_eq!((transcript.len(), transcript.turns(), transcript.current()), (7, 1, 4));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    current: Option<usize>,
    tools: usize,
    channel: String,
}

impl Conversation {
    /// Creates an empty conversation.
    pub fn new() -> Self {
        Conversation::default()
    }

    /// The conversation of a recorded file, repaired as for `plan`: pmk's `session.json`, Anthropic's
    /// `{"system","messages"}` or JSON Lines. If a question comes last, it is the new message; if a result does, the
    /// question that it is for.
    ///
    /// ```
    /// use pmk_policy_sdk::testing::Conversation;
    ///
    /// let file = r#"[{"role": "user", "content": "when?"}, {"role": "assistant", "content": "on Friday"},
    ///                {"role": "user", "content": "and who?"}]"#;
    /// assert_eq!(Conversation::recorded(file).transcript().new_message(), Some(2));
    /// ```
    ///
    /// # Panics
    /// If the text is none of these.
    pub fn recorded(file: &str) -> Self {
        let history = History::parse(file).unwrap_or_else(|error| panic!("the recorded conversation: {error}"));
        let repaired = history::repair(history.messages);
        let messages: Vec<Message> = repaired.messages.into_iter().map(|(_, message)| message).collect();
        Conversation { current: structure::unanswered(&messages), messages, ..Conversation::default() }
    }

    /// Adds the knowledge-base seed and its acknowledgement; they come first.
    pub fn seed(self, content: &str) -> Self {
        self.message(Message::text(Role::User, Origin::Seed, format!("{}\n{content}", SEED_PREFIXES[0])))
            .message(Message::text(Role::Assistant, Origin::SeedAck, "了解"))
    }

    /// Adds a question and its answer.
    pub fn turn(self, question: &str, answer: &str) -> Self {
        self.message(Message::user(question)).answer(answer)
    }

    /// Adds an answer of the model.
    pub fn answer(self, text: &str) -> Self {
        self.message(Message::assistant(text))
    }

    /// Adds a tool call and its result.
    pub fn tool(mut self, name: &str, result: &str) -> Self {
        self.tools += 1;
        let id = format!("call{}", self.tools);
        let call = Block::ToolUse { id: id.clone(), name: name.into(), input: serde_json::json!({"path": "src"}) };
        let result = Block::ToolResult { tool_use_id: id, content: result.into(), is_error: false };
        self.message(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] })
            .message(Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] })
    }

    /// Adds the result of a code search, as the gateway stores it.
    pub fn mra_result(self, result: &str) -> Self {
        self.message(Message::text(Role::User, Origin::MraResult, result))
    }

    /// Adds what came with the message that is added next.
    pub fn attached(self, content: &str) -> Self {
        self.message(Message::text(Role::User, Origin::Attachment, content))
    }

    /// Adds the new message. What follows belongs to the current turn.
    pub fn ask(mut self, question: &str) -> Self {
        self.current = Some(self.messages.len());
        self.message(Message::user(question))
    }

    /// Adds any message.
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Sets the channel that the new message comes from, as the front identifies it.
    pub fn channel(mut self, id: &str) -> Self {
        self.channel = id.to_owned();
        self
    }

    /// The request as a policy sees it. The policy can search what it removes.
    pub fn transcript(self) -> Arc<Transcript> {
        let current = self.current.unwrap_or(self.messages.len());
        let entries: Vec<Entry> =
            self.messages.into_iter().zip(0..).map(|(message, id)| Entry::new(id, message)).collect();
        let archive = MemoryArchive::of(&entries[..current]);
        Arc::new(Transcript::new(entries, current, self.channel).with_archive(Arc::new(archive)))
    }
}

impl From<Vec<Message>> for Conversation {
    /// A conversation of stored messages, without a new one.
    fn from(messages: Vec<Message>) -> Self {
        Conversation { messages, ..Conversation::default() }
    }
}
