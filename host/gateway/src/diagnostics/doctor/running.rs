//! Checks whether a gateway runs in this home, and its status; if none does, whether one could answer health probes.

use std::{net::SocketAddr, path::Path};

use pmk_system::home;

use super::Finding;
use crate::{
    control,
    messages::{DoctorRemark, Messages},
    presence::{health::Level, probes},
};

const NAME: &str = "gateway";
const PROBES: &str = "health";

/// `listen` is where a gateway is to answer health probes. One that runs listens there already.
pub(super) fn look(home: &Path, listen: Option<SocketAddr>, messages: &Messages) -> Vec<Finding> {
    let look = match control::look(home) {
        Ok(look) => look,
        Err(failure) => return vec![Finding::failed(NAME, failure, "docs/operating.md#is-it-well", messages)],
    };
    if let Some(holder) = look.work {
        let what = messages.doctor_gateway_work(holder.purpose.command(), holder.pid);
        return vec![Finding::odd(NAME, what, messages.doctor(DoctorRemark::GatewayWorkHint))];
    }
    let Some(pid) = look.pid else {
        let none = Finding::well(NAME, messages.doctor(DoctorRemark::GatewayNone));
        let refused = listen.and_then(|address| probes::try_address(address).err());
        let refused = refused.map(|failure| Finding::failed(PROBES, failure, "docs/operating.md#probes", messages));
        return [none].into_iter().chain(refused).collect();
    };
    let what = messages.doctor_gateway(pid, look.reasons.iter().map(|reason| (reason.name(), reason.count())));
    vec![match look.level {
        Level::Healthy => Finding::well(NAME, what),
        Level::Degraded => Finding::odd(NAME, what, format!("`{}`", home::command(home, "status"))),
        Level::Down => Finding::bad(NAME, what, messages.doctor_gateway_again(&home::command(home, "stop"))),
    }]
}
