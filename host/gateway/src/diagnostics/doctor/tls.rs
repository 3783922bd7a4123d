//! Checks which root certificates are trusted.

use super::Finding;
use crate::{
    messages::{DoctorRemark, Messages},
    roots,
};

const NAME: &str = "tls";

pub(super) fn look(messages: &Messages) -> Finding {
    let roots = roots::roots();
    let what = messages.doctor_tls(roots.store.len(), roots.are_the_systems);
    match roots.are_the_systems {
        true => Finding::well(NAME, what),
        false => Finding::odd(NAME, what, messages.doctor(DoctorRemark::TlsHint)),
    }
}
