//! Routing of jobs to engines, until they end.

use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::endpoint::{End, Endpoint, EndpointError, Job, Made};
use super::routing::Choice;
use super::seen::{Shared, look_at};

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
    looking: OnceLock<JoinSet<()>>,
}

/// State of one job while it is routed.
struct Journey<'a> {
    request: &'a str,
    job: &'a Job,
    /// Engines that cannot do the job, or at which it failed.
    tried: BTreeSet<usize>,
    /// Those of `tried` that stated that they cannot do it.
    unable: BTreeSet<usize>,
    /// Whether an engine stated that the job is malformed, so that no engine can do it.
    invalid: bool,
    /// Reasons of the engines at which the job failed.
    failed: Vec<String>,
    /// Reasons of the engines that cannot do it.
    refused: Vec<String>,
    /// Jobs that are no longer needed, by engine.
    left: BTreeSet<(usize, String)>,
}

/// The reason why an engine has made no proof.
enum Unmade {
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
            looking: OnceLock::new(),
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
        job: &Job,
        stop: impl Future<Output = RouteError>,
    ) -> Result<Made, RouteError> {
        self.looking.get_or_init(|| look_at(&self.shared));
        let mut journey = Journey {
            request,
            job,
            tried: BTreeSet::new(),
            unable: BTreeSet::new(),
            invalid: false,
            failed: Vec::new(),
            refused: Vec::new(),
            left: BTreeSet::new(),
        };
        let made = self.go(&mut journey, pin!(stop)).await;
        self.shared.leave(journey.left);
        made
    }

    async fn go<S: Future<Output = RouteError>>(
        &self,
        journey: &mut Journey<'_>,
        mut stop: Pin<&mut S>,
    ) -> Result<Made, RouteError> {
        let mut heard = self.shared.heard();
        let settled = Instant::now() + SETTLE;
        let mut lacking_since = None;
        loop {
            heard.mark_unchanged();
            let now = Instant::now();
            let choice = self.shared.know(|known| {
                if !known.routing.all_looked_at() && now < settled {
                    // An engine whose state is unknown may have the key ready.
                    return Choice::Full(settled);
                }
                let choice = known.routing.choose(journey.request, &journey.tried, now);
                if let Choice::At(ix) = choice {
                    known.routing.began(ix, journey.request);
                }
                choice
            });
            let wake = match choice {
                Choice::At(ix) => {
                    lacking_since = None;
                    match self.at(ix, journey, stop.as_mut()).await? {
                        Some(made) => return Ok(made),
                        None => continue,
                    }
                }
                Choice::Full(until) => {
                    lacking_since = None;
                    until
                }
                Choice::None { until } => {
                    let end = *lacking_since.get_or_insert(now) + self.patience;
                    if let Some(verdict) = self.verdict(journey, now >= end) {
                        return Err(verdict);
                    }
                    until.map_or(end, |until| until.min(end))
                }
            };
            tokio::select! {
                biased;
                stopped = stop.as_mut() => return Err(stopped),
                () = changed(&mut heard) => {}
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
    }

    /// Proves at this engine; `None` if another engine has to be chosen.
    async fn at<S: Future<Output = RouteError>>(
        &self,
        ix: usize,
        journey: &mut Journey<'_>,
        stop: Pin<&mut S>,
    ) -> Result<Option<Made>, RouteError> {
        let _ours = self.shared.ours(ix, journey.request);
        let address = self.shared.endpoints[ix].address();
        let error = match self.job_at(ix, journey, stop).await {
            Ok(made) => return Ok(Some(made)),
            Err(Unmade::Stopped(stopped)) => return Err(stopped),
            Err(Unmade::Failed(why)) => {
                journey.tried.insert(ix);
                journey.failed.push(format!("{address}: {why}"));
                if journey.failed.len() >= ENGINES {
                    return Err(journey.has_failed());
                }
                return Ok(None);
            }
            Err(Unmade::Error(error)) => error,
        };
        tracing::debug!(engine = address, request = journey.request, %error, "not here");
        let now = Instant::now();
        journey.invalid |= matches!(error, EndpointError::Invalid(_));
        match error {
            EndpointError::Exhausted { retry_after, .. } => {
                self.shared
                    .know(|known| known.routing.full(ix, retry_after, now));
            }
            EndpointError::Unavailable(_) => {
                self.shared.know(|known| known.routing.refused(ix, now));
                self.shared.look_now(ix);
            }
            EndpointError::Unable(why)
            | EndpointError::Taken(why)
            | EndpointError::Invalid(why) => {
                journey.tried.insert(ix);
                journey.unable.insert(ix);
                journey.refused.push(format!("{address}: {why}"));
                self.shared.look_now(ix);
            }
        }
        Ok(None)
    }

    /// Submits the job and waits for its end.
    async fn job_at<S: Future<Output = RouteError>>(
        &self,
        ix: usize,
        journey: &mut Journey<'_>,
        mut stop: Pin<&mut S>,
    ) -> Result<Made, Unmade> {
        let endpoint = &*self.shared.endpoints[ix];
        let mut taken = None;
        for generation in 0..GENERATIONS {
            let id = match generation {
                0 => journey.request.to_owned(),
                generation => format!("{}.{generation}", journey.request),
            };
            let ticket = match endpoint.submit(&id, journey.job).await {
                Ok(ticket) => ticket,
                Err(error @ EndpointError::Taken(_)) => {
                    taken = Some(error);
                    continue;
                }
                Err(error) => return Err(Unmade::Error(error)),
            };
            let wanted = self.shared.want(ix, &ticket.job);
            let end = {
                let mut result = pin!(endpoint.result(&ticket.job, journey.job));
                tokio::select! {
                    biased;
                    end = &mut result => end,
                    stopped = stop.as_mut() => {
                        if wanted.by_nobody_else() {
                            // The pending request for the result still counts as one waiting
                            // caller.
                            cancel(endpoint, &ticket.job, 1).await;
                        }
                        return Err(Unmade::Stopped(stopped));
                    }
                }
            };
            let place = (ix, ticket.job);
            let end = match end {
                Ok(end) => end,
                Err(error) => {
                    journey.left.insert(place);
                    return Err(Unmade::Error(error));
                }
            };
            self.shared.know(|known| known.routing.ended_a_job(ix));
            journey.left.remove(&place);
            match end {
                End::Proved(made) => return Ok(made),
                // The job ended for an earlier attempt, or for another caller: its id is used up.
                End::Failed(_) | End::Stopped if ticket.existing => {}
                End::Failed(why) => return Err(Unmade::Failed(why)),
                End::Stopped => {
                    let why = format!("somebody stopped job {}", place.1);
                    return Err(Unmade::Failed(why));
                }
            }
        }
        Err(taken.map_or_else(
            || {
                Unmade::Failed(format!(
                    "{GENERATIONS} jobs for this task have failed there"
                ))
            },
            Unmade::Error,
        ))
    }

    /// The error to return while no engine that answers could do the job; `None` if the job may
    /// wait.
    fn verdict(&self, journey: &Journey<'_>, out_of_patience: bool) -> Option<RouteError> {
        if !journey.failed.is_empty() {
            return Some(journey.has_failed());
        }
        let (hopeless, reasons) = self.shared.know(|known| {
            let others = (0..self.shared.endpoints.len())
                .filter(|ix| !journey.tried.contains(ix))
                .map(|ix| {
                    let address = self.shared.endpoints[ix].address();
                    format!("{address}: {}", known.routing.why_not(ix))
                });
            let reasons: Vec<String> = journey.refused.iter().cloned().chain(others).collect();
            let hopeless = |ix| journey.unable.contains(&ix) || known.routing.lacks(ix);
            let hopeless = (0..self.shared.endpoints.len()).all(hopeless);
            (hopeless, reasons.join("; "))
        });
        let circuit = &self.shared.circuit;
        match (hopeless, out_of_patience) {
            _ if journey.invalid => Some(RouteError::Permanent(format!(
                "the task is no job for circuit {circuit}: {}",
                journey.refused.join("; ")
            ))),
            (true, _) if !journey.unable.is_empty() => Some(RouteError::Permanent(format!(
                "no engine can prove it for circuit {circuit}: {reasons}"
            ))),
            (true, true) => Some(RouteError::Permanent(format!(
                "no engine has circuit {circuit}: {reasons}; register it and retry the task"
            ))),
            (false, true) => Some(RouteError::Retry(format!(
                "no engine that has circuit {circuit} answered within {:?}: {reasons}",
                self.patience
            ))),
            (_, false) => None,
        }
    }
}

/// Asks an engine to stop a job; gives up after [`CANCEL_LIMIT`].
async fn cancel(endpoint: &dyn Endpoint, job: &str, waiting: u32) {
    let cancelled = tokio::time::timeout(CANCEL_LIMIT, endpoint.cancel(job, waiting)).await;
    let answered = matches!(cancelled, Ok(Ok(())));
    tracing::debug!(engine = endpoint.address(), job, answered, "asked to stop");
}

/// Waits until the known state of an engine changes.
async fn changed(heard: &mut watch::Receiver<()>) {
    if heard.changed().await.is_err() {
        // The sender lives as long as the router, which is borrowed.
        std::future::pending().await
    }
}

// === impl Journey ===

impl Journey<'_> {
    fn has_failed(&self) -> RouteError {
        RouteError::Retry(self.failed.join("; "))
    }
}
