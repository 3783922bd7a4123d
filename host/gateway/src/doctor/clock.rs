//! This machine's clock, against that of a server that has just answered.

use jiff::SignedDuration;

use super::Finding;

pub(super) const NAME: &str = "clock";

/// So far off, times in ledger and conversations mislead.
const ODD: SignedDuration = SignedDuration::from_secs(60);
/// So far off, what is signed, bounded or repeated in time goes wrong.
const BAD: SignedDuration = SignedDuration::from_secs(300);

/// How far it is ahead of whom; the first who has said so counts.
pub(super) fn look(ahead: [(&str, Option<SignedDuration>); 2]) -> Finding {
    let Some((whose, ahead)) = ahead.into_iter().find_map(|(whose, ahead)| Some((whose, ahead?))) else {
        return Finding::left_out(NAME, "compared only where Slack or the model answers");
    };
    let off = ahead.abs();
    if off <= ODD {
        return Finding::well(NAME, format!("within a minute of what {whose} says"));
    }
    let minutes = off.as_secs().saturating_add(30) / 60;
    let way = if ahead.is_negative() { "behind" } else { "ahead of" };
    let what = format!("{minutes} min {way} what {whose} says");
    let hint = "set it, best by NTP: `timedatectl set-ntp true`";
    if off > BAD { Finding::bad(NAME, what, hint) } else { Finding::odd(NAME, what, hint) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn it_is_judged_by_the_minute() {
        let of = |seconds| {
            let found = look([("Slack", None), ("the model", Some(SignedDuration::from_secs(seconds)))]);
            (found.state, found.what)
        };
        for (seconds, state, what) in [
            (0, State::Well, "within a minute of what the model says"),
            (-60, State::Well, "within a minute of what the model says"),
            (61, State::Odd, "1 min ahead of what the model says"),
            (-300, State::Odd, "5 min behind what the model says"),
            (301, State::Bad, "5 min ahead of what the model says"),
            (-7_200, State::Bad, "120 min behind what the model says"),
        ] {
            assert_eq!(of(seconds), (state, what.to_owned()), "{seconds}");
        }
        assert_eq!(look([("Slack", None), ("the model", None)]).state, State::LeftOut);
    }
}
