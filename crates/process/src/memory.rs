//! The memory limit of a run, and diagnosis of failures caused by it.

use std::io;
use std::time::Duration;

use rustix::process::Pid;
use tokio::time::sleep;

use super::capture::Captured;
use super::program::{Peak, peak};

/// First and longest interval between samples of a program's memory.
const FIRST_SAMPLE: Duration = Duration::from_millis(5);
const LAST_SAMPLE: Duration = Duration::from_secs(1);

/// Messages of failed allocations, in lower case: Rust, C and the kernel, C++, Go, Python, Java.
const COMPLAINTS: [&str; 7] = [
    "memory allocation of",
    "cannot allocate memory",
    "bad_alloc",
    "out of memory",
    "memoryerror",
    "outofmemoryerror",
    "memory exhausted",
];

/// Samples the memory that a run's leader uses.
#[derive(Debug)]
pub(super) struct MemoryWatch {
    pid: Pid,
    limit: Option<u64>,
    next: Duration,
    peak: Option<Peak>,
    /// Number of processes that the kernel killed at the limit of the run's control group.
    killed: u64,
}

// === impl MemoryWatch ===

impl MemoryWatch {
    pub(super) fn new(pid: Pid, limit: Option<u64>) -> Self {
        Self {
            pid,
            limit,
            next: FIRST_SAMPLE,
            peak: None,
            killed: 0,
        }
    }

    /// Records the number of the run's processes that the kernel killed at their common limit.
    pub(super) fn note_killed(&mut self, killed: u64) {
        self.killed = killed;
    }

    /// Waits until the next sample is due, and takes it. The kernel keeps the peaks; sampling is
    /// only needed because they vanish when the process exits.
    pub(super) async fn sample(&mut self) {
        if !cfg!(target_os = "linux") {
            return std::future::pending().await;
        }
        sleep(self.next).await;
        self.next = (self.next * 2).min(LAST_SAMPLE);
        // A program that has just exited has no sizes, so the last ones are kept.
        self.peak = peak(self.pid).or(self.peak);
    }

    /// The largest resident set observed, in bytes.
    pub(super) fn peak_rss(&self) -> Option<u64> {
        self.peak.map(|peak| peak.resident)
    }

    /// For a failed run, a note if its memory limit is a likely cause. `crashed` is whether a
    /// signal killed the program. A single allocation may exceed all earlier ones by far, so a
    /// crash is an indication even if little was mapped.
    pub(super) fn suspicion(&self, crashed: bool, stderr: &Captured) -> Option<String> {
        let limit = self.limit?;
        if self.killed > 0 {
            return Some(format!(
                "it and the processes it started used {limit} bytes of memory, their limit: the \
                 kernel killed them"
            ));
        }
        let near = self
            .peak
            .is_some_and(|peak| peak.mapped >= limit - limit / 8);
        let said = || {
            let text = stderr.to_string().to_lowercase();
            COMPLAINTS.iter().any(|complaint| text.contains(complaint))
        };
        let word = match (near || said(), crashed) {
            (true, _) => "probably",
            (false, true) => "perhaps",
            (false, false) => return None,
        };
        let seen = self.peak.map_or(String::new(), |peak| {
            format!("; it had mapped at least {} bytes", peak.mapped)
        });
        Some(format!(
            "{word} for lack of memory: its limit is {limit} bytes{seen}"
        ))
    }
}

/// Limits the address space of `pid`, a child that is not yet reaped, to `limit` bytes.
#[cfg(target_os = "linux")]
pub(super) fn limit(pid: Pid, limit: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

    // A stricter hard limit of this process already applies to the child, and cannot be raised.
    let hard = getrlimit(Resource::As).maximum.unwrap_or(u64::MAX);
    let limit = Some(limit.min(hard));
    prlimit(
        Some(pid),
        Resource::As,
        Rlimit {
            current: limit,
            maximum: limit,
        },
    )?;
    Ok(())
}

/// Does nothing: see [`ProcessSpec::memory_limit`](super::ProcessSpec::memory_limit).
#[cfg(not(target_os = "linux"))]
pub(super) fn limit(_pid: Pid, _limit: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspicion_needs_a_limit_and_a_sign() {
        let stderr = |text: &'static str| Captured {
            head: text.as_bytes().into(),
            ..Captured::default()
        };
        let pid = rustix::process::getpid();
        let mut watch = MemoryWatch::new(pid, Some(1000));
        assert_eq!(watch.suspicion(false, &stderr("no such file")), None);
        let said = watch.suspicion(true, &stderr("no such file")).unwrap();
        assert!(said.starts_with("perhaps"), "{said}");
        let said = watch
            .suspicion(false, &stderr("fatal: Cannot allocate memory"))
            .unwrap();
        assert!(
            said.starts_with("probably") && said.contains("1000 bytes"),
            "{said}"
        );
        watch.peak = Some(Peak {
            mapped: 870,
            resident: 1,
        });
        assert_eq!(watch.suspicion(false, &stderr("")), None);
        watch.peak = Some(Peak {
            mapped: 900,
            resident: 1,
        });
        assert!(
            watch
                .suspicion(false, &stderr(""))
                .unwrap()
                .contains("900 bytes")
        );
        watch.note_killed(2);
        let said = watch.suspicion(true, &stderr("")).unwrap();
        assert!(said.contains("the kernel killed them"), "{said}");
        watch.limit = None;
        assert_eq!(watch.suspicion(true, &stderr("out of memory")), None);
    }
}
