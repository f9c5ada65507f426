//! A mill at a glance, and those who watch for its changes.

use std::iter;

use futures_util::future::BoxFuture;
use proofmill_orchestrator::conversation::WorkerRow;
use proofmill_orchestrator::core::{BLOCKS_MAX, BlockState, BlockSummary, Status, StepsView};
use proofmill_orchestrator::plan::{Plan, QueueIx, SourcePlan, StageKind};
use serde::Serialize;

use super::rates::Rates;
use super::watched::Look;
use crate::operations::{OperationError, Operations};
use crate::types::DeadSummary;

/// Message to pages while nobody answers, as on a cluster while its coordinator is replaced.
pub(super) const NO_ANSWER: &str = "no leader of the workflow answers";
/// Blocks below the next to be emitted, and from it on, that the page shows.
const BLOCKS_BELOW: u64 = 40;
const BLOCKS_FROM: u64 = 80;
/// Most workers and dead letters that are shown.
const ROWS_MAX: usize = 200;
/// Step in which the silence of workers is shown: above the time from one heartbeat to the next.
const SILENCE_STEP_MS: u64 = 10_000;

/// The state of a mill, as the page's views other than a block's show it.
#[derive(Clone, Debug, Serialize)]
struct Overview<'a> {
    status: Status,
    /// Blocks around the next to be emitted, without those above that nothing is known of.
    blocks: Vec<BlockSummary>,
    /// Whether something may be known of blocks above them.
    has_more: bool,
    /// Blocks from the next to be emitted to the last that a source could bring, or has brought: see
    /// [`MillView::behind`](crate::MillView::behind).
    behind: Option<u64>,
    /// Blocks emitted a minute, over the last minute; `None` without a sequencer, and before there are two looks.
    blocks_per_minute: Option<f64>,
    stages: &'a [StageEdges],
    /// Rate of each stage's messages, in the order of the status's stages.
    flows: Vec<StageFlow>,
    sources: &'a [SourceEdge],
    workers: Vec<WorkerRow>,
    dead: Vec<DeadSummary>,
    /// Number of engines that the mill's stages use.
    engines: usize,
    /// Steps of the lowest blocks in work; `None` if the workflow cuts no blocks into parts.
    steps: Option<StepsView>,
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

/// Rate of the messages that go through a stage.
#[derive(Clone, Debug, Serialize)]
struct StageFlow {
    /// Messages accepted a minute, over the last minute; `None` before there are two looks.
    accepted_per_minute: Option<f64>,
}

/// A source in the workflow's graph.
#[derive(Clone, Debug, Serialize)]
struct SourceEdge {
    source: String,
    /// Queue that it writes.
    writes: String,
}

/// A mill, as pages watch it.
pub(super) struct MillLook {
    operations: Operations,
    stages: Vec<StageEdges>,
    sources: Vec<SourceEdge>,
    /// The next block to be emitted, and the messages that each stage accepted.
    rates: Rates,
}

// === impl MillLook ===

impl MillLook {
    pub(super) fn new(operations: Operations) -> Self {
        let plan = operations.port().plan();
        Self {
            stages: edges(plan),
            sources: source_edges(plan),
            operations,
            rates: Rates::default(),
        }
    }
}

impl Look for MillLook {
    fn look(&mut self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let seen = overview(
                &self.operations,
                (&self.stages, &self.sources),
                &mut self.rates,
            )
            .await;
            let seen = seen.map_err(|error| error.to_string())?;
            serde_json::to_string(&seen).map_err(|error| error.to_string())
        })
    }

    fn forget(&mut self) {
        self.rates = Rates::default();
    }

    fn no_answer(&self) -> String {
        NO_ANSWER.to_owned()
    }
}

async fn overview<'a>(
    operations: &Operations,
    (stages, sources): (&'a [StageEdges], &'a [SourceEdge]),
    rates: &mut Rates,
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
    let has_more = blocks.last().is_some_and(|it| it.block == last);
    let mut workers = operations.port().workers(None, ROWS_MAX).await?.rows;
    for worker in &mut workers {
        // Pages are told what changes, which a heartbeat is not.
        worker.silent_ms -= worker.silent_ms % SILENCE_STEP_MS;
    }
    let dead = operations.first_dead_letters(ROWS_MAX).await?;
    // A message may span many blocks, so the cursor is counted, as the blocks behind are.
    let cursor = status.next_block.unwrap_or(0);
    let accepted = status.stages.iter().map(|stage| stage.counters.accepted);
    rates.note(iter::once(cursor).chain(accepted));
    let flows = (0..status.stages.len()).map(|at| StageFlow {
        accepted_per_minute: rates.of(1 + at),
    });
    let steps = match operations.port().plan().cuts_blocks {
        true => Some(operations.port().steps().await?),
        false => None,
    };
    Ok(Overview {
        has_more,
        behind: operations.blocks_behind(&status),
        blocks_per_minute: status.next_block.and_then(|_| rates.of(0)),
        flows: flows.collect(),
        stages,
        sources,
        status,
        blocks,
        workers,
        dead,
        engines: operations.engines().len(),
        steps,
    })
}

fn source_edges(plan: &Plan) -> Vec<SourceEdge> {
    let edge = |source: &SourcePlan| SourceEdge {
        source: source.name.to_string(),
        writes: plan.queue(source.output).name.to_string(),
    };
    plan.sources.iter().map(edge).collect()
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
