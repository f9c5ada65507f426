//! A mill at a glance, and those who watch for its changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofmill_orchestrator::conversation::WorkerRow;
use proofmill_orchestrator::core::{BLOCKS_MAX, BlockState, BlockSummary, Status};
use proofmill_orchestrator::plan::{Plan, QueueIx, StageKind};
use serde::Serialize;
use tokio::sync::watch;

use crate::operations::{OperationError, Operations};
use crate::types::DeadSummary;

/// Time between two looks at the mill while a page watches.
const INTERVAL: Duration = Duration::from_millis(500);
/// Blocks below the next to be emitted, and from it on, that the page shows.
const BLOCKS_BELOW: u64 = 40;
const BLOCKS_FROM: u64 = 80;
/// Most workers and dead letters that are shown.
const ROWS_MAX: usize = 200;
/// Time over which the rate of emission is measured.
const RATE_WINDOW: Duration = Duration::from_secs(60);

/// The state of a mill, as the page's views other than a block's show it.
#[derive(Clone, Debug, Serialize)]
struct Overview<'a> {
    status: Status,
    /// Blocks around the next to be emitted, without those above that nothing is known of.
    blocks: Vec<BlockSummary>,
    /// Messages emitted a minute, over the last minute; `None` before there are two looks.
    emitted_per_minute: Option<f64>,
    stages: &'a [StageEdges],
    workers: Vec<WorkerRow>,
    dead: Vec<DeadSummary>,
}

/// A stage in the workflow's graph.
#[derive(Clone, Debug, Serialize)]
struct StageEdges {
    stage: String,
    /// Worker group of a dispatcher.
    group: Option<String>,
    /// Queues that it reads and writes.
    reads: Vec<String>,
    writes: Vec<String>,
}

/// The latest overview, as the JSON that watchers get; an error's text if the mill does not answer.
pub(super) type Latest = Result<Arc<str>, Arc<str>>;

/// Looks at the mill for all who watch, as long as somebody does.
pub(super) async fn look(operations: Operations, latest: watch::Sender<Option<Latest>>) {
    let stages = edges(operations.port().plan());
    let mut emitted = VecDeque::new();
    loop {
        if latest.receiver_count() == 0 {
            emitted.clear();
            latest.send_replace(None);
        } else {
            let seen = overview(&operations, &stages, &mut emitted).await;
            let seen: Latest = match seen {
                Ok(overview) => match serde_json::to_string(&overview) {
                    Ok(json) => Ok(json.into()),
                    Err(error) => Err(error.to_string().into()),
                },
                Err(error) => Err(error.to_string().into()),
            };
            // Watchers are woken by changes only.
            latest.send_if_modified(|before| {
                let is_new = before.as_ref() != Some(&seen);
                *before = Some(seen);
                is_new
            });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn overview<'a>(
    operations: &Operations,
    stages: &'a [StageEdges],
    emitted: &mut VecDeque<(Instant, u64)>,
) -> Result<Overview<'a>, OperationError> {
    let status = operations.status().await?;
    let lowest = status.stages.iter().filter_map(|stage| stage.lowest).min();
    let next = status.next_block.or(lowest).unwrap_or(0);
    let first = next.saturating_sub(BLOCKS_BELOW);
    let last = next.saturating_add(BLOCKS_FROM.min(BLOCKS_MAX - BLOCKS_BELOW - 1));
    let mut blocks = operations.port().blocks(first..=last).await?;
    while blocks
        .last()
        .is_some_and(|it| it.state == BlockState::NeverSeen && it.block > next)
    {
        blocks.pop();
    }
    let workers = operations.port().workers(None, ROWS_MAX).await?.rows;
    let dead = operations.first_dead_letters(ROWS_MAX).await?;
    let total = status
        .stages
        .iter()
        .map(|stage| stage.counters.emitted)
        .sum();
    Ok(Overview {
        emitted_per_minute: rate(emitted, total),
        stages,
        status,
        blocks,
        workers,
        dead,
    })
}

/// Notes a count, and gives its growth a minute over the window.
fn rate(seen: &mut VecDeque<(Instant, u64)>, total: u64) -> Option<f64> {
    let now = Instant::now();
    seen.push_back((now, total));
    while seen
        .get(1)
        .is_some_and(|(at, _)| now.duration_since(*at) >= RATE_WINDOW)
    {
        seen.pop_front();
    }
    let (since, before) = seen.front()?;
    let seconds = now.duration_since(*since).as_secs_f64();
    let rate = 60.0 * total.saturating_sub(*before) as f64 / seconds;
    (seconds > 0.0).then(|| (10.0 * rate).round() / 10.0)
}

fn edges(plan: &Plan) -> Vec<StageEdges> {
    let names = |queues: &[QueueIx]| {
        let names = queues
            .iter()
            .map(|queue| plan.queue(*queue).name.to_string());
        names.collect()
    };
    let stages = plan.stages.iter();
    let edges = stages.map(|stage| StageEdges {
        stage: stage.name.to_string(),
        group: match &stage.kind {
            StageKind::Dispatcher(dispatcher) => Some(dispatcher.group.to_string()),
            _ => None,
        },
        reads: names(&stage.inputs),
        writes: names(&stage.outputs),
    });
    edges.collect()
}
