//! The circuit as its transport sees it: commands and properties become requests to the simulator.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{CNS_CONTROLLER, Circuit, Kind, Purpose, QUEUE_ENTRIES_MAX, Request};
use crate::circuit::data::data_bytes;
use crate::circuit::process::Heard;
use crate::controller::{NvmeController, Reply};
use crate::nvme::opcode::admin;
use crate::nvme::zkpu::TRANSFER_BYTES_MAX;
use crate::nvme::{Command, Configuration, ControllerStatus, Direction, Sgl, Status, property};

impl NvmeController for Circuit {
    fn subsystem(&self) -> String {
        self.registers.subsystem.clone()
    }

    fn queue_entries_max(&self) -> u16 {
        QUEUE_ENTRIES_MAX
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn is_busy(&self) -> bool {
        false
    }

    fn bell(&self) -> Option<Arc<Notify>> {
        Some(self.process.bell())
    }

    fn resets(&self) -> u64 {
        self.resets
    }

    fn keep_alive_ms(&self) -> u32 {
        self.keep_alive_ms
    }

    fn set_keep_alive_ms(&mut self, timeout_ms: u32) {
        self.keep_alive_ms = timeout_ms;
    }

    fn plan(&self, queue: u16, command: &Command) -> Result<u32, Status> {
        if self.failure.is_some() {
            return Err(Status::INTERNAL_ERROR);
        }
        if !self.is_ready {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        let is_admin = queue == 0;
        if is_admin {
            match command.opcode {
                // Queues are created by Connect.
                0x00 | 0x01 | 0x04 | 0x05 => return Err(Status::INVALID_OPCODE),
                admin::KEEP_ALIVE => return Ok(0),
                _ => {}
            }
        }
        let of_host = match command.direction() {
            Direction::None | Direction::Both => 0,
            Direction::ToController | Direction::ToHost => u64::from(command.sgl.length),
        };
        let bytes = data_bytes(is_admin, command).unwrap_or(of_host);
        match bytes <= TRANSFER_BYTES_MAX.into() {
            true => Ok(bytes as u32),
            false => Err(Status::INVALID_FIELD),
        }
    }

    fn execute(&mut self, queue: u16, command: &Command, data: Vec<u8>) {
        let planned = self.plan(queue, command);
        let from_circuit = match (planned, command.direction()) {
            (Err(status), _) => return self.refuse(queue, command, status),
            (Ok(bytes), Direction::ToController) if bytes as usize != data.len() => {
                return self.refuse(queue, command, Status::DATA_SGL_LENGTH_INVALID);
            }
            (Ok(bytes), Direction::ToHost) => bytes,
            (Ok(_), _) => 0,
        };
        if queue == 0 {
            match self.keep_alive(command) {
                Some(Ok(value)) => {
                    return self.reply(0, command.cid, Status::SUCCESS, [value, 0], Vec::new());
                }
                Some(Err(status)) => return self.refuse(queue, command, status),
                None => {}
            }
        }
        let kind = match (queue, command.opcode) {
            (0, admin::IDENTIFY) if command.cdw10[0] & 0xff == CNS_CONTROLLER => Kind::Identity,
            (0, admin::EVENT_REQUEST) => Kind::Event,
            _ => Kind::Other,
        };
        // The simulator describes the data by PRPs.
        let entry = Command {
            flags: command.flags & !Command::FLAG_SGL,
            sgl: Sgl::default(),
            ..*command
        };
        let request = Request::Command {
            queue,
            entry: entry.encode(),
            to_circuit: data,
            from_circuit,
        };
        let cid = command.cid;
        self.ask(request, Purpose::Command { queue, cid, kind });
    }

    fn refuse(&mut self, queue: u16, command: &Command, status: Status) {
        self.reply(queue, command.cid, status, [0, 0], Vec::new());
    }

    fn property(&mut self, cid: u16, offset: u32, is_wide: bool) -> Result<Option<u64>, Status> {
        let entries = u64::from(QUEUE_ENTRIES_MAX - 1);
        let capabilities = self.registers.capabilities & !0xffff | entries;
        Ok(Some(match (offset, is_wide) {
            (property::CAP, true) => capabilities,
            (property::CAP, false) => capabilities & 0xffff_ffff,
            (0x04, false) => capabilities >> 32,
            (property::VS, false) => self.registers.version.into(),
            (property::CC, false) => self.configuration.0.into(),
            (property::CSTS, false) if self.failure.is_some() => ControllerStatus::FATAL.into(),
            (property::CSTS, false) => {
                self.ask(Request::Register { offset }, Purpose::Get { cid });
                return Ok(None);
            }
            (property::NSSR, false) => 0,
            _ => return Err(Status::CONNECT_INVALID_PARAMETERS),
        }))
    }

    fn set_property(
        &mut self,
        cid: u16,
        offset: u32,
        is_wide: bool,
        value: u64,
    ) -> Result<Option<()>, Status> {
        let value = value as u32;
        match (offset, is_wide) {
            (property::CC | property::CSTS | property::NSSR, false) if self.failure.is_some() => {
                Ok(Some(()))
            }
            (property::CC, false) => Ok(self.configure(cid, Configuration(value))),
            (property::CSTS, false) => {
                let purpose = Purpose::Set { cid: Some(cid) };
                self.ask(Request::SetRegister { offset, value }, purpose);
                Ok(None)
            }
            (property::NSSR, false) if value == property::NSSR_RESET => {
                self.abandon(None);
                self.resets += 1;
                self.configuration = Configuration::default();
                let purpose = Purpose::Set { cid: None };
                self.ask(Request::SetRegister { offset, value }, purpose);
                // The simulator drops its commands, which went with the circuit's queues.
                self.reset(Configuration::default(), Some(cid));
                Ok(None)
            }
            (property::NSSR, false) => Ok(Some(())),
            _ => Err(Status::CONNECT_INVALID_PARAMETERS),
        }
    }

    fn poll(&mut self) {
        while self.failure.is_none() {
            match self.process.hear() {
                Heard::Frame(frame) => self.hear(frame),
                Heard::End(reason) => self.fail(&reason),
                Heard::Nothing => return self.look(),
            }
        }
    }

    fn next_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    fn delete_queue(&mut self, queue: u16) {
        self.abandon(Some(queue));
        if self.failure.is_none() && self.is_ready {
            self.ask(Request::RenewQueue { queue }, Purpose::Renewal);
        }
    }

    fn end_association(&mut self) {
        self.abandon(None);
        for pending in self.pending.values_mut() {
            match &mut pending.purpose {
                Purpose::Reset { cid } | Purpose::Set { cid } => *cid = None,
                purpose @ Purpose::Get { .. } => *purpose = Purpose::Abandoned,
                _ => {}
            }
        }
        self.resets += 1;
        self.keep_alive_ms = 0;
        self.configuration = Configuration::default();
        if self.failure.is_none() {
            self.reset(Configuration::default(), None);
        }
    }
}
