//! The tasks of workers, and their bytes.

use std::fmt;

use proofmill_groth16::Proof;
use proofmill_groth16::mirage::{Commitment, Opening, complete};
use proofmill_r1cs::Assignment;
use zeroize::{Zeroize, Zeroizing};

use crate::encoding::{EncodingError, read, write};
use crate::proof::PartitionCurve;
use crate::tree::{Leaf, Path};
use crate::{
    Challenges, DistributedCircuit, Opening as StateOpening, PartTrace, Partition, PartitionError,
};

/// Version of the encoding of tasks, its first byte.
const VERSION: u8 = 1;

/// Elements of a [`ProveTask`] besides those of paths and values: α, β, the root, the leaf before, the salt after.
const ELEMENTS: usize = 8;

/// A part to commit to.
#[derive(Clone, PartialEq, Eq)]
pub struct CommitTask<E: PartitionCurve> {
    pub(in crate::proof) part: u32,
    pub(in crate::proof) opening: Opening<E>,
    pub(in crate::proof) trace: PartTrace<E::ScalarField>,
}

/// A part to prove.
#[derive(Clone, PartialEq, Eq)]
pub struct ProveTask<E: PartitionCurve> {
    pub(in crate::proof) part: u32,
    pub(in crate::proof) commitment: Commitment<E>,
    pub(in crate::proof) opening: Opening<E>,
    pub(in crate::proof) challenges: Challenges<E::ScalarField>,
    pub(in crate::proof) states: StateOpening<E::ScalarField>,
    pub(in crate::proof) witness: Zeroizing<Vec<u8>>,
    pub(in crate::proof) trace: PartTrace<E::ScalarField>,
}

/// Bytes that are no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The bytes end early, or go on after the task.
    #[error("{0} bytes are no task of a part")]
    Length(usize),
    /// Another version of the encoding.
    #[error(
        "a task of version {0}, where this program reads {VERSION}: use one release everywhere"
    )]
    Version(u8),
    /// A commitment or its opening that does not decode.
    #[error("the task's commitment is no canonical point, or its opening no number of the field")]
    Commitment,
    /// Elements that do not decode.
    #[error(transparent)]
    Elements(#[from] EncodingError),
}

/// Pieces of a task's bytes, each after its length of 4 bytes, little-endian.
struct Pieces<'b> {
    rest: &'b [u8],
    whole: usize,
}

// === impl CommitTask ===

impl<E: PartitionCurve> CommitTask<E> {
    /// The part, from 0.
    pub const fn part(&self) -> usize {
        self.part as usize
    }

    /// The version, the part (4 bytes, little-endian), and the opening and the share of the traces, each after its
    /// length of 4 bytes. They are secret.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = begin(self.part);
        push(&mut bytes, &self.opening.to_bytes());
        push(&mut bytes, &self.trace.to_bytes());
        bytes
    }

    /// Decodes untrusted bytes. The caller must limit them.
    ///
    /// # Errors
    ///
    /// [`TaskError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TaskError> {
        let (part, mut pieces) = Pieces::after_beginning(bytes)?;
        let task = Self {
            part,
            opening: opening(pieces.next()?)?,
            trace: PartTrace::from_bytes(pieces.next()?)?,
        };
        pieces.end()?;
        Ok(task)
    }
}

impl<E: PartitionCurve> fmt::Debug for CommitTask<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest is secret.
        f.debug_struct("CommitTask")
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

// === impl ProveTask ===

impl<E: PartitionCurve> ProveTask<E> {
    /// The part, from 0.
    pub const fn part(&self) -> usize {
        self.part as usize
    }

    /// The commitment to the part's share of the traces.
    pub const fn commitment(&self) -> &Commitment<E> {
        &self.commitment
    }

    /// The values of all variables of the part; `circuit` is the circuit without a witness.
    ///
    /// # Errors
    ///
    /// [`PartitionError`] for a task of another partition or with another part's witness.
    pub fn assignment<C: DistributedCircuit<E::ScalarField>>(
        &self,
        partition: &Partition<E::ScalarField>,
        circuit: &C,
    ) -> Result<Assignment<E::ScalarField>, PartitionError> {
        let part = self.part();
        let circuit = circuit
            .with_part_witness(part, &self.witness)
            .map_err(|why| PartitionError::Witness { part, why })?;
        partition.assignment(&circuit, part, &self.trace, &self.challenges, &self.states)
    }

    /// Completes the plain proof of the part's assignment to the proof that belongs to the task's commitment; `eta_g1`
    /// is that of the key of the part's class.
    pub fn complete(&self, eta_g1: E::G1Affine, plain: &Proof<E>) -> Proof<E> {
        complete(eta_g1, plain, &self.opening)
    }

    /// The version, the part (4 bytes, little-endian), and, each after its length of 4 bytes: the commitment, its
    /// opening, the elements α, β, root, leaf before and salt after, both paths, the part's witness, the share of
    /// the traces. They are secret.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = begin(self.part);
        push(&mut bytes, &self.commitment.to_bytes());
        push(&mut bytes, &self.opening.to_bytes());
        let (states, leaf) = (&self.states, &self.states.before);
        let elements: [E::ScalarField; ELEMENTS] = [
            self.challenges.alpha,
            self.challenges.beta,
            states.root,
            leaf.salt,
            leaf.value,
            leaf.traces,
            leaf.multiset,
            states.after_salt,
        ];
        push(&mut bytes, &write(elements.iter()));
        push(&mut bytes, &states.before_path.to_bytes());
        push(&mut bytes, &states.after_path.to_bytes());
        push(&mut bytes, &self.witness);
        push(&mut bytes, &self.trace.to_bytes());
        bytes
    }

    /// Decodes untrusted bytes. The caller must limit them.
    ///
    /// # Errors
    ///
    /// [`TaskError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TaskError> {
        let (part, mut pieces) = Pieces::after_beginning(bytes)?;
        let commitment = Commitment::from_bytes(pieces.next()?);
        let commitment = commitment.map_err(|_| TaskError::Commitment)?;
        let opening = opening(pieces.next()?)?;
        let elements = pieces.next()?;
        let size = write(std::iter::once(&E::ScalarField::default())).len();
        if elements.len() != ELEMENTS * size {
            return Err(TaskError::Length(bytes.len()));
        }
        let elements = read::<E::ScalarField>("task", elements)?;
        let [alpha, beta, root, salt, value, traces, multiset, after_salt] =
            elements[..].try_into().expect("as many elements");
        let task = Self {
            part,
            commitment,
            opening,
            challenges: Challenges { alpha, beta },
            states: StateOpening {
                root,
                before: Leaf {
                    salt,
                    value,
                    traces,
                    multiset,
                },
                before_path: Path::from_bytes(pieces.next()?)?,
                after_salt,
                after_path: Path::from_bytes(pieces.next()?)?,
            },
            witness: Zeroizing::new(pieces.next()?.to_vec()),
            trace: PartTrace::from_bytes(pieces.next()?)?,
        };
        pieces.end()?;
        Ok(task)
    }
}

impl<E: PartitionCurve> fmt::Debug for ProveTask<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest is secret.
        f.debug_struct("ProveTask")
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

impl<E: PartitionCurve> Drop for CommitTask<E> {
    fn drop(&mut self) {
        erase(&mut self.trace);
    }
}

impl<E: PartitionCurve> Drop for ProveTask<E> {
    fn drop(&mut self) {
        erase(&mut self.trace);
        let (leaf, salt) = (&mut self.states.before, &mut self.states.after_salt);
        for secret in [
            salt,
            &mut leaf.salt,
            &mut leaf.value,
            &mut leaf.traces,
            &mut leaf.multiset,
        ] {
            secret.zeroize();
        }
    }
}

fn erase<F: Zeroize>(trace: &mut PartTrace<F>) {
    trace.by_part.zeroize();
    trace.by_address.zeroize();
    trace.transfers.zeroize();
}

fn begin(part: u32) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(part.to_le_bytes());
    bytes
}

fn push(bytes: &mut Vec<u8>, piece: &[u8]) {
    // No part has a share of four gigabytes.
    bytes.extend((piece.len() as u32).to_le_bytes());
    bytes.extend_from_slice(piece);
}

fn opening<E: PartitionCurve>(bytes: &[u8]) -> Result<Opening<E>, TaskError> {
    Opening::from_bytes(bytes).map_err(|_| TaskError::Commitment)
}

// === impl Pieces ===

impl<'b> Pieces<'b> {
    /// The part, and the pieces after it.
    fn after_beginning(bytes: &'b [u8]) -> Result<(u32, Self), TaskError> {
        let length = TaskError::Length(bytes.len());
        let (version, rest) = bytes.split_first().ok_or(length)?;
        if *version != VERSION {
            return Err(TaskError::Version(*version));
        }
        let (part, rest) = rest.split_first_chunk().ok_or(length)?;
        let pieces = Self {
            rest,
            whole: bytes.len(),
        };
        Ok((u32::from_le_bytes(*part), pieces))
    }

    fn next(&mut self) -> Result<&'b [u8], TaskError> {
        let length = TaskError::Length(self.whole);
        let (count, rest) = self.rest.split_first_chunk().ok_or(length)?;
        let count = u32::from_le_bytes(*count) as usize;
        let (piece, rest) = rest.split_at_checked(count).ok_or(length)?;
        self.rest = rest;
        Ok(piece)
    }

    fn end(self) -> Result<(), TaskError> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(TaskError::Length(self.whole)),
        }
    }
}
