//! What a caller is told when the engine refuses.

use std::time::Duration;

use proofmill_engine::Error;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The header by which gRPC's own clients are told when to try again, in milliseconds.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// The status of an error of the engine.
pub(crate) fn of(error: Error) -> Status {
    let text = error.to_string();
    let code = match error {
        Error::Exhausted { retry_after, .. } => return try_again(text, retry_after),
        Error::Invalid(_) | Error::Name(_) | Error::TooLarge { .. } => Code::InvalidArgument,
        Error::UnknownCircuit(_) | Error::UnknownGenerator(_) | Error::UnknownJob(_) => {
            Code::NotFound
        }
        Error::Conflict { .. } | Error::NameTaken { .. } => Code::AlreadyExists,
        Error::Impossible { .. } | Error::InUse(..) | Error::Circuit(_) => Code::FailedPrecondition,
        Error::Draining | Error::Stopped => Code::Unavailable,
        _ => Code::Internal,
    };
    Status::new(code, text)
}

/// There is no room now; there will be after `wait`.
pub(crate) fn try_again(text: impl Into<String>, wait: Duration) -> Status {
    let details = ErrorDetails::with_retry_info(Some(wait));
    let mut status = Status::with_error_details(Code::ResourceExhausted, text, details);
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

#[cfg(test)]
mod tests {
    use proofmill_engine::Resource;

    use super::*;

    #[test]
    fn who_is_over_quota_is_told_when_to_come_back() {
        let status = of(Error::Exhausted {
            resource: Resource::ClientJobs,
            used: 7,
            limit: 7,
            retry_after: Duration::from_millis(1500),
        });
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(retry_after(&status), Some(Duration::from_millis(1500)));
        assert_eq!(status.metadata().get(PUSHBACK).unwrap(), "1500");
        assert!(status.message().contains("7 of 7"), "{status}");
    }

    #[test]
    fn what_never_fits_is_not_to_be_tried_again() {
        let status = of(Error::Impossible {
            what: "a partition".to_owned(),
            needed: 2,
            total: 1,
            pinned: 0,
        });
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(retry_after(&status), None);
    }
}
