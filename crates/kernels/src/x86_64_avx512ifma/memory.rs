//! Memory of 64-bit words for stored elements.

use memmap2::MmapMut;

/// Zeroed words, aligned to a page, in huge pages where the system has them: buckets and bases are
/// read in random order, which costs a page walk for each access otherwise.
pub(crate) struct Words {
    memory: MmapMut,
}

// === impl Words ===

impl Words {
    /// # Panics
    ///
    /// If the system has no such memory.
    pub(crate) fn zeroed(words: usize) -> Self {
        let bytes = words
            .checked_mul(size_of::<u64>())
            .expect("a size in bytes")
            .max(1);
        let memory = MmapMut::map_anon(bytes)
            .unwrap_or_else(|error| panic!("{bytes} bytes of memory: {error}"));
        #[cfg(target_os = "linux")]
        if bytes >= 1 << 21 {
            // Advice: without it the memory is merely slower.
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        Self { memory }
    }

    pub(crate) fn as_ptr(&self) -> *const u64 {
        self.memory.as_ptr().cast()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u64 {
        self.memory.as_mut_ptr().cast()
    }
}
