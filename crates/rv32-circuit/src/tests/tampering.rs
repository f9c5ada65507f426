//! Changed witnesses of a step whose surroundings stay: all are refused.

use std::collections::{BTreeMap, BTreeSet};

use ark_bn254::Fr;
use ark_ff::{Field, One, Zero};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_rv32::Step;

use super::one_step::{INSTANCE, OneStep};
use super::random::{kind, random_steps};
use crate::row::Row;
use crate::step::Advice;

/// The witness variable of the immediate, the first.
const IMMEDIATE: usize = INSTANCE;

/// The instance variable of the row that is taken.
const ROW_ENTRY: usize = 7;

/// Steps of each kind of instruction.
const PER_KIND: usize = 12;

fn steps_by_kind() -> BTreeMap<String, Vec<(OneStep, Step)>> {
    let rng = &mut StdRng::seed_from_u64(2);
    let mut kinds: BTreeMap<String, Vec<(OneStep, Step)>> = BTreeMap::new();
    for _ in 0..12 {
        for (one, step) in random_steps(rng, 1000) {
            let known = kinds.entry(kind(&step)).or_default();
            if known.len() < PER_KIND {
                known.push((one, step));
            }
        }
    }
    assert_eq!(kinds.len(), 52);
    kinds
}

/// Bits, results, carries, quotients, entries, the next pc: a change of any one value is refused, but for inverses of
/// zero, which are arbitrary and change nothing.
#[test]
fn a_change_of_any_value_is_refused() {
    let system = OneStep::system();
    let mut rows = Vec::new();
    let mut free = BTreeSet::new();
    for (one, step) in steps_by_kind().into_values().flatten() {
        let (mut z, _) = one.assign();
        assert!(system.is_satisfied(&z));
        if rows.is_empty() {
            rows = system.rows_of_columns(z.len());
        }
        for column in 1..z.len() {
            let good = z[column];
            for wrong in [good + Fr::one(), Fr::one() - good, -good, good + good] {
                z[column] = wrong;
                if wrong != good && rows[column].iter().all(|row| system.holds(&z, *row)) {
                    assert!(good.is_zero(), "{column} of {step:?}");
                    free.insert(column);
                }
            }
            z[column] = good;
        }
    }
    assert!(free.iter().all(|column| *column >= INSTANCE), "{free:?}");
    assert_eq!(free.len(), 3, "three inverses: {free:?}");
}

/// Consistent lies about products, quotients and remainders.
#[test]
fn wrong_words_of_the_multiplier_are_refused() {
    let system = OneStep::system();
    let mut refused = 0;
    for (one, step) in steps_by_kind().into_values().flatten() {
        let divisor = step.rs2.map_or(0, |read| read.value);
        let lies: [fn(Advice, u32) -> Advice; 9] = [
            |a, d| Advice {
                low: a.low.wrapping_add(1),
                high: a.high.wrapping_sub(d),
                ..a
            },
            |a, d| Advice {
                low: a.low.wrapping_sub(1),
                high: a.high.wrapping_add(d),
                ..a
            },
            |a, d| Advice {
                low: a.low.wrapping_sub(1),
                high: a.high.wrapping_add(d),
                remainder_negative: !a.remainder_negative,
                ..a
            },
            |a, d| Advice {
                low: a.low.wrapping_add(1),
                high: a.high.wrapping_sub(d),
                remainder_negative: !a.remainder_negative,
                negative: !a.negative,
            },
            |a, _| Advice {
                low: a.low ^ 1,
                ..a
            },
            |a, _| Advice {
                high: a.high ^ 1,
                ..a
            },
            |a, _| Advice {
                negative: !a.negative,
                ..a
            },
            |a, _| Advice {
                remainder_negative: !a.remainder_negative,
                ..a
            },
            |_, _| Advice {
                low: 0,
                high: 0,
                negative: false,
                remainder_negative: false,
            },
        ];
        let (honest, _) = one.assign();
        for lie in lies {
            let mut changed = true;
            let (z, _) = one.assign_advised(|advice| {
                let lie = lie(advice, divisor);
                changed = lie != advice;
                lie
            });
            if changed && system.is_satisfied(&z) {
                // Only where it leaves the same.
                assert_eq!(z[..INSTANCE], honest[..INSTANCE], "{step:?}");
            } else if changed {
                refused += 1;
            }
        }
    }
    assert!(refused > 4000, "{refused}");
}

/// Another instruction than the program's, with an immediate that makes up the difference in the field.
#[test]
fn an_immediate_beyond_its_range_is_refused() {
    let system = OneStep::system();
    let kinds = steps_by_kind();
    let sample: Vec<OneStep> = kinds.values().map(|steps| steps[0].0).collect();
    let weight = Fr::from(2u64).pow([150u64]);
    for claimed in &sample {
        for real in &sample {
            if claimed.witness.row.flags == real.witness.row.flags {
                continue;
            }
            // The step does what is claimed, at the pc of the real row.
            let (mut z, _) = claimed.assign();
            assert!(system.is_satisfied(&z));
            let row = Row {
                pc: claimed.witness.row.pc,
                ..real.witness.row
            };
            let entry: Fr = crate::parts::packed(&row);
            let difference = entry - z[ROW_ENTRY];
            z[IMMEDIATE] += difference / weight;
            z[ROW_ENTRY] = entry;
            assert!(!system.is_satisfied(&z), "{claimed:?} for {real:?}");
        }
    }
}
