//! A record of the messages that are in emitted groups.

use std::collections::{HashSet, VecDeque};

use async_nats::HeaderMap;

use super::grouping::Group;

/// Most messages that are remembered.
const REMEMBERED: usize = 262_144;

const MEMBERS: &str = "Proofmill-Members";
const MARK: &str = "Proofmill-Mark";
const INPUT: &str = "Proofmill-Input";

/// The messages that are in emitted groups, up to the last [`REMEMBERED`].
#[derive(Debug)]
pub(super) struct Emitted {
    /// The consumer, and the stream it reads with its time of creation: sequence numbers of another stream
    /// mean other messages.
    input: String,
    order: VecDeque<u64>,
    known: HashSet<u64>,
}

// === impl Emitted ===

impl Emitted {
    pub(super) fn new(input: String) -> Self {
        Self {
            input,
            order: VecDeque::new(),
            known: HashSet::new(),
        }
    }

    pub(super) fn contains(&self, sequence: u64) -> bool {
        self.known.contains(&sequence)
    }

    pub(super) fn insert(&mut self, sequence: u64) {
        if self.known.insert(sequence) {
            self.order.push_back(sequence);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Headers of a group's message, from which a successor of this process learns the members.
    pub(super) fn headers(&self, group: &Group) -> HeaderMap {
        let members: Vec<String> = group.members.iter().map(u64::to_string).collect();
        let mut headers = HeaderMap::new();
        headers.insert(INPUT, self.input.as_str());
        headers.insert(MEMBERS, members.join(","));
        if let Some(mark) = group.mark {
            headers.insert(MARK, mark.to_string());
        }
        headers
    }

    /// Records a group from the headers of its message, and returns its mark. Messages of other collectors
    /// and malformed headers are ignored.
    pub(super) fn restore(&mut self, headers: &HeaderMap) -> Option<u64> {
        if headers.get(INPUT)?.as_str() != self.input {
            return None;
        }
        for member in headers.get(MEMBERS)?.as_str().split(',') {
            if let Ok(sequence) = member.parse() {
                self.insert(sequence);
            }
        }
        headers.get(MARK)?.as_str().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_knows_what_was_emitted_from_the_same_stream() {
        let group = Group {
            key: "7".into(),
            again: None,
            members: vec![3, 5],
            mark: Some(8),
        };
        let headers = Emitted::new("c 1".into()).headers(&group);
        let mut successor = Emitted::new("c 1".into());
        assert_eq!(successor.restore(&headers), Some(8));
        assert!(successor.contains(3) && successor.contains(5) && !successor.contains(4));
        let mut other = Emitted::new("c 2".into());
        assert_eq!(other.restore(&headers), None);
        assert!(!other.contains(3));
        assert_eq!(other.restore(&HeaderMap::new()), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut emitted = Emitted::new(String::new());
        for sequence in 0..=REMEMBERED as u64 {
            emitted.insert(sequence);
        }
        assert!(!emitted.contains(0) && emitted.contains(1));
        assert_eq!(emitted.known.len(), REMEMBERED);
    }
}
