//! Receipts: what each request of a turn to the model was made from, so that the decision behind it can be made again.
//!
//! A receipt names things rather than repeating them: messages of the archive by their ids, every other text by its
//! digest. Such texts are stored beside the receipts, each once, whoever refers to it. All of it is written with the turn,
//! in one transaction: there is a receipt for every answered turn that asked a model, and none for an attempt that came
//! to nothing.

use std::{
    collections::{BTreeMap, HashSet},
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
    sql::{Connection, params},
};
use crate::ids::{SessionId, TurnId};

pub(super) const KEEP_TEXT: &str = "INSERT INTO text (sha256, body) VALUES (?1, ?2) ON CONFLICT (sha256) DO NOTHING";
pub(super) const KEEP: &str = "INSERT INTO receipt (session_id, turn_id, call, at, body) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Those that may have a text of a message: they show some in another form, or again.
const WITH_TEXTS: &str = "SELECT body FROM receipt WHERE session_id = ?1
     AND (body LIKE '%[' || ?2 || ',\"%' OR body LIKE '%\"replaced\":[[%' OR body LIKE '%\"recall\":\"%')";
/// Those that have a text of what was said before in a thread.
pub(super) const BACKGROUNDS: &str =
    "SELECT json_extract(body, '$.background') FROM receipt WHERE session_id = ?1 AND body LIKE '%\"background\":\"%'";
pub(super) const ERASE_TEXT: &str = "DELETE FROM text WHERE sha256 = ?1";

/// SHA-256 of something, in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub(super) Arc<str>);

impl Digest {
    /// That of these bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Digest {
        Digest::written(Sha256::digest(bytes))
    }

    fn written(digest: impl AsRef<[u8]>) -> Digest {
        Digest(hex(digest.as_ref()).into())
    }

    /// That of a request, serialised as JSON.
    pub fn of_request(request: &Request) -> Digest {
        #[derive(Serialize)]
        struct Serialised<'a> {
            system: &'a str,
            messages: Vec<&'a Message>,
            max_answer_tokens: u32,
            tools: &'a [Tool],
        }
        // The messages name the images by their digests.
        let Request { system, messages, max_answer_tokens, tools, images: _ } = request;
        let messages = messages.iter().map(|message| &**message).collect();
        let max_answer_tokens = *max_answer_tokens;
        // Hashed as it is written: a request may hold megabytes.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_not(flag: &bool) -> bool {
    !flag
}

/// What one request was made from. Sizes are in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which request of the turn, counted from 0.
    pub call: u32,
    /// When it was decided on, milliseconds since the epoch.
    pub at_ms: i64,
    /// The policies' word for what it is for: `first` or `synthesise`.
    pub phase: String,
    /// What was there to decide on.
    pub before: Before,
    /// What was done about it; nothing where there was nothing to decide.
    pub plan: Option<Plan>,
    /// The stack of policies, the deciding one first.
    pub policies: Vec<Layer>,
    pub budget: Budget,
    /// What was known of how the model counts.
    pub calibration: Calibrated,
    /// The system prompt, a text.
    pub system: Digest,
    /// The definitions of the tools, a text: JSON.
    pub tools: Digest,
    /// What was found for the new message.
    pub atoms: Vec<FoundAtom>,
    /// What had been said before in the thread of the new message, as the model was shown it: a text, JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Digest>,
    /// What the provider counted, the cache included; nothing where it gave no answer.
    pub usage: Option<Usage>,
    /// The version of what makes a request from all this.
    pub renderer: u32,
    /// Whether calls and results went as text, because the server takes no tools.
    #[serde(default, skip_serializing_if = "is_not")]
    pub as_text: bool,
    /// Whether the history was repaired, because the provider refused it as it was.
    #[serde(default, skip_serializing_if = "is_not")]
    pub repaired: bool,
    /// The request as it was sent, serialised.
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
    /// A policy's own words for the marker of those, a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<Digest>,
}

/// A message of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reference {
    /// One of the archive, as it is there.
    Whole(i64),
    /// One of the archive that something else stood for, and that, a text: JSON.
    Reduced(i64, Digest),
    /// What is no message of the archive, a text: JSON. A marker, or a block that is shown with the new message.
    Text { text: Digest },
    /// One that this turn adds: which of [`Recorded::messages`](super::Recorded::messages). Stored as
    /// [`Whole`](Reference::Whole).
    #[serde(skip)]
    Added(usize),
    /// The same, reduced.
    #[serde(skip)]
    AddedReduced(usize, Digest),
}

/// What a plan did. Indexes are those of [`Before::messages`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub decided_by: Decider,
    /// What left the request, ascending.
    pub removed: Vec<u32>,
    /// What stood reduced from then on, and as what, a text: JSON.
    pub replaced: Vec<(u32, Digest)>,
    /// The words of a marker that it wrote, a text, and the index it stood before.
    pub marker: Option<(Digest, u32)>,
    /// The ids of archived messages that were shown again, and the block that shows them, a text: JSON.
    pub recalled: Vec<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Digest>,
    /// What it wanted summed up, from the first index to before the last one.
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
    /// Its settings, a text: JSON.
    pub settings: Digest,
}

/// How the model's window was shared out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub window: u64,
    /// What was left for messages: the hard limit.
    pub limit: u64,
    /// Kept for the answer.
    pub answer: u32,
    /// Whether the seed pair might go.
    pub seed_may_go: bool,
}

/// What was known of how the model counts, and of what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Provider's tokens for one of the host's estimate.
    pub factor: f64,
    /// Tokens that the provider counts beyond what is sent.
    pub overhead: f64,
    /// The smallest request that was refused, as the host estimates it, and the largest below it that was answered.
    pub refused: Option<(u64, u64)>,
    /// The window that a refusal has named, in the provider's tokens.
    pub named: Option<u64>,
    /// The largest request that was answered of late, as the host estimates it.
    pub answered: Option<u64>,
}

/// An atom that the model was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundAtom {
    pub id: String,
    /// Of its file, as we write it.
    pub sha256: Digest,
}

/// The receipts of a turn, and the texts that they refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Receipts {
    calls: Vec<Receipt>,
    texts: BTreeMap<Digest, Arc<str>>,
}

impl Receipts {
    /// Has a text stored that a receipt refers to.
    pub fn keep(&mut self, text: impl Into<Arc<str>>) -> Digest {
        let text = text.into();
        let digest = Digest::of(&*text);
        self.texts.entry(digest.clone()).or_insert(text);
        digest
    }

    /// The same for something that is stored as JSON.
    pub fn keep_json(&mut self, value: &impl Serialize) -> Digest {
        self.keep(codec::to_json(value))
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(u32::MAX)
    }

    /// Adds the receipt of one more request.
    pub fn push(&mut self, receipt: Receipt) {
        self.calls.push(receipt);
    }
}

/// Texts that are stored for certain, so that a turn need not write its system prompt once more to find that out.
#[derive(Debug, Default)]
pub(super) struct StoredTexts(Mutex<HashSet<Digest>>);

/// So many are remembered; then it is begun anew.
const MOST_TEXTS: usize = 1_024;

impl StoredTexts {
    /// Takes those out that are stored, and says which are left to store.
    pub(super) fn fresh(&self, receipts: &mut Receipts) -> Vec<Digest> {
        let stored = self.lock();
        receipts.texts.retain(|digest, _| !stored.contains(digest));
        receipts.texts.keys().cloned().collect()
    }

    /// These were stored, and the transaction is committed.
    pub(super) fn are_stored(&self, digests: Vec<Digest>) {
        let mut stored = self.lock();
        if stored.len() + digests.len() > MOST_TEXTS {
            stored.clear();
        }
        stored.extend(digests);
    }

    /// Some may be stored no more.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Digest>> {
        // An insertion is whole or did not happen, and a text too few is only written once more.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receipt {
    /// The texts that say what the model was shown beside the conversation.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Digest> {
        let blocks = self.before.messages.iter().filter_map(|message| match message {
            Reference::Text { text } => Some(text),
            _ => None,
        });
        [&self.system, &self.tools].into_iter().chain(blocks)
    }
}

impl Receipt {
    /// The texts that a message of the archive is told from: what stood for it, and what has shown it again.
    pub(super) fn texts_of(&self, id: i64) -> Vec<Digest> {
        let mut texts = Vec::new();
        let mut places = Vec::new();
        for (place, reference) in (0u32..).zip(&self.before.messages) {
            match reference {
                Reference::Whole(shown) if *shown == id => places.push(place),
                Reference::Reduced(shown, text) if *shown == id => {
                    places.push(place);
                    texts.push(text.clone());
                }
                _ => {}
            }
        }
        if let Some(plan) = &self.plan {
            let replaced = plan.replaced.iter().filter(|(place, _)| places.contains(place));
            texts.extend(replaced.map(|(_, text)| text.clone()));
            texts.extend(plan.recall.clone().filter(|_| plan.recalled.contains(&id)));
        }
        texts
    }
}

/// Stores a turn's receipts; `ids` are those of the messages that it adds, in their order.
pub(super) fn keep(
    conn: &Connection,
    (session, turn): (SessionId, TurnId),
    Receipts { calls, texts }: &Receipts,
    ids: &[i64],
) -> Result<(), Fault> {
    let mut keep_text = conn.prepare_cached(KEEP_TEXT)?;
    for (digest, text) in texts {
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

/// Erases the texts that receipts of a conversation keep of one of its messages: what stood for it, and blocks that have
/// shown it again. The receipts themselves name things, and stay; what they were made from cannot be made again.
pub(super) fn erase_texts_of(conn: &Connection, session: SessionId, id: i64) -> Result<(), Fault> {
    let mut texts = Vec::new();
    {
        let mut statement = conn.prepare_cached(WITH_TEXTS)?;
        let mut rows = statement.query(params![session.0, id])?;
        while let Some(row) = rows.next()? {
            let receipt: Receipt = codec::from_json(row.get_ref(0)?, "a receipt")?;
            texts.extend(receipt.texts_of(id));
        }
    }
    let mut erase = conn.prepare_cached(ERASE_TEXT)?;
    for text in texts {
        erase.run([&*text.0])?;
    }
    Ok(())
}

/// Erases what receipts of a conversation keep of what people had said in its thread before: somebody has deleted something
/// there. Which of them it was in nobody can tell.
pub(super) fn erase_background(conn: &Connection, session: SessionId) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(BACKGROUNDS)?;
    let texts: Vec<Option<String>> = statement.query_map([session.0], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut erase = conn.prepare_cached(ERASE_TEXT)?;
    for text in texts.into_iter().flatten() {
        erase.run([text])?;
    }
    Ok(())
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
    /// Names a message that the turn adds by the id that it has now.
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
