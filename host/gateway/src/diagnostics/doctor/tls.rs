//! Checks which root certificates are trusted.

use super::Finding;
use crate::{
    messages::{DoctorRemark, Messages},
    roots,
};

const NAME: &str = "tls";

pub(super) fn look(messages: &Messages) -> Finding {
    let roots = roots::roots();
    let count = roots.store.len();
    match roots.misled_by {
        Some(variable) => {
            let (what, hint) = messages.doctor_tls_misled(count, variable);
            Finding::odd(NAME, what, hint)
        }
        None if roots.are_the_systems => Finding::well(NAME, messages.doctor_tls(count, true)),
        None => Finding::odd(NAME, messages.doctor_tls(count, false), messages.doctor(DoctorRemark::TlsHint)),
    }
}
