//! Who the bot is in its workspace.

use slack_morphism::prelude::SlackApiAuthTestResponse;

/// What Slack knows the bot by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) user: String,
    pub(super) bot: Option<String>,
    pub(super) name: String,
    pub(super) team: String,
    pub(super) team_id: String,
}

impl Identity {
    /// Returns a bot, for tests.
    #[cfg(test)]
    pub(super) fn of_a_bot() -> Identity {
        Identity {
            user: "UBOT".into(),
            bot: Some("BBOT".into()),
            name: "pmk".into(),
            team: "Acme".into(),
            team_id: "T1".into(),
        }
    }

    /// Returns whether a message with this `user` and `bot_id` is the bot's own. Anybody else's may claim anything, in
    /// its metadata too.
    pub(super) fn wrote(&self, user: Option<&str>, bot: Option<&str>) -> bool {
        user == Some(&self.user) || bot.is_some() && bot == self.bot.as_deref()
    }

    pub(super) fn of(answer: SlackApiAuthTestResponse) -> Identity {
        Identity {
            name: answer.user.unwrap_or_else(|| answer.user_id.0.clone()),
            user: answer.user_id.0,
            bot: answer.bot_id.map(|bot| bot.0),
            team: answer.team,
            team_id: answer.team_id.0,
        }
    }
}
