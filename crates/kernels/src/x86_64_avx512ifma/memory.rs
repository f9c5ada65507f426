//! Memory of 64-bit words, used again.
//!
//! A product converts its bases and discards the copy afterwards. On a virtual machine, memory that is
//! given back and soon taken again costs a fault into the host for each page: a product of 2¹⁸ terms took
//! a third longer if the one before it was some seconds ago. So some memory is kept, marked as free: the
//! system may take it when it is short of memory, and the next use then pays for the page faults.

use std::sync::{Mutex, PoisonError};

use memmap2::MmapMut;

/// The most bytes kept for the next products.
const KEPT: usize = 512 << 20;
/// Size in bytes below which memory comes from the global allocator and is not kept.
const LARGE: usize = 1 << 21;

/// The kept memory, the smallest piece first.
static IDLE: Mutex<Vec<MmapMut>> = Mutex::new(Vec::new());

/// Words aligned to a page, in huge pages where the system has them: buckets and bases are read in
/// random order, which costs a page walk for each access otherwise. Their initial values are
/// unspecified: they must be written before they are read.
pub(crate) struct Words {
    /// `Some` until the words are dropped.
    memory: Option<MmapMut>,
}

/// Gives the kept memory back to the system.
pub(crate) fn release() {
    idle().clear();
}

fn idle() -> std::sync::MutexGuard<'static, Vec<MmapMut>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Words ===

impl Words {
    /// # Panics
    ///
    /// If the system has no such memory.
    pub(crate) fn new(words: usize) -> Self {
        let bytes = words
            .checked_mul(size_of::<u64>())
            .expect("a size in bytes")
            .max(1);
        let memory = Self::kept(bytes).unwrap_or_else(|| Self::mapped(bytes));
        Self {
            memory: Some(memory),
        }
    }

    /// The smallest that is kept and large enough, unless that is more than twice as large.
    fn kept(bytes: usize) -> Option<MmapMut> {
        if bytes < LARGE {
            return None;
        }
        let mut idle = idle();
        let first = idle.partition_point(|memory| memory.len() < bytes);
        let fits = idle
            .get(first)
            .is_some_and(|memory| memory.len() / 2 <= bytes);
        fits.then(|| idle.remove(first))
    }

    fn mapped(bytes: usize) -> MmapMut {
        let memory = MmapMut::map_anon(bytes)
            .unwrap_or_else(|error| panic!("{bytes} bytes of memory: {error}"));
        #[cfg(target_os = "linux")]
        if bytes >= LARGE {
            // Advice: without it the memory is merely slower.
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        memory
    }

    pub(crate) fn as_ptr(&self) -> *const u64 {
        let memory = self.memory.as_ref();
        memory.expect("there until it is dropped").as_ptr().cast()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u64 {
        let memory = self.memory.as_mut();
        memory
            .expect("there until it is dropped")
            .as_mut_ptr()
            .cast()
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take().filter(|memory| memory.len() >= LARGE) else {
            return;
        };
        let mut idle = idle();
        let kept: usize = idle.iter().map(|memory| memory.len()).sum();
        if kept + memory.len() > KEPT {
            return;
        }
        #[cfg(target_os = "linux")]
        {
            // SAFETY: the memory stays mapped, and whoever gets these words next writes them before
            // reading them: when the system turns them into zeros is not seen.
            let _ = unsafe { memory.unchecked_advise(memmap2::UncheckedAdvice::Free) };
        }
        let place = idle.partition_point(|other| other.len() < memory.len());
        idle.insert(place, memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_if_it_fits() {
        // No other test of this process takes so much memory.
        let words = (300 << 20) / 8;
        let place = Words::new(words).as_ptr();
        // Far too large for one word, too small for more.
        assert_ne!(Words::new(words / 4).as_ptr(), place);
        assert_ne!(Words::new(words + 1).as_ptr(), place);
        let mut again = Words::new(words - 7);
        assert_eq!(again.as_ptr(), place);
        // SAFETY: within the memory, which is borrowed mutably.
        unsafe { again.as_mut_ptr().add(words - 8).write(8) };
        drop(again);
        release();
        let kept: usize = idle().iter().map(|memory| memory.len()).sum();
        assert!(kept < 300 << 20);
    }
}
