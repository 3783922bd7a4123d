//! Lines of the console, and what has to become of each.

use serde_json::{Value, json};

use super::{
    is_id,
    mutator::{Kind, Mutant, Twice, mutate},
};
use crate::moments::Moments;

const KIND: Kind = Kind {
    ids: &["/user", "/channel", "/thread_ts", "/event_id", "/ts"],
    looked_at: &["", "/type", "/text"],
    // The last word counts.
    twice: &[("", "user", Twice::Once), ("", "text", Twice::Once), ("", "type", Twice::Once)],
    // Everything is looked at as far as whether it is JSON.
    ignored: &["/more"],
};

/// What has to become of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Blank,
    Refused,
    /// It is stored and answered, under this id where it names one.
    Accepted(Option<String>),
    Reaction,
}

/// Draws a line.
pub fn draw(dice: &mut Moments) -> Mutant {
    let id = format!("{:012}", dice.below(1_000_000_000_000));
    let user = format!("U{}", dice.below(40));
    let value = match dice.below(4) {
        0 => json!({"type": "reaction", "user": user, "channel": "D1", "ts": format!("Ev{id}.0"), "reaction": "x"}),
        1 => json!({"text": "and now? 預算", "event_id": format!("Ev{id}")}),
        _ => json!({
            "type": "message", "user": user, "channel": dice.one_of(&["C7", "D1"]), "thread_ts": "1700000000.000100",
            "text": "What of the budget?", "event_id": format!("Ev{id}"),
        }),
    };
    let mut mutant = mutate(dice, value, &KIND);
    // One line stays one.
    mutant.bytes.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    if mutant.is_deep {
        mutant.judged_as = Some(json!([]));
    }
    mutant
}

/// What has to become of a line. The reader is a simple one on purpose, and shares nothing with the gateway's.
pub fn judge(mutant: &Mutant) -> Verdict {
    if mutant.bytes.trim_ascii().is_empty() {
        return Verdict::Blank;
    }
    let read = || {
        let text = std::str::from_utf8(&mutant.bytes).ok()?;
        let line = match &mutant.judged_as {
            Some(value) => value.clone(),
            None => serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?,
        };
        line.is_object().then(|| accepted(&line))?
    };
    read().unwrap_or(Verdict::Refused)
}

fn accepted(line: &Value) -> Option<Verdict> {
    let optional = |name: &str| match &line[name] {
        Value::Null => Some(None),
        other => other.as_str().map(Some),
    };
    match optional("type")? {
        None | Some("message") => {}
        Some("reaction") => {
            // Those of the program's own have colons.
            let ts = optional("ts")??.replace(':', ".");
            let ids = [optional("user")??, optional("channel")??, &ts];
            let named = optional("reaction")?.is_some_and(|reaction| !reaction.is_empty());
            return (named && ids.into_iter().all(is_id)).then_some(Verdict::Reaction);
        }
        Some(_) => return None,
    }
    let (user, channel, thread) = (optional("user")?, optional("channel")?, optional("thread_ts")?);
    let event = optional("event_id")?.filter(|id| !id.is_empty());
    let thread = thread.filter(|thread| !thread.is_empty());
    let channel = channel.unwrap_or("D1");
    optional("text")??;
    let ids = [user, Some(channel), thread, event].into_iter().flatten().all(is_id);
    let fits = event.is_none_or(|id| id.chars().count() <= 117);
    (ids && fits && channel.starts_with(['C', 'D'])).then(|| Verdict::Accepted(event.map(str::to_owned)))
}
