//! A page of metrics, built anew for each scrape.
//!
//! Services keep their own counts and a scrape reads them, so metrics add no work to the hot path. Only
//! histograms are filled as events happen.

use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The content type of [`Page::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The media type by which a scraper asks for exemplars.
const OPEN_METRICS: &str = "application/openmetrics-text";

/// Label of an exemplar. With a trace identifier of 32 digits it has 40 characters; the format allows 128.
const TRACE_ID: &str = "trace_id";

/// The type of a metric with a single number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
}

/// A histogram, filled as events happen. Clones share their counts.
#[derive(Clone, Debug)]
pub struct Histogram(prometheus_client::metrics::histogram::Histogram);

/// Histograms under one name, one for each set of labels. Clones share their counts.
#[derive(Clone, Debug)]
pub struct Histograms(Family<Labels, prometheus_client::metrics::histogram::Histogram>);

/// [`Histograms`] with the trace of a recent event in each bucket that has had one: its exemplar. Clones share their
/// counts.
#[derive(Clone, Debug)]
pub struct TracedHistograms {
    plain: Histograms,
    /// The same counts, with exemplars.
    traced: Family<Labels, HistogramWithExemplars<Exemplar>>,
}

/// One page of metrics.
#[derive(Debug)]
pub struct Page {
    registry: Registry,
    has_exemplars: bool,
}

/// Labels of an exemplar.
type Exemplar = [(&'static str, String); 1];

type Labels = Vec<(String, String)>;

// === impl Histogram ===

impl Histogram {
    /// Buckets for durations from 50 µs to 6711 s (1.9 h), each twice the one before.
    pub fn of_seconds() -> Self {
        Self(of_seconds())
    }

    /// Counts one event of this duration.
    pub fn observe(&self, seconds: f64) {
        self.0.observe(seconds);
    }
}

// === impl Histograms ===

impl Histograms {
    /// Like [`Histogram::of_seconds`].
    pub fn of_seconds() -> Self {
        Self(Family::new_with_constructor(of_seconds))
    }

    /// Counts one event of this duration under these labels.
    pub fn observe(&self, labels: &[(&str, &str)], seconds: f64) {
        self.0.get_or_create(&owned(labels)).observe(seconds);
    }
}

// === impl TracedHistograms ===

impl TracedHistograms {
    /// Like [`Histogram::of_seconds`].
    pub fn of_seconds() -> Self {
        let with_exemplars: fn() -> _ = || HistogramWithExemplars::new(buckets_of_seconds());
        Self {
            plain: Histograms::of_seconds(),
            traced: Family::new_with_constructor(with_exemplars),
        }
    }

    /// Counts one event of this duration under these labels. `trace` is the identifier of its trace, if that is
    /// recorded: a scraper's user can look it up.
    pub fn observe(&self, labels: &[(&str, &str)], seconds: f64, trace: Option<&str>) {
        self.plain.observe(labels, seconds);
        let exemplar = trace.map(|trace| [(TRACE_ID, trace.to_owned())]);
        let at = exemplar.is_some().then(SystemTime::now);
        let histogram = self.traced.get_or_create(&owned(labels));
        histogram.observe(seconds, exemplar, at);
    }
}

fn owned(labels: &[(&str, &str)]) -> Labels {
    let labels = labels.iter();
    let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    labels.collect()
}

fn of_seconds() -> prometheus_client::metrics::histogram::Histogram {
    prometheus_client::metrics::histogram::Histogram::new(buckets_of_seconds())
}

fn buckets_of_seconds() -> impl Iterator<Item = f64> {
    (0..28).map(|power| 50e-6 * f64::from(1_u32 << power))
}

/// Whether a request's headers `Accept` ask for the OpenMetrics format, in which a page may have exemplars. A range
/// such as `*/*` does not ask for it.
pub fn asks_for_exemplars<'a>(accept: impl IntoIterator<Item = &'a str>) -> bool {
    let mut ranges = accept.into_iter().flat_map(|header| header.split(','));
    ranges.any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_asked = parts
            .next()
            .is_some_and(|it| it.eq_ignore_ascii_case(OPEN_METRICS));
        let is_refused = parts.any(|parameter| {
            let weight = parameter
                .split_once('=')
                .filter(|(name, _)| name.trim() == "q");
            let weight = weight.and_then(|(_, weight)| weight.trim().parse::<f64>().ok());
            weight == Some(0.0)
        });
        is_asked && !is_refused
    })
}

// === impl Page ===

impl Page {
    /// An empty page; the names of its metrics begin with `prefix` and an underscore.
    pub fn new(prefix: &str) -> Self {
        Self {
            registry: Registry::with_prefix(prefix),
            has_exemplars: false,
        }
    }

    /// The page with exemplars, if the scraper [asks](asks_for_exemplars) for them. Call it before adding histograms.
    #[must_use]
    pub fn with_exemplars(self, has_exemplars: bool) -> Self {
        Self {
            has_exemplars,
            ..self
        }
    }

    /// Adds a metric with one value for each set of labels.
    pub fn add<'a>(
        &mut self,
        name: &str,
        help: &str,
        kind: Kind,
        values: impl IntoIterator<Item = (Vec<(&'a str, String)>, f64)>,
    ) {
        let help = without_full_stop(help);
        let labelled = values.into_iter().map(|(labels, value)| {
            let labels: Labels = labels
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect();
            (labels, value)
        });
        match kind {
            Kind::Counter => {
                let family = Family::<Labels, Counter<f64, AtomicU64>>::default();
                for (labels, value) in labelled {
                    family.get_or_create(&labels).inc_by(value);
                }
                self.registry.register(name, help, family);
            }
            Kind::Gauge => {
                let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
                for (labels, value) in labelled {
                    family.get_or_create(&labels).set(value);
                }
                self.registry.register(name, help, family);
            }
        }
    }

    /// Adds a histogram.
    pub fn add_histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        let help = without_full_stop(help);
        self.registry.register(name, help, histogram.0.clone());
    }

    /// Adds histograms, with their labels.
    pub fn add_histograms(&mut self, name: &str, help: &str, histograms: &Histograms) {
        let help = without_full_stop(help);
        self.registry.register(name, help, histograms.0.clone());
    }

    /// Adds histograms, with their labels, and with their exemplars if the page has such.
    pub fn add_traced_histograms(&mut self, name: &str, help: &str, histograms: &TracedHistograms) {
        match self.has_exemplars {
            true => {
                let help = without_full_stop(help);
                self.registry
                    .register(name, help, histograms.traced.clone());
            }
            false => self.add_histograms(name, help, &histograms.plain),
        }
    }

    /// The page in the OpenMetrics text format, which Prometheus reads.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// The registry ends each help text with a full stop itself.
fn without_full_stop(help: &str) -> &str {
    help.strip_suffix('.').unwrap_or(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_metrics_with_labels() {
        let mut page = Page::new("mill");
        let values = [(vec![("stage", "prove".to_owned())], 3.0)];
        page.add("tasks", "Tasks finished", Kind::Counter, values.clone());
        page.add("waiting", "Tasks waiting.", Kind::Gauge, values);
        let histogram = Histogram::of_seconds();
        histogram.observe(0.001);
        histogram.observe(3600.0);
        page.add_histogram("overhead_seconds", "Overhead", &histogram);
        let histograms = Histograms::of_seconds();
        histograms.observe(&[("stage", "prove")], 0.001);
        page.add_histograms("took_seconds", "Took", &histograms);
        let text = page.render();
        assert!(
            text.contains("mill_took_seconds_count{stage=\"prove\"} 1"),
            "{text}"
        );
        assert!(
            text.contains("mill_tasks_total{stage=\"prove\"} 3"),
            "{text}"
        );
        assert!(text.contains("mill_waiting{stage=\"prove\"} 3"), "{text}");
        assert!(text.contains("mill_overhead_seconds_count 2"), "{text}");
        // A proof of an hour is in a bucket of its own, not only in the last.
        for (bound, count) in [("3355.4432", 1), ("6710.8864", 2)] {
            let bucket = format!("mill_overhead_seconds_bucket{{le=\"{bound}\"}} {count}");
            assert!(text.contains(&bucket), "{text}");
        }
        assert!(
            text.contains("# HELP mill_waiting Tasks waiting.\n"),
            "{text}"
        );
    }
}
