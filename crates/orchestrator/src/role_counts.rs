//! Numbers of this process's sources, sinks and blobs, which its metrics page shows.
//!
//! A source or a sink may run in another process than the coordinator, so that the core cannot count them. Each process
//! has one set of numbers for all workflows that it has a part in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use proofmill_settlement::Event;

/// Numbers of each source or sink of each workflow.
type ByWorkflow<Name, Counts> = BTreeMap<(Arc<str>, Name), Arc<Counts>>;

/// The numbers of this process.
#[derive(Debug, Default)]
pub struct RoleCounts {
    sources: Mutex<ByWorkflow<Arc<str>, SourceCounts>>,
    sinks: Mutex<ByWorkflow<usize, SinkCounts>>,
    settlements: Mutex<ByWorkflow<usize, SettlementCounts>>,
    blobs: Mutex<BTreeMap<Arc<str>, StoredBlobs>>,
}

/// Numbers of a source.
#[derive(Debug, Default)]
pub struct SourceCounts {
    /// The head plus one; 0 while it is unknown.
    head_after: AtomicU64,
    /// The next block plus one; 0 before the first is acknowledged.
    next_after: AtomicU64,
}

/// Numbers of a sink.
#[derive(Debug, Default)]
pub struct SinkCounts {
    stored: AtomicU64,
    failures: AtomicU64,
    /// Attempts that failed since the sink last took a message.
    failing: AtomicU64,
}

/// Numbers of a sink that settles on a chain.
#[derive(Debug, Default)]
pub struct SettlementCounts {
    signed: AtomicU64,
    replaced: AtomicU64,
    settled: AtomicU64,
    reverted: AtomicU64,
    undone: AtomicU64,
    lost: AtomicU64,
    gas: AtomicU64,
    /// Fees paid, in gwei: wei would pass 2^64 after 18 ether.
    gwei: AtomicU64,
}

/// The blobs of a workflow, as of the last scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredBlobs {
    /// Number of blobs.
    pub count: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// The numbers of this process.
pub fn role_counts() -> &'static RoleCounts {
    static COUNTS: OnceLock<RoleCounts> = OnceLock::new();
    COUNTS.get_or_init(RoleCounts::default)
}

// === impl RoleCounts ===

impl RoleCounts {
    /// The numbers of a source of a workflow.
    pub fn source(&self, workflow: &Arc<str>, source: &Arc<str>) -> Arc<SourceCounts> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (workflow.clone(), source.clone());
        Arc::clone(sources.entry(key).or_default())
    }

    /// The numbers of a workflow's sink; `number` counts the sinks from 1.
    pub fn sink(&self, workflow: &Arc<str>, number: usize) -> Arc<SinkCounts> {
        let mut sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(sinks.entry((workflow.clone(), number)).or_default())
    }

    /// The numbers of a sink that settles on a chain; `number` counts the sinks from 1.
    pub(crate) fn settlement(&self, workflow: &Arc<str>, number: usize) -> Arc<SettlementCounts> {
        let settlements = self.settlements.lock();
        let mut settlements = settlements.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(settlements.entry((workflow.clone(), number)).or_default())
    }

    /// Every sink that settles on a chain, with its workflow and its number.
    pub fn settlements(&self) -> Vec<(Arc<str>, usize, Arc<SettlementCounts>)> {
        let settlements = self.settlements.lock();
        let settlements = settlements.unwrap_or_else(PoisonError::into_inner);
        settlements
            .iter()
            .map(|((workflow, number), counts)| (workflow.clone(), *number, Arc::clone(counts)))
            .collect()
    }

    /// Notes the blobs of a workflow.
    pub fn note_blobs(&self, workflow: &Arc<str>, count: usize, bytes: u64) {
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.insert(workflow.clone(), StoredBlobs { count, bytes });
    }

    /// Every source, with its workflow and its name.
    pub fn sources(&self) -> Vec<(Arc<str>, Arc<str>, Arc<SourceCounts>)> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let sources = sources.iter();
        let sources = sources.map(|((workflow, source), counts)| {
            (workflow.clone(), source.clone(), Arc::clone(counts))
        });
        sources.collect()
    }

    /// Every sink, with its workflow and its number.
    pub fn sinks(&self) -> Vec<(Arc<str>, usize, Arc<SinkCounts>)> {
        let sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        let sinks = sinks.iter();
        let sinks = sinks
            .map(|((workflow, number), counts)| (workflow.clone(), *number, Arc::clone(counts)));
        sinks.collect()
    }

    /// The blobs of each workflow that this process has scanned.
    pub fn blobs(&self) -> Vec<(Arc<str>, StoredBlobs)> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs
            .iter()
            .map(|(workflow, blobs)| (workflow.clone(), *blobs))
            .collect()
    }
}

// === impl SourceCounts ===

impl SourceCounts {
    /// Notes the last block that the source could bring now: the head of its chain, or the end of its blocks.
    pub fn note_head(&self, head: u64) {
        self.head_after
            .store(head.saturating_add(1), Ordering::Relaxed);
    }

    /// The head that was noted last.
    pub fn head(&self) -> Option<u64> {
        self.head_after.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Notes the block up to which the log has all that the source has brought.
    pub(crate) fn note_next(&self, next: Option<u64>) {
        let after = next.map_or(0, |next| next.saturating_add(1));
        self.next_after.store(after, Ordering::Relaxed);
    }

    /// The next block that the source brings: the log has all before it.
    pub fn next(&self) -> Option<u64> {
        self.next_after.load(Ordering::Relaxed).checked_sub(1)
    }
}

// === impl SinkCounts ===

impl SinkCounts {
    /// Counts a message that the sink has taken.
    pub(crate) fn note_stored(&self) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        self.failing.store(0, Ordering::Relaxed);
    }

    /// Counts a failed attempt to store a message.
    pub(crate) fn note_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.failing.fetch_add(1, Ordering::Relaxed);
    }

    /// Messages that the sink has taken.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Attempts that failed.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Attempts that failed since the sink last took a message.
    pub fn failing(&self) -> u64 {
        self.failing.load(Ordering::Relaxed)
    }
}

// === impl SettlementCounts ===

impl SettlementCounts {
    /// Counts an event of settlement.
    pub(crate) fn note(&self, event: &Event) {
        let count = match event {
            Event::Signed { .. } => &self.signed,
            Event::Replaced { .. } => &self.replaced,
            Event::Settled { .. } => &self.settled,
            Event::Reverted { .. } => &self.reverted,
            Event::Undone { .. } => &self.undone,
            Event::Lost { .. } => &self.lost,
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Event::Settled { inclusion, .. } | Event::Reverted { inclusion, .. } = event {
            self.gas.fetch_add(inclusion.gas_used, Ordering::Relaxed);
            let wei = u128::from(inclusion.gas_used).saturating_mul(inclusion.gas_price);
            let gwei = u64::try_from(wei / 1_000_000_000).unwrap_or(u64::MAX);
            self.gwei.fetch_add(gwei, Ordering::Relaxed);
        }
    }

    /// Number of transactions of each outcome, with the outcome's name. `signed` has those that were replaced once.
    pub fn transactions(&self) -> [(&'static str, u64); 6] {
        [
            ("signed", &self.signed),
            ("replaced", &self.replaced),
            ("settled", &self.settled),
            ("reverted", &self.reverted),
            ("undone", &self.undone),
            ("lost", &self.lost),
        ]
        .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    /// Units of gas of transactions that were settled or reverted.
    pub fn gas(&self) -> u64 {
        self.gas.load(Ordering::Relaxed)
    }

    /// Fees of these, in gwei.
    pub fn gwei(&self) -> u64 {
        self.gwei.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_failures_are_kept_by_workflow() {
        let counts = RoleCounts::default();
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let chain: Arc<str> = "chain".into();
        assert_eq!(counts.source(&one, &chain).head(), None);
        counts.source(&one, &chain).note_head(0);
        counts.source(&other, &chain).note_head(7);
        let heads: Vec<_> = counts
            .sources()
            .iter()
            .map(|(_, _, it)| it.head())
            .collect();
        assert_eq!(heads, [Some(0), Some(7)]);
        let counts_of_one = counts.source(&one, &chain);
        assert_eq!(counts_of_one.next(), None);
        for next in [Some(0), Some(9), Some(4), None] {
            counts_of_one.note_next(next);
            assert_eq!(counts.source(&one, &chain).next(), next);
        }
        let sink = counts.sink(&one, 1);
        sink.note_failure();
        sink.note_failure();
        assert_eq!((sink.failures(), sink.failing(), sink.stored()), (2, 2, 0));
        counts.sink(&one, 1).note_stored();
        assert_eq!((sink.failures(), sink.failing(), sink.stored()), (2, 0, 1));
        counts.note_blobs(&one, 2, 9);
        assert_eq!(counts.blobs(), [(one, StoredBlobs { count: 2, bytes: 9 })]);
    }
}
