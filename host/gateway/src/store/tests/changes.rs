//! Changes that people make to messages they have sent.

use std::sync::Arc;

use pmk_core::{
    Archive as _, Block, Guard, ImageId, Message, Origin, Plan, Role, SessionKey, Transcript, structure::pair_tools,
};
use proptest::prelude::*;

use super::*;
use crate::chat::{Addressing, Content, DeletedAuthor, Deletion, Edit, File};

const KEY: &str = "slack:dm:U1";
const WORDS: [&str; 2] = ["(a question was here)", "(an answer was here)"];

fn words() -> Option<[String; 2]> {
    Some(WORDS.map(str::to_owned))
}

pub(in crate::store::tests) fn at(number: usize) -> String {
    format!("17000000{number:02}.000100")
}

pub(in crate::store::tests) fn written(number: usize, text: &str) -> Inbound {
    Inbound { ts: at(number), text: text.into(), ..inbound(KEY, &format!("Ev{number}")) }
}

pub(in crate::store::tests) async fn say(store: &Store, number: usize, text: &str) -> InboxId {
    store.accept(&written(number, text), NOW).await.unwrap().expect("a new message")
}

/// A finished turn with so many rounds of tool calls.
pub(in crate::store::tests) async fn answered(
    store: &Store,
    number: usize,
    text: &str,
    answer: &str,
    rounds: usize,
) -> OpenTurn {
    let inbox = say(store, number, text).await;
    let open = ask(store, inbox).await;
    let mut messages = vec![Message::user(&*open.inbound.text)];
    for round in 0..rounds {
        let id = format!("call-{round}");
        let call = Block::ToolUse { id: id.clone(), name: "mra_ask".into(), input: json!({"repo": "erp"}) };
        let result = Block::ToolResult { tool_use_id: id, content: "found".into(), is_error: false };
        messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] });
        messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] });
    }
    messages.push(Message::assistant(answer));
    let messages = messages.into_iter().map(|message| Entry::new(0, message)).collect();
    let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
    let revision = open.live.revision;
    let recorded = Recorded { messages, outcome, revision, ..recorded("", answer) };
    store.record(open.turn, recorded, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, Some(&format!("reply-{number}")))], vec![], NOW).await.unwrap();
    open
}

pub(in crate::store::tests) fn edit(number: usize, text: &str, second: u32) -> Edit {
    let at = format!("18000000{second:02}.000000");
    Edit { message: written(number, text), at, is_for_us: true, comes_alone: false, manner: None, lost_files: false }
}

pub(in crate::store::tests) fn here(anew: bool) -> Changed {
    Changed::Here { key: KEY.parse().unwrap(), anew }
}

fn deletion(channel: &str, ts: &str) -> Deletion {
    Deletion { message: MessageRef::new(channel, ts), thread: None, of: DeletedAuthor::Us }
}

pub(in crate::store::tests) async fn deleted(store: &Store, ts: &str) -> Changed {
    store.delete(&deletion("D1", ts), words(), NOW).await.unwrap()
}

pub(in crate::store::tests) async fn waits_as(store: &Store, inbox: InboxId) -> String {
    ask(store, inbox).await.inbound.text
}

#[tokio::test]
async fn a_question_that_waits_is_asked_as_it_was_edited_last() {
    let home = home();
    let store = open(&home);
    let inbox = say(&store, 1, "one").await;
    assert_eq!(store.edit(&edit(1, "two", 1), NOW).await, Ok(here(false)));
    assert_eq!(store.edit(&edit(1, "three", 2), NOW).await, Ok(here(false)));
    assert_eq!(store.edit(&edit(1, "two", 1), NOW).await, Ok(Changed::Nothing), "an earlier one that comes late");
    assert_eq!(store.edit(&edit(1, "three", 2), NOW).await, Ok(Changed::Nothing), "the same again");
    let begun = ask(&store, inbox).await;
    assert_eq!(begun.inbound.text, "three");
    assert_eq!(store.edit(&edit(1, "four", 3), NOW).await, Ok(here(true)), "its turn is under way");
    let stale = Recorded { revision: begun.live.revision, ..recorded("three", "an answer to old words") };
    assert_eq!(store.record(begun.turn, stale, NOW).await, Err(StoreError::Changed));
    let anew = ask(&store, inbox).await;
    assert_eq!((&*anew.inbound.text, anew.turn), ("four", begun.turn));
    let fresh = Recorded { revision: anew.live.revision, ..recorded("four", "a") };
    store.record(anew.turn, fresh, NOW).await.unwrap();
    assert_eq!(live_texts(&store, KEY).await, ["four", "a"]);
}

/// Regression: what became a command as it was edited counted as one that an earlier attempt may have carried out.
#[tokio::test]
async fn an_attempt_at_other_words_was_taken_for_one_at_the_words_as_edited() {
    let home = home();
    let store = open(&home);
    let inbox = say(&store, 1, "one").await;
    assert_eq!(ask(&store, inbox).await.begun_at_ms, None);
    assert_eq!(ask(&store, inbox).await.begun_at_ms, Some(NOW));
    store.edit(&edit(1, "one", 1), NOW).await.unwrap();
    assert_eq!(ask(&store, inbox).await.begun_at_ms, Some(NOW), "the words are the same");
    store.edit(&edit(1, "two", 2), NOW).await.unwrap();
    let edited = ask(&store, inbox).await;
    assert_eq!((edited.resumed, edited.begun_at_ms), (true, None));
    assert_eq!(ask(&store, inbox).await.begun_at_ms, Some(NOW));
}

#[tokio::test]
async fn a_change_that_comes_before_its_message_is_not_lost() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    assert_eq!(store.edit(&edit(1, "as edited", 1), NOW).await, Ok(Changed::Unknown));
    let inbox = say(&store, 1, "as it was").await;
    assert_eq!(waits_as(&store, inbox).await, "as edited");
    assert_eq!(store.edit(&edit(1, "as it was", 0), NOW).await, Ok(Changed::Nothing));
    assert_eq!(deleted(&store, &at(2)).await, Changed::Unknown);
    assert_eq!(store.edit(&edit(2, "edited before", 1), NOW).await, Ok(Changed::Unknown));
    assert_eq!(store.accept(&written(2, "gone by now"), NOW).await, Ok(None));
    assert_eq!(store.open_work().await.unwrap().pending.len(), 1);
    // After a day it has no effect any more: the message would have arrived by then. Nor is it stored for long.
    deleted(&store, &at(3)).await;
    deleted(&store, &at(4)).await;
    let later = NOW + SEEN_FOR.as_millis() as i64;
    it_is(&home, later);
    assert!(store.accept(&written(3, "x"), later).await.unwrap().is_some());
    for n in 5..=20 {
        store.accept(&written(n, "x"), later).await.unwrap();
    }
    assert_eq!(number(&home, "SELECT count(*) FROM early_change"), 0);
}

/// Events arrive in any order, and an edit must not restore text from before a deletion.
#[tokio::test]
async fn an_edit_that_comes_after_the_deletion_of_its_message_is_not_kept() {
    let home = home();
    let store = open(&home);
    assert_eq!(deleted(&store, &at(1)).await, Changed::Unknown);
    assert_eq!(store.accept(&written(1, "gone by now"), NOW).await, Ok(None));
    assert_eq!(store.edit(&edit(1, "as it was edited", 1), NOW).await, Ok(Changed::Nothing));
    assert_eq!(number(&home, "SELECT count(*) FROM inbox WHERE message IS NOT NULL OR edited IS NOT NULL"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM early_change"), 0);
}

/// For example, a mention that was edited before it arrived.
#[tokio::test]
async fn a_message_that_comes_as_it_was_edited_is_not_asked_as_it_was_before() {
    let home = home();
    let store = open(&home);
    let inbox = say(&store, 1, "two").await;
    assert_eq!(store.edit(&edit(1, "two", 2), NOW).await, Ok(Changed::Nothing));
    assert_eq!(store.edit(&edit(1, "one", 1), NOW).await, Ok(Changed::Nothing), "an earlier one that comes late");
    assert_eq!(waits_as(&store, inbox).await, "two");
}

#[tokio::test]
async fn a_question_that_is_asked_again_knows_when_it_was_edited_last() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "one", "a", 0).await;
    assert_eq!(store.edit(&edit(1, "three", 2), NOW).await, Ok(here(false)));
    let again = store.again(("U1", false), &MessageRef::new("D1", at(1)), reaction("wish"), NOW).await.unwrap();
    let RegenerateOutcome::Taken(again) = again else { panic!("{again:?}") };
    assert_eq!(store.edit(&edit(1, "two", 1), NOW).await, Ok(Changed::Nothing), "an earlier one that comes late");
    assert_eq!(waits_as(&store, again.inbox).await, "three");
}

#[tokio::test]
async fn a_question_that_is_deleted_while_it_waits_is_called_off_and_its_text_is_gone() {
    let home = home();
    let store = open(&home);
    let inbox = say(&store, 1, "a secret").await;
    assert_eq!(deleted(&store, &at(1)).await, here(false));
    assert_eq!(deleted(&store, &at(1)).await, Changed::Nothing);
    let open = ask(&store, inbox).await;
    assert_eq!((open.called_off, &*open.inbound.text), (Some(CalledOff::Deleted), ""));
    store.finish(open.turn, vec![], vec![], NOW).await.unwrap();
    assert_eq!(live_texts(&store, KEY).await, [""; 0]);
    assert_eq!(store.edit(&edit(1, "a secret once more", 1), NOW).await, Ok(Changed::Nothing));
    // A parked question is closed, too.
    let parked = say(&store, 2, "another").await;
    ask(&store, parked).await;
    store.park(parked, "damaged", vec![], NOW).await.unwrap();
    assert_eq!(deleted(&store, &at(2)).await, here(true));
    assert_eq!(ask(&store, parked).await.called_off, Some(CalledOff::Deleted));
    assert_eq!(number(&home, "SELECT count(*) FROM inbox WHERE message LIKE '%secret%'"), 0);
}

#[tokio::test]
async fn nothing_is_left_of_a_question_that_was_stopped_and_edited_and_deleted_while_it_waited() {
    let home = home();
    let store = open(&home);
    let inbox = say(&store, 1, "a question").await;
    let stopped = store.stop(&KEY.parse().unwrap(), vec![inbox], "U1", None, NOW).await;
    assert_eq!(stopped, Ok(here(false)));
    assert_eq!(store.edit(&edit(1, "a secret", 1), NOW).await, Ok(here(false)));
    assert_eq!(deleted(&store, &at(1)).await, here(false));
    assert_eq!(number(&home, "SELECT count(*) FROM inbox WHERE edited IS NOT NULL"), 0);
}

/// The conversation got the words that the asker had taken out.
#[tokio::test]
async fn what_is_stopped_and_then_edited_enters_the_conversation_as_it_reads_by_then() {
    let home = home();
    let store = open(&home);
    let inbox = say(&store, 1, "a secret").await;
    store.stop(&KEY.parse().unwrap(), vec![inbox], "U1", None, NOW).await.unwrap();
    assert_eq!(store.edit(&edit(1, "never mind", 1), NOW).await, Ok(here(false)));
    assert_eq!(ask(&store, inbox).await.inbound.text, "never mind");
    assert_eq!(number(&home, "SELECT count(*) FROM inbox WHERE message LIKE '%secret%'"), 0);
}

/// Regression: stopping any question made the turn under way in its conversation start anew.
#[tokio::test]
async fn to_stop_what_waits_concerns_nothing_that_is_under_way() {
    let home = home();
    let store = open(&home);
    let first = say(&store, 1, "one").await;
    let begun = ask(&store, first).await;
    let second = say(&store, 2, "two").await;
    assert_eq!(store.stop(&KEY.parse().unwrap(), vec![second], "U1", None, NOW).await, Ok(here(false)));
    assert_eq!(store.stop(&KEY.parse().unwrap(), vec![second], "U1", None, NOW).await, Ok(Changed::Nothing));
    let recorded = Recorded { revision: begun.live.revision, ..recorded("one", "a") };
    store.record(begun.turn, recorded, NOW).await.unwrap();
    assert_eq!(ask(&store, second).await.called_off, Some(CalledOff::Stopped));
    let third = say(&store, 3, "three").await;
    ask(&store, third).await;
    let both = store.stop(&KEY.parse().unwrap(), vec![second, third], "U1", None, NOW).await;
    assert_eq!(both, Ok(here(true)), "one of them was under way");
}

/// Regression: the old answer left the window at once, and the turn under way was started anew because of that.
#[tokio::test]
async fn to_ask_again_concerns_nothing_that_is_under_way() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "one", "a", 0).await;
    let second = say(&store, 2, "two").await;
    let begun = ask(&store, second).await;
    let again = store.again(("U1", false), &MessageRef::new("D1", at(1)), reaction("wish"), NOW).await.unwrap();
    let RegenerateOutcome::Taken(again) = again else { panic!("{again:?}") };
    // A question that the turn under way answers along leaves that turn's window unchanged.
    assert!(matches!(store.begin(again.inbox, None, Hold::Along, NOW).await, Ok(BeginOutcome::Ask(_))));
    let recorded = Recorded { revision: begun.live.revision, ..recorded("two", "b") };
    store.record(begun.turn, recorded, NOW).await.unwrap();
    assert_eq!(live_texts(&store, KEY).await, ["one", "a", "two", "b"]);
    store.finish(begun.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let entries = ask(&store, again.inbox).await.live.entries;
    assert_eq!(entries.len(), 2, "what is asked again is not in view when it is");
    assert_eq!(live_texts(&store, KEY).await, ["two", "b"]);
}

/// Regression: to ask again a question that waited was looked at for a while longer, and then done though the question
/// was stopped meanwhile.
#[tokio::test]
async fn a_question_that_waits_is_not_asked_again_later_either() {
    let home = home();
    let store = open(&home);
    let question = say(&store, 1, "one").await;
    let again = |ts: String| {
        let store = store.clone();
        async move { store.again(("U1", false), &MessageRef::new("D1", ts), reaction("wish"), NOW).await.unwrap() }
    };
    assert_eq!(again(at(1)).await, RegenerateOutcome::Waits);
    let open = ask(&store, question).await;
    assert_eq!(again(at(1)).await, RegenerateOutcome::Waits, "its turn has begun");
    store.placed(open.turn, "2.5").await.unwrap();
    assert_eq!(again("2.5".into()).await, RegenerateOutcome::Waits, "on its placeholder");
    store.stop(&KEY.parse().unwrap(), vec![question], "U1", None, NOW).await.unwrap();
    assert_eq!(again(at(1)).await, RegenerateOutcome::Nothing, "it is about to be over");
}

#[tokio::test]
async fn what_is_asked_again_and_stopped_keeps_its_old_answer() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "one", "a", 0).await;
    let Ok(RegenerateOutcome::Taken(again)) =
        store.again(("U1", false), &MessageRef::new("D1", at(1)), reaction("wish"), NOW).await
    else {
        panic!()
    };
    store.stop(&KEY.parse().unwrap(), vec![again.inbox], "U1", None, NOW).await.unwrap();
    ask(&store, again.inbox).await;
    assert_eq!(live_texts(&store, KEY).await, ["one", "a"]);
}

/// Deletions of messages that do not concern the gateway are not stored at all.
#[tokio::test]
async fn a_deletion_that_concerns_nobody_here_writes_nothing() {
    let home = home();
    let store = open(&home);
    let key = "slack:channel:C1:100.000000";
    store.accept(&inbound(key, "Ev1"), NOW).await.unwrap();
    let kept = || number(&home, "SELECT count(*) FROM early_change");
    for (thread, of, count) in [
        (None, DeletedAuthor::Others, 0),
        (Some("slack:channel:C1:999.000000"), DeletedAuthor::Others, 0),
        (Some(key), DeletedAuthor::Own, 0),
        (Some(key), DeletedAuthor::Others, 1),
        (None, DeletedAuthor::Us, 2),
    ] {
        let thread = thread.map(|key| key.parse().unwrap());
        let deletion = Deletion { thread, of, ..deletion("C1", &at(count as usize)) };
        assert_eq!(store.delete(&deletion, words(), NOW).await, Ok(Changed::Unknown), "{deletion:?}");
        assert_eq!(kept(), count, "{deletion:?}");
    }
}

/// In a followed thread, an edit that arrives before its message is only kept for the person followed.
#[tokio::test]
async fn an_early_edit_in_a_thread_is_kept_for_who_is_followed_there() {
    let home = home();
    let store = open(&home);
    let key: SessionKey = "slack:channel:C1:100.000000".parse().unwrap();
    store.accept(&inbound(&key.to_string(), "Ev1"), NOW).await.unwrap();
    store.mentioned(&key, "U1", &at(1), true).await.unwrap();
    let plain = |for_others: bool| {
        let names = for_others.then(|| "U9".to_owned()).into_iter().collect();
        Some(Addressing::Plain { names, answered: None })
    };
    for (number, user, manner, count) in
        [(0, "U1", plain(false), 0), (2, "U2", plain(false), 0), (3, "U1", plain(true), 0), (4, "U1", plain(false), 1)]
    {
        let edit = edit(number, "as edited", 1);
        let message = Inbound { key: key.clone(), user: user.into(), ..edit.message };
        let edit = Edit { message, is_for_us: false, manner, ..edit };
        assert_eq!(store.edit(&edit, NOW).await, Ok(Changed::Unknown));
        assert_eq!(self::number(&home, "SELECT count(*) FROM early_change"), count, "{number} of {user}");
    }
}

#[tokio::test]
async fn what_is_deleted_leaves_window_archive_and_index() {
    let home = home();
    let store = open(&home);
    let turn = answered(&store, 1, "the password is heliotrope", "noted", 1).await;
    answered(&store, 2, "what else?", "nothing", 0).await;
    let archive = store.archive_of(turn.session, 6);
    let found = |query: &'static str| {
        let archive = archive.clone();
        tokio::task::spawn_blocking(move || archive.look_for(query, 9, &|_| true).found.len())
    };
    assert_eq!(found("heliotrope").await.unwrap(), 1);
    assert_eq!(deleted(&store, &at(1)).await, here(true));
    assert_eq!(live_texts(&store, KEY).await, [WORDS[0], "", "found", "noted", "what else?", "nothing"]);
    let archive = store.archive_of(turn.session, 6);
    let read = tokio::task::spawn_blocking(move || {
        (archive.look_for("heliotrope", 9, &|_| true).found.len(), archive.read(0..6))
    });
    let (hits, all) = read.await.unwrap();
    assert_eq!((hits, all.len()), (0, 6), "the archive keeps its numbers");
    for table in ["message WHERE blocks", "live WHERE replacement", "inbox WHERE message", "inbox WHERE edited"] {
        assert_eq!(number(&home, &format!("SELECT count(*) FROM {table} LIKE '%heliotrope%'")), 0, "{table}");
    }
    assert_eq!(deleted(&store, &at(1)).await, Changed::Nothing, "it was redelivered");
    // An answer is found by the message that showed it.
    assert_eq!(deleted(&store, "reply-2").await, here(true));
    assert_eq!(deleted(&store, "reply-2").await, Changed::Nothing, "it was redelivered");
    assert_eq!(live_texts(&store, KEY).await[4..], ["what else?", WORDS[1]]);
}

#[tokio::test]
async fn what_is_to_stay_stays() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "the password is heliotrope", "noted", 0).await;
    for ts in [&*at(1), "reply-1"] {
        assert_eq!(store.delete(&deletion("D1", ts), None, NOW).await, Ok(Changed::Nothing));
    }
    assert_eq!(store.delete(&deletion("D2", &at(1)), words(), NOW).await, Ok(Changed::Unknown), "of another channel");
    assert_eq!(live_texts(&store, KEY).await, ["the password is heliotrope", "noted"]);
    // It can be asked again, too.
    let again = store.again(("U1", false), &MessageRef::new("D1", at(1)), reaction("wish"), NOW).await.unwrap();
    let RegenerateOutcome::Taken(again) = again else { panic!("{again:?}") };
    assert_eq!(waits_as(&store, again.inbox).await, "the password is heliotrope");
}

#[tokio::test]
async fn of_several_messages_that_were_answered_together_only_the_one_goes() {
    let home = home();
    let store = open(&home);
    let ids = [say(&store, 1, "eins").await, say(&store, 2, "預算").await, say(&store, 3, "drei").await];
    let mut turns = vec![];
    for id in ids {
        turns.push(ask(&store, id).await.turn);
    }
    let text = "eins\n\n預算\n\ndrei";
    let pieces = vec![(turns[0], 0..4), (turns[1], 6..12), (turns[2], 14..18)];
    let also = vec![(turns[0], "U1".into()), (turns[1], "U1".into())];
    store.record(turns[2], Recorded { also, pieces, ..recorded(text, "a") }, NOW).await.unwrap();
    store.finish(turns[2], vec![sent(0, Some("reply-3"))], vec![], NOW).await.unwrap();
    deleted(&store, &at(1)).await;
    assert_eq!(live_texts(&store, KEY).await[0], format!("{}\n\n預算\n\ndrei", WORDS[0]));
    deleted(&store, &at(3)).await;
    assert_eq!(live_texts(&store, KEY).await[0], format!("{0}\n\n預算\n\n{0}", WORDS[0]));
    // The remaining question is asked again with its edited text.
    assert_eq!(store.edit(&edit(2, "das Budget", 1), NOW).await, Ok(here(false)));
    assert_eq!(asked_again(&store, "reply-3", "Ev9").await, [("das Budget".to_owned(), at(2), "U1".to_owned())]);
    assert_eq!(live_texts(&store, KEY).await, [""; 0], "the old answer leaves the window");
}

/// Returns the questions that wait after one was asked again: their text, position and author.
async fn asked_again(store: &Store, ts: &str, once: &str) -> Vec<(String, String, String)> {
    let again = store.again(("U1", false), &MessageRef::new("D1", ts), reaction(once), NOW).await.unwrap();
    let RegenerateOutcome::Taken(again) = again else { panic!("{again:?}") };
    let waiting = store.open_in(&again.key).await.unwrap();
    assert_eq!(waiting.last(), Some(&again), "the newest");
    let mut questions = vec![];
    for pending in waiting {
        let Inbound { text, ts, user, .. } = ask(store, pending.inbox).await.inbound;
        questions.push((text, ts, user));
    }
    questions
}

#[tokio::test]
async fn of_several_that_are_asked_again_each_is_edited_and_deleted_as_its_own() {
    const CHANNEL: &str = "slack:channel:D1";
    let home = home();
    let store = open(&home);
    let mut turns = vec![];
    for (number, user, text) in [(1, "U1", "eins"), (2, "U2", "a secret\nof May"), (3, "U1", "drei")] {
        let message = Inbound { user: user.into(), key: CHANNEL.parse().unwrap(), ..written(number, text) };
        let inbox = store.accept(&message, NOW).await.unwrap().expect("new");
        turns.push(ask(&store, inbox).await.turn);
    }
    let text = "U1: eins\n\nU2: a secret\n  of May\n\nU1: drei";
    let pieces = vec![(turns[0], 0..8), (turns[1], 10..31), (turns[2], 33..41)];
    let also = vec![(turns[0], "U1".into()), (turns[1], "U2".into())];
    let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
    store.record(turns[2], Recorded { also, pieces, outcome, ..recorded(text, "a") }, NOW).await.unwrap();
    store.finish(turns[2], vec![sent(0, Some("reply-3"))], vec![], NOW).await.unwrap();
    let own = |number, user: &str, text: &str| (text.to_owned(), at(number), user.to_owned());
    let all = [own(1, "U1", "eins"), own(2, "U2", "a secret\nof May"), own(3, "U1", "drei")];
    assert_eq!(asked_again(&store, &at(3), "Ev9").await, all);
    let before = store.again(("U1", false), &MessageRef::new("D1", at(3)), reaction("Ev9"), NOW).await;
    assert_eq!(before, Ok(RegenerateOutcome::Before), "the same wish");
    deleted(&store, &at(2)).await;
    assert_eq!(number(&home, "SELECT count(*) FROM inbox WHERE message LIKE '%secret%'"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM message WHERE blocks LIKE '%secret%'"), 0);
    assert!(matches!(store.edit(&edit(1, "one", 1), NOW).await, Ok(Changed::Here { .. })));
    let waiting = store.open_in(&CHANNEL.parse().unwrap()).await.unwrap();
    let first = ask(&store, waiting[0].inbox).await;
    let second = ask(&store, waiting[1].inbox).await;
    assert_eq!((&*first.inbound.text, second.called_off), ("one", Some(CalledOff::Deleted)));
}

/// Only the first was asked again, and the others left the conversation with its answer.
#[tokio::test]
async fn what_came_while_a_question_was_being_answered_is_asked_again_with_it() {
    const CHANNEL: &str = "slack:channel:D1";
    let (plain, named) = ("only\nfor May", "U1: only\n  for May");
    for (key, wished_at, said) in [(KEY, 1, plain), (KEY, 2, plain), (CHANNEL, 1, named)] {
        let home = home();
        let store = open(&home);
        let ask_there = async |number, text| {
            let message = Inbound { user: "U1".into(), key: key.parse().unwrap(), ..written(number, text) };
            ask(&store, store.accept(&message, NOW).await.unwrap().expect("new")).await
        };
        let (first, came) = (ask_there(1, "where?").await, ask_there(2, plain).await.turn);
        let said = Message::user(said);
        let ids = store.archive(first.session, came, std::slice::from_ref(&said), NOW).await.unwrap();
        let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
        let mut answer = Recorded { also: vec![(came, "U1".into())], outcome, ..recorded("where?", "in the worker") };
        answer.messages.insert(1, Entry::new(ids[0], said));
        store.record(first.turn, answer, NOW).await.unwrap();
        store.finish(first.turn, vec![sent(0, Some("reply-1"))], vec![], NOW).await.unwrap();
        let own = |number, text: &str| (text.to_owned(), at(number), "U1".to_owned());
        let both = [own(1, "where?"), own(2, plain)];
        assert_eq!(asked_again(&store, &at(wished_at), "Ev9").await, both);
        assert_eq!(live_texts(&store, key).await, [""; 0], "the old answer leaves the window");
    }
}

#[tokio::test]
async fn a_question_is_asked_again_once_for_each_wish_and_by_those_who_may() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "how much is left?", "a third", 1).await;
    let again = |actor, is_admin, ts: &str, once| {
        let (store, ts) = (store.clone(), ts.to_owned());
        async move { store.again((actor, is_admin), &MessageRef::new("D1", ts), reaction(once), NOW).await.unwrap() }
    };
    assert!(matches!(again("U2", false, &at(1), "Ev10").await, RegenerateOutcome::NotTheirs(_)), "somebody else's");
    assert_eq!(again("U1", false, "9.9", "Ev10").await, RegenerateOutcome::Nothing, "nothing is there");
    let taken = again("U2", true, "reply-1", "Ev11").await;
    let RegenerateOutcome::Taken(taken) = taken else { panic!("an admin may, on the answer: {taken:?}") };
    let open = ask(&store, taken.inbox).await;
    assert_eq!((&*open.inbound.text, &*open.inbound.user, open.inbound.ts), ("how much is left?", "U1", at(1)));
    assert!(open.live.entries.is_empty());
    assert_eq!(again("U1", false, &at(1), "Ev12").await, RegenerateOutcome::Waits, "it waits for its answer");
    assert_eq!(
        again("U2", true, "reply-1", "Ev11").await,
        RegenerateOutcome::Before,
        "taken in again, as after a crash"
    );
    let revision = open.live.revision;
    let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
    let other = Recorded { revision, outcome, ..recorded("how much is left?", "two thirds") };
    store.record(open.turn, other, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, Some("reply-2"))], vec![], NOW).await.unwrap();
    assert_eq!(again("U2", true, "reply-1", "Ev11").await, RegenerateOutcome::Before, "the same wish");
    let reply = MessageRef::new("D1", "reply-1");
    let button = |actor| store.again((actor, false), &reply, RegenerateTrigger::Button, NOW);
    assert_eq!(button("U1").await.unwrap(), RegenerateOutcome::Before, "it was asked again since");
    assert!(matches!(button("U2").await.unwrap(), RegenerateOutcome::NotTheirs(_)));
    assert!(matches!(again("U1", false, "reply-1", "Ev13").await, RegenerateOutcome::Taken(_)), "another");
    // After the deletion it is gone in all its forms, and cannot be asked again.
    deleted(&store, &at(1)).await;
    assert_eq!(number(&home, "SELECT count(*) FROM message WHERE blocks LIKE '%how much%'"), 0);
    assert_eq!(again("U1", false, "reply-2", "Ev14").await, RegenerateOutcome::Nothing);
}

#[tokio::test]
async fn what_is_stopped_gets_no_answer_and_what_is_recorded_is_not_stopped() {
    let home = home();
    let store = open(&home);
    let first = say(&store, 1, "one").await;
    let second = say(&store, 2, "two").await;
    let begun = ask(&store, first).await;
    let word = written(3, "stop");
    let key = KEY.parse().unwrap();
    let open = store.open_questions(&key).await.unwrap();
    assert_eq!(open.iter().map(|open| open.inbox).collect::<Vec<_>>(), [first, second]);
    assert_eq!(store.stop(&key, vec![first], "U1", Some(word.clone()), NOW).await, Ok(here(true)));
    assert_eq!(
        store.stop(&key, vec![second], "U1", Some(word), NOW).await,
        Ok(here(false)),
        "a redelivery stops nothing more"
    );
    let stale = Recorded { revision: begun.live.revision, ..recorded("one", "a") };
    assert_eq!(store.record(begun.turn, stale, NOW).await, Err(StoreError::Changed));
    assert_eq!(ask(&store, first).await.called_off, Some(CalledOff::Stopped));
    let begun = ask(&store, second).await;
    assert_eq!(begun.called_off, None);
    let fresh = Recorded { revision: begun.live.revision, ..recorded("two", "b") };
    store.record(begun.turn, fresh, NOW).await.unwrap();
    assert_eq!(store.stop(&key, vec![second], "U1", None, NOW).await, Ok(Changed::Nothing));
    let late = written(4, "stop");
    assert_eq!(store.stop(&key, vec![second], "U1", Some(late.clone()), NOW).await, Ok(Changed::Nothing));
    assert!(store.accept(&late, NOW).await.unwrap().is_some(), "then it is a message like any other");
}

/// Regression: it could not be stopped, and `sessions retry` had it answered days later.
#[tokio::test]
async fn a_parked_question_that_was_stopped_was_answered_all_the_same() {
    let home = home();
    let store = open(&home);
    let key: SessionKey = KEY.parse().unwrap();
    let parked = say(&store, 1, "one").await;
    ask(&store, parked).await;
    store.park(parked, "a bug", vec![], NOW).await.unwrap();
    let next = say(&store, 2, "two").await;
    let begun = ask(&store, next).await;
    let waiting = store.open_questions(&key).await.unwrap();
    assert_eq!(waiting.iter().map(|open| open.inbox).collect::<Vec<_>>(), [next]);
    let (_, found) = store.open_question(&MessageRef::new("D1", at(1))).await.unwrap().expect("it waits, too");
    assert_eq!(found.inbox, parked);
    let stopped = store.stop(&key, vec![parked], "U1", None, NOW).await;
    assert_eq!(stopped, Ok(here(false)), "what is under way is another question's");
    assert_eq!(store.parked().await.unwrap(), []);
    let fresh = Recorded { revision: begun.live.revision, ..recorded("two", "b") };
    store.record(begun.turn, fresh, NOW).await.unwrap();
    assert_eq!(ask(&store, parked).await.called_off, Some(CalledOff::Stopped));
    // What has its answer is parked because that cannot be delivered.
    store.park(next, "refused", vec![], NOW).await.unwrap();
    assert_eq!(store.open_question(&MessageRef::new("D1", at(2))).await.unwrap(), None);
    assert_eq!(store.stop(&key, vec![next], "U1", None, NOW).await, Ok(Changed::Nothing));
    assert_eq!(store.parked().await.unwrap().len(), 1);
}

/// Regression: a reduced form of a message came back into the window after the message was deleted.
#[tokio::test]
async fn a_plan_made_before_a_deletion_is_not_carried_out_after_it() {
    let home = home();
    let store = open(&home);
    answered(&store, 1, "the password is heliotrope", "noted", 0).await;
    let inbox = say(&store, 2, "and now?").await;
    let begun = ask(&store, inbox).await;
    deleted(&store, &at(1)).await;
    let shortened = Arc::new(Message::user("the password is helio…"));
    let replaced = vec![Replacement { position: 0, message: shortened, tokens: 1, chars: 1 }];
    let edit = WindowEdit { replaced, revision: begun.live.revision, ..WindowEdit::default() };
    assert_eq!(store.edit_live(begun.session, edit, vec![], NOW).await, Err(StoreError::Changed));
    assert_eq!(live_texts(&store, KEY).await, [WORDS[0], "noted"]);
}

/// It was reopened, and its answer, which its conversation had refused, was sent once more.
#[tokio::test]
async fn an_answer_that_cannot_be_delivered_stays_parked_when_its_question_is_deleted() {
    let home = home();
    let store = open(&home);
    let question = say(&store, 1, "a secret").await;
    let turn = ask(&store, question).await.turn;
    store.record(turn, recorded("a secret", "noted"), NOW).await.unwrap();
    store.park(question, "refused", vec![], NOW).await.unwrap();
    deleted(&store, &at(1)).await;
    let parked = store.parked_question(question).await.unwrap();
    assert!(parked.is_some_and(|parked| parked.why == "refused"));
    assert_eq!(number(&home, "SELECT count(*) FROM message WHERE blocks LIKE '%secret%'"), 0);
}

/// It was parked before its end, so no further attempt forgets what that one has archived.
#[tokio::test]
async fn what_an_attempt_had_archived_outlived_the_change_of_its_parked_question() {
    let home = home();
    let store = open(&home);
    for question in 1..=2 {
        let inbox = say(&store, question, "is the password heliotrope?").await;
        let begun = ask(&store, inbox).await;
        let round = [Message::user(&*begun.inbound.text), Message::assistant("I look it up")];
        store.archive(begun.session, begun.turn, &round, NOW).await.unwrap();
        store.park(inbox, "it cannot be answered", vec![], NOW).await.unwrap();
    }
    deleted(&store, &at(1)).await;
    store.edit(&edit(2, "never mind", 1), NOW).await.unwrap();
    assert_eq!(number(&home, "SELECT count(*) FROM message WHERE blocks LIKE '%heliotrope%'"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM archive"), 0);
}

/// A file whose text is "the password is heliotrope", and an image.
fn files_of(begun: &OpenTurn) -> (Attachments, Vec<StoredImage>) {
    let text = Content::Text { text: "the password is heliotrope".into(), is_lossy: false };
    let read = begun.inbound.attached.files.iter().map(|file| File { content: text.clone(), ..file.clone() });
    let image = StoredImage { sha256: ImageId::of(b"heliotrope"), bytes: Arc::from(*b"heliotrope") };
    (Attachments { files: read.collect(), ..Attachments::default() }, vec![image])
}

/// While its turn fetched them, the message was deleted, or edited so that it had none.
#[tokio::test]
async fn files_of_a_message_were_stored_after_they_were_gone() {
    let home = home();
    let store = open(&home);
    let file = File {
        id: None,
        name: "a.txt".into(),
        bytes: None,
        address: Some("https://files/a".into()),
        preview: None,
        content: Content::Awaited,
    };
    let with = |number| {
        let attached = Attachments { files: vec![file.clone()], ..Attachments::default() };
        Inbound { attached, ..written(number, "what does it say?") }
    };
    let keep = async |begun: &OpenTurn| {
        let (attached, images) = files_of(begun);
        store.keep_attached(begun, begun.live.revision, &attached, images).await
    };
    let first = store.accept(&with(1), NOW).await.unwrap().expect("a new message");
    let begun = ask(&store, first).await;
    assert_eq!(keep(&begun).await, Ok(()), "nobody has changed anything");
    assert_eq!(deleted(&store, &at(1)).await, here(true));
    assert_eq!(keep(&begun).await, Err(StoreError::Changed));
    store.finish(ask(&store, first).await.turn, vec![], vec![], NOW).await.unwrap();

    let second = store.accept(&with(2), NOW).await.unwrap().expect("a new message");
    let begun = ask(&store, second).await;
    assert_eq!(keep(&begun).await, Ok(()));
    assert_eq!(store.edit(&edit(2, "never mind the file", 1), NOW).await, Ok(here(true)));
    assert_eq!(keep(&begun).await, Err(StoreError::Changed));
    let anew = ask(&store, second).await;
    assert_eq!((&*anew.inbound.text, &anew.inbound.attached), ("never mind the file", &Attachments::default()));

    assert_eq!(number(&home, "SELECT count(*) FROM image"), 0);
    let stored = "SELECT count(*) FROM inbox WHERE message LIKE '%heliotrope%' OR attached LIKE '%heliotrope%'";
    assert_eq!(number(&home, stored), 0);
}

/// The window that a question begins with, which leaves nothing behind.
async fn probed(store: &Store, number: usize) -> Vec<LiveEntry> {
    let probe = say(store, number, "probe").await;
    let OpenTurn { turn, live, .. } = ask(store, probe).await;
    store.finish(turn, vec![], vec![], NOW).await.unwrap();
    live.entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_is_deleted_the_window_keeps_its_turns_and_tool_pairs(
        rounds in prop::collection::vec(0usize..3, 1..6),
        deletions in prop::collection::vec((0usize..6, any::<bool>()), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let home = home();
            let store = open(&home);
            for (number, &rounds) in rounds.iter().enumerate() {
                answered(&store, number, &format!("question {number}"), &format!("answer {number}"), rounds).await;
            }
            let roles = |live: &[LiveEntry]| live.iter().map(|live| live.entry.message.role).collect::<Vec<_>>();
            let before = roles(&probed(&store, 50).await);
            for (place, (number, of_answer)) in (51..).zip(deletions) {
                let number = number % rounds.len();
                let ts = if of_answer { format!("reply-{number}") } else { at(number) };
                deleted(&store, &ts).await;
                let live = probed(&store, place).await;
                let gone = if of_answer { format!("answer {number}") } else { format!("question {number}") };
                let messages: Vec<_> = live.iter().map(|live| Arc::clone(&live.entry.message)).collect();
                assert!(messages.iter().all(|message| message.plain_text() != gone), "{gone}");
                assert_eq!(pair_tools(&messages).orphans, []);
                let roles = roles(&live);
                assert!(roles.first() == Some(&Role::User) && roles.windows(2).all(|pair| pair[0] != pair[1]));
                assert_eq!(roles, before);
                let mut entries: Vec<Entry> = live.into_iter().map(|live| live.entry).collect();
                let current = entries.len();
                entries.push(Entry::new(0, Message::user("and now?")));
                let guard = Guard { limit: u64::MAX, seed_may_go: false, must_shrink: false };
                assert!(guard.apply(&Transcript::new(entries, current, "D1"), &Plan::new()).is_ok());
            }
        });
    }
}
