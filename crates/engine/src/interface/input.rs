//! The content of a job: circuits and inputs.

use std::fmt;
use std::time::SystemTime;

use proofmill_trace::TraceContext;
use zeroize::Zeroizing;

use super::{CircuitRef, Priority, RequestId};
use crate::Upload;

/// Secret bytes: erased when dropped, and `Debug` prints only their number.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Source of a partition's witness. Except for an upload, the bytes are in the caller's memory until they
/// are on disk, and are not counted in the budget: upload large witnesses instead.
#[derive(Debug)]
pub enum Input {
    /// A whole witness, as the content of a `.wtns` file.
    Wtns(Secret),
    /// A whole witness, as a vector: the value of each variable, the leading one first, as 32 little-endian
    /// bytes below the field's prime.
    Vector(Secret),
    /// A whole witness that was streamed: see [`Handle::upload`](crate::Handle::upload). It is the content
    /// of a `.wtns` file if it begins with that format's magic bytes, and a vector otherwise.
    Uploaded(Upload),
    /// The circuit's inputs as JSON, for a witness generator.
    Inputs {
        /// The name of a generator in [`Options::generators`](crate::Options::generators).
        generator: String,
        /// The JSON that the generator gets.
        json: Secret,
    },
}

/// One proof to make.
#[derive(Debug)]
pub struct Partition {
    /// The circuit.
    pub circuit: CircuitRef,
    /// The witness of the partition, or the inputs from which the witness is generated.
    pub input: Input,
}

/// A job: one or more proofs, delivered together.
#[derive(Debug)]
pub struct Submission {
    /// The client and its request id. The same id with the same content is the same job; with other content
    /// it is refused.
    pub request: RequestId,
    /// Priority of all its partitions.
    pub priority: Priority,
    /// Time at which the job expires if it has not ended; none if it never does.
    pub deadline: Option<SystemTime>,
    /// The proofs to make, at least one. The result has them in this order.
    pub partitions: Vec<Partition>,
    /// Context of the caller's span, which spans of its stages join and witness generators get; not part of
    /// the job's identity, and not stored with it.
    pub trace: Option<TraceContext>,
}

// === impl Secret ===

impl Secret {
    /// Wraps bytes. The caller should keep no other copy.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl std::ops::Deref for Secret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret of {} bytes", self.0.len())
    }
}
