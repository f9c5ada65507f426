//! The trusted setup of Ethereum's main network: the part that verification needs.

use ark_bls12_381::G2Affine;
use ark_serialize::CanonicalDeserialize;

use crate::{CELL_ELEMENTS, POINT_BYTES, Point};

/// Compressed: 64 powers of τ in the first group, τ and τ⁶⁴ in the second. `data/make.py` takes
/// them from c-kzg's `trusted_setup.txt`.
const DATA: &[u8; CELL_ELEMENTS * POINT_BYTES + 2 * 2 * POINT_BYTES] =
    include_bytes!("../data/setup.bin");

/// Points of the trusted setup: powers of its secret τ.
pub(crate) struct Setup {
    /// `τⁱ·G1`, i = 0..64: the generator first.
    pub(crate) powers: Vec<Point>,
    /// `τ·G2`.
    pub(crate) tau: G2Affine,
    /// `τ⁶⁴·G2`.
    pub(crate) tau_64: G2Affine,
}

// === impl Setup ===

impl Setup {
    /// Decompresses the points that are compiled in.
    pub(crate) fn load() -> Self {
        let mut rest = &DATA[..];
        let powers = (0..CELL_ELEMENTS).map(|_| read(&mut rest)).collect();
        Self {
            powers,
            tau: read(&mut rest),
            tau_64: read(&mut rest),
        }
    }
}

/// The next point; a test compares the data with a digest.
fn read<P: CanonicalDeserialize>(rest: &mut &[u8]) -> P {
    P::deserialize_compressed(rest).expect("the points that are compiled in are on the curve")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bls12_381::{Bls12_381, G1Affine};
    use ark_ec::AffineRepr;
    use ark_ec::pairing::Pairing;
    use sha2::{Digest, Sha256};

    #[test]
    fn data_have_their_digest() {
        let digest: String = hex::encode(Sha256::digest(DATA));
        let expected = "4aabdf14b46c84e0b4529cdedbdc038c07550ad94a5c7e20a4094225c0c18cdc";
        assert_eq!(digest, expected);
    }

    /// Each point is τ times the one before it, in both groups.
    #[test]
    fn points_are_powers_of_one_number() {
        let setup = Setup::load();
        assert_eq!(setup.powers[0], G1Affine::generator());
        let generator = G2Affine::generator();
        for pair in setup.powers.windows(2) {
            let by_tau = Bls12_381::pairing(pair[0], setup.tau);
            assert_eq!(Bls12_381::pairing(pair[1], generator), by_tau);
        }
        let last = setup.powers[CELL_ELEMENTS - 1];
        assert_eq!(
            Bls12_381::pairing(setup.powers[0], setup.tau_64),
            Bls12_381::pairing(last, setup.tau)
        );
    }
}
