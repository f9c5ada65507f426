//! Static knowledge about the messages in each queue.

use super::cycles::order;
use crate::decode::MAX_STAGES;
use crate::late::Late;
use crate::linked::{LinkedWorkflow, QueueId, StageId, StageKind};
use crate::model::{ChainStart, SourceKind, Strategy};

/// Messages that span `chunk` blocks each, from `start` to `end`; the last may span fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    pub(super) start: u64,
    /// Last block; `None` if it is unknown or there is none.
    pub(super) end: Option<u64>,
    pub(super) chunk: u64,
}

/// The reason why a queue holds several messages about the same block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuplicateBlocks {
    /// This stage makes many messages of one.
    FanOut(StageId),
    /// Two writers of this queue are fed by the same source.
    Writers(QueueId),
    /// This collector passes late messages on alone.
    Late(StageId),
}

/// Static knowledge about the messages in a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// The messages from each origin.
    pub(super) blocks: Vec<Blocks>,
    /// Whether there are also messages about which nothing is known.
    pub(super) unknown: bool,
    pub(super) duplicates: Option<DuplicateBlocks>,
    sources: Sources,
}

/// A set of sources, by index.
type Sources = [u64; MAX_STAGES.div_ceil(64)];

/// Maximum number of origins distinguished in a queue.
const MAX_BLOCKS: usize = 32;

// === impl Blocks ===

impl Blocks {
    /// Number of messages; `None` if they have no known end.
    pub(super) fn messages(&self) -> Option<u64> {
        Some((self.end?.checked_sub(self.start)? + 1).div_ceil(self.chunk))
    }

    /// Number of blocks in a full message, or in the only message if that is not full.
    pub(super) fn span(&self) -> u64 {
        match self.end.and_then(|end| end.checked_sub(self.start)) {
            Some(last) => self.chunk.min(last + 1),
            None => self.chunk,
        }
    }
}

// === impl Flow ===

impl Flow {
    /// The messages of the queue, if they are all known and have one origin.
    pub(super) fn single(&self) -> Option<Blocks> {
        match self.blocks[..] {
            [blocks] if !self.unknown => Some(blocks),
            _ => None,
        }
    }

    /// Number of messages in the queue, if known.
    pub(super) fn messages(&self) -> Option<u64> {
        if self.unknown || self.duplicates.is_some() || self.blocks.is_empty() {
            return None;
        }
        self.blocks
            .iter()
            .try_fold(0u64, |sum, blocks| sum.checked_add(blocks.messages()?))
    }

    fn add(&mut self, other: &Flow) {
        for blocks in &other.blocks {
            if self.blocks.contains(blocks) {
                continue;
            }
            if self.blocks.len() == MAX_BLOCKS {
                self.unknown = true;
                break;
            }
            self.blocks.push(*blocks);
        }
        self.unknown |= other.unknown;
        self.duplicates = self.duplicates.or(other.duplicates);
        self.sources
            .iter_mut()
            .zip(other.sources)
            .for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn shares_source(&self, other: &Flow) -> bool {
        self.sources
            .iter()
            .zip(other.sources)
            .any(|(mine, theirs)| mine & theirs != 0)
    }
}

/// The flow of each queue, in the order of [`LinkedWorkflow::queues`]; the workflow has no cycles.
pub(super) fn flows(linked: &LinkedWorkflow) -> Vec<Flow> {
    let mut flows = vec![Flow::default(); linked.queues.len()];
    let mut written = vec![false; linked.queues.len()];
    for id in order(linked, &vec![false; linked.stages.len()]) {
        let stage = linked.stage(id);
        let mut flow = Flow::default();
        match &stage.kind {
            StageKind::Source(source) => {
                flow.sources[id.0 / 64 % flow.sources.len()] |= 1 << (id.0 % 64);
                match source.kind {
                    SourceKind::Range {
                        start, end, chunk, ..
                    }
                    | SourceKind::Headers {
                        start, end, chunk, ..
                    } => {
                        flow.blocks.push(Blocks {
                            start,
                            end,
                            chunk: u64::from(chunk),
                        });
                    }
                    SourceKind::Ethereum {
                        from: ChainStart::At(start),
                        ..
                    } => flow.blocks.push(Blocks {
                        start,
                        end: None,
                        chunk: 1,
                    }),
                    SourceKind::Ethereum { .. } | SourceKind::Jsonl { .. } | SourceKind::Submit => {
                        flow.unknown = true
                    }
                }
            }
            StageKind::Dispatcher(dispatcher) => {
                stage
                    .inputs
                    .iter()
                    .for_each(|queue| flow.add(&flows[queue.0]));
                if dispatcher.fan_out {
                    flow.duplicates = flow.duplicates.or(Some(DuplicateBlocks::FanOut(id)));
                }
            }
            StageKind::Collector(collector) => {
                stage
                    .inputs
                    .iter()
                    .for_each(|queue| flow.add(&flows[queue.0]));
                flow.duplicates =
                    (collector.late == Late::Emit).then_some(DuplicateBlocks::Late(id));
                match &collector.strategy {
                    Strategy::Sequential { n } => {
                        flow.blocks
                            .iter_mut()
                            .for_each(|blocks| blocks.chunk = (*n).max(1));
                        flow.blocks.dedup();
                    }
                    Strategy::Range { by } => {
                        if let Some(by) = linked.queue_by_name(by) {
                            flow.blocks.clone_from(&flows[by.id.0].blocks);
                            flow.unknown = flows[by.id.0].unknown;
                        }
                    }
                    Strategy::Match { .. } | Strategy::Custom { .. } => {
                        flow.blocks.clear();
                        flow.unknown = true;
                    }
                }
            }
            StageKind::Sequencer(_) => {}
        }
        for queue in &stage.outputs {
            let into = &mut flows[queue.0];
            if written[queue.0] && into.shares_source(&flow) {
                into.duplicates = into.duplicates.or(Some(DuplicateBlocks::Writers(*queue)));
            }
            into.add(&flow);
            written[queue.0] = true;
        }
    }
    for queue in linked
        .queues
        .iter()
        .filter(|queue| queue.writers.is_empty())
    {
        flows[queue.id.0].unknown = true;
    }
    flows
}
