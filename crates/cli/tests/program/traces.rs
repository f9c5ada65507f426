//! Traces, received by a collector of the test: over gRPC from coordinators and the sequencer, over HTTP from
//! dispatchers and the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofmill_api::traces::proto::any_value::Value;
use proofmill_api::traces::proto::trace_service_server::{TraceService, TraceServiceServer};
use proofmill_api::traces::proto::{ExportTraceServiceRequest, ExportTraceServiceResponse, Span};
use proofmill_nats_server::NatsServer;
use prost::Message as _;
use rustix::process::Signal;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::engine::fixtures;
use crate::operate::{get_as, site};
use crate::strict;
use crate::support::{
    Running, eventually, finish, folder, headers, names, post_with, proofmill, raw, url,
};

const WORKFLOW: &str = r#"
    name = "traced"
    [[source]]
    name = "producers"
    kind = "submit"
    output = "witnesses"
    [[dispatcher]]
    name = "prove"
    input = "witnesses"
    output = "proofs"
    r_max = 8
    [dispatcher.executor]
    kind = "engine"
    circuit = "circuit"
    endpoints = ["unix:.proofmill/engine/engine.sock"]
    [[dispatcher]]
    name = "wrap"
    input = "proofs"
    output = "wrapped"
    t_ack = "10s"
    heartbeat = "200ms"
    backoff = { initial = "100ms", max = "1s", factor = 2.0, jitter = 0.0 }
    executor = { kind = "process", program = "./wrap.sh", inherit_env = ["TEST_FOLDER"] }
    [[collector]]
    name = "gather"
    inputs = ["wrapped"]
    output = "pairs"
    strategy = { kind = "sequential", n = 2 }
    [sequencer]
    input = "pairs"
    directory = "out"
"#;

/// The program of the stage `wrap`: notes its `TRACEPARENT`, fails block 1 once, and holds block 3 as long as
/// there is a file `hold`.
const WRAP: &str = r#"#!/bin/sh
echo "$PROOFMILL_BLOCK $TRACEPARENT $TRACESTATE" >> "$TEST_FOLDER/seen"
if [ "$PROOFMILL_BLOCK" = 1 ] && mkdir "$TEST_FOLDER/failed" 2>/dev/null; then exit 7; fi
if [ "$PROOFMILL_BLOCK" = 3 ]; then
  echo held > "$TEST_FOLDER/held"
  while [ -e "$TEST_FOLDER/hold" ]; do sleep 0.05; done
fi
cp "$2" "$4"
"#;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A collector that keeps what it is sent.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
}

/// The addresses of a collector, for gRPC and HTTP.
struct Addresses {
    grpc: String,
    http: String,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.take(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

// === impl Collector ===

impl Collector {
    fn take(&self, request: ExportTraceServiceRequest) {
        let scopes = request.resource_spans.into_iter();
        let scopes = scopes.flat_map(|of_process| of_process.scope_spans);
        let mut spans = self.spans.lock().expect("no panic");
        spans.extend(scopes.flat_map(|scope| scope.spans));
    }

    fn spans(&self) -> Vec<Span> {
        self.spans.lock().expect("no panic").clone()
    }

    /// Serves both protocols until the test ends.
    fn start(&self) -> Addresses {
        let (report, reported) = std::sync::mpsc::channel();
        let service = TraceServiceServer::new(self.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let loopback = "127.0.0.1:0".parse().expect("an address");
                let incoming = TcpIncoming::bind(loopback).expect("a port");
                let address = incoming.local_addr().expect("bound");
                report.send(address).expect("awaited");
                let serving = Server::builder().add_service(service);
                serving.serve_with_incoming(incoming).await.expect("serves");
            });
        });
        let grpc = reported.recv().expect("it listens");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let http = listener.local_addr().expect("bound");
        let collector = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client that was killed sends half a request.
                let _ = collector.take_post(stream);
            }
        });
        Addresses {
            grpc: format!("http://{grpc}"),
            http: format!("http://{http}"),
        }
    }

    fn take_post(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("post /v1/traces "), "{head}");
        assert!(
            head.contains("content-type: application/x-protobuf"),
            "{head}"
        );
        assert!(head.contains("x-tenant: a b"), "{head}");
        let length = head.split("content-length: ").nth(1).expect("a length");
        let length = length.lines().next().and_then(|it| it.trim().parse().ok());
        let mut body = vec![0; length.expect("a number")];
        reader.read_exact(&mut body)?;
        self.take(ExportTraceServiceRequest::decode(&body[..]).expect("a request"));
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    }
}

/// A cluster in a folder, whose processes send traces to a collector.
struct Site {
    folder: tempfile::TempDir,
    server: NatsServer,
    addresses: Addresses,
}

// === impl Site ===

impl Site {
    fn here(&self) -> &Path {
        self.folder.path()
    }

    /// A process, as its own service.
    fn process(&self, service: &str, protocol: &str) -> Command {
        let endpoint = match protocol {
            "grpc" => &self.addresses.grpc,
            _ => &self.addresses.http,
        };
        let mut command = proofmill(self.here());
        command
            .env("PROOFMILL_BUS", self.server.url())
            .env("TEST_FOLDER", self.here())
            .env("OTEL_SERVICE_NAME", service)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a%20b")
            .env("OTEL_BSP_SCHEDULE_DELAY", "100");
        command
    }

    fn role(&self, service: &str, protocol: &str, args: &[&str]) -> Running {
        let mut command = self.process(service, protocol);
        Running::start(command.args(args))
    }

    fn engine(&self) -> Running {
        let args = ["engine", "serve", "--circuits", "keys", "--budget", "1GiB"];
        let engine = self.role("engine", "http/protobuf", &args);
        engine.line("the engine answers on");
        engine
    }

    fn dispatcher(&self, service: &str) -> Running {
        let args = ["dispatcher", "traced.toml", "--name", service];
        let dispatcher = self.role(service, "http/protobuf", &args);
        dispatcher.line("ready");
        dispatcher
    }

    fn seen(&self) -> String {
        std::fs::read_to_string(self.here().join("seen")).unwrap_or_default()
    }
}

fn prepare(collector: &Collector) -> Site {
    let folder = folder();
    fixtures(folder.path());
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("the folder can be written");
    };
    write("traced.toml", WORKFLOW);
    write("wrap.sh", WRAP);
    write("hold", "");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("wrap.sh"), executable).expect("it is ours");
    Site {
        folder,
        server: NatsServer::start(),
        addresses: collector.start(),
    }
}

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn number(span: &Span, name: &str) -> Option<i64> {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::IntValue(number) => Some(*number),
        _ => None,
    }
}

/// The spans of each trace, by name.
fn by_trace(spans: &[Span]) -> BTreeMap<String, Vec<&Span>> {
    let mut traces: BTreeMap<String, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        let trace = hex::encode(&span.trace_id);
        traces.entry(trace).or_default().push(span);
    }
    traces
}

/// Spans whose parent nobody has sent, except those of the producer of [`CALLER`].
fn orphans(spans: &[Span]) -> Vec<String> {
    let known: BTreeSet<(&[u8], &[u8])> = spans
        .iter()
        .map(|span| (&span.trace_id[..], &span.span_id[..]))
        .collect();
    let is_orphan = |span: &&Span| {
        let parent = (&span.trace_id[..], &span.parent_span_id[..]);
        let of_caller = CALLER.contains(&hex::encode(&span.parent_span_id));
        !span.parent_span_id.is_empty() && !known.contains(&parent) && !of_caller
    };
    let orphans = spans.iter().filter(is_orphan);
    orphans
        .map(|span| format!("{} {:?}", span.name, text(span, "proofmill.stage")))
        .collect()
}

#[test]
fn each_block_has_one_trace_over_a_killed_dispatcher_a_failover_and_an_engines_restart() {
    let collector = Collector::default();
    let site = prepare(&collector);
    let engine = site.engine();
    let first = site.role("coordinator-a", "grpc", &["coordinator", "traced.toml"]);
    first.line("ready");
    let second = site.role("coordinator-b", "grpc", &["coordinator", "traced.toml"]);
    let sequencer = site.role("sequencer", "grpc", &["sequencer", "traced.toml"]);
    let args = ["source", "traced.toml", "--submit", "127.0.0.1:0"];
    let source = site.role("source", "grpc", &args);
    let line = source.line("messages on http");
    let doomed = site.dispatcher("doomed");

    let witness = std::fs::read(site.here().join("witness.wtns")).expect("a witness");
    let witness = serde_json::to_string(&STANDARD.encode(witness)).expect("JSON");
    let submit = |block: u64, headers: &str| {
        let message = format!(r#"{{"block": {block}, "payload": {witness}}}"#);
        let (status, said) = post_with(url(&line), "witnesses", headers, &message);
        assert_eq!(status, 201, "{said}");
    };
    let out = site.here().join(".proofmill/traced/out");
    let emitted = |name: &str| {
        eventually(name, || {
            names(&out).contains(&name.to_owned()).then_some(())
        });
    };
    submit(0, "");
    submit(
        1,
        &format!("traceparent: {CALLER}\r\ntracestate: rojo=1\r\n"),
    );
    emitted("0000000000-0000000001.json");

    // The engine goes while it has nothing to do, and comes back when two jobs wait for it.
    engine.kill();
    submit(2, "traceparent: malformed\r\n");
    submit(3, "");
    let engine = site.engine();
    let held = site.here().join("held");
    eventually("block 3 is held", || held.exists().then_some(()));
    // The coordinator goes, and then the dispatcher with the attempt in its hands.
    first.kill();
    eventually("the other coordinator knows the attempt", || {
        let args = ["tasks", "--workflow", "traced", "--json"];
        let ran = finish(site.process("operator", "grpc").args(args));
        (ran.code == Some(0) && ran.stdout.contains("wrap-0@")).then_some(())
    });
    doomed.kill();
    std::fs::remove_file(site.here().join("hold")).expect("it is there");
    let rescuer = site.dispatcher("rescuer");
    emitted("0000000002-0000000003.json");

    for role in [rescuer, source, sequencer, second, engine] {
        role.signal(Signal::TERM);
        role.end();
    }
    let spans = collector.spans();
    let traces = by_trace(&spans);
    assert_eq!(orphans(&spans), Vec::<String>::new());
    assert_eq!(traces.len(), 4, "{:?}", traces.keys());
    let of_block = |block: i64| -> Vec<&Span> {
        let is_first =
            |span: &&Span| span.name == "prove" && number(span, "proofmill.block") == Some(block);
        let prove = spans.iter().find(is_first).expect("its first stage");
        traces[&hex::encode(&prove.trace_id)].clone()
    };
    for block in 0..4 {
        let trace = of_block(block);
        let has = |name: &str| trace.iter().any(|span| span.name == name);
        let expected = [
            "submit",
            "prove",
            "wrap",
            "gather",
            "attempt",
            "engine.prove",
        ];
        for name in expected {
            assert!(has(name), "block {block} has no {name}");
        }
        // Those of the pair are in the trace of its first block.
        let is_first = block % 2 == 0;
        assert_eq!(has("sequencer"), is_first, "block {block}");
        assert_eq!(has("deliver"), is_first, "block {block}");
        let others = trace.iter().filter_map(|it| number(it, "proofmill.block"));
        assert!(
            others.clone().all(|it| it == block),
            "{:?}",
            others.collect::<Vec<_>>()
        );
    }
    check_attempts(&of_block(3), "");
    // The producer's own trace goes on, and its state with it.
    let continued = of_block(1);
    assert_eq!(hex::encode(&continued[0].trace_id), CALLER[3..35]);
    assert!(continued.iter().all(|span| span.trace_state == "rojo=1"));
    let attempt = hex::encode(&check_attempts(&continued, "exited with code 7").span_id);
    let given = format!("1 00-{}-{attempt}-01 rojo=1\n", &CALLER[3..35]);
    assert!(
        site.seen().contains(&given),
        "no {given:?} in {}",
        site.seen()
    );
}

/// Checks that of the attempts at the stage `wrap` one completed, after one that failed for this reason. Returns the
/// latter. There are more if a dispatcher waited for its turn of the processor for longer than `t_ack`.
fn check_attempts<'a>(trace: &[&'a Span], reason: &str) -> &'a Span {
    let attempts: BTreeMap<&[u8], &'a Span> = trace
        .iter()
        .filter(|span| span.name == "attempt" && text(span, "proofmill.stage") == Some("wrap"))
        .map(|span| (&span.span_id[..], *span))
        .collect();
    let of = |outcome: &str| {
        let outcome = Some(outcome);
        let attempts = attempts.values().copied();
        let found = attempts.filter(|span| text(span, "proofmill.outcome") == outcome);
        found.collect::<Vec<&'a Span>>()
    };
    let completed = of("completed");
    assert_eq!(completed.len(), 1, "{attempts:#?}");
    let failed = of("failed").into_iter().find(|span| {
        let status = span.status.as_ref().expect("a status");
        status.message.contains(reason)
    });
    let failed = failed.unwrap_or_else(|| panic!("none failed with {reason:?}: {attempts:#?}"));
    assert!(failed.end_time_unix_nano <= completed[0].end_time_unix_nano);
    failed
}

#[test]
fn the_trace_of_a_demo_block_has_the_stages_of_its_engine() {
    let collector = Collector::default();
    let addresses = collector.start();
    let folder = folder();
    std::fs::write(folder.path().join("headers"), raw(&headers(10, 11))).expect("written");
    let mut command = proofmill(folder.path());
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &addresses.grpc)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let args = ["demo", "--headers", "headers", "--state", "state"];
    let ran = finish(command.args(args).args(["--chunk", "2", "--json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let spans = collector.spans();
    let stages: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name.starts_with("engine."))
        .collect();
    let names: BTreeSet<&str> = stages.iter().map(|span| &*span.name).collect();
    let expected = ["evaluate", "finish", "prove", "verify", "witness"];
    let expected = expected.map(|stage| format!("engine.{stage}"));
    assert!(names.iter().eq(expected.iter()), "{names:?}");
    let attempts = spans.iter().filter(|span| span.name == "attempt");
    let attempts: BTreeSet<(&[u8], &[u8])> = attempts
        .map(|span| (&span.trace_id[..], &span.span_id[..]))
        .collect();
    for stage in stages {
        let parent = (&stage.trace_id[..], &stage.parent_span_id[..]);
        assert!(attempts.contains(&parent), "{stage:?}");
        assert!(text(stage, "proofmill.engine.circuit").is_some());
        assert!(number(stage, "proofmill.engine.partition").is_some());
    }
}

#[test]
fn histograms_name_the_traces_of_recent_tasks_and_blocks_to_a_scraper_that_asks() {
    let site = site("kind = \"range\"\nend = 4", "");
    let collector = Collector::default();
    let addresses = collector.start();
    let scrape = |sampler: &str, state: &str| {
        let mut mill = proofmill(site.path());
        mill.args(["run", "workflow.toml", "--state", state, "--stay", "--json"])
            .args(["--metrics", "127.0.0.1:0"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &addresses.grpc)
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            .env("OTEL_TRACES_SAMPLER", sampler);
        let mill = Running::start(&mut mill);
        let line = mill.line("metrics on http://");
        let address = line.split("http://").nth(1).expect("an address");
        let address = address.trim_end_matches("/metrics");
        let page = |accept: &str| {
            let headers = format!("host: localhost\r\naccept: {accept}");
            let answer = get_as(address, "/metrics", &headers);
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            let head = head.to_ascii_lowercase();
            assert!(head.contains("content-type: application/openmetrics-text"));
            body.to_owned()
        };
        let all = "proofmill_block_seconds_count{workflow=\"site\"} 5\n";
        eventually("all blocks are emitted", || {
            page("*/*").contains(all).then_some(())
        });
        let pages = [
            page("application/openmetrics-text; version=1.0.0"),
            page("*/*"),
        ];
        mill.signal(Signal::TERM);
        mill.end();
        pages.map(|page| strict::read(&page).unwrap_or_else(|why| panic!("{why} in {page}")))
    };
    let [asked, others] = scrape("always_on", "first");
    assert_eq!(others, []);
    let traces: BTreeSet<String> = by_trace(&collector.spans()).into_keys().collect();
    assert_eq!(traces.len(), 5);
    let names: BTreeSet<&str> = asked.iter().map(|exemplar| &*exemplar.sample).collect();
    let expected = ["block", "task_overhead", "task_wait"];
    let expected = expected.map(|name| format!("proofmill_{name}_seconds_bucket"));
    assert!(names.iter().eq(expected.iter()), "{names:?}");
    assert!(
        asked
            .iter()
            .all(|it| traces.contains(&it.labels["trace_id"]))
    );
    // Nobody could look up a trace that is not recorded.
    assert_eq!(scrape("always_off", "second"), [vec![], vec![]]);
}

#[test]
fn a_setting_that_cannot_be_used_is_refused_at_the_start() {
    let folder = folder();
    let mut command = proofmill(folder.path());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317");
    let ran = finish(command.args(["run", "nothing.toml"]));
    ran.failed(
        2,
        "OTEL_EXPORTER_OTLP_ENDPOINT: an address begins with http:// or https://",
    );
}
