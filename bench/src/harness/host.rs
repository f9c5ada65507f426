//! Description of the machine in one line, and the memory and processor time of processes.

use std::time::Duration;

use proofmill_memory::size;

/// Processor, cores and load, as far as Linux tells.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = proofmill_engine::processor_name();
    let model = model.as_deref().unwrap_or("unknown processor");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    format!("{cores} cores, {model}, load {load}")
}

/// The load average of the last minute.
pub(crate) fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg")
        .ok()?
        .split(' ')
        .next()?
        .parse()
        .ok()
}

/// Bytes of memory that a process has now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Resident memory, pages of files included.
    pub(crate) resident: u64,
    /// Anonymous memory: without pages of files.
    pub(crate) anonymous: u64,
}

/// Memory of a process; `None` where Linux does not report it.
pub(crate) fn memory(process: u32) -> Option<Memory> {
    Some(Memory {
        resident: size(process, "VmRSS")?,
        anonymous: size(process, "RssAnon")?,
    })
}

/// The most bytes of memory that a process had at once; this one, since [`proofmill_memory::reset_peak`].
pub(crate) fn peak(process: u32) -> Option<u64> {
    size(process, "VmHWM")
}

/// Processor time of this process over all threads, with a resolution of 10 ms.
pub(crate) fn processor_time() -> Option<Duration> {
    processor_time_of(std::process::id())
}

/// Like [`processor_time`], of another process.
pub(crate) fn processor_time_of(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second word, in brackets, may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_ascii_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    let tick =
        Duration::from_secs(1) / u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some(tick * u32::try_from(user + system).ok()?)
}
