//! Finds a password that neither the address nor gateway.json contains: in the environment, or in PostgreSQL's own
//! password file.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use pmk_system::{error::Failure, files};
use secrecy::SecretString;
use tokio_postgres::{Config, config::Host};

/// # Errors
/// The password file can be read by others, or cannot be read although it was named explicitly.
pub(super) fn of(config: &Config) -> Result<Option<SecretString>, Failure> {
    if let Some(password) = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty()) {
        return Ok(Some(password.into()));
    }
    let (path, is_named) = match std::env::var_os("PGPASSFILE").filter(|path| !path.is_empty()) {
        Some(path) => (PathBuf::from(path), true),
        None => match std::env::var_os("HOME") {
            Some(home) => (PathBuf::from(home).join(".pgpass"), false),
            None => return Ok(None),
        },
    };
    let found = match fs::metadata(&path) {
        Ok(found) => found,
        Err(_) if !is_named => return Ok(None),
        Err(error) => {
            return Err(Failure::new(format!("cannot read PGPASSFILE, `{}`: {error}", path.display()))
                .hint("check that it exists and that this account can read it"));
        }
    };
    if found.permissions().mode() & 0o077 != 0 {
        return Err(Failure::new(format!("`{}` can be read by others, so it is not used", path.display()))
            .hint(format!("chmod 600 {}", path.display())));
    }
    let text =
        files::read_text(&path).map_err(|error| Failure::new(format!("cannot read `{}`: {error}", path.display())))?;
    Ok(text.lines().find_map(|line| password(line, config)).map(SecretString::from))
}

/// Returns the password of a line for this database: `HOST:PORT:DATABASE:USER:PASSWORD`.
fn password(line: &str, config: &Config) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let fields = fields(line);
    let [host, port, database, user, password] = &fields[..] else { return None };
    let is = |wanted: &str, is: &str| wanted == "*" || wanted == is;
    let own_user = config.get_user().unwrap_or_default();
    let place = config.get_hosts().iter().enumerate().any(|(place, own)| {
        let own_port = config.get_ports().get(place).or(config.get_ports().first()).copied().unwrap_or(5432);
        let is_host = match own {
            Host::Tcp(name) => is(host, name),
            Host::Unix(folder) => is(host, "localhost") || is(host, &folder.to_string_lossy()),
        };
        is_host && is(port, &own_port.to_string())
    });
    let is_ours = place && is(database, config.get_dbname().unwrap_or(own_user)) && is(user, own_user);
    is_ours.then(|| password.clone())
}

/// Splits a line at colons; a backslash escapes the next character.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut letters) = (vec![String::new()], line.chars());
    while let Some(letter) = letters.next() {
        match letter {
            ':' if fields.len() < 5 => fields.push(String::new()),
            letter => {
                let letter = if letter == '\\' { letters.next() } else { Some(letter) };
                if let Some(field) = fields.last_mut() {
                    field.extend(letter);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_about_a_database_has_its_password() {
        let config: Config = "postgres://pmk@db.example:6432/bot".parse().unwrap();
        let of = |line: &str| password(line, &config);
        assert_eq!(of("db.example:6432:bot:pmk:a\\:b\\\\c:d").as_deref(), Some("a:b\\c:d"));
        assert_eq!(of("*:*:*:pmk:x").as_deref(), Some("x"));
        for other in ["db.example:5432:bot:pmk:x", "*:*:*:other:x", "#*:*:*:*:x", "*:*:*:x", ""] {
            assert_eq!(of(other), None, "{other}");
        }
        let socket: Config = "postgres://pmk@/bot?host=/run/pg".parse().unwrap();
        assert_eq!(password("localhost:5432:bot:pmk:x", &socket).as_deref(), Some("x"));
    }
}
