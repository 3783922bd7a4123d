//! What is known of a parked question.

use super::*;

const KEY: &str = "slack:dm:U1";

fn part(purpose: Purpose) -> Outgoing {
    Outgoing { purpose, ..Outgoing::reply("a part") }
}

fn withdrawal_of(placeholder: Option<&str>) -> Withdrawal {
    Withdrawal { event_id: "Ev0".into(), ts: "1.0".into(), placeholder: placeholder.map(str::to_owned) }
}

fn withdrawal(placeholder: Option<&str>) -> Purpose {
    Purpose::Withdraw(withdrawal_of(placeholder))
}

/// Parks a question with a placeholder of whose answer the first parts were sent.
async fn parked(store: &Store, event_id: &str, parts: &[Purpose], sent: u32) -> Parked {
    let inbox = accept(store, KEY, event_id).await;
    let open = ask(store, inbox).await;
    let parts = parts.iter().cloned().map(part).collect();
    let recorded = Recorded { parts, placeholder: Some("9.9".into()), ..recorded("q", "a") };
    store.record(open.turn, Recorded { revision: open.live.revision, ..recorded }, NOW).await.unwrap();
    for number in 0..sent {
        store.part_sent(open.turn, Sent { part: number, id: None }, vec![], NOW).await.unwrap();
    }
    store.park(inbox, "a test", vec![], NOW).await.unwrap().expect("it is parked")
}

/// Regression: the first part that was sent counted as what has replaced the placeholder, although one that passes an
/// answer on does not.
#[tokio::test]
async fn the_placeholder_of_a_parked_question_is_there_until_a_part_has_replaced_it() {
    let home = home();
    let store = open(&home);
    let notice = || Purpose::Notice { atom: "a file".into(), saved_in: None };
    let (reply, passed_on) = (|| Purpose::Reply, || Purpose::PassedOn);
    for (at, (parts, sent, is_there, answered)) in [
        (vec![reply(), reply()], 0, true, false),
        (vec![reply(), reply()], 1, false, false),
        (vec![passed_on(), passed_on(), notice()], 1, true, false),
        (vec![passed_on(), notice()], 1, true, true),
        (vec![passed_on(), notice(), withdrawal(None)], 2, false, true),
        (vec![passed_on(), reply()], 1, true, false),
    ]
    .into_iter()
    .enumerate()
    {
        let parked = parked(&store, &format!("Ev{at}"), &parts, sent).await;
        let found = (parked.placeholder.is_some(), parked.answered);
        assert_eq!(found, (is_there, answered), "{parts:?}, of which {sent} were sent");
    }
}

#[tokio::test]
async fn a_parked_question_names_the_placeholders_that_its_answer_was_to_remove() {
    let home = home();
    let store = open(&home);
    let parts = [withdrawal(Some("1.1")), Purpose::Reply, withdrawal(Some("1.2")), withdrawal(None)];
    let Parked { inbox, .. } = parked(&store, "Ev1", &parts, 1).await;
    assert_eq!(store.unsent_withdrawals(inbox).await.unwrap(), [withdrawal_of(Some("1.2")), withdrawal_of(None)]);
}

/// Regression: only the run that had shown it knew of the beginning of a parked answer.
#[tokio::test]
async fn the_beginning_of_a_parked_answer_is_known_until_it_has_become_a_part_of_it() {
    let home = home();
    let store = open(&home);
    for (number, first_part) in [None, Some("2.6"), Some("2.5")].into_iter().enumerate() {
        let inbox = accept(&store, KEY, &format!("Ev{number}")).await;
        let begun = ask(&store, inbox).await;
        store.streamed(begun.turn, "2.5").await.unwrap();
        let parts = vec![part(Purpose::Reply), part(Purpose::Reply)];
        let recorded = Recorded { parts, revision: begun.live.revision, ..recorded("q", "a") };
        store.record(begun.turn, recorded, NOW).await.unwrap();
        if let Some(id) = first_part {
            store.part_sent(begun.turn, sent(0, Some(id)), vec![], NOW).await.unwrap();
        }
        let parked = store.park(inbox, "a test", vec![], NOW).await.unwrap().expect("it is parked");
        let is_known = first_part != Some("2.5");
        assert_eq!(parked.streamed.as_deref(), is_known.then_some("2.5"), "{first_part:?}");
    }
}

/// As after a kill while they were told.
#[tokio::test]
async fn who_may_have_been_told_is_known_until_their_question_is_parked_anew() {
    let home = home();
    let store = open(&home);
    let question = parked(&store, "Ev1", &[Purpose::Reply], 0).await;
    assert!(!question.maybe_told);
    store.parked_may_be_told(question.inbox).await.unwrap();
    let [again] = &*store.parked_untold().await.unwrap() else { panic!("one is untold") };
    assert!(again.maybe_told && !again.told);
    store.unpark(None, NOW).await.unwrap();
    let anew = store.park(question.inbox, "a test", vec![], NOW).await.unwrap().expect("it is parked");
    assert!(!anew.maybe_told);
}
