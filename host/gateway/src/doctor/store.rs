//! The store: whether a gateway could start with it. It is opened to be read, and never changed.

use std::path::Path;

use pmk_system::{error::Failure, home};

use super::Finding;
use crate::{
    messages::{DoctorRemark, Messages, StoreFound},
    store::{Examined, Store},
};

const NAME: &str = "store";
const PAGE: &str = "docs/backups.md";

/// What is wrong with the home keeps the store in it from being used, and is said there.
pub(super) fn look(home: &Path, home_is_bad: bool, messages: &Messages) -> Finding {
    let examined = home::check_trusted(home).and_then(|()| Store::examine(home).map_err(Failure::from));
    match examined {
        Ok(Some(Examined { schema, known, bytes, is_read })) => {
            let found = StoreFound { schema, known, mib: bytes.div_ceil(1 << 20), is_read };
            Finding::well(NAME, messages.doctor_store(found))
        }
        Ok(None) => Finding::well(NAME, messages.doctor(DoctorRemark::StoreNone)),
        Err(_) if home_is_bad => Finding::left_out(NAME, messages.doctor(DoctorRemark::BecauseOfHome)),
        Err(failure) => Finding::failed(NAME, failure, PAGE, messages),
    }
}
