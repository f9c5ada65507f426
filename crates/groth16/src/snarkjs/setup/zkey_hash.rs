//! The circuit hash, which the contributions to a key refer to.

use blake2::{Blake2b512, Digest};

use super::super::point_bytes::uncompressed_bytes;
use super::super::zkey::Zkey;
use crate::{PointGroup, SnarkCurve};

/// BLAKE2b-512 of a key before the first contribution, as in snarkjs's `zkey_new.js`. In place of section 9, the
/// uncompressed bytes of τ^(n + i) − τ^i are hashed (`h_differences`).
pub(super) fn circuit_hash<E: SnarkCurve>(key: &Zkey<E>, h_differences: &[u8]) -> [u8; 64] {
    fn hash_points<P: PointGroup>(hasher: &mut Blake2b512, points: &[P]) {
        hasher.update((points.len() as u32).to_be_bytes());
        for points in points.chunks(1 << 16) {
            hasher.update(uncompressed_bytes(points));
        }
    }
    let mut hasher = Blake2b512::new();
    hasher.update(uncompressed_bytes(&[key.alpha_g1, key.beta_g1]));
    hasher.update(uncompressed_bytes(&[key.beta_g2, key.gamma_g2]));
    hasher.update(uncompressed_bytes(&[key.delta_g1]));
    hasher.update(uncompressed_bytes(&[key.delta_g2]));
    hash_points(&mut hasher, &key.ic);
    hasher.update((key.h.len() as u32 - 1).to_be_bytes());
    hasher.update(h_differences);
    hash_points(&mut hasher, &key.c);
    hash_points(&mut hasher, &key.a);
    hash_points(&mut hasher, &key.b_g1);
    hash_points(&mut hasher, &key.b_g2);
    hasher.finalize().into()
}
