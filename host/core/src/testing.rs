//! Random histories and plans for property tests. The same seed gives the same result everywhere.
//!
//! They contain what real ones do: parallel calls, reused ids, results split over several messages, a text between call
//! and result, several answers in a row, results of `mra ask`, seeds with and without acknowledgement, markers old and
//! misplaced, summaries, Chinese, English, emoji.

use std::sync::Arc;

use crate::{
    archive::Archived,
    image::{Image, ImageId, ImageType},
    language::Language,
    marker::Marker,
    message::{Block, Message, Origin, Role},
    plan::Plan,
    recall::Quote,
    replace::{self, Reduction},
    structure::{Structure, starts_turn},
    transcript::{Entry, Transcript},
};

/// A small random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, or 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// Returns true with a probability of `percent` percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Picks one of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A history of up to `turns` turns in which every tool block has its partner and a user message comes first. The last
/// message may be a new question, or one in the middle of a turn.
pub fn random_history(seed: u64, turns: usize) -> Vec<Message> {
    let mut history = Writer { rng: Rng::new(seed), messages: Vec::new() };
    history.opening();
    let turns = history.rng.below(turns + 1);
    for _ in 0..turns {
        history.turn();
        if history.rng.chance(5) {
            history.marker();
        }
    }
    if history.rng.chance(70) {
        if history.rng.chance(15) {
            history.attachment();
        }
        if history.rng.chance(20) {
            history.user(Origin::Retrieval);
        }
        if history.rng.chance(10) {
            history.user(Origin::Recall);
        }
        history.user(Origin::User);
    }
    history.messages
}

/// The transcript of a random history: with a new message, in the middle of a turn, or without either; some contents
/// have been shortened before, and stored counts may be wrong.
pub fn random_transcript(seed: u64, turns: usize) -> Transcript {
    let mut rng = Rng::new(seed ^ 0x7472_616e_7363);
    let odd_counts = rng.chance(20);
    let entries: Vec<Entry> = (1..)
        .zip(random_history(seed, turns))
        .map(|(id, message)| {
            let mut entry = Entry::new(id, message);
            if rng.chance(10) {
                entry = shortened(entry);
            }
            if odd_counts && rng.chance(20) {
                entry.tokens = rng.pick(&[0, 1, 50_000, u32::MAX]);
            }
            entry
        })
        .collect();
    let starts: Vec<usize> = (0..entries.len()).filter(|&at| starts_turn(&entries[at].message)).collect();
    let newest = starts.len().saturating_sub(rng.pick(&[1, 1, 1, 2, 3]));
    let current = match starts.get(newest) {
        Some(&at) if rng.chance(85) => at,
        _ => entries.len(),
    };
    Transcript::new(entries, current, "general")
}

/// The same as a request of the host: counts are correct, and the last turn, wherever it is, is the current one.
pub fn random_request(seed: u64, turns: usize) -> Transcript {
    let entries: Vec<Entry> =
        (1..).zip(random_history(seed, turns)).map(|(id, message)| Entry::new(id, message)).collect();
    let start = Structure::of(&entries).cuts.last().map_or(entries.len(), |&cut| cut as usize);
    let attached = entries[start..].iter().take_while(|entry| entry.message.origin == Origin::Attachment).count();
    let asks = entries.get(start + attached).is_some_and(|entry| starts_turn(&entry.message));
    let current = if asks { start + attached } else { start };
    Transcript::new(entries, current, "general")
}

/// Budgets in percent of the cost of the empty plan. Where several old markers become one that costs more than they
/// did, no budget lies between the cost of the messages and that of the empty plan.
pub fn budgets(transcript: &Transcript, percents: &[u64]) -> Vec<u64> {
    let nothing = Plan::new().tokens(transcript);
    let limits = percents.iter().map(|percent| (nothing.saturating_mul(*percent) / 100).max(1));
    limits.filter(|&limit| limit < transcript.total_tokens() || limit >= nothing).collect()
}

/// The message as an earlier plan may have left it.
fn shortened(entry: Entry) -> Entry {
    let source = &entry.message;
    let reduction = Reduction::Shorten { head: 20, tail: 10 };
    let Some(blocks) =
        replace::blocks(&source.blocks, reduction, source.origin.name(), &entry.shown_id(), Language::default())
    else {
        return entry;
    };
    let message = Message { role: source.role, origin: source.origin, blocks };
    let original = Some(Arc::clone(source));
    Entry { original, ..Entry::new(entry.id, message) }
}

/// A plan as a hostile policy might make it: any edit anywhere.
pub fn random_plan(seed: u64, transcript: &Transcript) -> Plan {
    let mut rng = Rng::new(seed);
    let mut plan = Plan::new();
    let len = transcript.len();
    for _ in 0..rng.pick(&[0, 1, 2, 3, 8, 2 * len + 20]) {
        let index = |rng: &mut Rng| match rng.below(20) {
            0 => u32::MAX - rng.below(2) as u32,
            1 => (len + rng.below(2)) as u32,
            _ => rng.below(len + 1) as u32,
        };
        let (a, b) = (index(&mut rng), index(&mut rng));
        match rng.below(4) {
            0 => plan.remove(transcript, a, b),
            1 => plan.remove(transcript, a, a.saturating_add(1)),
            _ => plan.replace(transcript, a, random_reduction(&mut rng)),
        }
    }
    random_recalls(&mut rng, transcript, &mut plan, 20);
    random_words(&mut rng, &mut plan);
    plan
}

/// A plan as a correct policy might make it: whole parts of the history are removed, contents are reduced, and where a
/// part is too large, whole tool groups of it are removed.
pub fn sensible_plan(seed: u64, transcript: &Transcript) -> Plan {
    let mut rng = Rng::new(seed);
    let mut plan = Plan::new();
    let percent = rng.pick(&[0, 0, 10, 50, 90, 100]);
    let groups_too = rng.chance(60);
    if rng.chance(30) && transcript.seed_end() > 0 {
        plan.remove(transcript, 0, transcript.seed_end() as u32);
    }
    for part in transcript.parts() {
        let holds_new = transcript.new_message().is_some_and(|new| part.contains(&new));
        if !holds_new && rng.chance(percent) {
            plan.remove(transcript, part.start as u32, part.end as u32);
            continue;
        }
        let group = rng.below(part.len()) + part.start;
        let group = transcript.structure().groups[group];
        for at in part {
            if groups_too && transcript.is_in_pair(at) && transcript.structure().groups[at] == group {
                plan.remove(transcript, at as u32, at as u32 + 1);
            } else if rng.chance(10) && transcript.new_message() != Some(at) {
                plan.replace(transcript, at as u32, random_reduction(&mut rng));
            }
        }
    }
    random_recalls(&mut rng, transcript, &mut plan, 2);
    random_words(&mut rng, &mut plan);
    plan
}

/// Recalls a few archived messages; with a probability of `percent` percent also ones that are not allowed.
fn random_recalls(rng: &mut Rng, transcript: &Transcript, plan: &mut Plan, percent: usize) {
    if rng.chance(60) {
        return;
    }
    for at in 0..rng.pick(&[1, 1, 2, 5]) {
        let number = if rng.chance(percent) { 0 } else { at };
        let id =
            if rng.chance(percent) { rng.below(transcript.len() + 1) as i64 } else { 1_000_000 + i64::from(number) };
        let text = if rng.chance(percent) { String::new() } else { format!("> what was\n said {at} 預算 ") };
        let archived = Archived { id, message: Arc::new(Message::user(text.repeat(rng.below(30) + 1))) };
        plan.recall(number, Quote::of(number, &archived, rng.below(400) as u32 + 1, transcript.language()));
    }
}

fn random_reduction(rng: &mut Rng) -> Reduction {
    match rng.below(4) {
        0 => Reduction::Digest,
        1 => Reduction::Shorten { head: u32::MAX, tail: u32::MAX },
        _ => Reduction::Shorten { head: rng.below(60) as u32, tail: rng.below(60) as u32 },
    }
}

fn random_words(rng: &mut Rng, plan: &mut Plan) {
    match rng.below(6) {
        0 => plan.set_marker("[{turns} older turns]"),
        1 => plan.set_marker("no number"),
        2 => plan.set_marker(format!("{{turns}} {}", "太長".repeat(200))),
        _ => {}
    }
}

struct Writer {
    rng: Rng,
    messages: Vec<Message>,
}

impl Writer {
    fn say(&mut self, role: Role, origin: Origin, blocks: Vec<Block>) {
        self.messages.push(Message { role, origin, blocks });
    }

    fn user(&mut self, origin: Origin) {
        let block = self.text();
        self.say(Role::User, origin, vec![block]);
    }

    fn assistant(&mut self, origin: Origin) {
        let block = self.text();
        self.say(Role::Assistant, origin, vec![block]);
    }

    /// Writes what precedes the first turn.
    fn opening(&mut self) {
        if self.rng.chance(40) {
            self.user(Origin::Seed);
            if self.rng.chance(80) {
                self.assistant(Origin::SeedAck);
            }
        }
        if self.rng.chance(20) {
            self.marker();
        }
        if self.rng.chance(15) {
            self.user(Origin::Summary);
        }
        if self.rng.chance(20) && !self.messages.is_empty() {
            self.exchange();
        }
    }

    fn marker(&mut self) {
        let turns = self.rng.pick(&[0, 1, 7, 120, u32::MAX]);
        let text = match self.rng.chance(50) {
            true => Marker::new(turns).text(),
            false => format!("（此處省略{turns}輪）"),
        };
        self.messages.push(Message::text(Role::User, Origin::Marker, text));
    }

    fn turn(&mut self) {
        let is_attached = self.rng.chance(10);
        if is_attached {
            self.attachment();
        }
        if !is_attached || self.rng.chance(80) {
            self.user(Origin::User);
        }
        for _ in 0..self.rng.pick(&[0, 0, 0, 1, 1, 2, 5]) {
            self.exchange();
        }
        if self.rng.chance(90) {
            self.assistant(Origin::Assistant);
        }
        if self.rng.chance(5) {
            self.say(Role::Assistant, Origin::Assistant, vec![Block::Text { text: " ".into() }]);
        }
    }

    /// Writes what was attached to a question: a text and sometimes an image.
    fn attachment(&mut self) {
        let mut blocks = vec![self.text()];
        if self.rng.chance(50) {
            let (width, height) = (self.rng.pick(&[1, 300, 1_920]), self.rng.pick(&[1, 300, 1_080]));
            let sha256 = ImageId::of(&[self.rng.below(256) as u8]);
            blocks.push(Block::Image(Image { sha256, media_type: ImageType::Png, width, height }));
        }
        self.say(Role::User, Origin::Attachment, blocks);
    }

    /// Writes tool calls and their results.
    fn exchange(&mut self) {
        if self.rng.chance(25) {
            self.assistant(Origin::Assistant);
            self.user(Origin::MraResult);
            return;
        }
        let mut results = Vec::new();
        for _ in 0..self.rng.pick(&[1, 1, 1, 2]) {
            let mut blocks = Vec::new();
            if self.rng.chance(40) {
                blocks.push(self.text());
            }
            for _ in 0..self.rng.pick(&[1, 1, 2, 3]) {
                let id = format!("call_{}", self.rng.below(4));
                let input = serde_json::json!({ "path": self.words(10) });
                blocks.push(Block::ToolUse { id: id.clone(), name: "read_file".into(), input });
                let content = if self.rng.chance(10) { String::new() } else { self.words(300) };
                results.push(Block::ToolResult { tool_use_id: id, content, is_error: self.rng.chance(5) });
            }
            self.say(Role::Assistant, Origin::Assistant, blocks);
        }
        while !results.is_empty() {
            if self.rng.chance(5) {
                self.user(Origin::User);
            }
            let taken = self.rng.below(results.len()) + 1;
            let mut blocks: Vec<Block> = Vec::new();
            for _ in 0..taken {
                let at = self.rng.below(results.len());
                blocks.push(results.swap_remove(at));
            }
            if self.rng.chance(10) {
                blocks.push(self.text());
            }
            self.say(Role::User, Origin::ToolResult, blocks);
        }
    }

    fn text(&mut self) -> Block {
        let length = self.rng.pick(&[1, 5, 5, 30, 400]);
        Block::Text { text: self.words(length) }
    }

    fn words(&mut self, most: usize) -> String {
        const WORDS: [&str; 10] =
            ["budget", "預算", "「上個月」", " and ", "👨‍👩‍👧", "e\u{301}", "\r\n", "42", "資料庫", "🇹🇼"];
        let mut text = String::from("w");
        for _ in 0..self.rng.below(most) {
            text.push_str(self.rng.pick(&WORDS));
        }
        text
    }
}

/// Whether every call has its result in the message right after it, and every result its call, as providers require.
/// Checked independently of the code under test.
pub fn pairs_are_whole<M: AsRef<Message>>(messages: &[M]) -> bool {
    let mut open: Vec<&str> = vec![];
    for message in messages {
        let (mut calls, mut answered) = (vec![], vec![]);
        for block in &message.as_ref().blocks {
            match block {
                Block::ToolUse { id, .. } => calls.push(&**id),
                Block::ToolResult { tool_use_id, .. } => answered.push(&**tool_use_id),
                _ => {}
            }
        }
        open.sort_unstable();
        answered.sort_unstable();
        if answered != open {
            return false;
        }
        open = calls;
    }
    open.is_empty()
}
