//! Tests of the strategies against models that keep all messages and evaluate them again each time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Group, Grouping, Match, Member, Offered, Proof, Sequential};
use crate::payload::Facts;

fn member(sequence: u64, queue: usize, block: u64, is_block: bool) -> Member {
    Member {
        sequence,
        queue,
        facts: Facts {
            group: Some(block.to_string()),
            block: Some(block),
            is_block,
            id: None,
        },
        id: None,
    }
}

fn offer_all(grouping: &mut dyn Grouping, members: &[Member]) -> Vec<Group> {
    let mut groups = Vec::new();
    for member in members {
        if let Offered::Taken(made) = grouping.offer(member.clone()) {
            groups.extend(made);
        }
    }
    groups
}

fn held(grouping: &dyn Grouping) -> Vec<u64> {
    let mut held: Vec<u64> = grouping.open().into_iter().flatten().collect();
    held.sort_unstable();
    held
}

/// Messages as `(queue, block, is_block)`, in a given order.
fn members(of: &[(usize, u64, bool)]) -> Vec<Member> {
    let numbered = (1..).zip(of);
    numbered
        .map(|(sequence, &(queue, block, is_block))| member(sequence, queue, block, is_block))
        .collect()
}

proptest! {
    #[test]
    fn match_takes_each_key_in_turns(
        of in proptest::collection::vec((Just(0_usize), 0_u64..5, Just(false)), 0..80),
        inputs in 1_usize..5,
    ) {
        let members = members(&of);
        let mut strategy = Match::new(inputs);
        let groups = offer_all(&mut strategy, &members);
        let mut by_key: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for member in &members {
            by_key.entry(member.facts.group.clone().unwrap()).or_default().push(member.sequence);
        }
        let mut left = Vec::new();
        for (key, sequences) in &by_key {
            let made: Vec<_> = groups.iter().filter(|group| group.key == *key).collect();
            let whole = sequences.chunks_exact(inputs);
            left.extend_from_slice(whole.remainder());
            let whole: Vec<&[u64]> = whole.collect();
            let made: Vec<&[u64]> = made.iter().map(|group| &*group.members).collect();
            prop_assert_eq!(whole, made);
        }
        left.sort_unstable();
        prop_assert_eq!(held(&strategy), left);
    }

    #[test]
    fn sequential_is_strictly_in_order(
        order in Just((0_u64..24).collect::<Vec<_>>()).prop_shuffle(),
        missing in proptest::option::of(0_u64..24),
        blocks in 1_u64..5,
        queues in 1_usize..3,
    ) {
        let present = |block: &&u64| Some(**block) != missing;
        let of: Vec<_> = (0..queues)
            .flat_map(|queue| order.iter().filter(present).map(move |&block| (queue, block, false)))
            .collect();
        let members = members(&of);
        let mut strategy = Sequential::new(blocks, queues, Some(0));
        let groups = offer_all(&mut strategy, &members);
        let reach = missing.unwrap_or(24) / blocks * blocks;
        let block_of = |sequence: &u64| members[(*sequence - 1) as usize].facts.block.unwrap();
        let emitted: Vec<u64> = groups.iter().flat_map(|group| group.members.iter().map(block_of)).collect();
        let expected: Vec<u64> = (0..reach).flat_map(|block| vec![block; queues]).collect();
        prop_assert_eq!(emitted, expected);
        prop_assert_eq!(groups.last().and_then(|group| group.mark).unwrap_or(0), reach);
        let kept = held(&strategy).len() + groups.iter().map(|group| group.members.len()).sum::<usize>();
        prop_assert_eq!(kept, members.len());
    }

    #[test]
    fn proof_joins_every_full_set_of_proofs_of_a_known_block(
        of in proptest::collection::vec((Just(0_usize), 0_u64..4, any::<bool>()), 0..60),
        proofs in 1_usize..4,
    ) {
        let members = members(&of);
        let mut strategy = Proof::new(proofs);
        let groups = offer_all(&mut strategy, &members);
        for block in 0..4 {
            let own = |member: &&Member| member.facts.block == Some(block);
            let sets = members.iter().filter(own).filter(|member| !member.facts.is_block).count() / proofs;
            let known = members.iter().filter(own).any(|member| member.facts.is_block);
            let made: Vec<_> = groups.iter().filter(|group| group.key == block.to_string()).collect();
            prop_assert_eq!(made.len(), if known { sets } else { 0 });
            for group in made {
                let is_block = |sequence: &u64| members[(*sequence - 1) as usize].facts.is_block;
                let own_block = group.members.first().is_some_and(is_block);
                prop_assert_eq!(own_block, group.again.is_none());
                prop_assert!(!group.members[usize::from(own_block)..].iter().any(is_block));
            }
        }
        let mut all = held(&strategy);
        all.extend(groups.iter().flat_map(|group| group.members.iter().copied()));
        all.sort_unstable();
        prop_assert_eq!(all, (1..=members.len() as u64).collect::<Vec<_>>());
    }

    /// A message that was handed back and came again is treated like one that stayed.
    #[test]
    fn what_is_removed_may_come_again(
        of in proptest::collection::vec((0_usize..2, 0_u64..4, any::<bool>()), 0..60),
        back in any::<prop::sample::Index>(),
    ) {
        let members = members(&of);
        let strategies: [Box<dyn Grouping>; 3] = [
            Box::new(Match::new(3)),
            Box::new(Proof::new(2)),
            Box::new(Sequential::new(2, 2, Some(0))),
        ];
        for mut strategy in strategies {
            offer_all(&mut *strategy, &members);
            let before = held(&*strategy);
            if before.is_empty() {
                continue;
            }
            let sequence = before[back.index(before.len())];
            strategy.remove(sequence);
            prop_assert_eq!(held(&*strategy).len(), before.len() - 1);
            let again = members[(sequence - 1) as usize].clone();
            prop_assert_eq!(strategy.offer(again), Offered::Taken(Vec::new()));
            prop_assert_eq!(held(&*strategy), before);
        }
    }
}

#[test]
fn the_results_of_one_task_count_once() {
    let mut strategy = Match::new(2);
    let mut first = member(1, 0, 7, false);
    first.facts.id = Some("step_1".to_owned());
    let mut again = first.clone();
    again.sequence = 2;
    let mut published_twice = member(3, 0, 7, false);
    published_twice.id = Some("x".to_owned());
    assert_eq!(strategy.offer(first.clone()), Offered::Taken(Vec::new()));
    assert_eq!(strategy.offer(again.clone()), Offered::Repeat);
    let Offered::Taken(groups) = strategy.offer(published_twice) else {
        panic!("it is another");
    };
    assert_eq!(groups[0].members, [1, 3]);
    // From another queue it is another task.
    again.queue = 1;
    strategy.offer(first);
    assert!(matches!(strategy.offer(again), Offered::Taken(groups) if groups.len() == 1));
}

#[test]
fn sequential_goes_on_after_a_restart_and_refuses_what_is_past() {
    let mut strategy = Sequential::new(1, 1, None);
    strategy.restore(9);
    assert!(matches!(
        strategy.offer(member(1, 0, 8, false)),
        Offered::Rejected(_)
    ));
    assert!(
        matches!(strategy.offer(member(2, 0, 9, false)), Offered::Taken(groups) if groups.len() == 1)
    );
    // The largest block numbers do not overflow.
    let mut strategy = Sequential::new(2, 1, Some(u64::MAX));
    assert_eq!(
        strategy.offer(member(1, 0, u64::MAX, false)),
        Offered::Taken(Vec::new())
    );
}

#[test]
fn proofs_of_further_provers_are_joined_with_the_number_again() {
    let mut strategy = Proof::new(1);
    strategy.offer(member(1, 1, 5, true));
    let Offered::Taken(groups) = strategy.offer(member(2, 0, 5, false)) else {
        panic!("it is a proof");
    };
    assert_eq!(
        (groups[0].members.as_slice(), groups[0].again),
        ([1, 2].as_slice(), None)
    );
    let Offered::Taken(groups) = strategy.offer(member(3, 0, 5, false)) else {
        panic!("it is a proof");
    };
    assert_eq!(
        (groups[0].members.as_slice(), groups[0].again),
        ([3].as_slice(), Some(5))
    );
}
