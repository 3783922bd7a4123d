//! The transport of the bot's calls and their responses, and who knows about the effect of a call.

use std::time::Duration;

use pmk_host::front::{Fence, FrontError};

use super::{
    Post, Slack,
    sockets::{self, Came},
};
use crate::scenario::{Point, Trouble};

/// A call without a response within this time has failed for the bot.
const PATIENCE: Duration = Duration::from_secs(10);

/// Within this time a host deletes a post that arrived too late.
const TAKES_BACK: u64 = 30_000;

/// A host that is shutting down retries a deletion within this time: one call without a response, and a pause.
const TRIES_AGAIN: u64 = 12_000;

/// Who knows that a message exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    ToWhoeverLooks,
    /// Others may have searched before it was posted: only this host will delete it.
    OnlyTo(usize),
    ToNobody,
}

/// Why a call was not carried out.
pub(super) enum Undone {
    /// Slack says how long to wait.
    PutOff(Duration),
    /// Slack failed.
    Failed(u16),
    /// It never came to Slack, or Slack did not answer in time.
    Unanswered,
}

impl From<Undone> for FrontError {
    fn from(undone: Undone) -> FrontError {
        match undone {
            Undone::PutOff(wait) => {
                let (what, retry_after) = ("rate limited".to_owned(), Some(wait));
                FrontError::Transient { what, retry_after, not_made: true }
            }
            Undone::Failed(status) => passing(&format!("HTTP {status}")),
            Undone::Unanswered => passing("no answer"),
        }
    }
}

impl Slack {
    /// The duration of a call, and what may happen to it before it is executed.
    pub(super) async fn before(&self, channel: Option<&str>) -> Result<Came, Undone> {
        let world = &self.world;
        world.step(Point::Slack).await;
        let takes = Duration::from_millis(world.dice("slack").u64(5..400));
        let Some(came) = sockets::arrives(world, takes).await else { return Err(Undone::Unanswered) };
        if world.strikes(Trouble::PutOff) {
            let wait = Duration::from_secs(world.dice("put off").u64(1..30));
            world.say(|| format!("slack: wait {wait:?}"));
            return Err(Undone::PutOff(wait));
        }
        if world.strikes(Trouble::NotDone) {
            return Err(Undone::Failed(503));
        }
        if channel.is_some_and(|channel| world.is_down(channel)) {
            return Err(Undone::Failed(500));
        }
        if world.strikes(Trouble::SlackHangs) {
            tokio::time::sleep(PATIENCE).await;
            return Err(Undone::Unanswered);
        }
        Ok(came)
    }

    /// The same for a call that a host makes only while its lease holds.
    pub(super) async fn before_saying(&self, channel: Option<&str>) -> Result<Came, FrontError> {
        let fence = self.fences()[self.world.host()].clone();
        if let Some(fence) = fence {
            Fence::holds(&*fence).await?;
        }
        Ok(self.before(channel).await?)
    }

    /// What may happen to the response: without one, an error.
    pub(super) async fn after(&self) -> Result<(), FrontError> {
        if self.answers().await { Ok(()) } else { Err(passing("the connection was reset")) }
    }

    /// Whether the response arrives.
    pub(super) async fn answers(&self) -> bool {
        self.world.step(Point::Slack).await;
        let is_lost = self.world.hosts() > 1 && {
            let takes = Duration::from_millis(self.world.dice("answer").u64(1..60));
            sockets::arrives(&self.world, takes).await.is_none()
        };
        !is_lost && !self.world.strikes(Trouble::AnswerLost)
    }

    pub(super) fn becomes(&self, ts: &str, known: Known) {
        if let Some(post) = self.state().posts.iter_mut().find(|post| post.ts == ts) {
            post.known = known;
        }
    }

    /// The running host was killed: nobody knows any more about a post that only it had just learnt of.
    pub fn forgets(&self) {
        let (now, only_to) = (self.world.time(), Known::OnlyTo(self.world.host()));
        let mut state = self.state();
        let posts = state.posts.iter_mut().filter(|post| post.known == only_to && post.posted_at + TAKES_BACK > now);
        posts.for_each(|post| post.known = Known::ToNobody);
    }

    /// The running host ends: a post that it was still trying to delete while Slack did not respond stays.
    pub fn gives_up(&self) {
        let (now, only_to) = (self.world.time(), Known::OnlyTo(self.world.host()));
        let mut state = self.state();
        let is_tried = |post: &&mut Post| post.kept_at.is_some_and(|kept_at| kept_at + TRIES_AGAIN > now);
        let posts = state.posts.iter_mut().filter(|post| post.known == only_to).filter(is_tried);
        posts.for_each(|post| post.known = Known::ToNobody);
    }

    /// It could not be deleted.
    pub(super) fn keeps(&self, ts: &str) {
        let now = self.world.time();
        if let Some(post) = self.state().posts.iter_mut().find(|post| post.ts == ts) {
            post.kept_at = Some(now);
        }
    }

    pub(super) fn delete(&self, ts: &str) {
        self.world.say(|| format!("delete {ts}"));
        if let Some(post) = self.state().posts.iter_mut().find(|post| post.ts == ts) {
            post.is_deleted = true;
        }
    }
}

pub(super) fn passing(what: &str) -> FrontError {
    FrontError::Transient { what: what.to_owned(), retry_after: None, not_made: false }
}
