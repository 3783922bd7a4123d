//! Answers that went to people in person.

use super::{experiments::liked, *};
use crate::chat::{DeletedAuthor, Deletion};

const KEY: &str = "slack:channel:C1";

/// Words that replace a question and an answer.
const WORDS: [&str; 2] = ["(a question was here)", "(an answer was here)"];

/// An answer that has gone to two people, as these messages.
async fn gone_to_two(store: &Store, [one, other]: [(&str, &str); 2]) -> TurnId {
    let question = Inbound { reply_to: ReplyTo { channel: "C1".into(), thread_ts: None }, ..inbound(KEY, "Ev1") };
    let inbox = store.accept(&question, NOW).await.unwrap().expect("a new message");
    let open = ask(store, inbox).await;
    let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
    let recorded = Recorded { outcome, revision: open.live.revision, ..recorded("q", "on Friday") };
    store.record(open.turn, recorded, NOW).await.unwrap();
    for (channel, ts) in [one, other] {
        store.goes_in_person(open.turn, 0, channel).await.unwrap();
        assert!(store.is_delivering_to(channel).await.unwrap(), "{channel}");
        store.went_in_person(open.turn, 0, channel, ts).await.unwrap();
    }
    store.finish(open.turn, vec![sent(0, Some(one.1))], vec![], NOW).await.unwrap();
    open.turn
}

async fn deleted(store: &Store, channel: &str, ts: &str) -> Changed {
    let deletion = Deletion { message: MessageRef::new(channel, ts), thread: None, of: DeletedAuthor::Own };
    store.delete(&deletion, Some(WORDS.map(str::to_owned)), NOW).await.unwrap()
}

/// Once, it was looked for in the conversation of its question alone.
#[tokio::test]
async fn an_answer_was_unknown_where_it_went_in_person() {
    let home = home();
    let store = open(&home);
    let at = [("D1", "1.1"), ("D2", "2.1")];
    let turn = gone_to_two(&store, at).await;
    for (user, (channel, ts)) in ["U1", "U2"].into_iter().zip(at) {
        assert!(!store.is_delivering_to(channel).await.unwrap(), "it is there");
        let voted = store.vote(&liked(user, channel, ts), true, NOW).await.unwrap();
        let Vote::Counted(voted) = voted else { panic!("{voted:?} by {user}") };
        assert_eq!(voted.key.to_string(), KEY);
        let by = || reaction(&format!("wish of {user}"));
        let elsewhere = store.again(("U1", true), &MessageRef::new("D3", ts), by(), NOW).await.unwrap();
        assert_eq!(elsewhere, RegenerateOutcome::Nothing);
        let taken = store.again((user, true), &MessageRef::new(channel, ts), by(), NOW).await.unwrap();
        let RegenerateOutcome::Taken(again) = taken else { panic!("{taken:?} by {user}") };
        assert_eq!(again.key.to_string(), KEY);
        let begun = ask(&store, again.inbox).await;
        store.finish(begun.turn, vec![], vec![], NOW).await.unwrap();
    }
    assert_eq!(store.vote(&liked("U1", "D2", "1.1"), true, NOW).await.unwrap(), Vote::NoAnswer, "another channel");
    assert_eq!(number(&home, &format!("SELECT count(*) FROM vote WHERE turn_id = {turn}")), 2);
    assert_eq!(deleted(&store, "D3", "2.1").await, Changed::Unknown);
    assert_eq!(deleted(&store, "D2", "2.1").await, Changed::Here { key: KEY.parse().unwrap(), anew: true });
    assert_eq!(number(&home, "SELECT count(*) FROM message WHERE blocks LIKE '%Friday%'"), 0);
}

/// As after a crash between the post and what is stored of it.
#[tokio::test]
async fn what_goes_in_person_twice_stands_where_it_went_last() {
    let home = home();
    let store = open(&home);
    gone_to_two(&store, [("D1", "1.1"), ("D1", "1.2")]).await;
    assert_eq!(store.vote(&liked("U1", "D1", "1.1"), true, NOW).await.unwrap(), Vote::NoAnswer);
    assert!(matches!(store.vote(&liked("U1", "D1", "1.2"), true, NOW).await.unwrap(), Vote::Counted(_)));
}

/// Regression: after a restart, only the newest was quoted in person, and never what came while it was being answered.
#[tokio::test]
async fn of_what_was_answered_together_only_a_part_was_known() {
    let home = home();
    let store = open(&home);
    let asks = async |event_id: &str, user: &str| {
        let question = Inbound { user: user.into(), ..inbound(KEY, event_id) };
        ask(&store, store.accept(&question, NOW).await.unwrap().expect("a new message")).await
    };
    let (first, newest, came) = (asks("Ev1", "U1").await, asks("Ev2", "U2").await, asks("Ev3", "U1").await);
    let said = Message::user("U1: and\n  when?");
    let ids = store.archive(newest.session, came.turn, std::slice::from_ref(&said), NOW).await.unwrap();
    let pieces = vec![(first.turn, 0..9), (newest.turn, 11..21)];
    let also = [first.turn, came.turn].map(|turn| (turn, "U1".to_owned())).into();
    let mut answer = Recorded { also, pieces, ..recorded("U1: what?\n\nU2: where?", "a") };
    answer.messages.insert(1, Entry::new(ids[0], said));
    store.record(newest.turn, answer, NOW).await.unwrap();
    let asked = store.asked_together(newest.turn, &KEY.parse().unwrap()).await.unwrap();
    let asked: Vec<(&str, &str)> = asked.iter().map(|(user, text)| (&**user, &**text)).collect();
    assert_eq!(asked, [("U1", "what?"), ("U2", "where?"), ("U1", "and\nwhen?")]);
    let alone = turn(&store, "slack:channel:C2", "Ev4").await;
    let asked = store.asked_together(alone.turn, &alone.inbound.key).await.unwrap();
    assert_eq!(asked, [("U1".to_owned(), "question Ev4".to_owned())]);
}
