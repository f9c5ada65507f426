//! Time of one fsync on the disk under the log, which is a lower bound for everything durable.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::figures::Figures;

/// Size of the file, in pages.
const PAGES: usize = 64;
const PAGE_BYTES: usize = 4096;

/// Measures `fdatasync` in `dir`: overwrites `rounds` pages of a temporary file, each after a pause
/// of `rest` and followed by one `fdatasync`. Returns the times of write and sync, in milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing else runs while the disk is measured"
)]
pub(crate) fn fsync(dir: &Path, rounds: usize, rest: Duration) -> anyhow::Result<Figures> {
    let path = dir.join("fsync-probe");
    let shown = || format!("cannot measure fsync with {}", path.display());
    let mut file = std::fs::File::create(&path).with_context(shown)?;
    let page = [0x5a_u8; PAGE_BYTES];
    for _ in 0..PAGES {
        file.write_all(&page).with_context(shown)?;
    }
    file.sync_all().with_context(shown)?;
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        std::thread::sleep(rest);
        let began = Instant::now();
        file.seek(SeekFrom::Start((round % PAGES * PAGE_BYTES) as u64))
            .with_context(shown)?;
        file.write_all(&page).with_context(shown)?;
        file.sync_data().with_context(shown)?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    std::fs::remove_file(&path).with_context(shown)?;
    Ok(Figures::of(times))
}
