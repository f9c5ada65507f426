//! A mill at a glance, for a terminal.

use proofmill_orchestrator::core::{BlockState, Measures, Status};
use proofmill_orchestrator::role_counts::role_counts;
use proofmill_orchestrator::wall_ms;
use serde::{Deserialize, Serialize};

use crate::operations::{OperationError, Operations};
use crate::types::DeadSummary;

/// Most tasks of a block, and most dead letters, in a view.
const ROWS_MAX: usize = 50;

/// The state of a mill at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MillView {
    /// Time of the look, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Status of the workflow.
    pub status: Status,
    /// Numbers for monitoring.
    pub measures: Measures,
    /// The block that the mill is to finish next; `None` if it has no work.
    pub head: Option<HeadBlock>,
    /// The heads of the sources that run beside the coordinator.
    pub source_heads: Vec<SourceHead>,
    /// Blocks from the next to be emitted to the last that a source could bring, or has brought where no head is known.
    /// `None` without a sequencer, or if no source has a head or a position that is a block.
    #[serde(default)]
    pub behind: Option<u64>,
    /// The first dead letters.
    pub dead: Vec<DeadSummary>,
}

/// The head of a source: the last block that it could bring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceHead {
    /// Name of the source.
    pub source: String,
    /// The block.
    pub head: u64,
}

/// The next block to be emitted, or without a sequencer the lowest block of a live task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadBlock {
    /// The block.
    pub block: u64,
    /// State of the block.
    pub state: BlockState,
    /// An explanation of the state, if there is one.
    pub note: Option<String>,
    /// The block's live tasks, each with the event that it waits for.
    pub tasks: Vec<WaitingTask>,
}

/// A live task, and the event that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingTask {
    /// The task's id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The event, in words.
    pub waits_for: String,
}

impl Operations {
    /// The mill at a glance.
    pub async fn view(&self) -> Result<MillView, OperationError> {
        let status = self.port().status().await?;
        let measures = self.port().measures().await?;
        let lowest = status.stages.iter().filter_map(|stage| stage.lowest).min();
        let head = match status.next_block.or(lowest) {
            Some(block) => Some(self.head_block(block).await?),
            None => None,
        };
        let source_heads = source_heads(&status);
        Ok(MillView {
            at_ms: wall_ms(),
            behind: self.blocks_behind(&status),
            source_heads,
            measures,
            head,
            dead: self.first_dead_letters(ROWS_MAX).await?,
            status,
        })
    }

    /// [`MillView::behind`].
    pub(crate) fn blocks_behind(&self, status: &Status) -> Option<u64> {
        let positions = status.sources.iter();
        let positions = positions.filter(|source| self.counts_blocks(&source.source));
        behind(
            status.next_block?,
            &source_heads(status),
            positions.map(|source| source.next),
        )
    }

    async fn head_block(&self, block: u64) -> Result<HeadBlock, OperationError> {
        let found = self.block(block).await?;
        let tasks = found.tasks.into_iter().take(ROWS_MAX);
        let tasks = tasks.map(|task| WaitingTask {
            task: task.task,
            waits_for: task.waits_for,
        });
        Ok(HeadBlock {
            block,
            state: found.summary.state,
            note: found.note,
            tasks: tasks.collect(),
        })
    }
}

/// The heads of a workflow's sources that run in this process.
fn source_heads(status: &Status) -> Vec<SourceHead> {
    let sources = role_counts().sources().into_iter();
    let own = sources.filter(|(workflow, _, _)| *workflow == status.workflow);
    let heads = own.filter_map(|(_, source, counts)| {
        Some(SourceHead {
            source: source.to_string(),
            head: counts.head()?,
        })
    });
    heads.collect()
}

/// Blocks from the next to be emitted to the highest of the heads and of the blocks before the positions.
fn behind(
    next_block: u64,
    heads: &[SourceHead],
    positions: impl Iterator<Item = u64>,
) -> Option<u64> {
    let heads = heads.iter().map(|source| source.head.saturating_add(1));
    Some(heads.chain(positions).max()?.saturating_sub(next_block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_reaches_to_the_highest_head_or_position() {
        let head = |head| SourceHead {
            source: "chain".to_owned(),
            head,
        };
        let of =
            |heads: &[SourceHead], positions: &[u64]| behind(100, heads, positions.iter().copied());
        assert_eq!(of(&[], &[]), None);
        assert_eq!(of(&[head(5099)], &[190]), Some(5000));
        assert_eq!(of(&[], &[110, 190]), Some(90));
        // All that a source has brought is emitted.
        assert_eq!(of(&[head(99)], &[100]), Some(0));
        assert_eq!(of(&[], &[7]), Some(0));
        assert_eq!(of(&[head(u64::MAX)], &[]), Some(u64::MAX - 100));
    }
}
