//! A connection to PostgreSQL, of a thread that waits for it. Where that is one of an async runtime, which must not wait, another
//! waits in its place while it stands still: that is for a runtime of one thread in which all comes in one order.
//!
//! Nothing is left in a [session] that others have, too, so that a pooler that hands out connections by the transaction may
//! stand between. What nobody asks the outcome of, or not yet, is not waited for: it goes out together with the next that is
//! waited for, at the latest the `COMMIT`. A connection that is lost is made anew when it is wanted and the [way](Link) is open.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    panic::resume_unwind,
    sync::Arc,
    thread,
    time::Duration,
};

use pmk_core::text::collapse_whitespace;
use rusqlite::ToSql;
use tokio::{
    runtime::{Handle, Runtime},
    task::yield_now,
    time::timeout,
};
use tokio_postgres::{
    NoTls, Row,
    error::{DbError, Severity, SqlState},
};

use super::{
    Error, Result,
    link::Link,
    prefetch::{Invalidation, Prefetch, Prefetched},
    session::{Asked, Misnamed, Outcome, Request, Sent, Session},
    translate::Translated,
    values::Given,
};

/// How long a connection may take to come about,
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
/// and what is asked: where that takes longer the database is not there any more.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// How many numbers of rows are fetched at once, where nobody has said how many it will be.
const IDS_AT_ONCE: usize = 16;

/// So much is sent at most before it is waited for.
const MOST_SENT: usize = 128;
const MOST_BYTES: usize = 1 << 20;

/// Begins a transaction that writes: each of its statements sees what was committed before it. A host that is stopped amid one is cut off, and so keeps nobody waiting for long.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '2s'";

/// Who writes has this lock, by transaction: `pmkh`, and the schema that the store is in.
const WRITES_ALONE: &str = "SELECT pg_advisory_xact_lock(1886219112, hashtext(current_schema()))";

/// After the lock, for it sees what was committed before.
const HOST_WRITES: &str = "SELECT pmk_host_writes(?1)";

/// A connection to the database that a link leads to.
pub(in crate::store) struct Postgres {
    link: Arc<Link>,
    /// Is there until it is dropped.
    runtime: Option<Runtime>,
    session: RefCell<Option<Session>>,
    /// What was asked, in its order, and not waited for yet; and how many bytes it has.
    sent: RefCell<Vec<Sent>>,
    sent_bytes: Cell<usize>,
    /// What was asked for before whoever wants it is at work.
    prefetch: RefCell<Prefetch>,
    /// Numbers of rows to come in this transaction, by table: they are fetched several at once. None is kept for the next:
    /// others may give numbers in between, and a server that has crashed, or another in its place, gives some anew.
    ids: RefCell<HashMap<Box<str>, Ids>>,
    translated: RefCell<HashMap<Box<str>, Translated>>,
    transaction: Cell<Transaction>,
    /// Its number, another one after each undoing.
    number: Cell<u64>,
    /// When it was begun, where it tells others that this host works.
    tells_since: Cell<Option<Duration>>,
    /// How many requests have begun it.
    opening: Cell<usize>,
    changes: Cell<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    /// Nothing of it was answered yet: it may be begun on another connection as well.
    Begun,
    Open,
    /// A statement has failed, and nothing but an end is taken any more.
    Failed,
}

/// Numbers of rows to come.
#[derive(Default)]
struct Ids {
    known: VecDeque<i64>,
    /// And how many each of these will bring.
    asked: VecDeque<(Arc<Asked>, usize)>,
}

impl Ids {
    fn count(&self) -> usize {
        self.known.len() + self.asked.iter().map(|(_, count)| count).sum::<usize>()
    }
}

/// Whether what was asked may be asked once more of a new connection, where the old one turns out to be lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// It changes nothing.
    Yes,
    /// As part of a transaction of which nothing was answered yet.
    Within,
    /// It ends a transaction, and then nobody can tell whether it was done.
    No,
}

impl Postgres {
    /// Connects.
    ///
    /// # Errors
    /// The database cannot be reached, or does not let us in.
    pub(in crate::store) fn connect(link: &Arc<Link>) -> Result<Postgres> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Away(error.to_string()))?;
        let postgres = Postgres {
            link: Arc::clone(link),
            runtime: Some(runtime),
            session: RefCell::default(),
            sent: RefCell::default(),
            sent_bytes: Cell::new(0),
            prefetch: RefCell::default(),
            ids: RefCell::default(),
            translated: RefCell::default(),
            transaction: Cell::new(Transaction::None),
            tells_since: Cell::new(None),
            number: Cell::new(0),
            opening: Cell::new(0),
            changes: Cell::new(0),
        };
        let session = postgres.session()?;
        *postgres.session.borrow_mut() = Some(session);
        Ok(postgres)
    }

    pub(in crate::store) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Has this connection's runtime do something, and waits for that.
    fn block_on<F>(&self, work: F) -> Result<F::Output>
    where
        F: Future<Output: Send> + Send,
    {
        let runtime = self.runtime.as_ref().ok_or_else(|| Error::Away("it was closed".into()))?;
        if Handle::try_current().is_err() {
            return Ok(runtime.block_on(work));
        }
        let done = thread::scope(|scope| scope.spawn(|| runtime.block_on(work)).join());
        Ok(done.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    fn session(&self) -> Result<Session> {
        let link = &*self.link;
        link.is_worth_trying()?;
        let connecting = async {
            // What was asked is answered while somebody waits for it.
            let client = match &link.tls {
                Some(tls) => {
                    let (client, connection) = link.config.connect(tls.clone()).await?;
                    tokio::spawn(connection);
                    client
                }
                None => {
                    let (client, connection) = link.config.connect(NoTls).await?;
                    tokio::spawn(connection);
                    client
                }
            };
            Session::new(client, link.may_name()).await
        };
        match self.block_on(async { timeout(CONNECTED_WITHIN, connecting).await })? {
            Ok(Ok(session)) => {
                link.is_there();
                Ok(session)
            }
            // It is there, and says no.
            Ok(Err(error)) if error.as_db_error().is_some_and(|error| !is_passing(error)) => {
                Err(Error::Postgres(error))
            }
            Ok(Err(error)) => Err(link.is_away(&words(&error))),
            Err(_) => Err(link.is_away(&format!("no answer within {} s", CONNECTED_WITHIN.as_secs()))),
        }
    }

    /// Asks something after what was sent before, and waits for the answers to all of it.
    fn ask(&self, request: Request, again: Again) -> Result<Outcome> {
        let asked = self.send(request)?;
        self.wait(again)?;
        Ok(asked.outcome().unwrap_or_default())
    }

    /// Waits for the answers to all that was sent.
    fn wait(&self, again: Again) -> Result<()> {
        // What a name has failed for was not done.
        let (mut where_lost, mut where_misnamed) = match self.transaction.get() {
            Transaction::None => (again == Again::Yes, true),
            Transaction::Begun => (again != Again::No, true),
            Transaction::Open | Transaction::Failed => (false, false),
        };
        loop {
            self.connected()?;
            let sent = self.unsent();
            let asked: Vec<Arc<Asked>> = sent.iter().map(|sent| Arc::clone(&sent.asked)).collect();
            let answers = async {
                for (place, sent) in sent.into_iter().enumerate() {
                    sent.answer.await.map_err(|error| (place, error))?;
                }
                Ok::<(), (usize, tokio_postgres::Error)>(())
            };
            let lost = match self.block_on(async { timeout(ANSWERED_WITHIN, answers).await })? {
                Ok(Ok(())) => {
                    if self.transaction.get() == Transaction::Begun {
                        self.transaction.set(Transaction::Open);
                    }
                    return Ok(());
                }
                Ok(Err((_, error))) if self.is_misnamed(&error) => None,
                Ok(Err((place, error))) if !is_end(&error) => {
                    self.failed(place, again);
                    return Err(Error::Postgres(error));
                }
                Ok(Err((_, error))) => Some(words(&error)),
                Err(_) => Some(format!("no answer within {} s", ANSWERED_WITHIN.as_secs())),
            };
            self.session.take();
            let again = if lost.is_some() { &mut where_lost } else { &mut where_misnamed };
            if !std::mem::take(again) {
                return Err(match lost {
                    Some(why) => self.lost(&why),
                    None => {
                        self.forget();
                        Error::Away("the server did not know a statement by its name".into())
                    }
                });
            }
            // Nothing of it is committed, and nobody has seen anything of it.
            *self.sent.borrow_mut() = asked.into_iter().map(Sent::in_vain).collect();
        }
    }

    /// Whether a statement has failed for its name alone.
    fn is_misnamed(&self, error: &tokio_postgres::Error) -> bool {
        let has_names = self.session.borrow().as_ref().is_some_and(Session::has_names);
        match Misnamed::of(error).filter(|_| has_names) {
            Some(Misnamed::Unknown) => {
                self.link.name_none(&words(error));
                true
            }
            Some(Misnamed::Outdated) => true,
            None => false,
        }
    }

    /// Sends something that nobody waits for yet.
    fn send(&self, request: Request) -> Result<Arc<Asked>> {
        self.connected()?;
        let asked = Asked::new(request);
        if let Some(session) = &*self.session.borrow() {
            self.sent_bytes.set(self.sent_bytes.get() + asked.bytes());
            self.sent.borrow_mut().push(session.send(Arc::clone(&asked), self.link.may_name()));
        }
        Ok(asked)
    }

    /// Takes what was sent and not waited for.
    fn unsent(&self) -> Vec<Sent> {
        self.sent_bytes.set(0);
        self.sent.take()
    }

    /// Has a connection be there, made anew where nothing is lost by that.
    fn connected(&self) -> Result<()> {
        let mut place = self.session.borrow_mut();
        if place.as_ref().is_some_and(|session| !session.is_closed()) {
            return Ok(());
        }
        if matches!(self.transaction.get(), Transaction::Open | Transaction::Failed) {
            *place = None;
            return Err(self.lost("the connection was lost"));
        }
        let session = self.session().inspect_err(|_| self.forget())?;
        for sent in &mut *self.sent.borrow_mut() {
            *sent = session.send(Arc::clone(&sent.asked), self.link.may_name());
        }
        *place = Some(session);
        Ok(())
    }

    /// Takes in what has come without being waited for: that the server has ended the connection. It is made anew then.
    fn look(&self) -> Result<()> {
        self.block_on(async {
            // What has come is seen after the first, and taken in after the second.
            yield_now().await;
            yield_now().await;
        })
    }

    fn lost(&self, why: &str) -> Error {
        self.forget();
        self.link.is_away(why)
    }

    /// The transaction is none any more: what it held is undone by the server.
    fn forget(&self) {
        self.unsent();
        self.transaction.set(Transaction::None);
        self.changed();
    }

    /// What is in an open transaction has to be undone. `place` says how many were answered well before what has failed.
    fn failed(&self, place: usize, again: Again) {
        match self.transaction.get() {
            Transaction::None => return,
            // It has not even begun.
            Transaction::Begun if place < self.opening.get() => {
                self.transaction.set(Transaction::None);
                if again != Again::No {
                    // Where this fails, too, the next transaction meets what is left of it, and undoes that.
                    let _ = self.end("ROLLBACK");
                }
            }
            Transaction::Begun | Transaction::Open | Transaction::Failed => self.transaction.set(Transaction::Failed),
        }
        self.changed();
    }

    fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    pub(super) fn translated(&self, sql: &str) -> Translated {
        let mut translated = self.translated.borrow_mut();
        if let Some(known) = translated.get(sql) {
            return known.clone();
        }
        let new = Translated::of(sql);
        translated.insert(sql.into(), new.clone());
        new
    }

    pub(super) fn execute(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<usize> {
        let changed = self.ask(statement(sql, params)?, Again::Within)?.changed;
        self.changes.set(self.changes.get() + changed);
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// The same where nobody asks how many rows it has changed.
    pub(super) fn run(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<Arc<Asked>> {
        let request = statement(sql, params)?;
        self.changed();
        let asked = self.send(request)?;
        // A turn has less.
        let is_much = self.sent_bytes.get() > MOST_BYTES || self.sent.borrow().len() > MOST_SENT;
        if is_much || self.transaction.get() == Transaction::None {
            self.settle()?;
        }
        Ok(asked)
    }

    /// Waits for what nobody has waited for.
    pub(super) fn settle(&self) -> Result<()> {
        if self.transaction.get() == Transaction::Failed {
            return Err(Error::Undone(None));
        }
        if self.sent.borrow().is_empty() {
            return Ok(());
        }
        self.wait(Again::Within)
    }

    pub(super) fn query(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<Vec<Row>> {
        let Outcome { rows, .. } = self.ask(statement(sql, params)?, Again::Yes)?;
        // One that changes something says what it has changed.
        if sql.is_returning() {
            self.changes.set(self.changes.get() + rows.len() as u64);
        }
        Ok(rows)
    }

    /// Asks for rows that are wanted in a while, unless that was foreseen. It changes nothing.
    pub(super) fn ahead(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<Arc<Asked>> {
        let request = statement(sql, params)?;
        if let Some(asked) = self.prefetch.borrow_mut().take(&request) {
            return Ok(asked);
        }
        let asked = self.send(request)?;
        if self.transaction.get() == Transaction::None {
            self.wait(Again::Yes)?;
        }
        self.prefetch.borrow_mut().note(&asked);
        Ok(asked)
    }

    /// What `ask` asks ahead is for who will be at work [with it](Postgres::with_foreseen).
    pub(in crate::store) fn foresee<T>(&self, ask: impl FnOnce() -> T) -> Prefetched {
        self.prefetch.borrow_mut().begin_noting();
        ask();
        self.prefetch.borrow_mut().noted()
    }

    /// Has `work` find what was foreseen for it.
    pub(in crate::store) fn with_foreseen<T>(&self, foreseen: Prefetched, work: impl FnOnce() -> T) -> T {
        self.prefetch.borrow_mut().is_for(foreseen);
        let done = work();
        self.prefetch.borrow_mut().forget();
        done
    }

    /// What was foreseen of this does not hold any more.
    pub(super) fn moved(&self, what: Invalidation) {
        self.prefetch.borrow_mut().moved(what);
    }

    /// Whether who is at work may go by something foreseen of it that does not hold any more. From then on it asks.
    pub(super) fn has_moved(&self, what: &Invalidation) -> bool {
        self.prefetch.borrow_mut().has_moved(what)
    }

    /// The rows that were asked for.
    pub(super) fn rows(&self, asked: &Asked) -> Result<Vec<Row>> {
        if let Some(outcome) = asked.outcome() {
            return Ok(outcome.rows);
        }
        self.settle()?;
        // What was undone meanwhile has no answer.
        asked.outcome().map(|outcome| outcome.rows).ok_or(Error::Undone(None))
    }

    pub(super) fn insert(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<i64> {
        let Some((table, with_id)) = sql.with_id(params.len()) else { return Err(Error::NoRow) };
        let id = self.next_id(table)?;
        self.run(&with_id, &[params, &[&id]].concat())?;
        Ok(id)
    }

    /// Asks for the numbers of so many rows, which are wanted in a while.
    pub(super) fn ids_ahead(&self, table: &str, count: usize) -> Result<()> {
        // What others will want is theirs.
        let there = match self.prefetch.borrow().is_noting() {
            true => 0,
            false => self.ids.borrow().get(table).map_or(0, Ids::count),
        };
        let count = count.saturating_sub(there);
        if count > 0 {
            let asked = self.send(fetch_ids(table, count)?)?;
            self.ids.borrow_mut().entry(table.into()).or_default().asked.push_back((asked, count));
        }
        Ok(())
    }

    /// The number of a row that a table is to get.
    pub(in crate::store) fn next_id(&self, table: &str) -> Result<i64> {
        let mut ids = self.ids.borrow_mut().remove(table).unwrap_or_default();
        while ids.known.is_empty() {
            let rows = match ids.asked.pop_front() {
                Some((asked, _)) => self.rows(&asked)?,
                None => self.ask(fetch_ids(table, IDS_AT_ONCE)?, Again::Yes)?.rows,
            };
            if rows.is_empty() {
                return Err(Error::NoRow);
            }
            ids.known.extend(ids_of(&rows)?);
        }
        let next = ids.known.pop_front().ok_or(Error::NoRow)?;
        self.ids.borrow_mut().insert(table.into(), ids);
        Ok(next)
    }

    pub(super) fn execute_batch(&self, sql: &str) -> Result<()> {
        self.ask(Request::Words(sql.into()), Again::Within).map(drop)
    }

    pub(super) fn follow_ids(&self, table: &str) -> Result<()> {
        let column = if table == "press" { "number" } else { "id" };
        let highest = format!("(SELECT max({column}) FROM {table})");
        let next = format!("(SELECT last_value FROM {table}_{column}_seq)");
        self.execute_batch(&format!("SELECT setval('{table}_{column}_seq', greatest({highest}, {next}))"))
    }

    /// Nobody else writes from here on, and this host may.
    pub(super) fn begin(&self) -> Result<()> {
        let mut opening = vec![Request::Words(BEGIN.into()), statement(&self.translated(WRITES_ALONE), &[])?];
        let tells_since = match self.link.host() {
            0 => None,
            host => {
                opening.push(statement(&self.translated(HOST_WRITES), &[&host])?);
                Some(self.link.now())
            }
        };
        self.open(opening)?;
        self.tells_since.set(tells_since);
        Ok(())
    }

    pub(super) fn begin_snapshot(&self) -> Result<()> {
        self.open(vec![Request::Words("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".into())])
    }

    fn open(&self, opening: Vec<Request>) -> Result<()> {
        self.has_no_past();
        self.prefetch.take();
        self.tells_since.take();
        self.look()?;
        self.opening.set(opening.len());
        for request in opening {
            self.send(request)?;
        }
        self.transaction.set(Transaction::Begun);
        Ok(())
    }

    /// What was known of the transaction does not hold.
    fn has_no_past(&self) {
        self.ids.take();
        self.number.set(self.number.get() + 1);
    }

    pub(super) fn transaction(&self) -> u64 {
        self.number.get()
    }

    pub(super) fn commit(&self) -> Result<()> {
        match self.transaction.get() {
            // PostgreSQL takes a COMMIT of it for a ROLLBACK, without a word.
            Transaction::Failed => {
                self.end("ROLLBACK")?;
                Err(Error::Undone(None))
            }
            // One of which nothing was answered goes out at once, with its end: where the connection is lost by that, nobody
            // can tell whether it was done.
            Transaction::None | Transaction::Begun | Transaction::Open => {
                self.end("COMMIT")?;
                if let Some(begun) = self.tells_since.take() {
                    self.link.was_heard(begun);
                }
                Ok(())
            }
        }
    }

    pub(super) fn roll_back(&self) -> Result<()> {
        // What comes of it matters to nobody.
        self.unsent();
        self.end("ROLLBACK")
    }

    fn end(&self, how: &str) -> Result<()> {
        let ended = self.ask(Request::Words(how.into()), Again::No);
        match (self.transaction.replace(Transaction::None), ended) {
            (_, Ok(_)) => Ok(()),
            // It was begun, and something of it has failed.
            (Transaction::Failed, Err(Error::Postgres(error))) => Err(Error::Undone(Some(error))),
            (_, Err(error)) => Err(error),
        }
    }

    pub(super) fn savepoint(&self, word: &str) -> Result<()> {
        if word.starts_with("ROLLBACK TO") {
            // It undoes them, whatever comes of them.
            self.unsent();
            self.has_no_past();
        }
        self.ask(Request::Words(word.into()), Again::Within)?;
        if word.starts_with("ROLLBACK TO") {
            self.transaction.set(Transaction::Open);
        }
        Ok(())
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        self.transaction.get() != Transaction::None
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.session.borrow_mut().take();
        if let Some(runtime) = self.runtime.take() {
            // Whoever drops it may be a thread of another runtime.
            runtime.shutdown_background();
        }
    }
}

fn statement(sql: &Translated, params: &[&dyn ToSql]) -> Result<Request> {
    let given: Result<Vec<_>> = params.iter().map(|value| Given::of(*value)?.owned()).collect();
    Ok(Request::Statement(sql.clone(), given?))
}

fn fetch_ids(table: &str, count: usize) -> Result<Request> {
    let fetch = format!("SELECT nextval('{table}_id_seq') FROM generate_series(1, $1)");
    statement(&Translated::of(&fetch), &[&i64::try_from(count).unwrap_or(i64::MAX)])
}

fn ids_of(rows: &[Row]) -> Result<Vec<i64>> {
    rows.iter().map(|row| row.try_get(0).map_err(Error::Postgres)).collect()
}

/// What PostgreSQL says, in one line.
pub(in crate::store) fn words(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    let said = match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    };
    collapse_whitespace(&said)
}

/// What is said of a connection that the server ends, by whoever stands between, too; and of an end that was not heard of.
const ENDS: [SqlState; 4] = [
    SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN,
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
];

/// Whether the connection is none any more.
fn is_end(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        // Nobody can tell whether it was done; nor what has begun.
        Some(said) if said.code().code().starts_with("08") || ENDS.contains(said.code()) => true,
        // A pooler says how bad it is in words alone, which it does not translate.
        Some(said) => match said.parsed_severity() {
            Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
            None => said.severity() == "FATAL",
        },
        None => true,
    }
}

/// Whether a server that says so on being asked for a connection may say something else in a while.
fn is_passing(error: &DbError) -> bool {
    let code = error.code();
    // What a pooler says where it cannot reach the server; and of what it does not understand, too.
    (code.code().starts_with("08") && !error.message().starts_with(NO_OPTIONS))
        || *code == SqlState::CANNOT_CONNECT_NOW
        || *code == SqlState::TOO_MANY_CONNECTIONS
        || *code == SqlState::ADMIN_SHUTDOWN
        || *code == SqlState::CRASH_SHUTDOWN
}

/// What a pooler says of an address that sets something for the session, which it shares out.
pub(in crate::store) const NO_OPTIONS: &str = "unsupported startup parameter";
