//! Latency with a prover in this process that takes no time.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::core::Timing;
use tokio::time::{sleep_until, timeout};

use super::bare;
use super::{Args, Run, ms};
use crate::harness::{
    Figures, Progress, RunningMill, StateDisk, json_message, one_stage, parse, registry,
};

/// Time after the last submission at which a missing completion counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time of an event, by task.
type Times = Arc<Vec<OnceLock<Instant>>>;

pub(super) async fn measure(
    args: &Args,
    disk: &StateDisk,
    rate: f64,
    tasks: usize,
    name: &str,
) -> anyhow::Result<Run> {
    let instant = r#"{ kind = "native", prover = "instant" }"#;
    let text = one_stage("latency", args.dispatchers, instant);
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let state = disk.state(&format!("{name}-{rate}"));
    let mut mill = RunningMill::start(&workflow, registry, disk, &state).await?;
    let queue = mill.queue("tasks")?;
    let times = || Times::new((0..tasks).map(|_| OnceLock::new()).collect());
    let (published, accepted) = (times(), times());

    let period = Duration::from_secs_f64(1.0 / rate);
    let start = tokio::time::Instant::now() + Duration::from_secs(1);
    let bare = match disk.bus(&state) {
        // The bare round trips take turns with our tasks.
        Some(bus) => Some(bare::start(&bus, start, period, tasks).await?),
        None => None,
    };
    let publisher = {
        let (handle, published, accepted) =
            (mill.source.clone(), published.clone(), accepted.clone());
        tokio::spawn(async move {
            for (block, time) in published.iter().enumerate() {
                sleep_until(start + period.mul_f64(block as f64)).await;
                let payload = format!("{{\"block\":{block},\"witness\":\"{block:064x}\"}}");
                let request = json_message(queue, block as u64, payload);
                let _ = time.set(Instant::now());
                let reply = handle.submit_later(request).await?;
                let accepted = accepted.clone();
                tokio::spawn(async move {
                    if matches!(reply.await, Ok(Reply::Accepted)) {
                        let _ = accepted[block].set(Instant::now());
                    }
                });
            }
            anyhow::Ok(())
        })
    };

    let progress = Progress::new(&format!("latency at {rate}/s"), tasks);
    let mut overhead = Vec::with_capacity(tasks);
    let mut timings: Vec<(Timing, f64)> = Vec::with_capacity(tasks);
    let mut is_completed = vec![false; tasks];
    let mut duplicated = 0;
    let time_max = PATIENCE + Duration::from_secs_f64(tasks as f64 / rate);
    let deadline = Instant::now() + time_max;
    while overhead.len() < tasks {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(settled) = timeout(left, mill.next_completed()).await else {
            break;
        };
        let settled = settled?;
        let now = Instant::now();
        let block = usize::try_from(settled.task.id.block)?;
        if std::mem::replace(&mut is_completed[block], true) {
            duplicated += 1;
            continue;
        }
        let began = published[block]
            .get()
            .context("a task completed before it was published")?;
        let took_ms = ms(now - *began);
        overhead.push(took_ms);
        timings.extend(settled.timing.map(|timing| (timing, took_ms)));
        progress.set(overhead.len());
    }
    drop(progress);
    publisher.await.context("the publisher panicked")??;
    let bare = match bare {
        Some(bare) => Some(bare.await?),
        None => None,
    };
    mill.finish().await?;

    let accepted_after_ms = |(at, began): (&OnceLock<Instant>, &OnceLock<Instant>)| {
        Some(ms(*at.get()? - *began.get()?))
    };
    let accepted = accepted
        .iter()
        .zip(published.iter())
        .filter_map(accepted_after_ms)
        .collect();
    let part = |of: fn(&Timing) -> Duration| {
        Figures::of(timings.iter().map(|(timing, _)| ms(of(timing))).collect())
    };
    let rest = |(timing, took_ms): &(Timing, f64)| took_ms - ms(timing.waited) - ms(timing.leased);
    Ok(Run {
        lost: tasks - overhead.len(),
        duplicated,
        overhead: Figures::of(overhead),
        bare,
        parts: vec![
            ("task durable after", Figures::of(accepted)),
            ("waited for its lease", part(|timing| timing.waited)),
            ("leased", part(|timing| timing.leased)),
            ("of that proving", part(|timing| timing.ran)),
            (
                "submission and making the result durable",
                Figures::of(timings.iter().map(rest).collect()),
            ),
        ],
    })
}
