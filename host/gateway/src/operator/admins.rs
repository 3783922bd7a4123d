//! Notifies the admins of gateway.json.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio_util::task::TaskTracker;

use crate::{
    chat::{MessageBody, ReplyTo},
    front::{Delivery, Front},
    operator::permissions::Permissions,
};

/// Sends notices to whoever is an admin at that time.
#[derive(Clone)]
pub struct Admins {
    front: Arc<dyn Front>,
    people: Arc<Permissions>,
    tasks: TaskTracker,
}

impl Admins {
    /// Creates the notifier for this front. `tasks` tracks notices that are still being sent when the gateway ends.
    pub fn new(front: Arc<dyn Front>, people: Arc<Permissions>, tasks: TaskTracker) -> Admins {
        Admins { front, people, tasks }
    }

    /// Sends a notice to all admins in the background. A notice that does not arrive is only logged: the ledger has the
    /// event, too.
    pub(crate) fn tell(&self, text: String) {
        for admin in self.people.admins() {
            let (front, text) = (Arc::clone(&self.front), text.clone());
            self.tasks.spawn(async move { tell_one(&*front, admin, text).await });
        }
    }

    /// Sends a notice to all admins and returns whether any of them received it.
    pub(crate) async fn reach(&self, text: &str) -> bool {
        let told = self.people.admins().into_iter().map(|admin| tell_one(&*self.front, admin, text.to_owned()));
        join_all(told).await.contains(&true)
    }

    /// Whether there are any admins to notify.
    pub(crate) fn are_any(&self) -> bool {
        !self.people.admins().is_empty()
    }
}

async fn tell_one(front: &dyn Front, admin: String, text: String) -> bool {
    // A direct message: Slack accepts the user's id as the channel.
    let (reply_to, speech) = (ReplyTo { channel: admin, thread_ts: None }, MessageBody { text, pings: vec![] });
    let told = front.deliver(Delivery::notice("", &reply_to, &speech)).await;
    if let Err(error) = &told {
        tracing::warn!(admin = reply_to.channel, %error, "cannot notify an admin");
    }
    told.is_ok()
}
