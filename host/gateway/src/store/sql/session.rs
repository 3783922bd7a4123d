//! A session at the server: how requests are sent, and which prepared statements it has.
//!
//! A statement that is sent for the second time is also prepared, in addition to being sent unnamed, and nobody
//! waits for that. From then on it is sent by its name, and the server neither parses nor plans it anew. Names
//! require a session of our own. Where a pooler shares sessions, a name might be unknown or belong to somebody
//! else's statement; there statements stay unnamed.

use std::{
    cell::RefCell,
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use futures_util::{
    FutureExt, TryStreamExt,
    future::{BoxFuture, join},
};
use tokio_postgres::{
    Client, Row, RowStream, Statement,
    error::SqlState,
    types::{ToSql, Type},
};

use super::{pooler, translate::Translated, values::Given};

/// How many prepared statements there are at most. The program has fewer statements; some are prepared for several
/// parameter types.
const MOST_NAMES: usize = 512;
/// How many prepared forms one statement has at most.
const MOST_NAMES_OF_ONE: usize = 4;

pub(super) type Answer<T> = Result<T, tokio_postgres::Error>;

/// A request; it may be sent more than once.
#[derive(PartialEq)]
pub(super) enum Request {
    Words(String),
    Statement(Translated, Vec<Given<'static>>),
}

impl Request {
    /// Returns its approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Request::Words(words) => words.len(),
            Request::Statement(_, given) => given.iter().map(Given::bytes).sum(),
        }
    }
}

/// The result of a request.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) rows: Vec<Row>,
    pub(super) changed: u64,
}

/// A request, and its result once that has arrived.
pub(in crate::store) struct Asked {
    request: Request,
    outcome: Mutex<Option<Outcome>>,
}

impl Asked {
    pub(super) fn new(request: Request) -> Arc<Asked> {
        Arc::new(Asked { request, outcome: Mutex::default() })
    }

    pub(super) fn bytes(&self) -> usize {
        self.request.bytes()
    }

    /// Whether it is the same request.
    pub(super) fn is(&self, request: &Request) -> bool {
        self.request == *request
    }

    /// Takes its result; `None` where that has not arrived yet.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns how many rows it has changed, once that is known.
    pub(in crate::store) fn changed(&self) -> usize {
        self.outcome().map_or(0, |outcome| usize::try_from(outcome.changed).unwrap_or(usize::MAX))
    }

    fn answered(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }
}

/// A request that was sent.
pub(super) struct Sent {
    pub(super) asked: Arc<Asked>,
    pub(super) answer: BoxFuture<'static, Answer<()>>,
}

impl Sent {
    /// A request whose connection was lost.
    pub(super) fn in_vain(asked: Arc<Asked>) -> Sent {
        Sent { asked, answer: std::future::pending().boxed() }
    }
}

/// A session.
pub(super) struct Session {
    client: Arc<Client>,
    /// The prepared statements; `None` where statements stay unnamed.
    names: Option<RefCell<Names>>,
}

#[derive(Default)]
struct Names {
    /// Statements sent before, and the forms in which they are prepared.
    by_sql: HashMap<Translated, Vec<Form>>,
    count: usize,
}

/// A statement prepared for certain parameter types.
struct Form {
    /// NULL fits any type.
    types: Vec<Type>,
    /// Set once the server has confirmed it.
    prepared: Arc<OnceLock<Statement>>,
}

/// How a statement is sent.
enum Way {
    Unnamed,
    /// Unnamed, and prepared at the same time.
    Prepared(Vec<Type>, Arc<OnceLock<Statement>>),
    Named(Statement),
}

impl Session {
    /// Creates a session. Statements may be named unless the session is shared or `may_name` is false.
    ///
    /// # Errors
    /// The server does not say whether the session is shared.
    pub(super) async fn new(client: Client, may_name: bool) -> Answer<Session> {
        let names = may_name && pooler::is_own(&client).await?;
        Ok(Session { client: Arc::new(client), names: names.then(RefCell::default) })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) fn has_names(&self) -> bool {
        self.names.is_some()
    }

    /// Queues a request; it is sent with the next one that is waited for.
    pub(super) fn send(&self, asked: Arc<Asked>, may_name: bool) -> Sent {
        let way = match &asked.request {
            Request::Statement(sql, given) if may_name => self.way(sql, given),
            Request::Statement(..) | Request::Words(_) => Way::Unnamed,
        };
        let (client, of) = (Arc::clone(&self.client), Arc::clone(&asked));
        let mut answer = async move {
            let outcome = match &of.request {
                Request::Words(words) => client.batch_execute(words).await.map(|()| Outcome::default())?,
                Request::Statement(sql, given) => outcome(&client, way, sql, given).await?,
            };
            of.answered(outcome);
            Ok(())
        }
        .boxed();
        // The first poll queues it. A result of that poll, such as a lost connection, is kept as the answer.
        let answer = match answer.as_mut().now_or_never() {
            Some(answered) => std::future::ready(answered).boxed(),
            None => answer,
        };
        Sent { asked, answer }
    }

    fn way(&self, sql: &Translated, given: &[Given<'_>]) -> Way {
        let Some(names) = &self.names else { return Way::Unnamed };
        let Names { by_sql, count } = &mut *names.borrow_mut();
        let Some(forms) = by_sql.get_mut(sql) else {
            by_sql.insert(sql.clone(), vec![]);
            return Way::Unnamed;
        };
        // A form whose answer was never waited for is useless.
        let known = forms.len();
        forms.retain(|form| form.prepared.get().is_some() || Arc::strong_count(&form.prepared) > 1);
        *count -= known - forms.len();
        let mut is_coming = false;
        for form in &*forms {
            match form.prepared.get() {
                Some(statement) if fits(statement.params(), given) => return Way::Named(statement.clone()),
                Some(_) => {}
                None => is_coming |= fits(&form.types, given),
            }
        }
        if is_coming || forms.len() == MOST_NAMES_OF_ONE || *count == MOST_NAMES {
            return Way::Unnamed;
        }
        let (types, prepared): (Vec<Type>, _) = (given.iter().map(Given::type_).collect(), Arc::default());
        forms.push(Form { types: types.clone(), prepared: Arc::clone(&prepared) });
        *count += 1;
        Way::Prepared(types, prepared)
    }
}

/// Whether values have these types. NULL fits any type.
fn fits(types: &[Type], given: &[Given<'_>]) -> bool {
    let is_of =
        |(type_, given): (&Type, &Given<'_>)| matches!(given.type_(), of if of == Type::UNKNOWN || of == *type_);
    types.len() == given.len() && types.iter().zip(given).all(is_of)
}

async fn outcome(client: &Client, way: Way, sql: &Translated, given: &[Given<'_>]) -> Answer<Outcome> {
    let unnamed = async {
        let typed: Vec<(&(dyn ToSql + Sync), Type)> =
            given.iter().map(|value| (value as &(dyn ToSql + Sync), value.type_())).collect();
        all(client.query_typed_raw(sql.sql(), typed).await?).await
    };
    match way {
        Way::Unnamed => unnamed.await,
        Way::Prepared(types, prepared) => {
            let (statement, outcome) = join(client.prepare_typed(sql.sql(), &types), unnamed).await;
            let statement = statement?;
            // Nobody else sets it.
            let _ = prepared.set(statement);
            outcome
        }
        Way::Named(statement) => {
            let values = given.iter().map(|value| value as &(dyn ToSql + Sync));
            all(client.query_raw(&statement, values).await?).await
        }
    }
}

async fn all(stream: RowStream) -> Answer<Outcome> {
    let mut stream = pin!(stream);
    let mut rows = Vec::new();
    while let Some(row) = stream.try_next().await? {
        rows.push(row);
    }
    Ok(Outcome { rows, changed: stream.rows_affected().unwrap_or(0) })
}

/// Why a statement name does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misnamed {
    /// The session does not know it, or uses it for another statement: the session is not our own.
    Unknown,
    /// The statement's result columns have changed since.
    Outdated,
}

impl Misnamed {
    pub(super) fn of(error: &tokio_postgres::Error) -> Option<Misnamed> {
        let said = error.as_db_error()?;
        match said.code() {
            &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT => Some(Misnamed::Unknown),
            &SqlState::FEATURE_NOT_SUPPORTED if said.routine() == Some("RevalidateCachedQuery") => {
                Some(Misnamed::Outdated)
            }
            _ => None,
        }
    }
}
