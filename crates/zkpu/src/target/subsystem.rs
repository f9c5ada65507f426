//! The subsystem: the controller, its association with a host, and which connection is which queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::controller::{
    Controller, MsmDevice, NvmeController, QUEUE_ENTRIES_MAX, QUEUES_MAX, Reply,
};
use crate::nvme::{
    ConnectData, ConnectFields, DYNAMIC_CONTROLLER, DiscoveryEntry, Fabrics, Status,
};

/// A connection, unique in a subsystem's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A subsystem of one controller.
#[derive(Debug)]
pub struct Subsystem<C> {
    controller: C,
    association: Option<Association>,
    /// Replies that their connections have not taken.
    mailboxes: BTreeMap<ConnectionId, VecDeque<Reply>>,
    /// Connections that must close.
    doomed: BTreeSet<ConnectionId>,
    /// Connections that have something to do.
    woken: BTreeSet<ConnectionId>,
    discovery: Vec<DiscoveryEntry>,
    /// Resets of the controller that were noticed.
    resets: u64,
}

/// A host and its queues.
#[derive(Debug)]
struct Association {
    host_id: [u8; 16],
    host: String,
    queues: [Option<ConnectionId>; QUEUES_MAX as usize],
    heard_ms: u64,
}

/// The reason why a Connect is refused: a status, and dword 0, which tells the field at fault.
pub(super) type Refusal = (Status, u32);

/// Bytes of a command capsule (64 and 8 KiB) and of a response capsule, in units of 16.
const COMMAND_CAPSULE: u32 = (64 + CAPSULE_DATA_MAX as u32) / 16;
const RESPONSE_CAPSULE: u32 = 1;
/// Most bytes of data in a command capsule. Admin and Fabrics commands may always have this much.
pub(super) const CAPSULE_DATA_MAX: usize = 8192;
/// Granularity of the keep alive timer: units of 100 ms.
const KEEP_ALIVE_UNITS: u16 = 10;
const CONTROLLER_ID: u16 = 1;
/// Offsets in the Connect command that a refusal names.
const QUEUE_SIZE_AT: u32 = 44;
/// Bit of dword 0: the offset is one of the data.
const OF_DATA: u32 = 1 << 16;

/// Fields of Identify Controller that are this transport's.
pub(crate) const FABRICS: Fabrics = Fabrics {
    keep_alive_units: KEEP_ALIVE_UNITS,
    command_capsule: COMMAND_CAPSULE,
    response_capsule: RESPONSE_CAPSULE,
};

impl<D: MsmDevice> Subsystem<Controller<D>> {
    /// A subsystem whose controller is the state machine over a device.
    pub fn new(device: D) -> Self {
        Self::over(Controller::new(device, FABRICS, QUEUE_ENTRIES_MAX))
    }
}

impl<C: NvmeController> Subsystem<C> {
    /// A subsystem of a controller.
    pub fn over(controller: C) -> Self {
        Self {
            controller,
            association: None,
            mailboxes: BTreeMap::new(),
            doomed: BTreeSet::new(),
            woken: BTreeSet::new(),
            discovery: Vec::new(),
            resets: 0,
        }
    }

    /// The controller.
    pub fn controller(&self) -> &C {
        &self.controller
    }

    /// The controller, to be changed from outside.
    pub fn controller_mut(&mut self) -> &mut C {
        &mut self.controller
    }

    /// Sets what the discovery service tells.
    pub fn set_discovery(&mut self, entries: Vec<DiscoveryEntry>) {
        self.discovery = entries;
    }

    pub(super) fn discovery(&self) -> &[DiscoveryEntry] {
        &self.discovery
    }

    /// Whether a host is connected.
    pub fn is_associated(&self) -> bool {
        self.association.is_some()
    }

    /// Moves jobs on and delivers what has ended. To be called now and then while jobs are live.
    pub fn poll(&mut self) {
        self.controller.poll();
        self.deliver();
    }

    /// Ends an association whose keep alive timeout has passed.
    pub fn expire(&mut self, now_ms: u64) {
        let timeout_ms = u64::from(self.controller.keep_alive_ms());
        let is_silent = |association: &Association| {
            let unit_ms = u64::from(KEEP_ALIVE_UNITS) * 100;
            timeout_ms > 0
                && now_ms.saturating_sub(association.heard_ms)
                    > timeout_ms.next_multiple_of(unit_ms)
        };
        if self.association.as_ref().is_some_and(is_silent) {
            tracing::warn!(timeout_ms, "the host is silent: its association ends");
            self.end_association();
        }
    }

    /// A connection is gone. Without its admin queue an association ends.
    pub fn disconnect(&mut self, connection: ConnectionId) {
        self.mailboxes.remove(&connection);
        self.doomed.remove(&connection);
        self.woken.remove(&connection);
        let Some(association) = &mut self.association else {
            return;
        };
        let is_it = |queue: &Option<ConnectionId>| *queue == Some(connection);
        match association.queues.iter().position(is_it) {
            Some(0) => {
                association.queues[0] = None;
                self.end_association();
            }
            Some(queue) => {
                association.queues[queue] = None;
                self.controller.delete_queue(queue as u16);
                self.deliver();
            }
            None => {}
        }
    }

    /// Whether a connection must close.
    pub fn is_doomed(&self, connection: ConnectionId) -> bool {
        self.doomed.contains(&connection)
    }

    /// Connections that have replies, or must close, since the last call.
    pub fn take_woken(&mut self) -> BTreeSet<ConnectionId> {
        std::mem::take(&mut self.woken)
    }

    pub(super) fn next_reply(&mut self, connection: ConnectionId) -> Option<Reply> {
        self.mailboxes.get_mut(&connection)?.pop_front()
    }

    /// Notes that the host lives.
    pub(super) fn heard(&mut self, now_ms: u64) {
        if let Some(association) = &mut self.association {
            association.heard_ms = now_ms;
        }
    }

    /// Takes a Connect to this subsystem. The answer is the controller's identifier.
    pub(super) fn connect(
        &mut self,
        connection: ConnectionId,
        fields: &ConnectFields,
        data: &ConnectData,
        now_ms: u64,
    ) -> Result<u16, Refusal> {
        if data.subsystem != self.controller.subsystem() {
            return Err(invalid_data(ConnectData::SUBSYSTEM_AT));
        }
        if fields.size == 0 || fields.size >= self.controller.queue_entries_max() {
            return Err((Status::CONNECT_INVALID_PARAMETERS, QUEUE_SIZE_AT));
        }
        if fields.queue == 0 {
            self.connect_admin(connection, fields, data, now_ms)?;
        } else {
            self.connect_io(connection, fields, data)?;
        }
        self.mailboxes.insert(connection, VecDeque::new());
        Ok(CONTROLLER_ID)
    }

    fn connect_admin(
        &mut self,
        connection: ConnectionId,
        fields: &ConnectFields,
        data: &ConnectData,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        if data.controller != DYNAMIC_CONTROLLER && data.controller != CONTROLLER_ID {
            return Err(invalid_data(ConnectData::CONTROLLER_AT));
        }
        if self.association.is_some() {
            return Err((Status::CONNECT_BUSY, 0));
        }
        let mut queues = [None; QUEUES_MAX as usize];
        queues[0] = Some(connection);
        self.association = Some(Association {
            host_id: data.host_id,
            host: data.host.clone(),
            queues,
            heard_ms: now_ms,
        });
        self.controller.set_keep_alive_ms(fields.keep_alive_ms);
        tracing::info!(host = data.host, "a host is connected");
        Ok(())
    }

    fn connect_io(
        &mut self,
        connection: ConnectionId,
        fields: &ConnectFields,
        data: &ConnectData,
    ) -> Result<(), Refusal> {
        if data.controller != CONTROLLER_ID {
            return Err(invalid_data(ConnectData::CONTROLLER_AT));
        }
        let is_ready = self.controller.is_ready();
        let Some(association) = self.association.as_mut().filter(|_| is_ready) else {
            return Err((Status::COMMAND_SEQUENCE_ERROR, 0));
        };
        if association.host_id != data.host_id || association.host != data.host {
            return Err((Status::CONNECT_INVALID_HOST, 0));
        }
        match association.queues.get_mut(usize::from(fields.queue)) {
            Some(queue @ None) => *queue = Some(connection),
            _ => return Err((Status::INVALID_QUEUE_ID, 0)),
        }
        Ok(())
    }

    /// Puts the controller's replies into the mailboxes of their connections.
    pub(super) fn deliver(&mut self) {
        while let Some(reply) = self.controller.next_reply() {
            let association = self.association.as_ref();
            let queue = association
                .and_then(|association| association.queues.get(usize::from(reply.queue)));
            let Some(connection) = queue.copied().flatten() else {
                continue;
            };
            if let Some(mailbox) = self.mailboxes.get_mut(&connection) {
                mailbox.push_back(reply);
                self.woken.insert(connection);
            }
        }
        // A controller reset deletes the I/O queues: their connections close.
        let resets = self.controller.resets();
        if resets != self.resets {
            self.resets = resets;
            self.doom(1);
        }
    }

    fn end_association(&mut self) {
        self.controller.end_association();
        self.resets = self.controller.resets();
        self.doom(0);
        self.association = None;
    }

    /// Closes the connections of all queues from `first` on.
    fn doom(&mut self, first: usize) {
        if let Some(association) = &mut self.association {
            for queue in association.queues.iter_mut().skip(first) {
                if let Some(connection) = queue.take() {
                    self.doomed.insert(connection);
                    self.woken.insert(connection);
                }
            }
        }
    }
}

fn invalid_data(at: u16) -> Refusal {
    (Status::CONNECT_INVALID_PARAMETERS, u32::from(at) | OF_DATA)
}
