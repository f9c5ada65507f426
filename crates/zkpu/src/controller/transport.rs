//! A controller as its transport sees it.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::controller::device::MsmDevice;
use crate::controller::state::{Controller, QUEUE_ENTRIES_MAX, Reply};
use crate::nvme::{Command, Status};

/// A controller that a transport serves: the state machine over a device, [`Controller`], or a circuit.
///
/// No call blocks. What cannot be answered at once is answered by [`next_reply`](Self::next_reply).
pub trait NvmeController {
    /// Name of the subsystem.
    fn subsystem(&self) -> String;

    /// Entries of the largest queue.
    fn queue_entries_max(&self) -> u16;

    /// Whether commands other than Fabrics' are taken.
    fn is_ready(&self) -> bool;

    /// Whether [`poll`](Self::poll) must be called every few milliseconds.
    fn is_busy(&self) -> bool;

    /// Rung when `poll` has something to do; `None` if only its caller can know.
    fn bell(&self) -> Option<Arc<Notify>>;

    /// Controller resets so far. Each deletes the I/O queues.
    fn resets(&self) -> u64;

    /// Keep alive timeout in milliseconds; 0 = none. The transport watches it.
    fn keep_alive_ms(&self) -> u32;

    /// Sets the keep alive timeout, as Connect does.
    fn set_keep_alive_ms(&mut self, timeout_ms: u32);

    /// Bytes of data of a command.
    ///
    /// # Errors
    ///
    /// The status that the command ends with.
    fn plan(&self, queue: u16, command: &Command) -> Result<u32, Status>;

    /// Executes a command that `plan` has let through and whose data has come.
    fn execute(&mut self, queue: u16, command: &Command, data: Vec<u8>);

    /// Ends a command with an error of the transport.
    fn refuse(&mut self, queue: u16, command: &Command, status: Status);

    /// Reads a property of 4 bytes, or of 8 if `is_wide`. `None`: a reply on queue 0 for `cid` has the value.
    ///
    /// # Errors
    ///
    /// *Connect Invalid Parameters* (82h) for an offset or size that the controller does not have.
    fn property(&mut self, cid: u16, offset: u32, is_wide: bool) -> Result<Option<u64>, Status>;

    /// Writes a property of 4 bytes. `None`: a reply on queue 0 for `cid` tells that it is written.
    ///
    /// # Errors
    ///
    /// *Connect Invalid Parameters* (82h) for a property that cannot be written, or not in 8 bytes.
    fn set_property(
        &mut self,
        cid: u16,
        offset: u32,
        is_wide: bool,
        value: u64,
    ) -> Result<Option<()>, Status>;

    /// Moves work on.
    fn poll(&mut self);

    /// The next reply, in the order in which commands ended.
    fn next_reply(&mut self) -> Option<Reply>;

    /// An I/O queue is gone: its commands end without replies.
    fn delete_queue(&mut self, queue: u16);

    /// The host is gone: as a controller reset.
    fn end_association(&mut self);
}

impl<D: MsmDevice> NvmeController for Controller<D> {
    fn subsystem(&self) -> String {
        self.subsystem()
    }

    fn queue_entries_max(&self) -> u16 {
        QUEUE_ENTRIES_MAX
    }

    fn is_ready(&self) -> bool {
        self.is_ready()
    }

    fn is_busy(&self) -> bool {
        self.is_busy()
    }

    fn bell(&self) -> Option<Arc<Notify>> {
        None
    }

    fn resets(&self) -> u64 {
        self.counters().resets
    }

    fn keep_alive_ms(&self) -> u32 {
        self.keep_alive_ms()
    }

    fn set_keep_alive_ms(&mut self, timeout_ms: u32) {
        self.set_keep_alive_ms(timeout_ms);
    }

    fn plan(&self, queue: u16, command: &Command) -> Result<u32, Status> {
        self.plan(queue, command)
    }

    fn execute(&mut self, queue: u16, command: &Command, data: Vec<u8>) {
        self.execute(queue, command, &data);
    }

    fn refuse(&mut self, queue: u16, command: &Command, status: Status) {
        self.refuse(queue, command, status);
    }

    fn property(&mut self, _cid: u16, offset: u32, is_wide: bool) -> Result<Option<u64>, Status> {
        Controller::property(self, offset, is_wide).map(Some)
    }

    fn set_property(
        &mut self,
        _cid: u16,
        offset: u32,
        is_wide: bool,
        value: u64,
    ) -> Result<Option<()>, Status> {
        Controller::set_property(self, offset, is_wide, value).map(Some)
    }

    fn poll(&mut self) {
        self.poll();
    }

    fn next_reply(&mut self) -> Option<Reply> {
        self.next_reply()
    }

    fn delete_queue(&mut self, queue: u16) {
        self.delete_queue(queue);
    }

    fn end_association(&mut self) {
        self.end_association();
    }
}
