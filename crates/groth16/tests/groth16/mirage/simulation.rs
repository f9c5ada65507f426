//! Zero knowledge: with the trapdoor, proofs and commitments are made without a witness.

use ark_ec::CurveGroup;
use ark_ff::{Field, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::mirage::{Commitment, PreparedVerifyingKey, VerifyingKey};
use proofmill_groth16::{Curve, Proof, SnarkCurve, with_curve};

use super::support::holds;

/// The secrets that a setup forgets; the points of inputs are any, as those of a circuit that is not known.
pub(super) struct Trapdoor<E: SnarkCurve> {
    pub(super) alpha: E::ScalarField,
    pub(super) beta: E::ScalarField,
    pub(super) gamma: E::ScalarField,
    pub(super) delta: E::ScalarField,
    pub(super) eta: E::ScalarField,
    pub(super) instance: Vec<E::ScalarField>,
    pub(super) g1: E::G1,
    pub(super) g2: E::G2,
}

// === impl Trapdoor ===

impl<E: SnarkCurve> Trapdoor<E> {
    pub(super) fn random(inputs: usize, rng: &mut StdRng) -> Self {
        Self {
            alpha: E::ScalarField::rand(rng),
            beta: E::ScalarField::rand(rng),
            gamma: E::ScalarField::rand(rng),
            delta: E::ScalarField::rand(rng),
            eta: E::ScalarField::rand(rng),
            instance: (0..=inputs).map(|_| E::ScalarField::rand(rng)).collect(),
            g1: E::G1::rand(rng),
            g2: E::G2::rand(rng),
        }
    }

    fn g1_of(&self, scalar: E::ScalarField) -> E::G1Affine {
        (self.g1 * scalar).into_affine()
    }

    fn g2_of(&self, scalar: E::ScalarField) -> E::G2Affine {
        (self.g2 * scalar).into_affine()
    }

    pub(super) fn vk(&self) -> VerifyingKey<E> {
        VerifyingKey {
            plain: proofmill_groth16::VerifyingKey {
                circuit: [0; 32],
                alpha_g1: self.g1_of(self.alpha),
                beta_g2: self.g2_of(self.beta),
                gamma_g2: self.g2_of(self.gamma),
                delta_g2: self.g2_of(self.delta),
                instance: self.instance.iter().map(|x| self.g1_of(*x)).collect(),
            },
            eta_g2: self.g2_of(self.eta),
            committed: 1,
        }
    }

    /// A, B and D uniformly random, as they are in proofs; C is what the equation leaves.
    pub(super) fn simulate(
        &self,
        inputs: &[E::ScalarField],
        rng: &mut StdRng,
    ) -> (Commitment<E>, Proof<E>) {
        let [a, b, d] = [0; 3].map(|_| E::ScalarField::rand(rng));
        let points = self.instance[1..].iter().zip(inputs);
        let s = self.instance[0] + points.map(|(p, x)| *p * x).sum::<E::ScalarField>();
        let rest = a * b - self.alpha * self.beta - s * self.gamma - d * self.eta;
        let c = rest * self.delta.inverse().unwrap();
        let proof = Proof {
            a: self.g1_of(a),
            b: self.g2_of(b),
            c: self.g1_of(c),
        };
        let point = self.g1_of(d);
        (Commitment { point }, proof)
    }
}

fn simulated<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(1);
    let trapdoor = Trapdoor::<E>::random(2, rng);
    let verifier = PreparedVerifyingKey::from(trapdoor.vk());
    let inputs = [E::ScalarField::rand(rng), E::ScalarField::rand(rng)];
    let (commitment, proof) = trapdoor.simulate(&inputs, rng);
    assert!(holds(&verifier, &inputs, &commitment, &proof));
    // For these inputs only.
    let others = [inputs[1], inputs[0]];
    assert!(!holds(&verifier, &others, &commitment, &proof));
}

#[test]
fn simulated_proofs_hold() {
    for curve in Curve::ALL {
        with_curve!(curve, E => simulated::<E>());
    }
}
