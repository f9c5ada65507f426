//! Range: messages of one queue set ranges of blocks, and the other queues fill them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::sequential::{covers, missing_blocks};
use super::{Group, Member, OfferDecision, OverdueDecision, Strategy, StrategyFactory};
use crate::id::TaskId;

/// A message of queue `by` (for example, a batch committed by a proposer) spans blocks `first..=last`. Its
/// group is complete when each of the other queues covers that range with messages inside it. A message that
/// has waited for T_collect without a range around it is given up. A message inside a range that was emitted
/// is late: ranges do not overlap.
#[derive(Clone, Debug)]
pub struct Range {
    /// Queue whose messages set the ranges.
    pub by: Arc<str>,
    /// The other queues that the collector reads.
    pub others: Vec<Arc<str>>,
    /// Whether an overdue group is emitted incomplete.
    pub partial: bool,
}

struct RangeState {
    settings: Range,
    boundaries: BTreeMap<TaskId, Member>,
    waiting: BTreeMap<(u64, TaskId), Member>,
}

impl StrategyFactory for Range {
    fn build(&self) -> Box<dyn Strategy> {
        Box::new(RangeState {
            settings: self.clone(),
            boundaries: BTreeMap::new(),
            waiting: BTreeMap::new(),
        })
    }

    /// A message is late if it lies inside an emitted range and inside none that waits.
    fn belonged_to(&self, message: &Member, waits_in: &str, emitted: &str, last: u64) -> bool {
        let first = emitted.split(':').next().and_then(|it| it.parse().ok());
        let is_inside = |first: u64| first <= message.first && message.last <= last;
        waits_in.starts_with(ORPHAN) && message.queue != self.by && first.is_some_and(is_inside)
    }

    fn missing(&self, held: &[Member]) -> Option<String> {
        match held.iter().find(|member| member.queue == self.by) {
            Some(boundary) => missing_blocks(&self.others, held, boundary.first, boundary.last),
            None => Some(format!(
                "a message of queue {:?} that spans block {}",
                self.by,
                held.first()?.first
            )),
        }
    }

    fn reads_payloads(&self) -> bool {
        false
    }
}

/// First character of the key of messages that lie inside no range yet.
const ORPHAN: char = '?';

// === impl RangeState ===

impl RangeState {
    fn inside(&self, boundary: &Member) -> Vec<Member> {
        self.waiting
            .range((boundary.first, smallest_id())..)
            .map(|(_, member)| member)
            .take_while(|member| member.first <= boundary.last)
            .filter(|member| member.last <= boundary.last)
            .cloned()
            .collect()
    }

    fn is_complete(&self, boundary: &Member, inside: &[Member]) -> bool {
        self.settings.others.iter().all(|queue| {
            let of_queue = inside.iter().filter(|member| member.queue == *queue);
            covers(of_queue, boundary.first, boundary.last)
        })
    }

    fn give_up_orphans(&mut self, key: &str) -> OverdueDecision {
        let Some(first) = key
            .strip_prefix(ORPHAN)
            .and_then(|first| first.parse().ok())
        else {
            return OverdueDecision::Gone;
        };
        let inside = |boundary: &Member, member: &Member| {
            boundary.first <= member.first && member.last <= boundary.last
        };
        let members: Vec<TaskId> = self
            .waiting
            .range((first, smallest_id())..)
            .take_while(|((block, _), _)| *block == first)
            .filter(|(_, member)| !self.boundaries.values().any(|b| inside(b, member)))
            .map(|((_, id), _)| id.clone())
            .collect();
        for id in &members {
            self.waiting.remove(&(first, id.clone()));
        }
        if members.is_empty() {
            return OverdueDecision::Gone;
        }
        OverdueDecision::Reject {
            members,
            why: format!(
                "no message of {:?} spans blocks from {first} on, and their time is up",
                self.settings.by
            ),
        }
    }

    fn take(&mut self, boundary: &Member, inside: &[Member]) -> Group {
        self.boundaries.remove(&boundary.id);
        for member in inside {
            self.waiting.remove(&(member.first, member.id.clone()));
        }
        let members = std::iter::once(boundary).chain(inside);
        Group {
            key: key_of(boundary),
            first: boundary.first,
            last: boundary.last,
            members: members.map(|member| member.id.clone()).collect(),
        }
    }
}

/// Key of the messages from block `first` that lie inside no range yet.
fn orphan_key(first: u64) -> String {
    format!("{ORPHAN}{first}")
}

fn key_of(boundary: &Member) -> String {
    format!("{}:{}", boundary.first, boundary.id.part)
}

fn smallest_id() -> TaskId {
    TaskId {
        stage: "".into(),
        block: 0,
        part: crate::id::Part::from_text("-"),
    }
}

impl Strategy for RangeState {
    fn offer(&mut self, message: &Member) -> OfferDecision {
        if message.queue == self.settings.by {
            self.boundaries.insert(message.id.clone(), message.clone());
        } else {
            self.waiting
                .insert((message.first, message.id.clone()), message.clone());
        }
        let touched: Vec<Member> = self
            .boundaries
            .values()
            .filter(|boundary| boundary.first <= message.first && message.last <= boundary.last)
            .cloned()
            .collect();
        for boundary in &touched {
            let inside = self.inside(boundary);
            if self.is_complete(boundary, &inside) {
                return OfferDecision::Finished(vec![self.take(boundary, &inside)]);
            }
        }
        let key = touched
            .first()
            .map_or_else(|| orphan_key(message.first), key_of);
        OfferDecision::InProgress { key }
    }

    fn overdue(&mut self, key: &str) -> OverdueDecision {
        let boundary = self
            .boundaries
            .values()
            .find(|boundary| key_of(boundary) == key)
            .cloned();
        let Some(boundary) = boundary else {
            return self.give_up_orphans(key);
        };
        let inside = self.inside(&boundary);
        let count = inside.len();
        let group = self.take(&boundary, &inside);
        if self.settings.partial {
            return OverdueDecision::Emit(group);
        }
        OverdueDecision::Reject {
            members: group.members,
            why: format!(
                "blocks {} to {} of {:?} were not covered by every other queue when their time \
                 was up; {count} messages had come",
                boundary.first, boundary.last, self.settings.by
            ),
        }
    }

    fn forget(&mut self, id: &TaskId) {
        self.boundaries.remove(id);
        self.waiting.remove(&(id.block, id.clone()));
    }
}
