//! `/metrics` in the Prometheus format and `/healthz`, on a TCP port.

mod blocks;
mod led;
mod roles;

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use proofmill_orchestrator::coordinator::question_seconds;
use proofmill_orchestrator::core::{GroupMeasure, PoolStatus, StageStatus, Status};
use proofmill_telemetry::{CONTENT_TYPE, FrontPage, Kind, Page, asks_for_exemplars};
use tokio::net::TcpListener;

use led::Seen;
pub use led::Workflows;

use crate::page::{PageGate, front};
use crate::serve::{self, HttpVersions, Terms};
use crate::traces::add_metrics;

/// Reads one number of a stage.
type StageValue = fn(&StageStatus) -> f64;
/// Reads one number of a workflow.
type WorkflowValue = fn(&Status) -> f64;
/// Reads one number of a pool of workers.
type PoolValue = fn(&PoolStatus) -> u64;
/// Reads one number of a worker group.
type GroupValue = fn(&GroupMeasure) -> f64;
/// Values with their labels.
type Values = Vec<(Vec<(&'static str, String)>, f64)>;

/// Gauges of each pool of workers.
const POOL_GAUGES: [(&str, &str, PoolValue); 4] = [
    ("workers_wanted", "Workers that a pool should have", |it| {
        it.wanted
    }),
    (
        "workers_needed",
        "Workers that the work of this moment needs, before damping and limits",
        |it| it.needed,
    ),
    (
        "workers_present",
        "Workers of a pool that can be given tasks",
        |it| it.present,
    ),
    (
        "workers_handed_on",
        "Workers that a pool lacks and its fallback pool is asked for",
        |it| it.handed_on,
    ),
];

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill: the metrics of a workflow",
    about: "Counters of a workflow of proving tasks, or of one of its processes.",
    links: &[
        ("/metrics", "counters and histograms, for Prometheus"),
        (
            "/healthz",
            "whether the workflows that this process leads take new messages",
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

/// Serves the metrics of these workflows and of this process's [roles](proofmill_orchestrator::role_counts) until the
/// future is dropped.
///
/// The page shows nothing of payloads, and needs no token: bind it to loopback, or to a network that may
/// know the amount of work. Pages in a browser are refused, and on loopback also requests whose host name
/// is neither `localhost` nor an address.
pub async fn serve(listener: TcpListener, workflows: Workflows) {
    let gate = PageGate::for_port(listener.local_addr().ok());
    let app = Router::new()
        .route("/", get(async || front(&FRONT)))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .layer(middleware::from_fn_with_state(gate, PageGate::pass))
        .with_state(workflows);
    let (terms, answer) = (
        Terms::plain(HttpVersions::Http1, LIFETIME),
        serve::answers(app),
    );
    serve::serve(listener, terms, answer, std::future::pending()).await;
}

/// A process that leads nothing stands by, and is healthy.
async fn health(State(workflows): State<Workflows>) -> Response {
    let seen = workflows.look().await;
    let drains = |seen: &Seen| seen.led.as_ref().is_some_and(|led| led.status.draining);
    if seen.iter().any(drains) {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    "ok\n".into_response()
}

async fn metrics(State(workflows): State<Workflows>, headers: HeaderMap) -> Response {
    let accept = headers.get_all(header::ACCEPT).iter();
    // A value that is no text asks for nothing.
    let has_exemplars = asks_for_exemplars(accept.filter_map(|value| value.to_str().ok()));
    let seen = workflows.look().await;
    let mut page = Page::new("proofmill").with_exemplars(has_exemplars);
    let leading = seen.iter().map(|seen| {
        let labels = vec![("workflow", seen.workflow.to_string())];
        (labels, f64::from(u8::from(seen.led.is_some())))
    });
    page.add(
        "leading",
        "Whether this process leads the workflow",
        Kind::Gauge,
        leading,
    );
    add_stages(&mut page, &seen);
    add_workflows(&mut page, &seen);
    add_measures(&mut page, &seen);
    add_storage(&mut page, &seen);
    add_pools(&mut page, &seen);
    roles::add(&mut page);
    add_metrics(&mut page);
    workflows.add_sections_to(&mut page);
    page.add_traced_histograms(
        "task_overhead_seconds",
        "From assignment to result, less the executor's own time",
        workflows.overhead(),
    );
    page.add_traced_histograms(
        "task_wait_seconds",
        "From acceptance to the assignment that led to the result",
        workflows.waited(),
    );
    page.add_traced_histograms(
        "block_seconds",
        "From the acceptance of a block's first message to its emission",
        workflows.blocks(),
    );
    page.add_histograms(
        "question_seconds",
        "Time for which a question kept the coordinator from all other work",
        question_seconds(),
    );
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], page.render()).into_response()
}

fn add_stages(page: &mut Page, seen: &[Seen]) {
    let for_each_stage = |value: StageValue| -> Values {
        let led = seen.iter().filter_map(|seen| seen.led.as_ref());
        let values = led.flat_map(|led| {
            led.status.stages.iter().map(move |stage| {
                let labels = vec![
                    ("workflow", led.status.workflow.to_string()),
                    ("stage", stage.stage.to_string()),
                ];
                (labels, value(stage))
            })
        });
        values.collect()
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
}

fn add_workflows(page: &mut Page, seen: &[Seen]) {
    let for_each = |value: WorkflowValue| -> Values {
        let led = seen.iter().filter_map(|seen| seen.led.as_ref());
        let values = led.map(|led| {
            let labels = vec![("workflow", led.status.workflow.to_string())];
            (labels, value(&led.status))
        });
        values.collect()
    };
    let metrics: [(&str, &str, Kind, WorkflowValue); 8] = [
        (
            "workers",
            "Dispatchers that have joined",
            Kind::Gauge,
            |it| it.workers as f64,
        ),
        (
            "workers_paused",
            "Dispatchers that take nothing until their machine has what it lacks",
            Kind::Gauge,
            |it| it.paused.len() as f64,
        ),
        (
            "users_distrusted",
            "Users whose workers get no tasks, since one of them has sent a false result",
            Kind::Gauge,
            |it| it.distrusted.len() as f64,
        ),
        (
            "collectors",
            "Processes that keep partitions of collectors",
            Kind::Gauge,
            |it| it.hosts.len() as f64,
        ),
        (
            "producers_waiting",
            "Messages of producers that wait for room in a queue, or for a paused source",
            Kind::Gauge,
            |it| it.producers_waiting as f64,
        ),
        (
            "blocks_met",
            "Blocks done within their deadline",
            Kind::Counter,
            |it| it.blocks_met as f64,
        ),
        (
            "blocks_missed",
            "Blocks whose deadline passed before they were done",
            Kind::Counter,
            |it| it.blocks_missed as f64,
        ),
        (
            "blocks_stale",
            "Blocks that had been emitted when their chain was reorganised",
            Kind::Counter,
            |it| it.blocks_stale as f64,
        ),
    ];
    for (name, help, kind, value) in metrics {
        page.add(name, help, kind, for_each(value));
    }
    let led = seen.iter().filter_map(|seen| seen.led.as_ref());
    let next = led.filter_map(|led| {
        let labels = vec![("workflow", led.status.workflow.to_string())];
        Some((labels, led.status.next_block? as f64))
    });
    page.add("next_block", "The next block to emit", Kind::Gauge, next);
}

fn add_pools(page: &mut Page, seen: &[Seen]) {
    for (name, help, value) in POOL_GAUGES {
        let led = seen.iter().filter_map(|seen| seen.led.as_ref());
        let values = led.flat_map(|led| {
            led.status.scaling.iter().map(move |pool| {
                let labels = vec![
                    ("workflow", led.status.workflow.to_string()),
                    ("group", pool.group.to_string()),
                    ("pool", pool.pool.to_string()),
                ];
                (labels, value(pool) as f64)
            })
        });
        page.add(name, help, Kind::Gauge, values);
    }
}

fn add_measures(page: &mut Page, seen: &[Seen]) {
    let led = || seen.iter().filter_map(|seen| seen.led.as_ref());
    let workers = led().flat_map(|led| {
        led.measures.groups.iter().flat_map(move |group| {
            group.states().map(|(state, count)| {
                let labels = vec![
                    ("workflow", led.status.workflow.to_string()),
                    ("group", group.group.to_string()),
                    ("state", state.to_owned()),
                ];
                (labels, count as f64)
            })
        })
    });
    page.add(
        "group_workers",
        "Workers of a group, each in one state",
        Kind::Gauge,
        workers,
    );
    let slots: [(&str, &str, GroupValue); 2] = [
        (
            "group_slots",
            "Assignments that the workers of a group take at once",
            |it| it.slots as f64,
        ),
        (
            "group_slots_busy",
            "Assignments that the workers of a group have",
            |it| it.slots_busy as f64,
        ),
    ];
    for (name, help, value) in slots {
        let values = led().flat_map(|led| {
            led.measures.groups.iter().map(move |group| {
                let labels = vec![
                    ("workflow", led.status.workflow.to_string()),
                    ("group", group.group.to_string()),
                ];
                (labels, value(group))
            })
        });
        page.add(name, help, Kind::Gauge, values);
    }
    let waiting = led().flat_map(|led| {
        led.measures.waiting.iter().map(|wait| {
            let labels = vec![
                ("workflow", led.status.workflow.to_string()),
                ("stage", wait.stage.to_string()),
                ("reason", wait.reason.to_string()),
            ];
            (labels, wait.tasks as f64)
        })
    });
    page.add(
        "tasks_waiting_by_reason",
        "Tasks that no worker has, by the event that they wait for",
        Kind::Gauge,
        waiting,
    );
    add_oldest(page, seen);
}

fn add_oldest(page: &mut Page, seen: &[Seen]) {
    let mut metrics: [(&str, &str, Values); 3] = [
        (
            "stage_lowest_block",
            "Lowest block of a live task",
            Vec::new(),
        ),
        (
            "stage_oldest_block",
            "Block of the live task that was accepted first",
            Vec::new(),
        ),
        (
            "stage_oldest_age_seconds",
            "Time since the live task that was accepted first was accepted",
            Vec::new(),
        ),
    ];
    for led in seen.iter().filter_map(|seen| seen.led.as_ref()) {
        for oldest in &led.measures.oldest {
            let labels = || {
                vec![
                    ("workflow", led.status.workflow.to_string()),
                    ("stage", oldest.stage.to_string()),
                ]
            };
            let values = [
                oldest.lowest_block as f64,
                oldest.oldest_block as f64,
                oldest.oldest_age_ms as f64 / 1e3,
            ];
            for ((_, _, list), value) in metrics.iter_mut().zip(values) {
                list.push((labels(), value));
            }
        }
    }
    for (name, help, values) in metrics {
        page.add(name, help, Kind::Gauge, values);
    }
}

fn add_storage(page: &mut Page, seen: &[Seen]) {
    let usage = || {
        let led = seen.iter().filter_map(|seen| seen.led.as_ref());
        led.filter_map(|led| {
            let labels = vec![("workflow", led.status.workflow.to_string())];
            Some((labels, led.usage?))
        })
    };
    page.add(
        "log_bytes",
        "Bytes of the log's files, or of its stream",
        Kind::Gauge,
        usage().map(|(labels, usage)| (labels, usage.bytes as f64)),
    );
    page.add(
        "log_limit_bytes",
        "Most bytes that the log may take up: those in use and those free, or the stream's limit",
        Kind::Gauge,
        usage().filter_map(|(labels, usage)| Some((labels, usage.limit? as f64))),
    );
}
