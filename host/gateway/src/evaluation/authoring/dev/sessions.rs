//! The conversations on which builds of a policy are compared.

use std::thread;

use pmk_models::sim::{Sim, SimConfig};

use crate::evaluation::{
    authoring::histories,
    compare::{
        histories::{self as recorded, Met, Source},
        questions::{self, Placed, Questions},
        recording::Recording,
        replay::{Arm, Setup},
        runner,
        standing::Standing,
    },
};

/// The built-in conversations that are most informative: people, tools, a seed, large messages.
const BUILT_IN: [&str; 6] = ["english", "chinese", "tool-heavy", "seed pair", "huge messages", "summary and marker"];

/// Without a limit, a conversation is planned within this fraction of its size, so that there is something to decide.
const PART: u64 = 2;

/// One conversation.
pub struct Session {
    /// Its name.
    pub name: String,
    pub recording: Recording,
    setup: Setup,
    /// All names by which questions may refer to it.
    names: Vec<String>,
}

impl Session {
    /// Returns the questions about it, and the problems with others.
    pub fn questions<'a>(&self, questions: Option<&'a Questions>) -> (Vec<Placed<'a>>, Vec<String>) {
        let about = questions.map(|questions| questions.about(&self.names)).unwrap_or_default();
        questions::place(about, &self.recording)
    }
}

/// Opens up to `most` conversations of these sources, those of the newest files, and returns the problems of those that
/// are left out.
pub fn of(sources: Vec<Source>, most: usize, setup: &Setup, has_limit: bool) -> (Vec<Session>, Vec<String>) {
    let mut sessions = Vec::new();
    let mut problems = Vec::new();
    let mut met = Met::default();
    for (position, found) in recorded::each_once(sources, &mut met) {
        if sessions.len() == most {
            break;
        }
        let opened = match found {
            Ok(conversation) => conversation.open().map_err(|error| error.to_string()),
            Err(left) => Err(left.to_string()),
        };
        match opened {
            Ok((known_as, recording)) if recording.turns.is_empty() => {
                problems.push((position, format!("`{}`: {}", known_as[0], runner::refusal(&recording))));
            }
            Ok((names, recording)) => sessions.push((position, session(names, recording, setup, has_limit))),
            Err(problem) => problems.push((position, problem)),
        }
    }
    sessions.sort_by_key(|(position, _)| *position);
    problems.sort();
    (sessions.into_iter().map(|(_, session)| session).collect(), problems.into_iter().map(|(_, told)| told).collect())
}

/// Returns the problems of the questions about none of these conversations.
pub fn astray(sessions: &[Session], questions: &Questions) -> Vec<String> {
    questions.astray(&sessions.iter().flat_map(|session| session.names.iter().cloned()).collect())
}

/// Returns the built-in conversations.
pub fn built_in(setup: &Setup, has_limit: bool) -> Vec<Session> {
    let told = histories::built_in().into_iter().filter(|named| BUILT_IN.contains(&named.name.as_str()));
    told.map(|named| {
        let entries = named.transcript.entries().iter().enumerate();
        let messages = entries.map(|(at, entry)| ((*entry.message).clone(), vec![at.to_string()]));
        session(vec![named.name], Recording::of(None, String::new(), messages.collect(), vec![]), setup, has_limit)
    })
    .collect()
}

fn session(names: Vec<String>, recording: Recording, setup: &Setup, has_limit: bool) -> Session {
    let mut setup = setup.clone();
    if !has_limit && recording.given.is_empty() {
        let held: u64 = recording.entries.iter().map(|entry| u64::from(entry.tokens)).sum();
        let limit = (held / PART).max(1);
        // The window is larger than the limit, so that the policy decides and not the model.
        let window = limit.saturating_add(recording.system_tokens).saturating_mul(4) / 3 + 1;
        let sim = Sim::new(SimConfig { window, delay_ms: 0, ..SimConfig::default() });
        setup = Setup { window, budget: Some(limit), sim, ..setup };
    }
    Session { name: names.first().cloned().unwrap_or_default(), recording, setup, names }
}

/// Replays each conversation with a policy, on all processors.
pub fn replay(arm: &Arm, sessions: &[Session], questions: Option<&Questions>) -> Vec<Standing> {
    let of = |session: &Session| {
        let (placed, _) = session.questions(questions);
        Standing::of(arm, &session.setup, &session.recording, &placed)
    };
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let a_worker = sessions.len().div_ceil(workers).max(1);
    thread::scope(|scope| {
        let work = |part| {
            scope.spawn(move || {
                crate::evaluation::authoring::stage::quietly(|| Vec::from_iter(<[_]>::iter(part).map(of)))
            })
        };
        let workers: Vec<_> = sessions.chunks(a_worker).map(work).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{Attachments, Inbound, ReplyTo},
        store::Store,
    };

    /// Regression: it was passed over without a word.
    #[test]
    fn a_conversation_of_which_all_is_parked_was_left_out_without_a_reason() {
        let home = tempfile::tempdir().expect("a home");
        let store = Store::open(home.path()).expect("a store");
        let inbound = Inbound {
            event_id: "Ev1".into(),
            aliases: vec![],
            key: "slack:dm:U1".parse().expect("a key"),
            user: "U1".into(),
            reply_to: ReplyTo { channel: "D1".into(), thread_ts: None },
            text: "a question".into(),
            attached: Attachments::default(),
            if_awaited: false,
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
            ts: String::new(),
        };
        tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
            let inbox = store.accept(&inbound, 1).await.expect("the store").expect("a new message");
            store.park(inbox, "the disk is full", vec![], 2).await.expect("the store").expect("it is parked");
        });
        let sim = Sim::new(SimConfig::default());
        let setup = Setup { window: 8_000, budget: None, sim, history_turns: None, by_receipts: true };
        let (found, problems) = of(vec![Source::Kept(store, inbound.key)], 50, &setup, false);
        let told = "`slack:dm:U1`: all user messages in it are parked; `pmk-host sessions parked` lists them";
        assert_eq!((found.len(), problems), (0, vec![told.to_owned()]));
    }
}
