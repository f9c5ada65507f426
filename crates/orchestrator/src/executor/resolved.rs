//! Payloads with the content of their blobs.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::{BlobError, BlobStore, Digest, Held};
use serde_json::value::RawValue;

use crate::payload::{Encoding, INLINE_LIMIT, Payload};

/// A payload whose blobs have been fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// One message's bytes.
    One(Encoding, Bytes),
    /// A collector's group; see [`Payload::Group`].
    Group {
        /// Whether a program gets an object of arrays by queue, instead of one array.
        by_queue: bool,
        /// Each member with the queue it came from.
        members: Vec<(Arc<str>, Resolved)>,
    },
}

/// The reason why a payload cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The blob store failed.
    #[error("cannot fetch blob {digest}")]
    Blob {
        /// The blob's digest.
        digest: String,
        /// The error of the store.
        #[source]
        source: BlobError,
    },
}

/// Limit in bytes up to which payloads of messages for a collector are inline, so that a group of
/// them still fits one record of the log.
const COLLECTED_INLINE_LIMIT: usize = 16 * 1024;

// === impl Resolved ===

impl Resolved {
    /// Fetches the blobs that `payload` refers to.
    pub fn fetch<'a>(
        payload: &'a Payload,
        blobs: &'a BlobStore,
    ) -> BoxFuture<'a, Result<Self, ResolveError>> {
        Box::pin(async move {
            match payload {
                Payload::Inline { encoding, bytes } => Ok(Self::One(*encoding, bytes.clone())),
                Payload::Blob {
                    encoding, digest, ..
                } => {
                    let digest = Digest::from(*digest);
                    let bytes = blobs
                        .get(&digest)
                        .await
                        .map_err(|source| ResolveError::Blob {
                            digest: digest.to_string(),
                            source,
                        })?;
                    Ok(Self::One(*encoding, bytes))
                }
                Payload::Group { by_queue, members } => {
                    let mut resolved = Vec::with_capacity(members.len());
                    for (queue, member) in members {
                        resolved.push((queue.clone(), Self::fetch(member, blobs).await?));
                    }
                    Ok(Self::Group {
                        by_queue: *by_queue,
                        members: resolved,
                    })
                }
            }
        })
    }

    /// Stores a message's bytes: inline if they are few, else as a blob, which is durable when this
    /// returns. `collected` is whether a collector reads them. The blob is held until the returned
    /// guard is dropped, which the caller does once the coordinator has the payload.
    pub async fn store(
        encoding: Encoding,
        bytes: Bytes,
        collected: bool,
        blobs: &BlobStore,
    ) -> Result<(Payload, Option<Held>), BlobError> {
        let limit = if collected {
            COLLECTED_INLINE_LIMIT
        } else {
            INLINE_LIMIT
        };
        if bytes.len() <= limit {
            return Ok((Payload::Inline { encoding, bytes }, None));
        }
        let len = bytes.len() as u64;
        let (digest, held) = blobs.put_held(bytes).await?;
        let payload = Payload::Blob {
            encoding,
            digest: *digest.as_bytes(),
            len,
        };
        Ok((payload, Some(held)))
    }

    /// The input of a program: the bytes of one message unchanged; for a group, a JSON array, or an
    /// object of arrays by queue. Fails, naming the member, if a member of a group is not exactly
    /// one JSON value. The label of a member is not trusted: `1,2` inside an array would count as
    /// two members.
    pub fn to_program_input(&self) -> Result<Bytes, String> {
        match self {
            Self::One(_, bytes) => Ok(bytes.clone()),
            Self::Group { .. } => {
                let mut json = Vec::new();
                self.write_json(&mut json)?;
                Ok(json.into())
            }
        }
    }

    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::One(Encoding::Json, bytes) => {
                let value: &RawValue = serde_json::from_slice(bytes).map_err(|error| {
                    format!("it is labelled JSON and is not one JSON value: {error}")
                })?;
                out.extend_from_slice(value.get().as_bytes());
            }
            Self::One(Encoding::Binary, _) => {
                return Err(
                    "it is binary, which only a native prover can read: use one, or make the stage \
                     before write JSON"
                        .to_owned(),
                );
            }
            Self::Group {
                by_queue: false,
                members,
            } => write_array(members.iter(), out)?,
            Self::Group {
                by_queue: true,
                members,
            } => {
                let mut queues: Vec<&Arc<str>> = members.iter().map(|(queue, _)| queue).collect();
                queues.sort_unstable();
                queues.dedup();
                out.push(b'{');
                for (index, queue) in queues.into_iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    let name = serde_json::to_vec(&**queue).map_err(|error| error.to_string())?;
                    out.extend_from_slice(&name);
                    out.push(b':');
                    write_array(members.iter().filter(|(name, _)| name == queue), out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }
}

fn write_array<'a>(
    members: impl Iterator<Item = &'a (Arc<str>, Resolved)>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    out.push(b'[');
    for (index, (queue, member)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        member
            .write_json(out)
            .map_err(|why| format!("member {index} of the group, from queue {queue:?}: {why}"))?;
    }
    out.push(b']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &'static str) -> Resolved {
        Resolved::One(Encoding::Json, Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn groups_become_arrays_or_objects_by_queue() {
        let members = vec![
            ("b".into(), json("1")),
            ("a".into(), json("{\"x\":2}")),
            ("b".into(), json("3")),
        ];
        let array = Resolved::Group {
            by_queue: false,
            members: members.clone(),
        };
        assert_eq!(array.to_program_input().expect("json"), "[1,{\"x\":2},3]");
        let object = Resolved::Group {
            by_queue: true,
            members,
        };
        assert_eq!(
            object.to_program_input().expect("json"),
            "{\"a\":[{\"x\":2}],\"b\":[1,3]}"
        );
    }

    #[test]
    fn a_member_that_is_labelled_json_and_is_not_one_value_adds_no_members() {
        let group = |by_queue, member| Resolved::Group {
            by_queue,
            members: vec![("a".into(), json("0")), ("b".into(), json(member))],
        };
        for lie in [
            "1,2",
            "",
            "1]",
            "1],\"c\":[2",
            "{\"x\":1",
            "1 2",
            "nul",
            "\"\n\"",
        ] {
            for by_queue in [false, true] {
                let refused = group(by_queue, lie).to_program_input().expect_err(lie);
                assert!(refused.contains("from queue \"b\""), "{refused}");
                assert!(refused.contains("not one JSON value"), "{refused}");
            }
        }
        let invalid = Resolved::One(Encoding::Json, Bytes::from_static(b"\"\xff\""));
        let members = vec![("a".into(), invalid)];
        let group_of_it = Resolved::Group {
            by_queue: false,
            members,
        };
        assert!(group_of_it.to_program_input().is_err());
        // White space around a value is not part of it.
        let spaced = group(false, " 1 \n").to_program_input().expect("json");
        assert_eq!(spaced, "[0,1]");
    }

    #[test]
    fn binary_members_are_refused_for_programs() {
        let binary = Resolved::One(Encoding::Binary, Bytes::from_static(b"\x00"));
        let group = Resolved::Group {
            by_queue: false,
            members: vec![("a".into(), binary)],
        };
        assert!(group.to_program_input().is_err());
    }
}
