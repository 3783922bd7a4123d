//! Generates a conversation from a seed.

use std::sync::Arc;

use pmk_core::{Block, Entry, Marker, Message, Origin, Role, Transcript, history::SEED_PREFIXES, testing::Rng};
use pmk_search::MemoryArchive;
use serde_json::json;

const ENGLISH: [&str; 16] = [
    "the",
    "budget",
    "of",
    "March",
    "was",
    "approved",
    "by",
    "Priya",
    "on",
    "Tuesday",
    "with",
    "two",
    "changes",
    "in",
    "`billing.rs`",
    "42,000",
];
const CHINESE: [&str; 16] = [
    "三月",
    "的",
    "預算",
    "由",
    "王經理",
    "核准",
    "，",
    "其中",
    "兩項",
    "需要",
    "修改",
    "，",
    "詳見",
    "`billing.rs`",
    "第42行",
    "。",
];
/// The channel of all conversations, as Slack identifies it.
const CHANNEL: &str = "C0123456789";

const TOOLS: [&str; 4] = ["read_file", "grep", "run_tests", "list_dir"];

/// A conversation under construction, with its random numbers.
pub(super) struct Writer {
    rng: Rng,
    words: [&'static str; 16],
    joiner: &'static str,
    calls: usize,
    messages: Vec<Message>,
}

impl Writer {
    pub fn new(seed: u64) -> Writer {
        Writer { rng: Rng::new(seed), words: ENGLISH, joiner: " ", calls: 0, messages: Vec::new() }
    }

    fn in_english(self) -> Writer {
        Writer { words: ENGLISH, joiner: " ", ..self }
    }

    pub fn in_chinese(self) -> Writer {
        Writer { words: CHINESE, joiner: "", ..self }
    }

    /// Adds the knowledge-base seed and its acknowledgement.
    pub fn seed(mut self, chars: usize) -> Writer {
        let content = format!("{}\n{}", SEED_PREFIXES[0], self.text(chars));
        self.say(Role::User, Origin::Seed, content);
        self.say(Role::Assistant, Origin::SeedAck, "了解".to_owned());
        self
    }

    /// Adds the marker that earlier prunes left.
    pub fn marker(mut self, turns: u32) -> Writer {
        self.messages.push(Marker::new(turns).message());
        self
    }

    /// Adds the summary that a rotation left.
    pub fn summary(mut self, chars: usize) -> Writer {
        let text = self.text(chars);
        self.say(Role::User, Origin::Summary, text);
        self
    }

    /// Adds questions and answers.
    pub fn turns(mut self, turns: usize) -> Writer {
        for _ in 0..turns {
            self.question();
            self.answer();
        }
        self
    }

    /// Adds turns whose question and answer have that many characters each, in English and in Chinese by turns.
    pub fn long_turns(mut self, turns: usize, chars: usize) -> Writer {
        for turn in 0..turns {
            self = if turn % 2 == 0 { self.in_english() } else { self.in_chinese() };
            for (role, origin) in [(Role::User, Origin::User), (Role::Assistant, Origin::Assistant)] {
                let text = self.text(chars);
                self.say(role, origin, text);
            }
        }
        self
    }

    /// Adds turns in which the model calls tools; some calls are parallel, some results are errors.
    pub fn tool_turns(mut self, turns: usize, rounds: usize) -> Writer {
        for _ in 0..turns {
            self.question();
            for _ in 0..=self.rng.below(rounds) {
                let calls = self.rng.pick(&[1, 1, 2, 3]);
                self.exchange(calls, 1_500);
            }
            self.answer();
        }
        self
    }

    /// Adds turns in which the code is searched.
    pub fn mra_turns(mut self, turns: usize) -> Writer {
        for _ in 0..turns {
            self.question();
            self.answer();
            let found = format!("這是 `mra ask erp` 的結果：\n{}", self.text(4_000));
            self.say(Role::User, Origin::MraResult, found);
            self.answer();
        }
        self
    }

    /// Adds a turn with one message of that length.
    pub fn huge_turn(mut self, chars: usize) -> Writer {
        let text = self.text(chars);
        self.say(Role::User, Origin::User, text);
        self.answer();
        self
    }

    /// Adds what was retrieved for the new message.
    pub fn retrieval(mut self) -> Writer {
        let text = self.text(800);
        self.say(Role::User, Origin::Retrieval, text);
        self
    }

    /// Finishes with the new message.
    pub fn asks(mut self) -> Transcript {
        self.question();
        let current = self.messages.len() - 1;
        self.finish(current)
    }

    /// Finishes with a new message of that length.
    pub fn asks_much(mut self, chars: usize) -> Transcript {
        let text = self.text(chars);
        self.say(Role::User, Origin::User, text);
        let current = self.messages.len() - 1;
        self.finish(current)
    }

    /// Finishes with a new message that the model is working on, with this many results of that length.
    pub fn working(mut self, results: usize, chars: usize) -> Transcript {
        self.question();
        let current = self.messages.len() - 1;
        for _ in 0..results {
            self.exchange(1, chars);
        }
        self.finish(current)
    }

    /// Finishes without a new message.
    pub fn stored(self) -> Transcript {
        let current = self.messages.len();
        self.finish(current)
    }

    /// Finishes with the new message, where the `gone` oldest messages are only in the archive. The archive contains
    /// all stored messages.
    pub fn asks_when_gone(mut self, gone: usize) -> Transcript {
        self.question();
        let mut entries = self.entries();
        let archive = MemoryArchive::of(&entries[..entries.len() - 1]);
        let window = entries.split_off(gone);
        let current = window.len() - 1;
        Transcript::new(window, current, CHANNEL).with_archive(Arc::new(archive))
    }

    fn entries(self) -> Vec<Entry> {
        (1..).zip(self.messages).map(|(id, message)| Entry::new(id, message)).collect()
    }

    fn finish(self, current: usize) -> Transcript {
        Transcript::new(self.entries(), current, CHANNEL)
    }

    fn say(&mut self, role: Role, origin: Origin, text: String) {
        self.messages.push(Message::text(role, origin, text));
    }

    fn question(&mut self) {
        let chars = self.rng.pick(&[20, 60, 60, 200]);
        let text = self.text(chars);
        self.say(Role::User, Origin::User, text);
    }

    fn answer(&mut self) {
        let chars = self.rng.pick(&[80, 300, 300, 1_200]);
        let text = self.text(chars);
        self.say(Role::Assistant, Origin::Assistant, text);
    }

    /// Adds tool calls and their results.
    fn exchange(&mut self, calls: usize, chars: usize) {
        let (mut uses, mut results) = (Vec::new(), Vec::new());
        for _ in 0..calls {
            self.calls += 1;
            let id = format!("call_{}", self.calls);
            let is_error = self.rng.chance(20);
            let content = if is_error { format!("error: {}", self.text(80)) } else { self.text(chars) };
            let name = self.rng.pick(&TOOLS).to_owned();
            uses.push(Block::ToolUse { id: id.clone(), name, input: json!({"path": self.text(30)}) });
            results.push(Block::ToolResult { tool_use_id: id, content, is_error });
        }
        self.messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: uses });
        self.messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: results });
    }

    /// Returns text of at least that many characters, with occasional line breaks.
    fn text(&mut self, chars: usize) -> String {
        let mut text = String::new();
        let mut written = 0;
        while written < chars {
            let word = self.rng.pick(&self.words);
            text.push_str(word);
            written += word.chars().count();
            let joiner = if self.rng.chance(5) { "\n" } else { self.joiner };
            text.push_str(joiner);
            written += joiner.len();
        }
        text.truncate(text.trim_end().len());
        text
    }
}
