//! Cheating provers: each fills in everything else as consistently as can be, and only the check that
//! is meant for it refuses.

use ark_bn254::Fr;
use ark_ff::Field;
use ark_std::rand::{SeedableRng, rngs::StdRng};

use super::attempt::{Attempt, Refusal, challenges};
use super::chain::{Chain, Read};
use crate::plan::Plan;
use crate::state::States;
use crate::tree::{Leaf, Path, compress};
use crate::{Check, Partition};

const PARTS: usize = 7;
const LAST: usize = PARTS - 1;
const PUBLIC: [u64; 2] = [5, 9];

/// The number of a middle part's access that sets its power.
const SET_POWER: usize = 3;

/// A chain, and the values of an honest prover.
struct Setting {
    partition: Partition<Fr>,
    circuit: Chain<Fr>,
    by_part: Vec<Fr>,
}

impl Setting {
    fn honest() -> Self {
        Self::lying(None)
    }

    /// The values that follow from a lie, which is told in the trace too.
    fn lying(lie: Option<(usize, Read, Fr)>) -> Self {
        let partition = Partition::new(&Chain::blank(PARTS)).unwrap();
        let liar = Chain::lying(PARTS, PUBLIC, lie);
        let mut by_part = partition.trace(&liar).unwrap().values().to_vec();
        if let Some((part, read, difference)) = lie {
            by_part[place(partition.plan(), part, read)] += difference;
        }
        let circuit = Chain { lie: None, ..liar };
        Self {
            partition,
            circuit,
            by_part,
        }
    }

    fn plan(&self) -> &Plan {
        self.partition.plan()
    }

    fn sorted(&self, by_part: &[Fr]) -> Vec<Fr> {
        self.plan().sorted(0..self.plan().entries(), by_part)
    }

    fn attempt(&self, by_address: &[Fr]) -> Attempt<'_, Chain<Fr>> {
        Attempt::new(&self.partition, &self.circuit, &self.by_part, by_address)
    }
}

fn place(plan: &Plan, part: usize, read: Read) -> usize {
    plan.range(part).start + read as usize
}

fn one() -> Fr {
    Fr::from(1u64)
}

/// That only this check refuses, in whatever parts.
fn only(check: Check, refusals: &[Refusal]) {
    let is_it = |refusal: &Refusal| matches!(refusal, Refusal::Part(_, found) if *found == check);
    assert!(!refusals.is_empty(), "accepted");
    assert!(refusals.iter().all(is_it), "{refusals:?}, not only {check}");
}

#[test]
fn honest_attempts_are_accepted() {
    let setting = Setting::honest();
    let by_address = setting.sorted(&setting.by_part);
    assert_eq!(setting.attempt(&by_address).refusals(), []);
}

/// A portal or a cell read with another value than written, by each part.
#[test]
fn another_value_than_written() {
    for part in 1..PARTS {
        for read in [Read::Power, Read::First, Read::Cell] {
            let setting = Setting::lying(Some((part, read, one())));
            let by_address = setting.sorted(&setting.by_part);
            let refusals = setting.attempt(&by_address).refusals();
            only(Check::EqualValues, &refusals);
        }
    }
}

/// A cell loaded with the value of the store before the last, which another part made.
#[test]
fn a_stale_value() {
    let honest = Setting::honest();
    for part in 2..PARTS {
        let [old, new] =
            [part - 1, part].map(|part| honest.by_part[place(honest.plan(), part, Read::Cell)]);
        let setting = Setting::lying(Some((part, Read::Cell, old - new)));
        assert_eq!(
            setting.by_part[place(setting.plan(), part, Read::Cell)],
            old
        );
        let by_address = setting.sorted(&setting.by_part);
        only(Check::EqualValues, &setting.attempt(&by_address).refusals());
    }
}

/// A part that reads the wire of another name: its entry in A is as it should be.
#[test]
fn a_renamed_address() {
    let honest = Setting::honest();
    for part in 2..PARTS {
        let [first, power] =
            [Read::First, Read::Power].map(|read| honest.by_part[place(honest.plan(), part, read)]);
        let difference = power - first;
        let setting = Setting::lying(Some((part, Read::First, difference)));
        let mut repaired = setting.by_part.clone();
        repaired[place(setting.plan(), part, Read::First)] -= difference;
        let refusals = setting.attempt(&setting.sorted(&repaired)).refusals();
        assert_eq!(refusals, [Refusal::Part(LAST, Check::EqualProducts)]);
    }
}

/// Values by address that satisfy all that is local, and are no permutation of those by part.
fn no_permutation(setting: &Setting) -> Vec<Fr> {
    let plan = setting.plan();
    let addresses = plan.by_address(0..plan.entries());
    let changed = plan.by_part(plan.range(2))[SET_POWER];
    let mut by_address = setting.sorted(&setting.by_part);
    for (value, address) in by_address.iter_mut().zip(addresses) {
        if address == changed {
            *value += one();
        }
    }
    by_address
}

#[test]
fn a_trace_that_is_no_permutation() {
    let setting = Setting::honest();
    let refusals = setting.attempt(&no_permutation(&setting)).refusals();
    assert_eq!(refusals, [Refusal::Part(LAST, Check::EqualProducts)]);
}

/// A portal set to another value than the circuit computes, which its reader goes on with.
#[test]
fn another_value_set() {
    let mut setting = Setting::lying(Some((LAST, Read::Power, one())));
    let place = setting.plan().range(LAST - 1).start + SET_POWER;
    setting.by_part[place] += one();
    let by_address = setting.sorted(&setting.by_part);
    let refusals = setting.attempt(&by_address).refusals();
    assert_eq!(refusals, [Refusal::Part(LAST - 1, Check::Circuit)]);
}

/// Two parts of a class, with equal constants, in each other's place: neither state is where it should
/// be. (Where the cut between the traces goes through an address, values differ there too.)
#[test]
fn swapped_parts() {
    let setting = Setting::honest();
    let by_address = setting.sorted(&setting.by_part);
    let mut attempt = setting.attempt(&by_address);
    attempt.traces.swap(2, 4);
    attempt.openings.swap(2, 4);
    let mut refusals = attempt.refusals();
    refusals.retain(|refusal| !matches!(refusal, Refusal::Part(_, Check::EqualValues)));
    let expected = [2, 4]
        .map(|part| [Check::LeafBefore, Check::LeafAfter].map(|check| Refusal::Part(part, check)));
    assert_eq!(refusals, expected.concat());
}

/// A part that does what one before it did, at its own position.
#[test]
fn a_repeated_part() {
    let mut setting = Setting::honest();
    let [from, to] = [2, 4].map(|part| setting.plan().range(part));
    setting.by_part.copy_within(from, to.start);
    let by_address = setting.sorted(&setting.by_part);
    only(Check::EqualValues, &setting.attempt(&by_address).refusals());
}

/// A part that does what one before it did, with the states of that one.
#[test]
fn a_repeated_proof() {
    let setting = Setting::honest();
    let by_address = setting.sorted(&setting.by_part);
    let mut attempt = setting.attempt(&by_address);
    attempt.traces[4] = attempt.traces[2].clone();
    attempt.openings[4] = attempt.openings[2].clone();
    let expected = [Check::LeafBefore, Check::LeafAfter].map(|check| Refusal::Part(4, check));
    assert_eq!(attempt.refusals(), expected);
}

/// The leaves of traces that are no permutations of each other, but for the last, which has equal
/// products; and the state before the last part that would lead there.
fn forged(setting: &Setting, by_address: &[Fr]) -> (Vec<Leaf<Fr>>, Leaf<Fr>) {
    let rng = &mut StdRng::seed_from_u64(7);
    let by_part = &setting.by_part;
    let states = States::new(setting.plan(), by_part, by_address, challenges(), rng);
    let mut leaves = states.leaves().to_vec();
    let ratio = leaves[PARTS].by_address * leaves[PARTS].by_part.inverse().unwrap();
    let forged = Leaf {
        by_part: leaves[LAST].by_part * ratio,
        ..leaves[LAST]
    };
    leaves[PARTS].by_part *= ratio;
    (leaves, forged)
}

/// The forged state is a leaf that no part ends at.
#[test]
fn a_leaf_at_another_position() {
    let setting = Setting::honest();
    let by_address = no_permutation(&setting);
    let (mut leaves, forged) = forged(&setting, &by_address);
    let spare = leaves.len();
    leaves.push(forged);
    let mut attempt = setting.attempt(&by_address);
    let states = States::from_leaves(challenges(), leaves);
    attempt.open(&states);
    attempt.openings.truncate(PARTS);
    attempt.openings[LAST].before = forged;
    attempt.openings[LAST].before_path = states.opening(spare - 1).unwrap().after_path;
    assert_eq!(attempt.refusals(), [Refusal::Part(LAST, Check::LeafBefore)]);
}

/// The forged state is at the right position, under another root.
#[test]
fn two_leaves_for_one_position() {
    let setting = Setting::honest();
    let by_address = no_permutation(&setting);
    let (leaves, forged) = forged(&setting, &by_address);
    let mut attempt = setting.attempt(&by_address);
    attempt.open(&States::from_leaves(challenges(), leaves));
    let opening = &mut attempt.openings[LAST];
    let mut children = opening.before_path.children().to_vec();
    let mut node = forged.hash();
    for (level, children) in children.iter_mut().enumerate() {
        children[LAST >> (2 * level) & 3] = node;
        node = compress(children);
    }
    opening.before = forged;
    opening.before_path = Path::new(children);
    assert_eq!(attempt.refusals(), [Refusal::Part(LAST, Check::LeafBefore)]);
}

/// All states have a factor more that makes the products equal in the end; what the public inputs
/// make has not.
#[test]
fn other_start_values() {
    let setting = Setting::honest();
    let by_address = no_permutation(&setting);
    let mut attempt = setting.attempt(&by_address);
    let (mut leaves, forged) = forged(&setting, &by_address);
    let ratio = forged.by_part * leaves[LAST].by_part.inverse().unwrap();
    for leaf in &mut leaves[..PARTS] {
        leaf.by_part *= ratio;
    }
    attempt.open(&States::from_leaves(challenges(), leaves));
    assert_eq!(attempt.refusals(), [Refusal::PublicInputs]);
}

#[test]
fn another_public_input() {
    let setting = Setting::honest();
    let by_address = setting.sorted(&setting.by_part);
    for index in 0..setting.circuit.public.len() {
        let mut attempt = setting.attempt(&by_address);
        attempt.public_inputs[index] += one();
        assert_eq!(attempt.refusals(), [Refusal::PublicInputs]);
    }
    let mut attempt = setting.attempt(&by_address);
    attempt.public_inputs.pop();
    assert_eq!(attempt.refusals(), [Refusal::PublicInputs]);
}

/// The state at position 0 is that of the public input that is claimed; parts read another.
#[test]
fn a_public_input_that_no_part_reads() {
    let mut setting = Setting::honest();
    let true_values = setting.by_part.clone();
    setting.by_part[0] += one();
    let mut by_address = setting.sorted(&setting.by_part);
    // The first two entries by address are the input and its reader.
    assert_eq!(by_address[..2], [true_values[0] + one(), true_values[0]]);
    by_address[1] += one();
    let refusals = setting.attempt(&by_address).refusals();
    assert_eq!(refusals, [Refusal::Part(LAST, Check::EqualProducts)]);
}

/// Challenges that others drew: states made for them are not those of the public inputs.
#[test]
fn other_challenges() {
    let setting = Setting::honest();
    let by_address = setting.sorted(&setting.by_part);
    let mut attempt = setting.attempt(&by_address);
    attempt.challenges.beta += one();
    let refusals = attempt.refusals();
    assert!(refusals.contains(&Refusal::PublicInputs));
    for part in 0..PARTS {
        assert!(
            refusals.contains(&Refusal::Part(part, Check::LeafAfter)),
            "{part}"
        );
    }
}
