//! Cheating provers: each fills in everything else as consistently as can be, and only the check that
//! is meant for it refuses. Those that cheat on the multiset are in `multiset_cheats`.

use ark_bn254::Fr;

use super::attempt::{Attempt, FalseSum, Refusal, Values, challenges};
use super::chain::{Chain, HEARD, Read, SQUARE};
use super::multiset_cheats::{
    chosen_for, false_sum_of_multiset, never_put, never_taken, other_multiplicity,
    other_multiset_at_start, other_value_put, other_value_taken, wrong_multiplicity,
};
use crate::access_order::AccessOrder;
use crate::state::States;
use crate::tree::{Leaf, Path, compress};
use crate::{Challenges, Check, Partition};

pub(crate) const PARTS: usize = 7;
pub(super) const LAST: usize = PARTS - 1;
const PUBLIC: [u64; 2] = [5, 9];

/// The number of a middle part's access that sets its power.
const SET_POWER: usize = 3;

/// A chain, and the values of an honest prover.
pub(crate) struct Setting {
    pub(crate) partition: Partition<Fr>,
    pub(super) circuit: Chain<Fr>,
    pub(super) by_part: Vec<Fr>,
    /// The values of each part's transfers.
    pub(super) transfers: Vec<Vec<Fr>>,
    pub(crate) challenges: Challenges<Fr>,
}

/// A way to cheat: the committed values, and the attempt made from them at the challenges.
pub(crate) struct Cheat {
    pub(crate) name: &'static str,
    pub(crate) setting: fn() -> Setting,
    pub(crate) attempt: fn(&Setting) -> Attempt<'_, Chain<Fr>>,
}

/// One cheat of each kind, for whole proofs.
pub(crate) const CHEATS: &[Cheat] = &[
    Cheat {
        name: "a portal with another value than written",
        setting: || Setting::lying(Some((3, Read::Power, one()))),
        attempt: Setting::consistent,
    },
    Cheat {
        name: "a cell with a value that was never stored",
        setting: || Setting::lying(Some((4, Read::Cell, one()))),
        attempt: Setting::consistent,
    },
    Cheat {
        name: "a stale value, across a border",
        setting: || stale(3),
        attempt: Setting::consistent,
    },
    Cheat {
        name: "a renamed address",
        setting: || renamed(3).0,
        attempt: |setting| setting.attempt(&unnamed(setting, 3, renamed(3).1)),
    },
    Cheat {
        name: "a trace that is no permutation",
        setting: Setting::honest,
        attempt: |setting| setting.attempt(&no_permutation(setting)),
    },
    Cheat {
        name: "another value set than computed",
        setting: other_value_set,
        attempt: Setting::consistent,
    },
    Cheat {
        name: "swapped parts",
        setting: swapped_data,
        attempt: swapped,
    },
    Cheat {
        name: "a repeated part",
        setting: repeated,
        attempt: Setting::consistent,
    },
    Cheat {
        name: "a repeated proof",
        setting: repeated_data,
        attempt: repeated_proof,
    },
    Cheat {
        name: "a leaf at another position",
        setting: Setting::honest,
        attempt: leaf_elsewhere,
    },
    Cheat {
        name: "two leaves for one position",
        setting: Setting::honest,
        attempt: two_leaves,
    },
    Cheat {
        name: "other start values",
        setting: Setting::honest,
        attempt: other_start,
    },
    Cheat {
        name: "another public input",
        setting: Setting::honest,
        attempt: |setting| other_input(setting, 1),
    },
    Cheat {
        name: "a public input that no part reads",
        setting: unread_input,
        attempt: |setting| setting.attempt(&unread_input_by_address(setting)),
    },
    Cheat {
        name: "a false sum of the trace by part",
        setting: Setting::honest,
        attempt: |setting| false_sum_of_traces(setting, Check::SumByPart),
    },
    Cheat {
        name: "a false sum of the trace by address",
        setting: Setting::honest,
        attempt: |setting| false_sum_of_traces(setting, Check::SumByAddress),
    },
    Cheat {
        name: "a value taken that was never put",
        setting: never_put,
        attempt: Setting::consistent,
    },
    Cheat {
        name: "a value put that is never taken",
        setting: never_taken,
        attempt: Setting::consistent,
    },
    Cheat {
        name: "a wrong multiplicity",
        setting: wrong_multiplicity,
        attempt: Setting::consistent,
    },
    Cheat {
        name: "another value put than computed",
        setting: other_value_put,
        attempt: Setting::consistent,
    },
    Cheat {
        name: "another value taken than computed with",
        setting: other_value_taken,
        attempt: Setting::consistent,
    },
    Cheat {
        name: "another multiplicity than the wire's",
        setting: other_multiplicity,
        attempt: Setting::consistent,
    },
    Cheat {
        name: "a false sum of the multiset",
        setting: never_put,
        attempt: |setting| false_sum_of_multiset(setting, 2, 0),
    },
    Cheat {
        name: "a multiset that is not empty at the start",
        setting: never_put,
        attempt: other_multiset_at_start,
    },
    Cheat {
        name: "a value chosen for another α",
        setting: || chosen_for(challenges()),
        attempt: Setting::consistent,
    },
];

impl Setting {
    pub(crate) fn honest() -> Self {
        Self::lying(None)
    }

    /// A setting whose values follow from a lie, in the trace too.
    fn lying(lie: Option<(usize, Read, Fr)>) -> Self {
        let partition = Partition::new(&Chain::blank(PARTS)).unwrap();
        let liar = Chain::lying(PARTS, PUBLIC, lie);
        let traces = partition.trace(&liar).unwrap();
        let Values {
            mut by_part,
            transfers,
            ..
        } = Values::of(&partition, &traces);
        if let Some((part, read, difference)) = lie {
            by_part[place(partition.order(), part, read)] += difference;
        }
        let circuit = Chain { lie: None, ..liar };
        Self {
            partition,
            circuit,
            by_part,
            transfers,
            challenges: challenges(),
        }
    }

    /// Changes the values of transfers, and the circuit's data to which they are equal.
    pub(super) fn transferring(mut self, data: impl FnOnce(&mut Chain<Fr>)) -> Self {
        data(&mut self.circuit);
        let traces = self.partition.unmatched_trace(&self.circuit).unwrap();
        self.transfers = Values::of(&self.partition, &traces).transfers;
        self
    }

    fn order(&self) -> &AccessOrder {
        self.partition.order()
    }

    pub(super) fn sorted(&self, by_part: &[Fr]) -> Vec<Fr> {
        self.order().sorted(0..self.order().entries(), by_part)
    }

    pub(super) fn attempt(&self, by_address: &[Fr]) -> Attempt<'_, Chain<Fr>> {
        let Self {
            partition, circuit, ..
        } = self;
        Attempt::at(
            self.challenges,
            partition,
            circuit,
            &self.values(by_address),
        )
    }

    pub(super) fn values(&self, by_address: &[Fr]) -> Values {
        Values {
            by_part: self.by_part.clone(),
            by_address: by_address.to_vec(),
            transfers: self.transfers.clone(),
        }
    }

    /// An attempt with the values by address in their right order.
    pub(crate) fn consistent(&self) -> Attempt<'_, Chain<Fr>> {
        self.attempt(&self.sorted(&self.by_part))
    }
}

fn place(order: &AccessOrder, part: usize, read: Read) -> usize {
    order.range(part).start + read as usize
}

pub(super) fn one() -> Fr {
    Fr::from(1u64)
}

/// Asserts that all refusals are by this check, in any parts.
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
    for part in 2..PARTS {
        only(Check::EqualValues, &stale(part).consistent().refusals());
    }
}

fn stale(part: usize) -> Setting {
    let honest = Setting::honest();
    let [old, new] =
        [part - 1, part].map(|part| honest.by_part[place(honest.order(), part, Read::Cell)]);
    let setting = Setting::lying(Some((part, Read::Cell, old - new)));
    let loaded = setting.by_part[place(setting.order(), part, Read::Cell)];
    assert_eq!(loaded, old);
    setting
}

/// A part that reads the wire of another name: its entry in A is as it should be.
#[test]
fn a_renamed_address() {
    for part in 2..PARTS {
        let (setting, difference) = renamed(part);
        let refusals = setting
            .attempt(&unnamed(&setting, part, difference))
            .refusals();
        assert_eq!(refusals, [Refusal::Part(LAST, Check::EqualTraces)]);
    }
}

/// A setting, and the difference of the value read.
fn renamed(part: usize) -> (Setting, Fr) {
    let honest = Setting::honest();
    let [first, power] =
        [Read::First, Read::Power].map(|read| honest.by_part[place(honest.order(), part, read)]);
    let difference = power - first;
    let setting = Setting::lying(Some((part, Read::First, difference)));
    (setting, difference)
}

/// The values by address as they should be.
fn unnamed(setting: &Setting, part: usize, difference: Fr) -> Vec<Fr> {
    let mut repaired = setting.by_part.clone();
    repaired[place(setting.order(), part, Read::First)] -= difference;
    setting.sorted(&repaired)
}

/// Values by address that satisfy all that is local, and are no permutation of those by part.
fn no_permutation(setting: &Setting) -> Vec<Fr> {
    let order = setting.order();
    let addresses = order.by_address(0..order.entries());
    let changed = order.by_part(order.range(2))[SET_POWER];
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
    assert_eq!(refusals, [Refusal::Part(LAST, Check::EqualTraces)]);
}

/// A portal set to another value than the circuit computes; its reader uses that value.
#[test]
fn another_value_set() {
    let refusals = other_value_set().consistent().refusals();
    assert_eq!(refusals, [Refusal::Part(LAST - 1, Check::Circuit)]);
}

fn other_value_set() -> Setting {
    let mut setting = Setting::lying(Some((LAST, Read::Power, one())));
    let place = setting.order().range(LAST - 1).start + SET_POWER;
    setting.by_part[place] += one();
    setting
}

/// Two parts of a class with equal constants are exchanged, so that neither state is in its place. (Where
/// the cut between the traces goes through an address, values differ there too.)
#[test]
fn swapped_parts() {
    let mut refusals = swapped(&swapped_data()).refusals();
    refusals.retain(|refusal| !matches!(refusal, Refusal::Part(_, Check::EqualValues)));
    let expected = [2, 4]
        .map(|part| [Check::LeafBefore, Check::LeafAfter].map(|check| Refusal::Part(part, check)));
    assert_eq!(refusals, expected.concat());
}

/// Each of the two parts runs with the other's data.
fn swapped_data() -> Setting {
    let mut setting = Setting::honest();
    setting.circuit.digits.swap(2, 4);
    setting.circuit.heard.swap(2, 4);
    setting
}

fn swapped(setting: &Setting) -> Attempt<'_, Chain<Fr>> {
    let mut attempt = setting.consistent();
    attempt.traces.swap(2, 4);
    attempt.openings.swap(2, 4);
    attempt
}

/// A part that repeats an earlier part's work, at its own position.
#[test]
fn a_repeated_part() {
    only(Check::EqualValues, &repeated().consistent().refusals());
}

fn repeated() -> Setting {
    let mut setting = Setting::honest();
    let [from, to] = [2, 4].map(|part| setting.order().range(part));
    setting.by_part.copy_within(from, to.start);
    let square = setting.transfers[2][SQUARE];
    setting.transfers[4][SQUARE] = square;
    setting.transfers[3][HEARD] = square;
    setting.circuit.heard[3] = square;
    setting
}

/// A part that repeats an earlier part's work, with the states of that part.
#[test]
fn a_repeated_proof() {
    let expected = [Check::LeafBefore, Check::LeafAfter].map(|check| Refusal::Part(4, check));
    assert_eq!(repeated_proof(&repeated_data()).refusals(), expected);
}

fn repeated_data() -> Setting {
    let mut setting = Setting::honest();
    setting.circuit.digits[4] = setting.circuit.digits[2];
    setting.circuit.heard[4] = setting.circuit.heard[2];
    setting
}

fn repeated_proof(setting: &Setting) -> Attempt<'_, Chain<Fr>> {
    let mut attempt = setting.consistent();
    attempt.traces[4] = attempt.traces[2].clone();
    attempt.openings[4] = attempt.openings[2].clone();
    attempt
}

/// The leaves of traces that are not permutations of each other, except for a last leaf with equal sums; and the state
/// before the last part that would lead to it.
fn forged(setting: &Setting, by_address: &[Fr]) -> (Vec<Leaf<Fr>>, Leaf<Fr>) {
    let values = setting.values(by_address);
    let states = values.states(&setting.partition, setting.challenges, 7);
    let mut leaves = states.leaves().to_vec();
    let difference = std::mem::take(&mut leaves[PARTS].traces);
    let forged = Leaf {
        traces: leaves[LAST].traces - difference,
        ..leaves[LAST]
    };
    (leaves, forged)
}

/// The forged state is a leaf that no part ends at.
#[test]
fn a_leaf_at_another_position() {
    let setting = Setting::honest();
    let attempt = leaf_elsewhere(&setting);
    assert_eq!(attempt.refusals(), [Refusal::Part(LAST, Check::LeafBefore)]);
}

fn leaf_elsewhere(setting: &Setting) -> Attempt<'_, Chain<Fr>> {
    let by_address = no_permutation(setting);
    let (mut leaves, forged) = forged(setting, &by_address);
    let spare = leaves.len();
    leaves.push(forged);
    let mut attempt = setting.attempt(&by_address);
    let states = States::from_leaves(setting.challenges, leaves);
    attempt.open(&states);
    attempt.openings.truncate(PARTS);
    attempt.openings[LAST].before = forged;
    attempt.openings[LAST].before_path = states.opening(spare - 1).unwrap().after_path;
    attempt
}

/// The forged state is at the right position, under another root.
#[test]
fn two_leaves_for_one_position() {
    let setting = Setting::honest();
    let attempt = two_leaves(&setting);
    assert_eq!(attempt.refusals(), [Refusal::Part(LAST, Check::LeafBefore)]);
}

fn two_leaves(setting: &Setting) -> Attempt<'_, Chain<Fr>> {
    let by_address = no_permutation(setting);
    let (leaves, forged) = forged(setting, &by_address);
    let mut attempt = setting.attempt(&by_address);
    attempt.open(&States::from_leaves(setting.challenges, leaves));
    let opening = &mut attempt.openings[LAST];
    let mut children = opening.before_path.children().to_vec();
    let mut node = forged.hash();
    for (level, children) in children.iter_mut().enumerate() {
        children[LAST >> (2 * level) & 3] = node;
        node = compress(children);
    }
    opening.before = forged;
    opening.before_path = Path::new(children);
    attempt
}

/// All states have an extra term, with which the final sums are equal; that of the public inputs must not.
#[test]
fn other_start_values() {
    let refusals = other_start(&Setting::honest()).refusals();
    assert_eq!(refusals, [Refusal::PublicInputs]);
}

fn other_start(setting: &Setting) -> Attempt<'_, Chain<Fr>> {
    let by_address = no_permutation(setting);
    let mut attempt = setting.attempt(&by_address);
    let (mut leaves, forged) = forged(setting, &by_address);
    let difference = forged.traces - leaves[LAST].traces;
    for leaf in &mut leaves[..PARTS] {
        leaf.traces += difference;
    }
    attempt.open(&States::from_leaves(setting.challenges, leaves));
    attempt
}

/// A part adds to a sum something else than its entries yield, at any of them.
#[test]
fn a_false_sum_of_traces() {
    let setting = Setting::honest();
    for check in [Check::SumByPart, Check::SumByAddress] {
        let refusals = false_sum_of_traces(&setting, check).refusals();
        assert_eq!(refusals, [Refusal::Part(3, check)]);
    }
}

fn false_sum_of_traces(setting: &Setting, check: Check) -> Attempt<'_, Chain<Fr>> {
    let by_address = no_permutation(setting);
    let values = setting.values(&by_address);
    let states = values.states(&setting.partition, setting.challenges, 6);
    let (part, row) = (3, 1);
    setting
        .attempt(&by_address)
        .falsify(&states, FalseSum { part, check, row })
}

#[test]
fn another_public_input() {
    let setting = Setting::honest();
    for index in 0..setting.circuit.public.len() {
        let refusals = other_input(&setting, index).refusals();
        assert_eq!(refusals, [Refusal::PublicInputs]);
    }
    let mut attempt = setting.consistent();
    attempt.public_inputs.pop();
    assert_eq!(attempt.refusals(), [Refusal::PublicInputs]);
}

fn other_input(setting: &Setting, index: usize) -> Attempt<'_, Chain<Fr>> {
    let mut attempt = setting.consistent();
    attempt.public_inputs[index] += one();
    attempt
}

/// The state at position 0 is that of the public input that is claimed; parts read another.
#[test]
fn a_public_input_that_no_part_reads() {
    let setting = unread_input();
    let attempt = setting.attempt(&unread_input_by_address(&setting));
    let expected = [Refusal::Part(LAST, Check::EqualTraces)];
    assert_eq!(attempt.refusals(), expected);
}

fn unread_input() -> Setting {
    let mut setting = Setting::honest();
    setting.by_part[0] += one();
    setting
}

/// The first two entries by address are the input and its reader: both as is claimed.
fn unread_input_by_address(setting: &Setting) -> Vec<Fr> {
    let mut by_address = setting.sorted(&setting.by_part);
    assert_eq!(by_address[0], by_address[1] + one());
    by_address[1] += one();
    by_address
}

/// Challenges that others drew: states made for them are not those of the public inputs.
#[test]
fn other_challenges() {
    let setting = Setting::honest();
    let mut attempt = setting.consistent();
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
