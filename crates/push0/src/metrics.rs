//! The counters of a role, and the metrics page on METRICS_PORT.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use proofmill_telemetry::{CONTENT_TYPE, FRONT_PAGE_TYPE, FrontPage, Kind, Page};
use tokio::net::TcpListener;

use crate::error::RunError;
use crate::port::BoundedListener;

/// A counter or gauge.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

/// The counters of a role.
#[derive(Debug)]
pub(crate) struct Metrics {
    role: &'static str,
    consumer: String,
    /// Messages delivered.
    pub(crate) received: Count,
    /// Deliveries of messages that had been delivered before.
    pub(crate) redelivered: Count,
    /// Messages finished: a program's outputs, a group's members or a source's blocks are stored.
    pub(crate) completed: Count,
    /// Failed runs of a program; failed requests of a source.
    pub(crate) failed: Count,
    /// Messages dead-lettered.
    pub(crate) dead_lettered: Count,
    /// Repeated members, dropped.
    pub(crate) repeated: Count,
    /// Groups emitted.
    pub(crate) groups: Count,
    /// Messages held for incomplete groups, or that a program works on.
    pub(crate) held: Count,
    /// The last block emitted.
    pub(crate) block: Count,
}

// === impl Count ===

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64
    }
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(role: &'static str, consumer: String) -> Arc<Self> {
        Arc::new(Self {
            role,
            consumer,
            received: Count::default(),
            redelivered: Count::default(),
            completed: Count::default(),
            failed: Count::default(),
            dead_lettered: Count::default(),
            repeated: Count::default(),
            groups: Count::default(),
            held: Count::default(),
            block: Count::default(),
        })
    }

    /// Counts a delivery.
    pub(crate) fn delivered(&self, delivery: &crate::queues::Delivery) {
        self.received.add(1);
        if delivery.delivered > 1 {
            self.redelivered.add(1);
        }
    }

    fn page(&self) -> String {
        let mut page = Page::new("proofmill_push0");
        let counters: [(&str, &str, &Count); 7] = [
            ("received", "Messages delivered", &self.received),
            (
                "redelivered",
                "Messages delivered that had been before",
                &self.redelivered,
            ),
            ("completed", "Messages done with", &self.completed),
            ("failed", "Failed runs or requests", &self.failed),
            (
                "dead_lettered",
                "Messages put beside the queue",
                &self.dead_lettered,
            ),
            (
                "repeated",
                "Repeated members of groups, dropped",
                &self.repeated,
            ),
            ("groups_emitted", "Groups emitted", &self.groups),
        ];
        let gauges: [(&str, &str, &Count); 2] = [
            ("held", "Messages worked on or held for groups", &self.held),
            ("block", "Last block emitted", &self.block),
        ];
        let labels = || {
            vec![
                ("role", self.role.to_owned()),
                ("consumer", self.consumer.clone()),
            ]
        };
        for (name, help, count) in counters {
            page.add(name, help, Kind::Counter, [(labels(), count.get())]);
        }
        for (name, help, count) in gauges {
            page.add(name, help, Kind::Gauge, [(labels(), count.get())]);
        }
        page.render()
    }

    /// Runs `role`, and serves the metrics page until `role` ends. Without an address, only runs `role`.
    pub(crate) async fn serve_during(
        self: Arc<Self>,
        address: Option<SocketAddr>,
        role: impl Future<Output = Result<(), RunError>>,
    ) -> Result<(), RunError> {
        let Some(address) = address else {
            return role.await;
        };
        let fault = |source| RunError::Metrics { address, source };
        let listener = TcpListener::bind(address).await.map_err(fault)?;
        let listener = BoundedListener::new(listener);
        tracing::info!("metrics at http://{address}/metrics");
        let app = Router::new()
            .route("/", get(front))
            .route("/metrics", get(metrics))
            .route("/healthz", get(|| async { "ok\n" }))
            .with_state(self);
        tokio::select! {
            ended = role => ended,
            served = async { axum::serve(listener, app).await } => served.map_err(fault),
        }
    }
}

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill in push0's place: the metrics of a role",
    about: "Counters of a dispatcher or collector with push0's environment variables.",
    links: &[
        ("/metrics", "counters and gauges, for Prometheus"),
        ("/healthz", "whether the process runs"),
    ],
    calls: &[],
    document: "push0.md",
};

async fn front() -> Response {
    ([(header::CONTENT_TYPE, FRONT_PAGE_TYPE)], FRONT.html()).into_response()
}

async fn metrics(State(metrics): State<Arc<Metrics>>) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.page()).into_response()
}
