//! Temporary refusals, which say when to try again.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The header that tells gRPC clients the wait before the next try, in milliseconds.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// RESOURCE_EXHAUSTED, with the suggestion to try again after `wait`.
pub(crate) fn try_again(text: impl Into<String>, wait: Duration) -> Status {
    retryable_status(Code::ResourceExhausted, text, wait)
}

/// A temporary refusal with `code` and the suggestion to try again after `wait`.
pub(crate) fn retryable_status(code: Code, text: impl Into<String>, wait: Duration) -> Status {
    let details = ErrorDetails::with_retry_info(Some(wait));
    let mut status = Status::with_error_details(code, text, details);
    // A decimal number is always a valid header value.
    if let Ok(milliseconds) = wait.as_millis().to_string().parse() {
        status.metadata_mut().insert(PUSHBACK, milliseconds);
    }
    status
}

/// The wait that a status suggests; none if it suggests none.
pub(crate) fn retry_after(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
}
