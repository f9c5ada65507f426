//! Pages with exemplars, as a strict reader of the OpenMetrics format sees them.

mod strict;

use proofmill_telemetry::{Kind, Page, TracedHistograms, asks_for_exemplars};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const OTHER: &str = "0af7651916cd43dd8448eb211c80319c";

/// A page with one of everything.
fn page(has_exemplars: bool, histograms: &TracedHistograms) -> String {
    let mut page = Page::new("mill").with_exemplars(has_exemplars);
    let odd = "a \"stage\" # {x=\"y\"} 1\\2\nthree";
    let values = [(vec![("stage", odd.to_owned())], 3.0)];
    page.add("tasks", "Tasks", Kind::Counter, values.clone());
    page.add("waiting", "Tasks that wait", Kind::Gauge, values);
    page.add("nothing", "Nothing", Kind::Gauge, []);
    page.add_traced_histograms("took_seconds", "Time", histograms);
    page.render()
}

#[test]
fn each_bucket_has_the_trace_of_its_latest_event_as_its_exemplar() {
    let histograms = TracedHistograms::of_seconds();
    let labels = [("workflow", "w")];
    histograms.observe(&labels, 0.001, Some(TRACE));
    histograms.observe(&labels, 0.001_1, Some(OTHER));
    histograms.observe(&labels, 0.001_2, None);
    histograms.observe(&labels, 1e9, Some(TRACE));
    histograms.observe(&[("workflow", "v")], 0.0, None);
    let page = page(true, &histograms);
    let exemplars = strict::read(&page).unwrap_or_else(|why| panic!("{why} in {page}"));
    let found: Vec<_> = exemplars
        .iter()
        .map(|it| (&*it.of["le"], &*it.labels["trace_id"], it.value))
        .collect();
    assert_eq!(found, [("0.0016", OTHER, 0.001_1), ("+Inf", TRACE, 1e9)]);
    for exemplar in exemplars {
        assert_eq!(exemplar.sample, "mill_took_seconds_bucket");
        assert_eq!(exemplar.of["workflow"], "w");
    }
    assert!(page.contains("mill_took_seconds_count{workflow=\"w\"} 4\n"));
}

#[test]
fn a_page_for_others_is_the_same_without_exemplars() {
    let histograms = TracedHistograms::of_seconds();
    histograms.observe(&[("workflow", "w")], 0.001, Some(TRACE));
    let (plain, with_exemplars) = (page(false, &histograms), page(true, &histograms));
    assert_eq!(strict::read(&plain).expect("valid"), []);
    assert!(!plain.contains(TRACE) && with_exemplars.contains(TRACE));
    let stripped: Vec<&str> = with_exemplars
        .lines()
        .map(|line| match line.starts_with("mill_took_seconds_bucket") {
            true => line.split(" # ").next().unwrap_or_default(),
            false => line,
        })
        .collect();
    assert_eq!(plain.lines().collect::<Vec<_>>(), stripped);
}

#[test]
fn the_memory_for_exemplars_does_not_grow_with_the_events() {
    let histograms = TracedHistograms::of_seconds();
    for number in 0..100_000_u32 {
        let trace = format!("{number:032x}");
        histograms.observe(&[("workflow", "w")], f64::from(number) / 1e3, Some(&trace));
    }
    let exemplars = strict::read(&page(true, &histograms)).expect("valid");
    // One for each of 28 bounds and for what is above them, at most.
    assert!(exemplars.len() <= 29, "{}", exemplars.len());
}

#[test]
fn a_scraper_asks_by_the_media_type() {
    // What Prometheus sends.
    let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for accept in [
        prometheus,
        "application/openmetrics-text",
        "text/plain, Application/OpenMetrics-Text; q=0.1",
    ] {
        assert!(asks_for_exemplars([accept]), "{accept}");
    }
    for accept in [
        "",
        "*/*",
        "text/plain;version=0.0.4",
        "application/*",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text; q = 0.0",
        "application/openmetrics-textual",
        ";,;q=,=",
    ] {
        assert!(!asks_for_exemplars([accept]), "{accept}");
    }
    assert!(asks_for_exemplars(["text/html", prometheus]));
    assert!(!asks_for_exemplars([]));
}

#[test]
fn the_reader_refuses_pages_that_break_a_rule() {
    let good = "# HELP a_seconds A.\n# TYPE a_seconds histogram\na_seconds_sum 3.0\na_seconds_count 2\n\
                a_seconds_bucket{le=\"1.0\"} 1 # {trace_id=\"ab\"} 1.0 1700000000.5\n\
                a_seconds_bucket{le=\"+Inf\"} 2\n# TYPE b counter\nb_total{x=\"\\\"\\n\"} 1\n# EOF\n";
    assert_eq!(strict::read(good).map(|found| found.len()), Ok(1));
    let long = format!("\"{}\"", "x".repeat(121));
    for (from, to) in [
        ("# EOF\n", ""),
        ("# EOF\n", "# EOF\n\n"),
        ("b_total", "b"),
        ("# TYPE b counter", "# TYPE a_seconds counter"),
        ("# TYPE b counter\n", ""),
        ("# TYPE b counter", "#TYPE b counter"),
        ("} 2\n", "} 3\n"),
        ("} 2\n", "} 2 # {} 0.5\n"),
        ("\"+Inf\"", "\"2.0\""),
        ("\"1.0\"", "\"x\""),
        ("\"ab\"", &long),
        ("{trace_id", "{trace-id"),
        ("} 1.0 17", "} 1.5 17"),
        ("1700000000.5", "1700000000.5 1"),
        ("1700000000.5", "now"),
        ("a_seconds_sum 3.0", "a_seconds_sum 3.0 # {} 1"),
        ("x=\"\\\"\\n\"", "x=\"\\t\""),
        ("{x=", "{x=\"\",x="),
        ("b_total{", "\nb_total{"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        assert!(strict::read(&bad).is_err(), "{from} -> {to}");
    }
}
