//! The statement of an aggregate of Groth16 proofs as bytes: the public inputs of all proofs in their order,
//! each in 32 little-endian bytes, without the leading one. The number of inputs of each proof follows from the key.

use ark_ff::PrimeField;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};

use crate::groth16::Groth16Index;
use crate::torus::AggregationCurve;

/// Bytes that are no statement of a key's aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// The length is not that of the public inputs of the key's proofs.
    #[error(
        "{found} bytes of public inputs: the proofs of the key have {inputs}, {expected} bytes"
    )]
    Length {
        /// The public inputs of all proofs.
        inputs: usize,
        /// The bytes that they take.
        expected: usize,
        /// The bytes there are.
        found: usize,
    },
    /// A number that is not below the field's modulus.
    #[error("public input {input} of proof {proof} is not below the field's modulus")]
    Input {
        /// The proof, from 0.
        proof: usize,
        /// Index of the proof's public input, from 0.
        input: usize,
    },
}

// === impl Groth16Index ===

impl<E: AggregationCurve> Groth16Index<E> {
    /// The number of public inputs of each proof, without the leading one.
    pub fn input_counts(&self) -> impl ExactSizeIterator<Item = usize> {
        let keys = self.key_of().iter();
        keys.map(|key| self.keys()[*key as usize].instance.len() - 1)
    }

    /// The bytes of a statement.
    pub fn statement_bytes(&self) -> usize {
        self.input_counts().sum::<usize>() * scalar_bytes::<E::ScalarField>()
    }

    /// Encodes public inputs, in the order of the proofs.
    pub fn encode_statement(inputs: &[Vec<E::ScalarField>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for input in inputs.iter().flatten() {
            let written = input.serialize_compressed(&mut bytes);
            written.expect("writing to a vector does not fail");
        }
        bytes
    }

    /// Decodes the public inputs of each proof from untrusted bytes.
    ///
    /// # Errors
    ///
    /// [`StatementError`] unless they are as many canonical numbers as the proofs have public inputs.
    pub fn decode_statement(
        &self,
        bytes: &[u8],
    ) -> Result<Vec<Vec<E::ScalarField>>, StatementError> {
        let (size, expected) = (scalar_bytes::<E::ScalarField>(), self.statement_bytes());
        if bytes.len() != expected {
            return Err(StatementError::Length {
                inputs: expected / size,
                expected,
                found: bytes.len(),
            });
        }
        let mut scalars = bytes.chunks_exact(size);
        let decode = |(proof, count): (usize, usize)| {
            let scalars = scalars.by_ref().take(count).enumerate();
            let decoded = scalars.map(|(input, bytes)| {
                E::ScalarField::deserialize_compressed(bytes)
                    .map_err(|_| StatementError::Input { proof, input })
            });
            decoded.collect()
        };
        self.input_counts().enumerate().map(decode).collect()
    }
}

fn scalar_bytes<F: PrimeField>() -> usize {
    F::ZERO.compressed_size()
}
