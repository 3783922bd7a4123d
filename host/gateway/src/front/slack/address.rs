//! The address of the Web API. Every call carries a token, so not every address is acceptable.

use std::{fmt, net::IpAddr};

use reqwest::Url;

use crate::front::FrontError;

/// Slack's address of the Web API.
pub const DEFAULT_API_URL: &str = "https://slack.com/api";

/// Slack's domains: the public one and the one for US authorities.
const SLACK_DOMAINS: [&str; 2] = ["slack.com", "slack-gov.com"];

/// The prefix of the file hosts on these domains.
const FILES: &str = "files.";

/// The first path segment of methods, on all of Slack's hosts.
const METHODS: &str = "api";

/// The method that says whose a bot token is.
pub(super) const AUTH_TEST: &str = "auth.test";

/// The method that opens a connection.
pub(super) const OPEN: &str = "apps.connections.open";

/// An address that tokens may be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiAddress {
    base: Url,
    loopback: bool,
}

impl ApiAddress {
    /// Checks an address: loopback, or https on a Slack domain, or, with `allow_any`, https anywhere.
    pub(super) fn parse(address: &str, allow_any: bool) -> Result<Self, FrontError> {
        let refuse = |why: &str, hint: &str| FrontError::Fatal {
            what: format!("the Slack API address `{address}` {why}"),
            hint: hint.to_owned(),
        };
        let looks_like = "it looks like `https://slack.com/api`";
        let url = Url::parse(address.trim())
            .map_err(|error| refuse(&format!("is not a valid address: {error}"), looks_like))?;
        let host = url.host_str().ok_or_else(|| refuse("has no host", looks_like))?;
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("has more than a host and a path", looks_like));
        }
        let loopback = is_loopback(host);
        match url.scheme() {
            "http" if loopback => {}
            "https" if loopback || allow_any || is_slack(host) => {}
            "http" => {
                return Err(refuse(
                    "would receive the tokens unencrypted",
                    "unencrypted http is only for loopback; use https",
                ));
            }
            "https" => {
                return Err(refuse(
                    "is not Slack's, and the tokens would be sent there",
                    "unset PMK_SLACK_API_URL, or if you mean this address, give it on the command line",
                ));
            }
            _ => return Err(refuse("is neither https nor http", looks_like)),
        }
        Ok(ApiAddress { base: url, loopback })
    }

    /// Returns the URL of a method.
    pub(super) fn method(&self, method: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{method}", self.base.path().trim_end_matches('/')));
        url
    }

    /// Returns whether the token may be sent to this address, given by Slack or by the author of a message as that of a
    /// file to send or fetch. It may if the host is Slack's for files, or the workspace's own. It never may to a
    /// method.
    pub(super) fn may_get_the_token(&self, url: &Url, workspace: Option<&str>) -> bool {
        let is_of_files = url.host_str().is_some_and(|host| match url.scheme() {
            "https" => is_of_files(host) || [workspace, self.base.host_str()].contains(&Some(host)),
            "http" => self.loopback && is_loopback(host),
            _ => false,
        });
        is_of_files && !self.is_method(url)
    }

    /// Returns whether this address may be read as that of a method, however it is spelled.
    fn is_method(&self, url: &Url) -> bool {
        let path = percent_encoding::percent_decode_str(url.path()).decode_utf8_lossy().to_ascii_lowercase();
        let first = |path: &str| path.split(['/', '\\']).find(|part| !part.is_empty()).unwrap_or_default().to_owned();
        let (first_of_it, base) = (first(&path), first(&self.base.path().to_ascii_lowercase()));
        let goes_up = path.split(['/', '\\']).any(|part| part == "..");
        goes_up || first_of_it == METHODS || !base.is_empty() && first_of_it == base
    }

    /// Returns whether it never leaves this machine, so that plain http is acceptable.
    pub(super) fn is_loopback(&self) -> bool {
        self.loopback
    }
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
    }
}

/// Returns the host of this address, if it is one of Slack's.
pub(super) fn slack_host(url: &Url) -> Option<String> {
    url.host_str().filter(|host| url.scheme() == "https" && is_slack(host)).map(str::to_owned)
}

/// Returns whether a WebSocket address may be connected to: its ticket is a secret, too.
pub(super) fn is_safe_socket(url: &Url) -> bool {
    match url.scheme() {
        "wss" => true,
        "ws" => url.host_str().is_some_and(is_loopback),
        _ => false,
    }
}

fn is_loopback(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

fn is_of_files(host: &str) -> bool {
    host.strip_prefix(FILES).is_some_and(|domain| SLACK_DOMAINS.contains(&domain))
}

fn is_slack(host: &str) -> bool {
    SLACK_DOMAINS.iter().any(|domain| {
        host.strip_suffix(domain).is_some_and(|subdomain| subdomain.is_empty() || subdomain.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(address: &str, allow_any: bool) -> Result<String, String> {
        ApiAddress::parse(address, allow_any).map(|address| address.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_token_goes_with_files_of_slacks_only() {
        let slack = ApiAddress::parse(DEFAULT_API_URL, false).expect("Slack's own");
        let loopback = ApiAddress::parse("http://127.0.0.1:1/api", false).expect("loopback");
        for (url, to_slack, to_loopback) in [
            ("https://files.slack.com/upload/v1/x", true, true),
            ("https://files.slack.com/files-pri/T1-F1/download/plan.txt", true, true),
            ("https://files.slack-gov.com/files-pri/T1-F1/plan.txt", true, true),
            ("https://acme.slack.com/files-pri/T1-F1/plan.txt", true, true),
            ("https://other.slack.com/files-pri/T1-F1/plan.txt", false, false),
            ("https://files.slack.com.acme.slack.com/x", false, false),
            // Regression: anybody who could put an address into a message could have any reading method
            // called.
            ("https://slack.com/api/users.list", false, false),
            ("https://acme.slack.com/api/users.list", false, false),
            ("https://acme.slack.com//API/users.list", false, false),
            ("https://acme.slack.com/%61pi/users.list", false, false),
            ("https://acme.slack.com/x/%2e%2e/api/users.list", false, false),
            ("https://acme.slack.com/x/..%2fapi/users.list", false, false),
            ("https://files.slack.com/api/files.list", false, false),
            ("http://127.0.0.1:1/api/auth.test", false, false),
            ("https://files.slack.com@evil.example/x", false, false),
            ("https://drive.example/plan.txt", false, false),
            ("http://files.slack.com/upload/v1/x", false, false),
            ("https://slack.com.evil.example/x", false, false),
            ("http://127.0.0.1:2/upload", false, true),
        ] {
            let url = Url::parse(url).expect("an address");
            let may = [&slack, &loopback].map(|address| address.may_get_the_token(&url, Some("acme.slack.com")));
            assert_eq!(may, [to_slack, to_loopback], "{url}");
        }
    }

    #[test]
    fn slack_and_loopback_are_fine() {
        for address in [
            DEFAULT_API_URL,
            "https://SLACK.com/api",
            "https://acme.slack.com/api",
            "https://slack-gov.com/api",
            "http://127.0.0.1:8080/api",
            "http://127.8.9.1/api",
            "http://[::1]:8080/api",
            "http://localhost:8080/api",
            "https://localhost/api",
        ] {
            assert!(verdict(address, false).is_ok(), "{address}: {:?}", verdict(address, false));
        }
        assert_eq!(verdict("https://slack.com/api/", false).as_deref(), Ok("https://slack.com/api"));
    }

    #[test]
    fn tokens_are_not_sent_elsewhere() {
        for address in [
            "https://evil.example/api",
            "https://slack.com.evil.example/api",
            "https://notslack.com/api",
            "https://slack.com@evil.example/api",
            "https://evil.example/slack.com",
            "https://127.0.0.1.evil.example/api",
            "https://10.0.0.1/api",
            "http://slack.com/api",
            "ftp://slack.com/api",
            "https://slack.com/api?x=1",
            "slack.com/api",
            "",
        ] {
            assert!(verdict(address, false).is_err(), "{address}");
        }
    }

    #[test]
    fn another_address_must_be_asked_for_and_be_encrypted() {
        assert!(verdict("https://proxy.example/slack/api", true).is_ok());
        assert!(verdict("http://proxy.example/slack/api", true).is_err());
        assert!(verdict("https://user:secret@proxy.example/api", true).is_err());
    }

    #[test]
    fn a_ticket_travels_encrypted_or_stays_here() {
        for (address, safe) in [
            ("wss://wss-primary.slack.com/link/?ticket=1", true),
            ("ws://127.0.0.1:1/link", true),
            ("ws://wss-primary.slack.com/link", false),
            ("https://slack.com/", false),
        ] {
            assert_eq!(is_safe_socket(&Url::parse(address).expect(address)), safe, "{address}");
        }
    }
}
