//! A separate network namespace that contains only the servers that are let in, and which can be cut off: then nothing
//! gets in or out, without any error. Packets that were under way arrive when it is mended.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::fd::AsFd,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{not_run, relay::Relay};

/// Set where a machine without `ip` is a mistake.
const REQUIRED: &str = "PMK_TEST_NAMESPACES";

/// A namespace that is deleted when this is dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates a namespace; `None`, with a message, if this user may not create any.
    ///
    /// # Panics
    /// If there is no `ip` where it is required.
    pub fn new() -> Option<Namespace> {
        let has_ip = Command::new("ip").arg("-Version").output().is_ok();
        assert!(has_ip || std::env::var_os(REQUIRED).is_none(), "`{REQUIRED}` is set and there is no `ip`");
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("pmk-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let namespace = Namespace { name };
        match ip(&["netns", "add", &namespace.name]).and_then(|()| namespace.has_loopback(true)) {
            Ok(()) => Some(namespace),
            Err(why) => {
                not_run::say(format_args!("in a network of its own: {why}"));
                None
            }
        }
    }

    /// Makes a server on this machine's loopback reachable on the namespace's loopback: on this port, or on any if it
    /// is 0.
    ///
    /// # Panics
    /// If the port is in use there.
    pub fn let_in(&self, server: SocketAddr, port: u16) -> Relay {
        let namespace = File::open(format!("/run/netns/{}", self.name)).expect("it is there");
        // A socket stays in the namespace where it was created; this thread ends, so that it need not return.
        let bound = thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("one may go there");
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a port")
        });
        Relay::over(bound.join().expect("a listener"), server)
    }

    /// The same command for a process in the namespace.
    pub fn command(&self, command: &Command) -> Command {
        let mut within = Command::new("ip");
        within.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => within.env(name, value),
                None => within.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            within.current_dir(folder);
        }
        within
    }

    /// Cuts the namespace off.
    ///
    /// # Panics
    /// If it does not exist any more.
    pub fn cut(&self) {
        self.has_loopback(false).expect("it can be cut off");
    }

    /// Reconnects the namespace.
    ///
    /// # Panics
    /// If it does not exist any more.
    pub fn mend(&self) {
        self.has_loopback(true).expect("it can be mended");
    }

    fn has_loopback(&self, has: bool) -> Result<(), String> {
        ip(&["-n", &self.name, "link", "set", "lo", if has { "up" } else { "down" }])
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It does not exist if it could not be created.
        let _ = ip(&["netns", "del", &self.name]);
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("`ip`: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
        process::Stdio,
    };

    use super::*;

    #[test]
    fn what_is_in_there_reaches_what_is_let_in_and_nothing_while_it_is_cut_off() {
        let Some(namespace) = Namespace::new() else { return };
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let relay = namespace.let_in(address, address.port());
        assert_eq!(relay.address(), address);
        // `bash` can open sockets itself.
        let mut script = Command::new("bash");
        script.args(["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{}; echo hello >&3; cat <&3", address.port())]);
        let mut child = namespace.command(&script).stdout(Stdio::piped()).spawn().unwrap();
        let (mut inside, _) = server.accept().unwrap();
        let mut hello = [0; 6];
        inside.read_exact(&mut hello).unwrap();
        assert_eq!(&hello, b"hello\n");
        namespace.cut();
        inside.write_all(b"late\n").unwrap();
        let mut knock = Command::new("bash");
        // A client that connects there gets no response, and gives up after its second try.
        let tries = "echo 1 >/proc/sys/net/ipv4/tcp_syn_retries";
        knock.args(["-c", &format!("{tries}; exec 3<>/dev/tcp/127.0.0.1/{}", address.port())]);
        let is_reached = || namespace.command(&knock).stderr(Stdio::null()).status().unwrap().success();
        assert!(!is_reached());
        assert!(child.try_wait().unwrap().is_none(), "nobody was told");
        namespace.mend();
        assert!(is_reached());
        drop(inside);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "late\n");
        assert!(TcpStream::connect(address).is_ok(), "out here nothing has changed");
    }
}
