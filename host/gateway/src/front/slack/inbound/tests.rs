use serde_json::json;

use super::*;
use crate::{chat::ReplyTo, front::slack::places::ReplyIn};

fn brought(event: Value, places: Places) -> Option<InboundEvent> {
    let callback = json!({
        "team_id": "T1", "api_app_id": "A1", "event_id": "Ev1", "event_time": 1_700_000_000, "event": event,
    });
    let me = Identity::of_a_bot();
    news(serde_json::from_value(callback).expect("a callback"), &me, places)
}

fn read(event: Value) -> Option<Inbound> {
    brought(event, Places::default()).map(message_of)
}

fn message_of(event: InboundEvent) -> Inbound {
    match event {
        InboundEvent::Message(message) => *message,
        InboundEvent::ThreadMessage(word) => word.message,
        other => panic!("{other:?}"),
    }
}

/// Returns whom a message in a thread of a channel addresses, and its conversation.
fn manner(event: Value, places: Places) -> Option<(Addressing, String)> {
    match brought(event, places)? {
        InboundEvent::ThreadMessage(word) => Some((word.manner, word.message.key.to_string())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reactions_of_people_are_read() {
    let me = Identity::of_a_bot();
    let read = |event: Value| {
        let callback = json!({"team_id": "T1", "event_id": "Ev1", "event": event});
        news(serde_json::from_value(callback).expect("a callback"), &me, Places::default())
    };
    let on = |author: Value, user: &str, item: Value| {
        json!({"type": "reaction_added", "user": user, "reaction": "x", "item_user": author, "item": item,
               "event_ts": "1.2"})
    };
    let reacted = |user: &str, item: Value| on("UBOT".into(), user, item);
    let message = json!({"type": "message", "channel": "C1", "ts": "1.1"});
    let event_id = Some("Ev1".into());
    let expected = Reaction {
        event_id,
        user: "U2".into(),
        message: MessageRef::new("C1", "1.1"),
        reaction: "x".into(),
        author: ReactedAuthor::Bot,
    };
    assert_eq!(read(reacted("U2", message.clone())), Some(InboundEvent::Reaction(expected.clone())));
    let by = |author| Some(InboundEvent::Reaction(Reaction { author, ..expected.clone() }));
    assert_eq!(read(on(json!([7]), "U2", message.clone())), by(ReactedAuthor::Unknown));
    assert_eq!(read(on("U3".into(), "U2", message.clone())), by(ReactedAuthor::Another));
    assert_eq!(read(on("U2".into(), "U2", message.clone())), by(ReactedAuthor::Themselves));
    assert_eq!(read(reacted("UBOT", message)), None);
    assert_eq!(read(reacted("U2", json!({"type": "file", "file": "F1"}))), None);
}

fn dm(more: Value) -> Value {
    let mut event = json!({
        "type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "ts": "1700000000.000100",
        "text": "1 &lt; 2?",
    });
    event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    event
}

fn mention(more: Value) -> Value {
    let mut event = dm(json!({"type": "app_mention", "channel": "C1", "text": "<@UBOT> hello"}));
    let event_map = event.as_object_mut().expect("an object");
    event_map.remove("channel_type");
    event_map.extend(more.as_object().expect("an object").clone());
    event
}

#[test]
fn a_direct_message_is_read() {
    let message = read(dm(json!({}))).expect("a message");
    assert_eq!(message.event_id, "Ev1");
    assert_eq!(message.aliases, ["ts:T1:D1:1700000000.000100"]);
    assert_eq!(message.key.to_string(), "slack:dm:U1");
    assert_eq!(message.reply_to, ReplyTo { channel: "D1".into(), thread_ts: None });
    assert_eq!((message.user.as_str(), message.text.as_str()), ("U1", "1 < 2?"));
    assert!(message.attached.is_empty());
    assert_eq!(message.ts, "1700000000.000100");
}

#[test]
fn every_place_has_its_own_key() {
    let thread = json!({"thread_ts": "1699.000100"});
    for (event, key) in [
        (dm(json!({})), "slack:dm:U1"),
        (dm(thread.clone()), "slack:dm:U1:1699.000100"),
        (mention(json!({})), "slack:channel:C1"),
        (mention(thread), "slack:channel:C1:1699.000100"),
    ] {
        let message = read(event).expect("a message");
        assert_eq!(message.key.to_string(), key);
        assert_eq!(message.reply_to.thread_ts, message.key.thread);
    }
    assert_eq!(read(mention(json!({}))).map(|message| message.text).as_deref(), Some("hello"));
}

#[test]
fn a_mention_is_answered_in_the_thread_that_it_begins_where_that_is_wished() {
    let places = Places { reply_in: ReplyIn::Thread, ..Places::default() };
    let alone = || Addressing::Mention { alone: true };
    let (ts, key) = ("1700000000.000100", "slack:channel:C1:1700000000.000100");
    assert_eq!(manner(mention(json!({})), places), Some((alone(), key.into())));
    assert_eq!(manner(mention(json!({"thread_ts": ts})), places), Some((alone(), key.into())));
    let within = mention(json!({"thread_ts": "1699.000100"}));
    assert_eq!(manner(within, places), Some((alone(), "slack:channel:C1:1699.000100".into())));
    for thread in [json!({}), json!({"thread_ts": ts})] {
        let places = Places { follow_threads: false, ..places };
        assert!(matches!(brought(mention(thread.clone()), places), Some(InboundEvent::Message(_))), "{thread}");
        assert_eq!(read(dm(thread)).map(|message| message.key.to_string()).as_deref(), Some("slack:dm:U1"));
    }
}

fn in_thread(more: Value) -> Value {
    let mut event = dm(json!({"channel": "C1", "channel_type": "channel", "thread_ts": "1699.000100"}));
    event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    event
}

#[test]
fn what_is_written_in_a_thread_may_be_for_the_bot() {
    let manner = |more: Value| manner(in_thread(more), Places::default()).map(|(manner, _)| manner);
    let plain = |names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Some(Addressing::Plain { names, answered: None })
    };
    assert_eq!(manner(json!({})), plain(&[]));
    assert_eq!(manner(json!({"channel_type": "mpim"})), plain(&[]));
    assert_eq!(manner(json!({"text": "<@U2> look"})), plain(&["U2"]));
    for (why, event) in [
        ("the mention comes by itself", in_thread(json!({"text": "<@UBOT> and now?"}))),
        ("of the bot", in_thread(json!({"user": "UBOT"}))),
        ("of another bot", in_thread(json!({"bot_id": "B2"}))),
        ("an edit", in_thread(json!({"subtype": "message_changed"}))),
        ("in no thread", in_thread(json!({"thread_ts": null}))),
        ("the beginning of one", in_thread(json!({"thread_ts": "1700000000.000100"}))),
    ] {
        assert_eq!(brought(event, Places::default()), None, "{why}");
    }
    let places = Places { follow_threads: false, ..Places::default() };
    assert_eq!(brought(in_thread(json!({})), places), None);
}

#[test]
fn who_mentions_it_in_a_thread_of_somebody_else_is_not_alone() {
    for (more, alone) in [
        (json!({}), true),
        (json!({"parent_user_id": "U1"}), true),
        (json!({"parent_user_id": "UBOT"}), true),
        (json!({"parent_user_id": "U2"}), false),
    ] {
        let mut event = mention(json!({"thread_ts": "1699.000100"}));
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let manner = manner(event, Places::default()).map(|(manner, _)| manner);
        assert_eq!(manner, Some(Addressing::Mention { alone }), "{more}");
    }
    let bots = mention(json!({"thread_ts": "1699.000100", "bot_id": "B2"}));
    assert!(matches!(brought(bots, Places::default()), Some(InboundEvent::Message(_))), "it is no person");
}

#[test]
fn a_mention_in_a_group_is_taken_however_it_comes() {
    let plain = dm(json!({"channel": "C5", "channel_type": "mpim", "text": "<@UBOT> hello"}));
    let (plain, mention) = (read(plain), read(mention(json!({"channel": "C5"}))));
    let mention = mention.map(|message| Inbound { text: "hello".into(), in_group: true, ..message });
    assert!(plain.is_some() && plain == mention, "only the plain event says that it is a group");
}

#[test]
fn only_the_direct_message_is_a_place_to_begin() {
    let opened = |tab: &str| {
        let event = json!({"type": "app_home_opened", "user": "U1", "channel": "D1", "tab": tab, "event_ts": "1.1"});
        brought(event, Places::default())
    };
    assert_eq!(opened("messages"), Some(InboundEvent::Opened { user: "U1".into(), channel: "D1".into() }));
    assert_eq!(opened("home"), None);
}

#[test]
fn a_command_keeps_the_ids_that_it_names_and_a_question_the_names() {
    let text = |text: &str| read(mention(json!({"text": format!("<@UBOT> {text}")}))).expect("a message").text;
    assert_eq!(text("/pmk admin admins add <@U2|han>"), "/pmk admin admins add <@U2|han>");
    assert_eq!(text("/pmk open R&amp;D in <#C2|lab>"), "/pmk open R&D in <#C2|lab>");
    assert_eq!(text("is <@U2|han> in?"), "is @han in?");
}

#[test]
fn what_is_not_for_the_bot_is_ignored() {
    for (why, event) in [
        ("the bot's own", dm(json!({"user": "UBOT"}))),
        ("the bot's own", dm(json!({"bot_id": "BBOT"}))),
        ("a bot's", dm(json!({"subtype": "bot_message", "bot_id": "B2", "user": null}))),
        ("a new subtype", dm(json!({"subtype": "something_new"}))),
        ("channel talk", dm(json!({"channel": "C1", "channel_type": "channel"}))),
        ("group talk", dm(json!({"channel": "G1", "channel_type": "mpim"}))),
        ("another event", json!({"type": "channel_created", "channel": {"id": "C1"}})),
    ] {
        assert_eq!(read(event), None, "{why}");
    }
}

/// Regression: `thread_ts: "1 2"` was stored under a key that could not be read back.
#[test]
fn an_id_that_is_none_is_refused() {
    let me = Identity::of_a_bot();
    let callback = |team: &str, id: &str, event: Value| {
        let callback = json!({"team_id": team, "event_id": id, "event": event});
        news(serde_json::from_value(callback).expect("one"), &me, Places::default())
    };
    let long = "1".repeat(1_000);
    for id in ["", "1 2", "1:2", "1\n2", "\u{1b}[2J", "\u{202e}1", "\u{200b}1", long.as_str()] {
        for field in ["user", "channel", "ts", "thread_ts"] {
            for event in [dm(json!({field: id})), mention(json!({field: id}))] {
                assert_eq!(callback("T1", "Ev1", event), Some(InboundEvent::Malformed(field)), "{id:?}");
            }
        }
        for (field, item) in [("channel", json!([id, "1.1"])), ("ts", json!(["C1", id]))] {
            let item = json!({"type": "message", "channel": item[0], "ts": item[1]});
            let reacted = json!({"type": "reaction_added", "user": "U1", "reaction": "x", "item": item});
            assert_eq!(callback("T1", "Ev1", reacted), Some(InboundEvent::Malformed(field)), "{id:?}");
        }
        assert_eq!(callback(id, "Ev1", dm(json!({}))), Some(InboundEvent::Malformed("team_id")), "{id:?}");
        assert_eq!(callback("T1", id, dm(json!({}))), Some(InboundEvent::Malformed("event_id")), "{id:?}");
    }
}

/// Regression: a message of a channel that another workspace shares has that one's id in its event, and had this one's
/// when it was read back: it was answered a second time when Slack sent it again.
#[test]
fn what_another_workspace_shares_had_another_name_when_it_was_read_back() {
    let me = Identity::of_a_bot();
    let event = mention(json!({}));
    let callback = json!({"team_id": "T2", "event_id": "Ev1", "event": event});
    let sent = news(serde_json::from_value(callback).expect("a callback"), &me, Places::default());
    let past = json!({"type": "message", "user": "U1", "ts": "1700000000.000100", "text": "<@UBOT> hello"});
    let past = of_past(past.as_object().expect("an object").clone(), "C1", &me, Places::default());
    let names = [sent, past].map(|event| event.map(message_of).expect("a message").aliases);
    let one = "ts:T1:C1:1700000000.000100".to_owned();
    // The other is how an earlier version has stored it.
    assert_eq!(names, [vec![one.clone(), "ts:T2:C1:1700000000.000100".to_owned()], vec![one]]);
}

#[test]
fn files_come_with_their_message() {
    let shared = json!({"subtype": "file_share", "files": [{"id": "F1"}, {"id": "F2"}], "text": ""});
    assert_eq!(read(dm(shared)).map(|message| (message.attached.files.len(), message.text)), Some((2, String::new())));
    let broadcast = json!({"subtype": "thread_broadcast", "thread_ts": "1699.000100"});
    assert!(read(dm(broadcast)).is_some());
    assert!(read(dm(json!({"subtype": "me_message", "text": "wonders"}))).is_some());
}

/// Regression: it was not known of a question that an app asked it, and apps were answered without limit.
#[test]
fn a_message_says_whether_an_app_has_written_it() {
    for (event, by_app) in [(dm(json!({})), false), (dm(json!({"bot_id": "B2"})), true), (mention(json!({})), false)] {
        assert_eq!(read(event).map(|message| message.by_app), Some(by_app));
    }
    let by_app = read(mention(json!({"bot_id": "B2"}))).expect("a message");
    assert!(by_app.by_app);
    // It is stored, and what earlier versions have stored is read.
    let stored = serde_json::to_value(&by_app).expect("JSON");
    assert_eq!(stored["by_app"], true);
    assert_eq!(serde_json::from_value::<Inbound>(stored.clone()).expect("a message"), by_app);
    let mut earlier = stored;
    earlier.as_object_mut().expect("an object").remove("by_app");
    assert!(!serde_json::from_value::<Inbound>(earlier).expect("a message").by_app);
}

/// Regression: a question that an app asks in blocks alone was empty.
#[test]
fn a_message_made_of_blocks_alone_is_read() {
    let blocks = json!([{"type": "section", "text": {"type": "mrkdwn", "text": "<@UBOT> is db1 full?"}}]);
    for (text, bot) in [(json!(null), json!(null)), (json!(""), json!("B2")), (json!("New question"), json!("B2"))] {
        let message = read(dm(json!({"text": text, "bot_id": bot, "blocks": blocks}))).expect("a message");
        assert_eq!(message.text, "is db1 full?", "{text} {bot}");
    }
    let person = read(dm(json!({"text": "typed", "blocks": blocks}))).expect("a message");
    assert_eq!(person.text, "typed");
}

#[test]
fn a_message_in_an_unknown_shape_is_still_read() {
    let odd = json!({"files": [{"no_id": true}], "attachments": "none", "blocks": 1});
    let message = read(dm(odd)).expect("a message");
    assert_eq!((message.attached.files.len(), message.text.as_str()), (1, "1 < 2?"));
}
