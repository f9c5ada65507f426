//! The load of the stores on the whole embedded log: index, checks, queue, writer thread and store.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use proofmill_bus::{EmbeddedLog, Key, Log, Op, Options, Seq, until_durable};

use super::Args;
use super::experiment::{allocated_bytes, mb, ms, noise};

/// Results of the embedded log.
#[derive(Debug)]
pub(crate) struct LogFigures {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    accept_p99_us: f64,
    tasks_per_s: f64,
    peak_mb: f64,
    open_ms: f64,
}

// === impl LogFigures ===

impl LogFigures {
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "max_ms": self.max_ms,
            "accept_p99_us": self.accept_p99_us, "tasks_per_s": self.tasks_per_s,
            "peak_mb": self.peak_mb, "open_ms": self.open_ms,
        })
    }
}

impl fmt::Display for LogFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the embedded log: append to durable P50 {:.3} ms, P99 {:.3} ms, max {:.3} ms; append \
             to accepted P99 {:.1} us; {:.0} tasks/s, peak {:.1} MB; open with 100,000 live {:.1} ms",
            self.p50_ms,
            self.p99_ms,
            self.max_ms,
            self.accept_p99_us,
            self.tasks_per_s,
            self.peak_mb,
            self.open_ms,
        )
    }
}

/// Measures an [`EmbeddedLog`] in `args.dir`.
pub(crate) fn measure(args: &Args) -> Result<LogFigures> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (mut durable, mut accepted) = latency(args).await?;
        durable.sort_unstable();
        accepted.sort_unstable();
        let at =
            |times: &[Duration], part: f64| ms(times[((times.len() - 1) as f64 * part) as usize]);
        let (tasks_per_s, peak_mb) = throughput(args).await?;
        Ok(LogFigures {
            p50_ms: at(&durable, 0.5),
            p99_ms: at(&durable, 0.99),
            max_ms: at(&durable, 1.0),
            accept_p99_us: at(&accepted, 0.99) * 1e3,
            tasks_per_s,
            peak_mb,
            open_ms: reopen(args).await?,
        })
    })
}

/// Batches of two puts at 100 a second: times to durable, and to accepted.
async fn latency(args: &Args) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let log = EmbeddedLog::open(dir.path(), Options::default())?;
    let (mut durable, mut accepted) = (Vec::new(), Vec::new());
    let mut watermark = log.durable();
    let start = Instant::now();
    for n in 0..args.batches {
        let due = start + Duration::from_millis(10) * u32::try_from(n)?;
        tokio::time::sleep_until(due.into()).await;
        let ops = vec![
            Op::put_new(Key::new(format!("task.{n}"))?, noise()),
            Op::put(Key::new("head")?, noise()),
        ];
        let begin = Instant::now();
        let seq = log.append(ops).await?;
        accepted.push(begin.elapsed());
        until_durable(&mut watermark, seq).await?;
        durable.push(begin.elapsed());
    }
    Ok((durable, accepted))
}

/// Three puts and two deletes a task, as an orchestrator's tasks live and die, 1,000 at a time.
async fn throughput(args: &Args) -> Result<(f64, f64)> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let log = EmbeddedLog::open(
        dir.path(),
        Options::default().with_max_pending_bytes(1 << 20),
    )?;
    let value = bytes::Bytes::from(noise());
    let mut live = VecDeque::new();
    let (mut seq, mut peak) = (Seq(0), 0);
    let start = Instant::now();
    for n in 0..args.tasks {
        let (task, result) = (
            Key::new(format!("task.{n}"))?,
            Key::new(format!("result.{n}"))?,
        );
        let mut ops = vec![
            Op::put_new(task.clone(), value.clone()),
            Op::put_new(result.clone(), value.clone()),
            Op::put(Key::new(format!("head.{}", n % 16))?, value.clone()),
        ];
        live.push_back((task, result));
        if live.len() > 500
            && let Some((task, result)) = live.pop_front()
        {
            ops.extend([Op::delete(task), Op::delete(result)]);
        }
        seq = log.append(ops).await?;
        if n % 20_000 == 0 {
            peak = peak.max(allocated_bytes(dir.path())?);
        }
    }
    until_durable(&mut log.durable(), seq).await?;
    Ok((args.tasks as f64 / start.elapsed().as_secs_f64(), mb(peak)))
}

async fn reopen(args: &Args) -> Result<f64> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let log = EmbeddedLog::open(dir.path(), Options::default())?;
    for n in 0..100_000 {
        log.append(vec![Op::put(Key::new(format!("task.{n}"))?, noise())])
            .await?;
    }
    drop(log);
    let begin = Instant::now();
    let _log = EmbeddedLog::open(dir.path(), Options::default())?;
    Ok(ms(begin.elapsed()))
}
