//! Telling the admins of gateway.json something.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio_util::task::TaskTracker;

use crate::{
    chat::{MessageBody, ReplyTo},
    front::{Delivery, Front},
    operator::permissions::Permissions,
};

/// Reaches whoever is an admin at that time.
#[derive(Clone)]
pub struct Admins {
    front: Arc<dyn Front>,
    people: Arc<Permissions>,
    tasks: TaskTracker,
}

impl Admins {
    /// By this front; what is still on its way when the gateway ends is waited for with these tasks.
    pub fn new(front: Arc<dyn Front>, people: Arc<Permissions>, tasks: TaskTracker) -> Admins {
        Admins { front, people, tasks }
    }

    /// Tells them, beside whatever else is going on. A message that does not reach them is only logged: the ledger has it,
    /// too.
    pub(crate) fn tell(&self, text: String) {
        for admin in self.people.admins() {
            let (front, text) = (Arc::clone(&self.front), text.clone());
            self.tasks.spawn(async move { tell_one(&*front, admin, text).await });
        }
    }

    /// The same, and whether it has reached any of them.
    pub(crate) async fn reach(&self, text: &str) -> bool {
        let told = self.people.admins().into_iter().map(|admin| tell_one(&*self.front, admin, text.to_owned()));
        join_all(told).await.contains(&true)
    }

    /// Whether there is anybody to tell.
    pub(crate) fn are_any(&self) -> bool {
        !self.people.admins().is_empty()
    }
}

async fn tell_one(front: &dyn Front, admin: String, text: String) -> bool {
    // A direct message: Slack takes the user's id for the channel.
    let (reply_to, speech) = (ReplyTo { channel: admin, thread_ts: None }, MessageBody { text, pings: vec![] });
    let told = front.deliver(Delivery::notice("", &reply_to, &speech)).await;
    if let Err(error) = &told {
        tracing::warn!(admin = reply_to.channel, %error, "cannot notify an admin");
    }
    told.is_ok()
}
