//! Measures how often all evidence for a question is in view, with this policy and with the newest messages that fit,
//! at 4,000 tokens: on conversations that are replayed turn by turn, as in the gateway.

use std::{collections::BTreeMap, sync::Arc};

use pmk_corpus::{Category, Corpus, Question};
use pmk_policy_sdk::testing::{
    Harness, MemoryArchive,
    core::{Applied, Entry, Message, Transcript},
};
use recall::Recall;

const LIMIT: u64 = 4_000;
const SEED: u64 = 20_260_401;

/// The state of a conversation after some turns, as in the gateway.
struct Replay {
    harness: Harness<Recall>,
    /// The same policy without its block: it keeps the same window, and is faster.
    blockless: Harness<Recall>,
    archive: Arc<MemoryArchive>,
    live: Vec<Entry>,
    said: Vec<Entry>,
    dropped: u32,
}

impl Replay {
    fn new() -> Self {
        let blockless = Harness::new().with("recall-most", 0);
        Replay { harness: Harness::new(), blockless, archive: Arc::default(), live: vec![], said: vec![], dropped: 0 }
    }

    /// The request for a new message.
    fn ask(&self, harness: &Harness<Recall>, question: Entry) -> (Transcript, Applied) {
        let current = self.live.len();
        let entries = self.live.iter().cloned().chain([question]).collect();
        let transcript = Transcript::new(entries, current, "").with_dropped_turns(self.dropped);
        let transcript = Arc::new(transcript.with_archive(self.archive.clone()));
        let applied = harness.prune(&transcript, LIMIT).expect("a plan that breaks no rule");
        assert!(applied.tokens_after <= LIMIT);
        (Arc::unwrap_or_clone(transcript), applied)
    }

    /// Ends a turn.
    fn turn(&mut self, question: Entry, answer: Entry) {
        let (_, applied) = self.ask(&self.blockless, question.clone());
        self.dropped = applied.turns_dropped_total;
        self.live = applied.kept.iter().filter_map(|&at| self.live.get(at as usize).cloned()).collect();
        for entry in [question, answer] {
            self.archive.record(entry.clone());
            self.said.push(entry.clone());
            self.live.push(entry);
        }
    }

    /// Whether all evidence is in view, with the policy and with the newest messages.
    fn sees(&self, question: &Question) -> (bool, bool) {
        let new = Entry::new(i64::MAX, Message::user(question.question.clone()));
        let mut room = LIMIT.saturating_sub(u64::from(new.tokens));
        let newest = self.said.iter().rev().take_while(|entry| {
            let fits = u64::from(entry.tokens) <= room;
            room = room.saturating_sub(u64::from(entry.tokens));
            fits
        });
        let newest: Vec<i64> = newest.map(|entry| entry.id).collect();
        let (transcript, applied) = self.ask(&self.harness, new);
        let kept = applied.kept.iter().map(|&at| transcript.entries()[at as usize].id);
        let recalled = applied.recall.iter().flat_map(|recall| recall.ids.iter().copied());
        let seen: Vec<i64> = kept.chain(recalled).collect();
        let all = |view: &[i64]| question.evidence.iter().all(|id| view.contains(id));
        (all(&seen), all(&newest))
    }
}

/// Questions of one kind: their number, and for how many all evidence is in view.
#[derive(Default)]
struct Score {
    asked: u32,
    seen: u32,
    seen_by_newest: u32,
}

impl Score {
    fn add(&mut self, (seen, by_newest): (bool, bool)) {
        self.asked += 1;
        self.seen += u32::from(seen);
        self.seen_by_newest += u32::from(by_newest);
    }

    fn percent(&self, of: u32) -> u32 {
        of * 100 / self.asked.max(1)
    }

    fn line(&self, what: &str) -> String {
        let Score { asked, seen, seen_by_newest } = *self;
        format!(
            "{what:<12} {asked:>4} asked  {:>3} %  newest {:>3} %",
            self.percent(seen),
            self.percent(seen_by_newest)
        )
    }
}

#[test]
fn the_evidence_is_in_view_where_the_newest_messages_would_not_hold_it() {
    let corpus = Corpus::of_seed(SEED, 2);
    let mut all = Score::default();
    let mut scores: BTreeMap<(Category, &str), Score> = BTreeMap::new();
    for conversation in &corpus.conversations {
        let language = conversation.id.split_once('-').map_or("", |(language, _)| language);
        let questions: Vec<&Question> =
            corpus.questions.iter().filter(|question| question.conversation == conversation.id).collect();
        let mut replay = Replay::new();
        let mut score = |replay: &Replay, after: Option<i64>| {
            for question in questions.iter().filter(|question| question.after == after) {
                let seen = replay.sees(question);
                all.add(seen);
                scores.entry((question.category, language)).or_default().add(seen);
            }
        };
        for turn in conversation.messages.chunks(2) {
            let [question, answer] = turn else { panic!("a question and an answer") };
            let entry = |said: &pmk_corpus::Said| Entry::new(said.id, said.message.clone());
            replay.turn(entry(question), entry(answer));
            score(&replay, Some(answer.id));
        }
        score(&replay, None);
    }
    let table: Vec<String> = scores
        .iter()
        .map(|((category, language), score)| format!("{language}  {}", score.line(&format!("{category:?}"))))
        .collect();
    let table = format!("{}\n    {}", table.join("\n"), all.line("all"));
    println!("{table}");
    assert!(all.asked >= 200, "{table}");
    assert!(all.percent(all.seen) >= 85 && all.percent(all.seen_by_newest) <= 20, "{table}");
}
