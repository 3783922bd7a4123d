//! Who is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The contacts of gateway.json, as user ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pools {
    /// Contacts for everything that no repository's pool covers.
    pub default: Vec<String>,
    pub repos: BTreeMap<String, Vec<String>>,
}

impl Pools {
    /// Returns whom to ask about a repository: the contacts of its pool, or else of the default pool, who may
    /// be asked, without duplicates and in the order of the configuration. A pool of which nobody may be asked
    /// counts as none. Empty if there is nobody to ask.
    pub fn contacts(&self, repo: Option<&str>, may_be_asked: impl Fn(&str) -> bool) -> Vec<String> {
        let of_repo = repo.and_then(|repo| self.repos.get(repo.trim()));
        of_repo
            .into_iter()
            .chain([&self.default])
            .map(|pool| of(pool, &may_be_asked))
            .find(|contacts| !contacts.is_empty())
            .unwrap_or_default()
    }
}

fn of(pool: &[String], may_be_asked: impl Fn(&str) -> bool) -> Vec<String> {
    let mut contacts: Vec<String> = Vec::new();
    for contact in pool {
        let contact = contact.trim();
        if is_user_id(contact) && may_be_asked(contact) && !contacts.iter().any(|other| other == contact) {
            contacts.push(contact.to_owned());
        }
    }
    contacts
}

/// Returns whether a text between `<@` and `>` denotes one person.
fn is_user_id(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools() -> Pools {
        serde_json::from_str(
            r#"{"default":["U1","U2","U1"],"repos":{"erp":["U3"," U4 ","!channel",""],"solo":["U5"],"empty":[]}}"#,
        )
        .expect("pools as gateway.json has them")
    }

    #[test]
    fn a_repositorys_own_pool_goes_first() {
        assert_eq!(pools().contacts(Some("erp"), |contact| contact != "U9"), ["U3", "U4"]);
        assert_eq!(pools().contacts(Some("erp"), |contact| contact != "U3"), ["U4"]);
    }

    #[test]
    fn everything_else_goes_to_the_default() {
        for repo in [None, Some("unknown"), Some("empty"), Some("../../etc"), Some("")] {
            assert_eq!(pools().contacts(repo, |contact| contact != "U9"), ["U1", "U2"], "{repo:?}");
        }
        assert_eq!(pools().contacts(Some("solo"), |contact| contact != "U5"), ["U1", "U2"], "the only contact asks");
    }

    #[test]
    fn nobody_asks_themselves() {
        let pools = Pools { default: vec!["U1".into()], ..Pools::default() };
        assert_eq!(pools.contacts(None, |contact| contact != "U1"), [] as [&str; 0]);
        assert_eq!(Pools::default().contacts(Some("erp"), |contact| contact != "U1"), [] as [&str; 0]);
    }
}
