//! The service manager that has started and supervises this process: systemd, by the protocol of `sd_notify(3)`.
//!
//! The crate for it, `sd-notify`, does not support sockets in the abstract namespace, which managers in containers use.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    os::unix::net::{SocketAddr, UnixDatagram},
    time::Duration,
};

/// The time limit for sending a message to the manager.
const PATIENCE: Duration = Duration::from_secs(1);

/// A service manager that accepts notifications.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The manager of this process, from `NOTIFY_SOCKET`; `None` if that is not set.
    ///
    /// # Errors
    /// If the variable does not name a socket, or there are no file descriptors left.
    pub fn of_environment() -> io::Result<Option<ServiceManager>> {
        let Some(named) = env::var_os("NOTIFY_SOCKET").filter(|named| !named.is_empty()) else { return Ok(None) };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Some(ServiceManager { socket, address: address(&named)?, watchdog: watchdog() }))
    }

    /// The interval within which it expects `WATCHDOG=1`; otherwise it ends this process.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Sends assignments such as `READY=1`, each on its own line.
    ///
    /// # Errors
    /// If the manager is gone or does not accept messages.
    pub fn tell(&self, assignments: &[&str]) -> io::Result<()> {
        self.socket.send_to_addr(assignments.join("\n").as_bytes(), &self.address).map(drop)
    }
}

/// The unit of the system's manager, systemd, that has started a process, without the `.service`. What a shell below a
/// service starts is in the unit of that service, which is another one.
pub fn unit_of(pid: u32) -> Option<String> {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    if !is_of_the_manager(&read("status")?) {
        return None;
    }
    unit_in(&read("cgroup")?)
}

/// Whether the parent of a process is the system's manager, by the text of `/proc/PID/status`.
fn is_of_the_manager(status: &str) -> bool {
    status.lines().find_map(|line| line.strip_prefix("PPid:")).is_some_and(|parent| parent.trim() == "1")
}

/// Reads it from the text of `/proc/PID/cgroup`. What a person's own manager has started is in a slice of that person.
fn unit_in(cgroups: &str) -> Option<String> {
    let paths = cgroups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut units = paths.filter_map(|path| {
        let mut folders = path.strip_prefix("/system.slice/")?.split('/');
        folders.find_map(|folder| folder.strip_suffix(".service")).map(str::to_owned)
    });
    units.next()
}

/// Parses a path, or a name in the abstract namespace after an `@`.
fn address(named: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = named.as_encoded_bytes().strip_prefix(b"@") {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(named)
}

/// `WATCHDOG_USEC`, unless it is meant for another process.
fn watchdog() -> Option<Duration> {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    if number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id())) {
        return None;
    }
    number("WATCHDOG_USEC").filter(|us| *us > 0).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::{is_of_the_manager, unit_in};

    #[test]
    fn what_a_shell_below_a_service_starts_is_not_that_service() {
        let status = |parent: u32| format!("Name:\tpmk-host\nTgid:\t70\nPid:\t70\nPPid:\t{parent}\nTracerPid:\t1\n");
        assert!(is_of_the_manager(&status(1)));
        assert!(!is_of_the_manager(&status(11)) && !is_of_the_manager(""));
    }

    #[test]
    fn the_unit_of_a_process_is_that_of_the_systems_manager() {
        for (cgroups, unit) in [
            ("0::/system.slice/pmk-host.service\n", Some("pmk-host")),
            ("12:pids:/system.slice/pmk@one.service\n0::/system.slice/pmk@one.service\n", Some("pmk@one")),
            ("0::/system.slice/system-pmk.slice/pmk@one.service\n", Some("pmk@one")),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/pmk-host.service\n", None),
            ("0::/user.slice/user-0.slice/session-3.scope\n", None),
            ("0::/system.slice/docker-0123.scope\n", None),
            ("0::/\n", None),
            ("", None),
        ] {
            assert_eq!(unit_in(cgroups).as_deref(), unit, "{cgroups}");
        }
    }
}
