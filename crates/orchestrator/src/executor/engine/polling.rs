//! A router's knowledge of its engines, and the tasks that poll them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::endpoint::{Endpoint, EndpointError};
use super::routing::{BACKOFF, Routing};

/// Pause between two polls of an engine that answers.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Time limit for the answer to a poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of jobs of one engine that are remembered to be cancelled.
const MAX_ABANDONED: usize = 1024;

/// State that a router shares with the tasks that poll its engines.
pub(super) struct Shared {
    pub(super) circuit: String,
    pub(super) endpoints: Vec<Arc<dyn Endpoint>>,
    state: Mutex<RouterState>,
    changed: watch::Sender<()>,
    /// For each engine, the signal to poll it at once.
    now: Vec<Notify>,
}

/// State that is known of the engines and jobs.
pub(super) struct RouterState {
    pub(super) routing: Routing,
    /// Number of tasks that wait for a job, by engine and job.
    wanted: BTreeMap<(usize, String), usize>,
    /// For each engine, jobs to be cancelled once it answers.
    abandoned: Vec<BTreeSet<String>>,
}

/// Marks a task's request at an engine as pending until it is dropped.
pub(super) struct PendingRequest<'a> {
    shared: &'a Shared,
    ix: usize,
    request: &'a str,
}

/// Marks a job as needed by a task until it is dropped.
pub(super) struct JobInterest<'a> {
    shared: &'a Shared,
    place: (usize, String),
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(circuit: &str, endpoints: Vec<Arc<dyn Endpoint>>) -> Self {
        let state = RouterState {
            routing: Routing::new(endpoints.len()),
            wanted: BTreeMap::new(),
            abandoned: vec![BTreeSet::new(); endpoints.len()],
        };
        Self {
            circuit: circuit.to_owned(),
            state: Mutex::new(state),
            changed: watch::channel(()).0,
            now: endpoints.iter().map(|_| Notify::new()).collect(),
            endpoints,
        }
    }

    pub(super) fn with_state<T>(&self, change: impl FnOnce(&mut RouterState) -> T) -> T {
        // No code panics under this lock.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Signals every change of the known state.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Requests a poll of an engine without waiting for the next one.
    pub(super) fn poll_now(&self, ix: usize) {
        self.now[ix].notify_one();
    }

    /// The guard for a request that was passed to [`Routing::began`].
    pub(super) fn pending_request<'a>(&'a self, ix: usize, request: &'a str) -> PendingRequest<'a> {
        PendingRequest {
            shared: self,
            ix,
            request,
        }
    }

    /// Marks a job as needed by a task.
    pub(super) fn add_interest(&self, ix: usize, job: &str) -> JobInterest<'_> {
        let place = (ix, job.to_owned());
        self.with_state(|state| {
            state.abandoned[ix].remove(job);
            *state.wanted.entry(place.clone()).or_default() += 1;
        });
        JobInterest {
            shared: self,
            place,
        }
    }

    /// Schedules the cancellation of accepted jobs that no task waits for.
    pub(super) fn abandon(&self, jobs: BTreeSet<(usize, String)>) {
        for place in jobs {
            let ix = place.0;
            self.with_state(|state| {
                if state.abandoned[ix].len() < MAX_ABANDONED && !state.wanted.contains_key(&place) {
                    state.abandoned[ix].insert(place.1);
                }
            });
            self.poll_now(ix);
        }
    }

    fn take_abandoned(&self, ix: usize) -> BTreeSet<String> {
        self.with_state(|state| std::mem::take(&mut state.abandoned[ix]))
    }
}

/// Polls each engine until the returned set is dropped.
pub(super) fn poll_engines(shared: &Arc<Shared>) -> JoinSet<()> {
    let each = 0..shared.endpoints.len();
    each.map(|ix| poll_engine(shared.clone(), ix)).collect()
}

async fn poll_engine(shared: Arc<Shared>, ix: usize) {
    let endpoint = &*shared.endpoints[ix];
    let mut silences = 0_u32;
    loop {
        let snapshot = tokio::time::timeout(POLL_TIMEOUT, endpoint.snapshot(&shared.circuit)).await;
        let snapshot = snapshot.unwrap_or_else(|_| {
            let why = format!("no answer within {POLL_TIMEOUT:?}");
            Err(EndpointError::Unavailable(why))
        });
        let engine = endpoint.address();
        let wait = match snapshot {
            Ok(snapshot) => {
                if silences > 0 {
                    tracing::info!(engine, "answers again");
                }
                silences = 0;
                shared.with_state(|state| state.routing.answered(ix, snapshot));
                POLL_INTERVAL
            }
            Err(error) => {
                if silences == 0 {
                    tracing::warn!(engine, %error, "does not answer");
                }
                silences = silences.saturating_add(1);
                shared.with_state(|state| state.routing.unreachable(ix, error.to_string()));
                BACKOFF.delay(silences, 0)
            }
        };
        shared.changed.send_replace(());
        if silences == 0 {
            for job in shared.take_abandoned(ix) {
                // Callers that have asked for the job since are counted by the engine.
                let stopped = endpoint.cancel(&job, 0).await;
                tracing::debug!(
                    engine,
                    job,
                    stopped = stopped.is_ok(),
                    "nobody waits for it"
                );
            }
        }
        tokio::select! {
            () = shared.now[ix].notified(), if silences == 0 => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

// === impl PendingRequest ===

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.shared
            .with_state(|state| state.routing.ended(self.ix, self.request));
        self.shared.changed.send_replace(());
    }
}

// === impl JobInterest ===

impl JobInterest<'_> {
    /// Whether no other task of this process waits for the job.
    pub(super) fn is_last(&self) -> bool {
        self.shared.with_state(|state| {
            state
                .wanted
                .get(&self.place)
                .is_none_or(|tasks| *tasks == 1)
        })
    }
}

impl Drop for JobInterest<'_> {
    fn drop(&mut self) {
        self.shared.with_state(|state| {
            if let Some(tasks) = state.wanted.get_mut(&self.place) {
                *tasks -= 1;
                if *tasks == 0 {
                    state.wanted.remove(&self.place);
                }
            }
        });
    }
}
