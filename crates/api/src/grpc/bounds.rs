//! Limits on every call, applied after the gate has admitted or not admitted it: the number of calls, the caller's
//! timeout and the size of messages.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::{Request, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use tonic::body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::frames::CheckedMessages;
use super::retry::try_again;
use super::timeout::timeout_of_call;
use crate::body_timeout::Pressure;
use crate::connections::AdmittedCall;

/// Most calls at once on one listener, including waiting ones and streams.
const CALLS_MAX: usize = 1024;
/// Most calls without a token at once on one listener; these are health checks.
const HEALTH_CHECKS_MAX: usize = 64;
/// Longest time of one health check.
const HEALTH_CHECK_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest time of a message from its first byte to its last.
const MESSAGE_TIME_MAX: Duration = Duration::from_secs(60);
/// Suggested wait for a caller that is refused since too many calls are under way.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// Time before the caller's own timeout at which an answer is sent.
const ANSWER_MARGIN: Duration = Duration::from_millis(20);

/// The bounds of one listener. Each listener has its own, so that a caller who exhausts one leaves the
/// others usable.
#[derive(Clone)]
pub(crate) struct Bounds {
    calls: Arc<Semaphore>,
    health_checks: Arc<Semaphore>,
    /// Memory for large messages: one permit for each KiB.
    room: Arc<Semaphore>,
    pressure: Pressure,
    /// The size limit of messages for a call's path.
    limit: fn(&str) -> MessageLimit,
    message_time_max: Duration,
}

/// The size limit of a call's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageLimit {
    /// Most bytes of a message.
    pub(crate) bytes: usize,
    /// Advice on larger messages, which is appended to the refusal: empty, or `, and …`.
    pub(crate) beyond: &'static str,
}

/// A service within [`Bounds`].
#[derive(Clone)]
pub(crate) struct Bounded<S> {
    inner: S,
    bounds: Bounds,
}

/// A response body that counts as a call until it ends.
struct CountedBody {
    body: Body,
    _call: OwnedSemaphorePermit,
    _admitted: AdmittedCall,
}

// === impl Bounds ===

impl Bounds {
    /// `limit` returns the size limit of messages for a call's path. `room` has a permit for each KiB of
    /// large messages that are read at once.
    pub(crate) fn new(
        limit: fn(&str) -> MessageLimit,
        room: Arc<Semaphore>,
        pressure: Pressure,
    ) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            health_checks: Arc::new(Semaphore::new(HEALTH_CHECKS_MAX)),
            room,
            pressure,
            limit,
            message_time_max: MESSAGE_TIME_MAX,
        }
    }

    /// The request with a body that checks its messages as they come.
    fn with_checked_messages(&self, request: Request<Body>) -> Request<Body> {
        let limit = (self.limit)(request.uri().path());
        let (room, pressure) = (self.room.clone(), self.pressure.clone());
        request
            .map(|body| CheckedMessages::new(body, limit, self.message_time_max, room, pressure))
            .map(Body::new)
    }
}

impl<S> Layer<S> for Bounds {
    type Service = Bounded<S>;

    fn layer(&self, inner: S) -> Bounded<S> {
        Bounded {
            inner,
            bounds: self.clone(),
        }
    }
}

// === impl Bounded ===

impl<S> Service<Request<Body>> for Bounded<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let timeout = match timeout_of_call(request.headers()) {
            Ok(timeout) => timeout.map(|timeout| timeout - ANSWER_MARGIN.min(timeout / 4)),
            Err(malformed) => return refused(malformed),
        };
        // Callers without a token have permits of their own.
        let (admitted, permits, timeout) = match request.extensions_mut().remove::<AdmittedCall>() {
            Some(admitted) => (Some(admitted), &self.bounds.calls, timeout),
            None => {
                let timeout =
                    timeout.map_or(HEALTH_CHECK_TIME_MAX, |it| it.min(HEALTH_CHECK_TIME_MAX));
                (None, &self.bounds.health_checks, Some(timeout))
            }
        };
        let Ok(call) = permits.clone().try_acquire_owned() else {
            if admitted.is_some() {
                self.bounds.pressure.refused();
            }
            return refused(try_again("too many calls are under way", RETRY_WAIT));
        };
        let request = self.bounds.with_checked_messages(request);
        // The service that was polled for readiness must be used, not its clone.
        let next = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, next);
        Box::pin(async move {
            let answer = ready.call(request);
            let answer = match timeout {
                None => answer.await,
                Some(timeout) => tokio::time::timeout(timeout, answer)
                    .await
                    .unwrap_or_else(|_| {
                        Ok(Status::deadline_exceeded("the call's own timeout passed").into_http())
                    }),
            }?;
            let Some(admitted) = admitted else {
                // The permit is released: the answer to a health check is short, and its reader may never take it.
                return Ok(answer);
            };
            Ok(answer.map(|body| {
                Body::new(CountedBody {
                    body,
                    _call: call,
                    _admitted: admitted,
                })
            }))
        })
    }
}

fn refused<E>(status: Status) -> Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>
where
    E: 'static,
{
    Box::pin(async move { Ok(status.into_http()) })
}

// === impl CountedBody ===

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
