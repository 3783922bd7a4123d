//! The home: whose it is, who may look in, how much room there is, and on what kind of disk.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use pmk_system::home;
use rustix::fs::statvfs;

use super::Finding;

const NAME: &str = "home";

/// Others may read here, or go through.
const FOR_OTHERS: u32 = 0o077;

/// With less room than this, in bytes, a busy week may fill the disk.
const LITTLE: u64 = 200 << 20;
/// With less than this the store cannot be relied on for an hour.
const NO_ROOM: u64 = 20 << 20;

pub(super) fn look(home: &Path) -> Vec<Finding> {
    if let Err(failure) = home::check_trusted(home) {
        return vec![Finding::failed(NAME, failure, "docs/sessions-and-store.md#the-home")];
    }
    let shown = home.display();
    let metadata = match fs::metadata(home) {
        Ok(metadata) if metadata.is_dir() => metadata,
        Ok(_) => return vec![Finding::bad(NAME, format!("`{shown}` is no folder"), "say `--home DIR`")],
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return vec![Finding::odd(NAME, format!("there is no `{shown}` yet"), "the first `pmk-host run` makes it")];
        }
        Err(error) => {
            return vec![Finding::bad(NAME, format!("cannot look at `{shown}`: {error}"), "say `--home DIR`")];
        }
    };
    let mut findings = vec![];
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & FOR_OTHERS != 0 {
        let quoted = shown.to_string().replace('\'', r"'\''");
        findings.push(Finding::odd(
            NAME,
            format!("other users can look into `{shown}` (mode {mode:03o}), where people's conversations are"),
            format!("`chmod go-rwx '{quoted}'`"),
        ));
    }
    if let Some(kind) = network(home) {
        findings.push(Finding::odd(
            NAME,
            format!("`{shown}` is on a network file system ({kind}), where locks cannot be relied on"),
            "keep the home on a disk of this machine, with `--home DIR`",
        ));
    }
    let free = statvfs(home).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)).unwrap_or(u64::MAX);
    let room = format!("{} MiB are free", free >> 20);
    if free < LITTLE {
        let (what, hint) = (format!("`{shown}`: only {room}"), "make room on that disk");
        findings.push(if free < NO_ROOM { Finding::bad(NAME, what, hint) } else { Finding::odd(NAME, what, hint) });
    }
    if findings.is_empty() {
        let owner = metadata.uid();
        findings.push(Finding::well(NAME, format!("`{shown}`: uid {owner}, mode {mode:03o}, {room}")));
    }
    findings
}

/// The kind of file system, where that is one that several machines share.
#[cfg(target_os = "linux")]
fn network(home: &Path) -> Option<&'static str> {
    // As statfs(2) numbers them; the width of the field differs between machines, and so does its sign.
    let kind = rustix::fs::statfs(home).ok()?.f_type as u32;
    match kind {
        0x6969 => Some("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("SMB"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f => Some("AFS"),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn network(_: &Path) -> Option<&'static str> {
    None
}
