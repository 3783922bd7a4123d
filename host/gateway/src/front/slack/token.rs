//! The two tokens of a Slack app.

use std::fmt;

/// Which of the two tokens a call is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    App,
    Bot,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Token::App => "the app token (xapp-…)",
            Token::Bot => "the bot token (xoxb-…)",
        })
    }
}
