//! Openings under small SRS, made by our own prover: valid ones are accepted, all others refused.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{One, UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_ipa::{BatchError, Invalid, Opening, Point, Scalar, Srs, Verifier, Weights};
use proptest::prelude::*;

/// A way to change an opening.
type Change = Box<dyn Fn(&mut Opening)>;

fn setup(log_size: u32) -> (Srs, Verifier) {
    let srs = Srs::derive(log_size);
    let verifier = Verifier::new(&srs, 1 << 20);
    (srs, verifier)
}

fn random_opening(srs: &Srs, rng: &mut StdRng) -> Opening {
    let coefficients: Vec<_> = srs.points().iter().map(|_| Scalar::rand(rng)).collect();
    Opening::prove(srs, &coefficients, Scalar::rand(rng)).unwrap()
}

/// Every field of an opening, each changed to another valid value of its kind.
fn changes(log_size: u32) -> Vec<(String, Change)> {
    fn moved(point: &mut Point) {
        *point = (*point + Point::generator()).into_affine();
    }
    let mut changes: Vec<(String, Change)> = vec![
        ("C".into(), Box::new(|o| moved(&mut o.claim.commitment))),
        ("v".into(), Box::new(|o| o.claim.value += Scalar::one())),
        ("G₀".into(), Box::new(|o| moved(&mut o.folded_base))),
        (
            "G₀ at infinity".into(),
            Box::new(|o| o.folded_base = Point::zero()),
        ),
        (
            "a₀".into(),
            Box::new(|o| o.folded_coefficient += Scalar::one()),
        ),
        (
            "a₀ zero".into(),
            Box::new(|o| o.folded_coefficient = Scalar::zero()),
        ),
    ];
    if log_size > 0 {
        // A constant polynomial has its value everywhere.
        changes.push(("x".into(), Box::new(|o| o.claim.point += Scalar::one())));
    }
    for round in 0..log_size as usize {
        changes.push((
            format!("L of {round}"),
            Box::new(move |o| moved(&mut o.rounds[round].left)),
        ));
        changes.push((
            format!("R of {round}"),
            Box::new(move |o| moved(&mut o.rounds[round].right)),
        ));
        changes.push((
            format!("L and R of {round} exchanged"),
            Box::new(move |o| {
                let round = &mut o.rounds[round];
                std::mem::swap(&mut round.left, &mut round.right);
            }),
        ));
    }
    changes
}

#[test]
fn every_size_is_accepted_and_every_change_refused() {
    let rng = &mut StdRng::seed_from_u64(1);
    for log_size in 0..=6 {
        let (srs, verifier) = setup(log_size);
        let opening = random_opening(&srs, rng);
        assert_eq!(verifier.verify(&opening), Ok(()), "2^{log_size}");
        verifier
            .verify_batch(std::slice::from_ref(&opening))
            .unwrap();
        for (name, change) in changes(log_size) {
            let mut changed = opening.clone();
            change(&mut changed);
            assert!(verifier.verify(&changed).is_err(), "2^{log_size}: {name}");
            let batch = verifier.verify_batch(&[opening.clone(), changed]);
            assert!(
                matches!(batch, Err(BatchError::Invalid(2))),
                "2^{log_size}: {name}: {batch:?}"
            );
        }
    }
}

/// Polynomials whose commitments and round points are at infinity, equal or opposite.
#[test]
fn degenerate_polynomials_are_accepted() {
    let (srs, verifier) = setup(4);
    let polynomials = [
        vec![Scalar::zero(); 16],
        vec![Scalar::one(); 16],
        (0..16u64)
            .map(|i| Scalar::from(u64::from(i == 0)))
            .collect(),
        (0..16u64)
            .map(|i| Scalar::from(u64::from(i == 15)))
            .collect(),
        (0..16u64).map(|i| Scalar::from(i / 8)).collect(),
    ];
    let openings: Vec<_> = polynomials
        .iter()
        .flat_map(|coefficients| {
            [
                Scalar::zero(),
                Scalar::one(),
                -Scalar::one(),
                Scalar::from(2),
            ]
            .map(|point| Opening::prove(&srs, coefficients, point).unwrap())
        })
        .collect();
    for opening in &openings {
        assert_eq!(verifier.verify(opening), Ok(()));
        let bytes = opening.to_compact();
        assert_eq!(Opening::from_compact(&bytes).as_ref(), Ok(opening));
    }
    verifier.verify_batch(&openings).unwrap();
}

/// Two wrong G₀ whose sum is right: equal weights would not detect them.
#[test]
fn errors_that_cancel_each_other_are_refused() {
    let rng = &mut StdRng::seed_from_u64(2);
    let (srs, verifier) = setup(5);
    let mut openings = [random_opening(&srs, rng), random_opening(&srs, rng)];
    let [first, second] = &mut openings;
    first.folded_base = (first.folded_base + Point::generator()).into_affine();
    second.folded_base = (second.folded_base - Point::generator()).into_affine();
    let batch = verifier.verify_batch(&openings);
    assert!(matches!(batch, Err(BatchError::Invalid(2))), "{batch:?}");
}

#[test]
fn reasons_are_told() {
    let rng = &mut StdRng::seed_from_u64(3);
    let (srs, verifier) = setup(3);
    let good = random_opening(&srs, rng);
    let mut value = good.clone();
    value.claim.value += Scalar::one();
    assert_eq!(verifier.verify(&value), Err(Invalid::Argument));
    let small = random_opening(&srs.prefix(2), rng);
    let rounds = Invalid::Rounds {
        expected: 3,
        found: 2,
    };
    assert_eq!(verifier.verify(&small), Err(rounds));
    let batch = verifier.verify_batch(&[good, small]).unwrap_err();
    assert_eq!(
        batch.to_string(),
        "opening 1: an argument of 2 rounds: the SRS of 2^3 points takes 3"
    );
}

#[test]
fn no_openings_are_all_valid() {
    let (_, verifier) = setup(2);
    verifier.verify_batch(&[]).unwrap();
    assert!(verifier.value(&[]).is_zero());
}

/// The properties that a bisection relies on.
#[test]
fn values_of_parts_add_up_and_locate_one_bad_opening() {
    let rng = &mut StdRng::seed_from_u64(4);
    let (srs, verifier) = setup(4);
    let mut openings: Vec<_> = (0..9).map(|_| random_opening(&srs, rng)).collect();
    openings[6].claim.value += Scalar::one();
    let claims: Vec<_> = openings
        .iter()
        .map(|o| verifier.reduce(o).unwrap())
        .collect();
    let weighted: Vec<_> = claims.iter().zip(Weights::draw(9).unwrap()).collect();
    let all = verifier.value(&weighted);
    let (left, right) = weighted.split_at(4);
    assert!(verifier.value(left).is_zero() && !all.is_zero());
    assert_eq!(verifier.value(left) + verifier.value(right), all);
    let numbered: Vec<_> = weighted
        .iter()
        .zip(1..)
        .map(|((claim, weights), number)| (*claim, weights.times(number)))
        .collect();
    assert_eq!(verifier.value(&numbered), all * Scalar::from(7));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The batch is valid exactly if every opening is.
    #[test]
    fn batches_agree_with_single_checks(
        seed in any::<u64>(),
        log_size in 0u32..5,
        bad in prop::collection::vec(prop::option::weighted(0.15, any::<prop::sample::Index>()), 0..20),
    ) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let (srs, verifier) = setup(log_size);
        let changes = changes(log_size);
        let openings: Vec<_> = bad.iter().map(|bad| {
            let mut opening = random_opening(&srs, rng);
            if let Some(index) = bad {
                index.get(&changes).1(&mut opening);
            }
            opening
        }).collect();
        for (opening, bad) in openings.iter().zip(&bad) {
            prop_assert_eq!(verifier.verify(opening).is_err(), bad.is_some());
        }
        let any_bad = bad.iter().any(Option::is_some);
        prop_assert_eq!(verifier.verify_batch(&openings).is_err(), any_bad);
    }

    #[test]
    fn compact_openings_are_read_back(seed in any::<u64>(), log_size in 0u32..5) {
        let opening = random_opening(&Srs::derive(log_size), &mut StdRng::seed_from_u64(seed));
        let bytes = opening.to_compact();
        prop_assert_eq!(bytes.len(), Opening::compact_size(log_size as usize));
        prop_assert_eq!(Opening::from_compact(&bytes), Ok(opening));
    }
}
