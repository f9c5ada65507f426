//! The five experiments that each store runs.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

use super::Args;
use super::backend::Backend;

/// Size of a record, in bytes.
const RECORD_BYTES: usize = 400;
/// Size of a sector, which a crash leaves either old or new.
const SECTOR_BYTES: usize = 512;

/// Results of one store.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    /// Rate with commits of 32 tasks.
    pub(crate) tasks_per_s_small: f64,
    /// Rate with commits of 512 tasks.
    pub(crate) tasks_per_s_large: f64,
    pub(crate) peak_mb: f64,
    pub(crate) end_mb: f64,
    pub(crate) open_ms: f64,
    pub(crate) scan_ms: f64,
    pub(crate) torn_whole: usize,
    pub(crate) torn_lost: usize,
    pub(crate) torn_broken: usize,
}

// === impl Figures ===

impl Figures {
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "max_ms": self.max_ms,
            "tasks_per_s_32": self.tasks_per_s_small, "tasks_per_s_512": self.tasks_per_s_large,
            "peak_mb": self.peak_mb, "end_mb": self.end_mb,
            "open_ms": self.open_ms, "scan_ms": self.scan_ms,
            "torn_whole": self.torn_whole, "torn_lost": self.torn_lost,
            "torn_broken": self.torn_broken,
        })
    }
}

/// Runs every experiment on one store.
pub(crate) fn measure<B: Backend>(args: &Args) -> Result<Figures> {
    let (p50_ms, p99_ms, max_ms) = latency::<B>(args)?;
    let (tasks_per_s_small, _, _) = throughput::<B>(args, 32, args.tasks / 10)?;
    let (tasks_per_s_large, peak_mb, end_mb) = throughput::<B>(args, 512, args.tasks)?;
    let (open_ms, scan_ms) = reopen::<B>(args)?;
    let (torn_whole, torn_lost, torn_broken) = test_torn_commits::<B>(args)?;
    Ok(Figures {
        p50_ms,
        p99_ms,
        max_ms,
        tasks_per_s_small,
        tasks_per_s_large,
        peak_mb,
        end_mb,
        open_ms,
        scan_ms,
        torn_whole,
        torn_lost,
        torn_broken,
    })
}

/// Batches of two puts at 100 a second: P50, P99 and maximum of the commit, in ms.
#[expect(
    clippy::disallowed_methods,
    reason = "a paced, single-threaded measurement"
)]
fn latency<B: Backend>(args: &Args) -> Result<(f64, f64, f64)> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let mut store = B::open(dir.path())?;
    let (mut seq, value) = (0, noise());
    let mut took = Vec::with_capacity(args.batches);
    let start = Instant::now();
    for batch in 0..args.batches {
        let due = start + Duration::from_millis(10) * u32::try_from(batch)?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let begin = Instant::now();
        store.commit(&[(seq + 1, &value), (seq + 2, &value)], &[])?;
        took.push(begin.elapsed());
        seq += 2;
    }
    took.sort_unstable();
    let at = |part: f64| ms(took[((took.len() - 1) as f64 * part) as usize]);
    Ok((at(0.5), at(0.99), at(1.0)))
}

/// Three puts and two deletes a task, live set of about 1,000: tasks/s, peak and final MB.
fn throughput<B: Backend>(args: &Args, group: u64, tasks: u64) -> Result<(f64, f64, f64)> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let mut store = B::open(dir.path())?;
    let value = noise();
    let (mut seq, mut live, mut done, mut peak) = (0, VecDeque::new(), 0, 0);
    let start = Instant::now();
    let mut measuring = Duration::ZERO;
    while done < tasks {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for _ in 0..group {
            for _ in 0..3 {
                seq += 1;
                puts.push((seq, &value[..]));
                live.push_back(seq);
            }
            // The third record of a task is superseded by a later one, as a head pointer is.
            for _ in 0..3 {
                if live.len() > 1000 {
                    deletes.extend(live.pop_front());
                }
            }
        }
        // What lives and dies within one group never reaches the store.
        let first = puts[0].0;
        deletes.retain(|seq| *seq < first);
        let oldest = live[0];
        puts.retain(|(seq, _)| *seq >= oldest);
        store.commit(&puts, &deletes)?;
        done += group;
        if done.is_multiple_of(group * 64) {
            let begin = Instant::now();
            peak = peak.max(allocated_bytes(dir.path())?);
            measuring += begin.elapsed();
        }
    }
    let rate = done as f64 / (start.elapsed() - measuring).as_secs_f64();
    ensure!(
        store.scan()?.len() == live.len(),
        "the live set is not what was left"
    );
    drop(store);
    let end = allocated_bytes(dir.path())?;
    Ok((rate, mb(peak.max(end)), mb(end)))
}

/// Opening and reading 100,000 live records, in ms.
fn reopen<B: Backend>(args: &Args) -> Result<(f64, f64)> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let value = noise();
    let mut store = B::open(dir.path())?;
    for group in 0..100 {
        let puts: Vec<_> = (1..=1000).map(|n| (group * 1000 + n, &value[..])).collect();
        store.commit(&puts, &[])?;
    }
    drop(store);
    let begin = Instant::now();
    let store = B::open(dir.path())?;
    let opened = begin.elapsed();
    ensure!(
        store.scan()?.len() == 100_000,
        "records were lost by closing"
    );
    Ok((ms(opened), ms(begin.elapsed() - opened)))
}

/// Simulates crashes during a commit, which may leave any subset of the sectors that it wrote. Each
/// trial keeps a random subset and opens the store. Counts the recoveries with the last batch, those
/// without it, and the broken ones.
fn test_torn_commits<B: Backend>(args: &Args) -> Result<(usize, usize, usize)> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let value = noise();
    let mut store = B::open(dir.path())?;
    let mut random = StdRng::seed_from_u64(7);
    let (mut whole, mut lost, mut broken, mut seq) = (0, 0, 0, 0);
    for _ in 0..args.torn {
        for _ in 0..random.random_range(1..8) {
            store.commit(&[(seq + 1, &value), (seq + 2, &value)], &[])?;
            seq += 2;
        }
        let before = image(dir.path())?;
        let before_commit = store.scan()?;
        store.commit(&[(seq + 1, &value), (seq + 2, &value)], &[seq])?;
        let after_commit = store.scan()?;
        seq += 2;
        let after = image(dir.path())?;
        let trial = tempfile::tempdir_in(&args.dir)?;
        write_torn(trial.path(), &before, &after, &mut random)?;
        match std::panic::catch_unwind(|| B::open(trial.path()).and_then(|store| store.scan())) {
            Ok(Ok(found)) if found == after_commit => whole += 1,
            Ok(Ok(found)) if found == before_commit => lost += 1,
            _ => broken += 1,
        }
    }
    Ok((whole, lost, broken))
}

type Image = BTreeMap<PathBuf, Vec<u8>>;

/// Reads all files in `dir`.
fn image(dir: &Path) -> Result<Image> {
    let mut image = Image::new();
    for path in files(dir)? {
        image.insert(path.strip_prefix(dir)?.to_owned(), fs::read(&path)?);
    }
    Ok(image)
}

/// Writes the files `after` a commit to `target`, where each sector has either its new content or the one
/// `before`, at random.
fn write_torn(target: &Path, before: &Image, after: &Image, random: &mut StdRng) -> Result<()> {
    for (path, new) in after {
        let mut torn = before.get(path).cloned().unwrap_or_default();
        torn.resize(new.len(), 0);
        for (torn, new) in torn.chunks_mut(SECTOR_BYTES).zip(new.chunks(SECTOR_BYTES)) {
            if random.random() {
                torn.copy_from_slice(new);
            }
        }
        let path = target.join(path);
        fs::create_dir_all(path.parent().unwrap_or(target))?;
        fs::write(path, torn)?;
    }
    Ok(())
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                &mut folders
            } else {
                &mut found
            }
            .push(entry.path());
        }
    }
    Ok(found)
}

/// Bytes that the files in `dir` occupy on the disk. Preallocated and sparse files count with their
/// allocated blocks.
pub(super) fn allocated_bytes(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    // A compaction may delete a file after it was listed.
    Ok(files(dir)?
        .iter()
        .filter_map(|path| fs::metadata(path).ok())
        .map(|m| m.blocks() * 512)
        .sum())
}

pub(super) fn noise() -> Vec<u8> {
    let mut noise = vec![0; RECORD_BYTES];
    StdRng::seed_from_u64(1).fill_bytes(&mut noise);
    noise
}

pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(super) fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
