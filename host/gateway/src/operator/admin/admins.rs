//! Adds and removes admins.

use std::path::Path;

use super::{
    error::ChangeError,
    listed::{is, is_blocked, texts},
};
use crate::{access::people::People, config, slack_id::Id};

const KEY: &[&str] = &["admins"];

/// Makes a person an admin.
///
/// # Errors
/// The id is invalid, the person is already an admin or is blocked, or gateway.json cannot be changed.
pub(super) fn add_admin(home: &Path, user: &str) -> Result<(), ChangeError> {
    let user = Id::user(user)?;
    config::edit(home, |root| {
        if is_blocked(root, user) {
            return Err(ChangeError::Blocked(user.to_owned()));
        }
        let admins = root.list_at(KEY)?;
        if admins.iter().any(|admin| is(admin, user)) {
            return Err(ChangeError::IsAdmin(user.to_owned()));
        }
        admins.push(user.into());
        Ok(())
    })
}

/// Removes an admin. The last one cannot be removed: nobody in Slack could add another.
///
/// # Errors
/// The person is not an admin, or is the last one, or gateway.json cannot be changed.
pub(super) fn remove_admin(home: &Path, user: &str) -> Result<(), ChangeError> {
    config::edit(home, |root| {
        let mut others = texts(root, "admins");
        others.retain(|admin| admin.trim() != user);
        let others = People { admins: others, blocklist: texts(root, "blocklist"), ..People::default() };
        let admins = root.list_at(KEY)?;
        if !admins.iter().any(|admin| is(admin, user)) {
            return Err(ChangeError::NotAdmin(user.to_owned()));
        }
        if !others.has_admin() {
            return Err(ChangeError::LastAdmin);
        }
        admins.retain(|admin| !is(admin, user));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use pmk_system::home;

    use crate::operator::admin::contacts::add_contact;

    #[test]
    fn the_last_admin_stays_whatever_else_is_in_the_list() {
        let home = tempfile::tempdir().expect("a home");
        let write = |text: &str| fs::write(home::config_file(home.path()), text).expect("gateway.json");
        let remove = |user| remove_admin(home.path(), user).map_err(|error| error.to_string());
        for admins in [r#"["U1"]"#, r#"["U1", " U1 "]"#, r#"["U1", "", "  "]"#] {
            write(&format!(r#"{{"version":1,"admins":{admins}}}"#));
            assert_eq!(remove("U1"), Err("cannot remove the last admin".into()), "{admins}");
        }
        for others in [r#""admins":["U1","U2"],"blocklist":[" U2"]"#, r#""admins":["U1","nobody at all"]"#] {
            write(&format!(r#"{{"version":1,{others}}}"#));
            assert_eq!(remove("U1"), Err("cannot remove the last admin".into()), "{others}");
        }
        write(r#"{"version":1,"admins":[" U1 ","U2"]}"#);
        assert_eq!(remove("U1"), Ok(()));
        assert_eq!(remove("U2"), Err("cannot remove the last admin".into()));
        assert_eq!(remove("U3"), Err("`U3` is not an admin".into()));
    }

    #[test]
    fn nobody_who_is_blocked_becomes_an_admin_or_a_contact() {
        let home = tempfile::tempdir().expect("a home");
        let text = r#"{"version":1,"admins":["U1"],"blocklist":["U2"]}"#;
        fs::write(home::config_file(home.path()), text).expect("gateway.json");
        assert!(matches!(add_admin(home.path(), "U2"), Err(ChangeError::Blocked(_))));
        assert!(matches!(add_contact(home.path(), "default", "U2"), Err(ChangeError::Blocked(_))));
        assert_eq!(fs::read_to_string(home::config_file(home.path())).expect("gateway.json"), text);
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
