//! What a job is made of.

use std::fmt;
use std::time::SystemTime;

use zeroize::Zeroizing;

use super::{CircuitRef, Priority, RequestId};
use crate::Upload;

/// Bytes nobody else may see: erased when dropped, and `Debug` prints their number only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// What a partition's witness comes from. What comes in one piece is in the caller's memory until it is
/// on disk, and in no budget: large witnesses are better uploaded.
#[derive(Debug)]
pub enum Input {
    /// A whole witness as a `.wtns` file's content.
    Wtns(Secret),
    /// A whole witness as a vector: for each variable, the leading one first, its value in as many
    /// little-endian bytes as the field has (32), below the field's prime.
    Vector(Secret),
    /// A whole witness that was streamed: see [`Handle::upload`](crate::Handle::upload). It is a
    /// `.wtns` file's content if it begins with that file's magic, and a vector if not.
    Uploaded(Upload),
    /// The circuit's inputs as JSON, for a witness generator.
    Inputs {
        /// A generator of [`Options::generators`](crate::Options::generators).
        generator: String,
        /// What it is given.
        json: Secret,
    },
}

/// One proof to be made.
#[derive(Debug)]
pub struct Partition {
    /// The circuit.
    pub circuit: CircuitRef,
    /// Its witness, or what that is made from.
    pub input: Input,
}

/// A job: one proof or many, which are delivered together.
#[derive(Debug)]
pub struct Submission {
    /// Who asks, and by which id. The same id with the same content is the same job; with other
    /// content it is refused.
    pub request: RequestId,
    /// Whose turn it is.
    pub priority: Priority,
    /// When nobody wants the proofs any more.
    pub deadline: Option<SystemTime>,
    /// What to prove, at least one; the proofs come in this order.
    pub partitions: Vec<Partition>,
}

// === impl Secret ===

impl Secret {
    /// Takes bytes, of which no copy should be left elsewhere.
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
