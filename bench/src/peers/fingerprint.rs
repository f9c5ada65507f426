//! Fingerprints of results, by which the results of different libraries are compared.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::PrimeField;
use ark_serialize::CanonicalSerialize;
use sha2::{Digest, Sha256};

/// A field element as canonical little-endian bytes: an extension's coefficients one after the
/// other, the constant one first.
pub(crate) fn field_bytes(value: &impl CanonicalSerialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.uncompressed_size());
    value
        .serialize_uncompressed(&mut bytes)
        .expect("writing to a vector does not fail");
    bytes
}

/// The coordinates of a point, or zeros for the one at infinity.
pub(crate) fn point_bytes<A: AffineRepr>(point: &A) -> Vec<u8> {
    let (x, y) = point.xy().unwrap_or_default();
    let mut bytes = field_bytes(&x);
    bytes.extend(field_bytes(&y));
    bytes
}

/// The SHA-256 of a point's coordinates.
pub(crate) fn of_point<G: CurveGroup>(point: G) -> String {
    of_bytes([point_bytes(&point.into_affine())])
}

/// The SHA-256 of field elements in their order.
pub(crate) fn of_values<F: PrimeField>(values: &[F]) -> String {
    of_bytes(values.iter().map(field_bytes))
}

/// The SHA-256 of the concatenated parts, in hexadecimal.
pub(crate) fn of_bytes(parts: impl IntoIterator<Item = Vec<u8>>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
