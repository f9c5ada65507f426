//! The machine, in one line.

/// Processor, cores and load, as far as Linux tells.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| {
            line.strip_prefix("model name")?
                .split_once(':')
                .map(|(_, name)| name)
        })
        .map_or("unknown processor", str::trim);
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
    /// Everything, the pages of files included.
    pub(crate) resident: u64,
    /// What is its own alone.
    pub(crate) anonymous: u64,
}

/// What this process has, as far as Linux tells.
pub(crate) fn resident() -> Option<u64> {
    memory(std::process::id()).map(|memory| memory.resident)
}

/// What a process has, as far as Linux tells.
pub(crate) fn memory(process: u32) -> Option<Memory> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    Some(Memory {
        resident: bytes("VmRSS:")?,
        anonymous: bytes("RssAnon:")?,
    })
}
