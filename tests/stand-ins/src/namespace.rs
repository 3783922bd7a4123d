//! A network of a process's own, in which there is nothing but what is let in, and which can be cut off: then nothing goes in or out,
//! and nobody is told. What was on its way arrives when it is mended.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::fd::AsFd,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::relay::Relay;

/// One that is gone when this is dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new one; nothing where whoever runs this may not make any, which is said.
    pub fn new() -> Option<Namespace> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("pmk-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let namespace = Namespace { name };
        match ip(&["netns", "add", &namespace.name]).and_then(|()| namespace.has_loopback(true)) {
            Ok(()) => Some(namespace),
            Err(why) => {
                eprintln!("NOT RUN in a network of its own: {why}");
                None
            }
        }
    }

    /// Lets a server on this machine's loopback be reached on that of the namespace: on this port, or on any.
    ///
    /// # Panics
    /// The port is taken there.
    pub fn let_in(&self, server: SocketAddr, port: u16) -> Relay {
        let namespace = File::open(format!("/run/netns/{}", self.name)).expect("it is there");
        // A socket stays where it was made, and this thread is nowhere else ever after.
        let bound = thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("one may go there");
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a port")
        });
        Relay::over(bound.join().expect("a listener"), server)
    }

    /// The same command for a process that is in there.
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

    /// Cuts it off.
    ///
    /// # Panics
    /// It is gone.
    pub fn cut(&self) {
        self.has_loopback(false).expect("it can be cut off");
    }

    /// Ends that.
    ///
    /// # Panics
    /// It is gone.
    pub fn mend(&self) {
        self.has_loopback(true).expect("it can be mended");
    }

    fn has_loopback(&self, has: bool) -> Result<(), String> {
        ip(&["-n", &self.name, "link", "set", "lo", if has { "up" } else { "down" }])
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // One that was never made is not there.
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
        // `bash` opens sockets by itself.
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
        // Whoever knocks there is not answered, and gives up after its second try.
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
