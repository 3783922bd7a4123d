//! Blocks of messages, as Slack accepts them, and clicks on their elements.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};

use super::{APP_ID, Inner, TEAM, events, methods::as_json, state::Message};

const MOST_BLOCKS: usize = 50;
const MOST_BUTTONS: usize = 25;
const MOST_IN_CONTEXT: usize = 5;
const LONGEST_SECTION: usize = 3_000;
const LONGEST_MARKDOWN: usize = 12_000;
const LONGEST_LABEL: usize = 75;
const LONGEST_VALUE: usize = 2_000;
const LONGEST_ID: usize = 255;
/// The limit on the texts of all blocks and the plain text together. Not documented; measured between 13,202 and 13,297.
const LONGEST_TOGETHER: usize = 13_200;

/// Block types that are accepted without further checks.
const OTHERS: [&str; 8] = ["context", "divider", "file", "header", "image", "rich_text", "table", "video"];

/// The blocks of a message that is posted or edited: `None` if the call does not contain any.
pub(super) fn read(inner: &Inner, body: &Value) -> Result<Option<Vec<Value>>, &'static str> {
    let mut blocks = match body.get("blocks") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(_) => return Err("invalid_blocks_format"),
    };
    let ids: Vec<&str> = blocks.iter().filter_map(|block| block["block_id"].as_str()).collect();
    let are_apart = ids.iter().collect::<HashSet<_>>().len() == ids.len();
    if blocks.len() > MOST_BLOCKS || !are_apart || !blocks.iter().all(is_block) {
        return Err("invalid_blocks");
    }
    let said: usize = blocks.iter().map(|block| text_of(block).chars().count()).sum();
    let beside = body["text"].as_str().map_or(0, |text| text.chars().count());
    if said + beside > LONGEST_TOGETHER {
        return Err("msg_blocks_too_long");
    }
    for block in &mut blocks {
        if block["block_id"].is_null() {
            block["block_id"] = inner.state().id("b").into();
        }
    }
    Ok(Some(blocks))
}

/// The text of blocks, except the labels of buttons.
pub(super) fn text(blocks: &[Value]) -> String {
    blocks.iter().map(text_of).collect()
}

fn text_of(block: &Value) -> &str {
    block["text"].as_str().or(block["text"]["text"].as_str()).unwrap_or_default()
}

fn is_block(block: &Value) -> bool {
    let is_id = block["block_id"].is_null() || is_text(&block["block_id"], LONGEST_ID);
    let elements = |most| block["elements"].as_array().filter(|elements| (1..=most).contains(&elements.len()));
    let has = |names: &[&str]| has_only(block, &[&["type", "block_id"], names].concat());
    is_id
        && match block["type"].as_str() {
            Some("section") => {
                has(&["text", "fields", "accessory", "expand"])
                    && (block["expand"].is_null() || block["expand"].is_boolean())
                    && (block["fields"].is_array() || is_text_object(&block["text"], LONGEST_SECTION))
            }
            Some("markdown") => has(&["text"]) && is_text(&block["text"], LONGEST_MARKDOWN),
            Some("actions") => {
                let buttons = elements(MOST_BUTTONS);
                has(&["elements"]) && buttons.is_some_and(|them| are_apart(them) && them.iter().all(is_button))
            }
            Some("context_actions") => {
                let elements = elements(MOST_IN_CONTEXT);
                has(&["elements"]) && elements.is_some_and(|them| are_apart(them) && them.iter().all(is_feedback))
            }
            Some(other) => OTHERS.contains(&other),
            None => false,
        }
}

fn is_button(element: &Value) -> bool {
    const NAMES: [&str; 8] = ["type", "text", "action_id", "url", "value", "style", "confirm", "accessibility_label"];
    element["type"] == "button"
        && has_only(element, &NAMES)
        && has_id(element)
        && is_label(&element["text"])
        && (element["value"].is_null() || is_text(&element["value"], LONGEST_VALUE))
        && (element["style"].is_null() || element["style"] == "primary" || element["style"] == "danger")
}

/// Whether it is the pair of feedback buttons.
fn is_feedback(element: &Value) -> bool {
    let is_thumb = |thumb: &Value| {
        has_only(thumb, &["text", "value", "accessibility_label"])
            && is_label(&thumb["text"])
            && is_text(&thumb["value"], LONGEST_VALUE)
            && (thumb["accessibility_label"].is_null() || is_text(&thumb["accessibility_label"], LONGEST_LABEL))
    };
    element["type"] == "feedback_buttons"
        && has_only(element, &["type", "action_id", "positive_button", "negative_button"])
        && has_id(element)
        && is_thumb(&element["positive_button"])
        && is_thumb(&element["negative_button"])
}

fn has_id(element: &Value) -> bool {
    element["action_id"].is_null() || is_text(&element["action_id"], LONGEST_ID)
}

/// Whether the elements of a block have different action ids.
fn are_apart(elements: &[Value]) -> bool {
    let ids: Vec<&str> = elements.iter().filter_map(|element| element["action_id"].as_str()).collect();
    ids.iter().collect::<HashSet<_>>().len() == ids.len()
}

fn is_label(text: &Value) -> bool {
    text["type"] == "plain_text" && is_text_object(text, LONGEST_LABEL)
}

fn is_text_object(text: &Value, longest: usize) -> bool {
    let names: &[&str] = match text["type"].as_str() {
        Some("mrkdwn") => &["type", "text", "verbatim"],
        Some("plain_text") => &["type", "text", "emoji"],
        _ => return false,
    };
    has_only(text, names) && is_text(&text["text"], longest)
}

fn is_text(text: &Value, longest: usize) -> bool {
    text.as_str().is_some_and(|text| (1..=longest).contains(&text.chars().count()))
}

fn has_only(object: &Value, names: &[&str]) -> bool {
    object.as_object().is_some_and(|object| object.keys().all(|name| names.contains(&name.as_str())))
}

/// The clickable elements: action id, value, block and element.
pub(super) fn clickable(blocks: &[Value]) -> impl Iterator<Item = (&str, &str, &Value, &Value)> {
    let of = |block| elements(block).flat_map(move |element| values(element).map(move |value| (block, element, value)));
    blocks
        .iter()
        .flat_map(of)
        .filter_map(|(block, element, value)| Some((element["action_id"].as_str()?, value?, block, element)))
}

fn elements(block: &Value) -> impl Iterator<Item = &Value> {
    block["elements"].as_array().into_iter().flatten()
}

fn values(element: &Value) -> impl Iterator<Item = Option<&str>> {
    let thumbs = ["positive_button", "negative_button"].map(|thumb| element[thumb]["value"].as_str());
    [element["value"].as_str()].into_iter().chain(thumbs).filter(Option::is_some)
}

/// A person clicks an element of a message that they see; returns the id of the click.
///
/// # Panics
/// If the message has no such element.
pub(super) fn click(inner: &Arc<Inner>, user: &str, message: &Message, action_id: &str, value: &str) -> String {
    let clicked = clickable(&message.blocks).find(|(id, said, ..)| *id == action_id && *said == value);
    let (_, _, block, element) = clicked.unwrap_or_else(|| panic!("no `{action_id}` says `{value}` in {message:?}"));
    let (trigger, action_ts) = {
        let mut state = inner.state();
        (state.number(), state.ts())
    };
    let mut action = json!({
        "type": element["type"], "action_id": action_id, "block_id": block["block_id"], "value": value,
        "action_ts": action_ts,
    });
    if element["type"] == "button" {
        action["text"] = element["text"].clone();
    }
    let mut container = json!({
        "type": "message", "message_ts": message.ts, "channel_id": message.channel, "is_ephemeral": false,
    });
    if let Some(thread) = &message.thread_ts {
        container["thread_ts"] = json!(thread);
    }
    let payload = json!({
        "type": "block_actions", "token": "verification", "api_app_id": APP_ID,
        "team": {"id": TEAM, "domain": "acme"}, "enterprise": null, "is_enterprise_install": false,
        "user": {"id": user, "username": "somebody", "name": "somebody", "team_id": TEAM},
        "channel": {"id": message.channel, "name": "somewhere"}, "container": container, "message": as_json(message),
        "state": {"values": {}}, "trigger_id": format!("{trigger}.474920.8088930838d88f008e0"),
        "response_url": "https://hooks.slack.com/actions/1", "actions": [action],
    });
    events::send_once(inner, "interactive", payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn button(change: impl FnOnce(&mut Value)) -> Value {
        let mut button = json!({"type": "button", "action_id": "a", "value": "yes",
            "text": {"type": "plain_text", "text": "Yes"}});
        change(&mut button);
        json!({"type": "actions", "elements": [button]})
    }

    #[test]
    fn a_button_is_taken_as_long_as_slack_takes_it() {
        assert!(is_block(&button(|_| {})));
        for (field, most) in [("action_id", LONGEST_ID), ("value", LONGEST_VALUE)] {
            assert!(is_block(&button(|button| button[field] = "x".repeat(most).into())), "{field}");
            assert!(!is_block(&button(|button| button[field] = "x".repeat(most + 1).into())), "{field}");
        }
        assert!(!is_block(&button(|button| button["text"]["text"] = "x".repeat(LONGEST_LABEL + 1).into())));
        assert!(!is_block(&button(|button| button["text"]["type"] = "mrkdwn".into())));
        assert!(!is_block(&button(|button| button["style"] = "loud".into())));
        assert!(!is_block(&button(|button| button["surprise"] = 1.into())));
        let twice = button(|_| {})["elements"][0].clone();
        assert!(!is_block(&json!({"type": "actions", "elements": [twice, twice]})));
        assert!(!is_block(&json!({"type": "actions", "elements": []})));
        assert!(!is_block(&json!({"type": "buttons"})));
    }

    #[test]
    fn thumbs_have_two_sides() {
        let thumb = json!({"text": {"type": "plain_text", "text": "Good"}, "value": "like"});
        let mut thumbs = json!({"type": "feedback_buttons", "action_id": "a", "positive_button": thumb,
            "negative_button": thumb});
        let block = |thumbs: &Value| json!({"type": "context_actions", "elements": [thumbs]});
        assert!(is_block(&block(&thumbs)));
        let blocks = [block(&thumbs)];
        let said: Vec<(&str, &str)> = clickable(&blocks).map(|(id, value, ..)| (id, value)).collect();
        assert_eq!(said, [("a", "like"), ("a", "like")]);
        thumbs["negative_button"] = Value::Null;
        assert!(!is_block(&block(&thumbs)));
    }

    #[test]
    fn a_section_has_a_text_that_is_not_too_long() {
        let section =
            |length: usize| json!({"type": "section", "text": {"type": "mrkdwn", "text": "x".repeat(length)}});
        assert!(is_block(&section(LONGEST_SECTION)));
        assert!(!is_block(&section(LONGEST_SECTION + 1)) && !is_block(&section(0)));
        assert!(!is_block(&json!({"type": "section", "text": "x"})));
    }
}
