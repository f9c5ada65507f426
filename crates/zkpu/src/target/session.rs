//! A connection, from ICReq on: bytes in, bytes out, commands to the subsystem.

use std::collections::BTreeSet;

use crate::controller::{NvmeController, Reply};
use crate::nvme::opcode::{self, fabrics};
use crate::nvme::{
    CONNECT_DATA_BYTES, Command, Completion, ConnectData, ConnectFields, DISCOVERY_NQN,
    DYNAMIC_CONTROLLER, Direction, PropertyFields, Sgl, Status,
};
use crate::target::discovery::Discovery;
use crate::target::subsystem::{CAPSULE_DATA_MAX, ConnectionId, Subsystem};
use crate::target::transfers::Transfers;
use crate::tcp::{
    DataHeader, FatalError, Framing, IcReq, IcResp, Limits, Payload, Pdu, PduDecoder, PduError,
    Receiver, encode,
};

/// The controller's end of a connection, without its socket.
#[derive(Debug)]
pub struct Session {
    id: ConnectionId,
    decoder: PduDecoder,
    framing: Framing,
    role: Role,
    transfers: Transfers,
    /// Identifiers of the commands that have no completion yet.
    outstanding: BTreeSet<u16>,
    /// Commands taken, modulo the queue's entries.
    sq_head: u16,
    output: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The connection closes when its output is sent.
    Closing,
}

/// The kind of the connection.
#[derive(Debug)]
enum Role {
    /// Connect has not come yet.
    New,
    /// A queue of the controller.
    Queue(Queue),
    /// An admin queue of a discovery controller.
    Discovery(Discovery, Queue),
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    number: u16,
    /// Entries.
    size: u16,
    /// Whether completions tell the head of the submission queue.
    has_flow_control: bool,
}

/// Most bytes of data in a data PDU, either way.
const DATA_PDU_MAX: usize = 1 << 17;
/// Output above which no more commands are taken.
const OUTPUT_MAX: usize = 1 << 22;
/// Largest alignment that a host may ask for, in dwords, less one.
const ALIGNMENT_MAX: u8 = 31;
/// Attribute of Connect that turns flow control of the submission queue off.
const NO_FLOW_CONTROL: u8 = 1 << 2;
/// Entries that a connection may use before Connect.
const NEW_SIZE: u16 = 2;
/// Head of a submission queue without flow control.
const NO_HEAD: u16 = 0xffff;

impl Session {
    /// A connection that was just accepted.
    pub fn new(id: ConnectionId) -> Self {
        let limits = Limits {
            capsule_data: CAPSULE_DATA_MAX,
            data: DATA_PDU_MAX,
        };
        Self {
            id,
            decoder: PduDecoder::new(Receiver::Controller, limits),
            framing: Framing::default(),
            role: Role::New,
            transfers: Transfers::default(),
            outstanding: BTreeSet::new(),
            sq_head: 0,
            output: Vec::new(),
            state: State::Open,
        }
    }

    /// Takes bytes from the peer. [`run`](Self::run) uses them.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.state == State::Open {
            self.decoder.push(bytes);
        }
    }

    /// Bytes for the peer.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether the connection ends once its output is sent.
    pub fn is_closing(&self) -> bool {
        self.state == State::Closing
    }

    /// Whether Connect has succeeded.
    pub fn is_connected(&self) -> bool {
        !matches!(self.role, Role::New)
    }

    /// Whether it is a discovery controller's.
    pub fn is_discovery(&self) -> bool {
        matches!(self.role, Role::Discovery(..))
    }

    /// Works on what has come, and on replies, until there is no more or the output is large. True if it must be called
    /// again when the output is sent.
    pub fn run<C: NvmeController>(&mut self, subsystem: &mut Subsystem<C>, now_ms: u64) -> bool {
        if subsystem.is_doomed(self.id) {
            self.state = State::Closing;
        }
        while self.state == State::Open {
            while let Some(reply) = subsystem.next_reply(self.id) {
                self.complete(reply);
                if self.output.len() >= OUTPUT_MAX {
                    return true;
                }
            }
            if self.output.len() >= OUTPUT_MAX {
                return true;
            }
            match self.decoder.next_pdu() {
                Ok(Some(pdu)) => {
                    if let Err(error) = self.take(pdu, subsystem, now_ms) {
                        self.terminate(&error);
                    }
                    subsystem.deliver();
                    if subsystem.is_doomed(self.id) {
                        self.state = State::Closing;
                    }
                }
                Ok(None) => return false,
                Err(error) => self.terminate(&error),
            }
        }
        false
    }

    /// Tells the peer of a fatal error, and closes.
    fn terminate(&mut self, error: &PduError) {
        tracing::debug!(%error, "a connection ends");
        self.send(&Pdu::C2hTermReq(error.terminate()));
        self.state = State::Closing;
    }

    fn send(&mut self, pdu: &Pdu) {
        encode(pdu, self.framing, &mut self.output);
    }

    fn take<C: NvmeController>(
        &mut self,
        pdu: Pdu,
        subsystem: &mut Subsystem<C>,
        now_ms: u64,
    ) -> Result<(), PduError> {
        match pdu {
            Pdu::IcReq(request) => self.initialize(&request),
            Pdu::H2cTermReq(terminate) => {
                tracing::debug!(error = terminate.error, "the host ends a connection");
                self.state = State::Closing;
                Ok(())
            }
            Pdu::CapsuleCmd(bytes, payload) => {
                let command = Command::decode(&bytes);
                self.take_command(command, payload, subsystem, now_ms)
            }
            Pdu::H2cData(header, payload) => {
                let received = self.transfers.receive(&header, &payload);
                let at_fault = || data_header_bytes(&header, &payload);
                let whole =
                    received.map_err(|(fatal, at)| PduError::new(fatal, at, &at_fault()))?;
                if let Some((command, payload)) = whole {
                    self.execute(&command, payload, subsystem, now_ms);
                }
                self.ask_for_data();
                Ok(())
            }
            // The decoder lets no other type through.
            _ => Err(PduError::new(FatalError::SequenceError, 0, &[])),
        }
    }

    fn initialize(&mut self, request: &IcReq) -> Result<(), PduError> {
        let invalid = |at| {
            let mut bytes = Vec::new();
            encode(&Pdu::IcReq(*request), Framing::default(), &mut bytes);
            PduError::new(FatalError::UnsupportedParameter, at, &bytes)
        };
        if request.format != 0 {
            return Err(invalid(8));
        }
        if request.alignment > ALIGNMENT_MAX {
            return Err(invalid(10));
        }
        self.send(&Pdu::IcResp(IcResp {
            format: 0,
            alignment: 0,
            digests: request.digests,
            host_data_max: DATA_PDU_MAX as u32,
        }));
        self.framing = Framing {
            digests: request.digests,
            alignment: request.alignment,
        };
        self.decoder.initialized(request.digests);
        Ok(())
    }

    fn take_command<C: NvmeController>(
        &mut self,
        command: Command,
        payload: Payload,
        subsystem: &mut Subsystem<C>,
        now_ms: u64,
    ) -> Result<(), PduError> {
        let size = self.queue().map_or(NEW_SIZE, |queue| queue.size);
        self.sq_head = (self.sq_head + 1) % size.max(1);
        if self.outstanding.contains(&command.cid) {
            self.respond(command.cid, Status::COMMAND_ID_CONFLICT, [0, 0]);
            return Ok(());
        }
        // More than the queue holds: the host does not keep to its own limits.
        if self.outstanding.len() >= usize::from(size) {
            return Err(PduError::new(
                FatalError::LimitExceeded,
                0,
                &command.encode(),
            ));
        }
        self.outstanding.insert(command.cid);
        let planned = self.plan(&command, subsystem);
        let length = match planned
            .and_then(|length| check_sgl(&command, length, &payload).map(|()| length))
        {
            Ok(length) => length,
            Err(status) => {
                self.refuse(&command, status, subsystem);
                return Ok(());
            }
        };
        let must_ask = command.direction() == Direction::ToController
            && length > 0
            && payload.bytes.is_empty();
        if must_ask {
            self.transfers.push(command, length);
            self.ask_for_data();
        } else {
            self.execute(&command, payload, subsystem, now_ms);
        }
        Ok(())
    }

    fn ask_for_data(&mut self) {
        while let Some(request) = self.transfers.next_r2t() {
            self.send(&Pdu::R2t(request));
        }
    }

    fn queue(&self) -> Option<Queue> {
        match &self.role {
            Role::New => None,
            Role::Queue(queue) | Role::Discovery(_, queue) => Some(*queue),
        }
    }

    /// Bytes of data of a command.
    fn plan<C: NvmeController>(
        &self,
        command: &Command,
        subsystem: &Subsystem<C>,
    ) -> Result<u32, Status> {
        if command.opcode == opcode::FABRICS {
            return match (command.fabrics_type(), &self.role) {
                (fabrics::CONNECT, Role::New) => Ok(CONNECT_DATA_BYTES as u32),
                (fabrics::CONNECT, _) | (_, Role::New) => Err(Status::COMMAND_SEQUENCE_ERROR),
                (
                    fabrics::PROPERTY_GET | fabrics::PROPERTY_SET,
                    Role::Queue(Queue { number: 0, .. }),
                ) => Ok(0),
                (fabrics::PROPERTY_GET | fabrics::PROPERTY_SET, Role::Discovery(..)) => Ok(0),
                _ => Err(Status::INVALID_OPCODE),
            };
        }
        // Fused commands are not supported, and a fabric has SGLs only.
        if command.flags & 0xc3 != Command::FLAG_SGL {
            return Err(Status::INVALID_FIELD);
        }
        match &self.role {
            Role::New => Err(Status::COMMAND_SEQUENCE_ERROR),
            Role::Queue(queue) => subsystem.controller().plan(queue.number, command),
            Role::Discovery(discovery, _) => discovery.plan(command),
        }
    }

    fn refuse<C: NvmeController>(
        &mut self,
        command: &Command,
        status: Status,
        subsystem: &mut Subsystem<C>,
    ) {
        match &self.role {
            Role::Queue(queue) if command.opcode != opcode::FABRICS => {
                subsystem
                    .controller_mut()
                    .refuse(queue.number, command, status);
            }
            _ => self.finish(command.cid, status, [0, 0]),
        }
    }

    /// Executes a command whose data is here.
    fn execute<C: NvmeController>(
        &mut self,
        command: &Command,
        payload: Payload,
        subsystem: &mut Subsystem<C>,
        now_ms: u64,
    ) {
        if payload.is_corrupt {
            return self.refuse(command, Status::TRANSIENT_TRANSPORT_ERROR, subsystem);
        }
        if command.opcode == opcode::FABRICS {
            return self.execute_fabrics(command, &payload.bytes, subsystem, now_ms);
        }
        let length = command.sgl.length;
        match &mut self.role {
            Role::New => self.finish(command.cid, Status::COMMAND_SEQUENCE_ERROR, [0, 0]),
            Role::Queue(queue) => {
                if queue.number == 0 {
                    subsystem.heard(now_ms);
                }
                subsystem
                    .controller_mut()
                    .execute(queue.number, command, payload.bytes);
            }
            Role::Discovery(discovery, queue) => {
                let number = queue.number;
                let executed = discovery.execute(command, subsystem.discovery(), length);
                let (status, result, data) = match executed {
                    Ok(None) => return,
                    Ok(Some((result, data))) => (Status::SUCCESS, result, data),
                    Err(status) => (status, 0, Vec::new()),
                };
                self.complete(Reply {
                    queue: number,
                    cid: command.cid,
                    status,
                    result: [result, 0],
                    data,
                });
            }
        }
    }

    fn execute_fabrics<C: NvmeController>(
        &mut self,
        command: &Command,
        data: &[u8],
        subsystem: &mut Subsystem<C>,
        now_ms: u64,
    ) {
        let (status, result) = match command.fabrics_type() {
            fabrics::CONNECT => match self.connect(command, data, subsystem, now_ms) {
                Ok(controller) => (Status::SUCCESS, [controller.into(), 0]),
                Err((status, result)) => (status, [result, 0]),
            },
            kind => {
                subsystem.heard(now_ms);
                let fields = PropertyFields::of(command);
                let is_wide = fields.size == 1;
                let answer = if fields.size > 1 {
                    Err(Status::CONNECT_INVALID_PARAMETERS)
                } else if kind == fabrics::PROPERTY_GET {
                    self.property(command.cid, fields.offset, is_wide, subsystem)
                } else {
                    self.set_property(command.cid, &fields, subsystem)
                };
                match answer {
                    Ok(None) => return,
                    Ok(Some(value)) => (Status::SUCCESS, [value as u32, (value >> 32) as u32]),
                    Err(status) => (status, [0, 0]),
                }
            }
        };
        self.finish(command.cid, status, result);
    }

    /// Value of a property; `None` if it comes as a reply.
    fn property<C: NvmeController>(
        &self,
        cid: u16,
        offset: u32,
        is_wide: bool,
        subsystem: &mut Subsystem<C>,
    ) -> Result<Option<u64>, Status> {
        match &self.role {
            Role::Discovery(discovery, _) => discovery.property(offset, is_wide).map(Some),
            _ => subsystem.controller_mut().property(cid, offset, is_wide),
        }
    }

    /// Zero once the property is written; `None` if a reply tells that.
    fn set_property<C: NvmeController>(
        &mut self,
        cid: u16,
        fields: &PropertyFields,
        subsystem: &mut Subsystem<C>,
    ) -> Result<Option<u64>, Status> {
        let (offset, is_wide, value) = (fields.offset, fields.size == 1, fields.value);
        if let Role::Discovery(discovery, _) = &mut self.role {
            discovery.set_property(offset, is_wide, value)?;
            return Ok(Some(0));
        }
        let controller = subsystem.controller_mut();
        let written = controller.set_property(cid, offset, is_wide, value)?;
        // A reset has dropped the event requests: their identifiers are free.
        if !controller.is_ready() {
            self.outstanding.retain(|outstanding| *outstanding == cid);
        }
        Ok(written.map(|()| 0))
    }

    fn connect<C: NvmeController>(
        &mut self,
        command: &Command,
        data: &[u8],
        subsystem: &mut Subsystem<C>,
        now_ms: u64,
    ) -> Result<u16, (Status, u32)> {
        let fields = ConnectFields::of(command);
        if fields.format != 0 {
            return Err((Status::CONNECT_FORMAT, 0));
        }
        let data: &[u8; CONNECT_DATA_BYTES] = data
            .try_into()
            .map_err(|_| (Status::DATA_SGL_LENGTH_INVALID, 0))?;
        let data = ConnectData::decode(data)
            .map_err(|at| (Status::CONNECT_INVALID_PARAMETERS, u32::from(at) | 1 << 16))?;
        let queue = Queue {
            number: fields.queue,
            size: fields.size.saturating_add(1),
            has_flow_control: fields.attributes & NO_FLOW_CONTROL == 0,
        };
        if data.subsystem == DISCOVERY_NQN {
            if fields.queue != 0 || fields.size == 0 || data.controller != DYNAMIC_CONTROLLER {
                return Err((Status::CONNECT_INVALID_PARAMETERS, 0));
            }
            self.role = Role::Discovery(Discovery::default(), queue);
            return Ok(1);
        }
        let controller = subsystem.connect(self.id, &fields, &data, now_ms)?;
        self.role = Role::Queue(queue);
        Ok(controller)
    }

    /// Ends an outstanding command without data.
    fn finish(&mut self, cid: u16, status: Status, result: [u32; 2]) {
        self.outstanding.remove(&cid);
        self.respond(cid, status, result);
    }

    /// Ends an outstanding command: its data, then its completion.
    fn complete(&mut self, reply: Reply) {
        let count = reply.data.len().div_ceil(DATA_PDU_MAX);
        for (i, part) in reply.data.chunks(DATA_PDU_MAX).enumerate() {
            let header = DataHeader {
                cid: reply.cid,
                tag: 0,
                offset: (i * DATA_PDU_MAX) as u32,
                is_last: i + 1 == count,
                is_success: false,
            };
            self.send(&Pdu::C2hData(header, part.to_vec().into()));
        }
        self.finish(reply.cid, reply.status, reply.result);
    }

    fn respond(&mut self, cid: u16, status: Status, result: [u32; 2]) {
        let queue = self.queue();
        let completion = Completion {
            result,
            sq_head: match queue {
                Some(queue) if !queue.has_flow_control => NO_HEAD,
                _ => self.sq_head,
            },
            sq_id: queue.map_or(0, |queue| queue.number),
            cid,
            status,
        };
        self.send(&Pdu::CapsuleResp(completion.encode()));
    }
}

/// Checks a command's SGL and the data of its capsule against the bytes that the command has.
fn check_sgl(command: &Command, length: u32, payload: &Payload) -> Result<(), Status> {
    let sgl = command.sgl;
    let is_inline = sgl.identifier == Sgl::IN_CAPSULE;
    if sgl.length != length {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    if length == 0 {
        return if payload.bytes.is_empty() {
            Ok(())
        } else {
            Err(Status::INVALID_FIELD)
        };
    }
    match sgl.identifier {
        Sgl::TRANSPORT if payload.bytes.is_empty() => Ok(()),
        Sgl::TRANSPORT => Err(Status::INVALID_FIELD),
        _ if !is_inline => Err(Status::SGL_TYPE_INVALID),
        _ if command.direction() != Direction::ToController => Err(Status::SGL_TYPE_INVALID),
        _ if sgl.address != 0 => Err(Status::SGL_OFFSET_INVALID),
        _ if payload.bytes.len() != length as usize => Err(Status::DATA_SGL_LENGTH_INVALID),
        _ => Ok(()),
    }
}

/// The header of a data PDU, for an error that repeats it.
fn data_header_bytes(header: &DataHeader, payload: &Payload) -> Vec<u8> {
    let mut bytes = Vec::new();
    let pdu = Pdu::H2cData(
        *header,
        payload.bytes[..payload.bytes.len().min(1)].to_vec().into(),
    );
    encode(&pdu, Framing::default(), &mut bytes);
    bytes.truncate(24);
    bytes
}
