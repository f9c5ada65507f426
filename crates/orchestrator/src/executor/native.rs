//! Provers in this process, called without files, and without JSON unless they ask for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_trace::TraceContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::machine::Unfinished;
use super::resolved::Resolved;
use super::traits::{Execution, Executor, Product};
use crate::id::TaskId;
use crate::origin::{Origin, Origins};
use crate::payload::Encoding;
use crate::record::Failure;
use proofmill_process::MachineFailure;

/// Information for a prover about its task.
#[derive(Clone, Debug)]
pub struct Context {
    /// The task.
    pub task: TaskId,
    /// First block that the task is about.
    pub first: u64,
    /// Last block that the task is about, inclusive.
    pub last: u64,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Origins of the input, as recorded by the core. A verifier compares results with them.
    pub origins: Origins,
    /// Context of the attempt's span, for whatever the prover calls; `None` if the block has none.
    pub trace: Option<TraceContext>,
    /// Cancelled when the result is no longer wanted; a prover that runs for long should check it.
    pub cancel: CancellationToken,
}

impl Context {
    /// The origin of the input, if the input is a single message.
    ///
    /// # Errors
    /// [`ProverError::Permanent`] for a group, and for a task of unknown origin, which an older
    /// version of Proofmill has recorded.
    pub fn origin(&self) -> Result<&Origin, ProverError> {
        let why = match &*self.origins {
            [origin] => return Ok(origin),
            [] => {
                "the log does not record what was submitted for this task (an earlier version \
                 began it): submit its blocks again, with another state directory"
            }
            _ => "the task is a group: it comes from several messages",
        };
        Err(ProverError::Permanent(why.to_owned()))
    }
}

/// The reason why a prover has no result.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProverError {
    /// Every attempt would fail the same way: the task goes to the dead-letter queue at once.
    #[error("{0}")]
    Permanent(String),
    /// Another attempt may succeed.
    #[error("{0}")]
    Retry(String),
    /// This machine lacks something unrelated to the task: no attempt is counted, and the
    /// dispatcher pauses. [`MachineFailure::of`] converts an [`io::Error`](std::io::Error) that
    /// reports an exhausted resource.
    #[error(transparent)]
    Machine(MachineFailure),
}

/// A prover, or any other computation on a task's payload.
///
/// It runs on a blocking thread, outside the async runtime, and may use any number of threads.
pub trait Prover: Send + Sync + 'static {
    /// Type that a task's payload is decoded to.
    type Input: FromPayload + Send;
    /// Type of the result, which is sent to the stage's output queues.
    type Output: IntoPayloads + Send;

    /// Loads, before there is a task, what the first one would wait for, such as keys. Called once, when the first
    /// dispatcher starts; tasks may run meanwhile. What fails here fails again in a task, which reports it.
    fn prepare(&self) {}

    /// Proves one task.
    fn prove(&self, context: &Context, input: Self::Input) -> Result<Self::Output, ProverError>;

    /// Proves several tasks that were claimable at once (`batch` in the workflow file); one result
    /// for each, in order. Override it if a batch is cheaper than separate calls.
    fn prove_batch(
        &self,
        batch: Vec<(Context, Self::Input)>,
    ) -> Vec<Result<Self::Output, ProverError>> {
        batch
            .into_iter()
            .map(|(context, input)| self.prove(&context, input))
            .collect()
    }
}

/// A type that a payload can be decoded to.
pub trait FromPayload: Sized {
    /// Decodes the payload. An error is permanent, since the payload will not change.
    fn from_payload(payload: Resolved) -> Result<Self, String>;
}

/// The result of a prover, as messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Produced {
    /// A single message.
    One(Encoding, Bytes),
    /// The elements of a fan-out.
    Many(Vec<(Encoding, Bytes)>),
}

/// A type that can be encoded as messages.
pub trait IntoPayloads {
    /// Encodes the messages.
    fn into_payloads(self) -> Result<Produced, String>;
}

/// Wrapper for provers whose input or output is JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromPayload for Json<T> {
    fn from_payload(payload: Resolved) -> Result<Self, String> {
        let bytes = payload.to_program_input()?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl<T: Serialize> IntoPayloads for Json<T> {
    fn into_payloads(self) -> Result<Produced, String> {
        let bytes = serde_json::to_vec(&self.0).map_err(|error| error.to_string())?;
        Ok(Produced::One(Encoding::Json, bytes.into()))
    }
}

impl FromPayload for Resolved {
    fn from_payload(payload: Resolved) -> Result<Self, String> {
        Ok(payload)
    }
}

impl FromPayload for Bytes {
    fn from_payload(payload: Resolved) -> Result<Self, String> {
        payload.to_program_input()
    }
}

impl IntoPayloads for Bytes {
    fn into_payloads(self) -> Result<Produced, String> {
        Ok(Produced::One(Encoding::Binary, self))
    }
}

impl IntoPayloads for Produced {
    fn into_payloads(self) -> Result<Produced, String> {
        Ok(self)
    }
}

/// The executor of a [`Prover`].
pub struct Native<P> {
    prover: Arc<P>,
    fan_out: bool,
    time_limit: Option<Duration>,
    /// Whether the prover's preparation has begun.
    is_prepared: AtomicBool,
}

// === impl Native ===

impl<P: Prover> Native<P> {
    /// Runs `prover`. With `fan_out`, a JSON array that it returns is split into its elements. An
    /// attempt fails after `time_limit`; its thread continues until the prover returns.
    pub fn new(prover: Arc<P>, fan_out: bool, time_limit: Option<Duration>) -> Self {
        Self {
            prover,
            fan_out,
            time_limit,
            is_prepared: AtomicBool::new(false),
        }
    }

    fn run(prover: &P, fan_out: bool, batch: Vec<Execution>) -> Vec<Result<Product, Unfinished>> {
        let began = Instant::now();
        let mut results: Vec<Option<Result<Product, Unfinished>>> = Vec::with_capacity(batch.len());
        let mut inputs = Vec::with_capacity(batch.len());
        for execution in batch {
            match P::Input::from_payload(execution.input) {
                Ok(input) => {
                    let context = Context {
                        task: execution.task.id.clone(),
                        first: execution.task.id.block,
                        last: execution.task.last,
                        attempt: execution.attempt,
                        origins: execution.task.origins.clone(),
                        trace: execution.trace,
                        cancel: execution.cancel,
                    };
                    inputs.push((context, input));
                    results.push(None);
                }
                Err(why) => {
                    let reason = format!("the payload cannot be read: {why}");
                    results.push(Some(Err(permanent(reason, began.elapsed()))));
                }
            }
        }
        let count = inputs.len();
        let proved = proofmill_panics::catch(|| match count {
            0 => Vec::new(),
            1 => inputs
                .pop()
                .map(|(context, input)| prover.prove(&context, input))
                .into_iter()
                .collect(),
            _ => prover.prove_batch(inputs),
        });
        let proved = proved.unwrap_or_else(|panic| {
            let reason = format!("the prover panicked: {panic}");
            (0..count)
                .map(|_| Err(ProverError::Retry(reason.clone())))
                .collect()
        });
        let ran = began.elapsed();
        let mut proved = proved.into_iter();
        let lacking = || {
            Err(ProverError::Retry(
                "the prover returned too few results for its batch".into(),
            ))
        };
        results
            .into_iter()
            .map(|result| {
                result
                    .unwrap_or_else(|| product(proved.next().unwrap_or_else(lacking), fan_out, ran))
            })
            .collect()
    }
}

fn product<O: IntoPayloads>(
    result: Result<O, ProverError>,
    fan_out: bool,
    ran: Duration,
) -> Result<Product, Unfinished> {
    let output = match result {
        Ok(output) => output,
        Err(ProverError::Permanent(reason)) => return Err(permanent(reason, ran)),
        Err(ProverError::Retry(reason)) => return Err(retryable(reason, ran)),
        Err(ProverError::Machine(failure)) => return Err(failure.into()),
    };
    let produced = output
        .into_payloads()
        .map_err(|why| permanent(format!("the result cannot be encoded: {why}"), ran))?;
    match produced {
        Produced::Many(outputs) => Ok(Product {
            outputs,
            fan_out: true,
            ran,
        }),
        Produced::One(Encoding::Json, bytes) if fan_out => {
            let outputs = split_array(&bytes).map_err(|why| permanent(why, ran))?;
            Ok(Product {
                outputs,
                fan_out: true,
                ran,
            })
        }
        Produced::One(encoding, bytes) => Ok(Product {
            outputs: vec![(encoding, bytes)],
            fan_out: false,
            ran,
        }),
    }
}

/// The elements of a JSON array, each with its original text.
pub(crate) fn split_array(json: &[u8]) -> Result<Vec<(Encoding, Bytes)>, String> {
    let elements: Vec<&serde_json::value::RawValue> = serde_json::from_slice(json)
        .map_err(|error| format!("fan_out needs a JSON array as output: {error}"))?;
    Ok(elements
        .into_iter()
        .map(|element| {
            (
                Encoding::Json,
                Bytes::copy_from_slice(element.get().as_bytes()),
            )
        })
        .collect())
}

fn permanent(reason: String, ran: Duration) -> Unfinished {
    Failure::permanent(reason).after(ran).into()
}

fn retryable(reason: String, ran: Duration) -> Unfinished {
    Failure::retryable(reason).after(ran).into()
}

impl<P: Prover> Executor for Native<P> {
    fn prepare(&self) -> BoxFuture<'_, ()> {
        let is_prepared = self.is_prepared.swap(true, Ordering::Relaxed);
        let prover = (!is_prepared).then(|| self.prover.clone());
        Box::pin(async move {
            if let Some(prover) = prover {
                in_background(move || prover.prepare()).await;
            }
        })
    }

    fn execute(&self, batch: Vec<Execution>) -> BoxFuture<'_, Vec<Result<Product, Unfinished>>> {
        let count = batch.len();
        let prover = self.prover.clone();
        let fan_out = self.fan_out;
        let time_limit = self.time_limit;
        Box::pin(async move {
            let all = |reason: String, ran: Duration| vec![Err(retryable(reason, ran)); count];
            // The thread does not inherit the span of the log lines.
            let log = tracing::Span::current();
            let work = move || log.in_scope(|| Self::run(&prover, fan_out, batch));
            let work = tokio::task::spawn_blocking(work);
            let finished = match time_limit {
                None => work.await,
                Some(limit) => match tokio::time::timeout(limit, work).await {
                    Ok(finished) => finished,
                    Err(_) => return all(format!("no result within {limit:?}"), limit),
                },
            };
            finished.unwrap_or_else(|error| {
                all(
                    format!("the prover's thread ended: {error}"),
                    Duration::ZERO,
                )
            })
        })
    }
}

/// Runs a preparation on a blocking thread. Whatever it panics at, a task meets again.
pub(crate) async fn in_background(prepare: impl FnOnce() + Send + 'static) {
    let log = tracing::Span::current();
    let work = move || {
        let prepared = log.in_scope(|| proofmill_panics::catch(prepare));
        if let Err(panic) = prepared {
            tracing::warn!(%panic, "what the first task needs could not be loaded in advance");
        }
    };
    // Its thread ends early only with the runtime.
    let _ = tokio::task::spawn_blocking(work).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Part;
    use crate::payload::Payload;
    use crate::record::TaskRecord;
    use proofmill_process::MissingResource;

    struct Halve;

    impl Prover for Halve {
        type Input = Json<u64>;
        type Output = Json<Vec<u64>>;

        fn prove(&self, _: &Context, Json(n): Json<u64>) -> Result<Json<Vec<u64>>, ProverError> {
            match n {
                7 => panic!("seven"),
                9 => Err(ProverError::Retry("nine".into())),
                11 => {
                    let full = std::io::Error::from(rustix::io::Errno::NOSPC);
                    let failure = MachineFailure::of("write a trace", &full).expect("a full disk");
                    Err(ProverError::Machine(failure))
                }
                n if n % 2 == 1 => Err(ProverError::Permanent("odd".into())),
                n => Ok(Json(vec![n / 2, n / 2])),
            }
        }
    }

    fn execution(json: &'static str) -> Execution {
        let payload = Payload::json(json.as_bytes());
        let task = TaskRecord {
            id: TaskId {
                stage: "halve".into(),
                block: 1,
                part: Part::whole(),
            },
            queue: "in".into(),
            last: 1,
            group: None,
            needs: None,
            origins: crate::origin::submitted(1, 1, &payload),
            payload,
            at_ms: 0,
            trace: crate::traces::TaskTrace::default(),
        };
        let input = Resolved::One(Encoding::Json, Bytes::from_static(json.as_bytes()));
        Execution {
            task: Arc::new(task),
            attempt: 1,
            input,
            trace: None,
            cancel: CancellationToken::new(),
        }
    }

    #[tokio::test]
    async fn results_failures_panics_and_bad_payloads_are_told_apart() {
        let native = Native::new(Arc::new(Halve), true, None);
        let mut results = Vec::new();
        for json in ["8", "9", "3", "7", "\"x\""] {
            results.extend(native.execute(vec![execution(json)]).await);
        }
        let product = results[0].as_ref().expect("8 halves");
        assert!(product.fan_out);
        assert_eq!(product.outputs.len(), 2);
        let failures: Vec<(bool, &str)> = results[1..]
            .iter()
            .map(|result| match result {
                Err(Unfinished::Failed(failure)) => (failure.permanent, failure.reason.as_str()),
                other => panic!("no attempt that failed: {other:?}"),
            })
            .collect();
        assert_eq!(failures[..2], [(false, "nine"), (true, "odd")]);
        assert_eq!(failures[2], (false, "the prover panicked: seven"));
        assert!(failures[3].0 && failures[3].1.starts_with("the payload cannot be read"));
    }

    #[tokio::test]
    async fn a_provers_full_disk_is_no_attempt() {
        let native = Native::new(Arc::new(Halve), false, None);
        let results = native.execute(vec![execution("11"), execution("9")]).await;
        let Err(Unfinished::Machine(failure)) = &results[0] else {
            panic!("{results:?}");
        };
        assert_eq!(failure.missing, MissingResource::DiskSpace);
        assert!(matches!(&results[1], Err(Unfinished::Failed(_))));
    }

    #[tokio::test]
    async fn a_batch_with_one_bad_payload_still_proves_the_others() {
        let native = Native::new(Arc::new(Halve), false, None);
        let batch = vec![execution("8"), execution("null"), execution("4")];
        let results = native.execute(batch).await;
        let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
        assert_eq!(ok, [true, false, true]);
    }
}
