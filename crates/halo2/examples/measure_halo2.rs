//! Times of verifying Orchard bundles on one thread, of which one is bad, beside halo2's own batches:
//! `cargo run --release -p proofmill-halo2 --example measure_halo2`.

#[path = "../tests/orchard/bundles.rs"]
#[expect(dead_code, unreachable_pub, reason = "a module of a test")]
mod bundles;

use std::sync::Arc;
use std::time::Instant;

use ark_ff::Zero;
use orchard::bundle::{Authorized, BatchValidator};
use orchard::circuit::{OrchardCircuitVersion, VerifyingKey as OrchardKey};
use orchard::{Bundle, Proof};
use proofmill_halo2::orchard::{ACTION_INPUTS, K, verifying_key};
use proofmill_halo2::{Params, Scalar, Verifier, VerifyingKey, draw_weights};
use rand_next::rand_core::UnwrapErr;
use rand_next::rngs::SysRng;

/// Bundles of two actions each, and what else they have.
const FILES: [(&[u8], &[u8]); 2] = [
    (
        include_bytes!("../tests/data/orchard-1.bundle"),
        include_bytes!("../tests/data/orchard-1.rest"),
    ),
    (
        include_bytes!("../tests/data/orchard-2.bundle"),
        include_bytes!("../tests/data/orchard-2.rest"),
    ),
];
/// Bundles of a batch, and which is bad.
const COUNT: usize = 32;
const BAD: usize = 21;

/// Prints the best of some runs, and gives it in milliseconds.
fn time<T>(name: &str, mut work: impl FnMut() -> T) -> f64 {
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_secs_f64() * 1e3
        })
        .fold(f64::MAX, f64::min);
    println!("{name:<56} {best:>9.3} ms");
    best
}

fn read(statement: &[u8], rest: &[u8]) -> Bundle<Authorized, i64> {
    let statement = proofmill_halo2::orchard::Bundle::decode(statement);
    bundles::read(&statement.expect("a bundle"), rest)
}

/// The bundle with a bit of its proof's last number changed.
fn damaged(bundle: &Bundle<Authorized, i64>) -> Bundle<Authorized, i64> {
    let change = |authorization: Authorized| {
        let mut proof = authorization.proof().as_ref().to_vec();
        let last = proof.len() - 32;
        proof[last] ^= 1;
        let signature = authorization.binding_signature().clone();
        Authorized::from_parts(Proof::new(proof), signature)
    };
    bundle
        .clone()
        .map_authorization(&mut (), |(), _, signature| signature, |(), a| change(a))
}

/// Verifies a batch by the `orchard` crate, with a `BatchVerifier` of halo2 for the proofs. Unlike all other times
/// here, this includes the signatures.
fn halo2_batch(key: &OrchardKey, bundles: &[Bundle<Authorized, i64>]) -> bool {
    let mut batch = BatchValidator::new(key);
    for bundle in bundles {
        batch
            .add_bundle(bundle, [0; 32])
            .expect("a bundle of the key");
    }
    batch.validate(UnwrapErr(SysRng))
}

/// Verifies a batch by this crate: all proofs are reduced and one value computed; one more value locates the
/// only bad proof, which is then checked alone.
fn locate(
    verifier: &Verifier,
    key: &Arc<VerifyingKey>,
    statements: &[proofmill_halo2::orchard::Bundle],
) -> Option<usize> {
    let reduced = statements.iter().map(|statement| {
        let instances = statement.instances().expect("fields of a bundle");
        verifier.reduce(key, &instances, &statement.proof)
    });
    let claims: Vec<_> = reduced
        .map(|claim| claim.expect("a proof to check"))
        .collect();
    let weights = draw_weights(claims.len()).expect("random numbers");
    let weighted: Vec<_> = claims.iter().zip(weights).collect();
    let sum = verifier.value(&weighted);
    if sum.is_zero() {
        return None;
    }
    let numbered: Vec<_> = weighted
        .iter()
        .zip(1u64..)
        .map(|((claim, weight), number)| (*claim, *weight * Scalar::from(number)))
        .collect();
    let numbered = verifier.value(&numbered);
    let multiples = std::iter::successors(Some(sum), |multiple| Some(*multiple + sum));
    let found = multiples
        .take(claims.len())
        .position(|multiple| multiple == numbered)?;
    // Its value is a check of that proof alone; the others are valid if they add nothing to the sum.
    assert!(verifier.value(&[weighted[found]]) == sum);
    Some(found)
}

fn measure() {
    let reference = OrchardKey::build(OrchardCircuitVersion::PostNu6_3);
    let made: Vec<_> = FILES
        .iter()
        .map(|(statement, rest)| read(statement, rest))
        .collect();
    let mut bundles: Vec<_> = (0..COUNT).map(|i| made[i % made.len()].clone()).collect();
    assert!(halo2_batch(&reference, &bundles));
    let all_good: Vec<_> = bundles.iter().map(bundles::statement).collect();
    bundles[BAD] = damaged(&bundles[BAD]);
    let statements: Vec<_> = bundles.iter().map(bundles::statement).collect();

    let key = Arc::new(verifying_key());
    let params = Params::derive(K);
    time("making a verifier", || {
        Verifier::new(&params, ACTION_INPUTS, 16 << 20)
    });
    let verifier = Verifier::new(&params, ACTION_INPUTS, 16 << 20);
    let good = &all_good[0];
    let instances = good.instances().expect("fields of a bundle");
    let reduce = || verifier.reduce(&key, &instances, &good.proof);
    let claim = reduce().expect("a valid proof");
    time("single verification by orchard", || {
        made[0].verify_proof(&reference)
    });
    time("reducing", reduce);
    time("checking a reduced proof", || verifier.check(&claim));

    assert!(!halo2_batch(&reference, &bundles));
    time("32, all good: halo2's batch", || {
        halo2_batch(&reference, &bundles)
    });
    time("32, all good", || locate(&verifier, &key, &all_good));
    let theirs = time("32, one bad: halo2's batch, then one by one", || {
        assert!(!halo2_batch(&reference, &bundles));
        let bad = bundles
            .iter()
            .position(|b| b.verify_proof(&reference).is_err());
        assert_eq!(bad, Some(BAD));
        let after = bundles[BAD + 1..].iter();
        assert!(
            after
                .clone()
                .all(|bundle| bundle.verify_proof(&reference).is_ok())
        );
    });
    let ours = time("32, one bad: located by a second sum", || {
        assert_eq!(locate(&verifier, &key, &statements), Some(BAD));
    });
    println!("{:.2} times faster", theirs / ours);
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(measure);
}
