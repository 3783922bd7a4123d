//! Files that come with messages, and what is in them. Each carries the name of the version that it came with.

use pmk_host::chat::{Attachments, Content, File};
use pmk_stand_ins::images::png;

use crate::{random::dice, witness, world::World};

/// The files that come with this version of a question, if any.
pub(super) fn attached(world: &World, number: usize, version: u32) -> Attachments {
    let mut rng = dice(world.scenario.seed, ("files", number, version));
    if !world.scenario.setting.files || rng.bool() {
        return Attachments::default();
    }
    let files = (0..rng.usize(1..3)).map(|_| match rng.u8(0..3) {
        0 => file(number, version, "png", Content::AwaitedImage),
        _ => file(number, version, "txt", Content::Awaited),
    });
    Attachments { files: files.collect(), ..Attachments::default() }
}

fn file(number: usize, version: u32, kind: &str, content: Content) -> File {
    let address = Some(format!("{number}/{version}/{kind}"));
    File { id: None, name: format!("part.{kind}"), bytes: None, address, preview: None, content }
}

/// What is at the address of a file.
pub(super) fn content(address: &str) -> Option<Vec<u8>> {
    let mut parts = address.split('/');
    let name = witness::files(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(match parts.next()? {
        "png" => [png(64, 48).as_slice(), name.as_bytes()].concat(),
        _ => format!("{name} gear, 12 teeth\nshaft, 40 mm\n").into_bytes(),
    })
}
