//! Halo2 proofs over Vesta, and those of Zcash's Orchard bundles.

use std::sync::{Arc, OnceLock};

use proofmill_halo2::orchard::{self, Bundle};
use proofmill_halo2::{
    Claim, Params, Scalar, Sum, Verifier, VerifyingKey, decode_instances, draw_weights,
};
use proofmill_kernels::NoRandomness;

use crate::isolation::Costs;
use crate::kind::{Invalid, Kind, UnusableKey};

/// Proofs of `halo2_proofs` 0.4 over Vesta, under any keys.
///
/// A key is the text that pins it, `format!("{:?}", key.pinned())`; the statement has the public inputs
/// ([`encode_instances`](proofmill_halo2::encode_instances)).
#[derive(Debug)]
pub struct Halo2 {
    verifier: Arc<Verifier>,
}

/// Orchard bundles under the key of the newest circuit. A proof is an encoded [`Bundle`], which contains the
/// statement; the request's statement is empty. [`proofmill_halo2::orchard`] lists the parts of a bundle that are
/// not checked, such as its signatures.
#[derive(Debug)]
pub struct Orchard {
    verifier: Arc<Verifier>,
    key: Arc<VerifyingKey>,
}

/// The most public inputs of a column.
const MAX_INPUTS: usize = 32;
/// Memory limit in bytes for the multiples of the fixed points; one copy takes 128 KiB.
const PREPARED_BYTES: usize = 4 << 20;

/// The verifier that both kinds share, for circuits of up to as many rows as Orchard's. Its points are derived
/// once in a process.
fn verifier() -> Arc<Verifier> {
    static VERIFIER: OnceLock<Arc<Verifier>> = OnceLock::new();
    if let Some(verifier) = VERIFIER.get() {
        return Arc::clone(verifier);
    }
    // Not within the cell's initialization: this works on a pool of threads, and one of them may call this
    // function meanwhile and would then wait for itself.
    let made = Verifier::new(&Params::derive(orchard::K), MAX_INPUTS, PREPARED_BYTES);
    Arc::clone(VERIFIER.get_or_init(|| Arc::new(made)))
}

/// Milliseconds for the fixed points, and for the own points of one bundle of two actions, measured by
/// `examples/measure_halo2.rs` of `proofmill-halo2`. Neither kind has a screen, as no equation is cheaper than
/// the last one: the constraints only determine the opening's value.
const COSTS: Costs = Costs {
    fixed: 3.0,
    each: 1.0,
};

// === impl Halo2 ===

impl Halo2 {
    /// The kind for circuits of up to 2¹¹ rows and 32 public inputs in a column.
    pub fn new() -> Self {
        Self::with(verifier())
    }

    /// The kind with a verifier for circuits of other sizes.
    pub fn with(verifier: Arc<Verifier>) -> Self {
        Self { verifier }
    }
}

impl Default for Halo2 {
    fn default() -> Self {
        Self::new()
    }
}

impl Kind for Halo2 {
    type Key = VerifyingKey;
    type Claim = Claim;
    type Weight = Scalar;
    type Value = Sum;

    fn name(&self) -> &str {
        "halo2"
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn read_key(&self, bytes: &[u8]) -> Result<VerifyingKey, UnusableKey> {
        let text = std::str::from_utf8(bytes).map_err(UnusableKey::because)?;
        // A file of text may end with a line break, which no pinned key has.
        let key = VerifyingKey::from_pinned(text.trim_end()).map_err(UnusableKey::because)?;
        let (rows, most) = (key.k(), self.verifier.k());
        if rows > most {
            return Err(UnusableKey(format!(
                "the circuit has 2^{rows} rows: this verifier has points for 2^{most}"
            )));
        }
        Ok(key)
    }

    fn reduce(
        &self,
        key: Option<&Arc<VerifyingKey>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<Claim, Invalid> {
        let Some(key) = key else {
            return Err(Invalid("no verifying key".into()));
        };
        let instances = decode_instances(statement, key.instance_columns());
        let instances = instances.map_err(Invalid::because)?;
        let reduced = self.verifier.reduce(key, &instances, proof);
        reduced.map_err(Invalid::because)
    }

    fn draw_weights(&self, count: usize) -> Result<Vec<Scalar>, NoRandomness> {
        draw_weights(count)
    }

    fn times(&self, weight: &Scalar, factor: u64) -> Scalar {
        *weight * Scalar::from(factor)
    }

    fn value(&self, claims: &[(&Claim, Scalar)]) -> Sum {
        self.verifier.value(claims)
    }

    fn check(&self, claim: &Claim) -> Result<(), Invalid> {
        self.verifier.check(claim).map_err(Invalid::because)
    }

    fn costs(&self) -> Costs {
        COSTS
    }
}

// === impl Orchard ===

impl Orchard {
    /// The kind.
    pub fn new() -> Self {
        Self {
            verifier: verifier(),
            key: Arc::new(orchard::verifying_key()),
        }
    }
}

impl Default for Orchard {
    fn default() -> Self {
        Self::new()
    }
}

impl Kind for Orchard {
    type Key = ();
    type Claim = Claim;
    type Weight = Scalar;
    type Value = Sum;

    fn name(&self) -> &str {
        "orchard"
    }

    fn has_keys(&self) -> bool {
        false
    }

    fn read_key(&self, _: &[u8]) -> Result<(), UnusableKey> {
        Err(UnusableKey::because(
            "bundles have no keys: their circuit is fixed",
        ))
    }

    fn reduce(
        &self,
        _: Option<&Arc<()>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<Claim, Invalid> {
        if !statement.is_empty() {
            return Err(Invalid("a statement, where the bundle has all".into()));
        }
        let bundle = Bundle::decode(proof).map_err(Invalid::because)?;
        let instances = bundle.instances().map_err(Invalid::because)?;
        let reduced = self.verifier.reduce(&self.key, &instances, &bundle.proof);
        reduced.map_err(Invalid::because)
    }

    fn draw_weights(&self, count: usize) -> Result<Vec<Scalar>, NoRandomness> {
        draw_weights(count)
    }

    fn times(&self, weight: &Scalar, factor: u64) -> Scalar {
        *weight * Scalar::from(factor)
    }

    fn value(&self, claims: &[(&Claim, Scalar)]) -> Sum {
        self.verifier.value(claims)
    }

    fn check(&self, claim: &Claim) -> Result<(), Invalid> {
        self.verifier.check(claim).map_err(Invalid::because)
    }

    fn costs(&self) -> Costs {
        COSTS
    }
}
