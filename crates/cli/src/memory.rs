//! Memory of this process: its resident size, and returning unused pages to the system.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// Interval at which unused pages are returned. A returned page becomes resident again only when it is used.
const PERIOD: Duration = Duration::from_secs(10);

/// Starts a task that returns unused heap and program pages to the system, first after one second and then every
/// [`PERIOD`].
pub(crate) fn start_releasing_pages() {
    tokio::spawn(async {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        // A person who starts a process and inspects its memory does so within the first period.
        ticks.reset_after(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            proofmill_kernels::release_heap();
            proofmill_kernels::release_program_pages();
        }
    });
}

/// Resident memory of this process in bytes (`VmRSS`); `None` where the system does not report it.
pub(crate) fn resident() -> Option<u64> {
    status_bytes("VmRSS:")
}

/// Peak resident memory of this process in bytes (`VmHWM`); `None` where the system does not report it.
pub(crate) fn peak() -> Option<u64> {
    status_bytes("VmHWM:")
}

fn status_bytes(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
