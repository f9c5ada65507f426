//! Counters of the export of traces, on the pages of mills and engines.

use std::sync::atomic::{AtomicU64, Ordering};

use proofmill_telemetry::{Kind, Page};
use proofmill_trace::Counts;

/// Adds the counters of this process to a page; they are zero if traces are not exported.
pub(crate) fn add_to(page: &mut Page) {
    let counts = Counts::of_process();
    let counters: [(&str, &str, &AtomicU64); 3] = [
        (
            "trace_spans_exported",
            "Spans that a collector has taken from this process",
            &counts.exported,
        ),
        (
            "trace_spans_dropped",
            "Spans dropped because the queue to the exporter was full",
            &counts.dropped,
        ),
        (
            "trace_spans_failed",
            "Spans given up because the collector did not take them",
            &counts.failed,
        ),
    ];
    for (name, help, count) in counters {
        let value = count.load(Ordering::Relaxed) as f64;
        page.add(name, help, Kind::Counter, [(Vec::new(), value)]);
    }
}
