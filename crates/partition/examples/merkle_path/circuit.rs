//! The circuit in one piece, as arkworks has it: a public leaf is in the Merkle tree with a public root.

use ark_bn254::Fr;
use ark_ff::Field;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};
use proofmill_partition::Wire;

/// Rounds of the hash.
const ROUNDS: u64 = 110;

/// A leaf and the steps from it to the root. The steps are secret.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) leaf: Fr,
    pub(crate) steps: Vec<Step>,
    pub(crate) root: Fr,
}

/// A step to the level above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) sibling: Fr,
    /// True if the node is the right child, and its sibling the left one.
    pub(crate) is_right: bool,
}

/// A sum of variables, with its value.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    terms: LinearCombination<Fr>,
    value: Fr,
}

// === impl Membership ===

impl Membership {
    /// The steps from a leaf, with the root that they lead to.
    pub(crate) fn new(leaf: Fr, steps: Vec<Step>) -> Self {
        let root = steps.iter().enumerate().fold(leaf, |node, (level, step)| {
            let (left, right) = match step.is_right {
                false => (node, step.sibling),
                true => (step.sibling, node),
            };
            hash_natively(Fr::from(level as u64), left, right)
        });
        Self { leaf, steps, root }
    }
}

impl ConstraintSynthesizer<Fr> for Membership {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let input = |value: Fr| -> Result<Wire<Fr>, SynthesisError> {
            let variable = cs.new_input_variable(|| Ok(value))?;
            Ok(Wire { variable, value })
        };
        let (mut node, root) = (input(self.leaf)?, input(self.root)?);
        for (level, step) in self.steps.into_iter().enumerate() {
            let level = Sum::constant(Fr::from(level as u64));
            node = climb(&cs, &level, node, step)?;
        }
        enforce_equal(&cs, node, root)
    }
}

// === impl Sum ===

impl Sum {
    pub(crate) fn constant(value: Fr) -> Self {
        let terms = LinearCombination::from((value, Variable::One));
        Self { terms, value }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            terms: &self.terms + &other.terms,
            value: self.value + other.value,
        }
    }

    fn minus(&self, other: &Self) -> Self {
        Self {
            terms: &self.terms - &other.terms,
            value: self.value - other.value,
        }
    }
}

impl From<Wire<Fr>> for Sum {
    fn from(wire: Wire<Fr>) -> Self {
        Self {
            terms: wire.variable.into(),
            value: wire.value,
        }
    }
}

/// The node above a node, and the constraints that it is that: 333.
pub(crate) fn climb(
    cs: &ConstraintSystemRef<Fr>,
    level: &Sum,
    node: Wire<Fr>,
    step: Step,
) -> Result<Wire<Fr>, SynthesisError> {
    let sibling = Sum::from(witness(cs, step.sibling)?);
    let is_right = Sum::from(witness(cs, Fr::from(step.is_right))?);
    // is_right · (1 − is_right) = 0
    let is_left = Sum::constant(Fr::from(1)).minus(&is_right);
    cs.enforce_r1cs_constraint(
        || is_right.terms.clone(),
        || is_left.terms,
        LinearCombination::zero,
    )?;
    // The children are exchanged if the node is the right one.
    let node = Sum::from(node);
    let exchanged = Sum::from(product(cs, &is_right, &sibling.minus(&node))?);
    let (left, right) = (node.plus(&exchanged), sibling.minus(&exchanged));
    hash(cs, level, &left, &right)
}

/// `a = b`, as 0 · 0 = a − b.
pub(crate) fn enforce_equal(
    cs: &ConstraintSystemRef<Fr>,
    a: Wire<Fr>,
    b: Wire<Fr>,
) -> Result<(), SynthesisError> {
    let difference = Sum::from(a).minus(&b.into());
    cs.enforce_r1cs_constraint(LinearCombination::zero, LinearCombination::zero, || {
        difference.terms
    })
}

/// MiMC with x⁵ in the mode of Miyaguchi and Preneel, keyed by the right child and the level. Round constants are the
/// rounds' numbers: it is an example, not a hash to use.
fn hash(
    cs: &ConstraintSystemRef<Fr>,
    level: &Sum,
    left: &Sum,
    right: &Sum,
) -> Result<Wire<Fr>, SynthesisError> {
    let key = right.plus(level);
    let mut state = left.clone();
    for round in 0..ROUNDS {
        let keyed = state.plus(&key).plus(&Sum::constant(Fr::from(round)));
        let square = Sum::from(product(cs, &keyed, &keyed)?);
        let fourth = Sum::from(product(cs, &square, &square)?);
        state = product(cs, &fourth, &keyed)?.into();
    }
    let sum = state.plus(left).plus(&key);
    let digest = witness(cs, sum.value)?;
    let difference = sum.minus(&digest.into());
    cs.enforce_r1cs_constraint(LinearCombination::zero, LinearCombination::zero, || {
        difference.terms
    })?;
    Ok(digest)
}

fn hash_natively(level: Fr, left: Fr, right: Fr) -> Fr {
    let key = right + level;
    let round = |state: Fr, round: u64| (state + key + Fr::from(round)).pow([5]);
    (0..ROUNDS).fold(left, round) + left + key
}

fn witness(cs: &ConstraintSystemRef<Fr>, value: Fr) -> Result<Wire<Fr>, SynthesisError> {
    let variable = cs.new_witness_variable(|| Ok(value))?;
    Ok(Wire { variable, value })
}

fn product(cs: &ConstraintSystemRef<Fr>, a: &Sum, b: &Sum) -> Result<Wire<Fr>, SynthesisError> {
    let product = witness(cs, a.value * b.value)?;
    cs.enforce_r1cs_constraint(
        || a.terms.clone(),
        || b.terms.clone(),
        || product.variable.into(),
    )?;
    Ok(product)
}
