//! Checks whether anybody is told when something needs a person.

use std::path::Path;

use pmk_system::home;

use super::Finding;
use crate::{
    config::Config,
    messages::{DoctorRemark, Messages},
};

const NAME: &str = "admins";

/// Returns a finding if there are none.
pub(super) fn look(home: &Path, config: &Config, messages: &Messages) -> Option<Finding> {
    config.people.admins.is_empty().then(|| {
        let add = home::command(home, "admin add U012AB3CD");
        Finding::odd(NAME, messages.doctor(DoctorRemark::AdminsNone), messages.doctor_admins_hint(&add))
    })
}
