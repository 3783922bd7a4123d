//! Checks the home: owner, permissions, whether files can be created and its own files can be written there, free space,
//! and the kind of file system.

use std::{
    fs::{self, Metadata, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use jiff::Timestamp;
use pmk_knowledge::files;
use pmk_system::home;
use rustix::fs::statvfs;

use super::{Finding, State};
use crate::{
    ledger::export,
    messages::{DoctorRemark, HomeFound, Messages},
};

const NAME: &str = "home";

/// Permission bits for group and others.
const FOR_OTHERS: u32 = 0o077;

/// With less free space than this, in bytes, a busy week may fill the disk.
const LITTLE: u64 = 200 << 20;
/// With less than this, the store may fail within an hour.
const NO_ROOM: u64 = 20 << 20;

/// The files in `gateway/` that a start opens for writing, besides the store itself and the ledger.
const OPENED: [&str; 5] = ["run.lock", "config.lock", "pmk-host.db-wal", "pmk-host.db-shm", "pmk-host.db-journal"];

/// The findings about the home.
pub(super) struct Looked {
    pub findings: Vec<Finding>,
    /// Whether the home cannot be used itself, so that what is in it is not looked at. A file that cannot be used hides
    /// no other.
    pub is_bad: bool,
}

impl Looked {
    fn of(finding: Finding) -> Looked {
        Looked { is_bad: finding.state == State::Bad, findings: vec![finding] }
    }
}

pub(super) fn look(home: &Path, messages: &Messages) -> Looked {
    if let Err(failure) = home::check_folder(home).and_then(|()| home::check_trusted(home)) {
        return Looked::of(Finding::failed(NAME, failure, "docs/sessions-and-store.md#the-home", messages));
    }
    let what = match fs::metadata(home) {
        Ok(metadata) => return look_into(home, &metadata, messages),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let what = messages.doctor_home(home, HomeFound::NoneYet);
            return Looked::of(Finding::odd(NAME, what, messages.doctor(DoctorRemark::HomeFirstRun)));
        }
        Err(error) => messages.doctor_home(home, HomeFound::NotSeen { error: &error.to_string() }),
    };
    Looked::of(Finding::bad(NAME, what, messages.doctor(DoctorRemark::HomeSay)))
}

fn look_into(home: &Path, metadata: &Metadata, messages: &Messages) -> Looked {
    let mut findings = vec![];
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & FOR_OTHERS != 0 {
        let quoted = home.display().to_string().replace('\'', r"'\''");
        let what = messages.doctor_home(home, HomeFound::Open { mode });
        findings.push(Finding::odd(NAME, what, format!("`chmod go-rwx '{quoted}'`")));
    }
    let hint = messages.doctor(DoctorRemark::HomeWriteHint);
    let not_written = |folder: &Path, error: &io::Error| {
        messages.doctor_home(folder, HomeFound::NotWritten { error: &error.to_string() })
    };
    let gateway = home::gateway_dir(home);
    for folder in [home, &gateway] {
        if let Some(error) = unwritable(folder) {
            findings.push(Finding::bad(NAME, not_written(folder, &error), hint.clone()));
        }
    }
    if let Some(kind) = network(home) {
        let what = messages.doctor_home(home, HomeFound::Network { kind });
        findings.push(Finding::odd(NAME, what, messages.doctor(DoctorRemark::HomeNetworkHint)));
    }
    let free = statvfs(home).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)).unwrap_or(u64::MAX);
    let mib = free >> 20;
    if free < LITTLE {
        let what = messages.doctor_home(home, HomeFound::LittleRoom { mib });
        let hint = messages.doctor(DoctorRemark::HomeMakeRoom);
        findings.push(if free < NO_ROOM { Finding::bad(NAME, what, hint) } else { Finding::odd(NAME, what, hint) });
    }
    let is_bad = findings.iter().any(|finding| finding.state == State::Bad);
    let knowledge = files::folder(home);
    if let Some(error) = unwritable(&knowledge) {
        // A gateway answers with atoms that it can only read.
        let state = if knowledge.is_dir() { State::Odd } else { State::Bad };
        findings.push(Finding::new(NAME, state, not_written(&knowledge, &error), Some(hint.clone())));
    }
    // If the folder cannot be used, none of its files can.
    let opened: &[&str] = if is_bad { &[] } else { &OPENED };
    for file in opened.iter().map(|name| gateway.join(name)) {
        if let Err(error) = OpenOptions::new().read(true).write(true).open(&file)
            && error.kind() != io::ErrorKind::NotFound
        {
            let what = messages.doctor_home(&file, HomeFound::FileNotWritten { error: &error.to_string() });
            findings.push(Finding::bad(NAME, what, hint.clone()));
        }
    }
    for (file, error) in export::unwritable(&gateway, Timestamp::now()) {
        let what = messages.doctor_home(&file, HomeFound::LedgerNotWritten { error: &error.to_string() });
        findings.push(Finding::bad(NAME, what, hint.clone()));
    }
    if findings.is_empty() {
        let found = HomeFound::Well { owner: metadata.uid(), mode, mib };
        findings.push(Finding::well(NAME, messages.doctor_home(home, found)));
    }
    Looked { findings, is_bad }
}

/// Why no file can be created in a folder, unless the folder is yet to be made.
fn unwritable(folder: &Path) -> Option<io::Error> {
    // The file has no name and is removed at once.
    let error = tempfile::tempfile_in(folder).err()?;
    // A link to nothing is in the way of the folder.
    let is_absent = fs::symlink_metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    (!is_absent).then_some(error)
}

/// Returns the kind of the file system, if it is a network file system.
#[cfg(target_os = "linux")]
fn network(home: &Path) -> Option<&'static str> {
    // The numbers of statfs(2); the width and signedness of the field differ between machines.
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
