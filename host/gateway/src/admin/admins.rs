//! Who the admins are.

use std::path::Path;

use super::{error::ChangeError, id::Id};
use crate::config::{self, Json};

const KEY: &[&str] = &["admins"];

/// Makes a person an admin.
///
/// # Errors
/// There can be no such person, they are one, or gateway.json cannot be changed.
pub fn add_admin(home: &Path, user: &str) -> Result<(), ChangeError> {
    let user = Id::user(user)?;
    config::edit(home, |root| {
        let admins = root.list_at(KEY)?;
        if admins.iter().any(|admin| is(admin, user)) {
            return Err(ChangeError::IsAdmin(user.to_owned()));
        }
        admins.push(user.into());
        Ok(())
    })
}

/// Makes a person an admin no longer. The last one stays one, whoever wants it: nobody in Slack could make another.
///
/// # Errors
/// They are none, or the last one, or gateway.json cannot be changed.
pub fn remove_admin(home: &Path, user: &str) -> Result<(), ChangeError> {
    config::edit(home, |root| {
        let admins = root.list_at(KEY)?;
        if !admins.iter().any(|admin| is(admin, user)) {
            return Err(ChangeError::NotAdmin(user.to_owned()));
        }
        if !admins.iter().any(|admin| !is(admin, user) && is_somebody(admin)) {
            return Err(ChangeError::LastAdmin);
        }
        admins.retain(|admin| !is(admin, user));
        Ok(())
    })
}

/// Blanks around an id do not count, as they do not when somebody asks for something.
fn is(admin: &Json, user: &str) -> bool {
    admin.as_str().is_some_and(|admin| admin.trim() == user)
}

fn is_somebody(admin: &Json) -> bool {
    admin.as_str().is_some_and(|admin| !admin.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::home;

    #[test]
    fn the_last_admin_stays_whatever_else_is_in_the_list() {
        let home = tempfile::tempdir().expect("a home");
        let write = |text: &str| fs::write(home::config_file(home.path()), text).expect("gateway.json");
        let remove = |user| remove_admin(home.path(), user).map_err(|error| error.to_string());
        for admins in [r#"["U1"]"#, r#"["U1", " U1 "]"#, r#"["U1", "", "  "]"#] {
            write(&format!(r#"{{"version":1,"admins":{admins}}}"#));
            assert_eq!(remove("U1"), Err("cannot remove last admin".into()), "{admins}");
        }
        write(r#"{"version":1,"admins":[" U1 ","U2"]}"#);
        assert_eq!(remove("U1"), Ok(()));
        assert_eq!(remove("U2"), Err("cannot remove last admin".into()));
        assert_eq!(remove("U3"), Err("`U3` is no admin".into()));
    }

    #[test]
    fn the_first_admin_is_made_where_there_is_no_file() {
        let home = tempfile::tempdir().expect("a home");
        add_admin(home.path(), "U1").expect("the first");
        assert!(matches!(add_admin(home.path(), "U1"), Err(ChangeError::IsAdmin(_))));
        assert!(matches!(add_admin(home.path(), "C1"), Err(ChangeError::Id(_))));
        let text = fs::read_to_string(home::config_file(home.path())).expect("gateway.json");
        assert!(text.contains("\"admins\": [\n    \"U1\"\n  ]"), "{text}");
    }
}
