//! Keys under which proofs prove nothing: forged proofs hold, and the keys are named.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};

use proofmill_groth16::{
    Bls12_377, Bls12_381, Bn254, KeyElement, PreparedVerifyingKey, Proof, SnarkCurve, VerifyingKey,
    Weakness, verify,
};

fn random_key<E: SnarkCurve>(rng: &mut StdRng) -> VerifyingKey<E> {
    let g2 = |rng: &mut StdRng| E::G2::rand(rng).into_affine();
    VerifyingKey {
        circuit: [0; 32],
        alpha_g1: E::G1::rand(rng).into_affine(),
        beta_g2: g2(rng),
        gamma_g2: g2(rng),
        delta_g2: g2(rng),
        instance: (0..4).map(|_| E::G1::rand(rng).into_affine()).collect(),
    }
}

/// The sum of the instance's points over the inputs.
fn input_point<E: SnarkCurve>(key: &VerifyingKey<E>, inputs: &[E::ScalarField]) -> E::G1 {
    let terms = key.instance[1..].iter().zip(inputs);
    terms.fold(key.instance[0].into_group(), |sum, (point, input)| {
        sum + *point * input
    })
}

/// Checks that a key is found to have `weakness`, and that the proof that follows from the key alone
/// verifies for inputs without a witness.
fn assert_forged<E: SnarkCurve>(
    key: &VerifyingKey<E>,
    weakness: Weakness,
    proof: impl Fn(&VerifyingKey<E>, E::G1) -> (E::G1, E::G2Affine, E::G1),
) {
    let rng = &mut StdRng::seed_from_u64(3);
    let inputs: Vec<_> = (1..key.instance.len())
        .map(|_| E::ScalarField::rand(rng))
        .collect();
    let (a, b, c) = proof(key, input_point(key, &inputs));
    let (a, c) = (a.into_affine(), c.into_affine());
    let prepared = PreparedVerifyingKey::from(key.clone());
    verify(&prepared, &inputs, &Proof { a, b, c }).unwrap();
    assert_eq!(key.weaknesses(), [weakness], "{weakness}");
    let refused = key.require_secure().unwrap_err();
    assert!(refused.to_string().contains(&weakness.to_string()));
}

fn check_forgeries<E: SnarkCurve>() {
    use KeyElement::{Alpha, Beta, Delta, Gamma};
    let rng = &mut StdRng::seed_from_u64(1);
    let sound = random_key::<E>(rng);
    assert_eq!(sound.weaknesses(), []);
    sound.require_secure().unwrap();
    let zero = E::G1::zero;
    let changed = |change: fn(&mut VerifyingKey<E>)| {
        let mut key = sound.clone();
        change(&mut key);
        key
    };

    let key = changed(|key| key.delta_g2 = key.gamma_g2);
    assert_forged(&key, Weakness::Related(Gamma, Delta), |key, i| {
        (key.alpha_g1.into(), key.beta_g2, -i)
    });
    let key = changed(|key| key.delta_g2 = -key.gamma_g2);
    assert_forged(&key, Weakness::Related(Gamma, Delta), |key, i| {
        (key.alpha_g1.into(), key.beta_g2, i)
    });
    let key = changed(|key| key.beta_g2 = key.gamma_g2);
    assert_forged(&key, Weakness::Related(Beta, Gamma), |key, i| {
        (i + key.alpha_g1, key.beta_g2, zero())
    });
    let key = changed(|key| key.beta_g2 = key.delta_g2);
    assert_forged(&key, Weakness::Related(Beta, Delta), |key, i| {
        (i, key.gamma_g2, -key.alpha_g1.into_group())
    });
    let key = changed(|key| key.alpha_g1 = E::G1Affine::zero());
    assert_forged(&key, Weakness::Infinity(Alpha), |key, i| {
        (i, key.gamma_g2, zero())
    });
    let key = changed(|key| key.beta_g2 = E::G2Affine::zero());
    assert_forged(&key, Weakness::Infinity(Beta), |key, i| {
        (i, key.gamma_g2, zero())
    });
    let key = changed(|key| key.gamma_g2 = E::G2Affine::zero());
    assert_forged(&key, Weakness::Infinity(Gamma), |key, _| {
        (key.alpha_g1.into(), key.beta_g2, zero())
    });
}

#[test]
fn forged_proofs_hold_under_degenerate_keys_and_the_keys_are_named() {
    check_forgeries::<Bn254>();
    check_forgeries::<Bls12_381>();
    check_forgeries::<Bls12_377>();
}

#[test]
fn points_at_infinity_bind_nothing_and_are_counted() {
    let rng = &mut StdRng::seed_from_u64(2);
    let mut key = random_key::<Bn254>(rng);
    key.delta_g2 = AffineRepr::zero();
    key.instance[2] = AffineRepr::zero();
    key.instance[3] = AffineRepr::zero();
    let expected = [
        Weakness::Infinity(KeyElement::Delta),
        Weakness::UnboundInputs { first: 2, count: 2 },
    ];
    assert_eq!(key.weaknesses(), expected);
    let message = key.require_secure().unwrap_err().to_string();
    assert_eq!(
        message,
        "insecure key, under which proofs prove nothing: delta is the point at infinity; 2 \
         public-input points, the first of them IC[2], are the point at infinity"
    );
    // Two elements that are both at infinity are not also reported as equal.
    key.gamma_g2 = AffineRepr::zero();
    assert_eq!(key.weaknesses().len(), 3);
    key.instance.clear();
    assert_eq!(key.weaknesses().last(), Some(&Weakness::NoInputPoints));
}
