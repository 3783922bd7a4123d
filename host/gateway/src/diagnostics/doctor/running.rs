//! Checks whether a gateway runs in this home, and its status.

use std::path::Path;

use pmk_system::home;

use super::Finding;
use crate::{
    control,
    messages::{DoctorRemark, Messages},
    presence::health::Level,
};

const NAME: &str = "gateway";

pub(super) fn look(home: &Path, messages: &Messages) -> Finding {
    let look = match control::look(home) {
        Ok(look) => look,
        Err(failure) => return Finding::failed(NAME, failure, "docs/operating.md#is-it-well", messages),
    };
    if let Some(holder) = look.work {
        let what = messages.doctor_gateway_work(holder.purpose.command(), holder.pid);
        return Finding::odd(NAME, what, messages.doctor(DoctorRemark::GatewayWorkHint));
    }
    let Some(pid) = look.pid else { return Finding::well(NAME, messages.doctor(DoctorRemark::GatewayNone)) };
    let what = messages.doctor_gateway(pid, look.reasons.iter().map(|reason| (reason.name(), reason.count())));
    match look.level {
        Level::Healthy => Finding::well(NAME, what),
        Level::Degraded => Finding::odd(NAME, what, "`pmk-host status`"),
        Level::Down => Finding::bad(NAME, what, messages.doctor_gateway_again(&home::command(home, "stop"))),
    }
}
