//! The key that aggregates of Mirage proofs are verified with, in a file.
//!
//! Little-endian: magic `PMILLAGV`, version (4 bytes), curve (16 bytes, zero-padded), number of parts n (4
//! bytes), number of vectors of public-input points (4 bytes). Then a·G, b·G, a·H and b·H of the reference string,
//! compressed; then elements of the target group, compressed as `torus` does: e(α, β), the commitments to the
//! vectors of points, and those to γ, δ and η. Last the SHA-256 of all that.

use std::path::Path;

use ark_ec::AffineRepr;
use ark_serialize::CanonicalSerialize;
use rayon::prelude::*;

use crate::aggregate::{Points, number};
use crate::commitment::Commitment;
use crate::files::{AggregationFileError, BEGINNING_BYTES, CHECKSUM_BYTES, FileKind, write};
use crate::mirage::{MAX_INPUTS, MirageVerifyingKey};
use crate::srs::{MAX_CAPACITY, VerifierSrs};
use crate::torus::{
    AggregationCurve, element_bytes, has_prime_order, read_elements, write_elements,
};

const KIND: FileKind = FileKind {
    magic: b"PMILLAGV",
    what: "verifying key for aggregates of Mirage proofs",
};
const HEAD_BYTES: usize = 8;

// === impl MirageVerifyingKey ===

impl<E: AggregationCurve> MirageVerifyingKey<E> {
    /// The content of the key's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = KIND.begin::<E>();
        bytes.extend((self.count as u32).to_le_bytes());
        bytes.extend((self.inputs.len() as u32).to_le_bytes());
        self.srs.write(&mut bytes);
        let mut elements = vec![self.alpha_beta];
        for commitment in self.inputs.iter().chain(&self.constants) {
            elements.extend(commitment.0);
        }
        write_elements(&elements, &mut bytes);
        KIND.end(bytes)
    }

    /// Bytes of a key whose parts share `shared_inputs` public inputs.
    pub fn encoded_size(shared_inputs: usize) -> usize {
        file_bytes::<E>(shared_inputs + 1) as usize
    }

    /// Decodes an untrusted key, and checks that its points are in their groups and that its elements of the target
    /// group have the prime order. Whether it is for the right parts must be ensured by trust in its maker, or by its
    /// [digest](Self::digest).
    ///
    /// # Errors
    ///
    /// [`AggregationFileError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AggregationFileError> {
        let head = KIND.after_beginning::<E>(bytes, HEAD_BYTES)?;
        let (count, inputs) = (number(&head[..4]) as usize, number(&head[4..8]) as usize);
        if !(1..=MAX_CAPACITY).contains(&count) || !(1..=MAX_INPUTS).contains(&inputs) {
            return Err(AggregationFileError::Head(KIND.what));
        }
        let content = KIND.checked(bytes, file_bytes::<E>(inputs))?;
        let (points, elements) =
            content[BEGINNING_BYTES + HEAD_BYTES..].split_at(point_bytes::<E>());
        let mut points = Points {
            rest: points,
            index: 0,
        };
        let srs = VerifierSrs::read(&mut points, KIND)?;
        let elements =
            read_elements::<E>(elements).map_err(|source| AggregationFileError::Element {
                what: KIND.what,
                source,
            })?;
        if !elements.par_iter().all(has_prime_order) {
            return Err(AggregationFileError::Order(KIND.what));
        }
        let (alpha_beta, commitments) = elements.split_first().expect("as many as were counted");
        let mut commitments = commitments
            .chunks_exact(2)
            .map(|pair| Commitment([pair[0], pair[1]]));
        let of_inputs = commitments.by_ref().take(inputs).collect();
        let constants = [(); 3].map(|()| commitments.next().expect("as many as were counted"));
        Ok(Self::new(srs, count, *alpha_beta, of_inputs, constants))
    }

    /// Writes the key to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError::Write`] if the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), AggregationFileError> {
        write(path, &self.to_bytes())
    }

    /// Reads an untrusted key.
    ///
    /// # Errors
    ///
    /// As for [`from_bytes`](Self::from_bytes), and if there is no such file.
    pub fn load(path: &Path) -> Result<Self, AggregationFileError> {
        Self::from_bytes(&KIND.read(path, file_bytes::<E>(MAX_INPUTS))?)
    }
}

fn point_bytes<E: AggregationCurve>() -> usize {
    2 * E::G1Affine::zero().compressed_size() + 2 * E::G2Affine::zero().compressed_size()
}

fn file_bytes<E: AggregationCurve>(inputs: usize) -> u64 {
    let elements = 1 + 2 * (inputs + 3);
    let rest = BEGINNING_BYTES + HEAD_BYTES + CHECKSUM_BYTES;
    (rest + point_bytes::<E>() + elements * element_bytes::<E>()) as u64
}
