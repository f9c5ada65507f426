//! An attempt to prove: all that a prover chooses, and what refuses it.

use std::ops::Range;

use ark_bn254::Fr;
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_r1cs::R1cs;

use crate::state::States;
use crate::tree::Path;
use crate::{Challenges, Check, Opening, PartTrace, Partition, PartitionedCircuit};

/// An attempt to convince: a verifier's key, the prover's messages and the witnesses of all parts.
pub(crate) struct Attempt<'a, C> {
    pub(crate) partition: &'a Partition<Fr>,
    /// The code that parts run: on the values of their traces.
    pub(crate) circuit: &'a C,
    pub(crate) challenges: Challenges<Fr>,
    pub(crate) public_inputs: Vec<Fr>,
    pub(crate) public_path: Path<Fr>,
    pub(crate) root: Fr,
    pub(crate) traces: Vec<PartTrace<Fr>>,
    pub(crate) openings: Vec<Opening<Fr>>,
}

/// The check that refuses an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Constraints of a part.
    Part(usize, Check),
    /// The verifier's own check of position 0.
    PublicInputs,
}

pub(crate) fn challenges() -> Challenges<Fr> {
    let rng = &mut StdRng::seed_from_u64(5);
    Challenges {
        alpha: Fr::rand(rng),
        beta: Fr::rand(rng),
    }
}

impl<'a, C: PartitionedCircuit<Fr>> Attempt<'a, C> {
    /// The attempt with these values of both traces, consistent in all that follows from them. The
    /// values of public inputs come first.
    pub(crate) fn new(
        partition: &'a Partition<Fr>,
        circuit: &'a C,
        by_part: &[Fr],
        by_address: &[Fr],
    ) -> Self {
        Self::at(challenges(), partition, circuit, by_part, by_address)
    }

    /// Like [`new`](Self::new), with challenges that are drawn elsewhere.
    pub(crate) fn at(
        challenges: Challenges<Fr>,
        partition: &'a Partition<Fr>,
        circuit: &'a C,
        by_part: &[Fr],
        by_address: &[Fr],
    ) -> Self {
        let order = partition.order();
        let rng = &mut StdRng::seed_from_u64(6);
        let salts = |_| Fr::rand(rng);
        let share = |range: Range<usize>| PartTrace {
            by_part: by_part[range.clone()].to_vec(),
            by_address: by_address[range].to_vec(),
        };
        let states = States::new(order, share, challenges, salts);
        let traces = (0..partition.num_parts()).map(|part| share(order.range(part)));
        let mut attempt = Self {
            partition,
            circuit,
            challenges,
            public_inputs: by_part[order.public()].to_vec(),
            public_path: states.public_path(),
            root: states.root(),
            traces: traces.collect(),
            openings: Vec::new(),
        };
        attempt.open(&states);
        attempt
    }

    /// Takes root and openings from other states.
    pub(crate) fn open(&mut self, states: &States<Fr>) {
        self.root = states.root();
        self.public_path = states.public_path();
        let parts = 0..self.partition.num_parts();
        self.openings = parts.map(|part| states.opening(part).unwrap()).collect();
    }

    /// The reasons why the attempt is refused: unsatisfied constraints by part and purpose, each once.
    /// Each part has the verifier's instance.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        let public = self.partition.public_state();
        let challenges = &self.challenges;
        if !public.holds(
            &self.public_inputs,
            challenges,
            self.root,
            &self.public_path,
        ) {
            refusals.push(Refusal::PublicInputs);
        }
        for part in 0..self.partition.num_parts() {
            for check in self.unsatisfied(part) {
                let refusal = Refusal::Part(part, check);
                if !refusals.contains(&refusal) {
                    refusals.push(refusal);
                }
            }
        }
        refusals
    }

    fn unsatisfied(&self, part: usize) -> Vec<Check> {
        let class = &self.partition.classes()[self.partition.class_of(part).unwrap()];
        let rows = unsatisfied(class.system(), &self.z(part)).into_iter();
        rows.map(|row| class.check_of(row).unwrap()).collect()
    }

    /// All values of a part, with the verifier's instance.
    pub(crate) fn z(&self, part: usize) -> Vec<Fr> {
        let class = &self.partition.classes()[self.partition.class_of(part).unwrap()];
        let trace = &self.traces[part];
        let (challenges, opening) = (&self.challenges, &self.openings[part]);
        let assignment = self
            .partition
            .assignment(self.circuit, part, trace, challenges, opening)
            .unwrap();
        let mut instance = vec![Fr::from(1u64), self.root, challenges.alpha, challenges.beta];
        instance.extend(self.partition.preprocessed(part).unwrap());
        let mut z = assignment.z().to_vec();
        z[..instance.len()].copy_from_slice(&instance);
        assert_eq!(assignment.instance().len(), instance.len());
        let committed = &assignment.witness()[..class.layout().committed];
        assert_eq!(committed, trace.committed());
        z
    }
}

/// The constraints that an assignment does not satisfy.
pub(crate) fn unsatisfied(system: &R1cs<Fr>, z: &[Fr]) -> Vec<usize> {
    let [a, b, c] = system.matrices().map(|matrix| {
        let mut out = vec![Fr::from(0u64); system.num_constraints()];
        system.multiply(matrix, z, &mut out).unwrap();
        out
    });
    let refused = |row: &usize| a[*row] * b[*row] != c[*row];
    (0..system.num_constraints()).filter(refused).collect()
}
