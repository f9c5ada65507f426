//! The demo's summary.

use std::time::Duration;

use serde::Serialize;

use super::audit::Audit;
use super::mill::Outcome;
use super::range::RangeReport;
use super::settle::SettleReport;
use super::show::Totals;

/// The last line of standard output with `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) blocks: u64,
    pub(super) chunks: u64,
    pub(super) blocks_emitted: u64,
    pub(super) chunks_proved_now: u64,
    pub(super) proofs_verified: u64,
    pub(super) out_of_order: u64,
    pub(super) lost: u64,
    pub(super) dead: u64,
    pub(super) retries: u64,
    /// Time until the last chunk was emitted; that of [`range`](Self::range) is not in it.
    pub(super) wall_s: f64,
    pub(super) prove_s: f64,
    pub(super) overhead_ms_p50: Option<f64>,
    pub(super) overhead_ms_p99: Option<f64>,
    /// The proof of all chunks, with `--aggregate`.
    pub(super) range: Option<RangeReport>,
    /// Chunks that the light client has accepted, with `--settle`.
    pub(super) settled: Option<SettleReport>,
}

// === impl Report ===

impl Report {
    /// The summary of a mill that has ended and of the files that it emitted, without a range.
    pub(super) fn of(outcome: &Outcome, audited: &Audit, totals: &Totals, wall: Duration) -> Self {
        let status = &outcome.summary.status;
        let accounted = audited.blocks.div_ceil(totals.chunk) + (status.live + status.dead) as u64;
        let retries = status.stages.iter().map(|stage| stage.counters.retried);
        Self {
            blocks: totals.blocks,
            chunks: totals.chunks,
            blocks_emitted: audited.blocks,
            chunks_proved_now: outcome.stats.proved,
            proofs_verified: audited.chunks.len() as u64,
            out_of_order: outcome.out_of_order,
            lost: match outcome.summary.interrupted {
                true => 0,
                false => totals.chunks.saturating_sub(accounted),
            },
            dead: status.dead as u64,
            retries: retries.sum(),
            wall_s: wall.as_secs_f64(),
            prove_s: outcome.stats.proving.as_secs_f64(),
            overhead_ms_p50: quantile(&outcome.overheads, 0.50),
            overhead_ms_p99: quantile(&outcome.overheads, 0.99),
            range: None,
            settled: None,
        }
    }
}

/// The nearest-rank quantile of sorted values.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1)))
        .copied()
}
