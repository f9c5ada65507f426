//! Conversion of the engine's errors into gRPC statuses.

use proofmill_engine::Error;
use tonic::{Code, Status};

use crate::grpc::try_again;

/// The status of an engine's error.
pub(crate) fn status_of_error(error: Error) -> Status {
    let text = error.to_string();
    let code = match error {
        Error::Exhausted { retry_after, .. } => return try_again(text, retry_after),
        Error::Invalid(_) | Error::Name(_) | Error::TooLarge { .. } => Code::InvalidArgument,
        Error::UnknownCircuit { .. } | Error::UnknownGenerator { .. } | Error::UnknownJob(_) => {
            Code::NotFound
        }
        Error::Conflict { .. } | Error::NameTaken { .. } => Code::AlreadyExists,
        Error::Impossible { .. } | Error::InUse(..) | Error::Circuit(_) => Code::FailedPrecondition,
        Error::Draining | Error::Stopped => Code::Unavailable,
        _ => Code::Internal,
    };
    Status::new(code, text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proofmill_engine::Resource;

    use super::*;
    use crate::grpc::retry_after;

    #[test]
    fn an_exhausted_resource_suggests_a_wait() {
        let status = status_of_error(Error::Exhausted {
            resource: Resource::ClientJobs,
            used: 7,
            limit: 7,
            retry_after: Duration::from_millis(1500),
        });
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(retry_after(&status), Some(Duration::from_millis(1500)));
        assert_eq!(
            status.metadata().get("grpc-retry-pushback-ms").unwrap(),
            "1500"
        );
        assert!(status.message().contains("7 of 7"), "{status}");
    }

    #[test]
    fn a_job_that_never_fits_suggests_no_wait() {
        let status = status_of_error(Error::Impossible {
            what: "a partition".to_owned(),
            needed: 2,
            total: 1,
            pinned: 0,
        });
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(retry_after(&status), None);
    }
}
