//! Aggregates made in shards: the same bytes as those of one prover, whatever happens to a shard.

use ark_ff::{AdditiveGroup, UniformRand};
use proofmill_aggregation::sharded::{
    Leader, LeaderError, LeaderMessage, MAX_MESSAGE_BYTES, MAX_SHARDS, Progress, Shard, ShardError,
    ShardKey, ShardKeyError, ShardMessage, Sharding, ShardingError,
};
use proofmill_aggregation::{
    Aggregate, AggregateProveError, AggregateVerifyError, AggregationCurve, Commitment,
    Groth16Index, IndexError, MAX_CAPACITY, MirageIndex, Srs, SrsError,
};
use proofmill_groth16::{Bls12_381, Bn254};

use crate::case::{Case, first, rng, second, srs};
use crate::groth16::Batch;

/// The keys of all shards of a Mirage case.
fn keys<E: AggregationCurve>(srs: &Srs<E>, case: &Case<E>, shards: usize) -> Vec<ShardKey<E>> {
    let sharding = Sharding::new(case.proofs.len(), shards).unwrap();
    let key = |shard| ShardKey::mirage(srs, &case.parts, sharding, shard).unwrap();
    (0..shards).map(key).collect()
}

/// The provers of all shards of a Mirage case.
fn provers<'a, E: AggregationCurve>(keys: &'a [ShardKey<E>], case: &Case<E>) -> Vec<Shard<'a, E>> {
    let provers = keys.iter().map(|key| {
        let sharding = key.sharding();
        let proofs = sharding.items(key.shard(), &case.proofs);
        let d = sharding.items(key.shard(), &case.d);
        Shard::new(key, &proofs, &d).unwrap()
    });
    provers.collect()
}

/// The answer of a shard, when both messages have gone through bytes.
fn answer<E: AggregationCurve>(
    shard: &mut Shard<'_, E>,
    message: &LeaderMessage<E>,
) -> ShardMessage<E> {
    let bytes = message.to_bytes();
    assert!(bytes.len() <= MAX_MESSAGE_BYTES);
    let read = LeaderMessage::from_bytes(&bytes).unwrap();
    assert_eq!(&read, message);
    let answer = shard.receive(&read).unwrap();
    let bytes = answer.to_bytes();
    assert!(bytes.len() <= MAX_MESSAGE_BYTES);
    let read = ShardMessage::from_bytes(&bytes).unwrap();
    assert_eq!(read, answer);
    read
}

/// Gives the leader the answers of all, changed by `change`, until it ends.
fn run<E: AggregationCurve>(
    leader: &mut Leader<'_, E>,
    shards: &mut [Shard<'_, E>],
    mut change: impl FnMut(usize, &mut ShardMessage<E>),
) -> Result<Aggregate<E>, LeaderError> {
    loop {
        let (step, message) = (leader.step(), leader.message().clone());
        // The order of the answers does not matter.
        for (number, shard) in shards.iter_mut().enumerate().rev() {
            assert!(leader.awaits(number));
            let mut answer = answer(shard, &message);
            change(number, &mut answer);
            match leader.receive(number, step, answer)? {
                Progress::Waiting => assert!(number > 0 && !leader.awaits(number)),
                Progress::Next => assert!(number == 0 && leader.message() != &message),
                Progress::Finished(aggregate) => return Ok(*aggregate),
            }
        }
    }
}

fn mirage_shards_make_the_same_aggregate<E: AggregationCurve>(
    counts: &[usize],
    shard_counts: &[usize],
) {
    let srs = srs::<E>(64);
    for (number, count) in counts.iter().enumerate() {
        let classes = [1, 2, 3, *count][number % 4];
        let case = Case::<E>::random(&mut rng(*count as u64), *count, classes, number % 3);
        let proved = case.prove(&srs);
        let verifying_key = proved.index.verifying_key();
        for shards in shard_counts {
            if *shards > count.next_power_of_two() {
                assert!(Sharding::new(*count, *shards).is_err());
                continue;
            }
            let keys = keys(&srs, &case, *shards);
            let commitment: Commitment<E> = keys
                .iter()
                .map(|key| {
                    key.commit(&key.sharding().items(key.shard(), &case.d))
                        .unwrap()
                })
                .sum();
            assert_eq!(commitment, proved.commitment);
            let mut leader =
                Leader::mirage(verifying_key, case.statement(&commitment), *shards).unwrap();
            let mut provers = provers(&keys, &case);
            let made = run(&mut leader, &mut provers, |_, _| {}).unwrap();
            let (made, expected) = (made.to_bytes(), proved.aggregate.to_bytes());
            assert_eq!(made, expected, "{count} proofs in {shards} shards");
        }
    }
}

#[test]
fn mirage_shards_make_the_same_aggregate_on_bls12_381() {
    let counts = [1, 2, 3, 5, 8, 33, 64];
    mirage_shards_make_the_same_aggregate::<Bls12_381>(&counts, &[1, 2, 4]);
}

#[test]
fn mirage_shards_make_the_same_aggregate_on_bn254() {
    // As many shards as places, of which some have no proof.
    let counts = [1, 2, 3, 5, 8, 12, 33];
    mirage_shards_make_the_same_aggregate::<Bn254>(&counts, &[1, 2, 4, 8, 16, 64]);
}

fn groth16_shards_make_the_same_aggregate<E: AggregationCurve>(counts: &[(usize, usize)]) {
    let srs = srs::<E>(64);
    for (count, keys) in counts {
        let batch = Batch::<E>::random(*count as u64, *count, *keys);
        let index = Groth16Index::new(&srs, batch.keys.clone(), batch.key_of.clone()).unwrap();
        let expected = index.aggregate(&srs, &batch.inputs, &batch.proofs).unwrap();
        for shards in [1, 2, 4] {
            if shards > count.next_power_of_two() {
                continue;
            }
            let mut leader = Leader::groth16(&index, &batch.inputs, shards).unwrap();
            let sharding = leader.sharding();
            let keys: Vec<_> = (0..shards)
                .map(|shard| ShardKey::groth16(&srs, &index, sharding, shard).unwrap())
                .collect();
            let provers = keys.iter().map(|key| {
                let proofs = sharding.items(key.shard(), &batch.proofs);
                Shard::new(key, &proofs, &[]).unwrap()
            });
            let mut provers: Vec<_> = provers.collect();
            let made = run(&mut leader, &mut provers, |_, _| {}).unwrap();
            assert_eq!(made.to_bytes(), expected.to_bytes(), "{count}, {shards}");
        }
    }
}

#[test]
fn groth16_shards_make_the_same_aggregate_on_bn254() {
    let counts = [(1, 1), (2, 2), (3, 1), (5, 3), (8, 2), (33, 4), (64, 1)];
    groth16_shards_make_the_same_aggregate::<Bn254>(&counts);
}

#[test]
fn groth16_shards_make_the_same_aggregate_on_bls12_381() {
    groth16_shards_make_the_same_aggregate::<Bls12_381>(&[(1, 1), (5, 3), (8, 2)]);
}

/// Replaces a field of an answer by another value of its group.
fn falsify<E: AggregationCurve>(answer: &mut ShardMessage<E>, field: usize, seed: u64) {
    let random = E::ScalarField::rand(&mut rng(seed));
    let (g1, g2) = (first::<E>(random), second::<E>(random));
    let element = E::pairing(g1, second::<E>(E::ScalarField::from(1u64)));
    match answer {
        ShardMessage::Commitments { both, c } => {
            let mut bytes = [both.to_bytes(), c.to_bytes()].concat();
            let mut other = Vec::new();
            proofmill_aggregation::torus::write_elements(&[element], &mut other);
            let at = other.len() * (field % 4);
            bytes[at..at + other.len()].copy_from_slice(&other);
            let (first, second) = bytes.split_at(2 * other.len());
            *both = Commitment::from_bytes(first).unwrap();
            *c = Commitment::from_bytes(second).unwrap();
        }
        ShardMessage::CrossProducts(elements) => elements[field % 6] = element,
        ShardMessage::Round {
            with_challenge,
            with_inverse,
        } => match field % 6 {
            at @ 0..3 => with_challenge[at] = element,
            at => with_inverse[at - 3] = element,
        },
        ShardMessage::Folded { left, right, v, w } => match field % 6 {
            0 => *left = g1,
            1 => *right = g2,
            at @ (2 | 3) => v[at - 2] = g2,
            at => w[at - 4] = g1,
        },
        ShardMessage::Openings { v, w } => match field % 4 {
            at @ (0 | 1) => v[at] = g2,
            at => w[at - 2] = g1,
        },
    }
}

/// Every field of every answer: the leader does not return an aggregate, and the replay names the liar and the answer.
fn lies_are_found<E: AggregationCurve>() {
    let (srs, shards) = (srs::<E>(8), 2);
    let case = Case::<E>::random(&mut rng(31), 7, 2, 1);
    let proved = case.prove(&srs);
    let keys = keys(&srs, &case, shards);
    let provers = provers(&keys, &case);
    let statement = case.statement(&proved.commitment);
    // Commitments, cross products, two rounds, folded points, openings.
    for false_answer in 0..6 {
        for field in 0..6 {
            let liar = (false_answer + field) % shards;
            let mut leader =
                Leader::mirage(proved.index.verifying_key(), statement, shards).unwrap();
            let mut answers = 0;
            let result = run(&mut leader, &mut provers.clone(), |shard, answer| {
                if shard == liar {
                    if answers == false_answer {
                        falsify(answer, field, field as u64);
                    }
                    answers += 1;
                }
            });
            let invalid = AggregateVerifyError::Invalid;
            assert!(matches!(result, Err(LeaderError::Invalid(of)) if of == invalid));
            let found = provers
                .iter()
                .map(|prover| leader.first_false_answer(prover.clone()));
            let expected = (0..shards).map(|shard| (shard == liar).then_some(false_answer));
            assert!(found.eq(expected), "answer {false_answer}, field {field}");
        }
    }
}

#[test]
fn lies_are_found_on_bls12_381() {
    lies_are_found::<Bls12_381>();
}

#[test]
fn lies_are_found_on_bn254() {
    lies_are_found::<Bn254>();
}

#[test]
fn false_proofs_of_honest_shards_make_no_aggregate() {
    type E = Bn254;
    let srs = srs::<E>(8);
    let mut case = Case::<E>::random(&mut rng(32), 6, 2, 2);
    case.proofs.swap(2, 5);
    let proved = case.prove(&srs);
    let keys = keys(&srs, &case, 4);
    let provers = provers(&keys, &case);
    let statement = case.statement(&proved.commitment);
    let mut leader = Leader::mirage(proved.index.verifying_key(), statement, 4).unwrap();
    let result = run(&mut leader, &mut provers.clone(), |_, _| {});
    assert!(matches!(result, Err(LeaderError::Invalid(_))));
    assert!(
        provers
            .into_iter()
            .all(|prover| leader.first_false_answer(prover).is_none())
    );
}

#[test]
fn a_lost_shard_is_replaced() {
    type E = Bn254;
    let srs = srs::<E>(16);
    let case = Case::<E>::random(&mut rng(33), 13, 3, 1);
    let proved = case.prove(&srs);
    let keys = keys(&srs, &case, 2);
    let fresh = provers(&keys, &case);
    let mut shards = fresh.clone();
    let statement = case.statement(&proved.commitment);
    let mut leader = Leader::mirage(proved.index.verifying_key(), statement, 2).unwrap();
    loop {
        // In every step the second shard dies after the message, and another one takes its place.
        let answer = shards[0].receive(leader.message()).unwrap();
        let step = leader.step();
        assert_eq!(leader.receive(0, step, answer).unwrap(), Progress::Waiting);
        let mut replacement = fresh[1].clone();
        let (last, before) = leader.sent().split_last().unwrap();
        for message in before {
            replacement.receive(message).unwrap();
        }
        let answer = replacement.receive(last).unwrap();
        if let Progress::Finished(aggregate) = leader.receive(1, step, answer).unwrap() {
            assert_eq!(*aggregate, proved.aggregate);
            break;
        }
    }
    let commitments = shards[0].clone().receive(&leader.sent()[0]);
    assert_eq!(commitments, Err(ShardError::Unexpected));
    // The aggregation has ended.
    let answer = fresh[0].clone().receive(&leader.sent()[0]).unwrap();
    assert!(!leader.awaits(0));
    let again = leader.receive(0, leader.step(), answer);
    assert!(matches!(again, Err(LeaderError::Repeated { shard: 0 })));
}

#[test]
fn messages_out_of_order_change_nothing() {
    type E = Bn254;
    let srs = srs::<E>(8);
    let case = Case::<E>::random(&mut rng(34), 5, 2, 1);
    let proved = case.prove(&srs);
    let (keys, statement) = (keys(&srs, &case, 2), case.statement(&proved.commitment));
    let mut recorded = Leader::mirage(proved.index.verifying_key(), statement, 2).unwrap();
    let mut answers = Vec::new();
    let mut provers_of_record = provers(&keys, &case);
    let made = run(&mut recorded, &mut provers_of_record, |shard, answer| {
        if shard == 0 {
            answers.push(answer.clone());
        }
    });
    assert_eq!(made.unwrap(), proved.aggregate);

    let mut leader = Leader::mirage(proved.index.verifying_key(), statement, 2).unwrap();
    let mut shards = provers(&keys, &case);
    for (number, message) in recorded.sent().iter().enumerate() {
        // All others first: to be refused. The two rounds' messages are alike, but for their numbers.
        for (other, message) in recorded.sent().iter().enumerate() {
            if other != number && !(is_fold(message) && is_fold(&recorded.sent()[number])) {
                assert_eq!(shards[0].receive(message), Err(ShardError::Unexpected));
            }
            if other != number {
                let refused = leader.receive(0, other, answers[other].clone());
                assert!(matches!(refused, Err(LeaderError::Unexpected { shard: 0 })));
            }
        }
        let answer = shards[0].receive(message).unwrap();
        assert_eq!(answer, answers[number]);
        leader.receive(0, number, answer.clone()).unwrap();
        let again = leader.receive(0, number, answer.clone());
        assert!(matches!(again, Err(LeaderError::Repeated { shard: 0 })));
        let unknown = leader.receive(2, number, answer);
        assert!(matches!(
            unknown,
            Err(LeaderError::Shard {
                shard: 2,
                shards: 2
            })
        ));
        let answer = shards[1].receive(message).unwrap();
        let progress = leader.receive(1, number, answer).unwrap();
        let is_last = number + 1 == recorded.sent().len();
        assert_eq!(matches!(progress, Progress::Finished(_)), is_last);
    }
}

fn is_fold<E: AggregationCurve>(message: &LeaderMessage<E>) -> bool {
    matches!(message, LeaderMessage::Fold { .. })
}

#[test]
fn messages_for_others_are_refused() {
    type E = Bn254;
    let srs = srs::<E>(8);
    let case = Case::<E>::random(&mut rng(35), 5, 2, 1);
    let proved = case.prove(&srs);
    let (keys, statement) = (keys(&srs, &case, 2), case.statement(&proved.commitment));
    let mut shard = provers(&keys, &case).swap_remove(0);
    let key = proved.index.verifying_key();
    let other = Leader::mirage(key, statement, 4).unwrap();
    let refused = shard.receive(other.message());
    assert_eq!(refused, Err(ShardError::OtherAggregate));
    let leader = Leader::mirage(key, statement, 2).unwrap();
    shard.receive(leader.message()).unwrap();
    let one = <E as ark_ec::pairing::Pairing>::ScalarField::from(1u64);
    let zero = one - one;
    let refused = |shard: &mut Shard<'_, E>, message, expected: ShardError| {
        assert_eq!(shard.receive(&message), Err(expected));
    };
    let inputs = |r, inputs: &[_]| LeaderMessage::Proofs {
        r,
        inputs: inputs.to_vec(),
    };
    let wrong_count = inputs(one, &[one, one]);
    refused(&mut shard, wrong_count, ShardError::OtherAggregate);
    refused(&mut shard, inputs(zero, &[one]), ShardError::Zero);
    assert!(LeaderMessage::<E>::from_bytes(&inputs(zero, &[one]).to_bytes()).is_err());
    assert!(LeaderMessage::<E>::from_bytes(&inputs(one, &[zero]).to_bytes()).is_ok());
    refused(
        &mut shard,
        LeaderMessage::Fold { x: zero },
        ShardError::Zero,
    );
    let last = vec![one, one];
    let message = LeaderMessage::Open { z: one, last };
    refused(&mut shard, message, ShardError::OtherAggregate);
    shard.receive(&inputs(one, &[one])).unwrap();

    let identity = <E as ark_ec::pairing::Pairing>::G1::ZERO.into();
    let proofs = keys[0].sharding().items(0, &case.proofs);
    for (count, d) in [(2, 3), (3, 2)] {
        let error = Shard::new(&keys[0], &proofs[..count], &vec![identity; d]).unwrap_err();
        assert!(matches!(
            error,
            AggregateProveError::Count {
                expected: 3,
                found: 2,
                ..
            }
        ));
    }
    assert!(keys[0].commit(&[identity; 4]).is_err());
}

#[test]
fn impossible_divisions_are_refused() {
    type E = Bn254;
    let small = srs::<E>(4);
    for (count, shards) in [
        (5, 0),
        (5, 3),
        (5, 16),
        (1, 2),
        (MAX_CAPACITY, 2 * MAX_SHARDS),
    ] {
        let refused = Sharding::new(count, shards);
        assert!(matches!(refused, Err(ShardingError::Shards { .. })));
    }
    for count in [0, MAX_CAPACITY + 1] {
        assert_eq!(Sharding::new(count, 1), Err(ShardingError::Count(count)));
    }
    let case = Case::<E>::random(&mut rng(36), 5, 2, 1);
    let sharding = Sharding::new(5, 4).unwrap();
    let lengths: Vec<_> = (0..4).map(|shard| sharding.places(shard).len()).collect();
    assert_eq!(lengths, [2, 1, 1, 1]);
    let too_small = ShardKey::mirage(&small, &case.parts, sharding, 0);
    assert!(matches!(
        too_small,
        Err(ShardKeyError::Index(IndexError::Srs(SrsError::Count {
            count: 5,
            capacity: 4
        })))
    ));
    let srs = srs::<E>(8);
    let unknown = ShardKey::mirage(&srs, &case.parts, sharding, 4);
    assert!(matches!(
        unknown,
        Err(ShardKeyError::Shard {
            shard: 4,
            shards: 4
        })
    ));
    let other = Sharding::new(6, 4).unwrap();
    let other = ShardKey::mirage(&srs, &case.parts, other, 0);
    assert!(matches!(
        other,
        Err(ShardKeyError::Count {
            expected: 5,
            found: 6
        })
    ));
    let mut parts = case.parts.clone();
    parts.inputs[1].truncate(4);
    let inconsistent = ShardKey::mirage(&srs, &parts, sharding, 0);
    assert!(matches!(inconsistent, Err(ShardKeyError::Index(_))));

    let index = MirageIndex::new(&srs, case.parts.clone()).unwrap();
    let commitment = index.commit(&srs, &case.d).unwrap();
    let key = index.verifying_key();
    let none = crate::case::statement(&[], &commitment);
    let refused = Leader::mirage(key, none, 2);
    assert!(matches!(refused, Err(LeaderError::Statement(_))));
    let refused = Leader::mirage(key, case.statement(&commitment), 16);
    assert!(matches!(refused, Err(LeaderError::Sharding(_))));
}
