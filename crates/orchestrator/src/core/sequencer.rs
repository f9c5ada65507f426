//! The sequencer: block n goes out only after block n − 1, once.
//!
//! Three blocks say how far it has come: the next that is handed to the sink, the cursor as it will be
//! when every append on its way has been accepted, and the cursor that the log has. They only rise, and
//! none overtakes the one before it.

use std::collections::VecDeque;

use super::tasks::TaskNo;

/// Messages handed to the sink and not yet confirmed, at most.
const EMITTING_MAX: usize = 64;

/// The block that the emission has come to, and the results that the sink has been given.
pub(super) struct Sequencer {
    cursor: u64,
    cursor_ahead: u64,
    emit_next: u64,
    emitting: VecDeque<Emission>,
}

/// A message that the sink was given.
struct Emission {
    no: TaskNo,
    confirmed: bool,
}

// === impl Sequencer ===

impl Sequencer {
    /// One that begins with this block.
    pub(super) fn new(start: u64) -> Self {
        Self {
            cursor: start,
            cursor_ahead: start,
            emit_next: start,
            emitting: VecDeque::new(),
        }
    }

    /// The block below which everything has been emitted, as the log has it.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The cursor once every append on its way has been accepted.
    pub(super) fn cursor_ahead(&self) -> u64 {
        self.cursor_ahead
    }

    /// The next block that is handed to the sink.
    pub(super) fn next(&self) -> u64 {
        self.emit_next
    }

    /// The log has this cursor.
    pub(super) fn record(&mut self, cursor: u64) {
        self.cursor = self.cursor.max(cursor);
        self.cursor_ahead = self.cursor_ahead.max(cursor);
        self.emit_next = self.emit_next.max(cursor);
    }

    /// After a restart the emission goes on where the log has it.
    pub(super) fn resume(&mut self) {
        self.emit_next = self.cursor;
        self.cursor_ahead = self.cursor;
    }

    /// Whether the sink may be given another message.
    pub(super) fn has_room(&self) -> bool {
        self.emitting.len() < EMITTING_MAX
    }

    /// The sink is given a message whose last block is `last`.
    pub(super) fn emit(&mut self, no: TaskNo, last: u64) {
        self.emit_next = last.saturating_add(1);
        self.emitting.push_back(Emission {
            no,
            confirmed: false,
        });
    }

    /// The sink has a message. Returns whether it was given that.
    pub(super) fn confirm(&mut self, no: TaskNo) -> bool {
        let mut emitting = self.emitting.iter_mut();
        let emission = emitting.find(|emission| emission.no == no);
        emission.map(|emission| emission.confirmed = true).is_some()
    }

    /// The earliest message that the sink was given, once it is confirmed: a confirmation that overtakes
    /// another waits for it, or the cursor would pass what the sink does not have.
    pub(super) fn pop_confirmed(&mut self) -> Option<TaskNo> {
        self.emitting
            .front()
            .filter(|emission| emission.confirmed)?;
        self.emitting.pop_front().map(|emission| emission.no)
    }

    /// It is on its way to the log that the cursor is `next`.
    pub(super) fn advance(&mut self, next: u64) {
        self.cursor_ahead = self.cursor_ahead.max(next);
    }

    /// Whether the sink has confirmed all that it was given.
    pub(super) fn is_idle(&self) -> bool {
        self.emitting.is_empty()
    }

    /// What the sink was given and has not confirmed, or not in turn.
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
