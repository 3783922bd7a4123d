//! Checks permissions against the current gateway.json; refusals are recorded.

use std::sync::Arc;

use crate::{
    access::{
        authorization::{AccessDecision, Action, Reason, Venue, may},
        people::People,
    },
    config::WatchedConfig,
    ledger::{Event, Ledger},
};

/// The permission checks of a gateway.
#[derive(Debug)]
pub struct Permissions {
    watched: Arc<WatchedConfig>,
    ledger: Ledger,
}

impl Permissions {
    /// Creates the checks against this configuration.
    pub fn new(watched: Arc<WatchedConfig>, ledger: Ledger) -> Permissions {
        Permissions { watched, ledger }
    }

    /// Returns the people as currently configured.
    pub(crate) fn people(&self) -> Arc<People> {
        self.watched.now()
    }

    /// Returns why gateway.json cannot be used as it is now, if it cannot.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.watched.trouble()
    }

    /// Whether somebody may do this there. To be called once per action: a refusal is logged and written to the ledger.
    pub(crate) fn may(&self, actor: &str, action: Action, channel: Option<&str>) -> AccessDecision {
        match may(&self.watched.now(), actor, action, Venue::of(channel)) {
            AccessDecision::Allowed => AccessDecision::Allowed,
            AccessDecision::Refused { reason } => self.refuse(actor, action, channel, reason),
        }
    }

    /// Refuses something for this reason, which is logged and written to the ledger.
    pub(crate) fn refuse(&self, actor: &str, action: Action, channel: Option<&str>, reason: Reason) -> AccessDecision {
        tracing::info!(user = actor, channel, ?action, ?reason, "refused");
        let (actor, channel_id) = (actor.to_owned(), channel.map(str::to_owned));
        self.ledger.note(Event::AccessRefused { actor, action, channel_id, reason });
        AccessDecision::Refused { reason }
    }

    /// Whether somebody may receive messages. A refusal is not recorded, since the person has done nothing.
    pub(crate) fn may_hear(&self, person: &str) -> bool {
        may(&self.watched.now(), person, Action::Hear, Venue::Nowhere).is_allowed()
    }

    /// Returns the admins who may receive messages.
    pub(crate) fn admins(&self) -> Vec<String> {
        let people = self.watched.now();
        let told = people.admins.iter().filter(|admin| may(&people, admin, Action::Hear, Venue::Nowhere).is_allowed());
        told.map(|admin| admin.trim().to_owned()).collect()
    }
}

/// Whether there is any contact, in any pool, other than the asker.
pub(crate) fn has_contacts(people: &People, asker: &str, is_person: impl Fn(&str) -> bool) -> bool {
    let repos = people.escalation.repos.keys().map(|repo| Some(repo.as_str()));
    [None].into_iter().chain(repos).any(|repo| !contacts(people, repo, asker, &is_person).is_empty())
}

/// Returns the contacts to ask about a repository on behalf of `asker`; empty if there are none.
pub(crate) fn contacts(
    people: &People,
    repo: Option<&str>,
    asker: &str,
    is_person: impl Fn(&str) -> bool,
) -> Vec<String> {
    let may_hear = |contact: &str| may(people, contact, Action::Hear, Venue::Nowhere).is_allowed();
    people.escalation.contacts(repo, |contact| contact != asker && is_person(contact) && may_hear(contact))
}
