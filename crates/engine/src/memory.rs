//! The memory of this machine, and the default budget.

use std::fs;
use std::path::Path;

/// Default budget: three quarters of [`usable_memory`]. The rest is for memory that is not counted: code,
/// stacks, small allocations. `None` where the amount of memory is unknown.
pub fn default_budget() -> Option<u64> {
    usable_memory().map(|bytes| bytes / 4 * 3)
}

/// Bytes of memory that this process may use: the least of the machine's memory and the limits of its
/// control group. `None` if neither can be read.
pub fn usable_memory() -> Option<u64> {
    let limits = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let limits = limits
        .into_iter()
        .filter_map(|path| number(Path::new(path)));
    limits.chain(machine()).min()
}

/// The number in a file; `None` if the file cannot be read or has no number, such as `max` for no limit.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn machine() -> Option<u64> {
    total_of(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::total_of;

    #[test]
    fn the_machines_memory_is_read() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:          100 kB\n";
        assert_eq!(total_of(meminfo), Some(16 << 20));
        assert_eq!(total_of("MemFree: 1 kB"), None);
    }
}
