//! Functions that feed hostile bytes to the code under test. Each ends the process, by a panic, if
//! it finds a defect.

use std::sync::LazyLock;

use proofmill_ipa::{Opening, Srs, Verifier};

static VERIFIER: LazyLock<Verifier> = LazyLock::new(|| Verifier::new(&Srs::derive(3), 1 << 20));

/// Takes bytes as either form of an opening; a decoded opening must encode to the same bytes, and is checked.
pub fn decode(bytes: &[u8]) {
    if let Ok(opening) = Opening::from_rollup_proof(bytes) {
        let again = Opening::from_compact(&opening.to_compact());
        assert_eq!(again.as_ref(), Ok(&opening));
        assert!(VERIFIER.verify(&opening).is_err(), "fifteen rounds");
    }
    if let Ok(opening) = Opening::from_compact(bytes) {
        assert_eq!(opening.to_compact(), bytes);
        let alone = VERIFIER.verify(&opening).is_ok();
        assert_eq!(VERIFIER.verify_batch(&[opening]).is_ok(), alone);
    }
}
