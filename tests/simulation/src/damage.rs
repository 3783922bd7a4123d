//! Damages the files of a home between two lives.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use pmk_host::store::Store;
use pmk_system::home;
use rusqlite::Connection;

use crate::{
    scenario::{Damage, What},
    world::World,
};

/// Does the damage that is due by now.
pub fn damage(world: &World, home: &Path, is_done: &mut Vec<usize>) {
    let now = world.time();
    for event in world.scenario.events.iter().filter(|event| event.at <= now) {
        let What::Damage(damage) = event.what else { continue };
        if is_done.contains(&event.number) {
            continue;
        }
        is_done.push(event.number);
        world.say(|| format!("damaged: {damage:?}"));
        match damage {
            Damage::LedgerTail => cut_ledger(world, home),
            Damage::LogTail => add_noise(world, &beside(home, "-wal")),
            Damage::LogIndex => drop(fs::remove_file(beside(home, "-shm"))),
            Damage::Caches => scramble_caches(world, home),
        }
    }
}

/// The lengths of the ledger's files.
pub struct Written(Vec<(PathBuf, u64)>);

/// Returns the current lengths.
pub fn written(home: &Path) -> Written {
    let folder = fs::read_dir(home::gateway_dir(home)).into_iter().flatten().flatten();
    let files = folder.filter(|file| file.file_name().to_string_lossy().starts_with("events-"));
    Written(files.filter_map(|file| Some((file.path(), file.metadata().ok()?.len()))).collect())
}

impl Written {
    /// Truncates the files to these lengths: a killed process writes nothing more, but dropping its objects here may.
    pub fn and_no_more(self) {
        for (path, length) in self.0 {
            if let Ok(file) = OpenOptions::new().write(true).open(path) {
                let _ = file.set_len(length);
            }
        }
    }
}

/// The path of a file beside the database.
fn beside(home: &Path, suffix: &str) -> PathBuf {
    let mut path = Store::path(home).into_os_string();
    path.push(suffix);
    path.into()
}

/// Cuts the ledger back to what was synced, which the store knows.
fn cut_ledger(world: &World, home: &Path) {
    let Ok(store) = Connection::open(Store::path(home)) else { return };
    let exported = store.query_row("SELECT file, length FROM exported WHERE id = 1", [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    });
    let Ok((file, kept)) = exported else { return };
    let kept = u64::try_from(kept).unwrap_or(0);
    let path = home::gateway_dir(home).join(file);
    let Ok(file) = OpenOptions::new().write(true).open(&path) else { return };
    let Ok(length) = file.metadata().map(|meta| meta.len()) else { return };
    if length > kept {
        let _ = file.set_len(world.dice("cut").u64(kept..length));
        let left = fs::read(&path).unwrap_or_default();
        let torn = left.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        world.tears(String::from_utf8_lossy(torn).into_owned());
    }
}

fn add_noise(world: &World, path: &Path) {
    let Ok(mut file) = OpenOptions::new().append(true).open(path) else { return };
    let mut rng = world.dice("noise");
    let noise: Vec<u8> = (0..rng.usize(1..9_000)).map(|_| rng.u8(..)).collect();
    let _ = file.write_all(&noise);
}

fn scramble_caches(world: &World, home: &Path) {
    let Ok(folder) = fs::read_dir(home.join("cache")) else { return };
    for path in folder.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        add_noise(world, &path);
        if let Ok(file) = OpenOptions::new().write(true).open(&path) {
            let _ = file.set_len(world.dice("scramble").u64(0..2_000));
        }
    }
}
