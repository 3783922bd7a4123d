//! Whom TLS trusts.

use super::Finding;
use crate::front::slack::tls;

const NAME: &str = "tls";

pub(super) fn look() -> Finding {
    let roots = tls::roots();
    let count = roots.store.len();
    if roots.are_the_systems {
        Finding::well(NAME, format!("{count} root certificates of this system"))
    } else {
        Finding::odd(
            NAME,
            format!("this system has no root certificates: Slack is reached by {count} of Mozilla's, which are inside"),
            "install the package `ca-certificates`; models are reached by it alone",
        )
    }
}
