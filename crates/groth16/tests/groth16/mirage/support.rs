//! Random systems with a committed part, and a second verifier that is written from the paper with arkworks alone.

use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{UniformRand, Zero};
use ark_std::rand::{Rng, rngs::StdRng};
use proofmill_groth16::mirage::{
    self, Commitment, CommittedR1cs, Opening, PreparedVerifyingKey, ProvingKey, VerifyingKey,
    unbound_variables,
};
use proofmill_groth16::{Proof, SnarkCurve};
use proofmill_r1cs::{Assignment, R1cs};

/// The size of a random system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) inputs: usize,
    pub(super) committed: usize,
    pub(super) products: usize,
}

pub(super) const SMALL: Size = Size {
    inputs: 4,
    committed: 5,
    products: 20,
};

/// A statement, its key, and one proof of it.
pub(super) struct Case<E: SnarkCurve> {
    pub(super) system: R1cs<E::ScalarField>,
    pub(super) assignment: Assignment<E::ScalarField>,
    pub(super) key: ProvingKey<E>,
    pub(super) verifier: PreparedVerifyingKey<E>,
    pub(super) commitment: Commitment<E>,
    pub(super) opening: Opening<E>,
    pub(super) proof: Proof<E>,
}

/// A satisfied system with random values for inputs and committed variables. Each further variable is a product of
/// combinations of the variables before it, minus a third combination. Committed variables that these constraints do
/// not bind have a constraint v·0 = 0.
pub(super) fn random_system<F: ark_ff::PrimeField>(
    size: Size,
    rng: &mut StdRng,
) -> (R1cs<F>, Assignment<F>) {
    let free = size.inputs + size.committed + 1;
    let mut z = vec![F::one()];
    z.extend((0..free).map(|_| F::rand(rng)));
    let mut rows: [Vec<Vec<(F, usize)>>; 3] = Default::default();
    for _ in 0..size.products {
        let variables = z.len();
        let mut combination = || -> Vec<(F, usize)> {
            let terms = rng.gen_range(0..4);
            (0..terms)
                .map(|_| {
                    let value = F::from(rng.gen_range(0u64..5)) - F::from(2u64);
                    (value, rng.gen_range(0..variables))
                })
                .collect()
        };
        let [a, b, mut c] = [combination(), combination(), combination()];
        let value = |row: &[(F, usize)]| -> F { row.iter().map(|(c, i)| *c * z[*i]).sum() };
        let next = value(&a) * value(&b) - value(&c);
        c.push((F::one(), variables));
        z.push(next);
        for (matrix, row) in rows.iter_mut().zip([a, b, c]) {
            matrix.push(row);
        }
    }
    let (instance, witness) = (1 + size.inputs, z.len() - 1 - size.inputs);
    let system = |rows| R1cs::from_rows(instance, witness, rows).unwrap();
    for variable in unbound_variables(&system(rows.clone()), size.committed) {
        rows[0].push(vec![(F::one(), instance + variable)]);
        rows[1].push(vec![]);
        rows[2].push(vec![]);
    }
    let (system, assignment) = (system(rows), Assignment::from_values(z, instance));
    assert_eq!(system.is_satisfied(assignment.z()), Ok(()));
    (system, assignment)
}

// === impl Case ===

impl<E: SnarkCurve> Case<E> {
    pub(super) fn random(size: Size, rng: &mut StdRng) -> Self {
        let (system, assignment) = random_system(size, rng);
        let circuit = CommittedR1cs::new(&system, size.committed).unwrap();
        let key = mirage::setup::<E>(&[circuit], rng).unwrap().remove(0);
        Self::with_key(key, system, assignment, rng)
    }

    pub(super) fn with_key(
        key: ProvingKey<E>,
        system: R1cs<E::ScalarField>,
        assignment: Assignment<E::ScalarField>,
        rng: &mut StdRng,
    ) -> Self {
        let prover = mirage::Prover::new(&key, &system).unwrap();
        let committed = prover.committed_of(assignment.z()).unwrap();
        assert_eq!(committed, &assignment.witness()[..key.committed.len()]);
        let (commitment, opening) = mirage::commit(&key, committed, rng).unwrap();
        let (proof, reports) = prover.prove(assignment.z(), &opening, rng).unwrap();
        assert_eq!(reports.len(), 8);
        Self {
            verifier: key.vk().into(),
            system,
            assignment,
            key,
            commitment,
            opening,
            proof,
        }
    }

    pub(super) fn prover(&self) -> mirage::Prover<'_, E> {
        mirage::Prover::new(&self.key, &self.system).unwrap()
    }

    pub(super) fn committed(&self) -> &[E::ScalarField] {
        &self.assignment.witness()[..self.key.committed.len()]
    }

    pub(super) fn inputs(&self) -> &[E::ScalarField] {
        self.assignment.inputs()
    }

    /// Whether a proof holds. Both verifiers must agree.
    pub(super) fn holds(
        &self,
        inputs: &[E::ScalarField],
        commitment: &Commitment<E>,
        proof: &Proof<E>,
    ) -> bool {
        holds(&self.verifier, inputs, commitment, proof)
    }
}

/// Whether a proof holds. Both verifiers must agree.
pub(super) fn holds<E: SnarkCurve>(
    key: &PreparedVerifyingKey<E>,
    inputs: &[E::ScalarField],
    commitment: &Commitment<E>,
    proof: &Proof<E>,
) -> bool {
    let verdict = mirage::verify(key, inputs.into(), commitment, proof).is_ok();
    assert_eq!(
        verdict,
        verify_with_arkworks(&key.vk(), inputs, commitment, proof)
    );
    verdict
}

/// `Mirage.Verify` of section 5.1.1, with arkworks' pairings.
fn verify_with_arkworks<E: SnarkCurve>(
    vk: &VerifyingKey<E>,
    inputs: &[E::ScalarField],
    commitment: &Commitment<E>,
    proof: &Proof<E>,
) -> bool {
    let plain = &vk.plain;
    let mut s = plain.instance[0].into_group();
    assert_eq!(plain.instance.len(), 1 + inputs.len());
    for (point, input) in plain.instance[1..].iter().zip(inputs) {
        s += *point * input;
    }
    let e = |left: E::G1Affine, right: E::G2Affine| <E as Pairing>::pairing(left, right);
    let right = e(plain.alpha_g1, plain.beta_g2)
        + e(s.into_affine(), plain.gamma_g2)
        + e(proof.c, plain.delta_g2)
        + e(commitment.point, vk.eta_g2);
    e(proof.a, proof.b) == right
}

pub(super) fn random_g1<E: SnarkCurve>(rng: &mut StdRng) -> E::G1Affine {
    E::G1::rand(rng).into_affine()
}

pub(super) fn random_g2<E: SnarkCurve>(rng: &mut StdRng) -> E::G2Affine {
    E::G2::rand(rng).into_affine()
}

/// Σ scalarⱼ·pointⱼ, computed one by one.
pub(super) fn sum<E: SnarkCurve>(points: &[E::G1Affine], scalars: &[E::ScalarField]) -> E::G1 {
    assert_eq!(points.len(), scalars.len());
    let terms = points.iter().zip(scalars);
    terms.fold(E::G1::zero(), |sum, (point, scalar)| sum + *point * scalar)
}
