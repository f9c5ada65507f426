//! Calls of the Ethproofs API, and their bodies.
//!
//! Source: the OpenAPI description of Ethproofs (`lib/openapi/proofs.ts` and `lib/zod/schemas/proof.ts` of
//! <https://github.com/ethproofs/ethproofs>, commit 98b7a6f1), version 0.0.1.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Step of a block that the API has a call for, in the order of a block's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The block will be proved.
    Queued,
    /// Proving has begun.
    Proving,
    /// There is a proof.
    Proved,
}

/// A call of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Number of the call, unique in this process.
    pub id: u64,
    /// Block.
    pub block: u64,
    /// Step that is reported.
    pub step: Step,
    /// The proof, for [`Step::Proved`] only.
    pub proof: Option<Proof>,
}

/// A proof to report, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Time that the proof took, milliseconds, at least 1.
    pub proving_ms: u64,
    /// Cycles of the zkVM, if they are known; not 0.
    pub cycles: Option<u64>,
    /// Length of the proof, bytes.
    pub bytes: u64,
}

#[derive(Serialize)]
struct Body<'a> {
    block_number: u64,
    cluster_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    proving_time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proving_cycles: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verifier_id: Option<&'a str>,
}

/// Body of a call, JSON. `proof` has the proof's bytes, for [`Step::Proved`]; `verifier_id` is the verifying key's or the
/// image's name at the site.
pub fn body(call: &Call, cluster_id: u64, verifier_id: Option<&str>, proof: &[u8]) -> Vec<u8> {
    let of_proof = call.proof.filter(|_| call.step == Step::Proved);
    let body = Body {
        block_number: call.block,
        cluster_id,
        proving_time: of_proof.map(|it| it.proving_ms.max(1)),
        proving_cycles: of_proof.and_then(|it| it.cycles).filter(|it| *it > 0),
        proof: of_proof.map(|_| STANDARD.encode(proof)),
        verifier_id: verifier_id.filter(|_| of_proof.is_some()),
    };
    serde_json::to_vec(&body).expect("numbers and strings are JSON")
}

// === impl Step ===

impl Step {
    /// All steps, in order.
    pub const ALL: [Self; 3] = [Self::Queued, Self::Proving, Self::Proved];

    /// Name of the step, which is also the last part of its call's path.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Proving => "proving",
            Self::Proved => "proved",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(step: Step) -> Call {
        Call {
            id: 1,
            block: 19_000_000,
            step,
            proof: (step == Step::Proved).then_some(Proof {
                proving_ms: 9_871,
                cycles: Some(10_000),
                bytes: 3,
            }),
        }
    }

    #[test]
    fn bodies_are_as_the_site_describes_them() {
        for step in [Step::Queued, Step::Proving] {
            let body = body(&call(step), 4, Some("vk"), b"");
            let expected = r#"{"block_number":19000000,"cluster_id":4}"#;
            assert_eq!(String::from_utf8_lossy(&body), expected);
        }
        let proved = body(&call(Step::Proved), 4, Some("vk"), &[0, 1, 255]);
        let expected = r#"{"block_number":19000000,"cluster_id":4,"proving_time":9871,"proving_cycles":10000,"proof":"AAH/","verifier_id":"vk"}"#;
        assert_eq!(String::from_utf8_lossy(&proved), expected);
    }

    #[test]
    fn what_is_unknown_is_left_out_and_no_time_is_zero() {
        let mut call = call(Step::Proved);
        call.proof = Some(Proof {
            proving_ms: 0,
            cycles: None,
            bytes: 1,
        });
        let body = body(&call, 4, None, b"x");
        let expected =
            r#"{"block_number":19000000,"cluster_id":4,"proving_time":1,"proof":"eA=="}"#;
        assert_eq!(String::from_utf8_lossy(&body), expected);
    }
}
