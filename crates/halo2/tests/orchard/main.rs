//! Orchard bundles, made by `examples/make_data.rs`, against the `orchard` crate's own verification.

#[expect(unreachable_pub, reason = "examples read and write bundles with it")]
mod bundles;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use ark_ff::{BigInteger, One, PrimeField, Zero};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use orchard::bundle::{Authorized, BatchValidator};
use orchard::circuit::{Instance, OrchardCircuitVersion, VerifyingKey as OrchardKey};
use orchard::note::{ExtractedNoteCommitment, Nullifier};
use orchard::value::ValueCommitment;
use orchard::{Anchor, Bundle as WholeBundle, Proof};
use proofmill_halo2::orchard::{ACTION_INPUTS, Bundle, BundleError, K, verifying_key};
use proofmill_halo2::{Claim, Invalid, Params, Scalar, Sum, Verifier, VerifyingKey, draw_weights};
use rand_next::rand_core::UnwrapErr;
use rand_next::rngs::SysRng;

static REFERENCE: LazyLock<OrchardKey> =
    LazyLock::new(|| OrchardKey::build(OrchardCircuitVersion::PostNu6_3));
static KEY: LazyLock<Arc<VerifyingKey>> = LazyLock::new(|| Arc::new(verifying_key()));
static VERIFIER: LazyLock<Verifier> =
    LazyLock::new(|| Verifier::new(&Params::derive(K), ACTION_INPUTS, 4 << 20));
static VALID: LazyLock<Vec<Bundle>> = LazyLock::new(|| {
    let name = |outputs| format!("orchard-{outputs}.bundle");
    let bundle = |outputs| Bundle::decode(&read(&name(outputs))).unwrap();
    (1..=4).map(bundle).collect()
});
/// The same bundles with their signatures.
static WHOLE: LazyLock<Vec<WholeBundle<Authorized, i64>>> = LazyLock::new(|| {
    let rest = |outputs| read(&format!("orchard-{outputs}.rest"));
    let whole = VALID.iter().zip(1..);
    whole
        .map(|(bundle, outputs)| bundles::read(bundle, &rest(outputs)))
        .collect()
});

fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::read(path.join(name)).unwrap()
}

fn reduce(bundle: &Bundle) -> Result<Claim, Invalid> {
    VERIFIER.reduce(&KEY, &bundle.instances().unwrap(), &bundle.proof)
}

fn verify(bundle: &Bundle) -> Result<(), Invalid> {
    VERIFIER.check(&reduce(bundle)?)
}

/// The verdict of the `orchard` crate on a bundle whose fields it can read.
fn reference_accepts(bundle: &Bundle) -> bool {
    let flags = bundles::flags(bundle.flags).unwrap();
    let instances: Vec<Instance> = bundle
        .actions
        .iter()
        .map(|action| {
            Instance::from_parts(
                Anchor::from_bytes(bundle.anchor).unwrap(),
                ValueCommitment::from_bytes(&action.net_value).unwrap(),
                Nullifier::from_bytes(&action.nullifier).unwrap(),
                action.randomized_key.try_into().unwrap(),
                ExtractedNoteCommitment::from_bytes(&action.note_commitment).unwrap(),
                flags,
            )
            .unwrap()
        })
        .collect();
    let proof = Proof::new(bundle.proof.clone());
    proof.verify(&REFERENCE, &instances).is_ok()
}

/// Adds one to an element.
fn increment(bytes: &mut [u8]) {
    let value = Scalar::from_le_bytes_mod_order(bytes) + Scalar::one();
    bytes.copy_from_slice(&value.into_bigint().to_bytes_le());
}

#[test]
fn bundles_are_accepted() {
    for (bundle, actions) in VALID.iter().zip([2, 2, 3, 4]) {
        assert_eq!(bundle.actions.len(), actions);
        assert!(reference_accepts(bundle));
        assert_eq!(verify(bundle), Ok(()));
    }
    for (number, (whole, bundle)) in WHOLE.iter().zip(VALID.iter()).enumerate() {
        assert_eq!(bundles::statement(whole), *bundle);
        let rest = read(&format!("orchard-{}.rest", number + 1));
        assert_eq!(bundles::rest(whole), rest);
    }
}

/// The `orchard` crate's batches have one verdict for all, of proofs and signatures.
#[test]
fn batches_agree_with_orchards() {
    let rng = &mut StdRng::seed_from_u64(5);
    for bad_count in [0, 1, 2, 4] {
        let mut statements = VALID.clone();
        for bundle in &mut statements[..bad_count] {
            // A canonical number, but a wrong one.
            let at = bundle.proof.len() - 32 * rng.gen_range(1..=2);
            increment(&mut bundle.proof[at..at + 32]);
        }
        let mut batch = BatchValidator::new(&REFERENCE);
        for (number, statement) in statements.iter().enumerate() {
            let rest = bundles::rest(&WHOLE[number]);
            let whole = bundles::read(statement, &rest);
            batch.add_bundle(&whole, [0; 32]).unwrap();
        }
        let claims: Vec<_> = statements.iter().map(|s| reduce(s).unwrap()).collect();
        let weighted: Vec<_> = claims.iter().zip(draw_weights(4).unwrap()).collect();
        assert_eq!(VERIFIER.all_hold(&weighted), bad_count == 0);
        assert_eq!(batch.validate(UnwrapErr(SysRng)), bad_count == 0);
    }
}

/// A way to change a bundle.
type Change = Box<dyn Fn(&mut Bundle)>;

/// Each field of a bundle, changed to another that can be read.
fn changes(actions: usize) -> Vec<(String, Change)> {
    let mut changes: Vec<(String, Change)> = vec![
        ("anchor".into(), Box::new(|b| increment(&mut b.anchor))),
        (
            "spends".into(),
            Box::new(|b| b.flags.spends_enabled ^= true),
        ),
        (
            "outputs".into(),
            Box::new(|b| b.flags.outputs_enabled ^= true),
        ),
        (
            "restriction".into(),
            Box::new(|b| b.flags.cross_address_disabled ^= true),
        ),
    ];
    for action in 0..actions {
        let named = |name: &str| format!("{name} of action {action}");
        changes.extend([
            (
                named("value commitment"),
                // The opposite point.
                Box::new(move |b: &mut Bundle| b.actions[action].net_value[31] ^= 0x80) as Change,
            ),
            (
                named("nullifier"),
                Box::new(move |b| increment(&mut b.actions[action].nullifier)),
            ),
            (
                named("randomized key"),
                Box::new(move |b| b.actions[action].randomized_key[31] ^= 0x80),
            ),
            (
                named("note commitment"),
                Box::new(move |b| increment(&mut b.actions[action].note_commitment)),
            ),
        ]);
    }
    changes
}

#[test]
fn every_changed_field_is_refused() {
    let bundle = &VALID[2];
    for (name, change) in changes(bundle.actions.len()) {
        let mut changed = bundle.clone();
        change(&mut changed);
        assert_eq!(verify(&changed), Err(Invalid::Proof), "{name}");
        assert!(!reference_accepts(&changed), "{name}");
    }
    let mut swapped = bundle.clone();
    swapped.actions.swap(0, 1);
    assert_eq!(verify(&swapped), Err(Invalid::Proof));
    assert!(!reference_accepts(&swapped));
}

#[test]
fn every_changed_element_of_a_proof_is_refused() {
    let bundle = &VALID[0];
    for at in (0..bundle.proof.len()).step_by(32) {
        let mut changed = bundle.clone();
        changed.proof[at] ^= 1;
        assert!(verify(&changed).is_err(), "byte {at}");
        if at % 512 == 0 {
            assert!(!reference_accepts(&changed), "byte {at}");
        }
    }
}

#[test]
fn fields_that_mean_nothing_are_refused() {
    let refuse = |change: &dyn Fn(&mut Bundle), expected: &str| {
        let mut changed = VALID[0].clone();
        change(&mut changed);
        let error = changed.instances().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refuse(
        &|b| b.anchor = [0xff; 32],
        "anchor of action 0 is not below",
    );
    refuse(
        &|b| b.actions[1].nullifier = [0xff; 32],
        "nullifier of action 1",
    );
    refuse(
        &|b| b.actions[1].note_commitment = [0xff; 32],
        "note commitment of action 1",
    );
    refuse(
        &|b| b.actions[0].net_value = [0xff; 32],
        "value commitment of action 0 is no point",
    );
    refuse(
        &|b| b.actions[0].randomized_key = [0; 32],
        "randomized key of action 0 is no point of Pallas that may be there",
    );
}

#[test]
fn bundles_are_read_back_and_other_bytes_refused() {
    for bundle in VALID.iter() {
        let bytes = bundle.encode();
        assert_eq!(Bundle::decode(&bytes).as_ref(), Ok(bundle));
        assert_eq!(
            bundle.proof.len(),
            Bundle::proof_bytes(bundle.actions.len())
        );
        for wrong in [
            &bytes[..bytes.len() - 1],
            &bytes[..10],
            &[&bytes[..], &[0]].concat(),
        ] {
            let error = Bundle::decode(wrong).unwrap_err();
            assert!(matches!(error, BundleError::Length { .. }), "{error}");
        }
    }
    let bytes = VALID[0].encode();
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Bundle::decode(&bytes).unwrap_err()
    };
    assert_eq!(changed(0, 0), BundleError::Magic);
    assert_eq!(changed(4, 2), BundleError::Version(2));
    assert_eq!(changed(5, 8), BundleError::Flags(8));
    assert_eq!(changed(7, 0), BundleError::NoActions);
    assert!(matches!(changed(7, 3), BundleError::Length { .. }));
}

/// Indices of the false claims, given the sum `value` of all: the second half's sum is found by subtraction, and
/// single claims are checked.
fn bad(claims: &[(&Claim, Scalar)], first: usize, value: Sum) -> Vec<usize> {
    match claims {
        _ if value.is_zero() => Vec::new(),
        [(claim, _)] => {
            assert_eq!(VERIFIER.check(claim), Err(Invalid::Proof));
            vec![first]
        }
        _ => {
            let (left, right) = claims.split_at(claims.len() / 2);
            let left_value = VERIFIER.value(left);
            let mut found = bad(left, first, left_value);
            found.extend(bad(right, first + left.len(), value - left_value));
            found
        }
    }
}

#[test]
fn batches_name_the_bad_ones() {
    let rng = &mut StdRng::seed_from_u64(3);
    let judged = |bundle: &Bundle| (reduce(bundle).unwrap(), reference_accepts(bundle));
    let good: Vec<_> = VALID.iter().map(judged).collect();
    let mut wrong = Vec::new();
    for bundle in VALID.iter() {
        let changes = changes(bundle.actions.len());
        for _ in 0..2 {
            let mut changed = bundle.clone();
            changes[rng.gen_range(0..changes.len())].1(&mut changed);
            wrong.push(judged(&changed));
        }
    }
    assert!(good.iter().all(|sample| sample.1) && wrong.iter().all(|sample| !sample.1));
    for count in [1, 2, 5, 16, 33, 64] {
        for bad_count in [0, 1, 2, count / 2, count] {
            if bad_count > count {
                continue;
            }
            let mut samples: Vec<_> = (0..count)
                .map(|number| if number < bad_count { &wrong } else { &good })
                .map(|from| from.choose(rng).unwrap())
                .collect();
            samples.shuffle(rng);
            let weights = draw_weights(count).unwrap();
            let claims: Vec<_> = samples
                .iter()
                .map(|sample| &sample.0)
                .zip(weights)
                .collect();
            let expected: Vec<_> = (0..count).filter(|number| !samples[*number].1).collect();
            let found = bad(&claims, 0, VERIFIER.value(&claims));
            assert_eq!(found, expected, "{bad_count} of {count}");
        }
    }
}
