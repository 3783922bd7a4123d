//! Checks whether a gateway could start with the store. It is opened for reading only.

use pmk_system::{error::Failure, home};

use super::{Finding, Part, getting};
use crate::{
    messages::{DoctorRemark, Messages, StoreFound},
    store::{Examined, Kept, Place, Store},
};

const NAME: &str = "store";
const PAGE: &str = "docs/backups.md";

/// Checks the store. If it cannot be used because of the home or gateway.json, their checks report that.
pub(super) fn look(place: Part<Place>, home_is_bad: bool, config_is_bad: bool, messages: &Messages) -> Finding {
    let place = match getting(NAME, place, messages) {
        Ok(place) => place(),
        Err(finding) => return finding,
    };
    let place = match place {
        Ok(place) => place,
        Err(_) if home_is_bad => return Finding::left_out(NAME, messages.doctor(DoctorRemark::BecauseOfHome)),
        Err(_) if config_is_bad => return Finding::left_out(NAME, messages.doctor(DoctorRemark::BecauseOfConfig)),
        Err(failure) => return Finding::failed(NAME, failure, PAGE, messages),
    };
    let examined = home::check_trusted(&place.home).and_then(|()| Store::examine(&place).map_err(Failure::from));
    match examined {
        Ok(Some(Examined { schema, known, kept: Kept::File { bytes, is_read } })) => {
            let found = StoreFound { schema, known, mib: bytes.div_ceil(1 << 20), is_read };
            Finding::well(NAME, messages.doctor_store(found))
        }
        Ok(Some(Examined { schema, known, kept: Kept::Database { name, host } })) => {
            Finding::well(NAME, messages.doctor_database((schema, known), &name, host.as_deref()))
        }
        Ok(None) => Finding::well(NAME, messages.doctor(DoctorRemark::StoreNone)),
        Err(_) if home_is_bad => Finding::left_out(NAME, messages.doctor(DoctorRemark::BecauseOfHome)),
        Err(failure) => Finding::failed(NAME, failure, PAGE, messages),
    }
}
