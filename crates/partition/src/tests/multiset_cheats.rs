//! Provers that cheat on the multiset: only the check that is meant for each cheat refuses it.

use ark_bn254::Fr;
use ark_ff::Field;

use super::attempt::{Attempt, FalseSum, Refusal, challenges};
use super::chain::{Chain, DIGIT, FIRST_TIMES, SQUARE};
use super::cheats::{LAST, PARTS, Setting, one};
use crate::state::States;
use crate::{Challenges, Check};

/// A take that no put matches, a put that no take matches, a row of the table with another multiplicity.
#[test]
fn an_unmatched_value() {
    let expected = [Refusal::Part(LAST, Check::EmptyMultiset)];
    for setting in [never_put(), never_taken(), wrong_multiplicity()] {
        assert_eq!(setting.consistent().refusals(), expected);
    }
    for part in 0..PARTS {
        let setting = Setting::honest().transferring(|chain| chain.digits[part] += one());
        assert_eq!(setting.consistent().refusals(), expected, "part {part}");
    }
}

pub(super) fn never_put() -> Setting {
    Setting::honest().transferring(|chain| chain.digits[3] = Fr::from(7u64))
}

/// The part before takes a row of the table instead, which is counted.
pub(super) fn never_taken() -> Setting {
    Setting::honest().transferring(|chain| {
        chain.heard[2] = one();
        chain.times[1] += one();
    })
}

pub(super) fn wrong_multiplicity() -> Setting {
    Setting::honest().transferring(|chain| chain.times[1] += one())
}

/// A part puts another value than its code computes; the part that takes it uses that value.
#[test]
fn another_value_put() {
    let refusals = other_value_put().consistent().refusals();
    assert_eq!(refusals, [Refusal::Part(4, Check::Circuit)]);
}

pub(super) fn other_value_put() -> Setting {
    let mut setting = Setting::honest().transferring(|chain| chain.heard[3] += one());
    setting.transfers[4][SQUARE] += one();
    setting
}

/// A part takes a row of the table, and computes with another value.
#[test]
fn another_value_taken() {
    let refusals = other_value_taken().consistent().refusals();
    assert_eq!(refusals, [Refusal::Part(3, Check::Circuit)]);
}

pub(super) fn other_value_taken() -> Setting {
    let mut setting = Setting::honest();
    setting.circuit.digits[3] = Fr::from(7u64);
    assert_eq!(setting.transfers[3][DIGIT], Fr::from(3u64));
    setting
}

/// The multiplicity that is summed up is not that of the wire.
#[test]
fn another_multiplicity() {
    let refusals = other_multiplicity().consistent().refusals();
    assert_eq!(refusals, [Refusal::Part(0, Check::Circuit)]);
}

pub(super) fn other_multiplicity() -> Setting {
    let mut setting = Setting::honest();
    setting.circuit.times[0] += one();
    assert_eq!(setting.transfers[0][FIRST_TIMES], Fr::from(2u64));
    setting
}

/// A part adds to the sum something else than its transfers yield, at any of them.
#[test]
fn a_false_sum_of_the_multiset() {
    let setting = never_put();
    for (part, rows) in [(0, 6), (1, 3), (5, 3), (LAST, 2)] {
        for row in 0..rows {
            let refusals = false_sum_of_multiset(&setting, part, row).refusals();
            assert_eq!(refusals, [Refusal::Part(part, Check::Multiset)]);
        }
    }
}

pub(super) fn false_sum_of_multiset(
    setting: &Setting,
    part: usize,
    row: usize,
) -> Attempt<'_, Chain<Fr>> {
    let by_address = setting.sorted(&setting.by_part);
    let values = setting.values(&by_address);
    let states = values.states(&setting.partition, setting.challenges, 6);
    let check = Check::Multiset;
    setting
        .attempt(&by_address)
        .falsify(&states, FalseSum { part, check, row })
}

/// All states, that of the public inputs too, have a multiset with which it is empty in the end.
#[test]
fn a_multiset_that_is_not_empty_at_the_start() {
    let refusals = other_multiset_at_start(&never_put()).refusals();
    assert_eq!(refusals, [Refusal::PublicInputs]);
}

pub(super) fn other_multiset_at_start(setting: &Setting) -> Attempt<'_, Chain<Fr>> {
    let mut attempt = setting.consistent();
    let values = setting.values(&setting.sorted(&setting.by_part));
    let states = values.states(&setting.partition, setting.challenges, 6);
    let mut leaves = states.leaves().to_vec();
    let difference = leaves[PARTS].multiset;
    for leaf in &mut leaves {
        leaf.multiset -= difference;
    }
    attempt.open(&States::from_leaves(setting.challenges, leaves));
    attempt
}

/// A value with which the sum is zero at a known α: nothing refuses it there, so α must be drawn after all values are
/// committed to.
#[test]
fn a_value_chosen_after_the_challenges() {
    let setting = chosen_for(challenges());
    assert_eq!(setting.consistent().refusals(), []);
    let mut elsewhere = setting;
    elsewhere.challenges.alpha += one();
    let expected = [Refusal::Part(LAST, Check::EmptyMultiset)];
    assert_eq!(elsewhere.consistent().refusals(), expected);
}

/// Besides a digit that is not in the table, one that makes up for it.
pub(super) fn chosen_for(known: Challenges<Fr>) -> Setting {
    let setting = never_put();
    let values = setting.values(&setting.sorted(&setting.by_part));
    let states = values.states(&setting.partition, known, 6);
    let difference = states.leaves()[PARTS].multiset;
    // The digit of part 5 is subtracted as 1/(α − digit).
    let taken = (known.alpha - setting.transfers[5][DIGIT])
        .inverse()
        .unwrap();
    let fraction = (difference + taken).inverse().unwrap();
    setting.transferring(|chain| {
        chain.digits[3] = Fr::from(7u64);
        chain.digits[5] = known.alpha - fraction;
    })
}
