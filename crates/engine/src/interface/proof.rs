//! Proofs with their public inputs, over any of the curves.

use ark_ff::{BigInteger, PrimeField};
use proofmill_groth16::{
    Bls12_377, Bls12_381, Bn254, Curve, Proof, ProofError, SnarkCurve, with_curve,
};
use proofmill_r1cs::iden3::{SCALAR_BYTES, canonical_from_le};

use super::CircuitId;

/// A verified proof of a partition, with its circuit and public inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionProof {
    /// The circuit.
    pub circuit: CircuitId,
    /// The proof and its public inputs.
    pub proof: AnyProof,
}

/// A proof and its public inputs, over one of the curves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyProof {
    /// Over BN254.
    Bn254(ProofOf<Bn254>),
    /// Over BLS12-381.
    Bls12_381(ProofOf<Bls12_381>),
    /// Over BLS12-377.
    Bls12_377(ProofOf<Bls12_377>),
}

/// A proof and its public inputs over the curve `E`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofOf<E: SnarkCurve> {
    /// The proof.
    pub proof: Proof<E>,
    /// The public inputs, without the leading one.
    pub public: Vec<E::ScalarField>,
}

/// Bytes that are not a proof with its public inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedProof {
    /// The proof's bytes are malformed.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// A public input is malformed: its number, from 1.
    #[error("public input {0} is not below the field's prime")]
    Input(usize),
}

// === impl AnyProof ===

impl AnyProof {
    /// Decodes a proof over `curve` from an untrusted source: the proof as for [`Proof::from_bytes`], its
    /// public inputs as canonical little-endian numbers.
    ///
    /// # Errors
    ///
    /// [`MalformedProof`].
    pub fn decode(
        curve: Curve,
        proof: &[u8],
        public: &[impl AsRef<[u8]>],
    ) -> Result<Self, MalformedProof> {
        with_curve!(curve, E => ProofOf::<E>::decode(proof, public).map(Self::from))
    }

    /// The curve.
    pub fn curve(&self) -> Curve {
        match self {
            Self::Bn254(_) => Curve::Bn254,
            Self::Bls12_381(_) => Curve::Bls12_381,
            Self::Bls12_377(_) => Curve::Bls12_377,
        }
    }

    /// The proof, encoded by [`Proof::to_bytes`].
    pub fn proof_bytes(&self) -> Vec<u8> {
        match self {
            Self::Bn254(made) => made.proof.to_bytes(),
            Self::Bls12_381(made) => made.proof.to_bytes(),
            Self::Bls12_377(made) => made.proof.to_bytes(),
        }
    }

    /// The public inputs, 32 little-endian bytes each.
    pub fn public_bytes(&self) -> Vec<[u8; SCALAR_BYTES]> {
        match self {
            Self::Bn254(made) => made.public.iter().map(input_bytes).collect(),
            Self::Bls12_381(made) => made.public.iter().map(input_bytes).collect(),
            Self::Bls12_377(made) => made.public.iter().map(input_bytes).collect(),
        }
    }
}

impl From<ProofOf<Bn254>> for AnyProof {
    fn from(made: ProofOf<Bn254>) -> Self {
        Self::Bn254(made)
    }
}

impl From<ProofOf<Bls12_381>> for AnyProof {
    fn from(made: ProofOf<Bls12_381>) -> Self {
        Self::Bls12_381(made)
    }
}

impl From<ProofOf<Bls12_377>> for AnyProof {
    fn from(made: ProofOf<Bls12_377>) -> Self {
        Self::Bls12_377(made)
    }
}

// === impl ProofOf ===

impl<E: SnarkCurve> ProofOf<E> {
    /// Decodes a proof over `E`, as [`AnyProof::decode`].
    ///
    /// # Errors
    ///
    /// [`MalformedProof`].
    pub fn decode(proof: &[u8], public: &[impl AsRef<[u8]>]) -> Result<Self, MalformedProof> {
        let proof = Proof::<E>::from_bytes(proof)?;
        let inputs = public.iter().enumerate();
        let inputs = inputs.map(|(i, bytes)| {
            canonical_from_le(bytes.as_ref()).ok_or(MalformedProof::Input(i + 1))
        });
        Ok(Self {
            proof,
            public: inputs.collect::<Result<_, _>>()?,
        })
    }
}

fn input_bytes<F: PrimeField>(value: &F) -> [u8; SCALAR_BYTES] {
    let mut bytes = [0; SCALAR_BYTES];
    let number = value.into_bigint().to_bytes_le();
    bytes[..number.len()].copy_from_slice(&number);
    bytes
}

/// A proof that does not verify, for tests that only need one of the type.
#[cfg(test)]
pub(crate) fn proof_for_tests(circuit: CircuitId) -> PartitionProof {
    PartitionProof {
        circuit,
        proof: tests::made::<Bn254>().into(),
    }
}

#[cfg(test)]
mod tests {
    use ark_ec::AffineRepr;
    use ark_ff::One;

    use super::*;

    pub(super) fn made<E: SnarkCurve>() -> ProofOf<E> {
        let proof = Proof {
            a: E::G1Affine::generator(),
            b: E::G2Affine::generator(),
            c: E::G1Affine::generator(),
        };
        let minus_one = -E::ScalarField::one();
        ProofOf {
            proof,
            public: vec![E::ScalarField::one(), minus_one],
        }
    }

    #[test]
    fn proofs_are_decoded_from_their_own_bytes() {
        let all = [
            AnyProof::from(made::<Bn254>()),
            AnyProof::from(made::<Bls12_381>()),
            AnyProof::from(made::<Bls12_377>()),
        ];
        for any in all {
            let (proof, public) = (any.proof_bytes(), any.public_bytes());
            assert_eq!(AnyProof::decode(any.curve(), &proof, &public), Ok(any));
        }
    }

    #[test]
    fn the_malformed_part_of_a_proof_is_named() {
        let any = AnyProof::from(made::<Bn254>());
        let (proof, mut public) = (any.proof_bytes(), any.public_bytes());
        let decode = |proof: &[u8], public: &[[u8; 32]]| {
            AnyProof::decode(Curve::Bn254, proof, public).unwrap_err()
        };
        assert!(matches!(
            decode(&proof[1..], &public),
            MalformedProof::Proof(_)
        ));
        public[1] = [0xff; 32];
        assert_eq!(decode(&proof, &public), MalformedProof::Input(2));
    }
}
