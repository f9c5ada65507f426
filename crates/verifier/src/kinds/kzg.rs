//! KZG proofs of Ethereum's blobs and cells.

use std::sync::Arc;

use proofmill_kernels::NoRandomness;
use proofmill_kzg::{Claim, Request, Scalar, Value, Verifier, draw_weights};

use crate::isolation::Costs;
use crate::kind::{Invalid, Kind, UnusableKey};

/// Blob proofs (EIP-4844) and cell proofs (EIP-7594) under the trusted setup of Ethereum's main
/// network, in one batch. A proof is an encoded [`Request`], which contains the blob or the cell; the
/// statement is empty. Each cell is a separate proof, so each has its own verdict.
#[derive(Debug)]
pub struct Kzg {
    verifier: Verifier,
}

// === impl Kzg ===

impl Kzg {
    /// The kind.
    pub fn new() -> Self {
        Self {
            verifier: Verifier::new(),
        }
    }
}

impl Default for Kzg {
    fn default() -> Self {
        Self::new()
    }
}

impl Kind for Kzg {
    type Key = ();
    type Claim = Claim;
    type Weight = Scalar;
    type Value = Value;

    fn name(&self) -> &str {
        "kzg"
    }

    fn has_keys(&self) -> bool {
        false
    }

    fn read_key(&self, _: &[u8]) -> Result<(), UnusableKey> {
        Err(UnusableKey::because(
            "blobs and cells have no keys: their trusted setup is fixed",
        ))
    }

    fn reduce(
        &self,
        _: Option<&Arc<()>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<Claim, Invalid> {
        if !statement.is_empty() {
            return Err(Invalid("a statement, where the proof has all".into()));
        }
        let request = Request::decode(proof).map_err(Invalid::because)?;
        self.verifier.reduce(&request).map_err(Invalid::because)
    }

    fn draw_weights(&self, count: usize) -> Result<Vec<Scalar>, NoRandomness> {
        draw_weights(count)
    }

    fn times(&self, weight: &Scalar, factor: u64) -> Scalar {
        *weight * Scalar::from(factor)
    }

    fn value(&self, claims: &[(&Claim, Scalar)]) -> Value {
        self.verifier.value(claims)
    }

    fn check(&self, claim: &Claim) -> Result<(), Invalid> {
        self.verifier.check(claim).map_err(Invalid::because)
    }

    fn costs(&self) -> Costs {
        // Three pairings, however many; each claim adds a few points to products.
        Costs {
            fixed: 20.0,
            each: 1.0,
        }
    }
}
