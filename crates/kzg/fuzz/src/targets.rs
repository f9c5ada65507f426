//! Functions that feed hostile bytes to the code under test. Each ends the process, by a panic, if
//! it finds a defect.

use std::sync::LazyLock;

use proofmill_kzg::{Request, Scalar, Verifier};

static VERIFIER: LazyLock<Verifier> = LazyLock::new(Verifier::new);

/// Takes bytes as a request; a decoded request must encode to the same bytes, and is verified alone and in a batch.
pub fn decode(bytes: &[u8]) {
    let Ok(request) = Request::decode(bytes) else {
        return;
    };
    assert_eq!(request.encode(), bytes);
    if let Ok(claim) = VERIFIER.reduce(&request) {
        let alone = VERIFIER.check(&claim).is_ok();
        let batch = [(&claim, Scalar::from(3)), (&claim, Scalar::from(4))];
        assert_eq!(VERIFIER.all_hold(&batch), alone);
    }
}
