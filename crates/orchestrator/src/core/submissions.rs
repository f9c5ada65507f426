//! Messages of producers that wait: for room in a queue, for their paused source, or for an append that decides about
//! their tasks.

use std::collections::BTreeMap;

use super::event::RequestId;
use crate::conversation::Submit;
use crate::plan::QueueIx;

/// A message from a producer, and the request to reply to.
pub(super) struct Submission {
    request: RequestId,
    submit: Submit,
}

/// Messages from producers that nothing has been recorded of.
#[derive(Default)]
pub(super) struct Submissions {
    /// Messages that wait for room, by queue; in a queue, by first block and then in the order of arrival.
    parked: BTreeMap<QueueIx, BTreeMap<(u64, u64), Submission>>,
    next_park: u64,
    /// Messages of sources that an operator has paused, in the order of arrival.
    held: Vec<Submission>,
    /// Messages that wait for appends, in the order of arrival.
    deferred: Vec<Submission>,
}

// === impl Submission ===

impl Submission {
    pub(super) fn new(request: RequestId, submit: Submit) -> Self {
        Self { request, submit }
    }

    pub(super) fn request(&self) -> RequestId {
        self.request
    }

    pub(super) fn submit(&self) -> &Submit {
        &self.submit
    }

    pub(super) fn into_submit(self) -> Submit {
        self.submit
    }
}

// === impl Submissions ===

impl Submissions {
    /// Keeps a message until its queue has room.
    pub(super) fn park(&mut self, submission: Submission) {
        let submit = &submission.submit;
        let key = (submit.message.first, self.next_park);
        self.next_park += 1;
        let queue = self.parked.entry(submit.queue).or_default();
        queue.insert(key, submission);
    }

    /// Whether a message of a lower block, or an earlier one of the same block, already waits for room.
    pub(super) fn is_behind(&self, queue: QueueIx, block: u64) -> bool {
        self.lowest(queue).is_some_and(|lowest| lowest <= block)
    }

    /// Queues that messages wait for room in.
    pub(super) fn queues(&self) -> Vec<QueueIx> {
        self.parked.keys().copied().collect()
    }

    /// Lowest first block of the messages that wait for room in a queue.
    pub(super) fn lowest(&self, queue: QueueIx) -> Option<u64> {
        let ((lowest, _), _) = self.parked.get(&queue)?.first_key_value()?;
        Some(*lowest)
    }

    /// Takes the message with the lowest first block out of a queue.
    pub(super) fn pop_lowest(&mut self, queue: QueueIx) -> Option<Submission> {
        let parked = self.parked.get_mut(&queue)?;
        let (_, submission) = parked.pop_first()?;
        if parked.is_empty() {
            self.parked.remove(&queue);
        }
        Some(submission)
    }

    /// Keeps a message until its source is resumed.
    pub(super) fn hold(&mut self, submission: Submission) {
        self.held.push(submission);
    }

    /// Keeps the matching messages that wait for room until their source is resumed.
    pub(super) fn hold_parked(&mut self, is_meant: impl Fn(&Submit) -> bool) {
        for parked in self.parked.values_mut() {
            let meant = parked.iter().filter(|(_, of)| is_meant(&of.submit));
            let keys: Vec<_> = meant.map(|(key, _)| *key).collect();
            self.held
                .extend(keys.iter().filter_map(|key| parked.remove(key)));
        }
        self.parked.retain(|_, parked| !parked.is_empty());
    }

    /// Takes out the matching messages of paused sources, lowest first block first.
    pub(super) fn take_held(&mut self, is_meant: impl Fn(&Submit) -> bool) -> Vec<Submission> {
        let meant = self.held.extract_if(.., |of| is_meant(&of.submit));
        let mut taken: Vec<Submission> = meant.collect();
        taken.sort_by_key(|of| of.submit.message.first);
        taken
    }

    /// Keeps a message until the pending appends have been answered.
    pub(super) fn defer(&mut self, submission: Submission) {
        self.deferred.push(submission);
    }

    /// Takes out the messages that wait for appends.
    pub(super) fn take_deferred(&mut self) -> Vec<Submission> {
        std::mem::take(&mut self.deferred)
    }

    /// Takes out the messages that wait for room, queue by queue.
    pub(super) fn take_parked(&mut self) -> impl Iterator<Item = Submission> + use<> {
        let parked = std::mem::take(&mut self.parked);
        parked.into_values().flat_map(BTreeMap::into_values)
    }

    /// Takes out the messages of a producer about blocks from `from` on; those that wait for room come first.
    pub(super) fn take_from(&mut self, producer: &str, from: u64) -> Vec<Submission> {
        let is_meant =
            |of: &Submission| &*of.submit.producer == producer && of.submit.message.last >= from;
        let mut taken = Vec::new();
        for parked in self.parked.values_mut() {
            let meant = parked.iter().filter(|(_, of)| is_meant(of));
            let keys: Vec<_> = meant.map(|(key, _)| *key).collect();
            taken.extend(keys.iter().filter_map(|key| parked.remove(key)));
        }
        self.parked.retain(|_, parked| !parked.is_empty());
        taken.extend(self.held.extract_if(.., |of| is_meant(of)));
        taken.extend(self.deferred.extract_if(.., |of| is_meant(of)));
        taken
    }

    /// Whether a message of this producer for a block below `next` waits. The producer's position may then
    /// not be recorded as `next`, or a crash would lose the message.
    pub(super) fn holds_back(&self, producer: &str, next: u64) -> bool {
        let mut waiting = self.iter();
        waiting.any(|Submission { submit, .. }| {
            &*submit.producer == producer && submit.message.first < next
        })
    }

    /// All waiting messages; those that wait for room come first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Submission> {
        let parked = self.parked.values().flat_map(BTreeMap::values);
        parked.chain(&self.held).chain(&self.deferred)
    }

    /// Number of messages that wait for room.
    pub(super) fn parked(&self) -> usize {
        self.parked.values().map(BTreeMap::len).sum()
    }

    /// Number of messages of paused sources.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether no message waits for appends.
    #[cfg(debug_assertions)]
    pub(super) fn none_deferred(&self) -> bool {
        self.deferred.is_empty()
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) -> Result<(), String> {
        for (queue, parked) in &self.parked {
            let is_filed = |((first, _), Submission { submit, .. }): (&(u64, u64), &Submission)| {
                submit.queue == *queue && submit.message.first == *first
            };
            if parked.is_empty() || !parked.iter().all(is_filed) {
                return Err(format!("queue {}: what waits for room is off", queue.0));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Uniqueness;
    use crate::id::Part;
    use crate::message::Message;
    use crate::payload::Payload;

    fn submit(producer: &str, queue: usize, first: u64) -> Submission {
        let submit = Submit {
            producer: producer.into(),
            queue: QueueIx(queue),
            message: Message {
                first,
                last: first,
                part: Part::whole(),
                payload: Payload::json("1"),
                needs: None,
                grouping: Vec::new(),
            },
            uniqueness: Uniqueness::Multiple,
            source_next: None,
            caller: None,
        };
        Submission::new(RequestId(first), submit)
    }

    #[test]
    fn the_lowest_block_is_let_in_first_and_holds_its_producer_back() {
        let mut waiting = Submissions::default();
        waiting.park(submit("a", 0, 7));
        waiting.park(submit("b", 0, 5));
        waiting.defer(submit("a", 1, 2));
        assert!(waiting.is_behind(QueueIx(0), 5) && !waiting.is_behind(QueueIx(0), 4));
        assert!(waiting.holds_back("a", 3) && !waiting.holds_back("b", 5));
        let lowest = waiting.pop_lowest(QueueIx(0)).map(|of| of.request());
        assert_eq!(lowest, Some(RequestId(5)));
        let taken = waiting.take_from("a", 3);
        assert_eq!((taken.len(), waiting.check()), (1, Ok(())));
        assert_eq!((waiting.parked(), waiting.queues().len()), (0, 0));
        assert_eq!(waiting.take_deferred().len(), 1);
    }
}
