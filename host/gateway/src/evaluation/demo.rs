//! The demo: shows in half a minute what the program is for. A recorded incident is replayed by [the gateway's own
//! code](crate::evaluation::compare) without a policy and with two of the embedded ones. No model is called, and every
//! figure is the result of the replay.

use std::path::PathBuf;

use pmk_core::{Block, Language, Message, Origin, Role};
use pmk_models::sim::{Sim, SimConfig};
use pmk_system::error::Failure;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    config::PolicyConfig,
    evaluation::compare::{
        recording::Recording,
        replay::{Arm, Replay, Setup, Step},
    },
    policies::Loader,
};

/// The model's window, in tokens.
pub const WINDOW: u64 = 8_000;

/// The window that a gateway assumes for a model it knows nothing about.
const BELIEVED: u64 = 200_000;

/// The policies that are shown besides the lane without one.
const POLICIES: [&str; 2] = ["strict", "recall"];

/// A text in each language.
#[derive(Clone, Debug, Deserialize)]
struct Said {
    en: String,
    #[serde(rename = "zh-TW")]
    zh_tw: String,
}

impl Said {
    fn in_language(&self, language: Language) -> &str {
        match language {
            Language::TraditionalChinese => &self.zh_tw,
            Language::English => &self.en,
        }
    }
}

/// The incident as it is in its file.
#[derive(Debug, Deserialize)]
struct Incident {
    /// The question that is asked at the end.
    last: Said,
    /// The text that only a model can give that still sees the evidence.
    found: String,
    turns: Vec<Turn>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    asked: Said,
    tool: String,
    input: Value,
    result: String,
    answered: Said,
}

/// The incident, and the lanes it is replayed in.
pub struct Demo {
    recording: Recording,
    last: String,
    found: String,
    /// Counted from 1.
    said_in: usize,
    lanes: Vec<(Arm, Setup)>,
}

/// The result of the incident in one lane.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The policy; `None` in the lane without one.
    pub policy: Option<String>,
    pub steps: Vec<Step>,
    /// The last question, and its answer.
    pub last: Step,
    pub answer: Option<String>,
    /// Whether the answer is right.
    pub found: bool,
}

impl Demo {
    /// Reads the incident and loads the policies.
    ///
    /// # Errors
    /// A policy cannot be loaded.
    pub fn open(loader: &Loader, language: Language) -> Result<Demo, Failure> {
        let incident: Incident =
            serde_json::from_str(include_str!("demo/incident.json")).expect("the incident is tested");
        let setup = |window| Setup {
            window,
            budget: None,
            sim: Sim::new(SimConfig { window: WINDOW, ..SimConfig::default() }),
            history_turns: None,
            by_receipts: false,
        };
        let load = |policies: &[PathBuf]| loader.load(&PolicyConfig::default(), policies);
        let mut lanes = vec![(Arm { label: String::new(), stack: load(&[])? }, setup(BELIEVED))];
        for name in POLICIES {
            lanes.push((Arm { label: name.to_owned(), stack: load(&[name.into()])? }, setup(WINDOW)));
        }
        let holds = |turn: &Turn| turn.asked.in_language(language).contains(&incident.found);
        Ok(Demo {
            last: incident.last.in_language(language).to_owned(),
            said_in: incident.turns.iter().position(holds).map_or(0, |at| at + 1),
            recording: recording(&incident.turns, language),
            found: incident.found,
            lanes,
        })
    }

    /// Returns the number of questions before the last.
    pub fn turns(&self) -> usize {
        self.recording.turns.len()
    }

    /// Returns the question of that turn.
    pub fn asked(&self, turn: usize) -> String {
        self.recording.entries[self.recording.turns[turn].start].message.plain_text()
    }

    /// Returns the last question.
    pub fn last(&self) -> &str {
        &self.last
    }

    /// Returns the number of the question, counted from 1, that contains its answer.
    pub fn said_in(&self) -> usize {
        self.said_in
    }

    /// Returns the policy of each lane; `None` for the lane without one.
    pub fn policies(&self) -> impl Iterator<Item = Option<&str>> {
        self.lanes.iter().map(|(arm, _)| Some(arm.label.as_str()).filter(|label| !label.is_empty()))
    }

    /// Replays the incident in all lanes, one turn at a time, and reports each turn to `watch`.
    pub fn play(&self, mut watch: impl FnMut(usize, &[Step])) -> Vec<Outcome> {
        let mut replays: Vec<Replay<'_>> =
            self.lanes.iter().map(|(arm, setup)| Replay::new(arm, setup, &self.recording)).collect();
        let mut steps: Vec<Vec<Step>> = vec![Vec::new(); replays.len()];
        for turn in 0..self.turns() {
            let now: Vec<Step> = replays.iter_mut().map(|replay| replay.take(turn)).collect();
            watch(turn, &now);
            steps.iter_mut().zip(now).for_each(|(steps, step)| steps.push(step));
        }
        let ends = self.policies().zip(replays).zip(steps);
        ends.map(|((policy, replay), steps)| {
            let (answer, last) = replay.question(&self.last);
            let found = answer.as_ref().is_some_and(|answer| answer.contains(&self.found));
            Outcome { policy: policy.map(str::to_owned), steps, last, answer, found }
        })
        .collect()
    }
}

/// The incident as a conversation: each question is looked up with one tool call, and answered.
fn recording(turns: &[Turn], language: Language) -> Recording {
    let messages = turns.iter().enumerate().flat_map(|(number, turn)| {
        let id = format!("call-{number}");
        let call = Block::ToolUse { id: id.clone(), name: turn.tool.clone(), input: turn.input.clone() };
        let result = Block::ToolResult { tool_use_id: id, content: turn.result.clone(), is_error: false };
        [
            Message::user(turn.asked.in_language(language)),
            Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] },
            Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] },
            Message::assistant(turn.answered.in_language(language)),
        ]
    });
    Recording::of(None, String::new(), messages.map(|message| (message, vec![])).collect(), vec![])
}
