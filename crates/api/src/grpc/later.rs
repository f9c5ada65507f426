//! Refusals that hold for now only.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The header by which gRPC's own clients are told when to try again, in milliseconds.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// There is no room now; there will be after `wait`.
pub(crate) fn try_again(text: impl Into<String>, wait: Duration) -> Status {
    try_again_as(Code::ResourceExhausted, text, wait)
}

/// Not now, for a reason of another kind.
pub(crate) fn try_again_as(code: Code, text: impl Into<String>, wait: Duration) -> Status {
    let details = ErrorDetails::with_retry_info(Some(wait));
    let mut status = Status::with_error_details(code, text, details);
    // A number is ASCII.
    if let Ok(milliseconds) = wait.as_millis().to_string().parse() {
        status.metadata_mut().insert(PUSHBACK, milliseconds);
    }
    status
}

/// When a status says to try again.
pub(crate) fn retry_after(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
}
