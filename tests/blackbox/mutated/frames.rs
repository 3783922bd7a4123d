//! Frames of Socket Mode, and what has to become of each.

use pmk_stand_ins::slack::{BOT_ID, BOT_USER, TEAM};
use serde_json::{Value, json};

use super::{
    is_id,
    mutator::{Kind, Mutant, Twice, mutate},
};
use crate::moments::Moments;

const KIND: Kind = Kind {
    ids: &[
        "/envelope_id",
        "/payload/team_id",
        "/payload/event_id",
        "/payload/event/user",
        "/payload/event/channel",
        "/payload/event/ts",
        "/payload/event/thread_ts",
        "/payload/event/item/channel",
        "/payload/event/item/ts",
    ],
    looked_at: &[
        "/type",
        "/retry_attempt",
        "/payload",
        "/payload/event",
        "/payload/event_time",
        "/payload/event/type",
        "/payload/event/text",
        "/payload/event/files",
        "/payload/event/channel_type",
        "/payload/event/parent_user_id",
        "/payload/event/tab",
        "/payload/event/item",
        "/payload/event/item/type",
    ],
    twice: &[
        ("", "envelope_id", Twice::Nothing),
        ("", "type", Twice::Nothing),
        ("", "accepts_response_payload", Twice::Once),
        ("/payload", "event_id", Twice::Wrong),
        ("/payload", "token", Twice::Once),
        ("/payload/event", "type", Twice::Wrong),
        ("/payload/event", "user", Twice::Wrong),
        ("/payload/event/item", "channel", Twice::Wrong),
        ("/payload/event", "event_ts", Twice::Once),
    ],
    ignored: &["/debug_info", "/payload/authorizations", "/payload/authed_users"],
};

/// What has to become of a frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The envelope that is acknowledged.
    pub acknowledged: Option<String>,
    /// It is refused and counted.
    pub malformed: bool,
    /// The event that is stored and answered.
    pub stored: Option<String>,
    /// It ends the connection.
    pub ends: bool,
    /// No reader has to see more than that it is broken.
    pub unreadable: bool,
}

/// Draws a frame.
pub fn draw(dice: &mut Moments) -> Mutant {
    let id = format!("{:012}", dice.below(1_000_000_000_000));
    let user = format!("U{}", dice.below(40));
    let ts = format!("17{}.{}", &id[..8], &id[6..]);
    let direct = json!({
        "type": "message", "user": user, "channel": format!("D{}", dice.below(40)), "channel_type": "im", "ts": ts,
        "event_ts": ts, "text": "What of the budget? 預算", "team": TEAM, "files": [{"id": "F1"}],
        "blocks": [{"type": "rich_text", "elements": [{"type": "text", "text": "What of the budget?"}]}],
    });
    let mention = json!({
        "type": "app_mention", "user": user, "channel": "C7", "ts": ts, "thread_ts": "1700000000.000100",
        "event_ts": ts, "text": format!("<@{BOT_USER}> and now?"),
    });
    // In a thread in which nobody has asked anything.
    let talk = json!({
        "type": "message", "user": user, "channel": "C8", "channel_type": "channel", "ts": ts, "event_ts": ts,
        "thread_ts": "1700000000.000100", "parent_user_id": "U1", "text": "Lunch?",
    });
    let opened = json!({
        "type": "app_home_opened", "user": user, "channel": "D1", "tab": "messages", "event_ts": ts,
    });
    let reaction = json!({
        "type": "reaction_added", "user": user, "reaction": "white_check_mark", "item_user": BOT_USER, "event_ts": ts,
        "item": {"type": "message", "channel": "C7", "ts": ts},
    });
    let changed = json!({
        "type": "message", "subtype": "message_changed", "channel": "D1", "channel_type": "im", "ts": ts,
        "event_ts": ts, "message": direct, "previous_message": direct,
    });
    let event = |event: Value| {
        json!({
            "envelope_id": format!("env-{id}"), "type": "events_api", "accepts_response_payload": false,
            "retry_attempt": 0, "retry_reason": "", "payload": {
                "token": "t", "team_id": TEAM, "api_app_id": "A1", "type": "event_callback",
                "event_id": format!("Ev{id}"), "event_time": 1_700_000_000, "event": event, "event_context": "4-x",
                "authorizations": [{"enterprise_id": null, "team_id": TEAM, "user_id": BOT_USER, "is_bot": true}],
            },
        })
    };
    let other =
        |kind: &str, payload: Value| json!({"envelope_id": format!("env-{id}"), "type": kind, "payload": payload});
    let value = match dice.below(14) {
        0..=2 => event(direct),
        3 | 4 => event(mention),
        5 => event(reaction),
        6 => event(changed),
        7 => event(json!({"type": "channel_created", "channel": {"id": "C1"}})),
        8 => other("interactive", json!({"type": "block_actions", "user": {"id": user}, "actions": []})),
        9 => other("slash_commands", json!({"command": "/pmk", "text": "reset", "user_id": user, "channel_id": "C1"})),
        10 => event(talk),
        11 => event(opened),
        12 => json!({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}, "debug_info": {}}),
        _ => json!({"type": dice.one_of(&["disconnect", "something_new"]), "reason": "warning", "debug_info": {}}),
    };
    mutate(dice, value, &KIND)
}

/// What has to become of a frame. The reader is a simple one on purpose, and shares nothing with the gateway's.
pub fn judge(mutant: &Mutant, text: &str) -> Verdict {
    let refused = Verdict { malformed: true, ..Verdict::default() };
    let frame = match (&mutant.judged_as, serde_json::from_str::<Value>(text)) {
        (Some(value), _) => value.clone(),
        (None, Ok(value)) => value,
        (None, Err(_)) => return Verdict { unreadable: true, ..refused },
    };
    if !frame.is_object() {
        return refused;
    }
    let acknowledged = match &frame["envelope_id"] {
        Value::Null => None,
        Value::String(id) if !id.is_empty() && id.len() <= 256 => Some(id.clone()),
        _ => return refused,
    };
    match frame["type"].as_str() {
        None => Verdict { acknowledged, ..refused },
        Some("hello") => Verdict::default(),
        Some("disconnect") => Verdict { ends: true, ..Verdict::default() },
        Some("events_api") if acknowledged.is_none() => refused,
        Some("events_api") => match stored(&frame["payload"]) {
            Some(stored) => Verdict { acknowledged, stored, ..Verdict::default() },
            None => Verdict { acknowledged, ..refused },
        },
        Some("slash_commands" | "interactive") if acknowledged.is_none() => refused,
        Some("slash_commands") => match command(&frame) {
            Some(stored) => Verdict { acknowledged, stored: Some(stored), ..Verdict::default() },
            None => Verdict { acknowledged, ..refused },
        },
        Some("interactive") if !is_click(&frame["payload"]) => Verdict { acknowledged, ..refused },
        Some(_) => Verdict { acknowledged, ..Verdict::default() },
    }
}

/// What a slash command is stored as, where it says who has used it and where.
fn command(frame: &Value) -> Option<String> {
    let payload = frame["payload"].as_object().map(|_| &frame["payload"])?;
    let id = payload["trigger_id"].as_str().or(frame["envelope_id"].as_str())?;
    let ids = [payload["user_id"].as_str()?, payload["channel_id"].as_str()?, id];
    ids.into_iter().all(is_id).then(|| format!(":slash:{id}"))
}

/// Whether somebody is said to have clicked something.
fn is_click(payload: &Value) -> bool {
    if !payload.is_object() {
        return false;
    }
    let channel = &payload["channel"];
    let is_somewhere = channel.is_null() || channel["id"].as_str().is_some_and(is_id);
    is_somewhere && payload["user"]["id"].as_str().is_some_and(is_id)
}

/// Which event of a payload is stored, if any; `None` where the payload is malformed.
fn stored(payload: &Value) -> Option<Option<String>> {
    let event = payload["event"].as_object().map(|_| &payload["event"])?;
    let (team, id) = (payload["team_id"].as_str()?, payload["event_id"].as_str()?);
    let is_time = payload["event_time"].is_null() || payload["event_time"].is_i64();
    if !is_id(team) || !is_id(id) || !is_time {
        return None;
    }
    match event["type"].as_str()? {
        kind @ ("message" | "app_mention") => Some(is_for_us(event, kind == "app_mention")?.then(|| id.to_owned())),
        "reaction_added" => {
            let (user, item) = (event["user"].as_str()?, &event["item"]);
            event["reaction"].as_str()?;
            item.as_object()?;
            if item["type"].as_str()? != "message" {
                return Some(None);
            }
            [user, item["channel"].as_str()?, item["ts"].as_str()?].into_iter().all(is_id).then_some(None)
        }
        "app_home_opened" => {
            let (user, channel, tab) = (event["user"].as_str()?, event["channel"].as_str()?, &event["tab"]);
            ([user, channel].into_iter().all(is_id) && (tab.is_null() || tab.is_string())).then_some(None)
        }
        _ => Some(None),
    }
}

fn is_for_us(event: &Value, mentioned: bool) -> Option<bool> {
    let optional = |name: &str| match &event[name] {
        Value::Null => Some(None),
        other => other.as_str().map(Some),
    };
    let (user, bot, kind, thread) =
        (optional("user")?, optional("bot_id")?, optional("channel_type")?, optional("thread_ts")?);
    let (subtype, channel, ts) = (optional("subtype")?, event["channel"].as_str()?, event["ts"].as_str()?);
    optional("text")?;
    optional("parent_user_id")?;
    if ![user, thread, Some(channel), Some(ts)].into_iter().flatten().all(is_id) {
        return None;
    }
    let said = user.is_some_and(|user| user != BOT_USER) && bot != Some(BOT_ID);
    let direct = kind == Some("im") || channel.starts_with('D');
    Some(said && matches!(subtype, None | Some("file_share" | "thread_broadcast")) && (direct || mentioned))
}
