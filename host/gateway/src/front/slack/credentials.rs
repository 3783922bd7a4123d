//! Checks Slack's two tokens: their kinds, who the bot is, and what it may do.

use jiff::SignedDuration;
use reqwest::Url;
use rustls::ClientConfig;

use super::{
    address::{ApiAddress, is_safe_socket},
    app::{self, OptionalFeature, Scope},
    config::SlackConfig,
    failure::CallFailure,
    tls,
    web::{AuthInfo, Web},
};
use crate::front::FrontError;

pub use super::token::{check_app, check_bot};

pub(super) const UNSAFE_SOCKET: &str =
    "Slack returned a WebSocket address that is neither encrypted nor on this machine";
pub(super) const UNSAFE_SOCKET_HINT: &str = "check that the Slack API address is Slack's";

/// What Slack says about both tokens, each by itself.
#[derive(Debug)]
pub struct Examined {
    pub bot: Result<Bot, FrontError>,
    /// Whether Slack would open Socket Mode for the app.
    pub socket: Result<(), FrontError>,
}

/// The owner of the bot token.
#[derive(Debug)]
pub struct Bot {
    pub name: String,
    pub team: String,
    /// The missing scopes of optional features; an error names the missing required scopes. `None` if the granted
    /// scopes are unknown.
    pub scopes: Option<Result<Vec<(&'static Scope, OptionalFeature)>, FrontError>>,
    /// How far this machine's clock is ahead of Slack's.
    pub ahead: Option<SignedDuration>,
}

/// Asks Slack about both tokens. No connection is opened: it would receive a share of the events.
pub async fn examine(config: &SlackConfig) -> Examined {
    let web = match prepare(config) {
        Ok(Prepared { web, .. }) => web,
        Err(error) => return Examined { bot: Err(error.clone()), socket: Err(error) },
    };
    let (met, socket) = tokio::join!(web.identity(), web.open_connection());
    let bot = met.map_err(CallFailure::at_start).map(|AuthInfo { me, scopes, ahead, .. }| Bot {
        name: me.name,
        team: me.team,
        scopes: scopes.as_deref().map(lesser_scopes),
        ahead,
    });
    Examined { bot, socket: socket.map_err(CallFailure::at_start).and_then(|url| check_socket(&url)) }
}

/// The client for Slack.
pub(super) struct Prepared {
    pub(super) address: ApiAddress,
    pub(super) tls: ClientConfig,
    pub(super) web: Web,
}

/// Prepares the client if address and tokens look valid. Nothing is sent yet.
pub(super) fn prepare(config: &SlackConfig) -> Result<Prepared, FrontError> {
    let address = ApiAddress::parse(&config.api_url, config.allow_any_api_url)?;
    for kind in kinds(config) {
        kind?;
    }
    let no_tls = |error: &dyn std::error::Error| FrontError::Fatal {
        what: format!("cannot set up TLS for Slack: {error}"),
        hint: "this is a bug in the build; please report it".to_owned(),
    };
    let tls = tls::client_config().map_err(|error| no_tls(&error))?;
    let web = Web::new(config, &address, tls.clone()).map_err(|error| no_tls(&error))?;
    Ok(Prepared { address, tls, web })
}

/// Checks whether the WebSocket may be opened.
pub(super) fn check_socket(url: &Url) -> Result<(), FrontError> {
    if is_safe_socket(url) {
        return Ok(());
    }
    Err(FrontError::Fatal { what: UNSAFE_SOCKET.to_owned(), hint: UNSAFE_SOCKET_HINT.to_owned() })
}

/// Returns the missing scopes of optional features.
///
/// # Errors
/// Required scopes are missing.
pub(super) fn lesser_scopes(granted: &str) -> Result<Vec<(&'static Scope, OptionalFeature)>, FrontError> {
    let missing = app::missing(granted);
    let needed: Vec<&Scope> = missing.iter().copied().filter(|scope| scope.without.is_none()).collect();
    if needed.is_empty() {
        return Ok(missing.into_iter().filter_map(|scope| Some((scope, scope.without?))).collect());
    }
    let names: Vec<String> = needed.iter().map(|scope| format!("`{}`", scope.name)).collect();
    Err(FrontError::Fatal {
        what: format!("the Slack bot token lacks required scopes: {}", names.join(", ")),
        hint: "add them under OAuth & Permissions and reinstall the app; `pmk-host slack manifest` prints everything \
               the app needs"
            .to_owned(),
    })
}

/// Checks the kinds of the app token and the bot token, as far as possible before they are sent.
pub fn kinds(config: &SlackConfig) -> [Result<(), FrontError>; 2] {
    [check_app(&config.app_token), check_bot(&config.bot_token)]
}
