//! Several hosts on a real PostgreSQL, as each of them sees the others.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use pmk_knowledge::{
    Atom, Notice, Status,
    atom::{NewAtom, Source},
    files::AtomFiles,
    moderation,
};
use pmk_models::sim::{Sim, SimConfig};
use pmk_stand_ins::{patience::PATIENCE, postgres};
use pmk_system::home::HomeLock;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{deaf::until_others_hear_alone, *};
use crate::{
    chat::{MessageRef, ReactedAuthor, Refusal},
    database::Database,
    front::{Delivery, Front, Kind, Progress},
    ledger::report::TurnReport,
    services::tests::services_of,
    store::{Place, Store},
};

/// A host, which exists as long as its home is locked.
struct Host {
    store: Store,
    _lock: HomeLock,
    home: TempDir,
}

/// Two hosts that have seen each other; `None` where tests are to run without PostgreSQL, which the server helper prints.
async fn two() -> Option<[Host; 2]> {
    let database = Database::parse(&postgres::server()?.schema()).unwrap();
    let host = || {
        let home = tempfile::tempdir().unwrap();
        let place = Place { home: home.path().to_owned(), database: Some(database.clone()) };
        Host { store: Store::open(place).unwrap(), _lock: HomeLock::take(home.path()).unwrap(), home }
    };
    let hosts = [host(), host()];
    for Host { store, _lock: lock, .. } in &hosts {
        store.take_over(lock).await.unwrap();
    }
    hosts[0].store.look_after_hosts().await.unwrap();
    Some(hosts)
}

/// A front that is connected, and may refuse everything that is said.
#[derive(Default)]
struct Mute(AtomicBool);

#[async_trait]
impl Front for Mute {
    async fn listen(&self, _intake: &dyn Intake, _stop: CancellationToken) -> Result<(), FrontError> {
        Ok(())
    }

    async fn placeholder(&self, _question: &Inbound, _text: &str) -> Result<Option<String>, FrontError> {
        Ok(None)
    }

    async fn progress(&self, _progress: &Progress) -> Result<(), FrontError> {
        Ok(())
    }

    fn split(&self, text: &str, _kind: Kind) -> Vec<String> {
        vec![text.to_owned()]
    }

    async fn deliver(&self, _part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        Ok(None)
    }

    async fn report(&self, _event_id: &str, _report: &TurnReport) -> Result<(), FrontError> {
        Ok(())
    }

    fn refusal(&self) -> Option<Refusal> {
        let refusal = || Refusal { what: "token_revoked".into(), hint: "another token".into(), mutes: true };
        self.0.load(Ordering::Relaxed).then(refusal)
    }
}

/// Regression: what one host does for all was left to one that Slack let say nothing.
#[tokio::test]
async fn a_host_whose_token_was_refused_went_on_acting_for_all() {
    let Some(hosts) = two().await else { return };
    let [Host { store: one, .. }, Host { store: other, .. }] = &hosts;
    other.says_deaf(false).await.unwrap();
    let front = Mute::default();
    let turns = async {
        for is_mute in [false, true, false] {
            front.0.store(is_mute, Ordering::Relaxed);
            while (one.is_first_to_hear(), other.is_first_to_hear()) != (!is_mute, is_mute) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                one.look_after_hosts().await.unwrap();
                other.look_after_hosts().await.unwrap();
            }
        }
    };
    let take_turns = async {
        tokio::select! {
            biased;
            () = until_others_hear_alone(one, &front) => panic!("it need not end"),
            () = turns => {}
        }
    };
    tokio::time::timeout(PATIENCE, take_turns).await.expect("each acts for all in its turn");
}

/// Regression: the notice was in the atoms of another host only, for a moment, and the verdict on it was lost; or Slack
/// had to wait for the acknowledgement of every yes or no until such an atom would have come.
#[tokio::test]
async fn a_verdict_on_what_another_host_had_just_posted_was_looked_up_once() {
    let Some(hosts) = two().await else { return };
    for (emoji, author, is_awaited) in [
        ("white_check_mark", ReactedAuthor::Bot, true),
        ("x", ReactedAuthor::Unknown, true),
        ("x", ReactedAuthor::Another, false),
        ("thumbsup", ReactedAuthor::Bot, false),
    ] {
        let (user, message) = ("U1".to_owned(), MessageRef::new("C1", "1700000000.000100"));
        let reaction = Reaction { event_id: None, user, message, reaction: emoji.to_owned(), author };
        let awaited = looks::verdict_elsewhere(&hosts[0].store, &reaction);
        assert_eq!(awaited.is_some(), is_awaited, "{emoji} {author:?}");
        let mut looks = Looks::at(&hosts[0].store, &reaction).await.unwrap();
        assert!(!looks.again().await.unwrap(), "{emoji} {author:?}");
    }
}

/// Regression: nobody looked again for an atom that came a moment later than the verdict on it.
#[tokio::test]
async fn a_verdict_on_an_atom_that_another_host_had_yet_to_share_was_lost() {
    let Some(hosts) = two().await else { return };
    let Host { store, home, .. } = &hosts[0];
    let model = Arc::new(Sim::new(SimConfig::default()));
    let services = services_of(home.path(), store, model, Arc::new(Mute::default()));
    let door = FrontIntake { handler: Gateway::new(&services).handler, pressed: Arc::default() };
    let (user, message) = ("U1".to_owned(), MessageRef::new("C1", "1700000000.000100"));
    let notice = Notice { channel_id: message.channel.clone(), message_ts: message.ts.clone() };
    let source = Source { contributor_user_id: user.clone(), ..Source::default() };
    let reaction = "white_check_mark".to_owned();
    door.react(Reaction { event_id: None, user, message, reaction, author: ReactedAuthor::Bot }).await.unwrap();
    let atom = Atom::pending(NewAtom {
        created_at_ms: services.now_ms(),
        scope: "erp",
        question: "q",
        summary: "s",
        tags: vec![],
        asked_as: vec![],
        answer: "a",
        source,
        suspicion: None,
    });
    let files = AtomFiles::open(home.path()).unwrap();
    let path = files.save_new(&atom).unwrap();
    moderation::note_notice(&files, &path, &notice).unwrap();
    services.tasks.close();
    tokio::time::timeout(PATIENCE, services.tasks.wait()).await.expect("it is looked for no longer");
    let judged = Atom::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(judged.meta.status, Status::Approved);
}

/// Regression: until its next start, another host went on sending tools that the model's server refuses, and told the
/// admins once more when it found out itself.
#[tokio::test]
async fn only_the_host_that_found_out_asked_a_server_without_tools_for_fences() {
    let Some(hosts) = two().await else { return };
    let [one, other] = hosts.each_ref().map(|Host { store, home, .. }| {
        services_of(home.path(), store, Arc::new(Sim::new(SimConfig::default())), Arc::new(Mute::default()))
    });
    learnt::adopt(&other).await.unwrap();
    assert_eq!(other.preambles.takes_tools(), None);
    for takes in [true, false] {
        match takes {
            true => one.preambles.tools_were_taken().await,
            false => one.preambles.tools_were_refused("said", "no tools here").await,
        }
        learnt::adopt(&other).await.unwrap();
        assert_eq!(other.preambles.takes_tools(), Some(takes));
    }
}
