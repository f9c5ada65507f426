//! Sequential: a group is a run of consecutive blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Group, Member, OfferDecision, OverdueDecision, Strategy, StrategyFactory};
use crate::id::TaskId;

/// Group `g` holds the messages whose first block is in `g·n ..= g·n + n−1`. It is complete when the messages
/// of each input queue cover all `n` blocks. A message may span several blocks.
#[derive(Clone, Debug)]
pub struct Sequential {
    /// Blocks in a group, at least 1.
    pub n: u64,
    /// The queues that the collector reads.
    pub inputs: Vec<Arc<str>>,
    /// Whether an overdue group is emitted incomplete.
    pub partial: bool,
}

struct SequentialState {
    settings: Sequential,
    groups: BTreeMap<u64, Vec<Member>>,
}

impl StrategyFactory for Sequential {
    fn build(&self) -> Box<dyn Strategy> {
        Box::new(SequentialState {
            settings: self.clone(),
            groups: BTreeMap::new(),
        })
    }

    fn affinity(&self, message: &Member) -> Option<String> {
        Some((message.first / self.n).to_string())
    }

    fn missing(&self, held: &[Member]) -> Option<String> {
        let first = held.first()?.first / self.n * self.n;
        missing_blocks(&self.inputs, held, first, first.saturating_add(self.n - 1))
    }

    fn reads_payloads(&self) -> bool {
        false
    }
}

/// The first block of `first..=last` that each queue's messages leave open, in words; `None` if there is none.
pub(super) fn missing_blocks(
    queues: &[Arc<str>],
    held: &[Member],
    first: u64,
    last: u64,
) -> Option<String> {
    let open = queues.iter().filter_map(|queue| {
        let of_queue = held.iter().filter(|member| member.queue == *queue);
        let block = first_open(of_queue, first, last)?;
        Some(format!("block {block} of queue {queue:?}"))
    });
    let open: Vec<String> = open.collect();
    (!open.is_empty()).then(|| open.join(" and "))
}

/// Whether the spans of `members` cover every block of `first..=last`.
pub(super) fn covers<'a>(members: impl Iterator<Item = &'a Member>, first: u64, last: u64) -> bool {
    first_open(members, first, last).is_none()
}

/// The first block of `first..=last` that the spans of `members` leave open.
fn first_open<'a>(members: impl Iterator<Item = &'a Member>, first: u64, last: u64) -> Option<u64> {
    let mut spans: Vec<(u64, u64)> = members.map(|member| (member.first, member.last)).collect();
    spans.sort_unstable();
    let mut next = first;
    for (start, end) in spans {
        if start > next {
            return Some(next);
        }
        if end >= last {
            return None;
        }
        next = next.max(end.saturating_add(1));
    }
    Some(next)
}

// === impl SequentialState ===

impl SequentialState {
    fn bounds(&self, index: u64) -> (u64, u64) {
        let first = index * self.settings.n;
        (first, first.saturating_add(self.settings.n - 1))
    }

    fn group(&self, index: u64, members: &[Member]) -> Group {
        let (first, last) = self.bounds(index);
        Group {
            key: index.to_string(),
            first,
            last: members
                .iter()
                .map(|member| member.last)
                .max()
                .unwrap_or(last)
                .max(last),
            members: members.iter().map(|member| member.id.clone()).collect(),
        }
    }
}

impl Strategy for SequentialState {
    fn offer(&mut self, message: &Member) -> OfferDecision {
        let index = message.first / self.settings.n;
        let (first, last) = self.bounds(index);
        let members = self.groups.entry(index).or_default();
        if !members.iter().any(|member| member.id == message.id) {
            members.push(message.clone());
        }
        let complete = self.settings.inputs.iter().all(|queue| {
            covers(
                members.iter().filter(|member| member.queue == *queue),
                first,
                last,
            )
        });
        if !complete {
            return OfferDecision::InProgress {
                key: index.to_string(),
            };
        }
        let members = self.groups.remove(&index).unwrap_or_default();
        OfferDecision::Finished(vec![self.group(index, &members)])
    }

    fn overdue(&mut self, key: &str) -> OverdueDecision {
        let held = key
            .parse()
            .ok()
            .and_then(|index| Some((index, self.groups.remove(&index)?)));
        let Some((index, members)) = held else {
            return OverdueDecision::Gone;
        };
        if self.settings.partial {
            return OverdueDecision::Emit(self.group(index, &members));
        }
        let (first, last) = self.bounds(index);
        OverdueDecision::Reject {
            why: format!(
                "group {key} lacked some of blocks {first} to {last} when its time was up; \
                 it had {} messages",
                members.len()
            ),
            members: members.into_iter().map(|member| member.id).collect(),
        }
    }

    fn forget(&mut self, id: &TaskId) {
        let index = id.block / self.settings.n;
        let Some(members) = self.groups.get_mut(&index) else {
            return;
        };
        members.retain(|member| member.id != *id);
        if members.is_empty() {
            self.groups.remove(&index);
        }
    }
}
