//! The verifier's metrics.

use proofmill_telemetry::{Kind, Page};
use proofmill_verifier::{KindFigures, Report};

type Figure = fn(&KindFigures) -> f64;

/// Counters by kind: name, help, figure.
const COUNTERS: [(&str, &str, Figure); 9] = [
    (
        "reductions",
        "Proofs that were decoded and reduced.",
        |it| it.reductions as f64,
    ),
    ("reduce_seconds", "Time of threads spent on that.", |it| {
        it.reduce_us as f64 / 1e6
    }),
    (
        "batches",
        "Batches that were checked; of one proof, too.",
        |it| it.batches as f64,
    ),
    ("batched_proofs", "Proofs in these batches.", |it| {
        it.proofs as f64
    }),
    (
        "check_seconds",
        "Time that batches took, the search for false proofs included.",
        |it| it.check_us as f64 / 1e6,
    ),
    (
        "final_checks",
        "Final checks of several proofs together.",
        |it| it.checks.together as f64,
    ),
    ("single_checks", "Final checks of one proof.", |it| {
        it.checks.alone as f64
    }),
    (
        "screens",
        "Cheap checks of one proof, where a batch had a false one.",
        |it| it.checks.screens as f64,
    ),
    (
        "checks_saved",
        "Checks that one by one would have taken beyond those that were made.",
        |it| it.checks_saved().max(0) as f64,
    ),
];

/// The page of metrics.
pub(super) fn page(report: &Report) -> String {
    let mut page = Page::new("proofmill_verifier");
    for (name, help, figure) in COUNTERS {
        let values = report.kinds.iter();
        let values = values.map(|(kind, figures)| (vec![("kind", kind.clone())], figure(figures)));
        page.add(name, help, Kind::Counter, values);
    }
    let sizes = report.kinds.iter().flat_map(|(kind, figures)| {
        figures.sizes.iter().enumerate().map(move |(log, count)| {
            let most = (1_u32 << log).to_string();
            (
                vec![("kind", kind.clone()), ("at_most", most)],
                *count as f64,
            )
        })
    });
    page.add(
        "batch_sizes",
        "Batches of more than half as many proofs, and at most so many.",
        Kind::Counter,
        sizes,
    );
    page.add(
        "under_way",
        "Requests that have no verdict yet.",
        Kind::Gauge,
        [(vec![], report.under_way as f64)],
    );
    let verdicts = report.sources.iter().flat_map(|source| {
        [
            ("valid", source.valid),
            ("invalid", source.invalid),
            ("unavailable", source.unavailable),
        ]
        .map(|(status, count)| {
            let labels = vec![
                ("source", source.source.to_string()),
                ("status", status.to_owned()),
            ];
            (labels, count as f64)
        })
    });
    page.add(
        "verdicts",
        "Verdicts by source, while it is remembered.",
        Kind::Counter,
        verdicts,
    );
    let quarantined = report.sources.iter().map(|source| {
        let labels = vec![("source", source.source.to_string())];
        (labels, f64::from(u8::from(source.is_quarantined)))
    });
    page.add(
        "source_apart",
        "Whether a source's proofs are checked apart, after false ones.",
        Kind::Gauge,
        quarantined,
    );
    page.render()
}
