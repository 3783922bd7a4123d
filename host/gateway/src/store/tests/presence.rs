//! What is to be done after an outage survives whatever happens in between.

use pmk_core::FrontName;

use super::*;
use crate::escalation::Marker;

const HOUR: i64 = 60 * 60 * 1_000;
const DAY: i64 = 24 * HOUR;

fn at(key: &str, event_id: &str, ts: &str) -> Inbound {
    Inbound { ts: ts.into(), ..inbound(key, event_id) }
}

/// A time as a Slack timestamp.
fn ts(at_ms: i64) -> String {
    format!("{}.000100", at_ms / 1_000)
}

/// The conversations that are to be read back.
async fn unread_keys(store: &Store) -> Vec<String> {
    let unread = store.unread(1_000).await.unwrap().conversations;
    unread.iter().map(|unread| unread.key.to_string()).collect()
}

#[tokio::test]
async fn nobody_is_told_twice_an_hour_and_a_restart_changes_nothing_about_that() {
    let home = home();
    let store = open(&home);
    let claim = async |store: &Store, now| {
        it_is(&home, now);
        store.claim_telling("U1", now, HOUR).await.unwrap()
    };
    assert_eq!(claim(&store, NOW).await, Telling::New);
    assert_eq!(claim(&store, NOW + 1).await, Telling::Not, "nobody knows which message it was");
    store.told("U1", Some("1.000001".into())).await.unwrap();
    drop(store);
    let store = open(&home);
    assert_eq!(claim(&store, NOW + HOUR - 1).await, Telling::InPlaceOf("1.000001".into()));
    assert_eq!(claim(&store, NOW + HOUR).await, Telling::New);
    store.untold("U1").await.unwrap();
    assert_eq!(claim(&store, NOW + HOUR + 1).await, Telling::New, "they were not told after all");
}

#[tokio::test]
async fn who_was_told_before_the_clock_went_back_heard_nothing_until_it_was_there_again() {
    let home = home();
    let store = open(&home);
    let claim = async |now| {
        it_is(&home, now);
        store.claim_telling("U1", now, HOUR).await.unwrap()
    };
    assert_eq!(claim(NOW).await, Telling::New);
    assert_eq!(claim(NOW - HOUR + 1).await, Telling::Not, "by a little");
    assert_eq!(claim(NOW - 40 * 24 * HOUR).await, Telling::New);
    assert_eq!(claim(NOW - 40 * 24 * HOUR + 1).await, Telling::Not);
}

#[tokio::test]
async fn an_outage_that_nobody_was_told_of_is_part_of_the_next() {
    let home = home();
    let store = open(&home);
    let outage = |since_ms, until_ms, announce: Option<&str>| Outage {
        since_ms,
        until_ms,
        announce: announce.map(|reason| Announce { reason: reason.to_owned(), is_news: true }),
        read: false,
    };
    assert_eq!(store.came_back(outage(Some(NOW - 1), NOW, None)).await.unwrap(), None);
    let first = store.came_back(outage(Some(NOW - HOUR), NOW, Some("crash-recovery"))).await.unwrap();
    assert_eq!(
        first,
        Some(UnannouncedOutage { since_ms: Some(NOW - HOUR), until_ms: NOW, reason: "crash-recovery".into() })
    );
    // Killed before anybody was told; the next start was quick, so by itself it would announce nothing.
    drop(store);
    let store = open(&home);
    assert_eq!(store.came_back(outage(Some(NOW + 1), NOW + 2, None)).await.unwrap(), first);
    let later = store.came_back(outage(Some(NOW + 5), NOW + DAY, Some("graceful-restart"))).await.unwrap();
    let all = UnannouncedOutage { since_ms: Some(NOW - HOUR), until_ms: NOW + DAY, reason: "graceful-restart".into() };
    assert_eq!(later.as_ref(), Some(&all));
    // A quick restart before people were told of the outage does not change that.
    let announce = Some(Announce { reason: "graceful-fast-restart".into(), is_news: false });
    let quick = Outage { since_ms: Some(NOW + DAY + 5), until_ms: NOW + DAY + 9, announce, read: false };
    assert_eq!(store.came_back(quick.clone()).await.unwrap(), later);
    store.settled().await.unwrap();
    assert_eq!(store.owed().await.unwrap(), None);
    let owed = store.came_back(quick.clone()).await.unwrap().expect("nobody is to see that it is away");
    assert_eq!((owed.since_ms, owed.until_ms), (quick.since_ms, quick.until_ms));
}

#[tokio::test]
async fn each_conversation_is_read_from_the_last_message_that_was_known_when_it_went() {
    let home = home();
    let store = open(&home);
    let gone = NOW;
    it_is(&home, NOW);
    for (key, event, when) in [
        ("slack:dm:U1", "Ev1", gone - 2 * HOUR),
        ("slack:dm:U1", "Ev2", gone - HOUR),
        // Arrived after the gateway was back, before anybody looked.
        ("slack:dm:U1", "Ev3", gone + HOUR),
        ("slack:dm:U2", "Ev4", gone - 3 * DAY),
        ("slack:channel:C1:5.000001", "Ev5", gone - HOUR),
        ("console:dm:U1", "Ev6", gone - HOUR),
    ] {
        store.accept(&at(key, event, &ts(when)), NOW).await.unwrap().expect("new");
    }
    // Inactive for too long.
    it_is(&home, gone - 40 * DAY);
    store.accept(&at("slack:dm:U3", "Ev7", &ts(gone - 40 * DAY)), gone - 40 * DAY).await.unwrap().expect("new");
    let outage = Outage { since_ms: Some(gone), until_ms: gone + HOUR, announce: None, read: true };
    store.came_back(outage.clone()).await.unwrap();
    let unread = async |store: &Store| {
        let unread = store.unread(1_000).await.unwrap();
        let mut shown: Vec<(String, i64)> = unread
            .conversations
            .into_iter()
            .map(|unread| (unread.key.to_string(), unread.after.split('.').next().unwrap().parse::<i64>().unwrap()))
            .collect();
        shown.sort();
        shown
    };
    // A little before the last known message is read again, because messages arrive in any order.
    let overlap = |at_ms: i64| at_ms / 1_000 - 360;
    let expected = [
        // In the channel itself nothing was asked yet; a new thread there is in none of the known ones.
        ("slack:channel:C1".to_owned(), overlap(gone - HOUR)),
        ("slack:channel:C1:5.000001".to_owned(), overlap(gone - HOUR)),
        ("slack:dm:U1".to_owned(), overlap(gone - HOUR)),
        ("slack:dm:U2".to_owned(), overlap(gone - DAY)),
    ];
    assert_eq!(unread(&store).await, expected);
    store.read_back(&"slack:dm:U1".parse().unwrap()).await.unwrap();
    // Killed, and another outage: what was not read yet is still read from the earlier position.
    drop(store);
    let store = open(&home);
    let later = Outage { since_ms: Some(gone + 10 * HOUR), until_ms: gone + 11 * HOUR, ..outage };
    store.came_back(later).await.unwrap();
    let again = unread(&store).await;
    assert_eq!(again[1], expected[1]);
    assert_eq!(again[2], ("slack:dm:U1".to_owned(), overlap(gone + HOUR)));
}

/// Where mentions begin threads, the conversation of the channel itself becomes inactive.
#[tokio::test]
async fn a_channel_in_whose_threads_people_talk_is_read_for_what_begins_there() {
    let home = home();
    let store = open(&home);
    let long_ago = NOW - 40 * DAY;
    it_is(&home, long_ago);
    store.accept(&at("slack:channel:C1", "Ev1", &ts(long_ago)), long_ago).await.unwrap().expect("new");
    it_is(&home, NOW);
    accept(&store, "slack:channel:C1:5.000001", "Ev2").await;
    let outage = Outage { since_ms: Some(NOW + HOUR), until_ms: NOW + 2 * HOUR, announce: None, read: true };
    store.came_back(outage).await.unwrap();
    assert_eq!(unread_keys(&store).await, ["slack:channel:C1", "slack:channel:C1:5.000001"]);
    // Of what was asked there in the outage, what comes after it says nothing.
    accept(&store, "slack:channel:C1", "Ev3").await;
    assert_eq!(unread_keys(&store).await, ["slack:channel:C1", "slack:channel:C1:5.000001"]);
}

/// Regression: a place that was active, and not to be read by itself, was not read for what had begun there.
#[tokio::test]
async fn a_place_known_from_an_import_or_a_command_was_not_read_although_its_threads_were() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW - 33 * DAY);
    store.accept(&at("slack:channel:C3", "Ev1", &ts(NOW)), NOW - 33 * DAY).await.unwrap().expect("new");
    it_is(&home, NOW - 5 * DAY);
    store.accept(&at("slack:channel:C3:5.000001", "Ev2", &ts(NOW)), NOW - 5 * DAY).await.unwrap().expect("new");
    it_is(&home, NOW);
    let imported = |key: &str| SessionDump {
        key: key.parse().unwrap(),
        created_at_ms: NOW - HOUR,
        active_at_ms: NOW,
        turns: 0,
        dropped_turns: 0,
        marker_template: None,
        verbosity: None,
        messages: vec![],
        has_made_up_times: false,
        live: vec![],
        cases: vec![],
        images: vec![],
    };
    // In the other one nobody has written since: nothing tells what was answered there.
    for key in ["slack:channel:C1", "slack:channel:C4"] {
        store.restore(imported(key), false, NOW).await.unwrap();
    }
    for (key, event) in [
        ("slack:channel:C1:5.000001", "Ev3"),
        ("slack:dm:U1", ":slash:1"),
        ("slack:dm:U1:5.000001", "Ev4"),
        ("slack:channel:C2:5.000001", "Ev5"),
    ] {
        accept(&store, key, event).await;
    }
    let outage = Outage { since_ms: Some(NOW + HOUR), until_ms: NOW + 2 * HOUR, announce: None, read: true };
    store.came_back(outage).await.unwrap();
    // Somebody goes on there before anybody looks.
    accept(&store, "slack:channel:C2", "Ev6").await;
    let mut unread = unread_keys(&store).await;
    unread.sort();
    let places = ["slack:channel:C1", "slack:channel:C2", "slack:channel:C3", "slack:dm:U1"];
    let threads = places.map(|place| format!("{place}:5.000001"));
    let mut expected: Vec<String> = places.map(str::to_owned).into_iter().chain(threads).collect();
    expected.sort();
    assert_eq!(unread, expected);
}

/// The question is asked in the thread of a message whose conversation is the channel.
#[tokio::test]
async fn a_thread_in_which_contacts_were_asked_is_read_although_nobody_has_written_in_it() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    accept(&store, "slack:channel:C1", "Ev1").await;
    let marker = serde_json::json!({
        "channelId": "C1", "threadTs": "5.000001", "question": "q", "pendingSince": NOW, "mentionedUserIds": ["U2"],
    });
    let asked: Marker = serde_json::from_value(marker).unwrap();
    let long_ago = Marker { thread_ts: "4.000001".into(), pending_since: 7, ..asked.clone() };
    for marker in [&asked, &long_ago] {
        assert!(store.import_escalation(FrontName::Slack, marker).await.unwrap());
    }
    let outage = Outage { since_ms: Some(NOW + HOUR), until_ms: NOW + 2 * HOUR, announce: None, read: true };
    store.came_back(outage).await.unwrap();
    assert_eq!(unread_keys(&store).await, ["slack:channel:C1:5.000001", "slack:channel:C1"]);
}

/// Regression: what was left out was settled one by one, and lost from the ledger by a kill.
#[tokio::test]
async fn of_more_than_can_be_read_the_first_are_read_and_the_rest_is_noted_once() {
    let home = home();
    let store = open(&home);
    for (key, event, when) in [
        ("slack:channel:C1:5.000001", "Ev1", NOW + 3),
        ("slack:channel:C1:6.000001", "Ev2", NOW + 2),
        ("slack:channel:C2:7.000001", "Ev3", NOW + 1),
        ("slack:dm:U1", "Ev4", NOW),
    ] {
        it_is(&home, when);
        store.accept(&at(key, event, &ts(when)), when).await.unwrap().expect("new");
    }
    let outage = Outage { since_ms: Some(NOW + HOUR), until_ms: NOW + 2 * HOUR, announce: None, read: true };
    store.came_back(outage).await.unwrap();
    let first = ["slack:dm:U1", "slack:channel:C1", "slack:channel:C1:5.000001", "slack:channel:C1:6.000001"];
    // The channel of the last one would fit, but not with it.
    let unread = store.unread(5).await.unwrap();
    assert_eq!(unread.conversations.iter().map(|unread| unread.key.to_string()).collect::<Vec<_>>(), first);
    assert_eq!((unread.due, unread.is_cut), (3, true));
    for left_out in [1, 0] {
        assert_eq!(store.leave_out(unread.due, NOW + 2 * HOUR).await.unwrap(), left_out);
    }
    assert_eq!(unread_keys(&store).await, first);
    assert_eq!(number(&home, "SELECT count(*) FROM event WHERE line LIKE '%\"leftOut\":1}%'"), 1);
}

/// Event ids are remembered for a day; a weekend is longer.
#[tokio::test]
async fn what_is_read_back_is_known_however_long_ago_it_came_in() {
    let home = home();
    let store = open(&home);
    let message = at("slack:dm:U1", "Ev1", &ts(NOW));
    store.accept(&message, NOW).await.unwrap().expect("new");
    let found = Inbound { event_id: "missed-D1".into(), ..message };
    assert_eq!(store.accept_missed(&found, NOW + 3 * DAY).await.unwrap(), None);
    let other = Inbound { ts: ts(NOW + 1_000), aliases: vec!["ts:T1:D1:x".into()], ..found };
    assert!(store.accept_missed(&other, NOW + 3 * DAY).await.unwrap().is_some());
    let redelivered = Inbound { event_id: "Ev2".into(), ..other };
    assert_eq!(store.accept(&redelivered, NOW + 3 * DAY).await.unwrap(), None, "answered once");
}

/// A slash command does not say whose direct message it comes from; the bot may be no part of it.
#[tokio::test]
async fn the_place_of_a_command_was_taken_for_that_of_the_direct_message() {
    let home = home();
    let store = open(&home);
    let command = |user: &str, event_id: &str| Inbound {
        reply_to: ReplyTo { channel: "D0TWO".into(), thread_ts: None },
        ..inbound(&format!("slack:dm:{user}"), event_id)
    };
    store.accept(&at("slack:dm:U1", "Ev1", &ts(NOW)), NOW).await.unwrap().expect("new");
    store.accept(&command("U1", ":slash:1"), NOW).await.unwrap().expect("new");
    store.accept(&command("U2", ":slash:2"), NOW).await.unwrap().expect("new");
    let talks = store.talking_since(FrontName::Slack, NOW, NOW).await.unwrap();
    let of = |user: &str| talks.iter().find(|talk| talk.user == user).expect("they have talked").channel.as_deref();
    assert_eq!((of("U1"), of("U2")), (Some("D1"), None));
    store.accept(&at("slack:dm:U2", "Ev2", &ts(NOW)), NOW).await.unwrap().expect("new");
    let talks = store.talking_since(FrontName::Slack, NOW, NOW).await.unwrap();
    assert!(talks.iter().all(|talk| talk.channel.as_deref() == Some("D1")), "{talks:?}");
}

/// What was said before an outage of days is read again with what was said in it.
#[tokio::test]
async fn a_stop_that_is_read_again_after_a_weekend_stops_nothing_more() {
    let home = home();
    let store = open(&home);
    let accept = async |event_id: &str| {
        let question = at("slack:dm:U1", event_id, &ts(NOW));
        store.accept(&question, NOW).await.unwrap().expect("new")
    };
    let (first, second) = (accept("Ev1").await, accept("Ev2").await);
    let word = at("slack:dm:U1", "Ev3", &ts(NOW + 1_000));
    let stop = async |question, word: &Inbound, now_ms| {
        store.stop(&word.key, vec![question], "U1", Some(word.clone()), now_ms).await.unwrap()
    };
    stop(first, &word, NOW).await;
    let found = Inbound { event_id: "missed-D1".into(), ..word };
    stop(second, &found, NOW + 3 * DAY).await;
    let waits = store.open_questions(&found.key).await.unwrap();
    assert_eq!(waits.iter().map(|open| open.inbox).collect::<Vec<_>>(), [second]);
}

#[tokio::test]
async fn who_talked_by_direct_message_since_is_known_with_its_channel() {
    let home = home();
    let store = open(&home);
    it_is(&home, NOW);
    for (key, event) in [("slack:dm:U1", "Ev1"), ("slack:dm:U1:5.000001", "Ev2"), ("slack:channel:C1", "Ev3")] {
        accept(&store, key, event).await;
    }
    accept(&store, "console:dm:U2", "Ev4").await;
    let talks = store.talking_since(FrontName::Slack, NOW, NOW).await.unwrap();
    let expected = DmUser { user: "U1".into(), channel: Some("D1".into()) };
    assert_eq!(talks, [expected.clone(), expected]);
    assert_eq!(store.talking_since(FrontName::Slack, NOW + 1, NOW + 1).await.unwrap(), []);
    assert_eq!(store.talking_since(FrontName::Slack, NOW, NOW - 1).await.unwrap(), [], "it was not there yet");
}
