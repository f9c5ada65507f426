//! Routing of jobs to engines, until they end.

use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::endpoint::{Endpoint, EndpointError, EngineJob, JobOutcome, ProofOutput};
use super::polling::{Shared, poll_engines};
use super::routing::Choice;

/// Longest wait of the first choice for engines whose state is still unknown.
const SETTLE: Duration = Duration::from_secs(1);

/// Time limit for an engine to stop a job.
const CANCEL_LIMIT: Duration = Duration::from_secs(3);

/// Maximum number of ids of one request at one engine: each job that ends without a proof uses up
/// one.
const GENERATIONS: u32 = 64;

/// Number of engines at which a job may fail before its attempt has failed.
const ENGINES: usize = 2;

/// The reason why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// No attempt can succeed.
    #[error("{0}")]
    Permanent(String),
    /// Another attempt may succeed.
    #[error("{0}")]
    Retry(String),
    /// The result is no longer wanted.
    #[error("cancelled")]
    Cancelled,
}

/// Routes jobs for one circuit to several engines. The engines' state is polled every few seconds
/// from the first job on, and at once after an error.
pub struct Router {
    shared: Arc<Shared>,
    patience: Duration,
    /// Polling tasks, one for each engine.
    polling: OnceLock<JoinSet<()>>,
}

/// State of one job while it is routed.
struct RoutingAttempt<'a> {
    request: &'a str,
    job: &'a EngineJob,
    /// Engines that cannot do the job, or at which it failed.
    tried: BTreeSet<usize>,
    /// Engines among `tried` that stated that they cannot do the job.
    unable: BTreeSet<usize>,
    /// Whether an engine stated that the job is malformed, so that no engine can do it.
    invalid: bool,
    /// Reasons of the engines at which the job failed.
    failed: Vec<String>,
    /// Reasons of the engines that cannot do it.
    refused: Vec<String>,
    /// Jobs that are no longer needed, by engine.
    abandoned: BTreeSet<(usize, String)>,
}

/// The reason why an engine has made no proof.
enum ProveFailure {
    /// The engine returned an error.
    Error(EndpointError),
    /// The job ended without a proof, for this reason.
    Failed(String),
    /// The result is no longer wanted.
    Stopped(RouteError),
}

// === impl Router ===

impl Router {
    /// Routes jobs for `circuit` to `endpoints`. A job waits at most `patience` for an engine that
    /// answers and has the circuit, and without limit for one that has no capacity.
    pub fn new(circuit: &str, endpoints: Vec<Arc<dyn Endpoint>>, patience: Duration) -> Self {
        Self {
            shared: Arc::new(Shared::new(circuit, endpoints)),
            patience,
            polling: OnceLock::new(),
        }
    }

    /// Proves `job` at an engine. The same `request` is the same job wherever it was accepted, so
    /// that nothing is proved twice. When `stop` ends first, the job is cancelled at the engine
    /// unless another caller waits for it, and the output of `stop` is the error.
    ///
    /// # Errors
    ///
    /// See [`RouteError`].
    pub async fn prove(
        &self,
        request: &str,
        job: &EngineJob,
        stop: impl Future<Output = RouteError>,
    ) -> Result<ProofOutput, RouteError> {
        self.polling.get_or_init(|| poll_engines(&self.shared));
        let mut attempt = RoutingAttempt {
            request,
            job,
            tried: BTreeSet::new(),
            unable: BTreeSet::new(),
            invalid: false,
            failed: Vec::new(),
            refused: Vec::new(),
            abandoned: BTreeSet::new(),
        };
        let proof = self.route(&mut attempt, pin!(stop)).await;
        self.shared.abandon(attempt.abandoned);
        proof
    }

    async fn route<S: Future<Output = RouteError>>(
        &self,
        attempt: &mut RoutingAttempt<'_>,
        mut stop: Pin<&mut S>,
    ) -> Result<ProofOutput, RouteError> {
        let mut news = self.shared.subscribe();
        let settled = Instant::now() + SETTLE;
        let mut lacking_since = None;
        loop {
            news.mark_unchanged();
            let now = Instant::now();
            let choice = self.shared.with_state(|state| {
                if !state.routing.all_polled() && now < settled {
                    // An engine whose state is unknown may have the key ready.
                    return Choice::AtCapacity(settled);
                }
                let choice = state.routing.choose(attempt.request, &attempt.tried, now);
                if let Choice::Engine(ix) = choice {
                    state.routing.began(ix, attempt.request);
                }
                choice
            });
            let wake = match choice {
                Choice::Engine(ix) => {
                    lacking_since = None;
                    match self.try_engine(ix, attempt, stop.as_mut()).await? {
                        Some(proof) => return Ok(proof),
                        None => continue,
                    }
                }
                Choice::AtCapacity(until) => {
                    lacking_since = None;
                    until
                }
                Choice::Unavailable { until } => {
                    let end = *lacking_since.get_or_insert(now) + self.patience;
                    if let Some(error) = self.final_error(attempt, now >= end) {
                        return Err(error);
                    }
                    until.map_or(end, |until| until.min(end))
                }
            };
            tokio::select! {
                biased;
                stopped = stop.as_mut() => return Err(stopped),
                () = changed(&mut news) => {}
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
    }

    /// Proves at this engine; `None` if another engine has to be chosen.
    async fn try_engine<S: Future<Output = RouteError>>(
        &self,
        ix: usize,
        attempt: &mut RoutingAttempt<'_>,
        stop: Pin<&mut S>,
    ) -> Result<Option<ProofOutput>, RouteError> {
        let _pending = self.shared.pending_request(ix, attempt.request);
        let address = self.shared.endpoints[ix].address();
        let error = match self.run_job(ix, attempt, stop).await {
            Ok(proof) => return Ok(Some(proof)),
            Err(ProveFailure::Stopped(stopped)) => return Err(stopped),
            Err(ProveFailure::Failed(why)) => {
                attempt.tried.insert(ix);
                attempt.failed.push(format!("{address}: {why}"));
                if attempt.failed.len() >= ENGINES {
                    return Err(attempt.has_failed());
                }
                return Ok(None);
            }
            Err(ProveFailure::Error(error)) => error,
        };
        tracing::debug!(engine = address, request = attempt.request, %error, "not here");
        let now = Instant::now();
        attempt.invalid |= matches!(error, EndpointError::Invalid(_));
        match error {
            EndpointError::Exhausted { retry_after, .. } => {
                self.shared
                    .with_state(|state| state.routing.full(ix, retry_after, now));
            }
            EndpointError::Unavailable(_) => {
                self.shared
                    .with_state(|state| state.routing.refused(ix, now));
                self.shared.poll_now(ix);
            }
            EndpointError::Unable(why)
            | EndpointError::Taken(why)
            | EndpointError::Invalid(why) => {
                attempt.tried.insert(ix);
                attempt.unable.insert(ix);
                attempt.refused.push(format!("{address}: {why}"));
                self.shared.poll_now(ix);
            }
        }
        Ok(None)
    }

    /// Submits the job and waits for its end.
    async fn run_job<S: Future<Output = RouteError>>(
        &self,
        ix: usize,
        attempt: &mut RoutingAttempt<'_>,
        mut stop: Pin<&mut S>,
    ) -> Result<ProofOutput, ProveFailure> {
        let endpoint = &*self.shared.endpoints[ix];
        let mut taken = None;
        for generation in 0..GENERATIONS {
            let id = match generation {
                0 => attempt.request.to_owned(),
                generation => format!("{}.{generation}", attempt.request),
            };
            let ticket = match endpoint.submit(&id, attempt.job).await {
                Ok(ticket) => ticket,
                Err(error @ EndpointError::Taken(_)) => {
                    taken = Some(error);
                    continue;
                }
                Err(error) => return Err(ProveFailure::Error(error)),
            };
            let interest = self.shared.add_interest(ix, &ticket.job);
            let end = {
                let mut result = pin!(endpoint.result(&ticket.job, attempt.job));
                tokio::select! {
                    biased;
                    end = &mut result => end,
                    stopped = stop.as_mut() => {
                        if interest.is_last() {
                            // The pending request for the result still counts as one waiting
                            // caller.
                            cancel(endpoint, &ticket.job, 1).await;
                        }
                        return Err(ProveFailure::Stopped(stopped));
                    }
                }
            };
            let place = (ix, ticket.job);
            let end = match end {
                Ok(end) => end,
                Err(error) => {
                    attempt.abandoned.insert(place);
                    return Err(ProveFailure::Error(error));
                }
            };
            self.shared
                .with_state(|state| state.routing.ended_a_job(ix));
            attempt.abandoned.remove(&place);
            match end {
                JobOutcome::Proved(proof) => return Ok(proof),
                // The job ended for an earlier attempt, or for another caller: its id is used up.
                JobOutcome::Failed(_) | JobOutcome::Cancelled if ticket.existing => {}
                JobOutcome::Failed(why) => return Err(ProveFailure::Failed(why)),
                JobOutcome::Cancelled => {
                    let why = format!("job {} was cancelled at the engine", place.1);
                    return Err(ProveFailure::Failed(why));
                }
            }
        }
        Err(taken.map_or_else(
            || {
                ProveFailure::Failed(format!(
                    "{GENERATIONS} jobs for this task have failed at this engine"
                ))
            },
            ProveFailure::Error,
        ))
    }

    /// The error to return while no engine that answers could do the job; `None` if the job may
    /// wait.
    fn final_error(
        &self,
        attempt: &RoutingAttempt<'_>,
        out_of_patience: bool,
    ) -> Option<RouteError> {
        if !attempt.failed.is_empty() {
            return Some(attempt.has_failed());
        }
        let (hopeless, reasons) = self.shared.with_state(|state| {
            let others = (0..self.shared.endpoints.len())
                .filter(|ix| !attempt.tried.contains(ix))
                .map(|ix| {
                    let address = self.shared.endpoints[ix].address();
                    format!("{address}: {}", state.routing.why_not(ix))
                });
            let reasons: Vec<String> = attempt.refused.iter().cloned().chain(others).collect();
            let hopeless = |ix| attempt.unable.contains(&ix) || state.routing.lacks(ix);
            let hopeless = (0..self.shared.endpoints.len()).all(hopeless);
            (hopeless, reasons.join("; "))
        });
        let circuit = &self.shared.circuit;
        match (hopeless, out_of_patience) {
            _ if attempt.invalid => Some(RouteError::Permanent(format!(
                "the task cannot be a job for circuit {circuit}: {}",
                attempt.refused.join("; ")
            ))),
            (true, _) if !attempt.unable.is_empty() => Some(RouteError::Permanent(format!(
                "no engine can prove the task for circuit {circuit}: {reasons}"
            ))),
            (true, true) => Some(RouteError::Permanent(format!(
                "no engine has circuit {circuit}: {reasons}; register the circuit and retry the \
                 task"
            ))),
            (false, true) => Some(RouteError::Retry(format!(
                "no engine that has circuit {circuit} answered within {:?}: {reasons}",
                self.patience
            ))),
            (_, false) => None,
        }
    }
}

/// Asks an engine to stop a job, and waits up to [`CANCEL_LIMIT`] for its answer.
async fn cancel(endpoint: &dyn Endpoint, job: &str, waiting: u32) {
    let cancelled = tokio::time::timeout(CANCEL_LIMIT, endpoint.cancel(job, waiting)).await;
    let answered = matches!(cancelled, Ok(Ok(())));
    tracing::debug!(engine = endpoint.address(), job, answered, "asked to stop");
}

/// Waits until the known state of an engine changes.
async fn changed(news: &mut watch::Receiver<()>) {
    if news.changed().await.is_err() {
        // The sender lives as long as the router, which is borrowed.
        std::future::pending().await
    }
}

// === impl RoutingAttempt ===

impl RoutingAttempt<'_> {
    fn has_failed(&self) -> RouteError {
        RouteError::Retry(self.failed.join("; "))
    }
}
