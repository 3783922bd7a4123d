//! Whatever comes in at the two doors, the gateway lives, stays small, answers a good message behind it, answers
//! nothing that it should not, and starts again when it is killed in the middle.
//!
//! CI takes a sample; `PMK_TEST_FRAMES`, `PMK_TEST_LINES` and `PMK_TEST_KILLS` say how many, and `PMK_TEST_SEED` which.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use pmk_stand_ins::slack::{Raw, Slack, dm_channel};
use serde_json::{Value, json};

use crate::{
    moments::Moments,
    support::{Home, PATIENCE, Running, peak_memory, question, until, until_async},
    workspace::{Gateway, rules, rules_for_kills},
};

mod frames;
mod lines;
mod mutator;

/// What comes before a good message.
const BATCH: usize = 1_000;
/// One of so many that would be answered is sent: the answering is tested elsewhere.
const ANSWERED: usize = 20;
/// Twice what the gateway was seen to need, in a debug build.
const MOST_MEMORY: u64 = 128 << 20;
/// Far longer than a frame may be.
const TOO_LONG: usize = 5 << 20;

fn count(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |count| count.parse().expect("a number"))
}

/// Whether a text is an id, in the words of `docs/console.md`.
fn is_id(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || (c.is_ascii_punctuation() && c != ':');
    (1..=128).contains(&text.chars().count()) && text.chars().all(allowed)
}

/// Counts the refusals in the ledger, without reading a million of them again and again.
#[derive(Default)]
struct Refusals {
    /// How much of each file was read.
    read: HashMap<PathBuf, usize>,
    count: usize,
}

impl Refusals {
    /// How many there are, once there are so many.
    fn reach(&mut self, home: &Home, count: usize) -> Option<usize> {
        for file in std::fs::read_dir(home.path().join("gateway")).expect("the folder") {
            let path = file.expect("readable").path();
            if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("events-")) {
                continue;
            }
            let read = self.read.entry(path.clone()).or_default();
            let mut file = File::open(path).expect("the ledger");
            file.seek(SeekFrom::Start(*read as u64)).expect("a file");
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("the ledger");
            bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
            *read += bytes.len();
            self.count += String::from_utf8_lossy(&bytes).matches(r#""type":"front.malformed""#).count();
        }
        (self.count >= count).then_some(self.count)
    }
}

/// The events that a home has stored, and how many of them wait for an answer.
fn inbox(home: &Path) -> (HashSet<String>, usize) {
    let store = rusqlite::Connection::open(home.join("gateway/pmk-host.db")).expect("the store");
    let mut rows = store.prepare("SELECT event_id, message IS NOT NULL FROM inbox").expect("a query");
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, bool>(1)?))).expect("rows");
    let rows: Vec<(String, bool)> = rows.map(|row| row.expect("a row")).collect();
    let waiting = rows.iter().filter(|(_, waits)| *waits).count();
    (rows.into_iter().map(|(id, _)| id).collect(), waiting)
}

/// What was sent, and what has to have come of it.
#[derive(Default)]
struct Sent {
    malformed: usize,
    stored: HashSet<String>,
    /// What is acknowledged of the last batch.
    acknowledged: Vec<String>,
    /// Frames of the last batch of which it does not matter whether an envelope can be made out.
    unreadable: Vec<String>,
}

impl Sent {
    /// Draws a frame that does not end the connection.
    fn frame(&mut self, dice: &mut Moments) -> Vec<Raw> {
        loop {
            let mutant = frames::draw(dice);
            let text = match String::from_utf8(mutant.bytes.clone()) {
                Ok(text) => text,
                Err(_) if dice.below(2) == 0 => {
                    self.malformed += mutant.times;
                    return vec![Raw::Binary(mutant.bytes); mutant.times];
                }
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            };
            let verdict = frames::judge(&mutant, &text);
            if verdict.ends || (verdict.stored.is_some() && dice.below(ANSWERED) > 0) {
                continue;
            }
            for _ in 0..mutant.times {
                self.malformed += usize::from(verdict.malformed);
                self.acknowledged.extend(verdict.acknowledged.clone());
                self.unreadable.extend(verdict.unreadable.then(|| text.clone()));
            }
            self.stored.extend(verdict.stored);
            return vec![Raw::Text(text); mutant.times];
        }
    }

    /// Waits until everything of a batch is acknowledged, and nothing else.
    async fn settle(&mut self, slack: &Slack) {
        let mut missing: HashMap<String, usize> = HashMap::new();
        for id in self.acknowledged.drain(..) {
            *missing.entry(id).or_default() += 1;
        }
        // Those of unreadable ones count for none of these.
        until_async("all acknowledgements", || {
            for id in slack.take_strays() {
                match missing.get_mut(&id) {
                    Some(1) => _ = missing.remove(&id),
                    Some(count) => *count -= 1,
                    None => {
                        assert!(
                            self.unreadable.iter().any(|text| text.contains(&id)),
                            "acknowledged for nothing: {id}"
                        );
                    }
                }
            }
            missing.is_empty().then_some(())
        })
        .await;
        self.unreadable.clear();
    }
}

/// Asks as somebody whom no mutant speaks for, and returns how long the answer took, and to what.
async fn asked(slack: &Slack, gateway: &Gateway) -> (Duration, String) {
    let begun = Instant::now();
    let asked = slack.dm("UGOOD", "Are you there?");
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some(), "{}", gateway.log());
    (begun.elapsed(), asked.event_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_frames_do_no_harm_and_good_ones_behind_them_are_answered() {
    let slack = Slack::start(rules().unlimited()).await;
    let (home, mut dice) = (Home::new(), Moments::new());
    // What is said when it goes is no answer.
    home.write("gateway.json", r#"{"version":1,"presence":{"broadcast":false}}"#);
    let (mut sent, mut worst, mut good) = (Sent::default(), Duration::ZERO, 0);
    let mut refusals = Refusals::default();
    slack.take_strays();
    let gateway = Gateway::start(&home, &slack, &[]);
    let batches = count("PMK_TEST_FRAMES", 20_000).div_ceil(BATCH);
    for batch in 0..batches {
        assert!(slack.await_sockets(2, PATIENCE).await, "{}", gateway.log());
        let mut frames = 0;
        while frames < BATCH {
            for frame in sent.frame(&mut dice) {
                frames += 1;
                assert!(slack.send_raw(frame).is_some());
            }
        }
        worst = worst.max(asked(&slack, &gateway).await.0);
        let refused = until_async("the refusals", || refusals.reach(&home, sent.malformed)).await;
        assert_eq!(refused, sent.malformed, "batch {batch}");
        sent.settle(&slack).await;
        good += 1;
        if batch % 10 == 9 {
            // What ends a connection does not end the other.
            let long = json!({"type": "events_api", "envelope_id": "long", "payload": "x".repeat(TOO_LONG)});
            let warning = json!({"type": "disconnect", "reason": dice.one_of(&["", "warning", "\u{202e}"])});
            let last = [long, warning][dice.below(2)].to_string();
            let socket = slack.send_raw(Raw::Text(last)).expect("an open socket");
            assert!(slack.await_gone(socket, PATIENCE).await, "{}", gateway.log());
            worst = worst.max(asked(&slack, &gateway).await.0);
            good += 1;
        }
    }
    let memory = peak_memory(gateway.pid());
    eprintln!("{} frames, worst answer after {worst:?}, at most {} MiB", batches * BATCH, memory >> 20);
    until_async("the answers", || (inbox(home.path()).1 == 0).then_some(())).await;
    assert!(gateway.terminate().success());
    let (mut stored, _) = inbox(home.path());
    let missing: Vec<&String> = sent.stored.difference(&stored).collect();
    assert_eq!(missing, Vec::<&String>::new());
    stored.retain(|event| !sent.stored.contains(event));
    assert_eq!(stored.len(), good, "{stored:?}");
    assert_eq!(slack.replies(&dm_channel("UGOOD")).len(), good);
    assert_eq!(slack.violations(), Vec::<String>::new());
    assert!(memory < MOST_MEMORY, "{memory} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_killed_amid_mutated_frames_starts_again() {
    let slack = Slack::start(rules_for_kills().unlimited()).await;
    let (home, mut dice) = (Home::new(), Moments::new());
    let (mut sent, mut worst, mut questions) = (Sent::default(), Duration::ZERO, Vec::new());
    let (mut slowest, mut good) = (Duration::ZERO, HashSet::new());
    slack.take_strays();
    for kill in 0..=count("PMK_TEST_KILLS", 5) {
        let begun = Instant::now();
        let gateway = Gateway::start(&home, &slack, &[]);
        assert!(slack.await_connected(PATIENCE).await, "kill {kill}: {}", gateway.log());
        let up = begun.elapsed();
        let (time, event) = asked(&slack, &gateway).await;
        (slowest, worst) = (slowest.max(up), worst.max(time));
        good.insert(event);
        for number in 0..BATCH {
            sent.frame(&mut dice).into_iter().for_each(|frame| _ = slack.send_raw(frame));
            if number % 100 == 0 {
                questions.push(slack.dm(&format!("UGOOD{}", questions.len()), "And now?"));
            }
        }
        dice.pass(Duration::from_millis(300)).await;
        gateway.kill();
        assert!(slack.await_sockets(0, PATIENCE).await);
    }
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await, "{}", gateway.log());
    for question in &questions {
        assert!(slack.await_reply(question, PATIENCE).await.is_some(), "{}", gateway.log());
        assert_eq!(slack.replies(&question.channel).len(), 1, "{:?}", slack.replies(&question.channel));
    }
    until_async("the answers", || (inbox(home.path()).1 == 0).then_some(())).await;
    eprintln!("slowest start {slowest:?}, worst answer after it {worst:?}");
    assert!(gateway.terminate().success());
    assert_eq!(slack.given_up(), Vec::<String>::new());
    assert_eq!(slack.violations(), Vec::<String>::new());
    good.extend(questions.into_iter().map(|question| question.event_id));
    let (stored, _) = inbox(home.path());
    let wrong: Vec<&String> = stored.iter().filter(|id| !sent.stored.contains(*id) && !good.contains(*id)).collect();
    assert_eq!(wrong, Vec::<&String>::new(), "stored, and should not be");
}

/// Draws a line.
fn line(dice: &mut Moments) -> (Vec<u8>, lines::Verdict, usize) {
    loop {
        let mutant = lines::draw(dice);
        let verdict = lines::judge(&mutant);
        if !matches!(verdict, lines::Verdict::Accepted(_)) || dice.below(ANSWERED) == 0 {
            return ([&mutant.bytes[..], b"\n"].concat(), verdict, mutant.times);
        }
    }
}

/// What a line of output says of the input.
fn said(line: &Value) -> Option<lines::Verdict> {
    match line["type"].as_str() {
        Some("accepted") => Some(lines::Verdict::Accepted(line["event_id"].as_str().map(str::to_owned))),
        Some("error") if line["line"].is_u64() => Some(lines::Verdict::Refused),
        _ => None,
    }
}

/// Says a good line, and returns how long its answer took and what was said of the input before.
fn answered(gateway: &mut Running, number: usize) -> (Duration, Vec<Value>) {
    let (begun, id) = (Instant::now(), format!("good-{number}"));
    assert!(gateway.say(&question(&id, "Are you there?")));
    let mut before = Vec::new();
    loop {
        let line = gateway.next().expect("the gateway lives");
        let is_answer = line["type"] == "reply" && line["event_id"] == id;
        before.push(line);
        if is_answer {
            return (begun.elapsed(), before);
        }
    }
}

#[test]
fn mutated_lines_do_no_harm_and_good_ones_behind_them_are_answered() {
    let (home, mut dice) = (Home::new(), Moments::new());
    let log = std::fs::File::create(home.path().join("stderr.log")).expect("a file");
    let mut gateway = Running::telling(home.command(&["run", "--model", "sim"]), log);
    let batches = count("PMK_TEST_LINES", 5_000).div_ceil(BATCH);
    let (mut worst, mut refused) = (Duration::ZERO, 0);
    for batch in 0..batches {
        let mut expected = Vec::new();
        for _ in 0..BATCH {
            let (bytes, verdict, times) = line(&mut dice);
            for _ in 0..times {
                assert!(gateway.write(&bytes));
                expected.push(verdict.clone());
            }
        }
        refused += expected.iter().filter(|verdict| **verdict == lines::Verdict::Refused).count();
        expected.retain(|verdict| !matches!(verdict, lines::Verdict::Blank | lines::Verdict::Reaction));
        expected.push(lines::Verdict::Accepted(Some(format!("good-{batch}"))));
        let (time, lines) = answered(&mut gateway, batch);
        worst = worst.max(time);
        let found: Vec<lines::Verdict> = lines.iter().filter_map(said).collect();
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let is_same = match (found, expected) {
                (lines::Verdict::Accepted(Some(_)), lines::Verdict::Accepted(None)) => true,
                (found, expected) => found == expected,
            };
            assert!(is_same, "answer {number} of batch {batch}: {found:?}, not {expected:?}");
        }
        assert_eq!(found.len(), expected.len());
    }
    let memory = peak_memory(gateway.pid());
    eprintln!("{} lines, worst answer after {worst:?}, at most {} MiB", batches * BATCH, memory >> 20);
    assert_eq!(until("the refusals", || Refusals::default().reach(&home, refused)), refused);
    let (status, _) = gateway.end();
    assert!(status.success());
    assert!(memory < MOST_MEMORY, "{memory} bytes");
}

#[test]
fn a_gateway_killed_amid_mutated_lines_starts_again() {
    let (home, mut dice) = (Home::new(), Moments::new());
    let (mut printed, mut worst) = (Vec::new(), Duration::ZERO);
    let start = || {
        let log = std::fs::File::create(home.path().join("stderr.log")).expect("a file");
        Running::telling(home.command(&["run", "--model", "sim"]), log)
    };
    for kill in 0..count("PMK_TEST_KILLS", 5) {
        let mut gateway = start();
        let (time, lines) = answered(&mut gateway, kill);
        worst = worst.max(time);
        printed.extend(lines);
        for number in 0..BATCH {
            gateway.write(&line(&mut dice).0);
            if number % 100 == 0 {
                // In a conversation of its own: the next start is timed by one that does not wait for it.
                let id = format!("during-{kill}-{number}");
                let line = json!({"user": format!("UGOOD{kill}"), "text": "And now?", "event_id": id}).to_string();
                gateway.say(&line);
            }
        }
        dice.pass_blocking(Duration::from_millis(300));
        printed.extend(gateway.kill());
    }
    let (status, rest) = start().end();
    assert!(status.success());
    printed.extend(rest);
    eprintln!("worst answer after a start, from the start on: {worst:?}");
    assert_eq!(inbox(home.path()).1, 0, "some wait for ever");
    let answered: HashSet<&Value> =
        printed.iter().filter(|line| line["type"] == "reply").map(|line| &line["event_id"]).collect();
    let accepted = printed.iter().filter(|line| line["type"] == "accepted");
    let lost: Vec<&Value> = accepted.map(|line| &line["event_id"]).filter(|id| !answered.contains(id)).collect();
    assert_eq!(lost, Vec::<&Value>::new(), "accepted and never answered");
}
