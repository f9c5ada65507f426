//! The memory of this process: what it has, and what it gives back while it waits.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// After the start, and then again and again: the pages that were used once come back only with use.
const PERIOD: Duration = Duration::from_secs(10);

/// Gives back, now and then, the pages of the heap and of the program that are not used.
pub(crate) fn settle() {
    tokio::spawn(async {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        // Whoever starts a process and looks at it does so sooner than after a period.
        ticks.reset_after(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            proofmill_kernels::release_heap();
            proofmill_kernels::release_program_pages();
        }
    });
}

/// The bytes of memory that this process has, as far as the system tells.
pub(crate) fn resident() -> Option<u64> {
    status_bytes("VmRSS:")
}

/// The most bytes of memory that this process had at once, as far as the system tells.
pub(crate) fn peak() -> Option<u64> {
    status_bytes("VmHWM:")
}

fn status_bytes(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
