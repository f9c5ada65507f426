//! A page of metrics, built anew for each scrape.
//!
//! Services keep their own counts and a scrape reads them, so metrics add no work to the hot path. Only
//! histograms are filled as events happen.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The content type of [`Page::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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

/// One page of metrics.
#[derive(Debug)]
pub struct Page {
    registry: Registry,
}

type Labels = Vec<(String, String)>;

// === impl Histogram ===

impl Histogram {
    /// Buckets for durations from 50 µs to about 100 s, each twice the one before.
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
        let labels: Labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        self.0.get_or_create(&labels).observe(seconds);
    }
}

fn of_seconds() -> prometheus_client::metrics::histogram::Histogram {
    let buckets = (0..22).map(|power| 50e-6 * f64::from(1_u32 << power));
    prometheus_client::metrics::histogram::Histogram::new(buckets)
}

// === impl Page ===

impl Page {
    /// An empty page; the names of its metrics begin with `prefix` and an underscore.
    pub fn new(prefix: &str) -> Self {
        Self {
            registry: Registry::with_prefix(prefix),
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
        self.registry.register(name, help, histogram.0.clone());
    }

    /// Adds histograms, with their labels.
    pub fn add_histograms(&mut self, name: &str, help: &str, histograms: &Histograms) {
        self.registry.register(name, help, histograms.0.clone());
    }

    /// The page in the OpenMetrics text format, which Prometheus reads.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_metrics_with_labels() {
        let mut page = Page::new("mill");
        let values = [(vec![("stage", "prove".to_owned())], 3.0)];
        page.add("tasks", "Tasks finished", Kind::Counter, values.clone());
        page.add("waiting", "Tasks waiting", Kind::Gauge, values);
        let histogram = Histogram::of_seconds();
        histogram.observe(0.001);
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
        assert!(text.contains("mill_overhead_seconds_count 1"), "{text}");
    }
}
