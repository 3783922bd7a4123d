//! What each request was made from, stored with its turn.

use pmk_core::SessionKey;
use pmk_policy::Identity;

use super::*;
use crate::chat::{DeletedAuthor, Deletion, Thread, ThreadPost};

pub(super) fn receipt(call: u32, receipts: &mut Receipts, messages: Vec<Reference>) -> Receipt {
    let decided_by = Decider { name: "standard.recency".into(), sha256: Some("c0ffee".into()) };
    let policy = Identity { name: "standard.recency".into(), version: "1.0".into(), sha256: "c0ffee".into() };
    Receipt {
        call,
        at_ms: NOW,
        phase: "first".into(),
        before: Before { messages, dropped_turns: 2, marker: Some(receipts.keep("{n} turns are not shown")) },
        plan: Some(Plan {
            decided_by,
            removed: vec![0],
            replaced: vec![(1, Digest::of("reduced"))],
            marker: Some((receipts.keep("3 turns are not shown"), 1)),
            recalled: vec![7],
            recall: None,
            compaction: Some((1, 3)),
            turns_dropped: 1,
            tokens_before: 900,
            tokens_after: 500,
        }),
        policies: vec![Layer { policy, settings: receipts.keep("{}") }],
        budget: Budget { window: 8_000, limit: 4_000, answer: 2_000, seed_may_go: false },
        calibration: Calibrated {
            factor: 1.25,
            overhead: 300.0,
            refused: Some((9_000, 4_000)),
            ..Calibrated::default()
        },
        system: receipts.keep("You are a help desk."),
        tools: receipts.keep("[]"),
        background: None,
        atoms: vec![FoundAtom { id: "01J".into(), sha256: Digest::of("an atom") }],
        usage: Some(Usage { input_tokens: 10, output_tokens: 5, cache_read_tokens: 3, cache_creation_tokens: 2 }),
        renderer: 1,
        as_text: false,
        repaired: false,
        request: Digest::of("the request"),
    }
}

#[tokio::test]
async fn a_turn_keeps_what_its_requests_were_made_from_and_each_text_once() {
    let home = home();
    let store = open(&home);
    let mut kept = Vec::new();
    for event in ["Ev1", "Ev2"] {
        let inbox = accept(&store, "slack:dm:U1", event).await;
        let open = ask(&store, inbox).await;
        let mut receipts = Receipts::default();
        let block = receipts.keep("<atoms>");
        let window =
            vec![Reference::Whole(40), Reference::Reduced(41, Digest::of("less")), Reference::Text { text: block }];
        let first = receipt(0, &mut receipts, [window.clone(), vec![Reference::Added(0)]].concat());
        let added = vec![Reference::Added(0), Reference::AddedReduced(1, Digest::of("less of it"))];
        let second = receipt(1, &mut receipts, [window, added].concat());
        [first, second].into_iter().for_each(|receipt| receipts.push(receipt));
        store.record(open.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
        kept.push(open);
    }
    let of_session = store.receipts_of_session(&"slack:dm:U1".parse().unwrap()).await.unwrap();
    let turns: Vec<TurnId> = of_session.iter().map(|(turn, _)| *turn).collect();
    assert_eq!(turns, [kept[0].turn, kept[0].turn, kept[1].turn, kept[1].turn]);
    let of_turn: Vec<Receipt> = of_session.into_iter().skip(2).map(|(_, receipt)| receipt).collect();
    assert_eq!(of_turn.iter().map(|receipt| receipt.call).collect::<Vec<_>>(), [0, 1]);
    let ids: Vec<i64> = {
        let stored = store.session_messages(&"slack:dm:U1".parse().unwrap(), true).await.unwrap();
        stored.iter().map(|stored| stored.entry.id).collect()
    };
    // The question and the answer of the second turn.
    let [question, answer] = ids[2..] else { panic!("{ids:?}") };
    assert_eq!(of_turn[0].before.messages[3], Reference::Whole(question));
    assert_eq!(of_turn[1].before.messages[4], Reference::Reduced(answer, Digest::of("less of it")));
    let mut same = receipt(1, &mut Receipts::default(), of_turn[1].before.messages.clone());
    assert_eq!(of_turn[1], same);
    same.call = 0;
    assert_ne!(of_turn[0], same, "it was made from less");
    assert_eq!(number(&home, "SELECT count(*) FROM text"), 6, "each once, however often it was sent");
    let system = store.text(&of_turn[0].system).await.unwrap();
    assert_eq!(system.as_deref(), Some("You are a help desk."));
    assert_eq!(store.text(&Digest::of("nothing")).await.unwrap(), None);
}

/// Notes each text that is to be written, whether or not it is there.
const NOTE_ATTEMPTS: [&str; 2] = [
    "CREATE TABLE attempt (body TEXT);
     CREATE TRIGGER attempts BEFORE INSERT ON text BEGIN INSERT INTO attempt VALUES (new.body); END",
    "CREATE TABLE attempt (body TEXT);
     CREATE FUNCTION note_attempt() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO attempt VALUES (new.body); RETURN new; END $$;
     CREATE TRIGGER attempts BEFORE INSERT ON text FOR EACH ROW EXECUTE FUNCTION note_attempt()",
];

/// Regression: each turn wrote the texts of all reduced messages in its window again. Those that were erased since, as
/// with another conversation that refers to them, are written.
#[tokio::test]
async fn what_was_reduced_long_ago_was_written_by_every_turn() {
    let home = home();
    let store = open(&home);
    let [sqlite, postgres] = NOTE_ATTEMPTS;
    asked(&home, |conn| conn.execute_batch(conn.either(sqlite, postgres)).unwrap());
    for (event, reduced, written) in [("Ev1", 500, 500), ("Ev2", 501, 4), ("Ev3", 501, 3)] {
        let open = ask(&store, accept(&store, "slack:dm:U1", event).await).await;
        let mut receipts = Receipts::default();
        let window: Vec<Reference> =
            (0..reduced).map(|id| Reference::Reduced(id, receipts.keep(format!("reduced {id}")))).collect();
        let receipt = receipt(0, &mut receipts, window);
        receipts.push(receipt);
        store.record(open.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
        let attempts = number(&home, "SELECT count(*) FROM attempt WHERE body LIKE 'reduced %'");
        let stored = number(&home, "SELECT count(*) FROM text WHERE body LIKE 'reduced %'");
        assert_eq!((attempts, stored), (written, reduced), "{event}");
        let erased = "DELETE FROM attempt; DELETE FROM text WHERE body IN ('reduced 1', 'reduced 2', 'reduced 3')";
        asked(&home, |conn| conn.execute_batch(erased).unwrap());
    }
}

/// Regression: all receipts of a conversation were held in memory with every message in view of each request, which
/// took 80 MB for 1,500 turns.
#[tokio::test]
async fn a_replay_was_given_every_message_in_view_of_every_request() {
    let home = home();
    let store = open(&home);
    for event in ["Ev1", "Ev2"] {
        let open = ask(&store, accept(&store, "slack:dm:U1", event).await).await;
        let mut receipts = Receipts::default();
        let block = Reference::Text { text: receipts.keep("<atoms>") };
        let first = receipt(0, &mut receipts, vec![Reference::Whole(40), block, Reference::Added(0)]);
        let second = receipt(1, &mut receipts, vec![Reference::Whole(40), Reference::Added(0), Reference::Added(1)]);
        [first, second].into_iter().for_each(|receipt| receipts.push(receipt));
        store.record(open.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    }
    let reading = store.clone();
    let read = move || reading.replayable(&"slack:dm:U1".parse().unwrap()).unwrap();
    let replayable = tokio::task::spawn_blocking(read).await.unwrap();
    let questions: Vec<i64> = replayable.dump.messages.iter().step_by(2).map(|stored| stored.id.unwrap()).collect();
    let [system, tools, blocks] = ["You are a help desk.", "[]", "<atoms>"].map(Digest::of);
    let request = |id: &i64| FirstRequest {
        last: Some(*id),
        budget: Budget { window: 8_000, limit: 4_000, answer: 2_000, seed_may_go: false },
        system: system.clone(),
        tools: tools.clone(),
        as_text: false,
        blocks: vec![blocks.clone()],
    };
    assert_eq!(replayable.requests, questions.iter().map(request).collect::<Vec<_>>());
    assert_eq!(replayable.texts.len(), 3, "{:?}", replayable.texts);
}

#[tokio::test]
async fn a_receipt_that_names_what_its_turn_does_not_have_is_refused_with_it() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, "slack:dm:U1", "Ev1").await;
    let open = ask(&store, inbox).await;
    let mut receipts = Receipts::default();
    let bad = receipt(0, &mut receipts, vec![Reference::Added(9)]);
    receipts.push(bad);
    store.record(open.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap_err();
    assert_eq!(number(&home, "SELECT count(*) FROM receipt"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM text"), 0);
    store.record(open.turn, recorded("q", "a"), NOW).await.unwrap();
}

/// Two questions of a conversation: what an attempt at the first has archived, and receipts of the second that quote it.
async fn quoting(store: &Store) -> (InboxId, OpenTurn, Receipts) {
    let [first, second] = [accept(store, "slack:dm:U1", "Ev1").await, accept(store, "slack:dm:U1", "Ev2").await];
    let begun = ask(store, first).await;
    let said = [Message::user("the password is heliotrope")];
    let ids = store.archive(begun.session, begun.turn, &said, NOW).await.unwrap();
    let mut receipts = Receipts::default();
    let mut quoting = receipt(0, &mut receipts, vec![Reference::Added(0)]);
    let quoted = receipts.keep("> the password is heliotrope");
    quoting.plan = quoting.plan.map(|plan| Plan { recalled: ids, recall: Some(quoted), ..plan });
    receipts.push(quoting);
    (first, ask(store, second).await, receipts)
}

/// Regression: whoever had the question erased later, left what had been quoted of the attempt: nothing names it any more.
#[tokio::test]
async fn what_a_receipt_quoted_of_an_attempt_stayed_when_that_was_forgotten() {
    let home = home();
    let store = open(&home);
    let (first, other, receipts) = quoting(&store).await;
    store.record(other.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap();
    store.finish(other.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    ask(&store, first).await;
    assert_eq!(number(&home, "SELECT count(*) FROM text WHERE body LIKE '%heliotrope%'"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM text WHERE body LIKE '%help desk%'"), 1);
}

/// Regression: it was kept if the question was then left to a turn of its own.
#[tokio::test]
async fn what_is_quoted_of_an_attempt_at_a_question_that_is_taken_along_is_not_kept() {
    for is_answered_along in [true, false] {
        let home = home();
        let store = open(&home);
        let (first, other, receipts) = quoting(&store).await;
        let BeginOutcome::Ask(along) = store.begin(first, None, Hold::Along, NOW).await.unwrap() else {
            panic!("it waits")
        };
        let also = if is_answered_along { vec![(along.turn, "U1".into())] } else { vec![] };
        store.record(other.turn, Recorded { receipts, also, ..recorded("q", "a") }, NOW).await.unwrap();
        assert_eq!(number(&home, "SELECT count(*) FROM text WHERE body LIKE '%heliotrope%'"), 0);
        assert_eq!(number(&home, "SELECT count(*) FROM receipt"), 1);
    }
}

const THREAD: &str = "slack:channel:C1:1.1";

/// A question in a thread.
async fn asked_at(store: &Store, event_id: &str, ts: &str) -> InboxId {
    let question = Inbound { ts: ts.into(), ..inbound(THREAD, event_id) };
    store.accept(&question, NOW).await.unwrap().expect("a new message")
}

/// Somebody deletes what they have written there to others.
async fn deleted_at(store: &Store, ts: &str) -> Result<Changed, StoreError> {
    let (message, thread) = (MessageRef::new("C1", ts), Some(THREAD.parse().unwrap()));
    let words = ["(a question was here)", "(an answer was here)"].map(str::to_owned);
    store.delete(&Deletion { message, thread, of: DeletedAuthor::Others }, Some(words), NOW).await
}

/// What was said there before.
fn zebra_before() -> Attachments {
    let said = vec![ThreadPost { by: "U2".into(), text: "a zebra".into() }];
    Attachments { thread: Some(Thread { said, people: vec![], is_cut: false }), ..Attachments::default() }
}

/// Regression: the turn that was answering in the thread had it in memory, and stored it with its answer.
#[tokio::test]
async fn what_was_deleted_in_a_thread_came_back_with_the_answer_under_way() {
    let home = home();
    let store = open(&home);
    let thread: SessionKey = THREAD.parse().unwrap();
    let inbox = asked_at(&store, "Ev1", "1.5").await;
    let anew = || Ok(Changed::Here { key: thread.clone(), anew: true });
    let attached = zebra_before();
    assert_eq!(deleted_at(&store, "1.2").await, Ok(Changed::Unknown), "nobody answers yet");

    let reading = ask(&store, inbox).await;
    assert_eq!(deleted_at(&store, "1.2").await, Ok(Changed::Nothing), "it was redelivered");
    assert_eq!(deleted_at(&store, "1.6").await, Ok(Changed::Unknown), "it was written after the question");
    assert_eq!(deleted_at(&store, "1.3").await, anew());
    assert_eq!(
        store.keep_attached(&reading, reading.live.revision, &attached, vec![]).await,
        Err(StoreError::Changed),
        "it was read before the deletion"
    );
    let asking = ask(&store, inbox).await;
    store.keep_attached(&asking, asking.live.revision, &attached, vec![]).await.unwrap();
    assert_eq!(deleted_at(&store, "1.3").await, Ok(Changed::Nothing), "it was redelivered");
    assert_eq!(deleted_at(&store, "1.7").await, Ok(Changed::Unknown), "it was written after the question");
    assert_eq!(number(&home, "SELECT count(*) FROM inbox WHERE message LIKE '%zebra%'"), 1);
    assert_eq!(deleted_at(&store, "1.4").await, anew());
    let mut receipts = Receipts::default();
    let background = Some(receipts.keep("U2: a zebra"));
    let of_it = Receipt { background, ..receipt(0, &mut receipts, vec![]) };
    receipts.push(of_it);
    let stale = Recorded { receipts, revision: asking.live.revision, ..recorded("q", "a") };
    assert_eq!(store.record(asking.turn, stale, NOW).await, Err(StoreError::Changed));
    for place in ["text WHERE body", "inbox WHERE message"] {
        assert_eq!(number(&home, &format!("SELECT count(*) FROM {place} LIKE '%zebra%'")), 0, "{place}");
    }
    assert_eq!(number(&home, "SELECT count(*) FROM early_change"), 5, "the messages may come yet");

    let anew = ask(&store, inbox).await;
    store.keep_attached(&anew, anew.live.revision, &attached, vec![]).await.unwrap();
    assert_eq!(deleted_at(&store, "1.4").await, Ok(Changed::Nothing), "it was redelivered");
    store.record(anew.turn, Recorded { revision: anew.live.revision, ..recorded("q", "a") }, NOW).await.unwrap();
    store.finish(anew.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let next = ask(&store, asked_at(&store, "Ev2", "1.9").await).await;
    let holds = "nothing is read where the window holds something of the thread";
    assert_eq!(deleted_at(&store, "1.1").await, Ok(Changed::Unknown), "{holds}");
    store.record(next.turn, Recorded { revision: next.live.revision, ..recorded("q", "a") }, NOW).await.unwrap();
}

/// Regression: an answer began anew because of what only a parked question had.
#[tokio::test]
async fn a_thread_that_a_parked_question_had_read_held_up_the_answer_to_another() {
    let home = home();
    let store = open(&home);
    let parked = asked_at(&store, "Ev1", "1.5").await;
    let reading = ask(&store, parked).await;
    store.keep_attached(&reading, reading.live.revision, &zebra_before(), vec![]).await.unwrap();
    store.park(parked, "damaged", vec![], NOW).await.unwrap();
    let other = ask(&store, asked_at(&store, "Ev2", "1.6").await).await;
    store.record(other.turn, Recorded { revision: other.live.revision, ..recorded("q", "a") }, NOW).await.unwrap();
    store.finish(other.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let next = ask(&store, asked_at(&store, "Ev3", "1.7").await).await;
    assert_eq!(deleted_at(&store, "1.2").await, Ok(Changed::Unknown));
    assert_eq!(number(&home, "SELECT count(*) FROM inbox WHERE message LIKE '%zebra%'"), 0);
    store.record(next.turn, Recorded { revision: next.live.revision, ..recorded("q", "a") }, NOW).await.unwrap();
}

/// Regression: what was read of a thread stayed where it began with a message of the bot that was no answer. In a
/// direct message, the front does not say whose thread it was.
#[tokio::test]
async fn a_thread_stayed_as_it_was_read_when_the_bots_own_message_that_began_it_was_deleted() {
    for (channel, key, named) in [("C1", THREAD, Some(THREAD)), ("D1", "slack:dm:U1:1.1", None)] {
        let home = home();
        let store = open(&home);
        let reply_to = ReplyTo { channel: channel.into(), thread_ts: Some("1.1".into()) };
        let question = Inbound { ts: "1.5".into(), reply_to, ..inbound(key, "Ev1") };
        let asked = ask(&store, store.accept(&question, NOW).await.unwrap().expect("a new message")).await;
        let mut receipts = Receipts::default();
        let background = Some(receipts.keep("the bot: a zebra"));
        let of_it = Receipt { background, ..receipt(0, &mut receipts, vec![]) };
        receipts.push(of_it);
        store.record(asked.turn, Recorded { receipts, ..recorded("q", "a") }, NOW).await.unwrap();
        store.finish(asked.turn, vec![sent(0, Some("1.6"))], vec![], NOW).await.unwrap();
        for (ts, left) in [("1.2", 1), ("1.1", 0)] {
            let (message, thread) = (MessageRef::new(channel, ts), named.map(|key| key.parse().unwrap()));
            let deletion = Deletion { message, thread, of: DeletedAuthor::Own };
            assert_eq!(store.delete(&deletion, None, NOW).await, Ok(Changed::Unknown), "what is deleted is to stay");
            let words = ["(a question was here)", "(an answer was here)"].map(str::to_owned);
            assert_eq!(store.delete(&deletion, Some(words), NOW).await, Ok(Changed::Unknown), "nobody answers there");
            let kept = number(&home, "SELECT count(*) FROM text WHERE body LIKE '%zebra%'");
            assert_eq!(kept, left, "{ts} in {channel}");
        }
    }
}
