//! Tests of traces: the environment of witness generators, and the spans of the stages.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use proofmill_engine::{
    Generator, GeneratorProgram, Input, JobState, Options, Partition, Secret, Submission,
};
use proofmill_shutdown::Level;
use proofmill_trace::{Ended, Recorder, Sampler, Span, TraceContext, Value, install};

use super::support::{BN254, Running, options, submission};

/// The recorder's spans, and those of them that were taken out.
static RECORDED: LazyLock<Mutex<(Ended, Vec<Span>)>> = LazyLock::new(|| {
    let (recorder, ended) = Recorder::new(1 << 16, Sampler::default());
    install(recorder).expect("this process has no other recorder");
    Mutex::new((ended, Vec::new()))
});

fn context(trace: u8, flag: &str, state: &str) -> TraceContext {
    let trace = hex::encode([trace; 16]);
    let parent = format!("00-{trace}-00f067aa0ba902b7-{flag}");
    TraceContext::parse(&parent, [state]).expect("valid")
}

/// The spans of a trace so far.
fn spans_of(context: &TraceContext) -> Vec<Span> {
    let mut recorded = RECORDED.lock().unwrap();
    let (ended, spans) = &mut *recorded;
    while let Ok(span) = ended.try_recv() {
        spans.push(span);
    }
    let spans = spans.iter().filter(|span| span.trace == context.trace());
    spans.cloned().collect()
}

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let mut attributes = span.attributes.iter();
    match attributes.find(|(found, _)| *found == name)? {
        (_, Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// A generator that writes its variables to the file in `folder` that its inputs name, and then fails.
fn tells(folder: &Path) -> Options {
    let folder = folder.display();
    let script = format!(r#"echo "$TRACEPARENT|$TRACESTATE" > "{folder}/$(cat "$1")"; exit 3"#);
    let generator = GeneratorProgram {
        program: "/bin/sh".into(),
        args: ["-c", &script, "sh", "{input}", "{output}"]
            .map(str::to_owned)
            .to_vec(),
        inherit_env: Vec::new(),
        time_limit: Duration::from_secs(60),
        memory: 1 << 20,
        keep_stderr: true,
    };
    Options {
        generators: BTreeMap::from([("tells".to_owned(), Generator::Program(generator))]),
        ..options()
    }
}

fn job(name: &str, trace: Option<TraceContext>) -> Submission {
    let partition = Partition {
        circuit: BN254.circuit(),
        input: Input::Inputs {
            generator: "tells".to_owned(),
            json: Secret::new(name.as_bytes().to_vec()),
        },
    };
    Submission {
        trace,
        ..submission("client", name, vec![partition])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generator_gets_the_context_of_its_job_as_it_came_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(tells(folder.path()), &[BN254]).await;
    let (sampled, unsampled) = (context(1, "01", "rojo=1,congo=t61"), context(2, "00", ""));
    let jobs = [
        ("sampled", Some(sampled.clone())),
        ("unsampled", Some(unsampled.clone())),
        ("none", None),
    ];
    for (name, trace) in jobs {
        let state = running.handle.prove(job(name, trace)).await.unwrap().state;
        assert!(matches!(state, JobState::Failed(_)), "{state:?}");
    }
    let seen = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let expected = format!("{}|rojo=1,congo=t61\n", sampled.traceparent());
    assert_eq!(seen("sampled"), expected);
    assert_eq!(seen("unsampled"), format!("{}|\n", unsampled.traceparent()));
    assert_eq!(seen("none"), "|\n");
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_is_refused_changes_no_context() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(tells(folder.path()), &[BN254]).await;
    let first = context(3, "01", "");
    let accepted = job("one", Some(first.clone()));
    running.handle.submit(accepted).await.unwrap();
    // The same request with other content.
    let mut other = job("two", Some(context(4, "01", "")));
    other.request = job("one", None).request;
    running.handle.submit(other).await.unwrap_err();
    assert!(spans_of(&context(4, "01", "")).is_empty());
    running.handle.prove(job("one", None)).await.unwrap();
    let seen = std::fs::read_to_string(folder.path().join("one")).unwrap();
    assert_eq!(seen, format!("{}|\n", first.traceparent()));
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stages_of_a_job_are_spans_of_its_callers_trace() {
    LazyLock::force(&RECORDED);
    let running = Running::with(options(), &[BN254]).await;
    let (sampled, unsampled) = (context(5, "01", "rojo=1"), context(6, "00", ""));
    for (name, trace) in [("sampled", &sampled), ("unsampled", &unsampled)] {
        let job = Submission {
            trace: Some(trace.clone()),
            ..submission("client", name, vec![BN254.partition(7)])
        };
        let state = running.handle.prove(job).await.unwrap().state;
        assert_eq!(state, JobState::Done);
    }
    let spans = spans_of(&sampled);
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    let stages = ["witness", "evaluate", "prove", "finish", "verify"];
    assert_eq!(names, stages.map(|stage| format!("engine.{stage}")));
    for span in &spans {
        assert_eq!(span.parent, Some(sampled.span()));
        assert_eq!(span.state.as_deref(), Some("rojo=1"));
        let circuit = text(span, "proofmill.engine.circuit");
        assert_eq!(circuit, Some(&*BN254.name()));
        assert!(span.start_ns <= span.end_ns && span.start_ns > 0);
    }
    assert!(spans_of(&unsampled).is_empty());
    running.stop(Level::Drain).await;
}
