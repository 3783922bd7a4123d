//! What every subcommand works with.

use std::{
    borrow::Cow,
    path::PathBuf,
    pin::{Pin, pin},
    sync::mpsc,
    thread,
    time::Duration,
};

use pmk_core::Language;
use pmk_system::{
    child::supervisor,
    error::Failure,
    home::{self, HomeError},
};
use serde_json::json;

use super::{
    arguments::variable,
    output::{note, note_json},
    service, table,
    text::printable,
};
use crate::{
    config::{self, Config, Origin, Secret},
    database::Database,
    messages::terminal,
    store::Place,
};

/// What every subcommand receives.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) home: PathBuf,
    /// Where the choice of the home comes from.
    pub(super) home_by: Origin,
    /// The store named on the command line.
    pub(super) store: Option<String>,
    pub(super) json: bool,
    /// The language of the terminal; the log and JSON are English.
    pub(super) language: Language,
}

/// Names the store if the command line does not.
const STORE_VARIABLE: &str = "PMK_STORE";

impl Context {
    /// Reads gateway.json, and prints the warnings about it.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        let (config, warnings) = Config::load_for_command(&self.home)?;
        for warning in warnings {
            self.warn(&warning);
        }
        Ok(config)
    }

    /// Returns the location of the store, from the command line, or else the environment, or else gateway.json.
    pub(super) fn place(&self) -> Result<Place, Failure> {
        let in_home = Place::from(&self.home);
        let named = self.named_store();
        if named.as_deref() == Some(config::SQLITE) {
            return Ok(in_home);
        }
        if named.is_none() {
            // The default may be a store that the gateway no longer uses.
            config::check_kept(&self.home)?;
        }
        let kept = config::store(&self.home)?;
        Ok(match named.or(kept.address).as_deref() {
            None | Some(config::SQLITE) => in_home,
            Some(address) => Place { database: Some(self.database(address, kept.password.as_ref())?), ..in_home },
        })
    }

    /// As [`place`](Context::place), within a time limit: a command may supply the password. If it takes longer, it
    /// ends with this program.
    pub(super) fn place_within(&self, limit: Duration) -> Result<Place, Failure> {
        supervisor::enable();
        let (sender, resolved) = mpsc::channel();
        let context = self.clone();
        // After the limit, nobody receives it.
        thread::spawn(move || drop(sender.send(context.place())));
        resolved.recv_timeout(limit).unwrap_or_else(|_| {
            let seconds = limit.as_secs();
            Err(Failure::new(format!("`storePassword` in gateway.json was not available within {seconds} s"))
                .hint("a command that prints it takes too long: run it by hand"))
        })
    }

    /// Returns the value of a variable that takes precedence over gateway.json; the command line is before that of the
    /// store.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        if name == STORE_VARIABLE { self.named_store() } else { variable(name) }
    }

    /// Returns the store that is named by the command line or the environment.
    fn named_store(&self) -> Option<String> {
        self.store.clone().or_else(|| variable(STORE_VARIABLE))
    }

    /// Returns the credential that holds the password of the store, if a service manager passes it to the gateway and
    /// not to this process.
    pub(super) fn awaited_password(&self) -> Option<String> {
        let kept = config::store(&self.home).ok()?;
        let named = self.named_store().or(kept.address)?;
        let lacks = |named: Database| !named.has_password() && !named.finds_password().is_ok_and(|finds| finds);
        let needs_one = named != config::SQLITE && Database::parse(&named).is_ok_and(lacks);
        let password = kept.password.filter(|_| needs_one)?;
        password.awaited_credential().map(str::to_owned)
    }

    /// Returns the location of a store named in an argument: another home, the file in this one, or a database.
    pub(super) fn place_at(&self, named: &str) -> Result<Place, Failure> {
        if named == config::SQLITE {
            return Ok(Place::from(&self.home));
        }
        if !Database::is_meant(named) {
            return Ok(Place::from(&std::path::absolute(named).map_err(Failure::new)?));
        }
        let kept = config::store(&self.home)?;
        Ok(Place { home: self.home.clone(), database: Some(self.database(named, kept.password.as_ref())?) })
    }

    /// Returns the database at an address, with the password of gateway.json if the address has none. A credential is
    /// passed to the service alone: then the password is taken from where PostgreSQL's own tools find it.
    fn database(&self, address: &str, password: Option<&Secret>) -> Result<Database, Failure> {
        let database = parsed(address)?;
        let password = match password.filter(|_| !database.has_password()) {
            Some(password) => match (password.resolve(), password.awaited_credential()) {
                (Err(_), Some(_)) if database.finds_password()? => None,
                (Err(failure), Some(credential)) => return Err(failure.hint(self.as_the_service(credential))),
                (resolved, _) => Some(resolved?),
            },
            None => None,
        };
        Ok(database.with_password(password.as_ref()))
    }

    /// Says how to run this very command with a credential of the service.
    fn as_the_service(&self, credential: &str) -> String {
        let said = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        // A password is not repeated.
        let mut words: Vec<String> =
            said.map(|word| if has_password(&word) { "STORE".to_owned() } else { word }).collect();
        if let (None, Some(store)) = (&self.store, variable(STORE_VARIABLE)) {
            words.splice(0..0, ["--store".to_owned(), if has_password(&store) { "STORE".to_owned() } else { store }]);
        }
        if self.home_by != Origin::CommandLine {
            // That account has another default home.
            words.splice(0..0, ["--home".to_owned(), self.home.display().to_string()]);
        }
        format!(
            "set PGPASSWORD, or run it with what the service has: `{}`",
            service::command(&self.home, [credential], &words)
        )
    }

    /// Says how to stop the gateway that is in the way, if it is one.
    pub(super) fn in_use(&self, error: HomeError) -> Failure {
        let is_of_a_gateway = error.is_of_a_gateway();
        let failure = Failure::from(error);
        let stop = || format!("stop it first: `{}`", home::command(&self.home, "stop"));
        if is_of_a_gateway { failure.hint(stop()) } else { failure }
    }

    /// Prints a notice, which is neither data nor an error, with its hint.
    pub(super) fn notice(&self, text: &str, hint: Option<&str>) {
        match hint {
            _ if self.json => note_json(&json!({"type": "notice", "message": text, "hint": hint})),
            hint => note(terminal::notice(text, hint, self.language)),
        }
    }

    /// Translates text for the user, as far as it is known.
    pub(super) fn translated<'a>(&self, text: &'a str) -> Cow<'a, str> {
        terminal::translated(text, self.language)
    }

    /// Formats rows in columns, below a heading in the user's language.
    pub(super) fn columns(&self, rows: &[Vec<String>]) -> String {
        table::columns(rows, self.language)
    }

    /// Says what has been done.
    pub(super) fn say(&self, text: &str) {
        note(self.translated(text));
    }

    /// Prints a warning; the command goes on.
    pub(super) fn warn(&self, text: &str) {
        if self.json {
            note_json(&json!({"type": "warning", "message": text}));
        } else {
            note(terminal::warning(&printable(text), None, self.language));
        }
    }

    /// Prints a warning about one of several items; the command goes on with the others.
    pub(super) fn warn_of(&self, what: &str, failure: &Failure) {
        if self.json {
            let mut document = failure.document();
            document["type"] = "warning".into();
            document["message"] = format!("{what}: {}", failure.message()).into();
            note_json(&document);
        } else {
            // Translated separately: together they might match another template.
            let [what, why] = [what, failure.message()].map(|text| self.translated(&printable(text)).into_owned());
            let what = format!("{what}{}{why}", self.language.pick(": ", "："));
            note(terminal::warning(&what, failure.advice(), self.language));
        }
    }
}

/// Whether this is the address of a database that contains its password.
pub(super) fn has_password(word: &str) -> bool {
    let address = match word.split_once('=') {
        Some((option, value)) if option.starts_with("--") => value,
        _ => word,
    };
    Database::parse(address).is_ok_and(|database| database.has_password())
}

/// Parses the address of a database.
pub(super) fn parsed(address: &str) -> Result<Database, Failure> {
    Database::parse(address).map_err(|failure| {
        if Database::is_meant(address) {
            return failure;
        }
        // The text before an @ may contain a password.
        let shown = if address.contains('@') { "…@…" } else { address };
        Failure::new(format!("the store is `{shown}`, not `sqlite` or `postgres://USER@HOST/DATABASE`"))
            .hint("set it with `--store`, PMK_STORE or `store` in gateway.json")
    })
}

/// Runs a future that waits for the store.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    // What runs a future is large, and compiled once for each type of future.
    let work: Pin<&mut dyn Future<Output = Result<T, Failure>>> = pin!(work);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    runtime.block_on(work)
}
