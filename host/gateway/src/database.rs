//! The address of a PostgreSQL database: parsing and display.

mod passwords;

use std::{fmt, net::IpAddr, path::PathBuf, time::Duration};

use percent_encoding::percent_decode_str;
use pmk_system::{error::Failure, files};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::{roots, spelling::closest};

/// The prefix of an address as it is displayed.
pub const SCHEME: &str = "postgres://";

/// The options that an address may have after its `?`.
const OPTIONS: [&str; 7] =
    ["sslmode", "sslrootcert", "application_name", "connect_timeout", "host", "options", "target_session_attrs"];

/// How long a connection to one of several hosts is tried, where the address does not say it: the network may drop
/// what is sent to a machine that is gone, and the next host is not tried before.
const NEXT_HOST_AFTER: Duration = Duration::from_secs(2);

const SSL_MODES: [&str; 3] = ["disable", "require", "verify-full"];

/// The address of a PostgreSQL database.
#[derive(Clone)]
pub struct Database {
    config: Config,
    mode: Mode,
    /// Root certificates to trust instead of the system's.
    roots: Option<PathBuf>,
    name: String,
}

/// How the server's certificate is checked.
pub enum Checks {
    /// No TLS: an attacker in between can read everything.
    NoTls,
    /// Not at all: an eavesdropper learns nothing, but an attacker in between can impersonate the server.
    None,
    /// It must be signed by one of these roots and match the server's name.
    All(RootCertStore),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Disable,
    Require,
    VerifyFull,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Database {
    /// Whether a text is meant to be an address.
    pub fn is_meant(text: &str) -> bool {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
    }

    /// Parses an address. Some values that it omits are taken from the environment, as is usual.
    ///
    /// # Errors
    /// It is no valid address, or has an unknown option or value.
    pub fn parse(address: &str) -> Result<Database, Failure> {
        let (before, after) = address.split_once('?').unwrap_or((address, ""));
        let (mut mode, mut roots, mut kept) = (None, None, Vec::new());
        for option in after.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let decoded = percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslmode" => mode = Some(mode_of(&decoded)?),
                "sslrootcert" => roots = Some(PathBuf::from(decoded)),
                name if OPTIONS.contains(&name) => kept.push(option),
                name => return Err(unknown(name)),
            }
        }
        let bare = if kept.is_empty() { before.to_owned() } else { format!("{before}?{}", kept.join("&")) };
        let mut config: Config = bare.parse().map_err(|error: tokio_postgres::Error| {
            use std::error::Error as _;
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Failure::new(format!("the address of the store is not a PostgreSQL address: {why}")).hint(
                "it must be `postgres://USER@HOST:PORT/DATABASE`; percent-encode special characters, such as `%2F` for a slash",
            )
        })?;
        if config.get_hosts().is_empty() {
            return Err(Failure::new("the address of the store has no host")
                .hint("use `postgres://USER@HOST/DATABASE`; for a folder with a socket, add `?host=%2Fvar%2Frun%2Fpostgresql`"));
        }
        if config.get_application_name().is_none() {
            config.application_name("pmk-host");
        }
        if config.get_user().is_none() {
            config.user(std::env::var("USER").unwrap_or_else(|_| "postgres".into()));
        }
        if config.get_hosts().len() > 1 && config.get_connect_timeout().is_none() {
            config.connect_timeout(NEXT_HOST_AFTER);
        }
        let mode = match mode {
            _ if config.get_hosts().iter().all(is_socket) => Mode::Disable,
            Some(mode) => mode,
            None if config.get_hosts().iter().all(is_here) => Mode::Disable,
            None => Mode::VerifyFull,
        };
        config.ssl_mode(if mode == Mode::Disable { SslMode::Disable } else { SslMode::Require });
        let name = name_of(&config);
        Ok(Database { config, mode, roots, name })
    }

    /// Returns the address with this password, unless it has one.
    #[must_use]
    pub fn with_password(mut self, password: Option<&SecretString>) -> Database {
        if let (None, Some(password)) = (self.config.get_password(), password) {
            self.config.password(password.expose_secret());
        }
        self
    }

    /// Whether a password is known.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Whether a password is in one of the places where PostgreSQL's own tools look for it.
    ///
    /// # Errors
    /// As [`config`](Database::config).
    pub fn finds_password(&self) -> Result<bool, Failure> {
        Ok(passwords::of(&self.config)?.is_some())
    }

    /// Returns the address without the password.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the connection settings, with a password from the usual places if the address has none.
    ///
    /// # Errors
    /// The password file can be read by others, or cannot be read.
    pub fn config(&self) -> Result<Config, Failure> {
        let mut config = self.config.clone();
        if config.get_password().is_none()
            && let Some(password) = passwords::of(&config)?
        {
            config.password(password.expose_secret());
        }
        Ok(config)
    }

    /// Returns how the server's certificate is checked.
    ///
    /// # Errors
    /// The roots cannot be read.
    pub fn checks(&self) -> Result<Checks, Failure> {
        Ok(match self.mode {
            Mode::Disable => Checks::NoTls,
            Mode::Require => Checks::None,
            Mode::VerifyFull => Checks::All(self.trusted()?),
        })
    }

    fn trusted(&self) -> Result<RootCertStore, Failure> {
        let Some(path) = &self.roots else { return Ok(roots::roots().store) };
        let failed = |why: String| {
            Failure::new(format!("cannot read `sslrootcert` of the store, `{}`: {why}", path.display()))
                .hint("it must be a file of certificates, each between BEGIN CERTIFICATE and END CERTIFICATE")
        };
        let text = files::read_text(path).map_err(|error| failed(error.to_string()))?;
        let mut store = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            let certificate = certificate.map_err(|error| failed(error.to_string()))?;
            store.add(certificate).map_err(|error| failed(error.to_string()))?;
        }
        if store.is_empty() { Err(failed("it contains no certificates".into())) } else { Ok(store) }
    }
}

fn mode_of(word: &str) -> Result<Mode, Failure> {
    match word {
        "disable" => Ok(Mode::Disable),
        "require" => Ok(Mode::Require),
        "verify-full" => Ok(Mode::VerifyFull),
        "prefer" | "allow" => Err(Failure::new(format!(
            "`sslmode={word}` protects nothing: an attacker in between can turn encryption off"
        ))
        .hint("use `verify-full`, or `disable` if nobody can be in between")),
        _ => Err(Failure::new(format!("invalid `sslmode` of the store: `{word}`"))
            .hint(format!("use one of {}", words(&SSL_MODES)))),
    }
}

fn unknown(name: &str) -> Failure {
    let hint = match closest(name, OPTIONS) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("use one of {}", words(&OPTIONS)),
    };
    Failure::new(format!("unknown option `{name}` in the address of the store")).hint(hint)
}

fn words(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn is_socket(host: &Host) -> bool {
    matches!(host, Host::Unix(_))
}

/// Whether the connection stays on this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
    }
}

fn name_of(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(place, host)| {
            let host = match host {
                Host::Tcp(name) => name.clone(),
                // As it must be written in an address.
                Host::Unix(folder) => folder.display().to_string().replace('%', "%25").replace('/', "%2F"),
            };
            match ports.get(place).or(ports.first()) {
                Some(port) if *port != 5432 => format!("{host}:{port}"),
                _ => host,
            }
        })
        .collect();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    format!("{SCHEME}{user}@{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str) -> String {
        let failure = Database::parse(address).unwrap_err();
        format!("{}; {}", failure.message(), failure.advice().unwrap_or_default())
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let database = Database::parse("postgres://pmk:s3cret@db.example/pmk").unwrap();
        assert_eq!(database.name(), "postgres://pmk@db.example/pmk");
        assert!(!format!("{database:?}").contains("s3cret") && database.has_password());
        let database = Database::parse("postgresql://pmk@a:6432,b/pmk").unwrap();
        assert_eq!(database.name(), "postgres://pmk@a:6432,b/pmk");
        let database = Database::parse("postgres://pmk@/pmk?host=%2Frun%2Fpg").unwrap();
        assert_eq!(database.name(), "postgres://pmk@%2Frun%2Fpg/pmk");
        let database = Database::parse("postgres://pmk@%2Frun%2Fpg:5433/pmk").unwrap();
        assert_eq!(database.name(), "postgres://pmk@%2Frun%2Fpg:5433/pmk", "as it may be given again");
    }

    /// Regression: the first host could use up the time for all.
    #[test]
    fn connecting_to_the_first_of_several_hosts_left_no_time_for_the_next() {
        let patience = |address| Database::parse(address).unwrap().config.get_connect_timeout().copied();
        assert_eq!(patience("postgres://pmk@a,b/pmk"), Some(NEXT_HOST_AFTER));
        assert_eq!(patience("postgres://pmk@a,b/pmk?connect_timeout=7"), Some(Duration::from_secs(7)));
        assert_eq!(patience("postgres://pmk@a/pmk"), None);
    }

    #[test]
    fn what_is_meant_for_an_address_is_known_before_it_is_understood() {
        for (text, is_meant) in [
            ("postgres://u@h/d?x=1", true),
            ("postgresql://h", true),
            ("postgres://", false),
            ("postgres://a b", false),
            ("sqlite", false),
        ] {
            assert_eq!(Database::is_meant(text), is_meant, "{text}");
        }
    }

    #[test]
    fn certificates_are_checked_unless_somebody_says_otherwise_or_the_database_is_here() {
        let mode = |address: &str| Database::parse(address).unwrap().mode;
        assert_eq!(mode("postgres://u@db.example/d"), Mode::VerifyFull);
        assert_eq!(mode("postgres://u@db.example/d?sslmode=require"), Mode::Require);
        assert_eq!(mode("postgres://u@db.example/d?sslmode=disable"), Mode::Disable);
        assert_eq!(mode("postgres://u@127.0.0.1/d"), Mode::Disable);
        assert_eq!(mode("postgres://u@localhost/d?sslmode=verify-full"), Mode::VerifyFull);
        assert_eq!(mode("postgres://u@localhost,db.example/d"), Mode::VerifyFull);
        assert_eq!(mode("postgres://u@/d?host=/run/pg&sslmode=verify-full"), Mode::Disable);
    }

    #[test]
    fn what_is_not_understood_of_an_address_is_refused_with_a_hint() {
        assert!(refused("postgres://u@h/d?sslmod=require").contains("did you mean `sslmode`?"));
        assert!(refused("postgres://u@h/d?sslmode=prefer").contains("protects nothing"));
        assert!(refused("postgres://u@h/d?sslmode=verify-ca").contains("`verify-full`"));
        assert!(refused("postgres://u@h/d?pool=7").contains("use one of `sslmode`"));
        assert!(refused("postgres://u@/d").contains("has no host"));
        assert!(refused("postgres://u@h:port/d").contains("not a PostgreSQL address"));
    }
}
