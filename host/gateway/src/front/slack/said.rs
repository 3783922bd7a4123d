//! What people say in Slack: a message event, and the message for the bot that it is.

use pmk_core::{FrontName, Place, SessionKey, session_key};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    attached, block_text,
    identity::Identity,
    mrkdwn,
    places::{Places, ReplyIn},
};
use crate::chat::{Addressing, Inbound, ReplyTo, after_command};

#[derive(Debug, Deserialize)]
pub(super) struct MessageEvent {
    pub(super) user: Option<String>,
    pub(super) bot_id: Option<String>,
    /// The workspace of whoever has written it.
    user_team: Option<Value>,
    team: Option<Value>,
    pub(super) channel: String,
    pub(super) channel_type: Option<String>,
    pub(super) ts: String,
    pub(super) thread_ts: Option<String>,
    /// Who has begun the thread.
    pub(super) parent_user_id: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) text: Option<String>,
    /// Only read where the text may not say everything.
    blocks: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) attachments: Value,
    #[serde(default)]
    pub(super) files: Value,
    pub(super) edited: Option<Value>,
    /// For an event about another message: that message after and before the change, and its `ts`.
    pub(super) message: Option<Box<RawValue>>,
    pub(super) previous_message: Option<Box<RawValue>>,
    pub(super) deleted_ts: Option<Value>,
}

impl MessageEvent {
    /// Returns the ids that would be stored, with their names.
    pub(super) fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let ids = [
            ("user", self.user.as_ref()),
            ("channel", Some(&self.channel)),
            ("ts", Some(&self.ts)),
            ("thread_ts", self.thread_ts.as_ref()),
        ];
        ids.into_iter().filter_map(|(name, id)| Some((name, id?.as_str())))
    }

    /// Returns whether it is between one person and the bot.
    pub(super) fn is_direct(&self) -> bool {
        self.channel_type.as_deref() == Some("im") || self.channel.starts_with('D')
    }

    /// Returns the workspace of its author, if that is another one than this.
    fn team_besides(&self, ours: &str) -> Option<String> {
        let team = self.user_team.as_ref().or(self.team.as_ref()).and_then(Value::as_str);
        // That of an organization is no workspace.
        team.filter(|team| *team != ours && team.starts_with('T') && session_key::is_id(team)).map(str::to_owned)
    }

    /// Returns whether it is in a direct message of several people, as far as the event says.
    pub(super) fn is_group(&self) -> bool {
        self.channel_type.as_deref() == Some("mpim")
    }
}

/// Returns the message that a person has sent to the bot, and whom it addresses if it is in a thread of a channel; `None`
/// if it is not one.
pub(super) fn message(
    team_id: String,
    event_id: String,
    said: MessageEvent,
    mentioned: bool,
    me: &Identity,
    places: Places,
) -> Option<(Inbound, Option<Addressing>)> {
    let (is_direct, is_group, team) = (said.is_direct(), said.is_group(), said.team_besides(&me.team_id));
    let user = said.user.filter(|user| *user != me.user)?;
    if said.bot_id.is_some() && said.bot_id == me.bot {
        return None;
    }
    if !matches!(said.subtype.as_deref(), None | Some("file_share" | "thread_broadcast" | "me_message")) {
        return None;
    }
    // In the history, the first message of a thread is part of the thread; in its event, it is not.
    let within = said.thread_ts.filter(|thread_ts| *thread_ts != said.ts);
    let began_it = within.is_none() || said.parent_user_id.is_none_or(|parent| parent == user || parent == me.user);
    let channel = said.channel;
    let thread_ts = match places.reply_in {
        ReplyIn::Thread if mentioned && !is_direct => within.or_else(|| Some(said.ts.clone())),
        _ => within,
    };
    let written = said.text.unwrap_or_default();
    let is_person = said.bot_id.is_none();
    let may_be_followed = !is_direct && is_person && thread_ts.is_some() && places.follow_threads;
    let manner = match (may_be_followed, mentioned) {
        (true, true) => Some(Addressing::Mention { alone: began_it }),
        (true, false) => Some(Addressing::Plain { names: mrkdwn::others_named(&written, &me.user), answered: None }),
        (false, _) if is_direct || mentioned => None,
        (false, _) => return None,
    };
    let plain = mrkdwn::plain(&written, &me.user);
    let text = if after_command(&plain).is_some() {
        // A command refers to people and channels by their ids.
        mrkdwn::with_ids(&written, &me.user)
    } else if is_person && !plain.is_empty() {
        plain
    } else {
        let blocks = said.blocks.and_then(|blocks| serde_json::from_str(blocks.get()).ok());
        block_text::said(plain, &blocks.unwrap_or_default(), &me.user)
    };
    let place = if is_direct { Place::Dm(user.clone()) } else { Place::Channel(channel.clone()) };
    let message = Inbound {
        event_id,
        aliases: names(&team_id, me, &channel, &said.ts),
        key: SessionKey { front: FrontName::Slack, place, thread: thread_ts.clone() },
        user,
        reply_to: ReplyTo { channel, thread_ts },
        text,
        attached: attached::read(&said.attachments, &said.files, &me.user),
        if_awaited: false,
        by_app: !is_person,
        team,
        in_group: is_group,
        asked_at: None,
        ts: said.ts,
    };
    Some((message, manner))
}

/// Returns the names under which a message is known, however it arrives. In a channel that another workspace shares, an
/// event has the id of that one, which the history does not tell; earlier versions have stored such a message by it.
fn names(team_id: &str, me: &Identity, channel: &str, ts: &str) -> Vec<String> {
    let of_team = |team: &str| format!("ts:{team}:{channel}:{ts}");
    let foreign = (team_id != me.team_id).then(|| of_team(team_id));
    std::iter::once(of_team(&me.team_id)).chain(foreign).collect()
}
