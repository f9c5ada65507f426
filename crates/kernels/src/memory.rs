//! Memory that products keep for later ones.

/// Gives back the memory that products keep for later ones, 512 MiB at most. It is worth a call where
/// every byte of the process is counted.
///
/// A product converts its bases into a new copy. Kept memory saves the page faults of taking that copy
/// from the system each time; the system may take it back when it is short of memory.
pub fn release_memory() {
    #[cfg(target_arch = "x86_64")]
    crate::x86_64_avx512ifma::memory::release();
}
