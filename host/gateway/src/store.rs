//! What must survive: inbox, sessions, turns, outbox.
//!
//! A message goes through the store in four commits, and a crash between any two of them loses and
//! repeats nothing:
//!
//! 1. [`accept`](Store::accept): the question is in the inbox. Now it may be acknowledged.
//! 2. [`begin`](Store::begin): the conversation is leased, the turn is there. The live window comes
//!    back; what a plan does to it is committed by [`edit_live`](Store::edit_live).
//! 3. [`record`](Store::record): the answer is in the archive and in the outbox. Now it may be shown.
//! 4. [`finish`](Store::finish): it is delivered, the question is done with, the conversation is free.
//!
//! [`open_work`](Store::open_work) lists what is unfinished, after a crash and at any time, and `begin` says where
//! each question stands: [`BeginOutcome::Ask`] before the third commit, [`BeginOutcome::Deliver`] after it. A question that
//! cannot go on is [parked](Store::park).
//!
//! Every message is stored once and never rewritten. The live window is a list of references to
//! messages; a prune edits the list. What is archived costs a turn nothing.
//!
//! It is one file in SQLite, with a write-ahead log that is synced at every commit; or a PostgreSQL, behind the same methods
//! and [the same statements](sql). One thread writes and commits for everybody who is waiting; others read. All SQL of the
//! program is in this module.
//!
//! Times are milliseconds since the epoch, and the caller says what time it is.

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
mod erase;
mod error;
mod escalations;
mod events;
mod examine;
mod experiments;
mod files;
mod following;
mod hosts;
mod images;
mod intake;
mod lease;
mod mark;
mod moment;
mod parking;
mod paths;
mod place;
mod presence;
mod presses;
mod proposals;
mod readers;
mod receipt;
mod receipts;
mod reset;
mod restore;
mod schema;
mod sent_arms;
mod sessions;
mod sql;
mod tools;
pub mod transfer;
mod turns;
mod types;
mod undelivered;
mod upgrade;
mod uses;
mod window;
mod windows;
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

pub use archive::StoreArchive;
pub use asked::{Asking, BOUNDED_FOR, Bound};
pub use atom_files::{AtomOffer, AtomRow};
pub use backup::BackupError;
pub use calibrations::ModelCalibration;
pub use cases::{DumpedCase, Opened};
pub use changes::{Changed, Open, RegenerateOutcome, RegenerateTrigger, is_again};
pub use choice::{Choice, HostPolicies};
pub use common_config::{CommonConfig, HomeConfig};
pub use components::{LayerUpload, SentLayer};
pub use copying::{Copied, CopyError};
pub use dump::{DumpedLive, DumpedMessage, SessionDump};
pub use error::{Loss, StoreError, StoreErrorKind};
pub use escalations::{handed_on, is_handed_on};
pub use examine::{Examined, Kept};
pub use experiments::{ArmConversation, Design, DesignedArm, StoppedArm, TurnOutcome, Vote, Voted};
pub use hosts::{HOST_LEASE, Host, HostFence, HostState, UnderWay, UnleasedConversation};
pub use images::StoredImage;
pub use intake::SEEN_FOR;
pub use lease::LEASE_FOR;
pub use place::Place;
pub use presence::{Announce, DmUser, MissedConversation, Outage, Telling, UnannouncedOutage};
pub use presses::{JudgedAtom, Pressed, VerdictSource};
pub use proposals::{Ends, Proposal, ProposalVerdict, is_meant};
pub use receipt::{Before, Budget, Calibrated, Decider, Digest, FoundAtom, Layer, Plan, Receipt, Receipts, Reference};
pub use receipts::Replayable;
pub use reset::Cut;
pub use restore::Restored;
pub use sent_arms::{ExperimentId, SentArm};
pub use types::{
    Answered, BeginOutcome, Begun, CalledOff, CaseEntry, EscalationUpdate, FoldEdit, Hold, Lease, Live, LiveEntry,
    Offers, OpenTurn, OpenWork, Outgoing, Parked, Part, Pending, PreviewKind, Purpose, Recorded, Replacement, Sent,
    SessionSummary, StoredMessage, Unparked, Verbosity, WindowEdit,
};
pub use uses::AtomUse;

use connection::Migrate;
use copying::Mark;
use database::OpenMode;
use error::Fault;
use files::OpenFiles;
use readers::Readers;
use sql::{Connection, Link};
use types::Concern;
use writer::{Prefetch, Writer};

/// The file's name in `<home>/gateway`.
const FILE_NAME: &str = "pmk-host.db";

/// A handle on the store of one home. Clones share it; when the last one is dropped, what was begun is
/// committed and the file closed.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// What a store is opened with.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// What time it is when something is noted that nobody says the time of.
    pub clock: Clock,
    /// Who reads and writes.
    pub threads: Threads,
}

struct Shared {
    place: Place,
    /// To the database, where the store is in one.
    link: Option<Arc<Link>>,
    /// Tells who waits for the database to be there again.
    back: Arc<Notify>,
    /// How this process signs its turns' leases.
    owner: String,
    // Closed in this order: the last connection to go folds the log into the file, and readers cannot.
    readers: Readers,
    writer: Writer,
    /// What is noted in it, and not written to the ledger's files.
    noting: events::Noting,
    /// Texts that receipts refer to and that are stored for certain.
    texts: receipt::StoredTexts,
    /// Bounds of models as they stand within the transaction under way.
    new_bounds: Arc<calibrations::NewBounds>,
    /// Live windows that are known.
    windows: Arc<windows::Windows>,
    /// What is left to do of turns.
    undelivered: undelivered::Undelivered,
    /// Who has written of late in threads of channels.
    last_words: following::LastWords,
    /// What is known of other hosts.
    others: hosts::Peers,
}

impl Store {
    /// Where the store of a home is.
    pub fn path(home: &Path) -> PathBuf {
        home::gateway_dir(home).join(FILE_NAME)
    }

    /// Whether it is worth opening one to be read. Of one in a database only opening it tells.
    pub fn may_be_at(place: &Place) -> bool {
        place.database.is_some() || Store::path(&place.home).exists()
    }

    /// Opens the store of a home for `run`, which has taken the [`HomeLock`]. Makes what is missing,
    /// and brings the schema up to date, after a backup.
    ///
    /// # Errors
    /// It cannot be used: [`StoreError::Newer`], [`StoreError::Foreign`], [`StoreError::Damaged`],
    /// [`StoreError::Io`], [`StoreError::Away`], [`StoreError::Refused`]; or the home had one and it is
    /// [`StoreError::Gone`].
    pub fn open(place: impl Into<Place>) -> Result<Store, StoreError> {
        Store::open_with(place, &Opening::default())
    }

    /// The same with another clock, and others that do the work.
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

    /// Opens the store of a home for any other command, beside a `run` that may be alive.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when nothing was stored yet; as [`Store::open`] otherwise.
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
            // Where nothing may be written, reading may still do; a write then says what is wrong.
            Err(error @ StoreError::Io { .. }) => match Store::start_read_only(place) {
                Err(StoreError::Io { .. }) => Err(error),
                started => started,
            },
            started => started,
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

    /// Waits until the store is lost while it is open, its file deleted, replaced, emptied or cut short, and says how. From
    /// then on nothing is stored, and the process has to end. It waits for ever where that does not happen.
    pub async fn lost(&self) -> StoreError {
        self.shared.writer.lost().await
    }

    /// Returns when the database is there again after it was away: what was held up by that need wait no longer. A file is never
    /// away.
    pub async fn back(&self) {
        self.shared.back.notified().await;
    }

    #[cfg(test)]
    pub(crate) fn comes_back(&self) {
        self.shared.back.notify_waiters();
    }

    /// Returns once the thread that writes has committed: nothing, which costs the disk nothing.
    ///
    /// # Errors
    /// It cannot.
    pub async fn commit_nothing(&self) -> Result<(), StoreError> {
        self.write(|_| Ok(())).await
    }

    async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.write_prefetched(Prefetch::None, work).await
    }

    /// The same of work of which that much is known before it is at work.
    async fn write_prefetched<T, F>(&self, prefetch: Prefetch, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.shared.writer.write(prefetch, work).await
    }

    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.shared.readers.read(work).await
    }

    /// As [`read`](Store::read), for a thread that may wait.
    fn read_waiting<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.shared.readers.read_waiting(work)
    }

    /// What is known of live windows.
    fn windows(&self) -> Arc<windows::Windows> {
        Arc::clone(&self.shared.windows)
    }

    fn owner(&self) -> String {
        self.shared.owner.clone()
    }

    /// Whether some `run` works on it.
    async fn run_is_alive(&self) -> Result<bool, StoreError> {
        match self.shared.link {
            Some(_) => Ok(self.host_at_work().await?.is_some()),
            None => Ok(run_is_alive(&self.shared.place.home)),
        }
    }
}

/// Where the lock cannot be asked, the careful answer.
fn run_is_alive(home: &Path) -> bool {
    HomeLock::is_held(home).unwrap_or(true)
}
