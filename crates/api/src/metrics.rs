//! `/metrics` in the Prometheus format and `/healthz`, on a TCP port.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use proofmill_orchestrator::core::{Settled, StageStatus};
use proofmill_orchestrator::port::OperatorPort;
use proofmill_telemetry::{CONTENT_TYPE, FrontPage, Histogram, Kind, Page};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::page::{PageGate, front};
use crate::serve::{self, HttpVersions, Terms};

/// Reads one number of a stage.
type StageValue = fn(&StageStatus) -> f64;

#[derive(Clone)]
struct Scrape {
    port: OperatorPort,
    overhead: Histogram,
    waited: Histogram,
}

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill: the metrics of a workflow",
    about: "Counters of a workflow of proving tasks, or of one of its processes.",
    links: &[
        ("/metrics", "counters and histograms, for Prometheus"),
        (
            "/healthz",
            "whether the workflow has a leader and takes new messages",
        ),
    ],
    calls: &[(
        "proofmill status",
        "the state of the workflow, on a terminal",
    )],
    document: "operate.md",
};

/// Longest life of a connection; a scraper then reconnects.
const LIFETIME: Duration = Duration::from_secs(600);

/// Serves until the future is dropped. `settled` is the stream of
/// [`Handle::observe`](proofmill_orchestrator::coordinator::Handle::observe).
///
/// The page shows nothing of payloads, and needs no token: bind it to loopback, or to a network that may
/// know the amount of work. Pages in a browser are refused, and on loopback also requests whose host name
/// is neither `localhost` nor an address.
pub async fn serve(
    listener: TcpListener,
    port: OperatorPort,
    mut settled: mpsc::UnboundedReceiver<Settled>,
) {
    let overhead = Histogram::of_seconds();
    let waited = Histogram::of_seconds();
    let scrape = Scrape {
        port,
        overhead: overhead.clone(),
        waited: waited.clone(),
    };
    let count = async {
        while let Some(settled) = settled.recv().await {
            if let Some(timing) = settled.timing {
                overhead.observe(timing.leased.saturating_sub(timing.ran).as_secs_f64());
                waited.observe(timing.waited.as_secs_f64());
            }
        }
    };
    let gate = PageGate::for_port(listener.local_addr().ok());
    let app = Router::new()
        .route("/", get(async || front(&FRONT)))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .layer(middleware::from_fn_with_state(gate, PageGate::pass))
        .with_state(scrape);
    let (terms, answer) = (
        Terms::plain(HttpVersions::Http1, LIFETIME),
        serve::answers(app),
    );
    let serving = serve::serve(listener, terms, answer, std::future::pending());
    tokio::join!(serving, count);
}

async fn health(State(scrape): State<Scrape>) -> Response {
    match scrape.port.status().await {
        Ok(status) if status.draining => {
            (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response()
        }
        Ok(_) => "ok\n".into_response(),
        Err(gone) => (StatusCode::SERVICE_UNAVAILABLE, format!("{gone}\n")).into_response(),
    }
}

async fn metrics(State(scrape): State<Scrape>) -> Response {
    let Ok(status) = scrape.port.status().await else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "the coordinator has stopped\n",
        )
            .into_response();
    };
    let mut page = Page::new("proofmill");
    let workflow = status.workflow.to_string();
    let for_each_stage = |value: StageValue| {
        status
            .stages
            .iter()
            .map(|stage| {
                let labels = vec![
                    ("workflow", workflow.clone()),
                    ("stage", stage.stage.to_string()),
                ];
                (labels, value(stage))
            })
            .collect::<Vec<_>>()
    };
    let gauges: [(&str, &str, StageValue); 4] = [
        (
            "tasks_waiting",
            "Tasks that wait for a worker or their turn",
            |s| s.waiting as f64,
        ),
        ("tasks_leased", "Tasks that workers have", |s| {
            s.leased as f64
        }),
        ("tasks_held", "Messages in unfinished groups", |s| {
            s.held as f64
        }),
        ("tasks_dead", "Tasks in the dead-letter queue", |s| {
            s.dead as f64
        }),
    ];
    for (name, help, value) in gauges {
        page.add(name, help, Kind::Gauge, for_each_stage(value));
    }
    let counters: [(&str, &str, StageValue); 10] = [
        ("tasks_accepted", "Tasks accepted", |s| {
            s.counters.accepted as f64
        }),
        ("tasks_completed", "Tasks completed by a worker", |s| {
            s.counters.completed as f64
        }),
        ("attempts_failed", "Failed attempts", |s| {
            s.counters.failed as f64
        }),
        ("retries", "Retries", |s| s.counters.retried as f64),
        (
            "leases_expired",
            "Leases that ended without a heartbeat",
            |s| s.counters.expired as f64,
        ),
        (
            "tasks_hedged",
            "Leases given beside one that lasts long",
            |s| s.counters.hedged as f64,
        ),
        ("tasks_cancelled", "Tasks that an operator cancelled", |s| {
            s.counters.cancelled as f64
        }),
        ("results_stale", "Results that came too late", |s| {
            s.counters.stale_results as f64
        }),
        (
            "messages_late",
            "Messages that came to a collector after their group was emitted",
            |s| s.counters.late as f64,
        ),
        ("messages_emitted", "Messages emitted in order", |s| {
            s.counters.emitted as f64
        }),
    ];
    for (name, help, value) in counters {
        page.add(name, help, Kind::Counter, for_each_stage(value));
    }
    let for_workflow = |value: f64| vec![(vec![("workflow", workflow.clone())], value)];
    page.add(
        "workers",
        "Dispatchers that have joined",
        Kind::Gauge,
        for_workflow(status.workers as f64),
    );
    page.add(
        "workers_paused",
        "Dispatchers that take nothing until their machine has what it lacks",
        Kind::Gauge,
        for_workflow(status.paused.len() as f64),
    );
    page.add(
        "users_distrusted",
        "Users whose workers get no tasks, since one of them has sent a false result",
        Kind::Gauge,
        for_workflow(status.distrusted.len() as f64),
    );
    page.add(
        "collectors",
        "Processes that keep partitions of collectors",
        Kind::Gauge,
        for_workflow(status.hosts.len() as f64),
    );
    page.add(
        "blocks_met",
        "Blocks done within their deadline",
        Kind::Counter,
        for_workflow(status.blocks_met as f64),
    );
    page.add(
        "blocks_missed",
        "Blocks whose deadline passed before they were done",
        Kind::Counter,
        for_workflow(status.blocks_missed as f64),
    );
    if let Some(next) = status.next_block {
        page.add(
            "next_block",
            "The next block to emit",
            Kind::Gauge,
            for_workflow(next as f64),
        );
    }
    page.add(
        "blocks_stale",
        "Blocks that had been emitted when their chain was reorganised",
        Kind::Counter,
        for_workflow(status.blocks_stale as f64),
    );
    page.add_histogram(
        "task_overhead_seconds",
        "From assignment to result, less the executor's own time",
        &scrape.overhead,
    );
    page.add_histogram(
        "task_wait_seconds",
        "From acceptance to the assignment that led to the result",
        &scrape.waited,
    );
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], page.render()).into_response()
}
