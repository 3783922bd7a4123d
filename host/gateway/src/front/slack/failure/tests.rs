use super::*;

fn failure(cause: Cause) -> CallFailure {
    CallFailure { method: "chat.update", token: Token::Bot, cause }
}

fn code(code: &str) -> CallFailure {
    failure(Cause::Code { code: code.to_owned(), needed: None })
}

#[test]
fn codes_mean_what_slack_means() {
    for refused in ["message_not_found", "msg_too_long", "cant_update_message", "edit_window_closed", "is_archived"] {
        assert!(matches!(code(refused).while_running(), FrontError::Refused { may_pass: false, .. }), "{refused}");
    }
    for passing in ["internal_error", "service_unavailable", "ratelimited"] {
        assert!(matches!(code(passing).while_running(), FrontError::Transient { .. }), "{passing}");
    }
    for fatal in ["invalid_auth", "token_revoked", "account_inactive", "missing_scope"] {
        assert!(matches!(code(fatal).while_running(), FrontError::Fatal { .. }), "{fatal}");
    }
    for cause in [Cause::Status(502), Cause::TimedOut(Duration::from_secs(10)), Cause::Unreadable] {
        assert!(matches!(failure(cause).while_running(), FrontError::Transient { .. }));
    }
    let locked = || failure(Cause::Locked { code: "ekm_access_denied".to_owned() });
    assert!(matches!(locked().while_running(), FrontError::Transient { .. }));
    assert!(!locked().is_final() && !locked().is_about_the_place() && !locked().is_about_content());
}

/// Regression: what one channel does not allow was taken for a token that Slack does not accept anywhere.
#[test]
fn what_one_place_refuses_was_blamed_on_the_token() {
    for refused in OF_APP_OR_PLACE {
        let failure = code(refused);
        assert!(!failure.is_about_the_app() && failure.is_final() && !failure.is_about_content(), "{refused}");
        assert!(matches!(failure.while_running(), FrontError::Refused { may_pass: false, .. }), "{refused}");
        let cause = || Cause::Code { code: refused.to_owned(), needed: None };
        let of_itself = CallFailure { method: AUTH_TEST, token: Token::Bot, cause: cause() };
        assert!(of_itself.is_about_the_app(), "{refused}");
        assert!(matches!(of_itself.while_running(), FrontError::Fatal { .. }), "{refused}");
        let of_sockets = CallFailure { method: OPEN, token: Token::App, cause: cause() };
        assert!(matches!(of_sockets.while_running(), FrontError::Fatal { .. }), "{refused}");
        assert!(is_fatal(refused), "{refused}");
    }
}

/// Regression: what had never reached Slack, or was refused until a new token is there, may have had an effect.
#[test]
fn a_call_that_was_certainly_not_made_was_in_doubt() {
    let (why, code) = (|| "no route".to_owned(), || "token_revoked".to_owned());
    for (cause, expected) in [
        (Cause::Unreachable(why()), true),
        (Cause::ConnectTimedOut(why()), true),
        (Cause::AwaitsToken { code: code() }, true),
        (Cause::Locked { code: code() }, true),
        (Cause::RateLimited { retry_after: Duration::ZERO }, true),
        (Cause::Broken(why()), false),
        (Cause::TimedOut(Duration::ZERO), false),
        (Cause::Status(502), false),
    ] {
        let end = failure(cause).while_running();
        assert!(matches!(end, FrontError::Transient { not_made, .. } if not_made == expected), "{end:?}");
    }
}

#[test]
fn the_hint_of_a_failure_is_about_its_token_and_its_code() {
    let hint = |token, code: &str, needed: Option<&str>| {
        let cause = Cause::Code { code: code.to_owned(), needed: needed.map(str::to_owned) };
        match (CallFailure { method: "auth.test", token, cause }).at_start() {
            FrontError::Fatal { hint, .. } => hint,
            other => other.to_string(),
        }
    };
    let app = hint(Token::App, "missing_scope", Some("connections:write"));
    assert!(app.contains("`connections:write`: generate a new one") && app.contains("App-Level Tokens"), "{app}");
    assert!(hint(Token::Bot, "missing_scope", Some("chat:write")).contains("under OAuth & Permissions"));
    assert_eq!(hint(Token::Bot, "ratelimited", None), "wait a minute and try again");
    assert!(hint(Token::Bot, "flux_capacitor_empty", None).ends_with("/reference/methods/auth.test"));
    assert!(hint(Token::Bot, "internal_error", None).contains("may have an outage"));
}

#[test]
fn a_certificate_that_is_not_valid_at_this_time_is_a_matter_of_the_clock() {
    let hint = |why: &str| match (CallFailure {
        method: "auth.test",
        token: Token::Bot,
        cause: Cause::Unreachable(why.to_owned()),
    })
    .at_start()
    {
        FrontError::Fatal { hint, .. } => hint,
        other => other.to_string(),
    };
    let late = hint("invalid peer certificate: certificate expired: verification time 4 (UNIX)");
    assert!(late.starts_with("check this machine's clock"), "{late}");
    assert!(hint("Connection refused (os error 111)").contains("directly, without HTTPS_PROXY"));
}

#[test]
fn what_nobody_has_listed_is_tried_in_another_form() {
    for unknown in ["flux_capacitor_empty", "?"] {
        assert!(code(unknown).is_about_content(), "{unknown}");
        assert!(matches!(code(unknown).while_running(), FrontError::Refused { may_pass: true, .. }), "{unknown}");
    }
    for known in ["channel_not_found", "is_archived", "restricted_action_read_only_channel", "invalid_auth"] {
        assert!(!code(known).is_about_content(), "{known}");
    }
}

#[test]
fn a_code_of_a_megabyte_is_no_line_of_the_log() {
    assert_eq!(super::code("<!channel>\u{1b}[31mnot_a_code"), "channel31mnot_a_code");
    assert_eq!(super::code(&"z".repeat(1 << 20)), "z".repeat(MOST_OF_A_CODE));
    assert_eq!(super::code("錯誤"), "?");
}

#[test]
fn no_header_keeps_the_gateway_silent_for_ever() {
    let asked = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().expect("a header"));
        wait_asked_for(&headers).as_secs()
    };
    assert_eq!(asked("30"), 30);
    for absurd in ["301", "1000000000000", "18446744073709551615", "1e12", "Wed, 21 Oct 2201 07:28:00 GMT"] {
        assert_eq!(asked(absurd), 300, "{absurd}");
    }
    for none in ["-1", "soon", "", "1e300"] {
        assert_eq!(asked(none), UNSAID_WAIT.as_secs(), "{none}");
    }
    assert_eq!(asked("Wed, 21 Oct 2015 07:28:00 GMT"), 0, "that is over");
}

#[test]
fn a_missing_scope_is_named() {
    let cause = Cause::Code { code: "missing_scope".to_owned(), needed: Some("chat:write".to_owned()) };
    let FrontError::Fatal { what, hint } = failure(cause).while_running() else { panic!("not fatal") };
    assert_eq!(
        what,
        "`chat.update` with the bot token (xoxb-…) failed: Slack says `missing_scope`, it needs `chat:write`"
    );
    assert!(hint.contains("chat:write"));
}
