//! Points and scalars as the EVM's precompiles read them.

use ark_ff::{BigInteger, Field, PrimeField};
use proofmill_groth16::{Curve, PointGroup, Proof, SnarkCurve, VerifyingKey};
use sha3::{Digest, Keccak256};

/// Bytes of a word of the EVM, and of an encoded scalar.
pub(crate) const WORD_BYTES: usize = 32;

/// The curve has no precompiles in the EVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the EVM has no precompiles for {0}: only proofs over bn254 and bls12-381 can be verified in a contract"
)]
pub struct UnsupportedCurve(
    /// The curve.
    pub Curve,
);

/// The encoding of points of one curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    /// Bytes of a coordinate in the prime field, big-endian.
    pub(crate) coordinate_bytes: usize,
    /// Whether the imaginary part of a coordinate in the quadratic extension comes first.
    imaginary_first: bool,
}

// === impl Encoding ===

impl Encoding {
    /// The encoding of EIP-196 and EIP-197 for BN254, and that of EIP-2537 for BLS12-381.
    pub(crate) const fn of(curve: Curve) -> Result<Self, UnsupportedCurve> {
        match curve {
            Curve::Bn254 => Ok(Self {
                coordinate_bytes: 32,
                imaginary_first: true,
            }),
            Curve::Bls12_381 => Ok(Self {
                coordinate_bytes: 64,
                imaginary_first: false,
            }),
            curve => Err(UnsupportedCurve(curve)),
        }
    }

    /// Bytes of a point of the first group.
    pub(crate) const fn g1_bytes(self) -> usize {
        2 * self.coordinate_bytes
    }

    /// Bytes of a point of the second group.
    pub(crate) const fn g2_bytes(self) -> usize {
        4 * self.coordinate_bytes
    }

    /// A point's coordinates; zeros for the point at infinity.
    pub(crate) fn point<P: PointGroup>(self, point: &P) -> Vec<u8> {
        let degree = P::BaseField::extension_degree() as usize;
        let Some((x, y)) = point.xy() else {
            return vec![0; 2 * degree * self.coordinate_bytes];
        };
        let mut bytes = Vec::with_capacity(2 * degree * self.coordinate_bytes);
        for coordinate in [x, y] {
            let mut parts: Vec<_> = coordinate.to_base_prime_field_elements().collect();
            if self.imaginary_first {
                parts.reverse();
            }
            for part in parts {
                write_integer(&part, self.coordinate_bytes, &mut bytes);
            }
        }
        bytes
    }
}

/// Appends an element of a prime field as a big-endian integer of `bytes` bytes.
fn write_integer<F: PrimeField>(element: &F, bytes: usize, out: &mut Vec<u8>) {
    let integer = element.into_bigint().to_bytes_be();
    // Our fields' integers have whole 64-bit limbs: 32 bytes, or 48.
    out.resize(out.len() + bytes - integer.len(), 0);
    out.extend(integer);
}

/// A scalar or public input as a word: 32 bytes, big-endian.
pub fn encode_scalar<F: PrimeField>(scalar: &F) -> [u8; WORD_BYTES] {
    let mut bytes = Vec::with_capacity(WORD_BYTES);
    write_integer(scalar, WORD_BYTES, &mut bytes);
    bytes.try_into().expect("a word was written")
}

/// A point of the first group: 64 bytes over BN254 (EIP-196), 128 over BLS12-381 (EIP-2537).
///
/// # Errors
///
/// [`UnsupportedCurve`].
pub fn encode_g1<E: SnarkCurve>(point: &E::G1Affine) -> Result<Vec<u8>, UnsupportedCurve> {
    Ok(Encoding::of(E::CURVE)?.point(point))
}

/// A point of the second group: 128 bytes over BN254 (EIP-197), 256 over BLS12-381 (EIP-2537).
///
/// # Errors
///
/// [`UnsupportedCurve`].
pub fn encode_g2<E: SnarkCurve>(point: &E::G2Affine) -> Result<Vec<u8>, UnsupportedCurve> {
    Ok(Encoding::of(E::CURVE)?.point(point))
}

/// A, B and C, one after the other: 256 bytes over BN254, 512 over BLS12-381. This is the argument `proof` of the
/// contracts over BLS12-381, and the words of `a`, `b` and `c` of those over BN254.
///
/// # Errors
///
/// [`UnsupportedCurve`].
pub fn encode_proof<E: SnarkCurve>(proof: &Proof<E>) -> Result<Vec<u8>, UnsupportedCurve> {
    let encoding = Encoding::of(E::CURVE)?;
    Ok([
        encoding.point(&proof.a),
        encoding.point(&proof.b),
        encoding.point(&proof.c),
    ]
    .concat())
}

/// keccak256 of a verifying key: of α, β, γ, δ and the points of its instance, encoded one after the other. The contracts'
/// comments have it, so that a contract and a key can be compared.
///
/// # Errors
///
/// [`UnsupportedCurve`].
pub fn key_digest<E: SnarkCurve>(key: &VerifyingKey<E>) -> Result<[u8; 32], UnsupportedCurve> {
    let encoding = Encoding::of(E::CURVE)?;
    let mut bytes = encoding.point(&key.alpha_g1);
    for point in [&key.beta_g2, &key.gamma_g2, &key.delta_g2] {
        bytes.extend(encoding.point(point));
    }
    for point in &key.instance {
        bytes.extend(encoding.point(point));
    }
    Ok(keccak256(&bytes))
}

/// The EVM's hash.
pub(crate) fn keccak256(bytes: &[u8]) -> [u8; WORD_BYTES] {
    Keccak256::digest(bytes).into()
}
