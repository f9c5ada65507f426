//! Conversion of requests into the engine's types.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proofmill_engine::{
    CircuitRef, CircuitSource, Input, JobId, Partition, Priority, Registration, RequestId,
    Submission, Tier, Upload, check_name,
};
use tonic::Status;

use crate::engine::proto;
use crate::engine::proto::partition::Input as InputMessage;
use crate::engine::proto::register_request::Source;
use crate::grpc::TIMEOUT_MAX;

/// Client of a request that names no client.
pub(crate) const DEFAULT_CLIENT: &str = "default";

/// A submission whose streamed witnesses are not yet received.
#[derive(Debug)]
pub(crate) struct PendingSubmission {
    request: RequestId,
    priority: Priority,
    deadline: Option<SystemTime>,
    partitions: Vec<(CircuitRef, Witness)>,
}

#[derive(Debug)]
enum Witness {
    /// A witness, or the inputs of its generator, in the request.
    Inline(Input),
    /// A streamed witness of this many bytes.
    Streamed(u64),
}

/// Converts a request by `caller`, the client of the call's token, if it has one.
///
/// # Errors
///
/// A message that says what is malformed and what is expected, or that the request names another client.
pub(crate) fn submission(
    request: proto::SubmitRequest,
    caller: Option<&str>,
) -> Result<PendingSubmission, Status> {
    let proto::SubmitRequest {
        client,
        request_id,
        priority,
        deadline_ms,
        partitions,
    } = request;
    let client = match (client.is_empty(), caller) {
        (true, None) => DEFAULT_CLIENT.to_owned(),
        (true, Some(caller)) => caller.to_owned(),
        (false, Some(caller)) if client != caller => {
            return Err(Status::permission_denied(format!(
                "the token is of client {caller:?}: leave `client` empty, or use that name"
            )));
        }
        (false, _) => client,
    };
    let priority = match proto::Priority::try_from(priority) {
        Ok(proto::Priority::Unspecified | proto::Priority::Normal) => Priority::Normal,
        Ok(proto::Priority::Low) => Priority::Low,
        Ok(proto::Priority::High) => Priority::High,
        Ok(proto::Priority::Critical) => Priority::Critical,
        Err(_) => {
            return Err(invalid(format!(
                "priority: {priority} is not between 0 and 4"
            )));
        }
    };
    let deadline = deadline_ms.map(|at| {
        let at = UNIX_EPOCH + Duration::from_millis(at);
        let far = at > SystemTime::now() + TIMEOUT_MAX;
        let refused = || invalid("deadline_ms: more than a hundred years from now");
        if far { Err(refused()) } else { Ok(at) }
    });
    let partitions = partitions.into_iter().enumerate().map(|(index, it)| {
        let at_partition = |why: String| invalid(format!("partitions[{index}].{why}"));
        let circuit = it.circuit.parse();
        let circuit = circuit.map_err(|error| at_partition(format!("circuit: {error}")))?;
        let witness = match it.input {
            Some(InputMessage::Wtns(bytes)) => Witness::Inline(Input::Wtns(bytes.into())),
            Some(InputMessage::Vector(bytes)) => Witness::Inline(Input::Vector(bytes.into())),
            Some(InputMessage::Inputs(inputs)) => Witness::Inline(Input::Inputs {
                generator: inputs.generator,
                json: inputs.json.into(),
            }),
            Some(InputMessage::Streamed(streamed)) => Witness::Streamed(streamed.bytes),
            None => {
                return Err(at_partition(
                    "input: missing; a witness or what makes one".into(),
                ));
            }
        };
        Ok((circuit, witness))
    });
    Ok(PendingSubmission {
        request: RequestId::new(client, request_id).map_err(invalid)?,
        priority,
        deadline: deadline.transpose()?,
        partitions: partitions.collect::<Result<_, _>>()?,
    })
}

/// A job's id.
///
/// # Errors
///
/// The text is not a job's id.
pub(crate) fn job_id(text: &str) -> Result<JobId, Status> {
    text.parse()
        .map_err(|error| invalid(format!("job: {error}")))
}

/// A circuit's name or id.
///
/// # Errors
///
/// The text can be neither a name nor an id.
pub(crate) fn circuit_ref(text: &str) -> Result<CircuitRef, Status> {
    text.parse()
        .map_err(|error| invalid(format!("circuit: {error}")))
}

/// The tier to bring a key to.
///
/// # Errors
///
/// There is no tier of that number.
pub(crate) fn preload_tier(tier: i32) -> Result<Tier, Status> {
    match proto::Tier::try_from(tier) {
        Ok(proto::Tier::Unspecified | proto::Tier::Hot) => Ok(Tier::Hot),
        Ok(proto::Tier::Warm) => Ok(Tier::Warm),
        Ok(proto::Tier::Cold) => Ok(Tier::Cold),
        Err(_) => Err(invalid(format!("tier: {tier} is not between 0 and 3"))),
    }
}

/// The circuit to register.
///
/// # Errors
///
/// A message that says what is missing or malformed.
pub(crate) fn registration(request: proto::RegisterRequest) -> Result<Registration, Status> {
    check_name(&request.name).map_err(|error| invalid(format!("name: {error}")))?;
    let path = |field: &str, text: String| {
        let path = PathBuf::from(text);
        if path.is_absolute() {
            Ok(path)
        } else {
            Err(invalid(format!(
                "{field}: not an absolute path; the engine's working directory is not the caller's"
            )))
        }
    };
    let source = match request.source {
        Some(Source::Zkey(zkey)) => CircuitSource::Zkey(path("zkey", zkey)?),
        Some(Source::System(files)) => CircuitSource::System {
            constraints: path("system.constraints", files.constraints)?,
            key: path("system.key", files.key)?,
        },
        None => {
            return Err(invalid(
                "source: missing; a .zkey, or constraints and a key",
            ));
        }
    };
    Ok(Registration {
        name: request.name,
        source,
    })
}

fn invalid(text: impl Into<String>) -> Status {
    Status::invalid_argument(text)
}

// === impl PendingSubmission ===

impl PendingSubmission {
    /// Sets the deadline to `at`, unless the submission has an earlier one.
    pub(crate) fn limit_deadline(&mut self, at: SystemTime) {
        self.deadline = Some(self.deadline.map_or(at, |deadline| deadline.min(at)));
    }

    /// The size in bytes of each streamed witness, in order.
    pub(crate) fn streamed_sizes(&self) -> impl Iterator<Item = u64> {
        self.partitions.iter().filter_map(|(_, it)| match it {
            Witness::Streamed(bytes) => Some(*bytes),
            Witness::Inline(_) => None,
        })
    }

    /// The submission with its uploaded witnesses, in the order of [`streamed_sizes`](Self::streamed_sizes).
    ///
    /// # Errors
    ///
    /// A witness is missing, since the request did not come by a stream.
    pub(crate) fn complete(
        self,
        uploads: impl IntoIterator<Item = Upload>,
    ) -> Result<Submission, Status> {
        let mut uploads = uploads.into_iter();
        let mut complete = |(index, (circuit, witness))| {
            let input = match witness {
                Witness::Inline(input) => input,
                Witness::Streamed(_) => Input::Uploaded(uploads.next().ok_or_else(|| {
                    invalid(format!(
                        "partitions[{index}].input: a streamed witness; call SubmitStream"
                    ))
                })?),
            };
            Ok(Partition { circuit, input })
        };
        let partitions = self.partitions.into_iter().enumerate();
        Ok(Submission {
            request: self.request,
            priority: self.priority,
            deadline: self.deadline,
            partitions: partitions
                .map(&mut complete)
                .collect::<Result<_, Status>>()?,
            trace: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> proto::SubmitRequest {
        proto::SubmitRequest {
            client: String::new(),
            request_id: "1".to_owned(),
            priority: 0,
            deadline_ms: None,
            partitions: vec![proto::Partition {
                circuit: "multiplier".to_owned(),
                input: Some(InputMessage::Vector(vec![1; 32])),
            }],
        }
    }

    #[test]
    fn a_request_may_not_name_another_client_than_its_token() {
        let pending = submission(request(), Some("rollup")).unwrap();
        assert_eq!(pending.request.client(), "rollup");
        let anyone = submission(request(), None).unwrap();
        assert_eq!(anyone.request.client(), DEFAULT_CLIENT);
        let posing = proto::SubmitRequest {
            client: "other".to_owned(),
            ..request()
        };
        let refused = submission(posing, Some("rollup")).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    }

    #[test]
    fn malformed_fields_are_named() {
        type Change = fn(&mut proto::SubmitRequest);
        let with = |change: Change| {
            let mut request = request();
            change(&mut request);
            submission(request, None).unwrap_err()
        };
        let cases: [(Change, &str); 5] = [
            (|it| it.priority = 9, "priority: 9"),
            (
                |it| it.partitions[0].circuit = "../x".to_owned(),
                "partitions[0].circuit",
            ),
            (|it| it.partitions[0].input = None, "partitions[0].input"),
            (|it| it.request_id.clear(), "request id"),
            (|it| it.deadline_ms = Some(u64::MAX), "deadline_ms"),
        ];
        for (change, named) in cases {
            let refused = with(change);
            assert_eq!(refused.code(), tonic::Code::InvalidArgument);
            assert!(refused.message().contains(named), "{refused}");
        }
    }

    #[test]
    fn the_earlier_deadline_counts() {
        let soon = UNIX_EPOCH + Duration::from_secs(1);
        let late = UNIX_EPOCH + Duration::from_secs(2);
        let mut pending = submission(request(), None).unwrap();
        pending.limit_deadline(late);
        pending.limit_deadline(soon);
        pending.limit_deadline(late);
        assert_eq!(pending.deadline, Some(soon));
    }

    #[test]
    fn debugging_shows_no_witness() {
        let shown = format!("{:?}", request());
        assert!(shown.contains("Vector of 32 bytes"), "{shown}");
        let pending = submission(request(), None).unwrap();
        assert!(format!("{pending:?}").contains("Secret of 32 bytes"));
    }
}
