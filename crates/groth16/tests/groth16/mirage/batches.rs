//! Verification of many claims together, under one key and under several.

use ark_ff::{One, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::mirage::{
    Claim, Commitment, PreparedInputs, verify, verify_batch, weighted_product,
};
use proofmill_groth16::{Bls12_381, Bn254, Proof, SnarkCurve, VerifyError, Weight};
use proptest::prelude::*;

use super::support::{Case, SMALL, Size};

/// The fault of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    A,
    C,
    Commitment,
    Inputs,
    Count,
    PreparedPoint,
}

const FAULTS: [Fault; 7] = [
    Fault::Nothing,
    Fault::A,
    Fault::C,
    Fault::Commitment,
    Fault::Inputs,
    Fault::Count,
    Fault::PreparedPoint,
];

/// The parts that a claim borrows.
struct OwnedClaim<E: SnarkCurve> {
    case: usize,
    inputs: Vec<E::ScalarField>,
    prepared: Option<PreparedInputs<E>>,
    commitment: Commitment<E>,
    proof: Proof<E>,
}

// === impl OwnedClaim ===

impl<E: SnarkCurve> OwnedClaim<E> {
    /// A fresh proof of a case with the fault `fault`; with `prepare`, the inputs with indices 1 and 2 are prepared.
    fn new(
        cases: &[Case<E>],
        number: usize,
        prepare: bool,
        fault: Fault,
        rng: &mut StdRng,
    ) -> Self {
        let case = &cases[number];
        let prover = case.prover();
        let (mut commitment, opening) = prover.commit(case.committed(), rng).unwrap();
        let (mut proof, _) = prover.prove(case.assignment.z(), &opening, rng).unwrap();
        let mut inputs = case.inputs().to_vec();
        let mut prepared = None;
        if prepare {
            prepared = Some(PreparedInputs::new(&case.key.vk(), 1, &inputs[1..3]).unwrap());
            inputs.drain(1..3);
        }
        match (fault, &mut prepared) {
            (Fault::A, _) => proof.a = case.proof.a,
            (Fault::C, _) => proof.c = case.proof.c,
            (Fault::Commitment, _) => commitment = case.commitment,
            (Fault::Count, _) => inputs.push(E::ScalarField::one()),
            (Fault::PreparedPoint, Some(prepared)) => prepared.point = case.proof.a,
            (Fault::Inputs | Fault::PreparedPoint, _) => inputs[0] += E::ScalarField::one(),
            (Fault::Nothing, _) => {}
        }
        Self {
            case: number,
            inputs,
            prepared,
            commitment,
            proof,
        }
    }

    fn claim<'a>(&'a self, cases: &'a [Case<E>]) -> Claim<'a, E> {
        let inputs = match &self.prepared {
            Some(prepared) => {
                proofmill_groth16::mirage::Inputs::with_prepared(&self.inputs, prepared)
            }
            None => self.inputs.as_slice().into(),
        };
        Claim {
            key: &cases[self.case].verifier,
            inputs,
            commitment: &self.commitment,
            proof: &self.proof,
        }
    }
}

fn cases<E: SnarkCurve>(rng: &mut StdRng) -> Vec<Case<E>> {
    let other = Size {
        inputs: 3,
        committed: 2,
        products: 9,
    };
    [SMALL, other]
        .map(|size| Case::random(size, rng))
        .into_iter()
        .collect()
}

fn check_verdicts<E: SnarkCurve>(seed: u64, plan: &[(usize, bool, usize)]) {
    let rng = &mut StdRng::seed_from_u64(seed);
    let cases = cases::<E>(rng);
    let owned: Vec<_> = plan
        .iter()
        .map(|(case, prepare, fault)| OwnedClaim::new(&cases, *case, *prepare, FAULTS[*fault], rng))
        .collect();
    let claims: Vec<_> = owned.iter().map(|owned| owned.claim(&cases)).collect();
    let together = verify_batch(&claims, rng);
    for (i, claim) in claims.iter().enumerate() {
        let alone = verify(claim.key, claim.inputs, claim.commitment, claim.proof);
        assert_eq!(together[i], alone, "{i} of {plan:?}");
        let expected = match FAULTS[plan[i].2] {
            Fault::Nothing => Ok(()),
            Fault::Count => {
                let expected = cases[plan[i].0].inputs().len();
                let found = expected + 1;
                Err(VerifyError::InputCount { expected, found })
            }
            _ => Err(VerifyError::Invalid),
        };
        assert_eq!(alone, expected, "{i} of {plan:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_batch_has_the_verdicts_of_its_claims(
        seed: u64,
        plan in proptest::collection::vec(
            (0usize..2, any::<bool>(), prop_oneof![2 => Just(0usize), 1 => 0..FAULTS.len()]),
            0..9,
        ),
    ) {
        check_verdicts::<Bn254>(seed, &plan);
        check_verdicts::<Bls12_381>(seed, &plan);
    }
}

#[test]
fn one_of_each_kind_among_good_ones() {
    let plan: Vec<_> = (0..FAULTS.len())
        .flat_map(|fault| {
            [
                (0, true, 0),
                (fault % 2, fault % 3 == 0, fault),
                (1, false, 0),
            ]
        })
        .collect();
    check_verdicts::<Bn254>(1, &plan);
}

/// The product over several claims, true or false, is the product of their products; over true claims it is one.
#[test]
fn a_weighted_product_is_that_of_its_parts() {
    let rng = &mut StdRng::seed_from_u64(2);
    let cases = cases::<Bn254>(rng);
    let mut owned = |case, prepare, fault| OwnedClaim::new(&cases, case, prepare, fault, rng);
    let all = [
        owned(0, true, Fault::Nothing),
        owned(0, false, Fault::Commitment),
        owned(1, true, Fault::A),
        owned(1, false, Fault::Nothing),
    ];
    let weighted: Vec<_> = all
        .iter()
        .map(|owned| owned.claim(&cases))
        .zip([3, 1 << 100, u128::MAX, 5].map(Weight::new))
        .collect();
    let parts: Vec<_> = weighted
        .iter()
        .map(|part| weighted_product(std::slice::from_ref(part)).unwrap())
        .collect();
    let zero = parts.iter().map(Zero::is_zero).collect::<Vec<_>>();
    assert_eq!(zero, [true, false, false, true]);
    let product = parts.into_iter().reduce(|left, right| left + right);
    assert_eq!(weighted_product(&weighted).unwrap(), product.unwrap());
    let true_ones = [weighted[0], weighted[3]];
    assert!(weighted_product(&true_ones).unwrap().is_zero());
}
