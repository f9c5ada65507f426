//! Parts from the bytes of their witness: the same assignments as from the whole batch, and what is refused.

use ark_bn254::Fr;
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_partition::{Challenges, DistributedCircuit, PartitionedCircuit};

use super::case::{LEVELS, PARTITION, key, shape, tree, value};
use crate::circuit::UpdateBatch;
use crate::{KeyDigest, ValueDigest};

/// Bytes of an update without its siblings, and of a sibling.
const TRANSITION: usize = 114;
const SIBLING: usize = 32;

fn batch(updates: &[(KeyDigest, ValueDigest)]) -> UpdateBatch {
    UpdateBatch::apply(shape(), &mut tree(), updates).unwrap()
}

/// Batches of a replacement and an insertion; of one update, followed by an idle one; of idle updates alone.
fn batches() -> [UpdateBatch; 3] {
    let updates = [(key(1, 1), value(9)), (key(0, 1), value(8))];
    [batch(&updates), batch(&updates[..1]), batch(&[])]
}

fn witness(batch: &UpdateBatch, part: usize) -> Vec<u8> {
    DistributedCircuit::<Fr>::part_witness(batch, part)
}

fn part_of(part: usize, bytes: &[u8]) -> Result<UpdateBatch, String> {
    let blank = UpdateBatch::blank(shape());
    DistributedCircuit::<Fr>::with_part_witness(&blank, part, bytes)
}

/// Whatever the code of a part takes is in its witness: the values of all its variables are those of the whole batch.
#[test]
fn each_part_is_assigned_from_its_own_witness() {
    for batch in batches() {
        let traces = PARTITION.trace(&batch).unwrap();
        let rng = &mut StdRng::seed_from_u64(3);
        let challenges = Challenges {
            alpha: Fr::rand(rng),
            beta: Fr::rand(rng),
        };
        let states = PARTITION.states(&traces, challenges, rng).unwrap();
        for part in 0..PARTITION.num_parts() {
            let alone = part_of(part, &witness(&batch, part)).unwrap();
            assert_eq!(witness(&alone, part), witness(&batch, part));
            let trace = PARTITION.part_trace(&traces, part).unwrap();
            let opening = states.opening(part).unwrap();
            let z = |circuit: &UpdateBatch| {
                let made = PARTITION.assignment(circuit, part, &trace, &challenges, &opening);
                made.unwrap().z().to_vec()
            };
            assert!(z(&alone) == z(&batch), "part {part}");
            let class = &PARTITION.classes()[PARTITION.class_of(part).unwrap()];
            assert_eq!(class.system().is_satisfied(&z(&alone)), Ok(()));
        }
    }
}

/// A part above the first gets the siblings of its levels; the first one the update too, and no other update.
#[test]
fn a_part_gets_nothing_of_other_parts() {
    let [full, short, _] = batches();
    let parts = LEVELS as usize;
    for part in 0..2 * parts {
        let expected = match part % parts {
            0 => TRANSITION + SIBLING,
            _ => SIBLING,
        };
        let bytes = witness(&full, part);
        assert_eq!(bytes.len(), expected, "part {part}");
        let transition = &full.updates[part / parts];
        assert!(bytes.ends_with(&transition.siblings[part % parts].0));
        let alone = part_of(part, &bytes).unwrap();
        let held = alone.updates.len();
        assert_eq!(held, usize::from(part % parts == 0), "part {part}");
        assert_eq!(alone.root_before, Default::default());
    }
    // The second update is idle.
    assert_eq!(witness(&short, 0)[0], 0);
    assert_eq!(witness(&short, parts)[0], 1);
}

#[test]
fn other_bytes_are_no_witness_of_a_part() {
    let [batch, ..] = batches();
    for part in 0..PARTITION.num_parts() {
        let bytes = witness(&batch, part);
        for length in 0..bytes.len() {
            part_of(part, &bytes[..length]).unwrap_err();
        }
        let longer = part_of(part, &[&bytes[..], &[0]].concat()).unwrap_err();
        assert_eq!(
            longer,
            "a witness of a part with too few or too many bytes, at its end"
        );
    }
    // Marks other than 0 and 1, and an absent key with a state. The first update replaces, the second inserts.
    let (replaced, inserted) = (witness(&batch, 0), witness(&batch, LEVELS as usize));
    for (bytes, place, to, why) in [
        (&replaced, 0, 2, "mark of an idle update"),
        (&replaced, 1, 7, "mark of a present key"),
        (&replaced, 1, 0, "state of an absent key"),
        (&inserted, 34, 1, "state of an absent key"),
        (&inserted, 73, 1, "state of an absent key"),
    ] {
        let mut changed = bytes.clone();
        changed[place] = to;
        let refused = part_of(0, &changed).unwrap_err();
        assert_eq!(
            refused,
            format!("a witness of a part with an impossible {why}")
        );
    }
    let parts = PARTITION.num_parts();
    for part in [parts, usize::MAX] {
        assert!(witness(&batch, part).is_empty());
        let refused = part_of(part, &[]).unwrap_err();
        assert_eq!(
            refused,
            format!("there is no part {part}: the circuit has {parts}")
        );
    }
}

/// Another part's witness, or a changed one, leads to an assignment that is refused, or to none.
#[test]
fn a_changed_witness_proves_nothing() {
    let [batch, ..] = batches();
    let traces = PARTITION.trace(&batch).unwrap();
    let rng = &mut StdRng::seed_from_u64(4);
    let challenges = Challenges {
        alpha: Fr::rand(rng),
        beta: Fr::rand(rng),
    };
    let states = PARTITION.states(&traces, challenges, rng).unwrap();
    let is_refused = |part: usize, bytes: &[u8]| {
        let circuit = part_of(part, bytes).unwrap();
        let trace = PARTITION.part_trace(&traces, part).unwrap();
        let opening = states.opening(part).unwrap();
        let made = PARTITION.assignment(&circuit, part, &trace, &challenges, &opening);
        let class = &PARTITION.classes()[PARTITION.class_of(part).unwrap()];
        made.map_or(true, |assignment| {
            class.system().is_satisfied(assignment.z()).is_err()
        })
    };
    for part in 0..PARTITION.num_parts() {
        let bytes = witness(&batch, part);
        assert!(!is_refused(part, &bytes));
        for place in (0..bytes.len()).filter(|place| bytes.len() == SIBLING || *place > 1) {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            // The state before of an inserted key has one encoding.
            if part_of(part, &changed).is_ok() {
                assert!(is_refused(part, &changed), "part {part}, byte {place}");
            }
        }
    }
    let parts = PartitionedCircuit::<Fr>::num_parts(&batch) / 2;
    assert!(is_refused(0, &witness(&batch, parts)));
    assert!(is_refused(1, &witness(&batch, 2)));
}
