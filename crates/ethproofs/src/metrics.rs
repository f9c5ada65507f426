//! Metrics of a reporter.

use proofmill_telemetry::{Kind, Page};

use crate::call::Step;
use crate::numbers::{CallOutcome, Numbers, Snapshot};
use crate::reporter::DropReason;
use crate::score::Scores;

/// Reads one share of the scores.
type Share = fn(&Scores) -> Option<f64>;

/// Gauges of the scores.
const SHARES: [(&str, &str, Share); 4] = [
    (
        "ethproofs_performance_ratio",
        "Share of the blocks of the last seven days with a proof at Ethproofs made in less than 10 s",
        Scores::performance,
    ),
    (
        "ethproofs_liveness_ratio",
        "Share of the blocks of the last seven days with a proof at Ethproofs",
        Scores::liveness,
    ),
    (
        "ethproofs_stunner_ratio",
        "Share of the blocks of the last seven days with a proof at Ethproofs made in 10 s or longer",
        Scores::stunner,
    ),
    (
        "ethproofs_paralyzer_ratio",
        "Share of the blocks of the last seven days without a proof at Ethproofs after 20 minutes",
        Scores::paralyzer,
    ),
];

/// Adds the numbers of the reporters of these workflows to a page.
pub fn add_metrics<'a>(
    page: &mut Page,
    reporters: impl IntoIterator<Item = (&'a str, &'a Numbers)>,
) {
    let looks = reporters
        .into_iter()
        .map(|(workflow, numbers)| (workflow.to_owned(), numbers.look()));
    let looks: Vec<(String, Snapshot)> = looks.collect();
    if looks.is_empty() {
        return;
    }
    let of = |workflow: &str| ("workflow", workflow.to_owned());
    let calls = looks.iter().flat_map(|(workflow, look)| {
        steps_and(CallOutcome::ALL).map(move |(step, outcome)| {
            let count = look.calls.get(&(step, outcome)).copied().unwrap_or(0);
            let labels = [("call", step.name()), ("outcome", outcome.name())];
            (labelled(of(workflow), labels), count as f64)
        })
    });
    let help = "Calls of Ethproofs that have ended";
    page.add("ethproofs_calls", help, Kind::Counter, calls);
    let dropped = looks.iter().flat_map(|(workflow, look)| {
        steps_and(DropReason::ALL).map(move |(step, reason)| {
            let count = look.dropped.get(&(step, reason)).copied().unwrap_or(0);
            let labels = [("call", step.name()), ("reason", reason.name())];
            (labelled(of(workflow), labels), count as f64)
        })
    });
    let help = "Reports to Ethproofs that were given up";
    page.add("ethproofs_dropped", help, Kind::Counter, dropped);
    let pending = looks.iter().flat_map(|(workflow, look)| {
        let counts = Step::ALL.into_iter().zip(look.pending);
        counts.map(move |(step, count)| {
            let labels = vec![of(workflow), ("call", step.name().to_owned())];
            (labels, count as f64)
        })
    });
    let help = "Reports that Ethproofs has not taken yet";
    page.add("ethproofs_pending", help, Kind::Gauge, pending);
    let gauge = |value: fn(&Snapshot) -> Option<f64>| {
        let values = looks.iter().filter_map(move |(workflow, look)| {
            let labels = vec![("workflow", workflow.clone())];
            Some((labels, value(look)?))
        });
        values.collect::<Vec<_>>()
    };
    page.add(
        "ethproofs_pending_bytes",
        "Bytes of the proofs that Ethproofs has not taken yet",
        Kind::Gauge,
        gauge(|look| Some(look.pending_bytes as f64)),
    );
    page.add(
        "ethproofs_failing",
        "Calls of Ethproofs without success since the last one with it",
        Kind::Gauge,
        gauge(|look| Some(f64::from(look.failing))),
    );
    page.add(
        "ethproofs_window_blocks",
        "Blocks of the last seven days, of which the ratios are shares",
        Kind::Gauge,
        gauge(|look| Some(look.scores.blocks as f64)),
    );
    for (name, help, share) in SHARES {
        let values = looks.iter().filter_map(|(workflow, look)| {
            let labels = vec![("workflow", workflow.clone())];
            Some((labels, share(&look.scores)?))
        });
        page.add(name, help, Kind::Gauge, values);
    }
}

/// Each step with each of the other values.
fn steps_and<T: Copy, const N: usize>(others: [T; N]) -> impl Iterator<Item = (Step, T)> {
    let steps = Step::ALL.into_iter();
    steps.flat_map(move |step| others.into_iter().map(move |other| (step, other)))
}

fn labelled(
    workflow: (&'static str, String),
    labels: [(&'static str, &'static str); 2],
) -> Vec<(&'static str, String)> {
    let labels = labels.map(|(name, value)| (name, value.to_owned()));
    std::iter::once(workflow).chain(labels).collect()
}
