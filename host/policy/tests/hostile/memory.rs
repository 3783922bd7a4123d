//! The memory of this process, as counted by the kernel.

use std::fs;

pub const MIB: u64 = 1 << 20;

/// The current resident memory.
pub fn resident_bytes() -> u64 {
    status("VmRSS:")
}

/// Runs `work` and returns its peak memory beyond what was in use before.
pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, u64) {
    // Resets the kernel's peak value.
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
