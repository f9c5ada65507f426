//! A router's knowledge of its engines, and the tasks that poll them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::endpoint::{Endpoint, EndpointError};
use super::routing::{BACKOFF, Routing};

/// Pause between two looks at an engine that answers.
const REFRESH: Duration = Duration::from_secs(2);

/// Time limit for the answer to a look.
const LOOK_LIMIT: Duration = Duration::from_secs(10);

/// Maximum number of jobs of one engine that are remembered to be cancelled.
const MAX_LEFT: usize = 1024;

/// State that a router shares with the tasks that poll its engines.
pub(super) struct Shared {
    pub(super) circuit: String,
    pub(super) endpoints: Vec<Arc<dyn Endpoint>>,
    known: Mutex<Known>,
    changed: watch::Sender<()>,
    /// For each engine, the signal to look at it at once.
    now: Vec<Notify>,
}

/// State that is known of the engines and jobs.
pub(super) struct Known {
    pub(super) routing: Routing,
    /// Number of tasks that wait for a job, by engine and job.
    wanted: BTreeMap<(usize, String), usize>,
    /// For each engine, jobs to be cancelled once it answers.
    left: Vec<BTreeSet<String>>,
}

/// Marks a task's request at an engine as pending until it is dropped.
pub(super) struct Ours<'a> {
    shared: &'a Shared,
    ix: usize,
    request: &'a str,
}

/// Marks a job as needed by a task until it is dropped.
pub(super) struct Wanted<'a> {
    shared: &'a Shared,
    place: (usize, String),
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(circuit: &str, endpoints: Vec<Arc<dyn Endpoint>>) -> Self {
        let known = Known {
            routing: Routing::new(endpoints.len()),
            wanted: BTreeMap::new(),
            left: vec![BTreeSet::new(); endpoints.len()],
        };
        Self {
            circuit: circuit.to_owned(),
            known: Mutex::new(known),
            changed: watch::channel(()).0,
            now: endpoints.iter().map(|_| Notify::new()).collect(),
            endpoints,
        }
    }

    pub(super) fn know<T>(&self, know: impl FnOnce(&mut Known) -> T) -> T {
        // No code panics under this lock.
        know(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Signals every change of the known state.
    pub(super) fn heard(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Requests a look at an engine without waiting for the next one.
    pub(super) fn look_now(&self, ix: usize) {
        self.now[ix].notify_one();
    }

    /// The guard for a request that was passed to [`Routing::began`].
    pub(super) fn ours<'a>(&'a self, ix: usize, request: &'a str) -> Ours<'a> {
        Ours {
            shared: self,
            ix,
            request,
        }
    }

    /// Marks a job as needed by a task.
    pub(super) fn want(&self, ix: usize, job: &str) -> Wanted<'_> {
        let place = (ix, job.to_owned());
        self.know(|known| {
            known.left[ix].remove(job);
            *known.wanted.entry(place.clone()).or_default() += 1;
        });
        Wanted {
            shared: self,
            place,
        }
    }

    /// Schedules the cancellation of accepted jobs that no task waits for.
    pub(super) fn leave(&self, jobs: BTreeSet<(usize, String)>) {
        for place in jobs {
            let ix = place.0;
            self.know(|known| {
                if known.left[ix].len() < MAX_LEFT && !known.wanted.contains_key(&place) {
                    known.left[ix].insert(place.1);
                }
            });
            self.look_now(ix);
        }
    }

    fn take_left(&self, ix: usize) -> BTreeSet<String> {
        self.know(|known| std::mem::take(&mut known.left[ix]))
    }
}

/// Polls each engine until the returned set is dropped.
pub(super) fn look_at(shared: &Arc<Shared>) -> JoinSet<()> {
    let each = 0..shared.endpoints.len();
    each.map(|ix| keep_looking(shared.clone(), ix)).collect()
}

async fn keep_looking(shared: Arc<Shared>, ix: usize) {
    let endpoint = &*shared.endpoints[ix];
    let mut silences = 0_u32;
    loop {
        let look = tokio::time::timeout(LOOK_LIMIT, endpoint.look(&shared.circuit)).await;
        let look = look.unwrap_or_else(|_| {
            let why = format!("no answer within {LOOK_LIMIT:?}");
            Err(EndpointError::Unavailable(why))
        });
        let engine = endpoint.address();
        let wait = match look {
            Ok(look) => {
                if silences > 0 {
                    tracing::info!(engine, "answers again");
                }
                silences = 0;
                shared.know(|known| known.routing.looked(ix, look));
                REFRESH
            }
            Err(error) => {
                if silences == 0 {
                    tracing::warn!(engine, %error, "does not answer");
                }
                silences = silences.saturating_add(1);
                shared.know(|known| known.routing.silent(ix, error.to_string()));
                BACKOFF.delay(silences, 0)
            }
        };
        shared.changed.send_replace(());
        if silences == 0 {
            for job in shared.take_left(ix) {
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

// === impl Ours ===

impl Drop for Ours<'_> {
    fn drop(&mut self) {
        self.shared
            .know(|known| known.routing.ended(self.ix, self.request));
        self.shared.changed.send_replace(());
    }
}

// === impl Wanted ===

impl Wanted<'_> {
    /// Whether no other task of this process waits for the job.
    pub(super) fn by_nobody_else(&self) -> bool {
        self.shared.know(|known| {
            known
                .wanted
                .get(&self.place)
                .is_none_or(|tasks| *tasks == 1)
        })
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.shared.know(|known| {
            if let Some(tasks) = known.wanted.get_mut(&self.place) {
                *tasks -= 1;
                if *tasks == 0 {
                    known.wanted.remove(&self.place);
                }
            }
        });
    }
}
