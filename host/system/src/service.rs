//! The service manager that has started this process and looks after it, where it wants to be told: systemd, by the
//! protocol of `sd_notify(3)`.
//!
//! The crate for it, `sd-notify`, reaches no socket in the abstract namespace, which is where managers in containers
//! have theirs.

use std::{
    env,
    ffi::OsStr,
    io,
    os::unix::net::{SocketAddr, UnixDatagram},
    time::Duration,
};

/// How long a manager may take to let a word in.
const PATIENCE: Duration = Duration::from_secs(1);

/// A manager that listens.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// That of this process, by `NOTIFY_SOCKET`; without it there is none.
    ///
    /// # Errors
    /// The variable names no socket, or there are no handles left.
    pub fn of_environment() -> io::Result<Option<ServiceManager>> {
        let Some(named) = env::var_os("NOTIFY_SOCKET").filter(|named| !named.is_empty()) else { return Ok(None) };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Some(ServiceManager { socket, address: address(&named)?, watchdog: watchdog() }))
    }

    /// Within what time it wants to hear `WATCHDOG=1` again, or it ends this process.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells it something: assignments such as `READY=1`, each in one line.
    ///
    /// # Errors
    /// It is gone, or does not listen.
    pub fn tell(&self, assignments: &[&str]) -> io::Result<()> {
        self.socket.send_to_addr(assignments.join("\n").as_bytes(), &self.address).map(drop)
    }
}

/// A path, or after an `@` a name in the abstract namespace.
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
