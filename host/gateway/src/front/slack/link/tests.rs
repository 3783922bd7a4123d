//! Tests of one connection over a pipe, in virtual time.

use std::{
    future::pending,
    io,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::Context,
};

use async_trait::async_trait;
use pmk_system::error::Failure;
use tokio::{
    io::{DuplexStream, ReadBuf, copy, duplex, sink},
    join, select,
    time::sleep,
};
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::{
    chat::{Accepted, Inbound, Reaction},
    front::{
        Intake,
        slack::{
            connectivity::Connectivity, identity::Identity, places::Places, prompts::Prompts, statuses::Statuses,
            streams::Streams, unstored::Unstored,
        },
    },
};

/// An intake that never finishes.
struct Stuck;

#[async_trait]
impl Intake for Stuck {
    async fn accept(&self, _message: Inbound) -> Result<Accepted, Failure> {
        pending().await
    }

    async fn react(&self, _reaction: Reaction) -> Result<(), Failure> {
        Ok(())
    }
}

/// The parts of an [`InboundContext`].
struct Office {
    me: Identity,
    prompts: Prompts,
    hearing: Connectivity,
    unstored: Unstored,
    statuses: Statuses,
    streams: Streams,
}

impl Office {
    fn new() -> Office {
        let timings = Timings::default();
        Office {
            me: Identity::of_a_bot(),
            prompts: Prompts::new(vec![]),
            hearing: Connectivity::new(&timings),
            unstored: Unstored::new(timings.given_up),
            statuses: Statuses::new(None, timings.status),
            streams: Streams::new(false),
        }
    }

    fn reception<'a>(&'a self, intake: &'a dyn Intake) -> InboundContext<'a> {
        let Office { me, prompts, hearing, unstored, statuses, streams } = self;
        InboundContext { me, places: Places::default(), prompts, intake, hearing, unstored, statuses, streams }
    }

    /// Returns a connection with the default timings, and its other end.
    async fn link(&self) -> (Link<'_, DuplexStream>, DuplexStream) {
        let (near, far) = duplex(1 << 20);
        let socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let reception = self.reception(&Stuck);
        (Link::over(socket, reception, Timings::default()), far)
    }
}

async fn slack(far: DuplexStream) -> WebSocketStream<DuplexStream> {
    WebSocketStream::from_raw_socket(far, Role::Server, None).await
}

/// Returns how long a connection takes to notice that it is dead, with this at its other end.
async fn noticed(link: &mut Link<'_, DuplexStream>, other_end: impl Future<Output = ()>) -> Duration {
    let start = Instant::now();
    select! {
        biased;
        served = link.serve(pending::<()>()) => assert!(matches!(served, ServeOutcome::LinkError(LinkError::Lost { .. }))),
        () = other_end => unreachable!("it goes on for ever"),
    }
    start.elapsed()
}

/// A pipe, and how often something was written to it.
struct Counted<'a>(DuplexStream, &'a AtomicUsize);

impl AsyncRead for Counted<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Counted<'_> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// So that a successor can be opened within ten seconds.
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
        biased;
        served = link.serve(hour) => served,
        () = answering => unreachable!("the pipe is open"),
    };
    assert!(matches!(served, ServeOutcome::Until(())));
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
    assert!(matches!(served, ServeOutcome::Until(())), "given up while the store was stuck");
}

#[tokio::test(start_paused = true)]
async fn every_frame_is_acknowledged_at_once_and_with_those_that_arrived_together() {
    let office = Office::new();
    let (near, far) = duplex(1 << 20);
    let (mut far, writes) = (slack(far).await, AtomicUsize::new(0));
    let socket = WebSocketStream::from_raw_socket(Counted(near, &writes), Role::Client, None).await;
    let mut link = Link::over(socket, office.reception(&Stuck), Timings::default());
    let sending = async {
        for count in [1, MAX_UNSENT - 1, 3 * MAX_UNSENT + 1] {
            let start = Instant::now();
            for n in 0..count {
                let envelope = serde_json::json!({"type": "other", "envelope_id": format!("e{n}")});
                far.feed(Message::text(envelope.to_string())).await.expect("a pipe");
            }
            far.flush().await.expect("a pipe");
            for n in 0..count {
                let ack = far.next().await.expect("a pipe").expect("an acknowledgement");
                assert!(ack.to_string().contains(&format!("\"e{n}\"")), "{ack} is not the acknowledgement of {n}");
            }
            assert_eq!(start.elapsed(), Duration::ZERO, "{count} waited");
            assert!(writes.swap(0, Ordering::Relaxed) <= count.div_ceil(MAX_UNSENT), "{count} were sent one by one");
        }
    };
    assert!(matches!(link.serve(sending).await, ServeOutcome::Until(())));
}

/// An intake that accepts everything, and counts refused frames.
#[derive(Default)]
struct Counting(std::sync::atomic::AtomicUsize);

#[async_trait]
impl Intake for Counting {
    async fn accept(&self, _message: Inbound) -> Result<Accepted, Failure> {
        Ok(Accepted::New)
    }

    async fn react(&self, _reaction: Reaction) -> Result<(), Failure> {
        Ok(())
    }

    fn notice(&self, notice: crate::chat::Notice) {
        assert_eq!(notice, crate::chat::Notice::Malformed { field: "frame" });
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Returns what happens to a connection that receives these bytes, and how many frames were refused.
async fn after(bytes: &[u8]) -> (String, usize) {
    let (office, intake) = (Office::new(), Counting::default());
    let (near, mut far) = duplex(16 << 20);
    let socket = WebSocketStream::from_raw_socket(near, Role::Client, Some(bounds())).await;
    let reception = office.reception(&intake);
    let mut link = Link::over(socket, reception, Timings::default());
    tokio::io::AsyncWriteExt::write_all(&mut far, bytes).await.expect("a pipe");
    let end = match link.serve(sleep(Duration::from_secs(1))).await {
        ServeOutcome::Until(()) => "it stands".to_owned(),
        ServeOutcome::LinkError(LinkError::Lost { why, .. }) => why,
        _ => "it is leaving".to_owned(),
    };
    drop(link);
    (end, intake.0.into_inner())
}

/// Returns the head of a server's frame of that kind and length.
fn head(opcode: u8, length: u64) -> Vec<u8> {
    [&[0x80 | opcode, 127][..], &length.to_be_bytes()].concat()
}

/// Regression: a binary frame was skipped silently, and a frame of 64 MB was held in memory.
#[tokio::test(start_paused = true)]
async fn frames_that_are_none_are_counted_or_end_the_connection() {
    let (text, binary) = (1, 2);
    assert_eq!(after(&[head(binary, 2), vec![b'{', b'}']].concat()).await, ("it stands".into(), 1));
    assert_eq!(after(&[head(text, 2), vec![b'[', b']']].concat()).await, ("it stands".into(), 1));
    let (why, refused) = after(&[head(text, 2), vec![0xff, 0xfe]].concat()).await;
    assert!(why.contains("UTF-8") && refused == 0, "{why}");
    // Its length is sufficient: its content is not awaited.
    let (why, refused) = after(&head(text, MAX_FRAME_BYTES as u64 + 1)).await;
    assert!(why.contains("too long") && refused == 0, "{why}");
}

/// Regression: 256 messages could wait for the store, however long they were.
#[tokio::test(start_paused = true)]
async fn long_messages_wait_at_slack_until_the_store_is_done() {
    let office = Office::new();
    let (mut link, far) = office.link().await;
    let mut far = slack(far).await;
    let text = "x".repeat(1 << 20);
    let event = serde_json::json!({
        "type": "events_api", "envelope_id": "e1", "payload": {"team_id": "T1", "event_id": "Ev1", "event": {
            "type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "ts": "1.2", "text": text,
        }},
    });
    let sending = async {
        for _ in 0..64 {
            far.send(Message::text(event.to_string())).await.ok();
        }
        pending::<()>().await
    };
    select! {
        biased;
        _ = link.serve(sleep(Duration::from_secs(60))) => {}
        () = sending => unreachable!("it goes on for ever"),
    }
    assert_eq!(link.in_flight.len(), MAX_IN_FLIGHT_BYTES / text.len(), "{} bytes", link.in_flight_bytes);
}
