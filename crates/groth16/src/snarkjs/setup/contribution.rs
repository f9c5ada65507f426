//! A contribution to the second phase of a ceremony, which multiplies δ by a secret.
//!
//! The record is that of `snarkjs zkey contribute` (`zkey_contribute.js`, `zkey_utils.js`, `keypair.js`), which
//! `zkey verify` checks. With s a random point of the first group and x the secret, the
//! transcript hash binds s and x·s; a point s' of the second group is derived from the hash, and
//! x·s' proves that one x was used everywhere.

use ark_ec::CurveGroup;
use ark_ff::{BigInteger, Field, PrimeField};
use blake2::{Blake2b512, Digest};
use proofmill_r1cs::iden3::{MontgomeryField, width};

use super::super::point_bytes::uncompressed_bytes;
use super::super::zkey::{Contribution, Contributions, Zkey};
use super::columns::scale;
use crate::{PointGroup, SnarkCurve};

/// The longest name that snarkjs keeps, in bytes.
const MAX_NAME: usize = 64;

/// Makes the first contribution to a new key: multiplies δ by the secret `x`, which must not be zero and which the
/// caller must erase. `s` is a random point for the proof of the contribution.
pub(super) fn contribute<E: SnarkCurve>(
    key: &mut Zkey<E>,
    x: E::ScalarField,
    s: E::G1Affine,
    name: &str,
) {
    let mut contributions = key.contributions.take().unwrap_or(Contributions {
        circuit_hash: [0; 64],
        list: Vec::new(),
    });
    let s_x = (s * x).into_affine();
    let transcript = transcript::<E>(&contributions.circuit_hash, s, s_x);
    let sp_x = (hash_to_group::<E::G2Affine>(&transcript) * x).into_affine();
    let inverse = x.inverse().expect("a secret that is not zero");
    key.delta_g1 = (key.delta_g1 * x).into_affine();
    key.delta_g2 = (key.delta_g2 * x).into_affine();
    key.c = scale::<E::G1>(&key.c, inverse);
    key.h = scale::<E::G1>(&key.h, inverse);
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    contributions.list.push(Contribution {
        delta_after: key.delta_g1,
        s,
        s_x,
        sp_x,
        transcript,
        kind: 0,
        name: (end > 0).then(|| name.as_bytes()[..end].to_vec()),
        log_iterations: None,
        beacon: None,
    });
    key.contributions = Some(contributions);
    key.order = (1..=10).collect();
}

/// The transcript hash of the first contribution, which binds it to the circuit, to `s` and to x·s.
fn transcript<E: SnarkCurve>(
    circuit_hash: &[u8; 64],
    s: E::G1Affine,
    s_x: E::G1Affine,
) -> [u8; 64] {
    let mut hasher = Blake2b512::new();
    hasher.update(circuit_hash);
    hasher.update(uncompressed_bytes(&[s, s_x]));
    hasher.finalize().into()
}

/// A point of the subgroup that is derived from a hash, as by ffjavascript's `fromRng` with a generator seeded by the
/// hash. It takes the first random x for which the curve has a point, a random sign of y, and multiplies the point by
/// the cofactor.
fn hash_to_group<P: PointGroup>(hash: &[u8; 64]) -> P {
    let mut random = ChaCha::new(hash);
    loop {
        let parts = (0..P::BaseField::extension_degree())
            .map(|_| random.field_element())
            .collect::<Vec<_>>();
        let take_negative = random.next_word() & 1 == 1;
        let Some(x) = P::BaseField::from_base_prime_field_elems(parts) else {
            unreachable!("as many parts as the field has")
        };
        let Some(point) = P::of_x(x) else { continue };
        let negative = point.y().is_some_and(|y| is_negative(&y));
        let point = if negative == take_negative {
            point
        } else {
            -point
        };
        return point.mul_by_cofactor();
    }
}

/// Whether the last part of `value` that is not zero exceeds half the modulus: the sign in ffjavascript.
fn is_negative<F: Field>(value: &F) -> bool {
    let parts: Vec<F::BasePrimeField> = value.to_base_prime_field_elements().collect();
    let last = parts
        .iter()
        .rev()
        .find(|part| !ark_ff::Zero::is_zero(*part));
    last.is_some_and(|part| part.into_bigint() > F::BasePrimeField::MODULUS_MINUS_ONE_DIV_TWO)
}

/// ffjavascript's random generator: the words of the ChaCha20 key stream, in order.
struct ChaCha {
    state: [u32; 16],
    block: [u32; 16],
    /// Index of the next word of `block`; 16 if the block is used up.
    next: usize,
}

// === impl ChaCha ===

impl ChaCha {
    /// A generator whose key is the first eight words of the hash, big-endian.
    fn new(hash: &[u8; 64]) -> Self {
        let mut state = [0; 16];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (word, bytes) in state[4..12].iter_mut().zip(hash.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        Self {
            state,
            block: [0; 16],
            next: 16,
        }
    }

    fn next_word(&mut self) -> u32 {
        if self.next == 16 {
            self.block = self.state;
            for _ in 0..10 {
                for i in 0..4 {
                    self.quarter_round([i, 4 + i, 8 + i, 12 + i]);
                }
                for i in 0..4 {
                    self.quarter_round([i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4]);
                }
            }
            for (word, start) in self.block.iter_mut().zip(self.state) {
                *word = word.wrapping_add(start);
            }
            // The counter has 32 bits; far fewer blocks are used.
            self.state[12] = self.state[12].wrapping_add(1);
            self.next = 0;
        }
        self.next += 1;
        self.block[self.next - 1]
    }

    fn quarter_round(&mut self, [a, b, c, d]: [usize; 4]) {
        let x = &mut self.block;
        for (rotate_d, rotate_b) in [(16, 12), (8, 7)] {
            x[a] = x[a].wrapping_add(x[b]);
            x[d] = (x[d] ^ x[a]).rotate_left(rotate_d);
            x[c] = x[c].wrapping_add(x[d]);
            x[b] = (x[b] ^ x[c]).rotate_left(rotate_b);
        }
    }

    /// A field element, whose Montgomery form is the next random number below the prime. The number is taken as 64-bit
    /// words, the lowest word first, and the upper half of each word first.
    fn field_element<F: MontgomeryField>(&mut self) -> F {
        let bits = F::MODULUS.num_bits() as usize;
        loop {
            let mut bytes = Vec::with_capacity(width::<F>());
            for _ in 0..width::<F>() / 8 {
                let high = u64::from(self.next_word());
                let word = high << 32 | u64::from(self.next_word());
                bytes.extend(word.to_le_bytes());
            }
            for bit in bits..8 * bytes.len() {
                bytes[bit / 8] &= !(1 << (bit % 8));
            }
            if let Some(element) = F::from_montgomery_le(&bytes) {
                return element;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ark_ec::AffineRepr;

    use super::super::super::zkey::ZkeyFile;
    use super::{hash_to_group, transcript};
    use crate::{Bls12_381, Bn254, PointCheck, SnarkCurve};

    /// Checks a contribution recorded by snarkjs against the point s' derived here: x·s' must be the same
    /// multiple of s' as x·s is of s, and as the new δ is of the old one.
    fn check_contribution<E: SnarkCurve>(zkey: &[u8]) {
        let file = ZkeyFile::parse(zkey).unwrap();
        let recorded = file
            .read::<E>(PointCheck::Full)
            .unwrap()
            .contributions
            .unwrap();
        let contribution = &recorded.list[0];
        assert_eq!(
            transcript::<E>(&recorded.circuit_hash, contribution.s, contribution.s_x),
            contribution.transcript
        );
        let sp = hash_to_group::<E::G2Affine>(&contribution.transcript);
        assert_eq!(
            E::pairing(contribution.s, contribution.sp_x),
            E::pairing(contribution.s_x, sp)
        );
        let before = E::G1Affine::generator();
        assert_eq!(
            E::pairing(before, contribution.sp_x),
            E::pairing(contribution.delta_after, sp)
        );
    }

    #[test]
    fn snarkjs_contributions_hold() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/setup/");
        let read = |name| std::fs::read(format!("{folder}{name}")).unwrap();
        check_contribution::<Bn254>(&read("bn128_contributed.zkey"));
        check_contribution::<Bls12_381>(&read("bls12381_contributed.zkey"));
    }
}
