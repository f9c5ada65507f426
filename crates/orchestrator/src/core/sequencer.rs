//! The sequencer: block n is emitted only after block n − 1, and once.
//!
//! Its position is three block numbers: the next block to hand to the sink, the cursor once every pending
//! append has been accepted, and the cursor in the log. They never decrease, and none overtakes the one
//! before it.

use std::collections::VecDeque;

use super::tasks::TaskNo;

/// Maximum number of messages that the sink has been given and not confirmed.
const EMITTING_MAX: usize = 64;

/// Position of the emission, and the messages that the sink has been given.
pub(super) struct Sequencer {
    cursor: u64,
    cursor_ahead: u64,
    emit_next: u64,
    emitting: VecDeque<Emission>,
}

/// A message that the sink has been given.
struct Emission {
    no: TaskNo,
    confirmed: bool,
}

// === impl Sequencer ===

impl Sequencer {
    /// A sequencer whose first block is `start`.
    pub(super) fn new(start: u64) -> Self {
        Self {
            cursor: start,
            cursor_ahead: start,
            emit_next: start,
            emitting: VecDeque::new(),
        }
    }

    /// Block below which every block has been emitted, according to the log.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Cursor once every pending append has been accepted.
    pub(super) fn cursor_ahead(&self) -> u64 {
        self.cursor_ahead
    }

    /// Next block to hand to the sink.
    pub(super) fn next(&self) -> u64 {
        self.emit_next
    }

    /// Takes over the cursor from a record of the log.
    pub(super) fn record(&mut self, cursor: u64) {
        self.cursor = self.cursor.max(cursor);
        self.cursor_ahead = self.cursor_ahead.max(cursor);
        self.emit_next = self.emit_next.max(cursor);
    }

    /// Continues the emission at the log's cursor after a restart.
    pub(super) fn resume(&mut self) {
        self.emit_next = self.cursor;
        self.cursor_ahead = self.cursor;
    }

    /// Whether the sink may be given another message.
    pub(super) fn has_room(&self) -> bool {
        self.emitting.len() < EMITTING_MAX
    }

    /// Notes that the sink is given a message whose last block is `last`.
    pub(super) fn emit(&mut self, no: TaskNo, last: u64) {
        self.emit_next = last.saturating_add(1);
        self.emitting.push_back(Emission {
            no,
            confirmed: false,
        });
    }

    /// Notes that the sink has confirmed a message. Returns whether the sink had been given it.
    pub(super) fn confirm(&mut self, no: TaskNo) -> bool {
        let mut emitting = self.emitting.iter_mut();
        let emission = emitting.find(|emission| emission.no == no);
        emission.map(|emission| emission.confirmed = true).is_some()
    }

    /// Removes and returns the earliest message given to the sink, if it is confirmed. A later message's
    /// confirmation waits for it; otherwise the cursor would pass a message that the sink does not have.
    pub(super) fn pop_confirmed(&mut self) -> Option<TaskNo> {
        self.emitting
            .front()
            .filter(|emission| emission.confirmed)?;
        self.emitting.pop_front().map(|emission| emission.no)
    }

    /// Notes that an append with cursor `next` is on its way to the log.
    pub(super) fn advance(&mut self, next: u64) {
        self.cursor_ahead = self.cursor_ahead.max(next);
    }

    /// Whether the sink has confirmed every message.
    pub(super) fn is_idle(&self) -> bool {
        self.emitting.is_empty()
    }

    /// Messages given to the sink that are not confirmed, or whose predecessors are not.
    #[cfg(debug_assertions)]
    pub(super) fn emitting(&self) -> impl Iterator<Item = TaskNo> + '_ {
        self.emitting.iter().map(|emission| emission.no)
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) -> Result<(), String> {
        match self.cursor <= self.cursor_ahead && self.cursor <= self.emit_next {
            true => Ok(()),
            false => Err("the cursor is ahead of itself".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_waits_for_those_of_lower_blocks() {
        let mut sequencer = Sequencer::new(5);
        let (first, second) = (TaskNo::new(1), TaskNo::new(2));
        sequencer.emit(first, 5);
        sequencer.emit(second, 7);
        assert_eq!((sequencer.next(), sequencer.cursor()), (8, 5));
        assert!(sequencer.confirm(second));
        assert_eq!(sequencer.pop_confirmed(), None);
        assert!(sequencer.confirm(first) && !sequencer.confirm(TaskNo::new(3)));
        assert_eq!(sequencer.pop_confirmed(), Some(first));
        assert_eq!(sequencer.pop_confirmed(), Some(second));
        assert!(sequencer.is_idle());
    }

    #[test]
    fn the_cursor_follows_what_is_on_its_way_and_never_falls() {
        let mut sequencer = Sequencer::new(0);
        sequencer.emit(TaskNo::new(1), 3);
        sequencer.advance(4);
        assert_eq!((sequencer.cursor(), sequencer.cursor_ahead()), (0, 4));
        sequencer.record(4);
        sequencer.record(2);
        assert_eq!(sequencer.cursor(), 4);
        assert_eq!(sequencer.check(), Ok(()));
    }
}
