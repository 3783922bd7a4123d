//! Who may do what: asked of gateway.json as it is now, and a no is noted.

use std::sync::Arc;

use crate::{
    access::{
        authorization::{AccessDecision, Action, Venue, may},
        people::People,
    },
    config::WatchedConfig,
    ledger::{Event, Ledger},
};

/// What people may do here.
#[derive(Debug)]
pub struct Permissions {
    watched: Arc<WatchedConfig>,
    ledger: Ledger,
}

impl Permissions {
    /// By what gateway.json says.
    pub fn new(watched: Arc<WatchedConfig>, ledger: Ledger) -> Permissions {
        Permissions { watched, ledger }
    }

    /// Who is who, as of now.
    pub(crate) fn people(&self) -> Arc<People> {
        self.watched.now()
    }

    /// Whether somebody may do this there. To be asked once for each thing that they do: a no is logged, and an event.
    pub(crate) fn may(&self, actor: &str, action: Action, channel: Option<&str>) -> AccessDecision {
        let ruling = may(&self.watched.now(), actor, action, Venue::of(channel));
        if let AccessDecision::Refused { reason } = ruling {
            tracing::info!(user = actor, channel, ?action, ?reason, "refused");
            let (actor, channel_id) = (actor.to_owned(), channel.map(str::to_owned));
            self.ledger.note(Event::AccessRefused { actor, action, channel_id, reason });
        }
        ruling
    }

    /// Whether somebody is to be told things. Nobody has done anything, so a no is not noted.
    pub(crate) fn may_hear(&self, person: &str) -> bool {
        may(&self.watched.now(), person, Action::Hear, Venue::Nowhere).is_allowed()
    }

    /// The admins who are to be told things.
    pub(crate) fn admins(&self) -> Vec<String> {
        let people = self.watched.now();
        let told = people.admins.iter().filter(|admin| may(&people, admin, Action::Hear, Venue::Nowhere).is_allowed());
        told.cloned().collect()
    }

    /// Whether anybody can be asked on somebody's behalf, about whatever it is.
    pub(crate) fn has_contacts(&self, asker: &str) -> bool {
        let repos = self.watched.now();
        let repos = repos.escalation.repos.keys().map(|repo| Some(repo.as_str()));
        [None].into_iter().chain(repos).any(|repo| !self.contacts(repo, asker).is_empty())
    }

    /// Whom to ask about a repository on somebody's behalf; empty where there is nobody.
    pub(crate) fn contacts(&self, repo: Option<&str>, asker: &str) -> Vec<String> {
        let people = self.watched.now();
        let may_hear = |contact: &str| may(&people, contact, Action::Hear, Venue::Nowhere).is_allowed();
        people.escalation.contacts(repo, |contact| contact != asker && may_hear(contact))
    }
}
