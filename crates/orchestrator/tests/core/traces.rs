//! Reports for traces, and the spans made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::conversation::SinkEvent;
use proofmill_orchestrator::core::TaskReportKind;
use proofmill_orchestrator::grouping::Sequential;
use proofmill_trace::{Span, SpanStatus, TraceContext, TraceId, Value};

use crate::support::{Draft, Mill, id};

fn mill() -> Mill {
    let pairs = Sequential {
        n: 2,
        inputs: vec!["proofs".into()],
        partial: false,
    };
    Draft::default()
        .work("prove", "in", &["proofs"])
        .collect("gather", &["proofs"], &["pairs"], pairs, None, None)
        .work("wrap", "pairs", &["out"])
        .sequence("out")
        .mill()
}

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let mut attributes = span.attributes.iter();
    match attributes.find(|(key, _)| *key == name)? {
        (_, Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn named<'a>(spans: &'a [Span], name: &str, stage: &str) -> Vec<&'a Span> {
    let is = |span: &&Span| span.name == name && text(span, "proofmill.stage") == Some(stage);
    spans.iter().filter(is).collect()
}

/// Names of the spans whose parent is not among them.
fn orphans(spans: &[Span]) -> Vec<&str> {
    let known: BTreeSet<_> = spans.iter().map(|span| (span.trace, span.id)).collect();
    let orphans = spans.iter().filter(|span| {
        let parent = span.parent.map(|parent| (span.trace, parent));
        parent.is_some_and(|parent| !known.contains(&parent))
    });
    orphans.map(|span| &*span.name).collect()
}

/// Two blocks on their way to the sink, the first with a failed attempt.
fn prove_two(mill: &mut Mill) {
    mill.join("w", 1);
    mill.block("in", 0);
    mill.block("in", 1);
    mill.pass(30);
    mill.fail("w", "prove/0/0", 1, false);
    mill.complete("w", "prove/1/0", 1);
    mill.pass(5_000);
    mill.complete("w", "prove/0/0", 2);
}

fn emit(mill: &mut Mill) {
    let task = mill.emitted.last().expect("one is emitted").clone();
    mill.tell(SinkEvent::Emitted {
        task,
        places: vec!["here".to_owned()],
    });
}

#[test]
fn a_block_has_one_trace_from_its_submission_to_its_emission() {
    let mut mill = mill();
    prove_two(&mut mill);
    let wrap = mill.news().last().expect("it is assigned").clone();
    assert!(wrap.starts_with("w wrap/0/"), "{wrap}");
    let task = wrap["w ".len()..]
        .split('#')
        .next()
        .expect("an id")
        .to_owned();
    mill.complete("w", &task, 1);
    emit(&mut mill);
    let spans = mill.spans();
    assert_eq!(orphans(&spans), Vec::<&str>::new());
    let traces: BTreeSet<TraceId> = spans.iter().map(|span| span.trace).collect();
    let expected = [0, 1].map(|block| TraceId::of_block("test", block));
    assert_eq!(traces, BTreeSet::from(expected));
    // The failed attempt and the one that completed, beside each other.
    let attempts = named(&spans, "attempt", "prove");
    let of_first: Vec<&&Span> = attempts
        .iter()
        .filter(|it| it.trace == expected[0])
        .collect();
    let outcomes: Vec<_> = of_first
        .iter()
        .map(|it| text(it, "proofmill.outcome"))
        .collect();
    assert_eq!(outcomes, [Some("failed"), Some("completed")]);
    assert!(matches!(of_first[0].status, SpanStatus::Failed(_)));
    assert_eq!(of_first[0].parent, of_first[1].parent);
    // What comes of the group goes on in the trace of its first block, and links to both.
    for (name, stage) in [("wrap", "wrap"), ("emit", "emit"), ("barrier", "gather")] {
        let found = named(&spans, name, stage);
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].trace, expected[0], "{name}");
    }
    let linked = &named(&spans, "barrier", "gather")[0].links;
    let members = named(&spans, "gather", "gather");
    assert_eq!(linked.len(), 2);
    assert!(
        members
            .iter()
            .all(|span| linked.iter().any(|link| link.span == span.id))
    );
}

#[test]
fn the_operator_hears_of_failures_and_dead_letters_with_the_trace_of_the_block() {
    let mut mill = mill();
    mill.join("w", 1);
    mill.block("in", 0);
    mill.fail("w", "prove/0/0", 1, false);
    mill.pass(5_000);
    mill.fail("w", "prove/0/0", 2, true);
    let heard = mill.reports.iter().map(|report| {
        assert_eq!(report.task, id("prove/0/0"));
        assert_eq!(report.trace, TraceId::of_block("test", 0));
        match &report.kind {
            TaskReportKind::Failed {
                worker, attempt, ..
            } => format!("{worker} {attempt}"),
            TaskReportKind::Dead { why } => why.clone(),
            TaskReportKind::Late { .. } => "late".to_owned(),
        }
    });
    let heard: Vec<String> = heard.collect();
    assert_eq!(heard[..2], ["w 1", "w 2"]);
    assert!(heard[2].starts_with("permanent failure: "), "{heard:?}");
    assert_eq!(heard.len(), 3);
    // A leader that takes over reports nothing that an earlier one has reported.
    mill.restart(Duration::ZERO);
    assert_eq!(mill.reports.len(), 3);
}

#[test]
fn a_leader_that_takes_over_makes_the_same_spans_again() {
    let mut mill = mill();
    prove_two(&mut mill);
    mill.block("in", 2);
    let key = |span: &Span| (span.trace, span.id);
    let before: BTreeMap<_, _> = mill.spans().into_iter().map(|it| (key(&it), it)).collect();
    mill.restart(Duration::ZERO);
    let again = mill.spans();
    // As if nothing had been exported before.
    assert_eq!(orphans(&again), Vec::<&str>::new());
    for name in ["submit", "prove", "gather", "attempt"] {
        assert!(again.iter().any(|span| span.name == name), "no {name}");
    }
    for span in &again {
        let first = before.get(&key(span)).expect("it is one of those before");
        assert_eq!((span.parent, &span.name), (first.parent, &first.name));
        // The log has a failed attempt's run, but not the beginning of its lease, which is a little earlier.
        match span.name == "attempt" && matches!(span.status, SpanStatus::Failed(_)) {
            true => assert!(span.start_ns >= first.start_ns, "{span:?}"),
            false => assert_eq!(span.start_ns, first.start_ns, "{span:?}"),
        }
    }
}

#[test]
fn the_callers_context_survives_restarts_and_goes_on() {
    let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let caller = TraceContext::parse(text, ["a=1"]).expect("valid");
    let mut mill = mill();
    mill.caller = Some(Arc::new(caller.clone()));
    mill.block("in", 0);
    let submitted = mill.spans();
    assert_eq!(submitted[0].parent, Some(caller.span()));
    mill.restart(Duration::ZERO);
    mill.join("w", 1);
    mill.complete("w", "prove/0/0", 1);
    mill.restart(Duration::ZERO);
    mill.join("w", 1);
    mill.caller = None;
    mill.block("in", 1);
    mill.complete("w", "prove/1/0", 1);
    let spans = mill.spans();
    let wrap = mill.core.tasks(|task| &*task.id.stage == "wrap");
    assert_eq!(wrap[0].record.trace.trace, caller.trace());
    assert_eq!(wrap[0].record.trace.caller.as_deref(), Some(&caller));
    let of_caller = spans.iter().filter(|span| span.trace == caller.trace());
    assert!(of_caller.clone().count() > 0);
    for span in of_caller {
        assert_eq!(span.state.as_deref(), Some("a=1"), "{}", span.name);
    }
}

#[test]
fn lost_and_unwanted_attempts_have_their_ends() {
    let mut mill = mill();
    mill.join("w", 1);
    mill.block("in", 0);
    mill.pass(31_000);
    let spans = mill.spans();
    let lost = named(&spans, "attempt", "prove");
    let SpanStatus::Failed(why) = &lost[0].status else {
        panic!("it failed");
    };
    assert!(why.contains("T_ack"), "{why}");
    assert_eq!(lost[0].end_ns - lost[0].start_ns, 30_000_000_000);
    mill.join("w", 1);
    mill.pass(5_000);
    mill.cancel("prove/0/0");
    let spans = mill.spans();
    let cancelled = named(&spans, "attempt", "prove");
    assert_eq!(text(cancelled[0], "proofmill.outcome"), Some("cancelled"));
    let dead = named(&spans, "prove", "prove");
    assert_eq!(text(dead[0], "proofmill.outcome"), Some("dead"));
    // Put back, it is another span in the same trace.
    mill.retry("prove/0/0");
    mill.pass(5_000);
    mill.complete("w", "prove/0/0", 1);
    let spans = mill.spans();
    let completed = named(&spans, "prove", "prove");
    assert_eq!(completed[0].trace, dead[0].trace);
    assert_ne!(completed[0].id, dead[0].id);
    assert!(mill.core.dead_letter(&id("prove/0/0")).is_none());
}

#[test]
fn an_attempt_that_outlives_the_leader_keeps_its_beginning() {
    let mut mill = mill();
    mill.join("w", 1);
    mill.block("in", 0);
    mill.pass(1_000);
    mill.restart(Duration::from_secs(5));
    mill.spans();
    mill.join("w", 1);
    mill.beat("w", &[("prove/0/0", 1)]);
    mill.pass(1_000);
    mill.complete("w", "prove/0/0", 1);
    let spans = mill.spans();
    let attempt = named(&spans, "attempt", "prove");
    assert_eq!(attempt.len(), 1);
    assert_eq!(attempt[0].end_ns - attempt[0].start_ns, 2_000_000_000);
}
