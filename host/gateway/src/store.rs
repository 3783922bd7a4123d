//! The store: everything that must survive a crash: inbox, sessions, turns, outbox.
//!
//! A message passes through the store in four commits; a crash between any two of them neither loses nor
//! repeats anything:
//!
//! 1. [`accept`](Store::accept): the question is in the inbox. It may now be acknowledged.
//! 2. [`begin`](Store::begin): the conversation is leased and the turn exists. Returns the live window;
//!    [`edit_live`](Store::edit_live) commits what a plan changes in it.
//! 3. [`record`](Store::record): the answer is in the archive and in the outbox. It may now be shown.
//! 4. [`finish`](Store::finish): the answer is delivered, the question closed, the lease released.
//!
//! [`open_work`](Store::open_work) lists unfinished work, after a crash and at any other time. `begin` says how far
//! each question has come: [`BeginOutcome::Ask`] before the third commit, [`BeginOutcome::Deliver`] after it. A
//! question that cannot be processed further is [parked](Store::park).
//!
//! Every message is stored once and never rewritten. The live window is a list of references to
//! messages, and pruning edits that list. Archived messages cost a turn nothing.
//!
//! The store is one SQLite file with a write-ahead log that is synced at every commit, or a PostgreSQL database, behind
//! the same methods and [the same statements](sql). One thread writes, and commits on behalf of all waiting callers;
//! other threads read. All SQL of the program is in this module.
//!
//! Times are milliseconds since the epoch; the caller passes the current time.

mod again;
mod archive;
mod asked;
pub mod assignment;
mod atom_files;
mod backup;
mod calibrations;
mod cases;
mod changes;
mod check;
mod choice;
mod codec;
mod common_config;
mod components;
mod connection;
mod copying;
mod database;
mod dump;
mod early;
mod erase;
mod error;
mod escalation_updates;
mod escalations;
mod events;
mod examine;
mod experiments;
mod files;
mod following;
mod handed_on;
mod hosts;
mod images;
mod in_person;
mod intake;
mod lease;
mod mark;
mod moment;
mod open_turn;
mod outgoing;
mod parking;
mod paths;
mod person;
mod place;
mod presence;
mod presses;
mod proposals;
mod readers;
mod reattached;
mod receipt;
mod receipts;
mod reset;
mod restore;
mod restored;
mod retention;
mod schema;
mod sent_arms;
mod sessions;
mod sql;
mod tools;
pub mod transfer;
mod trouble;
mod turns;
mod undelivered;
mod upgrade;
mod uses;
mod verbosity;
mod window;
mod windows;
mod work;
mod writer;

#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use pmk_system::{
    clock::Clock,
    home::{self, HomeLock},
    threads::Threads,
};
use tokio::sync::Notify;

pub use again::{RegenerateOutcome, RegenerateTrigger, is_again};
pub use archive::StoreArchive;
pub use asked::{Asking, BOUNDED_FOR, Bound};
pub use atom_files::{AtomOffer, AtomRow};
pub use backup::BackupError;
pub use calibrations::ModelCalibration;
pub use cases::{CaseEntry, DumpedCase, Opened};
pub use changes::{Changed, Open};
pub use choice::{Choice, HostPolicies};
pub use common_config::{CommonConfig, HomeConfig};
pub use components::{LayerUpload, SentLayer};
pub use copying::{Copied, CopyError};
pub use dump::{DumpedLive, DumpedMessage, SessionDump};
pub use error::{Loss, StoreError, StoreErrorKind};
pub use escalation_updates::EscalationUpdate;
pub use escalations::Concern;
pub use examine::{Examined, Kept};
pub use experiments::{ArmConversation, Design, DesignedArm, StoppedArm, TurnOutcome, Vote, Voted};
pub use handed_on::{addition, handed_on, is_addition, is_handed_on};
pub use hosts::{HOST_LEASE, Host, HostFence, HostState, LastSign, UnderWay, UnleasedConversation};
pub use images::StoredImage;
pub use intake::{CalledOff, OpenWork, Pending, SEEN_FOR};
pub use lease::{LEASE_FOR, Lease};
pub use open_turn::{Answered, BeginOutcome, Begun, Hold, OpenTurn, PreviewKind};
pub use outgoing::{Offers, Outgoing, Part, Purpose, Sent, Withdrawal};
pub use parking::{Parked, Unparked};
pub use person::{ErasedMessages, ErasedOfPerson, WrittenIn};
pub use place::Place;
pub use presence::{Announce, DmUser, MissedConversation, Outage, Telling, UnannouncedOutage, Unread};
pub use presses::{JudgedAtom, Pressed, Verdict, VerdictSource};
pub use proposals::{Ends, Proposal, ProposalVerdict, is_meant, is_own};
pub use receipt::{Before, Budget, Calibrated, Decider, Digest, FoundAtom, Layer, Plan, Receipt, Receipts, Reference};
pub use receipts::{FirstRequest, Replayable};
pub use reset::{Cut, TURN_WAIT};
pub use restore::Restored;
pub use retention::{ErasedConversation, Erasing};
pub use sent_arms::{ExperimentId, SentArm};
pub use sessions::{SessionSummary, StoredMessage};
pub use turns::recording::Recorded;
pub use uses::AtomUse;
pub use verbosity::Verbosity;
pub use window::{FoldEdit, Live, LiveEntry, Replacement, WindowEdit};

use connection::Migrate;
use copying::Mark;
use database::OpenMode;
use error::Fault;
use files::OpenFiles;
use readers::Readers;
use sql::{Connection, Link};
use writer::{Prefetch, Writer};

/// The file's name in `<home>/gateway`.
const FILE_NAME: &str = "pmk-host.db";

/// A handle on the store of one home. Clones share the store. When the last clone is dropped, the writes that were
/// begun are committed and the file is closed.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// Options for opening a store.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// The clock for records whose caller passes no time.
    pub clock: Clock,
    /// Starts the threads that read and write.
    pub threads: Threads,
}

struct Shared {
    place: Place,
    /// The connection to the database; `None` for a store in a file.
    link: Option<Arc<Link>>,
    /// Notifies waiting tasks when the database can be reached again.
    back: Arc<Notify>,
    /// The name under which this process takes the leases of its turns.
    owner: String,
    // Dropped in this order: the last connection to close checkpoints the log into the file, and readers cannot do
    // that.
    readers: Readers,
    writer: Writer,
    /// Events that are recorded in the store but not yet written to the ledger's files.
    noting: events::Noting,
    /// Texts that receipts refer to and that are known to be stored.
    texts: receipt::StoredTexts,
    /// Bounds of models as they stand within the current transaction.
    new_bounds: Arc<calibrations::NewBounds>,
    /// Cached live windows.
    windows: Arc<windows::Windows>,
    /// What is still to be delivered of turns.
    undelivered: undelivered::Undelivered,
    /// Who has written recently in threads of channels.
    last_words: following::LastWords,
    /// What is known of the other hosts.
    others: hosts::Peers,
}

impl Store {
    /// Returns the path of a home's store.
    pub fn path(home: &Path) -> PathBuf {
        home::gateway_dir(home).join(FILE_NAME)
    }

    /// Whether opening the store for reading may succeed. For a store in a database, only opening it tells.
    pub fn may_be_at(place: &Place) -> bool {
        place.database.is_some() || Store::path(&place.home).exists()
    }

    /// Opens the store of a home for `run`, which holds the [`HomeLock`]. Creates what is missing and migrates the
    /// schema, after a backup.
    ///
    /// # Errors
    /// The store cannot be used: [`StoreError::Newer`], [`StoreError::Foreign`], [`StoreError::Damaged`],
    /// [`StoreError::Io`], [`StoreError::Away`], [`StoreError::Refused`]; or the home had a store that is now
    /// [`StoreError::Gone`].
    pub fn open(place: impl Into<Place>) -> Result<Store, StoreError> {
        Store::open_with(place, &Opening::default())
    }

    /// As [`open`](Store::open), with another clock and other threads.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    pub fn open_with(place: impl Into<Place>, opening: &Opening) -> Result<Store, StoreError> {
        let place = place.into();
        if place.database.is_some() {
            return Store::start_in_database(place, OpenMode::Made, opening);
        }
        let path = Store::path(&place.home);
        mark::refuse_loss(&path)?;
        connection::create(&path)?;
        let store = Store::start(place, Migrate::Yes, opening)?;
        mark::set(&path)?;
        Ok(store)
    }

    /// Opens the store of a home for any other command, possibly while a `run` is alive.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when nothing has been stored yet; otherwise as [`Store::open`].
    pub fn open_existing(place: impl Into<Place>) -> Result<Store, StoreError> {
        let place = place.into();
        if place.database.is_some() {
            return Store::start_in_database(place, OpenMode::There, &Opening::default());
        }
        let path = Store::path(&place.home);
        mark::refuse_loss(&path)?;
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Err(StoreError::Missing { path }),
            Err(error) => return Err(StoreError::Io { path, message: error.to_string() }),
        }
        let migrate = if run_is_alive(&place.home) { Migrate::No } else { Migrate::Yes };
        match Store::start(place.clone(), migrate, &Opening::default()) {
            // Where writing is not permitted, reading may still work; a later write then reports the error.
            Err(error @ StoreError::Io { .. }) => match Store::start_read_only(place) {
                Err(StoreError::Io { .. }) => Err(error),
                // No gateway is running.
                Err(StoreError::Outdated { path, found, known }) if migrate == Migrate::Yes => {
                    Err(StoreError::OldAndReadOnly { path, found, known })
                }
                started => started,
            },
            started => started,
        }
    }

    /// As [`Store::open_existing`]; `None` when nothing has been stored yet.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_if_any(place: impl Into<Place>) -> Result<Option<Store>, StoreError> {
        match Store::open_existing(place) {
            Err(StoreError::Missing { .. }) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn start(place: Place, migrate: Migrate, opening: &Opening) -> Result<Store, StoreError> {
        let path = Store::path(&place.home);
        let conn = connection::writer(&path, migrate)?;
        Mark::File(path.clone()).refuse(&conn, &path).map_err(|fault| fault.at(&path))?;
        Store::assemble(place, None, conn, || connection::reader(&path), opening)
    }

    fn start_read_only(place: Place) -> Result<Store, StoreError> {
        let path = Store::path(&place.home);
        let conn = connection::read_only(&path)?;
        Store::assemble(place, None, conn, || connection::read_only(&path), &Opening::default())
    }

    fn start_in_database(place: Place, wanted: OpenMode, opening: &Opening) -> Result<Store, StoreError> {
        let Some(link) = place.link(opening.threads.clone())? else { return Err(StoreError::Closed) };
        let (conn, name) = (database::writer(&link, wanted)?, Path::new(link.name()));
        Mark::Comment.refuse(&conn, name).map_err(|fault| fault.at(name))?;
        Store::assemble(place, Some(Arc::clone(&link)), conn, || database::reader(&link), opening)
    }

    fn assemble(
        place: Place,
        link: Option<Arc<Link>>,
        conn: Connection,
        reader: impl Fn() -> Result<Connection, StoreError>,
        Opening { clock, threads }: &Opening,
    ) -> Result<Store, StoreError> {
        let path = link.as_ref().map_or_else(|| Store::path(&place.home), |link| link.name().into());
        let readers = Readers::start(&path, reader, threads)?;
        let others = hosts::Peers::of(&conn);
        let files = if link.is_none() { Some(OpenFiles::of(&path)?) } else { None };
        let writer = Writer::start(conn, path.clone(), files, threads.clone())
            .map_err(|error| StoreError::Io { path, message: error.to_string() })?;
        let owner = lease::owner(&link.as_ref().map_or("pmk-host run".into(), |_| hosts::owner()));
        let (noting, texts) = (events::Noting::new(clock.clone()), receipt::StoredTexts::default());
        let (undelivered, last_words) = (undelivered::Undelivered::default(), following::LastWords::default());
        let (windows, new_bounds) = (Arc::default(), Arc::default());
        let back = link.as_ref().map(|link| Arc::clone(&link.back)).unwrap_or_default();
        let shared = Shared {
            place,
            link,
            back,
            owner,
            readers,
            writer,
            noting,
            texts,
            new_bounds,
            windows,
            undelivered,
            last_words,
            others,
        };
        Ok(Store { shared: Arc::new(shared) })
    }

    /// Returns the name shown to people: without a password.
    pub fn name(&self) -> String {
        self.shared.place.name()
    }

    /// Waits until the open store is lost (its file deleted, replaced, emptied or truncated) and returns how. From
    /// then on nothing is stored, and the process has to end. Waits for ever if that does not happen.
    pub async fn lost(&self) -> StoreError {
        self.shared.writer.lost().await
    }

    /// Returns when the database can be reached again after it was unreachable: work that was delayed by that need
    /// wait no longer. A store in a file is never unreachable.
    pub async fn back(&self) {
        self.shared.back.notified().await;
    }

    /// Returns how often the database has come back: it may have lost the last commits each time, and give their
    /// numbers again.
    pub fn returns(&self) -> u64 {
        self.shared.link.as_ref().map_or(0, |link| link.returns())
    }

    #[cfg(test)]
    pub(crate) fn comes_back(&self) {
        self.shared.back.notify_waiters();
    }

    /// Returns once the writer thread has committed an empty transaction, which causes no disk write.
    ///
    /// # Errors
    /// The commit failed.
    pub async fn commit_nothing(&self) -> Result<(), StoreError> {
        self.write(|_| Ok(())).await
    }

    /// Returns once the writer thread has committed something that is written to the disk, although nothing is changed by it.
    ///
    /// # Errors
    /// Nothing can be stored.
    pub async fn commit_something(&self) -> Result<(), StoreError> {
        self.write(connection::touch).await?;
        self.shared.writer.trouble().ends();
        Ok(())
    }

    /// Returns whether the writer thread works, once it has answered. A database that is away is no fault of it.
    pub async fn writer_responds(&self) -> bool {
        self.commit_nothing().await.is_ok() || self.is_shared()
    }

    fn write<T, F>(&self, work: F) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.write_prefetched(Prefetch::None, work)
    }

    /// As [`write`](Store::write), for work some of whose reads are known in advance.
    fn write_prefetched<T, F>(
        &self,
        prefetch: Prefetch,
        work: F,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.shared.writer.write(prefetch, work)
    }

    fn read<T, F>(&self, work: F) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.shared.readers.read(work)
    }

    /// As [`read`](Store::read), for a thread that may block.
    fn read_waiting<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.shared.readers.read_waiting(work)
    }

    /// Returns the cache of live windows.
    fn windows(&self) -> Arc<windows::Windows> {
        Arc::clone(&self.shared.windows)
    }

    fn owner(&self) -> String {
        self.shared.owner.clone()
    }

    /// Whether a `run` is working on the store.
    async fn run_is_alive(&self) -> Result<bool, StoreError> {
        match self.shared.link {
            Some(_) => Ok(self.host_at_work().await?.is_some()),
            None => Ok(run_is_alive(&self.shared.place.home)),
        }
    }
}

/// Answers `true` where the lock cannot be queried, which is the safe answer.
fn run_is_alive(home: &Path) -> bool {
    HomeLock::is_held(home).unwrap_or(true)
}
