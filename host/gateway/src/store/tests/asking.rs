//! How often others are asked, and proposals that wait for confirmation.

use pmk_core::FrontName;
use pmk_knowledge::reaction::ReactionVerdict;

use super::*;
use crate::{
    chat::{Addressing, Choice, Edit, Press},
    directive::Kind,
    escalation::Marker,
    ids::SessionId,
    store::{
        Asking, BOUNDED_FOR, Bound, Ends, EscalationUpdate, Proposal, ProposalVerdict, Verdict, VerdictSource,
        proposals::CONFIRMED_WITHIN,
    },
};

pub(in crate::store::tests) const HOUR: i64 = BOUNDED_FOR.as_millis() as i64;
const DAY: i64 = CONFIRMED_WITHIN.as_millis() as i64;

pub(in crate::store::tests) fn asking(kind: Kind, user: &str, session: SessionId) -> Asking {
    Asking { kind, front: FrontName::Slack, user: user.into(), session }
}

#[tokio::test]
async fn an_hour_is_counted_by_person_and_by_conversation() {
    let home = home();
    let store = open(&home);
    let [one, other] =
        [turn(&store, "slack:dm:U1", "Ev1").await.session, turn(&store, "slack:dm:U2", "Ev2").await.session];
    let count = async |store: &Store, kind, user: &str, session, now| {
        it_is(&home, now);
        store.count_asked(asking(kind, user, session), 2, now).await.unwrap()
    };
    for at in [NOW, NOW + 1] {
        assert_eq!(count(&store, Kind::Escalate, "U1", one, at).await, None);
    }
    assert_eq!(count(&store, Kind::Escalate, "U1", other, NOW + 2).await, Some(Bound::Person));
    assert_eq!(count(&store, Kind::Escalate, "U2", one, NOW + 2).await, Some(Bound::Conversation));
    assert_eq!(count(&store, Kind::MraAsk, "U1", one, NOW + 2).await, None, "each kind for itself");
    assert_eq!(count(&store, Kind::Escalate, "U2", other, NOW + 2).await, None);
    drop(store);
    let store = open(&home);
    assert_eq!(count(&store, Kind::Escalate, "U1", one, NOW + HOUR - 1).await, Some(Bound::Person), "after a restart");
    assert_eq!(count(&store, Kind::Escalate, "U1", one, NOW + HOUR).await, None, "the first of them is an hour ago");
    assert_eq!(count(&store, Kind::Escalate, "U1", one, NOW + HOUR).await, Some(Bound::Person));
    assert_eq!(number(&home, "SELECT count(*) FROM asked WHERE at <= 1"), 0);
}

/// Regression: after the clock was set back, a person who had asked before could ask nobody until the clock had
/// caught up.
#[tokio::test]
async fn what_was_asked_before_the_clock_went_back_counts_no_more() {
    let home = home();
    let store = open(&home);
    let session = turn(&store, "slack:dm:U1", "Ev1").await.session;
    let count = async |now| {
        it_is(&home, now);
        store.count_asked(asking(Kind::Escalate, "U1", session), 1, now).await.unwrap()
    };
    assert_eq!(count(NOW).await, None);
    assert_eq!(count(NOW - HOUR).await, Some(Bound::Person), "two clocks may differ");
    assert_eq!(count(NOW - HOUR - 1).await, None);
}

fn marker() -> Marker {
    Marker {
        channel_id: "D1".into(),
        thread_ts: "Ev1".into(),
        question: "who?".into(),
        scope: None,
        reason: None,
        pending_since: 7,
        mentioned_user_ids: vec!["U2".into()],
        asker_user_id: Some("U1".into()),
        tried: Default::default(),
        apart: None,
        exchange: vec![],
        asked_by: None,
        answered_by: None,
        earlier: vec![],
    }
}

/// A turn whose second message asks U1 for confirmation, and was posted as `1.2` in D1.
async fn proposed(store: &Store) -> OpenTurn {
    let asked = ask(store, accept(store, "slack:dm:U1", "Ev1").await).await;
    let proposal = Proposal { part: 1, ..Proposal::new(asked.turn, &asked.inbound, marker()) };
    let parts = vec![Outgoing::reply("first"), Outgoing { purpose: Purpose::Proposal, ..Outgoing::reply("may I?") }];
    let escalation = Some(EscalationUpdate::Proposed(proposal));
    store.record(asked.turn, Recorded { parts, escalation, ..recorded("q", "a") }, NOW).await.unwrap();
    let sent = vec![sent(0, Some("1.1")), sent(1, Some("1.2"))];
    store.finish(asked.turn, sent, vec![], NOW).await.unwrap();
    asked
}

async fn word(store: &Store, user: &str, ts: &str, yes: bool, now: i64) -> Option<ProposalVerdict> {
    let says = if yes { ReactionVerdict::Approve } else { ReactionVerdict::Reject };
    let (user, message, by) = (user.into(), MessageRef::new("D1", ts), VerdictSource::Reaction);
    store.judge_proposal(&Verdict { user, message, says, by }, ends(), now).await.unwrap()
}

fn ends() -> Ends {
    let [dropped, expired, not_meant, not_needed] =
        ["dropped", "expired", "not meant", "not needed"].map(str::to_owned);
    Ends { dropped, expired, not_meant, not_needed }
}

/// Regression: after a crash just after a "no", the message kept its old text for ever, because the proposal was
/// already deleted.
#[tokio::test]
async fn what_a_message_says_after_a_no_is_kept_with_the_end_of_its_question() {
    for (yes, at, says) in [(false, NOW, "dropped"), (true, NOW + 2 * DAY, "expired")] {
        let home = home();
        let store = open(&home);
        proposed(&store).await;
        assert!(word(&store, "U1", "1.2", yes, at).await.is_some());
        let press = Press {
            id: "1.a".into(),
            user: "U1".into(),
            message: MessageRef::new("D1", "1.2"),
            thread_ts: None,
            choice: if yes { Choice::Yes } else { Choice::No },
        };
        let shown: Vec<_> = store.presses(0).await.unwrap().into_iter().map(|press| press.shows).collect();
        assert_eq!(shown, [Some(says.to_owned())], "by a reaction");

        let home = self::home();
        let store = open(&home);
        proposed(&store).await;
        store.press(&press).await.unwrap();
        let number = store.presses(0).await.unwrap()[0].number;
        let verdict = Verdict::of_press(number, &press).unwrap();
        assert!(store.judge_proposal(&verdict, ends(), at).await.unwrap().is_some());
        let shown: Vec<_> = store.presses(0).await.unwrap().into_iter().map(|press| press.shows).collect();
        assert_eq!(shown, [Some(says.to_owned())], "by a button");
    }
}

#[tokio::test]
async fn a_yes_becomes_a_message_that_is_carried_out_once() {
    let home = home();
    let store = open(&home);
    let asked = proposed(&store).await;
    for ts in ["1.1", "9.9"] {
        assert_eq!(word(&store, "U1", ts, true, NOW).await, None, "{ts}");
    }
    let place = asked.inbound.reply_to.clone();
    assert_eq!(word(&store, "U2", "1.2", true, NOW).await, Some(ProposalVerdict::NotTheirs(place)));
    drop(store);
    let store = open(&home);
    let Some(ProposalVerdict::Confirmed(said)) = word(&store, "U1", "1.2", true, NOW + DAY - 1).await else {
        panic!("a yes")
    };
    assert_eq!((&said.key, said.user.as_str(), said.ts.as_str()), (&asked.inbound.key, "U1", "1.2"));
    assert_eq!(word(&store, "U1", "1.2", false, NOW).await, None, "what was confirmed is not dropped");
    let inbox = store.accept(&said, NOW).await.unwrap().expect("a new message");
    assert_eq!(ask(&store, inbox).await.confirms.as_deref(), Some(&marker()));
    assert_eq!(ask(&store, inbox).await.confirms.as_deref(), Some(&marker()), "after a crash, too");
    // The same confirmation again is the same message.
    let Some(ProposalVerdict::Confirmed(again)) = word(&store, "U1", "1.2", true, NOW).await else { panic!("a yes") };
    assert_eq!(store.accept(&again, NOW).await.unwrap(), None);
}

#[tokio::test]
async fn what_went_out_is_not_called_off_by_a_late_word() {
    let home = home();
    let store = open(&home);
    proposed(&store).await;
    let Some(ProposalVerdict::Confirmed(said)) = word(&store, "U1", "1.2", true, NOW).await else { panic!("a yes") };
    let inbox = store.accept(&said, NOW).await.unwrap().expect("a new message");
    let open = ask(&store, inbox).await;
    store.record(open.turn, recorded("", "asked"), NOW).await.unwrap();
    assert_eq!(word(&store, "U1", "1.2", true, NOW + DAY).await, None, "it is being asked");
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    for at in [NOW, NOW + DAY] {
        assert_eq!(word(&store, "U1", "1.2", true, at).await, None, "it was asked");
    }
    assert_eq!(number(&home, "SELECT count(*) FROM proposal"), 0);
}

#[tokio::test]
async fn what_was_confirmed_is_known_for_as_long_as_it_is_not_carried_out() {
    let home = home();
    let store = open(&home);
    proposed(&store).await;
    let Some(ProposalVerdict::Confirmed(said)) = word(&store, "U1", "1.2", true, NOW).await else { panic!("a yes") };
    let inbox = store.accept(&said, NOW).await.unwrap().expect("a new message");
    store.park(inbox, "a test", vec![], NOW).await.unwrap().expect("it is parked");
    propose_something_else(&store, NOW + 2 * DAY).await;
    store.unpark(None, NOW).await.unwrap();
    assert_eq!(ask(&store, inbox).await.confirms.as_deref(), Some(&marker()));
}

#[tokio::test]
async fn a_no_or_a_day_without_a_word_drops_a_question() {
    let home = home();
    let store = open(&home);
    proposed(&store).await;
    let dropped = ProposalVerdict::Dropped;
    assert_eq!(word(&store, "U1", "1.2", false, NOW).await, Some(dropped));
    assert_eq!(word(&store, "U1", "1.2", true, NOW).await, None);

    let home = super::home();
    let store = open(&home);
    proposed(&store).await;
    let expired = ProposalVerdict::Expired;
    assert_eq!(word(&store, "U1", "1.2", true, NOW + DAY).await, Some(expired));
    assert_eq!(word(&store, "U1", "1.2", true, NOW + DAY).await, None);
}

/// Regression: if its asker said nothing at all, it was forgotten without a word in the ledger.
#[tokio::test]
async fn a_question_that_nobody_confirmed_within_a_day_was_not_dropped() {
    const DROPPED: &str = "SELECT count(*) FROM event WHERE line LIKE '%escalate.dropped%U1%D1%'";
    let home = home();
    let store = open(&home);
    proposed(&store).await;
    propose_something_else(&store, NOW + DAY).await;
    assert_eq!(word(&store, "U1", "1.2", true, NOW + DAY).await, None);
    assert_eq!(number(&home, DROPPED), 1);
}

#[tokio::test]
async fn nobody_confirms_what_was_not_shown_to_them() {
    let home = home();
    let store = open(&home);
    let asked = proposed(&store).await;
    let forged = inbound("slack:dm:U9", &format!(":confirmed:{}", asked.turn));
    let inbox = store.accept(&forged, NOW).await.unwrap().expect("a new message");
    assert_eq!(ask(&store, inbox).await.confirms, None);
}

#[tokio::test]
async fn who_wrote_what_is_known_of_what_one_person_wrote() {
    let home = home();
    let store = open(&home);
    for (event, by) in [("Ev1", Some("U1")), ("Ev2", Some("U2")), ("Ev3", None), ("Ev4", Some("U1"))] {
        let open = ask(&store, accept(&store, "slack:channel:C1", event).await).await;
        let outcome = TurnOutcome { asked_by: by.map(str::to_owned), ..TurnOutcome::default() };
        store.record(open.turn, Recorded { outcome, ..recorded(event, "a") }, NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    }
    let session = ask(&store, accept(&store, "slack:channel:C1", "Ev5").await).await.session;
    let written = store.written_by(session, "U1").await.unwrap();
    let texts = number(&home, "SELECT count(*) FROM message WHERE blocks LIKE '%Ev1%' OR blocks LIKE '%Ev4%'");
    assert_eq!((written.len(), texts), (2, 2));
}

/// Regression: a message that was written while another was being answered had no author, and the other one lost
/// its author, too.
#[tokio::test]
async fn messages_that_are_answered_together_keep_their_authors() {
    let home = home();
    let store = open(&home);
    let first = ask(&store, accept(&store, "slack:channel:C1", "Ev1").await).await;
    let steered = ask(&store, accept(&store, "slack:channel:C1", "Ev2").await).await;
    let said = Message::user("what they wrote meanwhile");
    let ids = store.archive(first.session, steered.turn, std::slice::from_ref(&said), NOW).await.unwrap();
    let outcome = TurnOutcome { asked_by: Some("U1".into()), ..TurnOutcome::default() };
    let mut answered = Recorded { outcome, also: vec![(steered.turn, "U2".into())], ..recorded("Ev1", "a") };
    answered.messages.insert(1, Entry::new(ids[0], said));
    store.record(first.turn, answered, NOW).await.unwrap();
    let of = async |user: &str| store.written_by(first.session, user).await.unwrap();
    assert_eq!((of("U1").await.len(), of("U2").await), (1, ids.into_iter().collect()));
}

/// A message of U1 about what waits, who is asked by `1.2` in D1 whether it is the answer.
async fn unclear(store: &Store) -> Inbound {
    store.import_escalation(FrontName::Slack, &marker()).await.unwrap();
    let reply_to = ReplyTo { channel: "D1".into(), thread_ts: None };
    let message = Inbound { reply_to, text: "hmm, 3 pm".into(), ts: "1.0".into(), ..inbound("slack:dm:U1", "Ev1") };
    let unclear = ask(store, store.accept(&message, NOW).await.unwrap().expect("a new message")).await;
    let parts = vec![Outgoing { purpose: Purpose::Proposal, ..Outgoing::reply("is it?") }];
    let escalation = Some(EscalationUpdate::Unsure(Proposal::meant(unclear.turn, &unclear.inbound, marker())));
    store.record(unclear.turn, Recorded { parts, escalation, ..recorded("q", "a") }, NOW).await.unwrap();
    store.finish(unclear.turn, vec![sent(0, Some("1.2"))], vec![], NOW).await.unwrap();
    message
}

/// Makes another proposal; that deletes expired ones.
async fn propose_something_else(store: &Store, now: i64) {
    let other = ask(store, accept(store, "slack:dm:U2", &format!("Ev{now}")).await).await;
    let escalation = Some(EscalationUpdate::Proposed(Proposal::new(other.turn, &other.inbound, marker())));
    store.record(other.turn, Recorded { escalation, ..recorded("q", "a") }, now).await.unwrap();
    store.finish(other.turn, vec![sent(0, None)], vec![], now).await.unwrap();
}

#[tokio::test]
async fn what_a_contact_said_after_a_day_to_be_their_answer_was_thrown_away() {
    for yes in [true, false] {
        let home = home();
        let store = open(&home);
        unclear(&store).await;
        propose_something_else(&store, NOW + 2 * DAY).await;
        let judged = word(&store, "U1", "1.2", yes, NOW + 2 * DAY).await;
        match yes {
            true => assert!(matches!(judged, Some(ProposalVerdict::Meant(_))), "{judged:?}"),
            false => assert!(matches!(judged, Some(ProposalVerdict::NotMeant { waits: true, .. })), "{judged:?}"),
        }
    }
}

#[tokio::test]
async fn a_contact_read_that_they_are_waited_for_when_nobody_waited_any_more() {
    for yes in [true, false] {
        let home = home();
        let store = open(&home);
        unclear(&store).await;
        store.cancel_escalation("D1", "Ev1", "han", NOW).await.unwrap().expect("it waits");
        let judged = word(&store, "U1", "1.2", yes, NOW).await;
        match yes {
            true => assert_eq!(judged, Some(ProposalVerdict::NotNeeded)),
            false => assert!(matches!(judged, Some(ProposalVerdict::NotMeant { waits: false, .. })), "{judged:?}"),
        }
        assert_eq!(word(&store, "U1", "1.2", yes, NOW).await, None);
    }
    let home = home();
    let store = open(&home);
    unclear(&store).await;
    store.cancel_escalation("D1", "Ev1", "han", NOW).await.unwrap().expect("it waits");
    propose_something_else(&store, NOW + 2 * DAY).await;
    assert_eq!(number(&home, "SELECT count(*) FROM proposal"), 1, "it is not kept for ever");
}

#[tokio::test]
async fn what_a_contact_says_is_their_answer_was_passed_on_as_it_was_before_they_corrected_it() {
    let home = home();
    let store = open(&home);
    let message = unclear(&store).await;
    let corrected = Edit {
        message: Inbound { text: "5 pm".into(), ..message },
        at: "2.0".into(),
        is_for_us: true,
        comes_alone: false,
        manner: Some(Addressing::Plain { names: vec![], answered: None }),
        lost_files: false,
    };
    store.edit(&corrected, NOW).await.unwrap();
    let Some(ProposalVerdict::Meant(answer)) = word(&store, "U1", "1.2", true, NOW).await else {
        panic!("it is their answer")
    };
    assert_eq!(answer.text, "5 pm");
}

#[tokio::test]
async fn what_a_contact_says_is_no_answer_is_accepted_once_as_it_reads_now() {
    let home = home();
    let store = open(&home);
    let message = unclear(&store).await;
    let corrected = Edit {
        message: Inbound { text: "When is lunch?".into(), ..message },
        at: "2.0".into(),
        is_for_us: true,
        comes_alone: false,
        manner: Some(Addressing::Plain { names: vec![], answered: None }),
        lost_files: false,
    };
    store.edit(&corrected, NOW).await.unwrap();
    let Some(ProposalVerdict::NotMeant { own: Some(own), waits: true }) = word(&store, "U1", "1.2", false, NOW).await
    else {
        panic!("it is their own")
    };
    drop(store);
    let store = open(&home);
    assert_eq!(store.open_work().await.unwrap().pending, std::slice::from_ref(&own), "after a crash, too");
    assert_eq!(word(&store, "U1", "1.2", false, NOW).await, None);
    let turn = ask(&store, own.inbox).await;
    assert_eq!((turn.inbound.text.as_str(), turn.concern), ("When is lunch?", None));
}
