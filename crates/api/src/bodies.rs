//! Request bodies, for which memory is reserved before they are read.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::body_timeout::{BodyTimedOut, BodyTimeout, Pressure, TimedBody};
use crate::refused::Refused;

/// Longest time that a request's body may take. The limit is shorter while other requests wait.
const BODY_TIME_MAX: Duration = Duration::from_secs(60);

/// Memory for request bodies on one listener.
pub(crate) struct BodyMemory {
    /// One permit for each KiB.
    pub(crate) room: Arc<Semaphore>,
    /// Signalled while a request waits for room.
    pub(crate) pressure: Pressure,
    /// Most bytes of a body.
    limit: usize,
    /// Longest wait of a request for room.
    wait_max: Duration,
}

/// A share of [`BodyMemory`], given back when the last clone is dropped.
pub(crate) type Room = Arc<OwnedSemaphorePermit>;

// === impl BodyMemory ===

impl BodyMemory {
    /// Memory for `at_once` bodies of the largest size, `limit` bytes each.
    pub(crate) fn new(
        limit: usize,
        at_once: usize,
        wait_max: Duration,
        pressure: Pressure,
    ) -> Self {
        Self {
            room: Arc::new(Semaphore::new(at_once * limit / 1024)),
            pressure,
            limit,
            wait_max,
        }
    }

    /// Waits for memory for a request of `bytes` bytes, at most the limit of a body.
    pub(crate) async fn room(&self, bytes: usize) -> Result<Room, Refused> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        if let Ok(room) = self.room.clone().try_acquire_many_owned(kib) {
            return Ok(Arc::new(room));
        }
        // Signals pressure, so that requests that hold room but send nothing lose it sooner.
        let _waiting = self.pressure.wait();
        let room = self.room.clone().acquire_many_owned(kib);
        match timeout(self.wait_max, room).await {
            Ok(Ok(room)) => Ok(Arc::new(room)),
            _ => Err(Refused::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many large requests at a time; sending the same request again is safe",
            )),
        }
    }

    /// Reserves room for a request's body, and reads it.
    pub(crate) async fn read(&self, request: Request) -> Result<(Room, Bytes), Refused> {
        let too_large = || {
            let why = format!("a request has at most {} bytes", self.limit);
            Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why)
        };
        let length = match request.body().size_hint().upper() {
            Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
            None => self.limit,
        };
        if length > self.limit {
            return Err(too_large());
        }
        let room = self.room(length).await?;
        let body_timeout = BodyTimeout::new(BODY_TIME_MAX, self.pressure.clone());
        let body = TimedBody::new(request.into_body(), body_timeout);
        match Limited::new(body, length).collect().await {
            Ok(body) => Ok((room, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
            Err(error) if error.is::<BodyTimedOut>() => Err(Refused::new(
                StatusCode::REQUEST_TIMEOUT,
                format!(
                    "the body did not arrive within {} s, or arrived too slowly while others \
                     waited",
                    BODY_TIME_MAX.as_secs()
                ),
            )),
            Err(error) => Err(Refused::new(StatusCode::BAD_REQUEST, error.to_string())),
        }
    }
}

/// Whether a body has the media type `name`; parameters are ignored. A page in a browser can send the types of forms
/// only: for any other type the browser first sends a preflight request, which is refused.
pub(crate) fn is_of_type(headers: &HeaderMap, name: &str) -> bool {
    let value = headers.get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok());
    let essence = value.map(|value| value.split(';').next().unwrap_or_default().trim());
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case(name))
}
