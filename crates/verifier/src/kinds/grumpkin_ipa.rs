//! Inner-product arguments over Grumpkin, as `bb`'s rollup proofs carry them.

use std::sync::Arc;

use proofmill_ipa::{DeferredClaim, Opening, Srs, Sum, Verifier, Weights};
use proofmill_kernels::NoRandomness;

use crate::isolation::Costs;
use crate::kind::{Invalid, Kind, UnusableKey};

/// The opening of a `noir-rollup` proof (15,360 bytes), or such an opening in the compact form
/// ([`Opening::to_compact`]). The statement is empty: the opening is all that is checked, not the
/// circuit around it.
#[derive(Debug)]
pub struct GrumpkinIpa {
    verifier: Verifier,
}

/// Copies of the SRS's multiples take about 2 MiB each.
const PREPARED_BYTES: usize = 16 << 20;

// === impl GrumpkinIpa ===

impl GrumpkinIpa {
    /// The kind of openings under an SRS, which is prepared here.
    pub fn new(srs: &Srs) -> Self {
        Self {
            verifier: Verifier::new(srs, PREPARED_BYTES),
        }
    }
}

impl Kind for GrumpkinIpa {
    type Key = ();
    type Claim = DeferredClaim;
    type Weight = Weights;
    type Value = Sum;

    fn name(&self) -> &str {
        "grumpkin-ipa"
    }

    fn has_keys(&self) -> bool {
        false
    }

    fn read_key(&self, _: &[u8]) -> Result<(), UnusableKey> {
        Err(UnusableKey::because(
            "openings have no keys: their SRS is fixed",
        ))
    }

    fn reduce(
        &self,
        _: Option<&Arc<()>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<DeferredClaim, Invalid> {
        if !statement.is_empty() {
            return Err(Invalid("a statement, where an opening has none".into()));
        }
        let opening = match proof.len() {
            Opening::ROLLUP_PROOF_BYTES => Opening::from_rollup_proof(proof),
            _ => Opening::from_compact(proof),
        };
        let opening = opening.map_err(Invalid::because)?;
        self.verifier.reduce(&opening).map_err(Invalid::because)
    }

    fn draw_weights(&self, count: usize) -> Result<Vec<Weights>, NoRandomness> {
        Weights::draw(count)
    }

    fn times(&self, weight: &Weights, factor: u64) -> Weights {
        weight.times(factor)
    }

    fn value(&self, claims: &[(&DeferredClaim, Weights)]) -> Sum {
        self.verifier.value(claims)
    }

    fn check(&self, claim: &DeferredClaim) -> Result<(), Invalid> {
        self.verifier.check(claim).map_err(Invalid::because)
    }

    /// The argument with the prover's G₀: all that is not forged by a free G₀ fails here.
    fn screen(&self, claim: &DeferredClaim) -> Option<Result<(), Invalid>> {
        let argument = self.verifier.check_argument(claim);
        Some(argument.map_err(Invalid::because))
    }

    fn costs(&self) -> Costs {
        // One more opening takes a fiftieth of a check (`docs/performance.md`).
        Costs {
            fixed: 50.0,
            each: 1.0,
        }
    }
}
