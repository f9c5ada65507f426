//! `partition.batches` and `partition.all-batches`: strategies of two collectors, one after the other, for circuits of more
//! parts than one group may have. The first gathers results of parts in batches, the second the batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use proofmill_orchestrator::core::GROUP_MAX;
use proofmill_orchestrator::grouping::{
    Expected, Group, Match, Member, OfferDecision, OverdueDecision, Strategy, StrategyFactory,
};
use proofmill_orchestrator::id::TaskId;
use proofmill_orchestrator::payload::Payload;
use serde::Deserialize;
use serde_json::Value;

use super::messages::PartResult;

/// Most parts of a circuit that a workflow proves: as many batches as a group has members.
pub(crate) const PARTS_MAX: usize = GROUP_MAX * GROUP_MAX;

/// Parts of a batch: the n-th batch has the parts from n·`batch` on. A workflow's parameters of the strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batches {
    /// Parts of the circuit.
    parts: usize,
    /// Parts of each batch, besides the last one, which may have fewer.
    batch: usize,
}

/// The results that wait, by part, and their batches' keys.
struct BatchState {
    settings: Batches,
    /// By block of the job and number of the batch.
    waiting: BTreeMap<(u64, usize), BTreeMap<usize, Member>>,
}

/// A factory of the strategy `partition.all-batches`, which gathers this many batches of a job.
pub(super) fn all_batches(params: &Value) -> Result<Arc<dyn StrategyFactory>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Params {
        batches: usize,
    }
    let params = Params::deserialize(params).map_err(|error| error.to_string())?;
    // Without a grouping pointer, a group is the messages of one block: of one job.
    Ok(Arc::new(Match {
        expected: Expected::Total(params.batches),
        partial: false,
    }))
}

// === impl Batches ===

impl Batches {
    /// Batches of about equal size; none if all parts fit one group.
    pub(crate) fn of(parts: usize) -> Option<Self> {
        if parts <= GROUP_MAX {
            return None;
        }
        let batch = parts.div_ceil(parts.div_ceil(GROUP_MAX));
        Some(Self { parts, batch })
    }

    /// Parts of each batch, besides the last one.
    pub(crate) const fn size(self) -> usize {
        self.batch
    }

    /// The number of batches.
    pub(crate) const fn count(self) -> usize {
        self.parts.div_ceil(self.batch)
    }

    /// The parts of a batch.
    fn size_of(self, batch: usize) -> usize {
        self.batch
            .min(self.parts.saturating_sub(batch * self.batch))
    }

    /// A strategy's factory, from the parameters of a workflow.
    pub(super) fn factory(params: &Value) -> Result<Arc<dyn StrategyFactory>, String> {
        let settings = Self::deserialize(params).map_err(|error| error.to_string())?;
        match (1..=GROUP_MAX).contains(&settings.batch) && settings.parts >= 1 {
            true => Ok(Arc::new(settings)),
            false => Err(format!("a batch has from 1 to {GROUP_MAX} parts")),
        }
    }

    /// The part that a message is the result of.
    fn part_of(self, message: &Member) -> Result<usize, String> {
        let Payload::Inline { bytes, .. } = &message.payload else {
            return Err("it is too long for the result of a part".to_owned());
        };
        let result: PartResult = serde_json::from_slice(bytes).map_err(|why| why.to_string())?;
        match (result.part as usize) < self.parts {
            true => Ok(result.part as usize),
            false => Err(format!("there is no part {}", result.part)),
        }
    }
}

impl StrategyFactory for Batches {
    fn build(&self) -> Box<dyn Strategy> {
        Box::new(BatchState {
            settings: *self,
            waiting: BTreeMap::new(),
        })
    }

    fn affinity(&self, message: &Member) -> Option<String> {
        Some(message.first.to_string())
    }
}

// === impl BatchState ===

fn key_of(key: (u64, usize)) -> String {
    format!("{}/{}", key.0, key.1)
}

fn group(key: (u64, usize), members: BTreeMap<usize, Member>) -> Group {
    Group {
        key: key_of(key),
        first: key.0,
        last: key.0,
        members: members.into_values().map(|member| member.id).collect(),
    }
}

impl Strategy for BatchState {
    fn offer(&mut self, message: &Member) -> OfferDecision {
        let part = match self.settings.part_of(message) {
            Ok(part) => part,
            Err(why) => return OfferDecision::Skip(why),
        };
        let batch = part / self.settings.batch;
        let key = (message.first, batch);
        let waiting = self.waiting.entry(key).or_default();
        match waiting.get(&part) {
            Some(known) if known.id != message.id => {
                return OfferDecision::Skip(format!("a second result of part {part}"));
            }
            _ => waiting.insert(part, message.clone()),
        };
        if waiting.len() < self.settings.size_of(batch) {
            return OfferDecision::InProgress { key: key_of(key) };
        }
        let members = self.waiting.remove(&key).unwrap_or_default();
        OfferDecision::Finished(vec![group(key, members)])
    }

    fn overdue(&mut self, key: &str) -> OverdueDecision {
        let found = self.waiting.keys().copied().find(|of| key_of(*of) == key);
        let Some((found, members)) = found.and_then(|of| Some((of, self.waiting.remove(&of)?)))
        else {
            return OverdueDecision::Gone;
        };
        OverdueDecision::Reject {
            why: format!(
                "batch {} had {} of its {} parts when its time was up",
                found.1,
                members.len(),
                self.settings.size_of(found.1)
            ),
            members: group(found, members).members,
        }
    }

    fn forget(&mut self, id: &TaskId) {
        for members in self.waiting.values_mut() {
            members.retain(|_, member| member.id != *id);
        }
        self.waiting.retain(|_, members| !members.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use proofmill_orchestrator::payload::Encoding;

    use super::*;

    fn message(part: usize, number: u32) -> Member {
        let json = format!(r#"{{"job":"3","part":{part},"commitment":""}}"#);
        Member {
            id: format!("batches/3/{number}").parse().expect("an id"),
            queue: "commitments".into(),
            first: 3,
            last: 3,
            group: None,
            payload: Payload::Inline {
                encoding: Encoding::Json,
                bytes: json.into(),
            },
        }
    }

    #[test]
    fn batches_are_about_equal() {
        assert_eq!(Batches::of(GROUP_MAX), None);
        for (parts, batch, count) in [(481, 241, 2), (512, 256, 2), (961, 321, 3)] {
            let batches = Batches::of(parts).expect("several");
            assert_eq!((batches.size(), batches.count()), (batch, count), "{parts}");
            let sizes = (0..count).map(|batch| batches.size_of(batch));
            assert_eq!(sizes.sum::<usize>(), parts);
        }
        assert!(Batches::of(PARTS_MAX).expect("several").count() <= GROUP_MAX);
    }

    #[test]
    fn a_batch_is_complete_with_one_result_for_each_part() {
        let settings = Batches { parts: 5, batch: 3 };
        let mut state = StrategyFactory::build(&settings);
        let waits = |decision| matches!(decision, OfferDecision::InProgress { .. });
        assert!(waits(state.offer(&message(1, 1))));
        assert!(waits(state.offer(&message(4, 4))));
        assert!(waits(state.offer(&message(1, 1))), "offered again");
        let second = state.offer(&message(1, 9));
        assert!(matches!(second, OfferDecision::Skip(_)), "of the same part");
        assert!(matches!(
            state.offer(&message(5, 5)),
            OfferDecision::Skip(_)
        ));
        assert!(waits(state.offer(&message(0, 0))));
        let OfferDecision::Finished(groups) = state.offer(&message(2, 2)) else {
            panic!("three of three parts");
        };
        assert_eq!((&*groups[0].key, groups[0].members.len()), ("3/0", 3));
        state.forget(&message(4, 4).id);
        assert!(waits(state.offer(&message(3, 3))));
        assert!(matches!(state.overdue("3/0"), OverdueDecision::Gone));
        let OverdueDecision::Reject { members, why } = state.overdue("3/1") else {
            panic!("one of two parts");
        };
        assert_eq!(members, [message(3, 3).id]);
        assert!(why.contains("1 of its 2"), "{why}");
    }

    #[test]
    fn what_is_no_result_of_a_part_is_skipped() {
        let settings = Batches { parts: 5, batch: 3 };
        let mut state = StrategyFactory::build(&settings);
        let mut strange = message(0, 0);
        strange.payload = Payload::Inline {
            encoding: Encoding::Binary,
            bytes: "?".into(),
        };
        assert!(matches!(state.offer(&strange), OfferDecision::Skip(_)));
        let none = serde_json::json!({ "parts": 5, "batch": 0 });
        assert!(Batches::factory(&none).is_err());
    }
}
