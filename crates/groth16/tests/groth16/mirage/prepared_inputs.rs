//! Public inputs that are prepared, in place of the inputs.

use ark_ec::CurveGroup;
use ark_ff::One;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::mirage::{Inputs, PreparedInputs, verify};
use proofmill_groth16::{Bn254, Curve, SnarkCurve, VerifyError, with_curve};

use super::support::{Case, SMALL, random_g1, sum};

fn every_range<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(1);
    let case = Case::<E>::random(SMALL, rng);
    let (vk, inputs) = (case.key.vk(), case.inputs());
    let one = E::ScalarField::one();
    let whole = sum::<E>(&vk.plain.instance, case.assignment.instance());
    let given = case.verifier.input_point(inputs.into()).unwrap();
    assert_eq!(given, whole);
    for first in 0..=inputs.len() {
        for end in first..=inputs.len() {
            let fixed = &inputs[first..end];
            let prepared = PreparedInputs::new(&vk, first, fixed).unwrap();
            let expected = sum::<E>(&vk.plain.instance[1 + first..1 + end], fixed);
            assert_eq!(prepared.point, expected.into_affine());
            let rest = [&inputs[..first], &inputs[end..]].concat();
            let check = |rest: &[E::ScalarField], prepared: &PreparedInputs<E>| {
                let inputs = Inputs::with_prepared(rest, prepared);
                verify(&case.verifier, inputs, &case.commitment, &case.proof)
            };
            assert_eq!(check(&rest, &prepared), Ok(()));
            let inputs = Inputs::with_prepared(&rest, &prepared);
            assert_eq!(case.verifier.input_point(inputs).unwrap(), whole);

            let mut wrong = prepared;
            wrong.point = random_g1::<E>(rng);
            assert_eq!(check(&rest, &wrong), Err(VerifyError::Invalid));
            if let [value, ..] = fixed {
                let wrong = [&[*value + one], &fixed[1..]].concat();
                let wrong = PreparedInputs::new(&vk, first, &wrong).unwrap();
                assert_eq!(check(&rest, &wrong), Err(VerifyError::Invalid));
            }
            for index in 0..rest.len() {
                let mut wrong = rest.clone();
                wrong[index] += one;
                assert_eq!(check(&wrong, &prepared), Err(VerifyError::Invalid));
            }
            // The rest in other places than it belongs.
            if first + 1 < end && !rest.is_empty() && first > 0 {
                let shifted = PreparedInputs {
                    first: 0,
                    ..prepared
                };
                assert_eq!(check(&rest, &shifted), Err(VerifyError::Invalid));
            }
            let longer = [&rest[..], &[one]].concat();
            let refused = check(&longer, &prepared);
            assert!(matches!(refused, Err(VerifyError::InputCount { .. })));
        }
    }
}

#[test]
fn any_range_can_be_prepared() {
    for curve in Curve::ALL {
        with_curve!(curve, E => every_range::<E>());
    }
}

#[test]
fn ranges_outside_of_the_inputs_are_refused() {
    let rng = &mut StdRng::seed_from_u64(2);
    let case = Case::<Bn254>::random(SMALL, rng);
    let vk = case.key.vk();
    let values = case.inputs();
    for first in [1, 4, 5, usize::MAX - 1, usize::MAX] {
        let refused = PreparedInputs::new(&vk, first, values).unwrap_err();
        let expected = VerifyError::InputRange {
            first,
            count: 4,
            inputs: 4,
        };
        assert_eq!(refused, expected);
    }
    let good = PreparedInputs::new(&vk, 0, values).unwrap();
    for (first, count) in [(1, 4), (5, 0), (0, usize::MAX), (usize::MAX, 1), (3, 2)] {
        let wrong = PreparedInputs {
            first,
            count,
            ..good
        };
        let inputs = Inputs::with_prepared(&[], &wrong);
        let refused = verify(&case.verifier, inputs, &case.commitment, &case.proof);
        assert!(
            matches!(refused, Err(VerifyError::InputRange { .. })),
            "{first} {count}"
        );
    }
    // Fewer than the circuit has, and nothing given for the others.
    let wrong = PreparedInputs { count: 3, ..good };
    let inputs = Inputs::with_prepared(&[], &wrong);
    let refused = verify(&case.verifier, inputs, &case.commitment, &case.proof);
    let expected = VerifyError::InputCount {
        expected: 4,
        found: 3,
    };
    assert_eq!(refused, Err(expected));
}
