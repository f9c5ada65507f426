//! The prover's randomness, which follows from one seed and the witness.

use std::fmt;

use ark_ff::PrimeField;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::Traces;

const DOMAIN: &[u8] = b"proofmill/partition/secrets/3";
const BYTES: usize = 32;

/// The randomness of commitments and the salts of states.
///
/// All of it is a hash of a random seed and of the values of all shared wires and transfers. So a prover that was interrupted
/// goes on with the same randomness, having kept the seed only; and the same randomness never serves two
/// witnesses, which would reveal their difference (the reasoning of RFC 6979).
pub(super) struct Secrets {
    key: Zeroizing<[u8; BYTES]>,
}

// === impl Secrets ===

impl Secrets {
    /// Secrets derived from a seed, the digest of the verifying key, and the values of all shared wires and transfers:
    /// all values that are committed to.
    pub(super) fn new<F: PrimeField>(
        seed: &[u8; BYTES],
        verifying_key: &[u8; BYTES],
        traces: &Traces<F>,
    ) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(DOMAIN);
        hasher.update(seed);
        hasher.update(verifying_key);
        let mut bytes = Zeroizing::new(Vec::new());
        let transfers = traces.transfers().iter().map(|values| &values[..]);
        for values in std::iter::once(traces.values()).chain(transfers) {
            hasher.update((values.len() as u64).to_le_bytes());
            for value in values {
                bytes.clear();
                value
                    .serialize_compressed(&mut *bytes)
                    .expect("writing to a vector does not fail");
                hasher.update(&bytes[..]);
            }
        }
        Self {
            key: Zeroizing::new(hasher.finalize().into()),
        }
    }

    /// A tag by which a journal recognises the witness. It reveals nothing else about the witness.
    pub(super) fn witness_tag(&self) -> [u8; BYTES] {
        self.block(b"witness", 0, 0)
    }

    /// κ_D of a part's commitment.
    pub(super) fn commitment_randomness<F: PrimeField>(&self, part: usize) -> F {
        self.scalar(b"commitment", part)
    }

    /// The salt of the state after a part.
    pub(super) fn salt<F: PrimeField>(&self, part: usize) -> F {
        self.scalar(b"salt", part)
    }

    /// A statistically uniform scalar: 512 bits, reduced.
    fn scalar<F: PrimeField>(&self, label: &[u8], part: usize) -> F {
        let mut wide = Zeroizing::new([0; 2 * BYTES]);
        for (number, block) in wide.chunks_exact_mut(BYTES).enumerate() {
            block.copy_from_slice(&self.block(label, part, number as u8));
        }
        F::from_le_bytes_mod_order(&*wide)
    }

    fn block(&self, label: &[u8], part: usize, number: u8) -> [u8; BYTES] {
        let mut hasher = Sha256::new();
        hasher.update(DOMAIN);
        hasher.update(*self.key);
        hasher.update([label.len() as u8, number]);
        hasher.update(label);
        hasher.update((part as u64).to_le_bytes());
        hasher.finalize().into()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ark_bn254::Fr;

    use super::*;
    use crate::Partition;
    use crate::tests::chain::Chain;

    #[test]
    fn no_seed_key_witness_part_or_purpose_has_the_randomness_of_another() {
        let partition = Partition::new(&Chain::<Fr>::blank(3)).unwrap();
        let traces = |x| partition.trace(&Chain::<Fr>::new(3, x, 5)).unwrap();
        let mut seen = HashSet::new();
        for seed in [[1; 32], [2; 32]] {
            for key in [[3; 32], [4; 32]] {
                for x in [2, 3] {
                    let secrets = Secrets::new(&seed, &key, &traces(x));
                    assert!(seen.insert(Fr::from_le_bytes_mod_order(&secrets.witness_tag())));
                    for part in 0..3 {
                        assert!(seen.insert(secrets.salt(part)));
                        assert!(seen.insert(secrets.commitment_randomness(part)));
                    }
                    let again = Secrets::new(&seed, &key, &traces(x));
                    assert_eq!(again.salt::<Fr>(2), secrets.salt(2));
                }
            }
        }
        assert_eq!(seen.len(), 8 * 7);
        // The same values of shared wires, and other transfers.
        let mut other = Chain::<Fr>::new(3, 2, 5);
        other.digits.swap(1, 2);
        let other = partition.trace(&other).unwrap();
        assert_eq!(other.values(), traces(2).values());
        let secrets = Secrets::new(&[1; 32], &[3; 32], &other);
        assert!(seen.insert(secrets.salt(0)));
    }
}
