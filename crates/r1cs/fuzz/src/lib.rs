//! Shared code of the fuzz targets: an allocator that aborts the process when a reader takes more memory
//! than the size of its file allows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Bytes that a reader may allocate beyond twice the file's size: initial capacities of vectors and of the
/// table of coefficients, an error's message, the thread pool's jobs.
pub const SLACK: usize = 32 << 10;

/// Counts the bytes in use since [`reading`] began, by all threads.
pub struct Counting;

static IN_USE: AtomicIsize = AtomicIsize::new(0);
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);

fn count(bytes: isize) {
    let in_use = IN_USE.fetch_add(bytes, Relaxed) + bytes;
    if bytes > 0 && in_use > LIMIT.load(Relaxed) {
        LIMIT.store(isize::MAX, Relaxed);
        eprintln!("{in_use} bytes in use by a reader");
        std::process::abort();
    }
}

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Reads a file of `size` bytes; more than twice that, and [`SLACK`], in use at once ends the
/// process.
pub fn reading<T>(size: usize, read: impl FnOnce() -> T) -> T {
    LIMIT.store(IN_USE.load(Relaxed) + (2 * size + SLACK) as isize, Relaxed);
    let result = read();
    LIMIT.store(isize::MAX, Relaxed);
    result
}
