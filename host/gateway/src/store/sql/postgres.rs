//! A connection to PostgreSQL, of a thread that waits for it.
//!
//! Statements go out unnamed and nothing is left in the session, so that a pooler that hands out connections by the
//! transaction may stand between. Those whose outcome nobody asks for are not waited for one by one: they go out together with
//! the next that is waited for, at the latest the `COMMIT`. A connection that is lost is made anew when it is wanted, less and less often while the database is
//! away; the log tells of that once.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, join},
};
use pmk_core::text::single_spaced;
use pmk_system::error::Failure;
use rusqlite::ToSql;
use tokio::{runtime::Runtime, time::timeout};
use tokio_postgres::{
    Client, Config, NoTls, Row,
    error::{DbError, Severity, SqlState},
    types::Type,
};

use crate::database::Checks;

use super::{Error, Result, tls::Connector, translate::Translated, values::Given};

/// How long a connection may take to come about,
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
/// and what is asked: where that takes longer the database is not there any more.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// How long nobody tries to connect after it has failed: from the one to the other.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(4)];

/// How many numbers of rows are fetched at once.
const IDS_AT_ONCE: usize = 16;

/// So much is sent at most before it is waited for.
const MOST_SENT: usize = 128;
const MOST_BYTES: usize = 1 << 20;

/// Who writes has this lock, by transaction: `pmkh`, and the schema that the store is in.
const WRITES_ALONE: &str = "pg_advisory_xact_lock(1886219112, hashtext(current_schema()))";

/// Bounds of a transaction that writes. A host that is stopped amid one is cut off, and so keeps nobody waiting for long.
const BOUNDS: &str = "SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '2s'";

/// The way to one database, which all connections of a store go.
pub(in crate::store) struct Link {
    config: Config,
    tls: Option<Connector>,
    /// How it is called where people read it: without the password.
    name: String,
    /// Which home goes it: machine and folder.
    home: String,
    outage: Mutex<Option<Outage>>,
    /// As which host this process writes; 0: as none.
    host: AtomicI64,
}

/// The database is away.
#[derive(Clone, Debug)]
struct Outage {
    since: Instant,
    why: String,
    pause: Duration,
    not_before: Instant,
}

impl Link {
    pub(in crate::store) fn new(config: Config, checks: Checks, name: String, home: String) -> Result<Link, Failure> {
        let tls = Connector::new(checks).map_err(|error| Failure::new(format!("cannot use TLS: {error}")))?;
        Ok(Link { config, tls, name, home, outage: Mutex::default(), host: AtomicI64::new(0) })
    }

    pub(in crate::store) fn name(&self) -> &str {
        &self.name
    }

    /// What the address asks the server to set.
    pub(in crate::store) fn options(&self) -> &str {
        self.config.get_options().unwrap_or_default()
    }

    pub(in crate::store) fn home(&self) -> &String {
        &self.home
    }

    /// From now on every transaction is this host's, or comes to nothing once that has lost its right to write.
    pub(in crate::store) fn write_as(&self, host: i64) {
        self.host.store(host, Ordering::Release);
    }

    pub(in crate::store) fn host(&self) -> i64 {
        self.host.load(Ordering::Acquire)
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether to try at all.
    ///
    /// # Errors
    /// Somebody has just tried in vain.
    fn is_worth_trying(&self) -> Result<()> {
        match &*self.outage() {
            Some(outage) if Instant::now() < outage.not_before => Err(Error::Away(outage.why.clone())),
            _ => Ok(()),
        }
    }

    fn is_away(&self, why: &str) -> Error {
        let mut outage = self.outage();
        let now = Instant::now();
        match &mut *outage {
            Some(outage) => {
                outage.pause = (outage.pause * 2).min(PAUSES[1]);
                outage.not_before = now + outage.pause;
            }
            None => {
                tracing::warn!("the database `{}` is away: {why}", self.name);
                let why = why.to_owned();
                *outage = Some(Outage { since: now, why, pause: PAUSES[0], not_before: now });
            }
        }
        Error::Away(why.to_owned())
    }

    fn is_there(&self) {
        if let Some(outage) = self.outage().take() {
            let seconds = outage.since.elapsed().as_secs_f32();
            tracing::info!("the database `{}` is there again, after {seconds:.1} s", self.name);
        }
    }
}

/// A connection to the database that a link leads to.
pub(in crate::store) struct Postgres {
    link: Arc<Link>,
    /// Is there until it is dropped.
    runtime: Option<Runtime>,
    client: RefCell<Option<Arc<Client>>>,
    /// What was asked, in its order, and not waited for yet; and how many bytes it has.
    sent: RefCell<Vec<Sent>>,
    sent_bytes: Cell<usize>,
    /// Numbers of rows to come in this transaction, by table: they are fetched several at once. None is kept for the next:
    /// others may give numbers in between, and a server that has crashed, or another in its place, gives some anew.
    ids: RefCell<HashMap<Box<str>, VecDeque<i64>>>,
    translated: RefCell<HashMap<Box<str>, Translated>>,
    transaction: Cell<Transaction>,
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

type Answer<T> = std::result::Result<T, tokio_postgres::Error>;

/// What may be sent more than once.
enum Request {
    Words(String),
    Statement(Translated, Vec<Given<'static>>),
}

/// A request on its way.
struct Sent {
    request: Arc<Request>,
    answer: BoxFuture<'static, Answer<()>>,
}

impl Sent {
    /// Hands a request to a connection, which sends it with the next that is waited for.
    fn new(request: Arc<Request>, client: &Arc<Client>) -> Sent {
        let (asked, client) = (Arc::clone(&request), Arc::clone(client));
        let mut answer = async move {
            match &*asked {
                Request::Words(words) => client.batch_execute(words).await,
                Request::Statement(sql, given) => client.execute_typed(sql.sql(), &typed(given)).await.map(drop),
            }
        }
        .boxed();
        // It is handed over by being looked at. What it comes to by that already, a lost connection, it comes to again.
        let answer = match answer.as_mut().now_or_never() {
            Some(answered) => std::future::ready(answered).boxed(),
            None => answer,
        };
        Sent { request, answer }
    }

    /// One whose connection was lost.
    fn in_vain(request: Arc<Request>) -> Sent {
        Sent { request, answer: std::future::pending().boxed() }
    }
}

/// Whether what was asked may be asked once more of a new connection, where the old one turns out to be lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Yes,
    No,
}

impl Postgres {
    /// Connects. Not for threads of an async runtime.
    ///
    /// # Errors
    /// The database cannot be reached, or does not let us in.
    pub(in crate::store) fn connect(link: &Arc<Link>) -> Result<Postgres> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Away(error.to_string()))?;
        let postgres = Postgres {
            link: Arc::clone(link),
            runtime: Some(runtime),
            client: RefCell::default(),
            sent: RefCell::default(),
            sent_bytes: Cell::new(0),
            ids: RefCell::default(),
            translated: RefCell::default(),
            transaction: Cell::new(Transaction::None),
            changes: Cell::new(0),
        };
        let client = postgres.client()?;
        *postgres.client.borrow_mut() = Some(client);
        Ok(postgres)
    }

    pub(in crate::store) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    fn runtime(&self) -> Result<&Runtime> {
        self.runtime.as_ref().ok_or_else(|| Error::Away("it was closed".into()))
    }

    fn client(&self) -> Result<Arc<Client>> {
        let (link, runtime) = (&*self.link, self.runtime()?);
        link.is_worth_trying()?;
        let connecting = async {
            // What was asked is answered while somebody waits for it.
            Ok::<Client, tokio_postgres::Error>(match &link.tls {
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
            })
        };
        match runtime.block_on(async { timeout(CONNECTED_WITHIN, connecting).await }) {
            Ok(Ok(client)) => {
                link.is_there();
                Ok(Arc::new(client))
            }
            // It is there, and says no.
            Ok(Err(error)) if error.as_db_error().is_some_and(|error| !is_passing(error)) => {
                Err(Error::Postgres(error))
            }
            Ok(Err(error)) => Err(link.is_away(&words(&error))),
            Err(_) => Err(link.is_away(&format!("it does not answer within {} s", CONNECTED_WITHIN.as_secs()))),
        }
    }

    /// Asks something after what was sent before, and waits for the answers to all of it.
    fn ask<T>(&self, again: Again, work: impl AsyncFn(&Client) -> Answer<T>) -> Result<T> {
        let mut again = match self.transaction.get() {
            Transaction::None => again == Again::Yes,
            Transaction::Begun => true,
            Transaction::Open | Transaction::Failed => false,
        };
        loop {
            let client = self.connected()?;
            let sent = self.unsent();
            let requests: Vec<Arc<Request>> = sent.iter().map(|sent| Arc::clone(&sent.request)).collect();
            let before = async {
                for (place, sent) in sent.into_iter().enumerate() {
                    sent.answer.await.map_err(|error| (place, error))?;
                }
                Ok(())
            };
            let all = async { timeout(ANSWERED_WITHIN, join(before, work(&client))).await };
            let why = match self.runtime()?.block_on(all) {
                Ok((Err((place, error)), _)) if !is_end(&error) => {
                    self.failed(place);
                    return Err(Error::Postgres(error));
                }
                Ok((Ok(()), Err(error))) if !is_end(&error) => {
                    self.failed(requests.len());
                    return Err(Error::Postgres(error));
                }
                Ok((Ok(()), Ok(answer))) => {
                    if self.transaction.get() == Transaction::Begun {
                        self.transaction.set(Transaction::Open);
                    }
                    return Ok(answer);
                }
                Ok((Err((_, error)), _) | (Ok(()), Err(error))) => words(&error),
                Err(_) => format!("it does not answer within {} s", ANSWERED_WITHIN.as_secs()),
            };
            self.client.take();
            if !std::mem::take(&mut again) {
                return Err(self.lost(&why));
            }
            // Nothing of it is committed, and nobody has seen anything of it.
            *self.sent.borrow_mut() = requests.into_iter().map(Sent::in_vain).collect();
        }
    }

    /// Sends something that nobody waits for.
    fn send(&self, request: Request) -> Result<()> {
        let client = self.connected()?;
        self.sent.borrow_mut().push(Sent::new(Arc::new(request), &client));
        Ok(())
    }

    /// Takes what was sent and not waited for.
    fn unsent(&self) -> Vec<Sent> {
        self.sent_bytes.set(0);
        self.sent.take()
    }

    /// The connection, made anew where nothing is lost by that.
    fn connected(&self) -> Result<Arc<Client>> {
        let mut place = self.client.borrow_mut();
        if let Some(client) = &*place
            && !client.is_closed()
        {
            return Ok(Arc::clone(client));
        }
        if matches!(self.transaction.get(), Transaction::Open | Transaction::Failed) {
            *place = None;
            return Err(self.lost("the connection was lost"));
        }
        let client = self.client().inspect_err(|_| self.forget())?;
        *place = Some(Arc::clone(&client));
        for sent in &mut *self.sent.borrow_mut() {
            *sent = Sent::new(Arc::clone(&sent.request), &client);
        }
        Ok(client)
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
    fn failed(&self, place: usize) {
        match self.transaction.get() {
            Transaction::None => return,
            // It has not even begun.
            Transaction::Begun if place == 0 => {
                self.transaction.set(Transaction::Failed);
                // Where this fails, too, the next transaction meets what is left of it, and undoes that.
                let _ = self.end("ROLLBACK");
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
        let given = given(params)?;
        let given = typed(&given);
        let changed = self.ask(Again::No, async |client| client.execute_typed(sql.sql(), &given).await)?;
        self.changes.set(self.changes.get() + changed);
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// The same where nobody asks how many rows it has changed.
    pub(super) fn run(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<()> {
        if self.transaction.get() == Transaction::None {
            return self.execute(sql, params).map(drop);
        }
        let given: Result<Vec<_>> = params.iter().map(|value| Given::of(*value)?.owned()).collect();
        let given = given?;
        self.changed();
        self.sent_bytes.set(self.sent_bytes.get() + given.iter().map(Given::bytes).sum::<usize>());
        self.send(Request::Statement(sql.clone(), given))?;
        // A turn has less.
        if self.sent_bytes.get() > MOST_BYTES || self.sent.borrow().len() > MOST_SENT {
            self.settle()?;
        }
        Ok(())
    }

    /// Waits for what nobody has waited for.
    pub(super) fn settle(&self) -> Result<()> {
        if self.transaction.get() == Transaction::Failed {
            return Err(Error::Undone(None));
        }
        if self.sent.borrow().is_empty() {
            return Ok(());
        }
        self.ask(Again::No, async |_| Ok(()))
    }

    pub(super) fn query(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<Vec<Row>> {
        let given = given(params)?;
        let given = typed(&given);
        let rows = self.ask(Again::Yes, async |client| client.query_typed(sql.sql(), &given).await)?;
        // One that changes something says what it has changed.
        if sql.is_returning() {
            self.changes.set(self.changes.get() + rows.len() as u64);
        }
        Ok(rows)
    }

    pub(super) fn insert(&self, sql: &Translated, params: &[&dyn ToSql]) -> Result<i64> {
        let Some((table, with_id)) = sql.with_id(params.len()) else { return Err(Error::NoRow) };
        let id = self.next_id(table)?;
        self.run(&with_id, &[params, &[&id]].concat())?;
        Ok(id)
    }

    fn next_id(&self, table: &str) -> Result<i64> {
        let kept = self.ids.borrow_mut().get_mut(table).and_then(VecDeque::pop_front);
        if let Some(id) = kept {
            return Ok(id);
        }
        let fetch = format!("SELECT nextval('{table}_id_seq') FROM generate_series(1, {IDS_AT_ONCE})");
        let rows = self.query(&Translated::of(&fetch), &[])?;
        let fetched: Result<VecDeque<i64>> = rows.iter().map(|row| row.try_get(0).map_err(Error::Postgres)).collect();
        let mut fetched = fetched?;
        let next = fetched.pop_front().ok_or(Error::NoRow)?;
        self.ids.borrow_mut().insert(table.into(), fetched);
        Ok(next)
    }

    pub(super) fn execute_batch(&self, sql: &str) -> Result<()> {
        self.ask(Again::No, async |client| client.batch_execute(sql).await)
    }

    pub(super) fn follow_ids(&self, table: &str) -> Result<()> {
        let column = if table == "press" { "number" } else { "id" };
        let highest = format!("(SELECT max({column}) FROM {table})");
        let next = format!("(SELECT last_value FROM {table}_{column}_seq)");
        self.execute_batch(&format!("SELECT setval('{table}_{column}_seq', greatest({highest}, {next}))"))
    }

    /// Nobody else writes from here on, and this host may.
    pub(super) fn begin(&self) -> Result<()> {
        let enter = match self.link.host() {
            0 => format!("SELECT {WRITES_ALONE}"),
            host => format!("SELECT {WRITES_ALONE}; SELECT pmk_host_writes({host})"),
        };
        self.open(format!("BEGIN; {BOUNDS}; {enter}"))
    }

    pub(super) fn begin_snapshot(&self) -> Result<()> {
        self.open("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".into())
    }

    fn open(&self, words: String) -> Result<()> {
        self.ids.take();
        self.send(Request::Words(words))?;
        self.transaction.set(Transaction::Begun);
        Ok(())
    }

    pub(super) fn commit(&self) -> Result<()> {
        // Until something is answered, what was sent may have to be sent to another connection: without an end, of which
        // nobody could tell then whether it was done.
        let settled = match self.transaction.get() {
            Transaction::Begun => self.settle(),
            _ => Ok(()),
        };
        let ended = match (self.transaction.get(), settled) {
            (Transaction::None, Err(error)) => return Err(error),
            // PostgreSQL takes a COMMIT of it for a ROLLBACK, without a word.
            (Transaction::Failed, settled) => {
                self.end("ROLLBACK")?;
                settled.and(Err(Error::Undone(None)))
            }
            _ => self.end("COMMIT"),
        };
        ended.map_err(|error| match error {
            Error::Postgres(error) => Error::Undone(Some(error)),
            error => error,
        })
    }

    pub(super) fn roll_back(&self) -> Result<()> {
        // What comes of it matters to nobody.
        self.unsent();
        self.end("ROLLBACK")
    }

    fn end(&self, how: &str) -> Result<()> {
        let ended = self.ask(Again::No, async |client| client.batch_execute(how).await);
        self.transaction.set(Transaction::None);
        ended
    }

    pub(super) fn savepoint(&self, word: &str) -> Result<()> {
        if word.starts_with("ROLLBACK TO") {
            // It undoes them, whatever comes of them.
            self.unsent();
        }
        self.ask(Again::No, async |client| client.batch_execute(word).await)?;
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
        self.client.borrow_mut().take();
        if let Some(runtime) = self.runtime.take() {
            // Whoever drops it may be a thread of another runtime.
            runtime.shutdown_background();
        }
    }
}

fn given<'a>(params: &[&'a dyn ToSql]) -> Result<Vec<Given<'a>>> {
    params.iter().map(|value| Given::of(*value)).collect()
}

fn typed<'a>(given: &'a [Given<'_>]) -> Vec<(&'a (dyn tokio_postgres::types::ToSql + Sync), Type)> {
    given.iter().map(|value| (value as &(dyn tokio_postgres::types::ToSql + Sync), value.type_())).collect()
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
    single_spaced(&said)
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
