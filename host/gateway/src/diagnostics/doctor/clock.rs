//! Checks this machine's clock against that of a server that has just answered.

use jiff::SignedDuration;

use super::Finding;
use crate::{
    messages::{ClockOf, DoctorRemark, Messages},
    roots,
};

pub(super) const NAME: &str = "clock";

/// With a larger difference, times in the ledger and in conversations are misleading.
const ODD: SignedDuration = SignedDuration::from_secs(60);
/// With a larger difference, signatures, time limits and retries fail.
const BAD: SignedDuration = SignedDuration::from_secs(300);

/// Reports how far the clock is ahead of Slack's, or else of the model's. If it is days off, neither can answer: their
/// certificates are not valid at that time, as their findings say.
pub(super) fn look<'a>(
    slack: Option<SignedDuration>,
    model: Option<SignedDuration>,
    findings: impl IntoIterator<Item = &'a Finding>,
    messages: &Messages,
) -> Finding {
    let (whose, ahead) = match (slack, model) {
        (Some(ahead), _) => (ClockOf::Slack, ahead),
        (None, Some(ahead)) => (ClockOf::Model, ahead),
        (None, None) if findings.into_iter().any(|finding| roots::blames_the_clock(&finding.what)) => {
            let (what, hint) = (DoctorRemark::ClockOfCertificates, DoctorRemark::ClockHint);
            return Finding::bad(NAME, messages.doctor(what), messages.doctor(hint));
        }
        (None, None) => return Finding::left_out(NAME, messages.doctor(DoctorRemark::ClockUnknown)),
    };
    let off = ahead.abs();
    if off <= ODD {
        return Finding::well(NAME, messages.doctor_clock(whose));
    }
    let (what, hint) = (messages.doctor_clock_off(whose, ahead), messages.doctor(DoctorRemark::ClockHint));
    if off > BAD { Finding::bad(NAME, what, hint) } else { Finding::odd(NAME, what, hint) }
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;
    use crate::diagnostics::doctor::State;

    #[test]
    fn it_is_judged_by_the_minute() {
        let messages = Messages::new(Language::English);
        let of = |seconds| {
            let found = look(None, Some(SignedDuration::from_secs(seconds)), [], &messages);
            (found.state, found.what)
        };
        for (seconds, state, what) in [
            (0, State::Well, "within a minute of the model's"),
            (-60, State::Well, "within a minute of the model's"),
            (61, State::Odd, "1 min ahead of the model's"),
            (-300, State::Odd, "5 min behind the model's"),
            (301, State::Bad, "5 min ahead of the model's"),
            (-7_200, State::Bad, "120 min behind the model's"),
        ] {
            assert_eq!(of(seconds), (state, what.to_owned()), "{seconds}");
        }
        assert_eq!(look(None, None, [], &messages).state, State::LeftOut);
    }

    #[test]
    fn a_clock_that_makes_certificates_invalid_is_not_left_out() {
        let messages = Messages::new(Language::English);
        let of = |why: &str| {
            let what = format!("`auth.test` did not reach Slack: invalid peer certificate: {why}");
            look(None, None, [&Finding::bad("slack bot", what, "")], &messages).state
        };
        for why in [
            rustls::CertificateError::Expired.to_string(),
            "certificate expired: verification time 4 (UNIX), but certificate is not valid after 3".to_owned(),
            "certificate not valid yet: verification time 2 (UNIX), but certificate is not valid before 3".to_owned(),
        ] {
            let expected = if why.starts_with("certificate ") { State::Bad } else { State::LeftOut };
            assert_eq!(of(&why), expected, "{why}");
        }
        assert_eq!(of("UnknownIssuer"), State::LeftOut);
    }
}
