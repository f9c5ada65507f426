//! Memory of this process: its size, and ways to give unused pages back to the system.
//!
//! ```
//! // A service that has loaded its keys keeps nothing of what loading them needed.
//! proofmill_memory::release_heap();
//! let resident = proofmill_memory::resident().unwrap_or(0);
//! assert!(resident <= proofmill_memory::peak().unwrap_or(0));
//! ```

/// Resident memory of this process in bytes (`VmRSS`); `None` where the system does not report it.
pub fn resident() -> Option<u64> {
    size(std::process::id(), "VmRSS")
}

/// Peak resident memory of this process in bytes (`VmHWM`), since its start or the last [`reset_peak`]; `None` where
/// the system does not report it.
pub fn peak() -> Option<u64> {
    size(std::process::id(), "VmHWM")
}

/// Sets the recorded peak of a process's resident memory to its memory in use; `None` where the system does not do so
/// (see `/proc/PID/clear_refs` in proc_pid_clear_refs(5)).
pub fn reset_peak(process: u32) -> Option<()> {
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").ok()
}

/// Size in bytes in the field `field` of `/proc/PID/status`, such as `VmRSS`; `None` if the process has ended or the
/// system does not report it.
pub fn size(process: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    size_in(&status, field)
}

/// Like [`size`], in the text of a file `/proc/PID/status`.
pub fn size_in(status: &str, field: &str) -> Option<u64> {
    let value = |line: &'_ str| -> Option<u64> {
        let value = line.strip_prefix(field)?.strip_prefix(':')?;
        value.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    status.lines().find_map(value)?.checked_mul(1024)
}

/// Gives back the unused whole pages of the heap, such as memory that only the start of the program needed.
/// Does nothing where the allocator is not glibc's.
pub fn release_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: it may be called at any time, from any thread; what is in use stays where it is.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// From now on returns every allocation of 1 MiB or more to the system as soon as it is freed. By default
/// glibc's allocator keeps freed memory up to twice the largest allocation so far, which is several times the
/// memory in use of a process that works on vectors. Does nothing where the allocator is another one.
pub fn return_large_allocations() {
    return_allocations_from(1 << 20);
}

/// Like [`return_large_allocations`], for allocations of `bytes` or more; larger limits than 32 MiB count as
/// 32 MiB. A lower limit leaves less of the heap idle and takes pages from the system more often.
pub fn return_allocations_from(bytes: u32) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: it may be called at any time: glibc sets the limit under its own lock, and on a free it
    // finds the origin of the memory in the memory's header, not by the limit.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, bytes.min(32 << 20) as libc::c_int);
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = bytes;
}

/// From now on no further heap is made for a thread: threads share those that there are, so that what one has freed
/// another uses. Call it before there are threads. Threads wait for each other at allocations that their own caches
/// do not have. Does nothing where the allocator is not glibc's.
pub fn share_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: it may be called at any time: glibc sets the limit under its own lock, and heaps that there are stay.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Removes the pages of the program's and its libraries' files from this process's memory; pages that are
/// still used come back from the system's cache. Returns the bytes of the mappings released, whether or not
/// all of their pages were present; 0 where the system does not list them.
///
/// Code that ran only once, at the start, counts as the process's memory until the system is short of it. In
/// an idle process such code is most of the memory.
pub fn release_program_pages() -> u64 {
    #[cfg(target_os = "linux")]
    return linux::release_program_pages();
    #[cfg(not(target_os = "linux"))]
    0
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ops::Range;

    use rustix::mm::{Advice, madvise};

    #[allow(unsafe_code)]
    pub(super) fn release_program_pages() -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let mut released = 0;
        for range in unwritten(&smaps) {
            let bytes = range.end - range.start;
            // SAFETY: the mapping is of a file, cannot be written to, and has no page of its own:
            // every page of it is the file's, before this call and after it. It is of the program or
            // of a library, which stay where they are: nothing else has taken its place since it was
            // listed.
            let advised = unsafe { madvise(range.start as *mut _, bytes, Advice::LinuxDontNeed) };
            if advised.is_ok() {
                released += bytes as u64;
            }
        }
        released
    }

    struct Mapping<'a> {
        range: Range<usize>,
        permissions: &'a str,
        device: &'a str,
        inode: &'a str,
        /// Whether the process has its own copy of some page.
        changed: bool,
    }

    /// The address ranges of mappings in `/proc/PID/smaps` that are of executed files, not writable, and
    /// without changed pages.
    pub(super) fn unwritten(smaps: &str) -> Vec<Range<usize>> {
        let mut mappings: Vec<Mapping<'_>> = Vec::new();
        for line in smaps.lines() {
            if let Some(mapping) = mapping(line) {
                mappings.push(mapping);
            } else if let (Some(anonymous), Some(last)) =
                (line.strip_prefix("Anonymous:"), mappings.last_mut())
            {
                last.changed = anonymous.trim() != "0 kB";
            }
        }
        let is_run = |file: &Mapping<'_>| {
            mappings.iter().any(|other| {
                other.permissions == "r-xp"
                    && (other.device, other.inode) == (file.device, file.inode)
            })
        };
        mappings
            .iter()
            .filter(|mapping| matches!(mapping.permissions, "r-xp" | "r--p"))
            .filter(|mapping| mapping.inode != "0" && !mapping.changed && is_run(mapping))
            .map(|mapping| mapping.range.clone())
            .collect()
    }

    /// Parses the first line of a mapping: `start-end permissions offset device inode path`.
    fn mapping(line: &str) -> Option<Mapping<'_>> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let permissions = words.next()?;
        Some(Mapping {
            range: start..end,
            permissions,
            device: words.nth(1)?,
            inode: words.next()?,
            // The line `Anonymous:` that follows may set it.
            changed: true,
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::unwritten;
    use super::{release_program_pages, size_in};

    /// A sample of the kernel's output, with most lines left out.
    const SMAPS: &str = "\
55d0c0000000-55d0c0100000 r--p 00000000 fe:00 1042 /bin/mill
Anonymous:             0 kB
55d0c0100000-55d0c0300000 r-xp 00100000 fe:00 1042 /bin/mill
Rss:                 900 kB
Anonymous:             0 kB
55d0c0300000-55d0c0310000 r--p 00300000 fe:00 1042 /bin/mill
Anonymous:            64 kB
55d0c0310000-55d0c0320000 rw-p 00310000 fe:00 1042 /bin/mill
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 77 /lib/patched.so
Anonymous:             4 kB
7f0000002000-7f0000003000 r-xp 00000000 00:00 0
Anonymous:             0 kB
7f0000004000-7f0000005000 r--p 00000000 fe:00 99 /keys/mapped
Anonymous:             0 kB
7f0000006000-7f0000007000 r--p 00000000 fe:00 1042 /bin/mill
VmFlags: rd mr mw me
";

    #[test]
    fn only_unchanged_pages_of_what_is_run_are_released() {
        let found = unwritten(SMAPS);
        let text = 0x55d0_c010_0000..0x55d0_c030_0000;
        assert_eq!(found, [0x55d0_c000_0000..0x55d0_c010_0000, text]);
        assert!(unwritten("").is_empty());
        assert!(unwritten("garbage\nAnonymous: 0 kB\n1-zz r-xp 0 0 5 x").is_empty());
    }

    #[test]
    fn a_size_is_that_of_the_field_with_exactly_this_name() {
        let status = "Name:\tmill\nVmRSSx:\t1 kB\nVmRSS:\t     900 kB\nVmHWM:\tmuch\n";
        assert_eq!(size_in(status, "VmRSS"), Some(900 << 10));
        for absent in ["VmHWM", "VmPeak", "Vm", "Name"] {
            assert_eq!(size_in(status, absent), None, "{absent}");
        }
    }

    #[test]
    fn what_was_released_still_runs() {
        assert!(release_program_pages() > 0);
        let sum: u64 = (1..=100_u64).map(|i| i.pow(2)).sum();
        assert_eq!(sum, 338_350);
    }
}
