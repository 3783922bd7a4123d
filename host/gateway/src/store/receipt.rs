//! Receipts: what each request of a turn to the model was made from, so that the decision behind it can be
//! reproduced.
//!
//! A receipt refers to things rather than repeating them: to messages of the archive by their ids, to every other
//! text by its digest. Such texts are stored beside the receipts, each once, however many receipts refer to it. All
//! of it is written with the turn, in one transaction: there is a receipt for every request of an answered turn,
//! and none for an attempt that failed.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pmk_core::{Message, text::hex};
use pmk_models::{Request, Tool, Usage};
use pmk_policy::Identity;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    codec,
    error::Fault,
    sql::{Connection, ValueRef, params},
};
use crate::ids::{SessionId, TurnId};

pub(super) const KEEP_TEXT: &str = "INSERT INTO text (sha256, body) VALUES (?1, ?2) ON CONFLICT (sha256) DO NOTHING";
/// Those of a list of texts, as JSON, that are stored.
pub(super) const STORED: &str = "SELECT sha256 FROM text WHERE sha256 IN (SELECT value FROM json_each(?1))";
const STORED_IN_POSTGRES: &str = "SELECT sha256 FROM text
     WHERE sha256 = ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST(?1 AS TEXT) AS JSON))))";
pub(super) const IS_STORED: &str = "SELECT 1 FROM message WHERE id = ?1";
pub(super) const KEEP: &str = "INSERT INTO receipt (session_id, turn_id, call, at, body) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Receipts that may refer to a text of a message: they show some message in another form, or again. `%` in its place
/// means any message.
const WITH_TEXTS: &str = "SELECT body FROM receipt WHERE session_id = ?1
     AND (body LIKE '%[' || ?2 || ',\"%' OR body LIKE '%\"replaced\":[[%' OR body LIKE '%\"recall\":\"%')";
/// Receipts that refer to what was said before in a thread.
pub(super) const BACKGROUNDS: &str = "SELECT turn_id, body FROM receipt
     WHERE session_id = ?1 AND body LIKE '%\"background\":\"%' ORDER BY turn_id, call";
pub(super) const ERASE_TEXT: &str = "DELETE FROM text WHERE sha256 = ?1";

/// A SHA-256 digest, in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub(super) Arc<str>);

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Digest {
        Digest::written(Sha256::digest(bytes))
    }

    fn written(digest: impl AsRef<[u8]>) -> Digest {
        Digest(hex(digest.as_ref()).into())
    }

    /// Returns the digest of a request, serialised as JSON.
    pub fn of_request(request: &Request) -> Digest {
        #[derive(Serialize)]
        struct Serialised<'a> {
            system: &'a str,
            messages: Vec<&'a Message>,
            max_answer_tokens: u32,
            tools: &'a [Tool],
        }
        // The messages refer to the images by their digests.
        let Request { system, messages, max_answer_tokens, tools, images: _ } = request;
        let messages = messages.iter().map(|message| &**message).collect();
        let max_answer_tokens = *max_answer_tokens;
        // Hashed while it is serialised: a request may hold megabytes.
        let mut hashing = io::BufWriter::new(Hashing(Sha256::new()));
        let written = serde_json::to_writer(&mut hashing, &Serialised { system, messages, max_answer_tokens, tools });
        written.expect("what we serialise has texts for keys, and no hash fails");
        let Hashing(hash) = hashing.into_inner().expect("no hash fails");
        Digest::written(hash.finalize())
    }
}

/// Hashes what is written to it.
#[derive(Debug)]
struct Hashing(Sha256);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What one request was made from. Sizes are in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which request of the turn, counted from 0.
    pub call: u32,
    /// When the decision was made, milliseconds since the epoch.
    pub at_ms: i64,
    /// The purpose of the request, as policies are told it: `first` or `synthesise`.
    pub phase: String,
    /// The window before the decision.
    pub before: Before,
    /// What the decision did; `None` where there was nothing to decide.
    pub plan: Option<Plan>,
    /// The stack of policies, the deciding one first.
    pub policies: Vec<Layer>,
    pub budget: Budget,
    /// What was known of how the model counts tokens.
    pub calibration: Calibrated,
    /// The digest of the system prompt.
    pub system: Digest,
    /// The digest of the tool definitions, as JSON.
    pub tools: Digest,
    /// The atoms found for the new message.
    pub atoms: Vec<FoundAtom>,
    /// The digest of what had been said before in the thread of the new message, as the model was shown it: JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Digest>,
    /// What the provider counted, the cache included; `None` where it gave no answer.
    pub usage: Option<Usage>,
    /// The version of the code that makes a request from all this.
    pub renderer: u32,
    /// Whether tool calls and results were sent as text, because the server supports no tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_text: bool,
    /// Whether the history was repaired, because the provider refused it unchanged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repaired: bool,
    /// The digest of the serialised request as it was sent.
    pub request: Digest,
}

/// The window before a decision, the new message included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Oldest first. Consecutive ids are stored as `[first, last]`.
    #[serde(with = "runs")]
    pub messages: Vec<Reference>,
    /// Turns that had been dropped.
    pub dropped_turns: u32,
    /// The digest of a policy's own text for the marker of those turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<Digest>,
}

/// A message of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reference {
    /// A message of the archive, unchanged.
    Whole(i64),
    /// A message of the archive that was reduced, and the digest of the reduced one, as JSON.
    Reduced(i64, Digest),
    /// The digest of something that is no message of the archive, as JSON: a marker, or a block that is shown with
    /// the new message.
    Text { text: Digest },
    /// A message that this turn adds: its index in [`Recorded::messages`](super::Recorded::messages). Stored as
    /// [`Whole`](Reference::Whole).
    #[serde(skip)]
    Added(usize),
    /// As [`Added`](Reference::Added), but reduced.
    #[serde(skip)]
    AddedReduced(usize, Digest),
}

/// What a plan did. Indexes are those of [`Before::messages`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub decided_by: Decider,
    /// The messages that left the request, ascending.
    pub removed: Vec<u32>,
    /// The messages that were reduced, and the digest of each reduced one, as JSON.
    pub replaced: Vec<(u32, Digest)>,
    /// The digest of the marker's text, where the plan wrote one, and the index it stood before.
    pub marker: Option<(Digest, u32)>,
    /// The ids of archived messages that were shown again; `recall` is the digest of the block that shows them, as
    /// JSON.
    pub recalled: Vec<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Digest>,
    /// The range that it wanted summarized, from the first index up to and without the last.
    pub compaction: Option<(u32, u32)>,
    pub turns_dropped: u32,
    pub tokens_before: u64,
    pub tokens_after: u64,
}

/// Who made a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decider {
    /// The policy's name, or `floor`.
    pub name: String,
    /// The digest of its component; the floor has none.
    pub sha256: Option<String>,
}

/// A policy that was asked, or would have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    #[serde(flatten)]
    pub policy: Identity,
    /// The digest of its settings, as JSON.
    pub settings: Digest,
}

/// How the model's window was divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub window: u64,
    /// What was left for messages: the hard limit.
    pub limit: u64,
    /// Reserved for the answer.
    pub answer: u32,
    /// Whether the seed pair could be removed.
    pub seed_may_go: bool,
}

/// What was known of how the model counts tokens, and of which sizes it accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// How many of the provider's tokens one of the host's estimate is.
    pub factor: f64,
    /// Tokens that the provider counts beyond what is sent.
    pub overhead: f64,
    /// The smallest request that was refused, as the host estimates it, and the largest below it that was answered.
    pub refused: Option<(u64, u64)>,
    /// The window that a refusal has named, in the provider's tokens.
    pub named: Option<u64>,
    /// The largest request that was answered recently, as the host estimates it.
    pub answered: Option<u64>,
}

/// An atom that the model was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundAtom {
    pub id: String,
    /// The digest of its file, as the gateway writes it.
    pub sha256: Digest,
}

/// The receipts of a turn, and the texts that they refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Receipts {
    calls: Vec<Receipt>,
    texts: BTreeMap<Digest, Arc<str>>,
}

impl Receipts {
    /// Adds a text that a receipt refers to, and returns its digest.
    pub fn keep(&mut self, text: impl Into<Arc<str>>) -> Digest {
        let text = text.into();
        let digest = Digest::of(&*text);
        self.texts.entry(digest.clone()).or_insert(text);
        digest
    }

    /// As [`keep`](Receipts::keep), for a value that is stored as JSON.
    pub fn keep_json(&mut self, value: &impl Serialize) -> Digest {
        self.keep(codec::to_exact_json(value))
    }

    /// Returns whether any of the requests has quoted archived messages.
    pub(super) fn quote_anything(&self) -> bool {
        self.calls.iter().filter_map(|receipt| receipt.plan.as_ref()).any(|plan| plan.recall.is_some())
    }

    /// Leaves out what quotes messages that are no longer stored: their ids may be those of others by the time at which the
    /// quoted question is erased, and nothing else would lead to these texts.
    pub(super) fn without_gone(&self, conn: &Connection) -> Result<Receipts, Fault> {
        let mut left = self.clone();
        let mut is_stored = conn.prepare_cached(IS_STORED)?;
        for plan in left.calls.iter_mut().filter_map(|receipt| receipt.plan.as_mut()) {
            let mut stored = Vec::with_capacity(plan.recalled.len());
            for &id in &plan.recalled {
                stored.extend(is_stored.exists([id])?.then_some(id));
            }
            if let Some(recall) = plan.recall.as_ref().filter(|_| stored.len() < plan.recalled.len()) {
                left.texts.remove(recall);
            }
            plan.recalled = stored;
        }
        Ok(left)
    }

    /// Returns the number of receipts.
    pub fn count(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(u32::MAX)
    }

    /// Adds the receipt of one more request.
    pub fn push(&mut self, receipt: Receipt) {
        self.calls.push(receipt);
    }
}

/// Texts of the gateway that are known to be stored, so that a turn need not write its system prompt again just to
/// learn that it is stored. What was said in a conversation may be erased, also by other processes.
#[derive(Debug, Default)]
pub(super) struct StoredTexts(Mutex<Stored>);

#[derive(Debug, Default)]
struct Stored {
    digests: HashSet<Digest>,
    /// How often the database had come back by then. One that has since may have lost them.
    returns: u64,
}

/// How many digests are remembered at most; when it is exceeded, the set is cleared.
const MOST_TEXTS: usize = 1_024;
/// How many texts a turn writes without looking which of them are stored.
const FEW_TEXTS: usize = 8;

impl StoredTexts {
    /// Removes the gateway's texts that are stored already, and returns the digests of those still to be stored.
    pub(super) fn fresh(&self, Receipts { calls, texts }: &mut Receipts, returns: u64) -> Vec<Digest> {
        let said: HashSet<&Digest> = calls.iter().flat_map(Receipt::said).collect();
        let stored = &self.lock(returns).digests;
        texts.retain(|digest, _| said.contains(digest) || !stored.contains(digest));
        texts.keys().filter(|digest| !said.contains(digest)).cloned().collect()
    }

    /// Notes that these were stored; the transaction is committed.
    pub(super) fn are_stored(&self, digests: Vec<Digest>, returns: u64) {
        let stored = &mut self.lock(returns).digests;
        if stored.len() + digests.len() > MOST_TEXTS {
            stored.clear();
        }
        stored.extend(digests);
    }

    fn lock(&self, returns: u64) -> MutexGuard<'_, Stored> {
        // An insertion is atomic, and a missing digest only causes its text to be written once more.
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.returns != returns {
            *stored = Stored { digests: HashSet::new(), returns };
        }
        stored
    }
}

impl Receipt {
    /// Returns all texts but those that belong to the gateway: system prompt, tools and settings.
    pub(super) fn said(&self) -> impl Iterator<Item = &Digest> {
        let messages = self.before.messages.iter().filter_map(|message| match message {
            Reference::Text { text } | Reference::Reduced(_, text) | Reference::AddedReduced(_, text) => Some(text),
            Reference::Whole(_) | Reference::Added(_) => None,
        });
        let plans = self.plan.iter().flat_map(|Plan { replaced, marker, recall, .. }| {
            let replaced = replaced.iter().map(|(_, text)| text);
            replaced.chain(marker.iter().map(|(text, _)| text)).chain(recall)
        });
        messages.chain(plans).chain(&self.before.marker).chain(&self.background)
    }

    /// Returns the texts that reveal some messages of the archive: reduced forms, and blocks that have shown them
    /// again.
    pub(super) fn texts_of(&self, ids: &[i64]) -> Vec<Digest> {
        let mut texts = Vec::new();
        let mut places = Vec::new();
        for (place, reference) in (0u32..).zip(&self.before.messages) {
            match reference {
                Reference::Whole(shown) if ids.contains(shown) => places.push(place),
                Reference::Reduced(shown, text) if ids.contains(shown) => {
                    places.push(place);
                    texts.push(text.clone());
                }
                _ => {}
            }
        }
        if let Some(plan) = &self.plan {
            let replaced = plan.replaced.iter().filter(|(place, _)| places.contains(place));
            texts.extend(replaced.map(|(_, text)| text.clone()));
            texts.extend(plan.recall.clone().filter(|_| plan.recalled.iter().any(|id| ids.contains(id))));
        }
        texts
    }

    /// Adds to these texts what the decision has made of them.
    fn reduce(&self, texts: &mut BTreeSet<Digest>) {
        let is_one = |place: u32| match self.before.messages.get(place as usize) {
            Some(Reference::Text { text }) => texts.contains(text),
            _ => false,
        };
        let replaced = self.plan.iter().flat_map(|plan| &plan.replaced).filter(|(place, _)| is_one(*place));
        let reduced: Vec<Digest> = replaced.map(|(_, text)| text.clone()).collect();
        texts.extend(reduced);
    }
}

/// Reads a receipt whose texts are to be erased. A damaged one must keep nobody's question from being answered, changed
/// or erased.
pub(super) fn read(column: ValueRef<'_>) -> Result<Option<Receipt>, Fault> {
    match codec::from_json(column, "a receipt") {
        Ok(receipt) => Ok(Some(receipt)),
        Err(Fault::Damaged(what)) => {
            tracing::warn!("texts of a receipt cannot be erased: {what}");
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// Stores a turn's receipts and their texts; `ids` are those of the messages that the turn adds, in their order.
pub(super) fn keep(
    conn: &Connection,
    (session, turn): (SessionId, TurnId),
    Receipts { calls, texts }: &Receipts,
    ids: &[i64],
) -> Result<(), Fault> {
    let stored = stored(conn, texts)?;
    let mut keep_text = conn.prepare_cached(KEEP_TEXT)?;
    for (digest, text) in texts.iter().filter(|(digest, _)| !stored.contains(&*digest.0)) {
        keep_text.run(params![&*digest.0, &**text])?;
    }
    let mut keep = conn.prepare_cached(KEEP)?;
    for receipt in calls {
        let mut receipt = receipt.clone();
        for reference in &mut receipt.before.messages {
            reference.resolve(ids)?;
        }
        let body = codec::to_json(&receipt);
        keep.run(params![session.0, turn.0, receipt.call, receipt.at_ms, body])?;
    }
    Ok(())
}

/// Returns the digests of those of many texts that are stored: with reduced messages in its window, a turn refers to
/// hundreds of texts, and the turn before has stored most of them. A few are written without a question.
fn stored(conn: &Connection, texts: &BTreeMap<Digest, Arc<str>>) -> Result<HashSet<String>, Fault> {
    if texts.len() <= FEW_TEXTS {
        return Ok(HashSet::new());
    }
    let digests = codec::to_json(&texts.keys().collect::<Vec<_>>());
    let mut statement = conn.prepare_cached(conn.either(STORED, STORED_IN_POSTGRES))?;
    Ok(statement.query_map([digests], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Erases the texts that receipts of a conversation keep of some of its messages: reduced forms, and blocks that have
/// shown them again. The receipts themselves only refer to things, and stay; the requests can no longer be
/// reproduced.
pub(super) fn erase_texts_of(conn: &Connection, session: SessionId, ids: &[i64]) -> Result<(), Fault> {
    let which = match ids {
        [] => return Ok(()),
        [id] => id.to_string(),
        _ => "%".to_owned(),
    };
    let mut texts = Vec::new();
    {
        let mut statement = conn.prepare_cached(WITH_TEXTS)?;
        let mut rows = statement.query(params![session.0, which])?;
        while let Some(row) = rows.next()? {
            if let Some(receipt) = read(row.get_ref(0)?)? {
                texts.extend(receipt.texts_of(ids));
            }
        }
    }
    erase_texts(conn, &texts)
}

/// Erases these texts.
pub(super) fn erase_texts(conn: &Connection, texts: &[Digest]) -> Result<(), Fault> {
    let mut erase = conn.prepare_cached(ERASE_TEXT)?;
    for text in texts {
        erase.run([&*text.0])?;
    }
    Ok(())
}

/// Returns the texts of earlier thread messages that receipts of a conversation refer to: for each turn, as it has read
/// them, and as policies have shortened that.
pub(super) fn backgrounds(conn: &Connection, session: SessionId) -> Result<Vec<BTreeSet<Digest>>, Fault> {
    let mut statement = conn.prepare_cached(BACKGROUNDS)?;
    let mut rows = statement.query([session.0])?;
    let mut found: BTreeMap<(i64, Digest), BTreeSet<Digest>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let turn: i64 = row.get(0)?;
        let Some(receipt) = read(row.get_ref(1)?)? else { continue };
        let Some(background) = receipt.background.clone() else { continue };
        let texts = found.entry((turn, background.clone())).or_default();
        texts.insert(background);
        receipt.reduce(texts);
    }
    Ok(found.into_values().collect())
}

/// Erases these texts, after somebody has deleted one of those messages. Which of the texts contain it cannot be
/// determined.
pub(super) fn erase_background(conn: &Connection, session: SessionId) -> Result<(), Fault> {
    let texts: Vec<Digest> = backgrounds(conn, session)?.into_iter().flatten().collect();
    erase_texts(conn, &texts)
}

/// How the messages of a window are stored.
mod runs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Reference;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Stored {
        /// Consecutive ids, from the first to the last.
        Run(i64, i64),
        One(Reference),
    }

    pub(super) fn serialize<S: Serializer>(messages: &[Reference], serializer: S) -> Result<S::Ok, S::Error> {
        let follows =
            |a: &Reference, b: &Reference| matches!((a, b), (Reference::Whole(a), Reference::Whole(b)) if a + 1 == *b);
        let stored = messages.chunk_by(follows).map(|run| match (&run[0], &run[run.len() - 1]) {
            (Reference::Whole(first), Reference::Whole(last)) if first < last => Stored::Run(*first, *last),
            (one, _) => Stored::One(one.clone()),
        });
        serializer.collect_seq(stored)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Reference>, D::Error> {
        let mut messages = Vec::new();
        for stored in Vec::<Stored>::deserialize(deserializer)? {
            match stored {
                Stored::Run(first, last) => messages.extend((first..=last).map(Reference::Whole)),
                Stored::One(one) => messages.push(one),
            }
        }
        Ok(messages)
    }
}

impl Reference {
    /// Replaces a reference to a message that the turn adds by one to the id that it was given.
    fn resolve(&mut self, ids: &[i64]) -> Result<(), Fault> {
        let id = |index: usize| {
            let unknown = || Fault::Damaged(format!("a receipt names message {index} of a turn that has none"));
            ids.get(index).copied().ok_or_else(unknown)
        };
        match self {
            Reference::Added(index) => *self = Reference::Whole(id(*index)?),
            Reference::AddedReduced(index, digest) => *self = Reference::Reduced(id(*index)?, digest.clone()),
            Reference::Whole(_) | Reference::Reduced(..) | Reference::Text { .. } => {}
        }
        Ok(())
    }
}
