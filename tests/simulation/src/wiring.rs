//! Which worlds are over calls: in these, the bot posts and streams by the real front for Slack.

use crate::{
    random::{dice, one_of},
    scenario::{Said, Setting, Trouble, What, Where},
};

/// Worlds of smaller seeds are known from before anything went over calls, and stay as they were.
const FIRST: u64 = 2_800;

/// The same of worlds of several hosts.
const FIRST_OF_SEVERAL: u64 = 7_300;

/// What is particular about Slack's side of the calls.
#[derive(Clone, Copy, Debug)]
pub struct Wiring {
    /// Whether Slack keeps the metadata of a stream. It does, but does not say so.
    pub keeps_metadata: bool,
}

/// Whether a world is over calls.
fn is_in(seed: u64, hosts: usize) -> bool {
    seed >= if hosts > 1 { FIRST_OF_SEVERAL } else { FIRST } && matches!(seed % 10, 1 | 3 | 9)
}

/// Prepares a world for calls, if it is to be over calls: streams are for threads, and for answers to which nothing else
/// belongs.
pub fn prepare(seed: u64, hosts: usize, setting: &mut Setting, events: &mut Vec<(u64, What)>) {
    if !is_in(seed, hosts) {
        return;
    }
    let mut rng = dice(seed, "wiring");
    // The front reports when it could not hear, and what was missed is read back by this.
    setting.presence = true;
    setting.wired = Some(Wiring { keeps_metadata: rng.u8(0..5) > 0 });
    if rng.u8(0..3) > 0 {
        (setting.tools, setting.contacts) = (false, false);
    }
    for (_, what) in events.iter_mut() {
        if let What::Says(Said { place, .. }) = what
            && *place == Where::Direct
            && rng.u8(0..4) > 0
        {
            *place = Where::Thread(rng.u8(0..2), rng.u8(0..2));
        }
    }
    let lasts = events.iter().map(|(at, _)| *at).max().unwrap_or_default() + 1;
    let troubles = (0..rng.usize(0..4)).map(|_| {
        let kind = one_of(&mut rng, &[Trouble::SocketsCut, Trouble::SocketsMute, Trouble::SocketsReplaced]);
        let percent = one_of(&mut rng, &[5, 20, 50, 100]);
        (rng.u64(0..lasts), What::Trouble { kind, lasts: rng.u64(1_000..10 * 60_000), percent })
    });
    events.extend(troubles.collect::<Vec<_>>());
    events.sort_by_key(|(at, _)| *at);
}
