//! What memory this process holds, as the kernel counts it.

use std::fs;

pub const MIB: u64 = 1 << 20;

/// What it holds now.
pub fn resident_bytes() -> u64 {
    status("VmRSS:")
}

/// The most that `work` held beyond what was held before.
pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, u64) {
    // The kernel's way to forget the peak so far.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = resident_bytes();
    let result = work();
    (result, status("VmHWM:").saturating_sub(before))
}

fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
