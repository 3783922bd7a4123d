//! Resource usage of a process, by its id, as reported by Linux.

use std::fs;

/// Kernel clock ticks a second, as Linux reports process times.
const TICKS: f64 = 100.0;

/// User and system time, in seconds.
pub fn cpu_seconds(process: u32) -> f64 {
    let stat = read(process, "stat");
    // The second field is the name in parentheses; utime and stime are the 14th and 15th.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / TICKS
}

/// The peak memory.
pub fn peak_kib(process: u32) -> u64 {
    kib(process, "VmHWM:")
}

/// The current memory.
pub fn resident_kib(process: u32) -> u64 {
    kib(process, "VmRSS:")
}

fn kib(process: u32, name: &str) -> u64 {
    let status = read(process, "status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of that name");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn read(process: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{process}/{file}")).expect("Linux's /proc")
}
