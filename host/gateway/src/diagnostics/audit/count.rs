//! Counts the events of the ledger.

use std::collections::{HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use pmk_knowledge::{Status, atom::Atom};
use serde_json::Value;

use super::{Audit, Counts, Flag, ModelTokens, Record, arms, bounds, median::median};
use crate::{
    escalation::Marker,
    ledger::{Month, Series},
    store::ModelCalibration,
};

/// A pending atom older than this should have been promoted.
const STUCK_MS: i64 = 24 * 60 * 60 * 1_000;

/// A question that has waited longer than this should be put to somebody else.
const FORGOTTEN_MS: i64 = 48 * 60 * 60 * 1_000;

/// The current state that the audit uses besides the events.
pub struct Now<'a> {
    pub at: Timestamp,
    pub atoms: &'a [Atom],
    pub pending: &'a [Marker],
    /// How many messages are parked.
    pub parked: u64,
    /// How many lines of the ledger wait in the store, and so are not among the events.
    pub unwritten: u64,
    /// The calibration of each provider and model.
    pub learnt: &'a [ModelCalibration],
}

/// Counts the events of the last days.
pub fn audit(days: u32, records: &[Record], unreadable_lines: u64, now: &Now<'_>) -> Audit {
    let mut audit = Audit { days, unreadable_lines, experiments: arms::arms(records), ..Audit::default() };
    let mut durations = Vec::new();
    // A thread may ask again before it is answered; answers are matched to its questions in order.
    let mut waiting: HashMap<(String, String), VecDeque<Timestamp>> = HashMap::new();
    let mut replies = Vec::new();
    let mut atoms_shown = Vec::new();
    for Record { at, event } in records {
        let thread = || (text(event, "channelId"), text(event, "threadTs"));
        match event["type"].as_str().unwrap_or_default() {
            "turn.processed" => {
                turn(&mut audit, event);
                atoms_shown.extend(event["atomsInjected"].as_u64().filter(|atoms| *atoms > 0));
            }
            "reply.undelivered" => audit.conversations.undelivered += 1,
            "reply.cut" => audit.conversations.cut += 1,
            "turn.parked" => audit.conversations.parked += 1,
            "turn.panicked" => audit.conversations.panicked += 1,
            "queue.swept" => audit.conversations.swept += event["messages"].as_u64().unwrap_or(0),
            "ledger.forgotten" => forgotten(&mut audit, event, now.at),
            "store.lost" => audit.store_lost += 1,
            "front.refused" => audit.connections.refused += 1,
            "front.malformed" => audit.connections.malformed += 1,
            "front.connected-again" => {
                audit.connections.silences += 1;
                audit.connections.deaf_ms += event["deafMs"].as_u64().unwrap_or(0);
                audit.connections.late += event["late"].as_u64().unwrap_or(0);
            }
            "gateway.online" => {
                add(&mut audit.presence.online, text(event, "reason"));
                audit.presence.away_ms += event["offlineDurationMs"].as_u64().unwrap_or(0);
            }
            "gateway.offline" => audit.presence.offline += 1,
            "gateway.caught-up" => {
                audit.presence.caught_up += event["messages"].as_u64().unwrap_or(0);
                audit.presence.unreadable += event["unreadable"].as_u64().unwrap_or(0);
                audit.presence.cut += event["cut"].as_u64().unwrap_or(0);
                audit.presence.left_out += event["leftOut"].as_u64().unwrap_or(0);
            }
            "access.refused" => add(&mut audit.refused.access, text(event, "action")),
            "directive.echoed" => add(&mut audit.refused.echoed, text(event, "kind")),
            "directive.bounded" => add(&mut audit.refused.bounded, text(event, "kind")),
            "escalate.proposed" => audit.refused.proposed += 1,
            "escalate.dropped" => audit.refused.dropped += 1,
            "case.opened" => audit.cases.opened += 1,
            "case.closed" => audit.cases.closed += 1,
            "case.updated" => {
                audit.cases.updates += 1;
                audit.cases.hypotheses += event["hypotheses"].as_u64().unwrap_or(0);
                audit.cases.questions += event["questions"].as_u64().unwrap_or(0);
            }
            "reply.split" => audit.context_safety.replies_split += 1,
            "context.exceeded" => add(&mut audit.context_safety.exceeded, text(event, "phase")),
            "context.pruned" => audit.context_safety.pruned += 1,
            "context.force-pruned" => audit.context_safety.force_pruned += 1,
            "context.compacted" if event["recovering"] == true => audit.context_safety.compacted_recovering += 1,
            "context.compacted" => audit.context_safety.compacted_ahead += 1,
            "context.replanned" => audit.context_safety.replanned += 1,
            "context.suspected" => {
                let about = about(&text(event, "because"), event["helped"] == true);
                add(&mut audit.context_safety.suspected, about);
            }
            "context.rotated" => audit.context_safety.rotated += 1,
            "context.recovery_failed" => audit.context_safety.recovery_failed += 1,
            "message.capped" => add(&mut audit.context_safety.capped, text(event, "kind")),
            "policy.failed" => {
                audit.policies.failures += 1;
                add(&mut audit.policies.by_policy, text(event, "policy"));
            }
            "model.no-tools" => {
                let model = format!("{}:{}", text(event, "provider"), text(event, "model"));
                add(&mut audit.tokens.without_tools, model);
            }
            "policy.suspended" => audit.policies.suspensions += 1,
            "token.usage" => usage(&mut audit, event),
            "mra-ask.end" => {
                mra_ask(&mut audit, event);
                durations.extend(event["durationMs"].as_u64());
            }
            "escalate.triggered" => {
                audit.escalate.triggered += 1;
                waiting.entry(thread()).or_default().push_back(*at);
            }
            "escalate.absorbed" => {
                audit.escalate.absorbed += 1;
                let since = waiting.get_mut(&thread()).and_then(VecDeque::pop_front);
                replies
                    .extend(since.and_then(|since| u64::try_from(at.as_millisecond() - since.as_millisecond()).ok()));
            }
            "escalate.cancelled" => {
                audit.escalate.cancelled += 1;
                waiting.get_mut(&thread()).and_then(VecDeque::pop_front);
            }
            _ => {}
        }
    }
    audit.mra_ask.median_ms = median(durations).map(|ms| ms.round() as u64);
    audit.mra_ask.share_of_turns = share(audit.mra_ask.turns, audit.conversations.turns);
    audit.escalate.median_ms_to_reply = median(replies).map(|ms| ms.round() as u64);
    audit.atoms.a_turn = share(audit.atoms.injected, audit.conversations.turns);
    audit.atoms.median_a_turn = median(atoms_shown);
    audit.conversations.parked_now = now.parked;
    corpus(&mut audit, now);
    for ModelCalibration { provider, model, fit, bounds } in now.learnt {
        let tokens = audit.tokens.by_model.entry(format!("{provider}:{model}")).or_default();
        tokens.bounds = bounds::shown(bounds);
        tokens.factor = Some((fit.factor() * 1_000.0).round() / 1_000.0);
        tokens.overhead = Some(fit.overhead().round() as u64);
    }
    audit.flags = flags(&audit, now);
    audit
}

fn turn(audit: &mut Audit, event: &Value) {
    let audience = text(event, "audience");
    // It ended with something else than an answer of the model.
    if audience.is_empty() {
        let ended = match event["command"] == "stop" {
            true => &mut audit.conversations.stopped,
            false => &mut audit.conversations.orders,
        };
        *ended += 1;
        return;
    }
    audit.conversations.turns += 1;
    add(&mut audit.conversations.by_user, text(event, "actor"));
    add(&mut audit.conversations.by_audience, audience);
    if let Some(class) = event["unanswered"].as_str() {
        add(&mut audit.conversations.unanswered, class.to_owned());
    }
    let injected = event["atomsInjected"].as_u64().unwrap_or(0);
    audit.mra_ask.turns += u64::from(event["hadMraAsk"] == true);
    audit.atoms.injected += injected;
    audit.atoms.turns_with_atoms += u64::from(injected > 0);
}

/// Counts deleted files of the ledger: if their months belong to the window, its beginning is missing.
fn forgotten(audit: &mut Audit, event: &Value, at: Timestamp) {
    let files = event["files"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let Some(last) = files.filter_map(|name| Month::of_file(Series::Events, name)).max() else { return };
    let since = Month::of(at - SignedDuration::from_hours(24 * i64::from(audit.days)));
    if last >= since {
        audit.counted_from = Some(last.next().to_string()).max(audit.counted_from.take());
    }
}

fn usage(audit: &mut Audit, event: &Value) {
    let count = |key: &str| event[key].as_u64().unwrap_or(0);
    let model = format!("{}:{}", text(event, "provider"), text(event, "model"));
    let tokens: &mut ModelTokens = audit.tokens.by_model.entry(model).or_default();
    tokens.calls += 1;
    tokens.input += count("inputTokens");
    tokens.output += count("outputTokens");
    tokens.cache_read += count("cacheReadTokens");
    tokens.cache_creation += count("cacheCreationTokens");
    let person = audit.tokens.by_user.entry(text(event, "actor")).or_default();
    person.calls += 1;
    person.input += count("inputTokens") + count("cacheReadTokens") + count("cacheCreationTokens");
    person.output += count("outputTokens");
}

fn mra_ask(audit: &mut Audit, event: &Value) {
    let mra = &mut audit.mra_ask;
    mra.invocations += 1;
    let came_to = match (event["ok"] == true, event["retried"] == true) {
        (true, false) => &mut mra.ok,
        (true, true) => &mut mra.retried,
        (false, _) => &mut mra.failed,
    };
    *came_to += 1;
    add(&mut audit.mra_ask.by_repo, text(event, "repo"));
}

fn corpus(audit: &mut Audit, now: &Now<'_>) {
    for atom in now.atoms {
        audit.atoms.total += 1;
        match atom.meta.status {
            Status::Approved => audit.atoms.approved += 1,
            Status::Pending => audit.atoms.pending += 1,
        }
        let contributor = &atom.meta.source.contributor_user_id;
        if !contributor.is_empty() {
            add(&mut audit.atoms.by_contributor, contributor.clone());
        }
    }
    audit.escalate.pending = now.pending.len() as u64;
}

/// The anti-patterns of specification 003 §12 and of specification 000.
fn flags(audit: &Audit, now: &Now<'_>) -> Vec<Flag> {
    let at_ms = now.at.as_millisecond();
    let stuck = now
        .atoms
        .iter()
        .filter(|atom| atom.meta.status == Status::Pending && at_ms - atom.meta.created_at > STUCK_MS)
        // An atom that is never due waits for a person, however long.
        .filter(|atom| atom.due_at_ms().is_some())
        .count();
    let forgotten = now
        .pending
        .iter()
        .filter(|marker| at_ms - i64::try_from(marker.pending_since).unwrap_or(i64::MAX) > FORGOTTEN_MS)
        .count();
    let safety = &audit.context_safety;
    let exceeded: u64 = safety.exceeded.values().sum();
    let suspected = |helped: &str| -> u64 {
        safety.suspected.iter().filter(|(what, _)| what.ends_with(helped)).map(|(_, count)| count).sum()
    };
    let bounds: usize = now.learnt.iter().map(|learnt| bounds::shown(&learnt.bounds).len()).sum();
    [
        (
            stuck as u64,
            "atom has been pending for more than 24 h: `atoms list` promotes it",
            "atoms have been pending for more than 24 h: `atoms list` promotes them",
        ),
        (
            forgotten as u64,
            "thread has waited for an answer for more than 48 h: ask somebody else",
            "threads have waited for an answer for more than 48 h: ask somebody else",
        ),
        (
            exceeded,
            "prompt was refused as too long: lower `max-session-tokens` or a cap if that continues",
            "prompts were refused as too long: lower `max-session-tokens` or a cap if that continues",
        ),
        (
            suspected(": helped"),
            "prompt got no answer, without a reason, until it was made smaller: set `--window` to the model's real \
             window",
            "prompts got no answer, without a reason, until they were made smaller: set `--window` to the model's \
             real window",
        ),
        (
            suspected(": did not help"),
            "prompt got no answer, without a reason, whatever its size: see `context.suspected` in the ledger and the \
             log",
            "prompts got no answer, without a reason, whatever their size: see `context.suspected` in the ledger and \
             the log",
        ),
        (
            bounds as u64,
            "bound of a model's window was learned from refusals, see Tokens: if it is wrong, stop the gateway and run \
             `pmk-host model forget`",
            "bounds of a model's window were learned from refusals, see Tokens: if one is wrong, stop the gateway and \
             run `pmk-host model forget`",
        ),
        (
            safety.recovery_failed,
            "message could not be answered because of its size: split it, or use a model with a larger window",
            "messages could not be answered because of their size: split them, or use a model with a larger window",
        ),
        (
            audit.tokens.without_tools.len() as u64,
            "model did not accept tools and is asked for fenced directives: to try tools again, stop the gateway, run \
             `model forget` and start it",
            "models did not accept tools and are asked for fenced directives: to try tools again, stop the gateway, \
             run `model forget` and start it",
        ),
        (
            audit.conversations.unanswered.values().sum(),
            "turn got no answer from the model: see `unanswered` in the ledger and the log",
            "turns got no answer from the model: see `unanswered` in the ledger and the log",
        ),
        (audit.conversations.undelivered, "reply was refused by the front", "replies were refused by the front"),
        (
            audit.conversations.cut,
            "reply was too long and could not be posted as a file, so people got only the beginning: see `reply.cut` \
             in the ledger; `sessions show KEY --full` shows all",
            "replies were too long and could not be posted as a file, so people got only the beginning: see \
             `reply.cut` in the ledger; `sessions show KEY --full` shows all",
        ),
        (
            now.unwritten,
            "line of the ledger is not counted yet: it waits in the store until the gateway writes it to its file; if it \
             stays, `doctor` says why",
            "lines of the ledger are not counted yet: they wait in the store until the gateway writes them to their \
             files; if they stay, `doctor` says why",
        ),
        (
            now.parked,
            "message is parked: `sessions parked` lists it, `sessions retry --all` retries it",
            "messages are parked: `sessions parked` lists them, `sessions retry --all` retries them",
        ),
        (
            audit.conversations.panicked,
            "turn hit a bug in the program: see `turn.panicked` in the ledger and report it",
            "turns hit a bug in the program: see `turn.panicked` in the ledger and report it",
        ),
        (
            audit.conversations.swept,
            "message was not processed until the sweep found it: a bug in the program, please report it",
            "messages were not processed until the sweep found them: a bug in the program, please report it",
        ),
        (
            audit.connections.refused,
            "time Slack refused the app or a token: see the reason of `front.refused` in the ledger",
            "times Slack refused the app or a token: see the reason of `front.refused` in the ledger",
        ),
        (
            audit.connections.malformed,
            "event of the front was malformed and refused: see `front.malformed` in the ledger",
            "events of the front were malformed and refused: see `front.malformed` in the ledger",
        ),
        (
            audit.presence.cut + audit.presence.left_out,
            "conversation was read back only in part, or not at all, after an outage: what was asked in the rest gets \
             no answer unless it is asked again; see `gateway.caught-up` in the ledger",
            "conversations were read back only in part, or not at all, after an outage: what was asked in the rest \
             gets no answer unless it is asked again; see `gateway.caught-up` in the ledger",
        ),
        (
            audit.refused.bounded.values().sum(),
            "question to `mra` or to people exceeded the hourly limit: see `directive.bounded` in the ledger; \
             `hourly` in gateway.json sets the limit",
            "questions to `mra` or to people exceeded the hourly limit: see `directive.bounded` in the ledger; \
             `hourly` in gateway.json sets the limit",
        ),
        (
            audit.policies.failures,
            "decision of a policy failed: see `policy.failed` in the ledger",
            "decisions of a policy failed: see `policy.failed` in the ledger",
        ),
        (
            audit.policies.suspensions,
            "time a policy was suspended: see `policy.suspended` in the ledger",
            "times a policy was suspended: see `policy.suspended` in the ledger",
        ),
        (
            audit.store_lost,
            "time the store was lost while it was open: see `store.lost` in the ledger, then `store check`",
            "times the store was lost while it was open: see `store.lost` in the ledger, then `store check`",
        ),
        (audit.unreadable_lines, "line of the ledger cannot be read", "lines of the ledger cannot be read"),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, one, more)| Flag { count, what: if count == 1 { one } else { more } })
    .collect()
}

fn add(counts: &mut Counts, name: String) {
    let name = if name.is_empty() { "?".to_owned() } else { name };
    *counts.entry(name).or_default() += 1;
}

fn text(event: &Value, key: &str) -> String {
    event[key].as_str().unwrap_or_default().to_owned()
}

/// Returns a share of a whole, rounded to three digits; `None` if the whole is 0.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 1_000.0).round() / 1_000.0)
}

/// The cause of a suspected overflow, and whether a smaller request helped.
fn about(because: &str, helped: bool) -> String {
    match helped {
        true => format!("{because}: helped"),
        false => format!("{because}: did not help"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Regression: an outage of the model was visible nowhere but to those who asked.
    #[test]
    fn turns_that_the_model_did_not_answer_counted_as_answered() {
        let turn =
            |class: Value| json!({"type": "turn.processed", "actor": "U1", "audience": "biz", "unanswered": class});
        let classes = [json!("overloaded"), Value::Null, json!("timeout"), json!("overloaded")];
        let audit = audited(classes.map(turn).into());
        let unanswered = Counts::from([("overloaded".to_owned(), 2), ("timeout".to_owned(), 1)]);
        assert_eq!((audit.conversations.turns, audit.conversations.unanswered), (4, unanswered));
        let what = "turns got no answer from the model: see `unanswered` in the ledger and the log";
        assert_eq!(audit.flags, [Flag { count: 3, what }]);
    }

    fn audited(events: Vec<Value>) -> Audit {
        let now = Now { at: Timestamp::UNIX_EPOCH, atoms: &[], pending: &[], parked: 0, unwritten: 0, learnt: &[] };
        let record = |event| Record { at: Timestamp::UNIX_EPOCH, event };
        audit(7, &events.into_iter().map(record).collect::<Vec<_>>(), 0, &now)
    }

    /// Regression: the page had all of them as commands, with no model asked.
    #[test]
    fn answers_that_people_stopped_counted_as_commands() {
        let ended =
            |command: &str| json!({"type": "turn.processed", "actor": "U1", "audience": "", "command": command});
        let asked = json!({"type": "turn.processed", "actor": "U1", "audience": "biz"});
        let talk = audited(vec![asked, ended("stop"), ended("pmk"), ended("stop"), ended("later")]).conversations;
        assert_eq!((talk.turns, talk.stopped, talk.orders), (1, 2, 2));
    }

    /// Regression: only messages and conversations that the front did not show were counted.
    #[test]
    fn conversations_that_were_read_back_in_part_or_not_at_all_were_missing() {
        let read = |cut: u64, left_out: u64| {
            json!({"type": "gateway.caught-up", "conversations": 3, "messages": 5, "unreadable": 1, "cut": cut,
                   "leftOut": left_out})
        };
        let audit = audited(vec![read(2, 0), read(0, 4)]);
        let presence = &audit.presence;
        let counted = (presence.caught_up, presence.unreadable, presence.cut, presence.left_out);
        assert_eq!(counted, (10, 2, 2, 4));
        let [Flag { count: 6, what }] = audit.flags[..] else { panic!("{:?}", audit.flags) };
        assert!(what.starts_with("conversations were read back only in part, or not at all, "), "{what}");
    }

    /// A field's name as it stands in the source.
    fn snake_case(key: &str) -> String {
        let underscored =
            |c: char| if c.is_ascii_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.into() };
        key.chars().map(underscored).collect()
    }

    /// Events of other versions are counted, too, so they are read as JSON, and nothing else holds the names together.
    #[test]
    fn what_is_counted_is_called_as_it_is_written() {
        let written = [include_str!("../../ledger/event.rs"), include_str!("../../ledger/tags.rs")].concat();
        let read = [include_str!("count.rs"), include_str!("arms.rs")];
        let read = read.map(|text| text.split("#[cfg(test)]").next().unwrap_or_default()).concat();
        let counted = read.lines().filter(|line| line.contains("=>"));
        let counted = counted.filter_map(|line| line.trim().strip_prefix('"')?.split('"').next()).collect::<Vec<_>>();
        assert!(counted.len() > 20, "how they are found no longer fits: {counted:?}");
        for event in counted {
            assert!(written.contains(&format!("rename = \"{event}\"")), "{event}");
        }
        for reading in ["event[\"", "text(event, \"", "text(\"", "count(\"", "number(\""] {
            let keys = read.split(reading).skip(1).filter_map(|rest| rest.split('"').next());
            for key in keys.filter(|key| *key != "type") {
                assert!(written.contains(&format!(" {}: ", snake_case(key))), "{key}");
            }
        }
    }
}
