//! What one person has written, erased wherever it was.

use std::time::Duration;

use pmk_core::{FrontName, Origin, Role};

use super::{
    archives::{found, say},
    escalations::marker,
    receipts::receipt,
    retention::{columns_with, key},
    *,
};
use crate::{
    chat::{DeletedAuthor, Deletion, Edit, Thread, ThreadPost},
    escalation::{EscalationRemark, Marker},
    store::{ErasedMessages, ErasedOfPerson, Purpose, WrittenIn},
};

const SHARED: &str = "slack:channel:C1:1.1";
const OWN: &str = "slack:dm:U1";
const WORDS: &str = "(gone)";

/// A message that waits.
async fn accepted(store: &Store, conversation: &str, user: &str, event_id: &str, text: &str) -> InboxId {
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: Some("1.1".into()) };
    let (user, text, ts) = (user.into(), text.into(), event_id.into());
    let message = Inbound { user, reply_to, text, ts, ..inbound(conversation, event_id) };
    store.accept(&message, NOW).await.unwrap().expect("a new message")
}

/// A message and its answer.
async fn answered(store: &Store, conversation: &str, user: &str, event_id: &str, text: &str) -> OpenTurn {
    let open = ask(store, accepted(store, conversation, user, event_id, text).await).await;
    let recorded = Recorded { revision: open.live.revision, ..recorded(text, "an answer") };
    store.record(open.turn, recorded, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    open
}

/// A conversation that comes from elsewhere.
async fn import(store: &Store, conversation: &str) {
    restore(store, conversation, [Message::user("an imported zebra"), Message::assistant("it has stripes")]).await;
}

/// A conversation with these messages, which nobody has written here.
async fn restore(store: &Store, conversation: &str, said: [Message; 2]) {
    let messages = said.map(|message| DumpedMessage { id: None, message, tokens: 9, created_at_ms: NOW }).into();
    let dump = SessionDump {
        key: key(conversation),
        created_at_ms: NOW,
        active_at_ms: NOW,
        turns: 1,
        dropped_turns: 0,
        marker_template: None,
        verbosity: None,
        messages,
        has_made_up_times: false,
        live: vec![],
        cases: vec![],
        images: vec![],
    };
    store.restore(dump, false, NOW).await.unwrap();
}

/// What was said before in a thread.
fn thread(by: &str, text: &str) -> Attachments {
    let said = vec![ThreadPost { by: by.into(), text: text.into() }];
    Attachments { thread: Some(Thread { said, people: vec![], is_cut: false }), ..Attachments::default() }
}

async fn erase_in(store: &Store, conversation: &str, user: &str) -> Result<ErasedOfPerson, StoreError> {
    store.erase_from(&key(conversation), user, WORDS, Duration::ZERO, NOW).await
}

async fn erase(store: &Store, user: &str) -> Result<ErasedOfPerson, StoreError> {
    erase_in(store, SHARED, user).await
}

fn erased(messages: usize) -> ErasedOfPerson {
    ErasedOfPerson::Messages(ErasedMessages { messages, ..ErasedMessages::default() })
}

/// How many messages went with a whole conversation.
fn of_whole(erased: Result<ErasedOfPerson, StoreError>) -> usize {
    match erased {
        Ok(ErasedOfPerson::Conversation(erased)) => erased.messages,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_one_person_has_written_is_erased_and_what_others_have_stays() {
    let home = home();
    let store = open(&home);
    let session = answered(&store, SHARED, "U1", "Ev1", "a zebra?").await.session;
    answered(&store, SHARED, "U2", "Ev2", "a giraffe?").await;
    answered(&store, SHARED, "U12", "Ev3", "an okapi?").await;
    say(&store, OWN, "Ev4", "a lion?", "it roars").await;
    let written_in = [WrittenIn { key: key(SHARED), whole: false }, WrittenIn { key: key(OWN), whole: true }];
    assert_eq!(store.written_in_by("U1").await.unwrap(), written_in);
    assert_eq!(store.written_in_by("U3").await.unwrap(), []);

    let revision = || number(&home, &format!("SELECT revision FROM session WHERE key = '{SHARED}'"));
    let before = revision();
    assert_eq!(erase(&store, "U1").await, Ok(erased(1)));
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(found(&store, session, "zebra").await, [0; 0]);
    assert_eq!(live_texts(&store, SHARED).await[0], WORDS);
    assert!(revision() > before, "a window that somebody remembers is not used any more");
    for other in ["giraffe", "okapi"] {
        assert_eq!(columns_with(&home, other), [("message", "blocks")], "{other}");
        assert_eq!(found(&store, session, other).await.len(), 1, "{other}");
    }
    assert_eq!(store.written_in_by("U1").await.unwrap(), written_in[1..], "there is nothing left in the other");
    assert_eq!(erase(&store, "U1").await, Ok(erased(0)));
    // The conversation goes on.
    answered(&store, SHARED, "U1", "Ev5", "a zebra again?").await;
    assert_eq!(erase(&store, "U1").await, Ok(erased(1)));
    assert_eq!(of_whole(erase_in(&store, OWN, "U1").await), 2);
}

#[tokio::test]
async fn of_messages_of_several_people_that_were_answered_together_only_those_of_one_go() {
    let home = home();
    let store = open(&home);
    let mut turns = vec![];
    for (user, event, text) in [("U1", "Ev1", "zebra"), ("U2", "Ev2", "giraffe"), ("U1", "Ev3", "zebras")] {
        turns.push(ask(&store, accepted(&store, SHARED, user, event, text).await).await.turn);
    }
    let pieces = vec![(turns[0], 0..5), (turns[1], 7..14), (turns[2], 16..22)];
    let also = vec![(turns[0], "U1".into()), (turns[1], "U2".into())];
    let recorded = Recorded { also, pieces, ..recorded("zebra\n\ngiraffe\n\nzebras", "an answer") };
    store.record(turns[2], recorded, NOW).await.unwrap();
    store.finish(turns[2], vec![sent(0, None)], vec![], NOW).await.unwrap();
    assert_eq!(erase(&store, "U1").await, Ok(erased(2)));
    assert_eq!(live_texts(&store, SHARED).await[0], format!("{WORDS}\n\ngiraffe\n\n{WORDS}"));
    assert_eq!(columns_with(&home, "zebra"), []);
}

#[tokio::test]
async fn what_is_not_answered_yet_is_not_erased_and_what_is_parked_is() {
    let home = home();
    let store = open(&home);
    answered(&store, SHARED, "U1", "Ev1", "a zebra?").await;
    answered(&store, SHARED, "U2", "Ev3", "a giraffe?").await;
    let waits = accepted(&store, SHARED, "U1", "Ev2", "a second zebra?").await;
    let refused = StoreError::Unanswered(key(SHARED));
    assert_eq!(store.messages_may_be_erased(&key(SHARED), "U1").await, Err(refused.clone()));
    assert_eq!(erase(&store, "U1").await, Err(refused.clone()));
    assert_eq!(live_texts(&store, SHARED).await[0], "a zebra?", "nothing was erased");
    // It does not keep what others have written.
    assert_eq!(store.messages_may_be_erased(&key(SHARED), "U2").await, Ok(()));

    store.park(waits, "a test", vec![], NOW).await.unwrap();
    assert_eq!(erase(&store, "U1").await, Err(refused), "the person does not know it yet");
    store.parked_told(waits).await.unwrap();
    assert_eq!(
        erase(&store, "U1").await,
        Ok(ErasedOfPerson::Messages(ErasedMessages { messages: 2, parked: 1, ..ErasedMessages::default() }))
    );
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(store.parked().await.unwrap().len(), 0);
}

#[tokio::test]
async fn of_a_parked_answer_to_several_people_only_the_words_of_one_go() {
    let home = home();
    let store = open(&home);
    let mut inboxes = vec![];
    for (user, event, text) in [("U2", "Ev1", "giraffe"), ("U1", "Ev2", "zebra")] {
        inboxes.push(accepted(&store, SHARED, user, event, text).await);
    }
    let [first, last] = [ask(&store, inboxes[0]).await.turn, ask(&store, inboxes[1]).await.turn];
    let recorded = Recorded {
        also: vec![(first, "U2".into())],
        pieces: vec![(first, 0..7), (last, 9..14)],
        parts: vec![Outgoing::reply("of a zebra"), Outgoing::reply("and its zebra foal")],
        ..recorded("giraffe\n\nzebra", "an answer")
    };
    store.record(last, recorded, NOW).await.unwrap();
    store.park(inboxes[1], "a test", vec![], NOW).await.unwrap();
    store.parked_told(inboxes[1]).await.unwrap();
    let gone = ErasedMessages { messages: 1, parked: 1, ..ErasedMessages::default() };
    assert_eq!(erase(&store, "U1").await, Ok(ErasedOfPerson::Messages(gone)));
    assert_eq!(live_texts(&store, SHARED).await, [format!("giraffe\n\n{WORDS}"), "an answer".to_owned()]);
    assert_eq!(columns_with(&home, "zebra"), []);
}

#[tokio::test]
async fn an_atom_that_was_made_from_a_message_is_not_kept_beside_it() {
    let home = home();
    let store = open(&home);
    let open = ask(&store, accepted(&store, SHARED, "U1", "Ev1", "a zebra").await).await;
    let purpose = Purpose::Notice { atom: "zebras have stripes".into(), saved_in: None };
    let parts = vec![Outgoing { purpose, ..Outgoing::reply("is this right?") }];
    store.record(open.turn, Recorded { parts, ..recorded("a zebra", "thanks") }, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, Some("1.9"))], vec![], NOW).await.unwrap();
    answered(&store, SHARED, "U2", "Ev2", "a giraffe?").await;
    assert_eq!(columns_with(&home, "zebra"), [("message", "blocks"), ("outbox", "how")]);
    assert_eq!(erase(&store, "U1").await, Ok(erased(1)));
    assert_eq!(columns_with(&home, "zebra"), []);
}

#[tokio::test]
async fn a_message_that_waits_does_not_keep_what_was_said_before_in_its_thread() {
    let home = home();
    let store = open(&home);
    for (conversation, event, attached) in
        [(SHARED, "Ev1", thread("Han (U1)", "a zebra")), ("slack:channel:C2:1.1", "Ev2", thread("U12", "a giraffe"))]
    {
        let open = ask(&store, accepted(&store, conversation, "U2", event, "which?").await).await;
        store.keep_attached(&open, open.live.revision, &attached, vec![]).await.unwrap();
    }
    assert_eq!(columns_with(&home, "zebra"), [("inbox", "message")]);
    store.erase_elsewhere("U1", vec![]).await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(columns_with(&home, "giraffe"), [("inbox", "message")]);
}

/// It had them in memory, and stored what its receipts refer to.
#[tokio::test]
async fn an_answer_under_way_brought_back_the_earlier_messages_that_were_erased() {
    let home = home();
    let store = open(&home);
    for (conversation, event, by) in [(SHARED, "Ev1", "U1"), ("slack:channel:C2:1.1", "Ev2", "U12")] {
        let open = ask(&store, accepted(&store, conversation, "U2", event, "which?").await).await;
        store.keep_attached(&open, open.live.revision, &thread(by, "a zebra"), vec![]).await.unwrap();
        store.erase_elsewhere("U1", vec![]).await.unwrap();
        let recorded = Recorded { revision: open.live.revision, ..recorded("which?", "an answer") };
        let expected = if by == "U1" { Err(StoreError::Changed) } else { Ok(()) };
        assert_eq!(store.record(open.turn, recorded, NOW).await, expected, "{by}");
    }
}

/// Its thread was read anew, and Slack still has everything.
#[tokio::test]
async fn an_answer_that_began_anew_read_again_what_was_erased_of_its_thread() {
    let home = home();
    let store = open(&home);
    let inbox = accepted(&store, SHARED, "U2", "Ev1", "which?").await;
    let open = ask(&store, inbox).await;
    let post = |by: &str, text: &str| ThreadPost { by: by.into(), text: text.into() };
    let said = vec![post("U1", "a zebra"), post("U12", "a lion"), post("U3", "<@U1> has seen a zebra")];
    let read = Thread { said, people: ["U1", "U12", "U3"].map(str::to_owned).into(), is_cut: false };
    let attached = Attachments { thread: Some(read), ..Attachments::default() };
    store.keep_attached(&open, open.live.revision, &attached, vec![]).await.unwrap();
    store.erase_elsewhere("U1", vec![]).await.unwrap();
    let anew = ask(&store, inbox).await;
    let (said, people) = (vec![post("U12", "a lion")], ["U12", "U3"].map(str::to_owned).into());
    assert_eq!(anew.inbound.attached.thread, Some(Thread { said, people, is_cut: true }));
    assert_eq!(columns_with(&home, "zebra"), []);
    store.erase_elsewhere("U1", vec![]).await.unwrap();
    let recorded = Recorded { revision: anew.live.revision, ..recorded("which?", "an answer") };
    assert_eq!(store.record(anew.turn, recorded, NOW).await, Ok(()), "nothing of theirs was left");
}

#[tokio::test]
async fn many_messages_are_erased_in_pieces() {
    let home = home();
    let store = open(&home);
    answered(&store, SHARED, "U2", "Ev", "a giraffe?").await;
    for number in 0..60 {
        let event = format!("Ev{number:02}");
        let open = ask(&store, accepted(&store, SHARED, "U1", &event, "a zebra?").await).await;
        let mut receipts = Receipts::default();
        let reduced = receipts.keep(format!("zebra {number}"));
        let with = receipt(0, &mut receipts, vec![Reference::AddedReduced(0, reduced)]);
        receipts.push(with);
        let recorded = Recorded { receipts, revision: open.live.revision, ..recorded("a zebra?", "an answer") };
        store.record(open.turn, recorded, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    }
    assert_eq!(columns_with(&home, "zebra"), [("message", "blocks"), ("text", "body")]);
    assert_eq!(erase(&store, "U1").await, Ok(erased(60)));
    assert_eq!(columns_with(&home, "zebra"), []);
}

#[tokio::test]
async fn a_conversation_in_which_somebody_else_has_written_meanwhile_is_not_erased_as_a_whole() {
    let home = home();
    let store = open(&home);
    answered(&store, SHARED, "U1", "Ev1", "a zebra?").await;
    assert_eq!(store.written_in_by("U1").await.unwrap(), [WrittenIn { key: key(SHARED), whole: true }]);
    answered(&store, SHARED, "U2", "Ev2", "a giraffe?").await;
    assert_eq!(erase(&store, "U1").await, Ok(erased(1)));
    assert_eq!(columns_with(&home, "giraffe"), [("message", "blocks")]);
}

#[tokio::test]
async fn imported_messages_are_a_persons_own_in_direct_messages_and_nobodys_elsewhere() {
    let home = home();
    let store = open(&home);
    for conversation in [OWN, "slack:dm:U1:1.1", "slack:dm:U12", SHARED] {
        import(&store, conversation).await;
    }
    // One with what everybody begins with.
    let seed = [(Role::User, Origin::Seed), (Role::Assistant, Origin::SeedAck)];
    restore(&store, "slack:dm:U13", seed.map(|(role, origin)| Message::text(role, origin, "an okapi"))).await;
    answered(&store, SHARED, "U1", "Ev1", "a giraffe?").await;
    let written_in = store.written_in_by("U1").await.unwrap();
    let listed: Vec<_> = written_in.iter().map(|found| (found.key.to_string(), found.whole)).collect();
    assert_eq!(listed, [(OWN.to_owned(), true), ("slack:dm:U1:1.1".to_owned(), true), (SHARED.to_owned(), false)]);
    let of_shared = ErasedMessages { messages: 1, imported: 1, ..ErasedMessages::default() };
    assert_eq!(erase(&store, "U1").await, Ok(ErasedOfPerson::Messages(of_shared)));
    assert_eq!(columns_with(&home, "giraffe"), []);
    assert_eq!(of_whole(erase_in(&store, OWN, "U1").await), 2);
    assert_eq!(erase_in(&store, "slack:dm:U13", "U1").await, Ok(erased(0)));
    assert_eq!(columns_with(&home, "okapi"), [("message", "blocks")]);
}

#[tokio::test]
async fn what_was_erased_and_is_edited_is_not_answered_again() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let home = home();
    let store = open(&home);
    answered(&store, SHARED, "U1", "Ev1", "a zebra?").await;
    answered(&store, SHARED, "U2", "Ev2", "a giraffe?").await;
    assert_eq!(erase(&store, "U1").await, Ok(erased(1)));
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: Some("1.1".into()) };
    let message = Inbound { reply_to, text: "two zebras?".into(), ts: "Ev1".into(), ..inbound(SHARED, "Ev3") };
    let (at, manner) = ("9.9".into(), None);
    let edit = Edit { message, at, is_for_us: true, comes_alone: true, manner, lost_files: false };
    // By then nobody remembers any more which events came.
    assert_eq!(store.edit(&edit, NOW + 3 * DAY_MS).await, Ok(Changed::Nothing));
    assert_eq!(columns_with(&home, "zebra"), []);
}

/// What it says is stored until its message comes, which it may never do.
#[tokio::test]
async fn an_edit_of_a_message_that_never_arrived_was_kept_when_its_author_was_erased() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    answered(&store, SHARED, "U2", "Ev1", "a giraffe?").await;
    let reply_to = ReplyTo { channel: "C1".into(), thread_ts: Some("1.1".into()) };
    let message =
        Inbound { user: "U1".into(), reply_to, text: "a zebra?".into(), ts: "9.1".into(), ..inbound(SHARED, "Ev2") };
    let (at, manner) = ("9.2".into(), None);
    let edit = Edit { message, at, is_for_us: true, comes_alone: false, manner, lost_files: false };
    let comes = async || {
        assert_eq!(store.edit(&edit, NOW).await, Ok(Changed::Unknown));
        assert_eq!(columns_with(&home, "zebra"), [("early_change", "text")]);
    };
    comes().await;
    store.erase_elsewhere("U1", vec![]).await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);
    // Nor is it kept when its conversation is erased, or once it is too old.
    comes().await;
    store.erase_conversation(&key(SHARED), Erasing::Anyway, Duration::ZERO, NOW).await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);
    comes().await;
    let later = NOW + SEEN_FOR.as_millis() as i64;
    it_is(&home, later);
    store.forget_early_changes(later).await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);
}

#[tokio::test]
async fn what_a_contact_has_said_about_a_question_that_waits_goes_with_their_conversation() {
    let home = home();
    let store = open(&home);
    let asked = ask(&store, accepted(&store, SHARED, "U5", "Ev1", "which?").await).await;
    let said = answered(&store, OWN, "U1", "Ev2", "do you mean the zebra?").await;
    let remark =
        |user: &str, text: &str, turn| EscalationRemark { user_id: user.into(), text: text.into(), turn, to: None };
    let exchange = vec![
        remark("U1", "do you mean the zebra?", Some(said.turn)),
        remark("U1", "or another zebra?", None),
        remark("U2", "the giraffe", None),
    ];
    let escalation = Some(EscalationUpdate::Asked(FrontName::Slack, Marker { exchange, ..marker(&["U1", "U2"]) }));
    store.record(asked.turn, Recorded { escalation, ..recorded("which?", "forwarded") }, NOW).await.unwrap();
    store.finish(asked.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let texts = async || -> Vec<String> {
        let waiting = store.escalations().await.unwrap();
        waiting[0].exchange.iter().map(|said| said.text.clone()).collect()
    };
    assert_eq!(of_whole(erase_in(&store, OWN, "U1").await), 2);
    assert_eq!(texts().await, ["or another zebra?", "the giraffe"]);
    store.erase_elsewhere("U1", vec![]).await.unwrap();
    assert_eq!(texts().await, ["the giraffe"]);
}

#[tokio::test]
async fn earlier_messages_of_threads_in_which_a_person_is_named_are_erased() {
    let home = home();
    let store = open(&home);
    let mut receipts = Receipts::default();
    for text in ["U1: a zebra", "U12: a giraffe", "you are a help desk of U1"] {
        receipts.keep(text);
    }
    for (number, earlier) in [(0, "U1: a zebra"), (1, "U12: a giraffe")] {
        let of_it = Receipt { background: Some(Digest::of(earlier)), ..receipt(number, &mut receipts, vec![]) };
        receipts.push(of_it);
    }
    let open = ask(&store, accepted(&store, SHARED, "U3", "Ev1", "which?").await).await;
    store.record(open.turn, Recorded { receipts, ..recorded("which?", "an answer") }, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let threads = store.threads_that_name("U1").await.unwrap();
    assert_eq!(threads, [Digest::of("U1: a zebra")]);
    store.erase_elsewhere("U1", threads).await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);
    for stays in ["giraffe", "help desk of U1"] {
        assert_eq!(columns_with(&home, stays), [("text", "body")], "{stays}");
    }
}

/// Only the text from before that was known.
#[tokio::test]
async fn what_policies_had_left_of_earlier_messages_of_a_thread_outlived_them() {
    let home = home();
    let store = open(&home);
    let shortened = async |event: &str| {
        let open = ask(&store, accepted(&store, SHARED, "U3", event, "which?").await).await;
        let mut receipts = Receipts::default();
        let [whole, less, least] =
            ["U1: a zebra, and another", "U1: a zebra…", "a zebra…"].map(|text| receipts.keep(text));
        for (call, before, after) in [(0, &whole, &less), (1, &less, &least)] {
            let shown = vec![Reference::Text { text: before.clone() }, Reference::Added(0)];
            let mut of_it = Receipt { background: Some(whole.clone()), ..receipt(call, &mut receipts, shown) };
            of_it.plan.as_mut().unwrap().replaced = vec![(0, after.clone())];
            receipts.push(of_it);
        }
        let recorded = Recorded { receipts, revision: open.live.revision, ..recorded("which?", "an answer") };
        store.record(open.turn, recorded, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
        assert_eq!(number(&home, "SELECT count(*) FROM text WHERE body LIKE '%zebra%'"), 3, "{event}");
    };
    shortened("Ev1").await;
    let threads = store.threads_that_name("U1").await.unwrap();
    assert_eq!(threads.len(), 3);
    store.erase_elsewhere("U1", threads).await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);

    shortened("Ev2").await;
    let (message, thread) = (MessageRef::new("C1", "1.2"), Some(key(SHARED)));
    let deletion = Deletion { message, thread, of: DeletedAuthor::Others };
    store.delete(&deletion, Some([WORDS, WORDS].map(str::to_owned)), NOW).await.unwrap();
    assert_eq!(columns_with(&home, "zebra"), []);
    assert_eq!(store.threads_that_name("U1").await.unwrap(), []);
}
