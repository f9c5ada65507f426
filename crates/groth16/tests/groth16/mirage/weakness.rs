//! Keys under which proofs prove nothing, or commitments bind nothing: forgeries verify, and the keys'
//! weaknesses are reported.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::mirage::{Commitment, PreparedVerifyingKey, VerifyingKey};
use proofmill_groth16::{Curve, KeyElement, Proof, SnarkCurve, Weakness, with_curve};

use super::simulation::Trapdoor;
use super::support::{holds, random_g1, sum};

/// Checks that a key has `weakness` alone, and that the forgery from it verifies.
fn assert_forged<E: SnarkCurve>(
    key: &VerifyingKey<E>,
    weakness: Weakness,
    inputs: &[E::ScalarField],
    [a, c, d]: [E::G1; 3],
    b: E::G2Affine,
) {
    let verifier = PreparedVerifyingKey::from(key.clone());
    let [a, c, point] = [a, c, d].map(CurveGroup::into_affine);
    assert!(
        holds(&verifier, inputs, &Commitment { point }, &Proof { a, b, c }),
        "{weakness}"
    );
    assert_eq!(key.weaknesses(), [weakness], "{weakness}");
    let refused = key.require_secure().unwrap_err();
    assert!(refused.to_string().contains(&weakness.to_string()));
}

fn check_forgeries<E: SnarkCurve>() {
    use KeyElement::{Alpha, Beta, Delta, Eta, Gamma};
    let rng = &mut StdRng::seed_from_u64(1);
    let sound = Trapdoor::<E>::random(3, rng).vk();
    assert_eq!(sound.weaknesses(), []);
    sound.require_secure().unwrap();
    let inputs = [0; 3].map(|_| E::ScalarField::rand(rng));
    let changed = |change: fn(&mut VerifyingKey<E>)| {
        let mut key = sound.clone();
        change(&mut key);
        key
    };
    let zero = E::G1::zero();
    let with_one = [&[E::ScalarField::from(1u64)], &inputs[..]].concat();
    let i = sum::<E>(&sound.plain.instance, &with_one);
    let alpha = sound.plain.alpha_g1.into_group();
    let (beta, gamma) = (sound.plain.beta_g2, sound.plain.gamma_g2);
    let forge =
        |key: &VerifyingKey<E>, weakness, g1, b| assert_forged(key, weakness, &inputs, g1, b);

    let key = changed(|key| key.eta_g2 = key.plain.gamma_g2);
    forge(&key, Weakness::Related(Gamma, Eta), [alpha, zero, -i], beta);
    let key = changed(|key| key.eta_g2 = -key.plain.gamma_g2);
    forge(&key, Weakness::Related(Gamma, Eta), [alpha, zero, i], beta);
    let key = changed(|key| key.eta_g2 = key.plain.beta_g2);
    forge(&key, Weakness::Related(Beta, Eta), [i, zero, -alpha], gamma);
    // Weaknesses of a plain key.
    let key = changed(|key| key.plain.delta_g2 = key.plain.gamma_g2);
    forge(
        &key,
        Weakness::Related(Gamma, Delta),
        [alpha, -i, zero],
        beta,
    );
    let key = changed(|key| key.plain.alpha_g1 = AffineRepr::zero());
    forge(&key, Weakness::Infinity(Alpha), [i, zero, zero], gamma);
}

/// Under these keys, anyone can change a proof that holds to one with another commitment.
fn check_unbound_commitments<E: SnarkCurve>() {
    use KeyElement::{Delta, Eta};
    let rng = &mut StdRng::seed_from_u64(2);
    let inputs = [0; 3].map(|_| E::ScalarField::rand(rng));
    let x = random_g1::<E>(rng);

    let mut trapdoor = Trapdoor::<E>::random(3, rng);
    trapdoor.eta = trapdoor.delta;
    let (commitment, Proof { a, b, c }) = trapdoor.simulate(&inputs, rng);
    let moved = [a.into(), c - x.into_group(), commitment.point + x];
    assert_forged(
        &trapdoor.vk(),
        Weakness::Related(Delta, Eta),
        &inputs,
        moved,
        b,
    );

    trapdoor.eta = Zero::zero();
    let (_, Proof { a, b, c }) = trapdoor.simulate(&inputs, rng);
    let other = [a, c, x].map(AffineRepr::into_group);
    assert_forged(&trapdoor.vk(), Weakness::Infinity(Eta), &inputs, other, b);
}

#[test]
fn forgeries_hold_under_degenerate_keys_and_the_keys_are_named() {
    for curve in Curve::ALL {
        with_curve!(curve, E => {
            check_forgeries::<E>();
            check_unbound_commitments::<E>();
        });
    }
}

#[test]
fn messages_name_eta() {
    let rng = &mut StdRng::seed_from_u64(3);
    let mut key = Trapdoor::<proofmill_groth16::Bn254>::random(1, rng).vk();
    key.eta_g2 = key.plain.delta_g2;
    assert_eq!(
        key.require_secure().unwrap_err().to_string(),
        "insecure key, under which proofs prove nothing: delta and eta are equal or opposite"
    );
}
