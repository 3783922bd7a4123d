//! The model: answers requests, refuses those that are too long, and fails as models do. Its refusals are texts, which
//! the gateway's own classifier reads.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use pmk_core::{Block, Message, Role, testing::pairs_are_whole, tokens};
use pmk_models::{
    Answer, ErrorClass, Listener, Meter, Model, ModelError, Request, Stop, Tool, Usage,
    classify::{Failed, classify},
};
use serde_json::json;

use crate::{
    random::one_of,
    scenario::{Harm, Overflow, Point, Trouble},
    witness,
    world::World,
};

/// The delimiters of a question's name.
pub const OPEN: char = '⟦';
pub const CLOSE: char = '⟧';

/// What a provider says that takes a history for torn.
const MALFORMED: &str = r#"{"error":{"type":"invalid_request_error","message":"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after"}}"#;

/// What every summary begins with.
pub const SUMMARY: &str = "They went through the parts one by one.";

/// What it begins to say before it breaks off, or starts over.
pub const TAKEN_BACK: &str = "Let me see.";

/// The name of a question, which is part of its text.
pub fn name(number: usize) -> String {
    format!("{OPEN}q{number}{CLOSE}")
}

/// The questions named in a text, in order.
pub fn names(text: &str) -> Vec<usize> {
    let mut pieces = text.split(OPEN);
    pieces.next();
    let named = pieces.filter_map(|piece| piece.split(CLOSE).next()?.strip_prefix('q')?.parse().ok());
    named.collect()
}

/// The time within which all of several hosts learn of a change, in milliseconds: a quarter of a second unless a statement
/// is lost, and longer if one of them was suspended or cut off.
const LEARNS_WITHIN: u64 = 3_000;
const LEARNS_LATE_WITHIN: u64 = 30_000;

/// As the gateway estimates it: how a provider represents a tool is not known.
fn of_tool(Tool { name, description, input_schema }: &Tool) -> u64 {
    u64::from(tokens::estimate(&format!("{name} {description} {input_schema}")))
}

/// Whether a message calls tools: by blocks, or in the words that the gateway uses where those are refused.
fn calls_tools(message: &Message) -> bool {
    let is_call = |block: &Block| match block {
        Block::ToolUse { .. } => true,
        Block::Text { text } => text.starts_with("[called ") || text.starts_with("```"),
        _ => false,
    };
    message.role == Role::Assistant && message.blocks.iter().any(is_call)
}

/// Whether it brings the results of tools.
fn brings_results(request: &Request) -> bool {
    request.messages.iter().nth_back(1).is_some_and(|message| calls_tools(message))
}

/// What a request says last. The results of tools say nothing: what they were called for does, or what was said meanwhile.
fn last(request: &Request) -> &str {
    let messages = &request.messages;
    let mut said = (0..messages.len()).rev().filter(|&at| messages[at].role == Role::User);
    let last = said.find_map(|at| {
        let brings_results = at > 0 && calls_tools(&messages[at - 1]);
        let mut texts = messages[at].blocks.iter().rev().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.find(|text| !brings_results || !names(text).is_empty())
    });
    last.unwrap_or_default()
}

/// What a contact has written, if a request is to say what that is.
fn to_be_read(request: &Request) -> Option<&str> {
    last(request).split_once("<reply>\n")?.1.split_once("\n</reply>").map(|(reply, _)| reply)
}

/// The questions that a request asks.
fn asked(request: &Request) -> Vec<usize> {
    // The material of a summary request asks nothing.
    let last = Some(last(request)).filter(|text| !text.starts_with("<conversation>"));
    let mut asked = names(last.unwrap_or_default());
    asked.dedup();
    asked
}

/// The model of a world.
pub struct WorldsModel {
    world: Arc<World>,
}

impl WorldsModel {
    pub fn new(world: Arc<World>) -> WorldsModel {
        WorldsModel { world }
    }

    /// The size of the request, in this model's tokens.
    fn count(&self, request: &Request) -> u64 {
        let ours = u64::from(tokens::estimate(&request.system))
            + request.messages.iter().map(|message| u64::from(tokens::message(message))).sum::<u64>()
            + request.tools.iter().map(of_tool).sum::<u64>();
        ours * self.world.scenario.setting.counts / 100
    }

    /// Checks what must hold for every request.
    fn check(&self, request: &Request) {
        let breach = |what: &str| self.world.breach(format!("a request {what}"));
        let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
        if roles.first() != Some(&Role::User) || roles.last() != Some(&Role::User) {
            breach("does not begin and end with what somebody said");
        }
        if roles.windows(2).any(|pair| pair[0] == pair[1]) {
            breach("has two messages of one side in a row");
        }
        if !pairs_are_whole(&request.messages) {
            breach("has half a tool pair");
        }
        let now = self.world.time();
        let learnt_within = match self.world.hosts() {
            1 => 0,
            _ if self.world.scenario.harms_between(now.saturating_sub(LEARNS_LATE_WITHIN), now) => LEARNS_LATE_WITHIN,
            _ => LEARNS_WITHIN,
        };
        let known = now.checked_sub(learnt_within);
        if let Some(what) = known.and_then(|by| self.world.witness.object_to(&request.messages, &asked(request), by)) {
            breach(&what);
        }
    }

    fn refuse(&self, counted: u64, most: u64) -> ModelError {
        let (status, body) = match self.world.scenario.setting.overflow {
            Overflow::Numbers => {
                (400, format!(r#"{{"error":{{"message":"prompt is too long: {counted} tokens > {most} maximum"}}}}"#))
            }
            Overflow::Words => (413, r#"{"error":{"message":"input is too long for requested model"}}"#.to_owned()),
            Overflow::Riddle | Overflow::Silence => {
                (400, r#"{"error":{"message":"the scroll does not fit upon the table"}}"#.to_owned())
            }
        };
        self.failed(Some(status), &body)
    }

    fn failed(&self, status: Option<u16>, body: &str) -> ModelError {
        let window = Some(self.window());
        classify(&Failed { provider: "simulated", status, retry_after: None, window, body })
    }

    /// It says that it is overloaded, or that this account asks too often, and mostly for how long.
    fn busy(&self) -> ModelError {
        let mut rng = self.world.dice("busy");
        let (status, kind) = one_of(&mut rng, &[(529, "overloaded_error"), (429, "rate_limit_error")]);
        let body = format!(r#"{{"error":{{"type":"{kind}","message":"Later"}}}}"#);
        let retry_after = (rng.u8(0..3) > 0).then(|| Duration::from_secs(rng.u64(0..40)));
        let window = Some(self.window());
        classify(&Failed { provider: "simulated", status: Some(status), retry_after, window, body: &body })
    }

    /// What a contact's message is, with what is to be learnt from it.
    fn reading(&self, reply: &str) -> String {
        let kind = one_of(&mut self.world.dice("reading"), &["answer", "answer", "later", "question", "other", "poem"]);
        let named = reply.split_whitespace().next().unwrap_or_default();
        let learnt = json!({"kind": kind, "question": format!("{named} Which part?"), "summary": reply, "tags": []});
        learnt.to_string()
    }

    /// Whether it calls tools before it answers one of the questions that are asked when all is well.
    fn looks_up(&self, request: &Request, asked: &[usize]) -> bool {
        let is_probe = asked.iter().any(|&number| self.world.scenario.is_probe(number));
        is_probe && !brings_results(request) && self.world.dice("probe calls").u8(0..3) == 0
    }

    fn calls(&self, request: &Request) -> Vec<Block> {
        let mut rng = self.world.dice("calls");
        let call = |number: usize| {
            let named = request.tools.get(rng.usize(0..request.tools.len() + 1)).map_or("launch", |tool| &tool.name);
            let input = match rng.u8(0..3) {
                0 => json!({}),
                _ => {
                    json!({"repo": "atlas", "question": format!("what about part {number}?"), "reason": "nobody says"})
                }
            };
            let id = format!("call_{}_{number}", rng.u64(..));
            Block::ToolUse { id, name: named.to_owned(), input }
        };
        let n = self.world.dice("how many calls").usize(1..4);
        (0..n).map(call).collect()
    }
}

/// A request that is being processed.
struct Heard<'a> {
    world: &'a World,
    asked: &'a [usize],
    to_its_end: bool,
}

impl Drop for Heard<'_> {
    fn drop(&mut self) {
        if !self.to_its_end && self.world.is_in_its_first_life() {
            self.world.say(|| format!("nobody waits any more for what {:?} asks", self.asked));
            self.world.witness.given_up(self.world.time(), self.asked);
        }
    }
}

#[async_trait]
impl Model for WorldsModel {
    fn provider(&self) -> &'static str {
        "simulated"
    }

    fn name(&self) -> &str {
        "oracle"
    }

    fn window(&self) -> u64 {
        self.world.scenario.setting.window
    }

    fn has_images(&self) -> bool {
        self.world.scenario.setting.files
    }

    fn has_tools(&self) -> bool {
        self.world.scenario.setting.tools
    }

    async fn ask(&self, request: &Request, meter: &Meter) -> Result<Answer, ModelError> {
        self.tries(request, None, meter).await
    }

    async fn ask_aloud(&self, request: &Request, listener: &dyn Listener, meter: &Meter) -> Result<Answer, ModelError> {
        let listener = Some(listener).filter(|_| self.world.scenario.setting.wired.is_some());
        self.tries(request, listener, meter).await
    }
}

impl WorldsModel {
    async fn tries(
        &self,
        request: &Request,
        listener: Option<&dyn Listener>,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        let answer = self.answer(request, listener, meter).await;
        let is_none = match &answer {
            Ok(answer) => answer.blocks.is_empty(),
            Err(error) => {
                self.world.say(|| format!("model fails: {error}"));
                true
            }
        };
        if is_none {
            self.world.witness.hindered(self.world.time(), &asked(request));
        }
        answer
    }

    /// The number of words of a long answer: enough for a file, where there is room for it.
    fn length_of_long(&self) -> usize {
        let setting = &self.world.scenario.setting;
        let is_file = setting.wired.is_some() && setting.window > 100_000 && self.world.dice("file").bool();
        if is_file { 16_000 } else { 2_000 }
    }

    /// Says a text paragraph by paragraph, or the beginning of it.
    async fn says(&self, text: &str, listener: &dyn Listener, to_its_end: bool) {
        let mut rng = self.world.dice("says");
        let slowly = if rng.u8(0..8) == 0 { 60_000 } else { 2_500 };
        let mut said = 0;
        for paragraph in text.split_inclusive("\n\n") {
            tokio::time::sleep(Duration::from_millis(rng.u64(50..slowly))).await;
            if !to_its_end && rng.u8(0..4) == 0 {
                return;
            }
            said += paragraph.len();
            listener.hear(&text[..said]);
        }
    }

    async fn answer(
        &self,
        request: &Request,
        listener: Option<&dyn Listener>,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        let world = &self.world;
        world.step(Point::Model).await;
        self.check(request);
        let counted = self.count(request);
        let setting = &world.scenario.setting;
        let most = setting.window * setting.truth / 100;
        let with_answer = counted + u64::from(request.max_answer_tokens);
        if setting.counts <= 100 && with_answer > setting.window {
            let of = format!("{counted} tokens and {} for the answer", request.max_answer_tokens);
            world.breach(format!("a request of {of} is sent to a window of {}", setting.window));
        }
        let asked = asked(request);
        let mut heard = Heard { world, asked: &asked, to_its_end: false };
        tokio::time::sleep(Duration::from_millis(world.dice("thinking").u64(20..6_000))).await;
        heard.to_its_end = true;
        // Whatever happens to this request, there may be no further one.
        asked.iter().for_each(|&number| world.witness.settle(number));
        world.witness.settle_replies(last(request));
        if world.is_hit(Harm::OffModel) {
            return Err(ModelError::new(ErrorClass::Transport, "no route to the model"));
        }
        if world.strikes(Trouble::ModelBusy) {
            return Err(self.busy());
        }
        if world.strikes(Trouble::ModelHangs) {
            tokio::time::sleep(Duration::from_secs(60)).await;
            return Err(ModelError::silent_for(Duration::from_secs(60)));
        }
        let usage = match world.dice("usage").u8(0..20) {
            // Some servers do not say.
            0 => Usage::default(),
            _ => Usage { input_tokens: counted.min(most), output_tokens: 20, ..Usage::default() },
        };
        let charge = || {
            world.witness.spent(usage.input_tokens, usage.output_tokens);
            meter.add(usage);
        };
        let beginning = format!("{TAKEN_BACK}\n\nIt has teeth.\n\nThey turn.\n\nThey are many.\n\n");
        if world.strikes(Trouble::ModelBreaksOff) {
            if let Some(listener) = listener {
                self.says(&beginning, listener, false).await;
            }
            charge();
            return Err(ModelError::new(ErrorClass::Transport, "the stream ended early"));
        }
        if world.strikes(Trouble::ModelRiddle) {
            return Err(match world.dice("riddle").u8(0..3) {
                0 => self.failed(Some(400), MALFORMED),
                _ => self.failed(Some(422), "<html>the oracle turns away</html>"),
            });
        }
        if world.strikes(Trouble::ModelDeclines) {
            charge();
            return Err(ModelError::new(ErrorClass::Refused, "no"));
        }
        let is_silent = counted > most && setting.overflow == Overflow::Silence;
        if counted > most && !is_silent {
            world.say(|| format!("model refuses {counted} of {most}"));
            if matches!(setting.overflow, Overflow::Numbers | Overflow::Words) {
                world.witness.refused(!asked.is_empty() && to_be_read(request).is_none());
            }
            return Err(self.refuse(counted, most));
        }
        let answers = |blocks: Vec<Block>, stop: Stop| {
            charge();
            Ok(Answer { blocks, stop, usage })
        };
        if is_silent || world.strikes(Trouble::ModelEmpty) {
            return answers(vec![], Stop::End);
        }
        let calls = world.strikes(Trouble::ModelCalls) || self.looks_up(request, &asked);
        if !request.tools.is_empty() && calls {
            return answers(self.calls(request), Stop::ToolUse);
        }
        if let Some(reply) = to_be_read(request) {
            let text = self.reading(reply);
            world.say(|| format!("model reads: {text}"));
            world.step(Point::Model).await;
            return answers(vec![Block::Text { text }], Stop::End);
        }
        // A request without a question is for a summary.
        let (mut text, call) = match asked.is_empty() {
            true => (SUMMARY.to_owned(), None),
            false => {
                let all = asked.iter().map(|&number| format!("The answer to {}. ", name(number)));
                let call = world.count("answers");
                world.witness.answered(call, &asked);
                (format!("{}{} ", all.collect::<String>(), witness::answer(call)), Some(call))
            }
        };
        world.say(|| format!("model answers {counted} of {most}: {text}"));
        if let (Some(listener), Some(_)) = (listener, call) {
            for number in 0..world.dice("paragraphs").usize(0..12) {
                text.push_str(&format!("\n\nThe gear of part {number} turns."));
            }
            if world.dice("starts over").u8(0..6) == 0 {
                self.says(&beginning, listener, false).await;
            }
            self.says(&text, listener, true).await;
        }
        world.step(Point::Model).await;
        if world.dice("long answer").u8(0..15) == 0 {
            text.push_str(&"word ".repeat(self.length_of_long()));
            text.extend(call.map(witness::end));
        }
        if let Some(call) = call {
            world.witness.answered_with(call, &text);
        }
        answers(vec![Block::Text { text }], Stop::End)
    }
}
