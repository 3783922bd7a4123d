//! One connection over a pipe, with time that stands still until everybody waits.

use std::future::pending;

use async_trait::async_trait;
use tokio::{
    io::{DuplexStream, copy, duplex, sink},
    join, select,
    time::sleep,
};
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::{
    front::{
        Accepted, Inbound, Intake, ReactError, Reaction,
        slack::{hearing::Hearing, web::Identity},
    },
    store::StoreError,
};

/// A store that never gets done.
struct Stuck;

#[async_trait]
impl Intake for Stuck {
    async fn accept(&self, _message: Inbound) -> Result<Accepted, StoreError> {
        pending().await
    }

    async fn react(&self, _reaction: Reaction) -> Result<(), ReactError> {
        Ok(())
    }
}

/// What a desk is made of.
struct Office {
    me: Identity,
    hearing: Hearing,
}

impl Office {
    fn new() -> Office {
        let me = Identity { user: "UBOT".into(), bot: None, name: "pmk".into(), team: "Acme".into() };
        Office { me, hearing: Hearing::new(&Timings::default()) }
    }

    /// A connection with the default timings, and its other end.
    async fn link(&self) -> (Link<'_, DuplexStream>, DuplexStream) {
        let (near, far) = duplex(1 << 20);
        let socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let desk = Desk { me: &self.me, intake: &Stuck, hearing: &self.hearing };
        (Link::over(socket, desk, Timings::default()), far)
    }
}

async fn slack(far: DuplexStream) -> WebSocketStream<DuplexStream> {
    WebSocketStream::from_raw_socket(far, Role::Server, None).await
}

/// How long a connection takes to see that it is dead, with this at its other end.
async fn noticed(link: &mut Link<'_, DuplexStream>, other_end: impl Future<Output = ()>) -> Duration {
    let start = Instant::now();
    select! {
        served = link.serve(pending::<()>()) => assert!(matches!(served, Served::Gone(Gone::Lost { .. }))),
        () = other_end => unreachable!("it goes on for ever"),
    }
    start.elapsed()
}

/// So that a successor can be opened before ten seconds are over.
const SOON: Duration = Duration::from_secs(8);

#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_everything_and_answers_nothing_is_noticed() {
    let office = Office::new();
    let (mut link, mut far) = office.link().await;
    let swallowing = async {
        copy(&mut far, &mut sink()).await.expect("a pipe");
        pending().await
    };
    let after = noticed(&mut link, swallowing).await;
    assert!(after <= SOON, "noticed after {after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_sends_and_hears_nothing_is_noticed() {
    let office = Office::new();
    let (mut link, far) = office.link().await;
    let mut far = slack(far).await;
    let deaf = async {
        loop {
            far.send(Message::Ping(Bytes::new())).await.expect("a pipe");
            sleep(Duration::from_secs(1)).await;
        }
    };
    let after = noticed(&mut link, deaf).await;
    assert!(after <= SOON, "noticed after {after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_connection_that_answers_stays() {
    let office = Office::new();
    let (mut link, far) = office.link().await;
    let mut far = slack(far).await;
    let answering = async { while let Some(Ok(_)) = far.next().await {} };
    let hour = sleep(Duration::from_secs(3_600));
    let served = select! {
        served = link.serve(hour) => served,
        () = answering => unreachable!("the pipe is open"),
    };
    assert!(matches!(served, Served::Until(())));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_stuck_is_no_dead_connection() {
    let office = Office::new();
    let (mut link, far) = office.link().await;
    let mut far = slack(far).await;
    let busy = async {
        for n in 0..=MAX_IN_FLIGHT {
            let event = serde_json::json!({
                "type": "events_api", "envelope_id": format!("e{n}"), "payload": {"team_id": "T1",
                "event_id": format!("Ev{n}"), "event": {"type": "message", "user": "U1", "channel": "D1",
                "ts": format!("1700000000.{n:06}"), "text": "hello"}},
            });
            far.send(Message::text(event.to_string())).await.expect("a pipe");
        }
        while let Some(Ok(_)) = far.next().await {}
    };
    let served = async {
        let served = link.serve(sleep(Duration::from_secs(300))).await;
        drop(link);
        served
    };
    let (served, ()) = join!(served, busy);
    assert!(matches!(served, Served::Until(())), "given up while the store was stuck");
}
