//! Metrics of the sources, sinks and blobs of this process.

use proofmill_orchestrator::role_counts::{
    SettlementCounts, SinkCounts, SourceCounts, role_counts,
};
use proofmill_telemetry::{Kind, Page};

/// Reads one number of a source.
type SourceValue = fn(&SourceCounts) -> Option<u64>;
/// Reads one number of a sink.
type SinkValue = fn(&SinkCounts) -> f64;

/// Reads one number of a sink that settles on a chain.
type SettlementValue = fn(&SettlementCounts) -> u64;

/// Adds them.
pub(super) fn add(page: &mut Page) {
    let counts = role_counts();
    let sources = counts.sources();
    let of_sources: [(&str, &str, SourceValue); 2] = [
        (
            "source_head_block",
            "The last block that a source could bring: the head of its chain, or the end of its blocks",
            SourceCounts::head,
        ),
        (
            "source_next_block",
            "The next block that a source brings: the log has all before it",
            SourceCounts::next,
        ),
    ];
    for (name, help, value) in of_sources {
        let values = sources.iter().filter_map(|(workflow, source, counts)| {
            let labels = vec![
                ("workflow", workflow.to_string()),
                ("source", source.to_string()),
            ];
            Some((labels, value(counts)? as f64))
        });
        page.add(name, help, Kind::Gauge, values);
    }
    let sinks = counts.sinks();
    let metrics: [(&str, &str, Kind, SinkValue); 3] = [
        (
            "sink_messages",
            "Messages that a sink has taken",
            Kind::Counter,
            |it| it.stored() as f64,
        ),
        (
            "sink_failures",
            "Attempts of a sink to store a message that failed",
            Kind::Counter,
            |it| it.failures() as f64,
        ),
        (
            "sink_failing",
            "Attempts that failed since the sink last took a message",
            Kind::Gauge,
            |it| it.failing() as f64,
        ),
    ];
    for (name, help, kind, value) in metrics {
        let values = sinks.iter().map(|(workflow, number, counts)| {
            let labels = vec![
                ("workflow", workflow.to_string()),
                ("sink", number.to_string()),
            ];
            (labels, value(counts))
        });
        page.add(name, help, kind, values);
    }
    settlements(page);
    let blobs = counts.blobs();
    page.add(
        "blobs",
        "Blobs of the workflow, as of the last scan",
        Kind::Gauge,
        blobs
            .iter()
            .map(|(workflow, blobs)| (of(workflow), blobs.count as f64)),
    );
    page.add(
        "blob_bytes",
        "Bytes of the workflow's blobs, as of the last scan",
        Kind::Gauge,
        blobs
            .iter()
            .map(|(workflow, blobs)| (of(workflow), blobs.bytes as f64)),
    );
}

/// Adds those of sinks that settle on a chain.
fn settlements(page: &mut Page) {
    let settlements = role_counts().settlements();
    let labels = |workflow: &str, number: usize| {
        vec![
            ("workflow", workflow.to_owned()),
            ("sink", number.to_string()),
        ]
    };
    let transactions = settlements.iter().flat_map(|(workflow, number, counts)| {
        counts.transactions().map(|(outcome, count)| {
            let mut labels = labels(workflow, *number);
            labels.push(("outcome", outcome.to_owned()));
            (labels, count as f64)
        })
    });
    page.add(
        "settlement_transactions",
        "Transactions of a sink that settles on a chain, by what happened to them",
        Kind::Counter,
        transactions,
    );
    let sums: [(&str, &str, SettlementValue); 2] = [
        (
            "settlement_gas",
            "Units of gas of transactions that were settled or reverted",
            SettlementCounts::gas,
        ),
        (
            "settlement_fees_gwei",
            "Fees of transactions that were settled or reverted, in gwei",
            SettlementCounts::gwei,
        ),
    ];
    for (name, help, value) in sums {
        let values = settlements
            .iter()
            .map(|(workflow, number, counts)| (labels(workflow, *number), value(counts) as f64));
        page.add(name, help, Kind::Counter, values);
    }
}

fn of(workflow: &str) -> Vec<(&'static str, String)> {
    vec![("workflow", workflow.to_owned())]
}
