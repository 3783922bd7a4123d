//! The arm of each conversation in an experiment, and the outcomes of its turns.

use std::collections::{BTreeMap, BTreeSet};

use pmk_core::{Place, SessionKey};
use serde::{Deserialize, Serialize};

use super::{
    Store, StoreError, codec,
    error::Fault,
    outgoing::purpose,
    sql::{Connection, OptionalExtension, ValueRef, params},
};
use crate::ids::{SessionId, TurnId};
use crate::{
    chat::Reaction,
    ledger::{Event, InExperiment, TaggedEvent, Tags},
    store::assignment::{ArmAssignment, Weights, share},
};

pub(super) const FIND_ARM: &str = "SELECT coalesce(moved_to, arm) FROM arm WHERE experiment = ?1 AND session_id = ?2";
pub(super) const DRAW_ARM: &str = "INSERT INTO arm (experiment, session_id, arm, weights, drawn_at, moved_to)
     VALUES (?1, ?2, ?3, ?4, ?5, (SELECT ?6 FROM stopped_arm WHERE experiment = ?1 AND arm = ?3))
     ON CONFLICT (experiment, session_id) DO NOTHING";
/// An answer of the model that a message of this timestamp is part of; and whether it is in that channel in person. A
/// question to contacts or a notice is none, nor is a contact's answer that is passed on.
pub(super) const FIND_ANSWER: &str = concat!(
    "SELECT t.id, s.key, t.policy, t.experiment, t.arm,
            EXISTS (SELECT 1 FROM vote v WHERE v.turn_id = t.id AND v.\"user\" = ?2),
            EXISTS (SELECT 1 FROM in_person p WHERE p.turn_id = t.id AND p.sent_id = ?1 AND p.channel = ?3)
     FROM turn t JOIN session s ON s.id = t.session_id
     WHERE t.id IN (SELECT o.turn_id FROM outbox o WHERE o.sent_id = ?1 AND ",
    purpose!(),
    " = 'reply'
                    UNION ALL SELECT p.turn_id FROM in_person p WHERE p.sent_id = ?1)"
);
pub(super) const VOTE: &str = "INSERT INTO vote (turn_id, \"user\", likes) VALUES (?1, ?2, ?3)
     ON CONFLICT (turn_id, \"user\") DO UPDATE SET likes = excluded.likes WHERE vote.likes <> excluded.likes";
const KEEP_DESIGN: &str = "INSERT INTO experiment (name, design) VALUES (?1, ?2)
     ON CONFLICT (name) DO UPDATE SET design = excluded.design";
pub(super) const DESIGN: &str = "SELECT design FROM experiment WHERE name = ?1";
const STOP_ARM: &str = "INSERT INTO stopped_arm (experiment, arm, stopped_at, reason) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (experiment, arm) DO NOTHING";
const MOVE_CONVERSATIONS: &str = "UPDATE arm SET moved_to = ?3 WHERE experiment = ?1 AND coalesce(moved_to, arm) = ?2";
const STOPPED_ARMS: &str = "SELECT arm, reason, stopped_at FROM stopped_arm WHERE experiment = ?1 ORDER BY arm";
const IS_KNOWN: &str = "SELECT 1 FROM arm WHERE experiment = ?1 LIMIT 1";
const DRAWN_ARMS: &str = "SELECT DISTINCT arm FROM arm WHERE experiment = ?1";
const NEWEST: &str = "SELECT experiment FROM arm ORDER BY drawn_at DESC LIMIT 1";
/// In the order in which they were drawn. Excludes turns that were served by another arm than the drawn one, and those
/// that ended outside of a span of time. One that was deleted while it waited ends without an answer. A turn takes 10
/// minutes at most, as long as a model may by default: one that waited for the end of an outage would hide all others.
const CONVERSATIONS: &str = "SELECT a.arm, a.weights, a.moved_to IS NOT NULL, count(t.id),
            CAST(coalesce(sum(t.failed), 0) AS BIGINT), CAST(coalesce(sum(t.overflowed), 0) AS BIGINT),
            CAST(coalesce(sum(t.reasked), 0) AS BIGINT),
            CAST(coalesce(sum(t.input_tokens + t.cache_read_tokens + t.cache_creation_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(t.output_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(CASE WHEN t.answered_at IS NOT NULL AND i.called_off IS DISTINCT FROM 'stopped'
                              AND t.delivered_at > i.received_at
                              THEN CASE WHEN t.delivered_at - i.received_at > 600000 THEN 600000
                                   ELSE t.delivered_at - i.received_at END END), 0) AS BIGINT),
            (SELECT count(*) FROM turn u JOIN vote v ON v.turn_id = u.id
             WHERE u.experiment = a.experiment AND u.session_id = a.session_id AND u.arm = a.arm
               AND u.answered_at BETWEEN ?2 AND ?3 AND v.likes = 1),
            (SELECT count(*) FROM turn u JOIN vote v ON v.turn_id = u.id
             WHERE u.experiment = a.experiment AND u.session_id = a.session_id AND u.arm = a.arm
               AND u.answered_at BETWEEN ?2 AND ?3 AND v.likes = 0),
            CAST(coalesce(sum(CASE WHEN t.id IS NOT NULL AND (i.called_off = 'stopped' OR t.answered_at IS NULL) THEN 1 END), 0) AS BIGINT),
            CAST(coalesce(sum(CASE WHEN t.answered_at IS NOT NULL AND i.called_off IS DISTINCT FROM 'stopped'
                              AND t.delivered_at IS NULL THEN 1 END), 0) AS BIGINT),
            a.drawn_at,
            CAST(coalesce(sum(CASE WHEN t.skipped <> 0 AND t.failed = 0 THEN 1 END), 0) AS BIGINT),
            min(CASE WHEN t.failed <> 0 AND t.skipped IS NOT NULL THEN coalesce(t.answered_at, t.delivered_at) END),
            min(CASE WHEN t.skipped <> 0 THEN coalesce(t.answered_at, t.delivered_at) END)
     FROM arm a
     LEFT JOIN turn t ON t.experiment = a.experiment AND t.session_id = a.session_id AND t.arm = a.arm
       AND coalesce(t.answered_at, t.delivered_at) BETWEEN ?2 AND ?3
     LEFT JOIN inbox i ON i.id = t.id
     WHERE a.experiment = ?1 GROUP BY a.experiment, a.session_id ORDER BY a.drawn_at, a.session_id";
/// What the guard rail counts, of the same turns and in the same order: it needs neither votes nor questions.
pub(super) const GUARDED: &str = "SELECT a.arm, a.weights, count(t.id), CAST(coalesce(sum(t.overflowed), 0) AS BIGINT),
            min(CASE WHEN t.failed <> 0 AND t.skipped IS NOT NULL THEN coalesce(t.answered_at, t.delivered_at) END),
            min(CASE WHEN t.skipped <> 0 THEN coalesce(t.answered_at, t.delivered_at) END)
     FROM arm a
     LEFT JOIN turn t ON t.experiment = a.experiment AND t.session_id = a.session_id AND t.arm = a.arm
       AND coalesce(t.answered_at, t.delivered_at) >= ?2
     WHERE a.experiment = ?1 GROUP BY a.experiment, a.session_id ORDER BY a.drawn_at, a.session_id";
/// How many earlier turns of a conversation the guard rail counts for each kind of trouble. Later ones are left out: of two
/// turns that see each other, neither would be the first.
pub(super) const OTHER_TROUBLE: &str = "SELECT count(CASE WHEN t.failed <> 0 AND t.skipped IS NOT NULL THEN 1 END),
            count(CASE WHEN t.overflowed <> 0 THEN 1 END)
     FROM turn t
     WHERE t.experiment = ?1 AND t.session_id = ?2 AND t.arm = ?3 AND t.id < ?4
       AND coalesce(t.answered_at, t.delivered_at) >= ?5";

/// The outcome of a turn, beside its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnOutcome {
    /// The policies that decided for it.
    pub tags: Tags,
    /// A policy failed, or no recovery made the prompt fit.
    pub failed: bool,
    /// A suspended policy was skipped.
    pub skipped: bool,
    /// The model refused a prompt as too long.
    pub overflowed: bool,
    /// Its question is nearly the same as the one before.
    pub reasked: bool,
    /// Who wrote the question, where that was one person only.
    pub asked_by: Option<String>,
}

/// The figures of one conversation of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmConversation {
    /// The arm it drew.
    pub arm: String,
    /// The weights it was drawn with.
    pub weights: Weights,
    /// When it drew the arm.
    pub drawn_at_ms: i64,
    /// The control has taken it over from this arm; the figures exclude the time since.
    pub moved: bool,
    pub turns: u64,
    /// Turns in which a policy failed.
    pub failed: u64,
    /// Turns in which the model refused a prompt as too long.
    pub overflowed: u64,
    /// Turns whose question was nearly the same as the one before.
    pub reasked: u64,
    /// The tokens that the provider counted.
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// The sum over the turns that were answered, each for 10 minutes at most: called-off ones end when people lose
    /// patience.
    pub latency_ms: u64,
    pub likes: u64,
    pub dislikes: u64,
    /// Turns whose question people stopped or deleted before it was answered.
    pub called_off: u64,
    /// Turns whose answer is not all delivered yet: how long they take is not known.
    pub undelivered: u64,
    /// Turns in which a suspended policy was skipped and none failed: whether it would have failed is not known.
    pub unseen: u64,
    /// When the first turn ended in which a policy failed. Turns of which an older program has not noted whether a
    /// suspended policy was skipped are left out, here and below.
    pub first_failed_ms: Option<i64>,
    /// When the first turn ended in which a suspended policy was skipped.
    pub first_skipped_ms: Option<i64>,
}

impl ArmConversation {
    /// Returns the number of turns whose answer people have.
    pub fn answered(&self) -> u64 {
        self.turns.saturating_sub(self.called_off).saturating_sub(self.undelivered)
    }

    /// Returns the number of turns in which a failure of its policies would have been seen.
    pub fn seen(&self) -> u64 {
        self.turns.saturating_sub(self.unseen)
    }
}

/// The configuration of an experiment, as far as its figures depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// The `start` that it began with; `None` in what older programs have stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    pub control: String,
    pub arms: Vec<DesignedArm>,
}

/// An arm as it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesignedArm {
    pub name: String,
    /// Its share of new conversations.
    pub weight: u32,
    /// It decides, but its decisions are not carried out.
    pub shadow: bool,
    /// Identifies the components and settings of the arm; `None` where they are not known, as in what older programs
    /// have stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<String>,
    /// When it got other policies than it had before, as by a changed file; the last time it was these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes_ms: Vec<i64>,
}

impl Design {
    /// Returns the arm of that name.
    pub fn arm(&self, name: &str) -> Option<&DesignedArm> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// Returns which share an arm has of the new conversations that it or the control draws; `None` if one of the two
    /// draws none.
    pub fn share(&self, arm: &str) -> Option<f64> {
        let weights: Weights = self.arms.iter().map(|arm| (arm.name.clone(), arm.weight)).collect();
        Some(share(&weights, arm, &self.control)).filter(|share| *share > 0.0 && *share < 1.0)
    }

    /// Returns the last change of the policies of an arm or the control until then: which, and when.
    pub fn last_change(&self, arm: &str, until_ms: i64) -> Option<(&str, i64)> {
        let pair = [arm, &self.control].into_iter().filter_map(|name| self.arm(name));
        let changes = pair.flat_map(|arm| arm.changes_ms.iter().map(|at_ms| (arm.name.as_str(), *at_ms)));
        changes.filter(|(_, at_ms)| *at_ms <= until_ms).max_by_key(|(_, at_ms)| *at_ms)
    }

    /// Returns since when the guard rail counts the turns of an arm and the control: since the last change of the policies
    /// of either.
    pub fn judged_since(&self, arm: &str) -> i64 {
        self.last_change(arm, i64::MAX).map_or(i64::MIN, |(_, at_ms)| at_ms)
    }

    /// Notes which arms have other policies than before. What an arm that was left out for a while had is not known; and
    /// while one was a shadow, the control has answered in its conversations.
    fn following(mut self, before: &Design, drawn: &BTreeSet<String>, now_ms: i64) -> Design {
        for arm in &mut self.arms {
            let was = before.arm(&arm.name);
            arm.changes_ms = was.map(|was| was.changes_ms.clone()).unwrap_or_default();
            let is_another = match was {
                Some(was) if was.shadow && !arm.shadow => drawn.contains(&arm.name),
                Some(was) => was.policies.is_some() && arm.policies.is_some() && was.policies != arm.policies,
                None => drawn.contains(&arm.name),
            };
            if is_another {
                arm.changes_ms.push(now_ms);
            }
        }
        self
    }
}

/// An arm that was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedArm {
    pub reason: String,
    pub at_ms: i64,
    /// All conversations of the experiment, as they were then: those of the others go on, and later differ from those
    /// of this arm by their age alone.
    pub conversations: Vec<ArmConversation>,
}

/// The result of a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    Counted(Voted),
    /// The person has voted the same before.
    Again,
    /// The message is not part of an answer in a conversation that the person can see.
    NoAnswer,
}

/// The answer that was voted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voted {
    pub key: SessionKey,
    pub tags: Tags,
}

impl Store {
    /// Returns the arm that acts in a conversation; `None` where it has not drawn one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn arm(&self, experiment: &str, session: SessionId) -> Result<Option<String>, StoreError> {
        let known = self.shared.readers.read_here(|conn| find_arm(conn, experiment, session).map(Some))?;
        if let Some(arm) = known {
            return Ok(arm);
        }
        let experiment = experiment.to_owned();
        self.read(move |conn| find_arm(conn, &experiment, session)).await
    }

    /// Stores the configuration of an experiment that begins, for when gateway.json contains another one. Returns it
    /// with the times at which arms got other policies than when it last began; `None`, and nothing is stored, if
    /// conversations have taken part in one of that name that had another `start`: its figures are its own.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn keep_design(
        &self,
        experiment: &str,
        design: &Design,
        now_ms: i64,
    ) -> Result<Option<Design>, StoreError> {
        let (experiment, design) = (experiment.to_owned(), design.clone());
        self.write(move |conn| {
            let design = match find_design(conn, &experiment)? {
                Some(before)
                    if before.start.is_some() && before.start != design.start && is_known(conn, &experiment)? =>
                {
                    return Ok(None);
                }
                Some(before) => design.clone().following(&before, &drawn_arms(conn, &experiment)?, now_ms),
                None => design.clone(),
            };
            conn.prepare_cached(KEEP_DESIGN)?.run(params![experiment, codec::to_json(&design)])?;
            Ok(Some(design))
        })
        .await
    }

    /// Returns the configuration of an experiment when it last began.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn design(&self, experiment: &str) -> Result<Option<Design>, StoreError> {
        let experiment = experiment.to_owned();
        self.read(move |conn| find_design(conn, &experiment)).await
    }

    /// Stores the arm that a conversation has drawn, and returns the one that acts: the one it already has, or the
    /// control where the drawn one has just been stopped.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn draw(
        &self,
        experiment: &str,
        session: SessionId,
        draw: ArmAssignment,
        control: &str,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let [experiment, control] = [experiment, control].map(str::to_owned);
        self.write(move |conn| {
            let weights = codec::to_json(&draw.weights);
            conn.prepare_cached(DRAW_ARM)?.run(params![experiment, session.0, &draw.arm, weights, now_ms, control])?;
            Ok(find_arm(conn, &experiment, session)?.unwrap_or_else(|| draw.arm.clone()))
        })
        .await
    }

    /// Stops an arm, moves its conversations to the control, and returns how many were moved. `None`: it was
    /// stopped before. `event` makes the ledger event for that number of conversations.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn stop_arm(
        &self,
        experiment: &str,
        arm: &str,
        control: &str,
        reason: &str,
        event: impl Fn(usize) -> Event + Send + 'static,
        now_ms: i64,
    ) -> Result<Option<usize>, StoreError> {
        let [experiment, arm, control, reason] = [experiment, arm, control, reason].map(str::to_owned);
        let pen = self.pen(now_ms);
        self.write_with_events(move |conn| {
            if conn.execute(STOP_ARM, params![experiment, arm, now_ms, reason])? == 0 {
                return Ok(None);
            }
            let moved = conn.execute(MOVE_CONVERSATIONS, params![experiment, arm, control])?;
            pen.write(conn, None, event(moved))?;
            Ok(Some(moved))
        })
        .await
    }

    /// Returns the arms that were stopped, and the conversations as they were then.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn stopped_arms(&self, experiment: &str) -> Result<BTreeMap<String, StoppedArm>, StoreError> {
        let experiment = experiment.to_owned();
        self.read(move |conn| {
            let as_then = stops(conn, &experiment)?.into_iter().map(|(arm, reason, at_ms)| {
                let conversations = arm_figures(conn, &experiment, [i64::MIN, at_ms])?;
                Ok((arm, StoppedArm { reason, at_ms, conversations }))
            });
            as_then.collect()
        })
        .await
    }

    /// Returns why arms were stopped, by their names.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn stop_reasons(&self, experiment: &str) -> Result<BTreeMap<String, String>, StoreError> {
        let experiment = experiment.to_owned();
        self.read(move |conn| Ok(stops(conn, &experiment)?.into_iter().map(|(arm, why, _)| (arm, why)).collect())).await
    }

    /// Whether any conversation has drawn an arm of this experiment.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_known_experiment(&self, experiment: &str) -> Result<bool, StoreError> {
        let experiment = experiment.to_owned();
        self.read(move |conn| is_known(conn, &experiment)).await
    }

    /// Returns the experiment that a conversation was last drawn into.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn newest_experiment(&self) -> Result<Option<String>, StoreError> {
        self.read(|conn| Ok(conn.prepare_cached(NEWEST)?.query_row([], |row| row.get(0)).optional()?)).await
    }

    /// Returns the figures of every conversation of an experiment, of the turns that were answered since then.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn arm_conversations(&self, experiment: &str, since_ms: i64) -> Result<Vec<ArmConversation>, StoreError> {
        let experiment = experiment.to_owned();
        self.read(move |conn| arm_figures(conn, &experiment, [since_ms, i64::MAX])).await
    }

    /// Returns of the same conversations and turns what the guard rail counts. The other figures are left empty.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn guarded_conversations(
        &self,
        experiment: &str,
        since_ms: i64,
    ) -> Result<Vec<ArmConversation>, StoreError> {
        let experiment = experiment.to_owned();
        self.read(move |conn| guarded(conn, &experiment, since_ms)).await
    }

    /// Whether the guard rail counts a turn that has ended: it is the first of its conversation since then in which a
    /// policy failed, or the first in which the model refused the prompt as too long.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_first_trouble(
        &self,
        turn: TurnId,
        session: SessionId,
        outcome: &TurnOutcome,
        since_ms: i64,
    ) -> Result<bool, StoreError> {
        let Some(InExperiment { experiment, arm }) = outcome.tags.place.clone() else { return Ok(false) };
        let (failed, overflowed) = (outcome.failed, outcome.overflowed);
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(OTHER_TROUBLE)?;
            let (failures, overflows): (i64, i64) = statement
                .query_row(params![&*experiment, session.0, &*arm, turn.0, since_ms], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            Ok((failed && failures == 0) || (overflowed && overflows == 0))
        })
        .await
    }

    /// Stores a person's vote on the answer that a message is part of. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was stored.
    pub async fn vote(&self, reaction: &Reaction, likes: bool, now_ms: i64) -> Result<Vote, StoreError> {
        let (reaction, pen) = (reaction.clone(), self.pen(now_ms));
        self.write_with_events(move |conn| {
            let mut statement = conn.prepare_cached(FIND_ANSWER)?;
            let mut rows = statement.query([&reaction.message.ts, &reaction.user, &reaction.message.channel])?;
            while let Some(row) = rows.next()? {
                let key = codec::key(row.get_ref(1)?)?;
                // Messages of two channels may have the same timestamp.
                let is_there = match &key.place {
                    Place::Channel(channel) => *channel == reaction.message.channel,
                    Place::Dm(user) => *user == reaction.user,
                };
                if !is_there && !row.get::<_, bool>(6)? {
                    continue;
                }
                let turn: i64 = row.get(0)?;
                if conn.prepare_cached(VOTE)?.execute(params![turn, reaction.user, likes])? == 0 {
                    return Ok(Vote::Again);
                }
                let tags = tags(row.get_ref(2)?, row.get_ref(3)?, row.get_ref(4)?)?;
                let (actor, session) = (reaction.user.clone(), key.to_string());
                let event = Event::SignalReaction { actor, session, likes, replaces: row.get(5)? };
                pen.write(conn, Some(TurnId(turn)), TaggedEvent { event, tags: tags.clone() })?;
                return Ok(Vote::Counted(Voted { key, tags }));
            }
            Ok(Vote::NoAnswer)
        })
        .await
    }
}

/// Returns the conversations of an experiment, with the turns that were answered in a span of time.
fn arm_figures(
    conn: &Connection,
    experiment: &str,
    [since_ms, until_ms]: [i64; 2],
) -> Result<Vec<ArmConversation>, Fault> {
    let mut statement = conn.prepare_cached(CONVERSATIONS)?;
    let mut rows = statement.query(params![experiment, since_ms, until_ms])?;
    let mut conversations = Vec::new();
    while let Some(row) = rows.next()? {
        let count = |at: usize| -> Result<u64, Fault> { Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0)) };
        conversations.push(ArmConversation {
            arm: row.get(0)?,
            weights: codec::from_json(row.get_ref(1)?, "the weights of an arm")?,
            moved: row.get(2)?,
            turns: count(3)?,
            failed: count(4)?,
            overflowed: count(5)?,
            reasked: count(6)?,
            tokens_in: count(7)?,
            tokens_out: count(8)?,
            latency_ms: count(9)?,
            likes: count(10)?,
            dislikes: count(11)?,
            called_off: count(12)?,
            undelivered: count(13)?,
            drawn_at_ms: row.get(14)?,
            unseen: count(15)?,
            first_failed_ms: row.get(16)?,
            first_skipped_ms: row.get(17)?,
        });
    }
    Ok(conversations)
}

fn guarded(conn: &Connection, experiment: &str, since_ms: i64) -> Result<Vec<ArmConversation>, Fault> {
    let mut statement = conn.prepare_cached(GUARDED)?;
    let mut rows = statement.query(params![experiment, since_ms])?;
    let mut conversations = Vec::new();
    while let Some(row) = rows.next()? {
        let count = |at: usize| -> Result<u64, Fault> { Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0)) };
        conversations.push(ArmConversation {
            arm: row.get(0)?,
            weights: codec::from_json(row.get_ref(1)?, "the weights of an arm")?,
            turns: count(2)?,
            overflowed: count(3)?,
            first_failed_ms: row.get(4)?,
            first_skipped_ms: row.get(5)?,
            ..ArmConversation::default()
        });
    }
    Ok(conversations)
}

/// Returns the arms that were stopped, why and when.
fn stops(conn: &Connection, experiment: &str) -> Result<Vec<(String, String, i64)>, Fault> {
    let mut statement = conn.prepare_cached(STOPPED_ARMS)?;
    let rows = statement.query_map([experiment], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn is_known(conn: &Connection, experiment: &str) -> Result<bool, Fault> {
    Ok(conn.prepare_cached(IS_KNOWN)?.exists([experiment])?)
}

fn drawn_arms(conn: &Connection, experiment: &str) -> Result<BTreeSet<String>, Fault> {
    let mut statement = conn.prepare_cached(DRAWN_ARMS)?;
    Ok(statement.query_map([experiment], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

fn find_design(conn: &Connection, experiment: &str) -> Result<Option<Design>, Fault> {
    let mut statement = conn.prepare_cached(DESIGN)?;
    let mut rows = statement.query([experiment])?;
    match rows.next()? {
        Some(row) => Ok(Some(codec::from_json(row.get_ref(0)?, "the design of an experiment")?)),
        None => Ok(None),
    }
}

fn find_arm(conn: &Connection, experiment: &str, session: SessionId) -> Result<Option<String>, Fault> {
    let mut statement = conn.prepare_cached(FIND_ARM)?;
    Ok(statement.query_row(params![experiment, session.0], |row| row.get(0)).optional()?)
}

/// Returns the policies that decided for a turn, from the columns `policy`, `experiment` and `arm`.
pub(super) fn tags(policy: ValueRef<'_>, experiment: ValueRef<'_>, arm: ValueRef<'_>) -> Result<Tags, Fault> {
    let text = |column: ValueRef<'_>| column.as_str_or_null().map(|text| text.map(std::sync::Arc::<str>::from));
    let damaged = |_| Fault::Damaged("cannot read which policies decided in a turn".into());
    let place = match (text(experiment).map_err(damaged)?, text(arm).map_err(damaged)?) {
        (Some(experiment), Some(arm)) => Some(InExperiment { experiment, arm }),
        _ => None,
    };
    Ok(Tags { policy_sha256: text(policy).map_err(damaged)?, place })
}
