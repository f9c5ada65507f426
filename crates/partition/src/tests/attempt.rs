//! An attempt to prove: all that a prover chooses, and what refuses it.

use ark_bn254::Fr;
use ark_ff::{UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_r1cs::R1cs;

use crate::state::States;
use crate::tree::{Leaf, Path};
use crate::{Challenges, Check, Opening, PartTrace, Partition, PartitionedCircuit, Traces};

/// All committed values.
#[derive(Clone)]
pub(crate) struct Values {
    /// Those of the public inputs come first.
    pub(crate) by_part: Vec<Fr>,
    pub(crate) by_address: Vec<Fr>,
    /// The values of each part's transfers.
    pub(crate) transfers: Vec<Vec<Fr>>,
}

/// A running sum to which a part adds something else than its committed values yield.
#[derive(Clone, Copy)]
pub(crate) struct FalseSum {
    pub(crate) part: usize,
    pub(crate) check: Check,
    /// The row among those of the check at which it is added.
    pub(crate) row: usize,
}

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
    false_sum: Option<(FalseSum, Fr)>,
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
    /// The attempt with these values, consistent in all that follows from them.
    pub(crate) fn new(partition: &'a Partition<Fr>, circuit: &'a C, values: &Values) -> Self {
        Self::at(challenges(), partition, circuit, values)
    }

    /// Like [`new`](Self::new), with challenges that are drawn elsewhere.
    pub(crate) fn at(
        challenges: Challenges<Fr>,
        partition: &'a Partition<Fr>,
        circuit: &'a C,
        values: &Values,
    ) -> Self {
        let states = values.states(partition, challenges, 6);
        let traces = (0..partition.num_parts()).map(|part| values.share(partition, Some(part)));
        let mut attempt = Self {
            partition,
            circuit,
            challenges,
            public_inputs: values.by_part[partition.order().public()].to_vec(),
            public_path: states.public_path(),
            root: states.root(),
            traces: traces.collect(),
            openings: Vec::new(),
            false_sum: None,
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

    /// Makes one of the sums end at zero, by what one part adds to it; the states after it follow.
    pub(crate) fn falsify(mut self, states: &States<Fr>, sum: FalseSum) -> Self {
        let mut leaves = states.leaves().to_vec();
        let difference = -*sum.of(leaves.last_mut().unwrap());
        assert!(!difference.is_zero(), "there is nothing to hide");
        for leaf in &mut leaves[sum.part + 1..] {
            *sum.of(leaf) += difference;
        }
        self.open(&States::from_leaves(self.challenges, leaves));
        self.false_sum = Some((sum, difference));
        self
    }

    /// All values of a part, with the verifier's instance.
    pub(crate) fn z(&self, part: usize) -> Vec<Fr> {
        let opening = &self.openings[part];
        let mut z = self.assigned(part, opening);
        if let Some((sum, difference)) = self.false_sum
            && sum.part == part
        {
            // From there on the values are those that another state before would have led to.
            let mut opening = opening.clone();
            *sum.of(&mut opening.before) += difference;
            let class = &self.partition.classes()[self.partition.class_of(part).unwrap()];
            let rows = 0..class.layout().constraints;
            let mut of_check = rows.filter(|row| class.check_of(*row) == Some(sum.check));
            let row = of_check.nth(sum.row).unwrap();
            // The row has the sum before and after as the second factor.
            let [_, second, _] = class.system().matrices();
            let after = second.row(row).map(|(column, _)| column).max().unwrap();
            z[after..].copy_from_slice(&self.assigned(part, &opening)[after..]);
        }
        z
    }

    /// All values of a part that follow from an opening.
    fn assigned(&self, part: usize, opening: &Opening<Fr>) -> Vec<Fr> {
        let class = &self.partition.classes()[self.partition.class_of(part).unwrap()];
        let (trace, challenges) = (&self.traces[part], &self.challenges);
        let assignment = self
            .partition
            .assignment(self.circuit, part, trace, challenges, opening)
            .unwrap();
        let instance = self.partition.instance(part, self.root, challenges);
        let instance = instance.unwrap();
        let mut z = assignment.z().to_vec();
        z[..instance.len()].copy_from_slice(&instance);
        assert_eq!(assignment.instance().len(), instance.len());
        let committed = &assignment.witness()[..class.layout().committed];
        assert_eq!(committed, trace.committed());
        z
    }
}

impl Values {
    /// The values of an honest prover.
    pub(crate) fn of(partition: &Partition<Fr>, traces: &Traces<Fr>) -> Self {
        let by_part = partition.values_by_part(traces);
        let order = partition.order();
        Self {
            by_address: order.sorted(0..order.entries(), &by_part),
            by_part,
            transfers: traces.transfers().iter().map(|of| of.to_vec()).collect(),
        }
    }

    /// The values of a part, or of the public inputs.
    pub(crate) fn share(&self, partition: &Partition<Fr>, part: Option<usize>) -> PartTrace<Fr> {
        let order = partition.order();
        let range = part.map_or_else(|| order.public(), |part| order.range(part));
        PartTrace {
            by_part: self.by_part[range.clone()].to_vec(),
            by_address: self.by_address[range].to_vec(),
            transfers: part.map_or_else(Vec::new, |part| self.transfers[part].clone()),
        }
    }

    /// The states that follow from the values.
    pub(crate) fn states(
        &self,
        partition: &Partition<Fr>,
        challenges: Challenges<Fr>,
        seed: u64,
    ) -> States<Fr> {
        let rng = &mut StdRng::seed_from_u64(seed);
        let share = |part| self.share(partition, part);
        States::new(partition, share, challenges, |_| Fr::rand(rng))
    }
}

impl FalseSum {
    /// The sum, in a state.
    const fn of(self, leaf: &mut Leaf<Fr>) -> &mut Fr {
        match self.check {
            Check::Multiset => &mut leaf.multiset,
            _ => &mut leaf.traces,
        }
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
