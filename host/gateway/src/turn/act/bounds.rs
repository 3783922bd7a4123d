//! Limits that no message or directive can override: how often others are asked, and about which
//! repositories.

use std::sync::atomic::Ordering;

use pmk_core::text::head;
use pmk_knowledge::{Problem, Workspace};
use pmk_system::threads::offload;

use super::super::{TurnError, work::Work};
use crate::{
    config::Config,
    directive::Kind,
    ledger::Event,
    messages::Messages,
    operator::permissions::Permissions,
    services::Services,
    store::{Asking, Store},
};

/// Counts a question that is about to be put to others. If it exceeds the hourly limit, nobody is asked: the person is
/// told so in the reply, and the text for the model is returned.
pub(super) async fn count(services: &Services, work: &mut Work<'_>, kind: Kind) -> Result<Option<String>, TurnError> {
    let inbound = &work.turn.inbound;
    let most = match kind {
        Kind::Escalate => services.config.hourly.escalations,
        Kind::MraAsk => services.config.hourly.mra_questions,
    };
    let asking = asking(work, kind);
    let Some(of) = services.store.count_asked(asking, most, services.now_ms()).await? else { return Ok(None) };
    let (session, user, of) = (inbound.key.to_string(), inbound.user.clone(), of.name());
    tracing::warn!(session, user, kind = kind.tag(), of, most, "nobody is asked: the hourly limit is reached");
    work.ports.journal.note(Event::DirectiveBounded { actor: user, session, kind: kind.tag(), of, most });
    let said = services.messages.used_up(kind, most);
    if !work.tally.bounded.contains(&said) {
        work.tally.bounded.push_str(&said);
    }
    Ok(Some(services.messages.told_bounded(most, of)))
}

/// Returns what is counted already and was not put to others, and how often it was counted: the question to contacts,
/// which is sent only once the answer is stored, and questions to `mra`.
pub(in crate::turn) fn unsent(work: &Work<'_>) -> Vec<(Asking, usize)> {
    let to_people = usize::from(work.tally.escalation.is_some());
    let to_mra = work.tally.mra_not_put.load(Ordering::Relaxed);
    let unsent = [(Kind::Escalate, to_people), (Kind::MraAsk, to_mra)].into_iter().filter(|&(_, times)| times > 0);
    unsent.map(|(kind, times)| (asking(work, kind), times)).collect()
}

/// Takes back the counts of questions that an attempt has not put. The next attempt counts them again.
pub(in crate::turn) async fn take_back(store: &Store, unsent: Vec<(Asking, usize)>) {
    for (asking, times) in unsent {
        let kind = asking.kind;
        if let Err(error) = store.take_back_asked(asking, times).await {
            tracing::warn!(%error, kind = kind.tag(), "what was ended counts against the hourly limit");
        }
    }
}

fn asking(work: &Work<'_>, kind: Kind) -> Asking {
    let inbound = &work.turn.inbound;
    Asking { kind, front: inbound.key.front, user: inbound.user.clone(), session: work.turn.session }
}

/// Returns why a repository may not be asked about; `None` if it may. The operator's list decides if there is one;
/// without a list, `mra` knows its own repositories.
pub(super) async fn not_listed(messages: &Messages, config: &Config, repo: &str) -> Option<String> {
    let listed = listed(config).await?;
    let repo = repo.trim();
    if listed.iter().any(|name| name == repo) {
        return None;
    }
    let shown = messages.listed(&listed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>());
    Some(messages.told_not_listed(head(repo, 100), head(&shown, 2_000)))
}

/// Returns the repository that an escalation is about, if the operator has configured it.
pub(super) async fn scope(people: &Permissions, config: &Config, repo: Option<String>) -> Option<String> {
    let repo = repo.map(|repo| repo.trim().to_owned()).filter(|repo| !repo.is_empty())?;
    let pools = people.people();
    if pools.escalation.repos.contains_key(&repo) {
        return Some(repo);
    }
    match listed(config).await {
        Some(listed) => listed.contains(&repo).then_some(repo),
        None => pools.escalation.repos.is_empty().then_some(repo),
    }
}

/// Returns the repositories of the workspace; `None` if there is no list. An unreadable list counts as
/// empty.
async fn listed(config: &Config) -> Option<Vec<String>> {
    let workspace = config.mra_workspace.clone()?;
    match offload(move || Workspace::open(&workspace)?.repositories()).await {
        Ok((repositories, _)) => Some(repositories.into_iter().map(|repository| repository.name).collect()),
        Err(problem) if problem.problem == Problem::Missing => None,
        Err(problem) => {
            tracing::warn!(%problem, "there is no repository to ask about");
            Some(vec![])
        }
    }
}
