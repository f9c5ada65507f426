//! Functions that feed hostile bytes to the code under test. Each ends the process, by a panic, if
//! it finds a defect.

use std::sync::{Arc, LazyLock};

use proofmill_halo2::orchard::{ACTION_INPUTS, Bundle, K, verifying_key};
use proofmill_halo2::{Params, Scalar, Verifier, VerifyingKey, decode_instances, encode_instances};

/// A verifier for the small circuit and for Orchard's.
static VERIFIER: LazyLock<Verifier> =
    LazyLock::new(|| Verifier::new(&Params::derive(K), ACTION_INPUTS, 1 << 20));
static ORCHARD: LazyLock<Arc<VerifyingKey>> = LazyLock::new(|| Arc::new(verifying_key()));
static KEY: LazyLock<Arc<VerifyingKey>> =
    LazyLock::new(|| key(include_str!("../../tests/data/small.key")).expect("a key"));

/// Public inputs of `tests/data/small.proof`, which proves that 360 is 3 times five numbers below 16.
const INPUTS: [u64; 2] = [3, 360];

fn key(text: &str) -> Option<Arc<VerifyingKey>> {
    VerifyingKey::from_pinned(text).ok().map(Arc::new)
}

/// Takes bytes as a proof, alone and in a batch; as a key, under which a proof is verified; as public inputs
/// and as an Orchard bundle, whose encodings must be the same bytes again; a bundle's proof is reduced.
pub fn decode(bytes: &[u8]) {
    let inputs = [vec![INPUTS.map(Scalar::from).to_vec()]];
    if let Ok(claim) = VERIFIER.reduce(&KEY, &inputs, bytes) {
        let alone = VERIFIER.check(&claim).is_ok();
        let batch = [(&claim, Scalar::from(3)), (&claim, Scalar::from(4))];
        assert_eq!(VERIFIER.all_hold(&batch), alone);
    }
    if let Some(key) = std::str::from_utf8(bytes).ok().and_then(key) {
        let proof = include_bytes!("../../tests/data/small.proof");
        let verified = VERIFIER.verify(&key, &inputs, proof);
        assert_eq!(verified.is_ok(), key.digest() == KEY.digest());
    }
    if let Ok(bundle) = Bundle::decode(bytes) {
        assert_eq!(bundle.encode(), bytes);
        if let Ok(instances) = bundle.instances() {
            let _ = VERIFIER.reduce(&ORCHARD, &instances, &bundle.proof);
        }
    }
    if let Ok(instances) = decode_instances(bytes, 1) {
        assert_eq!(encode_instances(&instances), bytes);
    }
}
