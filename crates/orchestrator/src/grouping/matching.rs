//! Match: a group is the messages that share a grouping value.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Group, Member, OfferDecision, OverdueDecision, Strategy, StrategyFactory};
use crate::id::TaskId;

/// Number of messages that complete a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This many in total, from any queues.
    Total(usize),
    /// This many from each queue.
    PerQueue(BTreeMap<Arc<str>, usize>),
}

/// A group is complete with the expected number of messages of one grouping value. If the stage has no
/// grouping pointer, the value is the message's first block.
///
/// A barrier fires once. Messages that come for a group already emitted are late, and so are surplus messages
/// of a queue. The stage's [`Late`](crate::plan::Late) setting decides what happens to them.
#[derive(Clone, Debug)]
pub struct Match {
    /// Number of messages that complete a group.
    pub expected: Expected,
    /// Whether an overdue group is emitted incomplete.
    pub partial: bool,
}

struct MatchState {
    settings: Match,
    groups: BTreeMap<String, Vec<Member>>,
    /// Group of each message held.
    keys: HashMap<TaskId, String>,
}

impl StrategyFactory for Match {
    fn build(&self) -> Box<dyn Strategy> {
        Box::new(MatchState {
            settings: self.clone(),
            groups: BTreeMap::new(),
            keys: HashMap::new(),
        })
    }

    fn affinity(&self, message: &Member) -> Option<String> {
        Some(MatchState::key_of(message))
    }

    fn missing(&self, held: &[Member]) -> Option<String> {
        match &self.expected {
            Expected::Total(k) => Some(format!("{} of {k}", k.saturating_sub(held.len()))),
            Expected::PerQueue(counts) => {
                let lacking = counts.iter().filter_map(|(queue, k)| {
                    let has = held.iter().filter(|member| member.queue == *queue).count();
                    (has < *k).then(|| format!("{} of {k} of queue {queue:?}", k - has))
                });
                Some(lacking.collect::<Vec<_>>().join(" and "))
            }
        }
    }

    fn reads_payloads(&self) -> bool {
        false
    }
}

// === impl MatchState ===

impl MatchState {
    fn key_of(message: &Member) -> String {
        message
            .group
            .as_deref()
            .map_or_else(|| message.first.to_string(), str::to_owned)
    }

    fn group(key: &str, members: &[Member]) -> Group {
        Group {
            key: key.to_owned(),
            first: members.iter().map(|member| member.first).min().unwrap_or(0),
            last: members.iter().map(|member| member.last).max().unwrap_or(0),
            members: members.iter().map(|member| member.id.clone()).collect(),
        }
    }
}

impl Expected {
    /// Members that complete a group, in the order of arrival; `None` while some are missing.
    fn complete(&self, members: &[Member]) -> Option<Vec<Member>> {
        match self {
            Self::Total(k) => members.get(..*k).map(<[Member]>::to_vec),
            Self::PerQueue(counts) => {
                let mut chosen = Vec::new();
                for (queue, k) in counts {
                    let mut of_queue = members.iter().filter(|member| member.queue == *queue);
                    for _ in 0..*k {
                        chosen.push(of_queue.next()?.clone());
                    }
                }
                Some(chosen)
            }
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Total(k) => k.to_string(),
            Self::PerQueue(counts) => {
                let counts: Vec<String> = counts
                    .iter()
                    .map(|(queue, k)| format!("{k} of {queue}"))
                    .collect();
                counts.join(" and ")
            }
        }
    }
}

impl Strategy for MatchState {
    fn offer(&mut self, message: &Member) -> OfferDecision {
        let key = Self::key_of(message);
        let members = self.groups.entry(key.clone()).or_default();
        if self.keys.insert(message.id.clone(), key.clone()).is_none() {
            members.push(message.clone());
        }
        let Some(chosen) = self.settings.expected.complete(members) else {
            return OfferDecision::InProgress { key };
        };
        for member in &chosen {
            self.keys.remove(&member.id);
        }
        members.retain(|member| self.keys.contains_key(&member.id));
        if members.is_empty() {
            self.groups.remove(&key);
        }
        OfferDecision::Finished(vec![Self::group(&key, &chosen)])
    }

    fn overdue(&mut self, key: &str) -> OverdueDecision {
        let Some(members) = self.groups.remove(key) else {
            return OverdueDecision::Gone;
        };
        for member in &members {
            self.keys.remove(&member.id);
        }
        if self.settings.partial {
            return OverdueDecision::Emit(Self::group(key, &members));
        }
        OverdueDecision::Reject {
            why: format!(
                "group {key:?} had {} of the {} messages it needs when its time was up",
                members.len(),
                self.settings.expected.describe()
            ),
            members: members.into_iter().map(|member| member.id).collect(),
        }
    }

    fn forget(&mut self, id: &TaskId) {
        let Some(key) = self.keys.remove(id) else {
            return;
        };
        let Some(members) = self.groups.get_mut(&key) else {
            return;
        };
        members.retain(|member| member.id != *id);
        if members.is_empty() {
            self.groups.remove(&key);
        }
    }
}
