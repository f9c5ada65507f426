//! The host's end of a queue, without its socket.

use std::collections::BTreeMap;

use crate::nvme::{Command, Completion, Sgl, Status};
use crate::tcp::{
    DataHeader, Digests, Framing, IcReq, IcResp, Limits, Payload, Pdu, PduDecoder, ReadyToTransfer,
    Receiver, encode,
};

/// Commands of one queue, and the data that belongs to them.
#[derive(Debug)]
pub struct Initiator {
    decoder: PduDecoder,
    digests: Digests,
    framing: Framing,
    is_open: bool,
    /// Most bytes of data in an H2CData PDU.
    host_data_max: usize,
    /// Most bytes of data in a command capsule.
    capsule_data_max: usize,
    entries: u16,
    next_cid: u16,
    pending: BTreeMap<u16, Submitted>,
}

/// Data of a command.
#[derive(Clone, Debug)]
pub enum CommandData {
    /// None.
    None,
    /// For the controller.
    ToController(Vec<u8>),
    /// This many bytes for the host.
    ToHost(u32),
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The completion.
    pub completion: Completion,
    /// Data for the host.
    pub data: Vec<u8>,
}

#[derive(Debug)]
struct Submitted {
    to_controller: Vec<u8>,
    /// Bytes that R2Ts have asked for.
    asked: usize,
    to_host: Vec<u8>,
    to_host_length: usize,
    is_corrupt: bool,
}

/// Bytes of data that every target takes in the capsule of an admin or Fabrics command.
const CAPSULE_DATA_MAX: usize = 8192;
/// Most bytes of data in a C2HData PDU.
const DATA_MAX: usize = 1 << 20;
/// Least `host_data_max` that a controller may have.
const HOST_DATA_MIN: u32 = 4096;

impl CommandData {
    /// Bytes in either direction.
    pub fn length(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::ToController(bytes) => bytes.len() as u32,
            Self::ToHost(length) => *length,
        }
    }
}

impl Initiator {
    /// A queue of this many entries whose connection was just made.
    pub fn new(digests: Digests, entries: u16) -> Self {
        let limits = Limits {
            capsule_data: 0,
            data: DATA_MAX,
        };
        Self {
            decoder: PduDecoder::new(Receiver::Host, limits),
            digests,
            framing: Framing::default(),
            is_open: false,
            host_data_max: 0,
            capsule_data_max: CAPSULE_DATA_MAX,
            entries,
            next_cid: 0,
            pending: BTreeMap::new(),
        }
    }

    /// The connection's first bytes.
    pub fn hello(&self) -> Vec<u8> {
        let request = IcReq {
            format: 0,
            alignment: 0,
            digests: self.digests,
            r2ts_max: 0,
        };
        let mut bytes = Vec::new();
        encode(&Pdu::IcReq(request), Framing::default(), &mut bytes);
        bytes
    }

    /// Whether the controller has answered [`hello`](Self::hello).
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Commands that have not ended.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// Sets the bytes of data that a command capsule may have, as Identify tells for I/O queues.
    pub fn set_capsule_data_max(&mut self, bytes: usize) {
        self.capsule_data_max = bytes.min(CAPSULE_DATA_MAX);
    }

    /// Appends a command to `output` and gives its identifier; `None` if the queue is full.
    pub fn submit(
        &mut self,
        mut command: Command,
        data: CommandData,
        output: &mut Vec<u8>,
    ) -> Option<u16> {
        // A queue of n entries holds n - 1 commands.
        if self.pending.len() + 1 >= usize::from(self.entries) {
            return None;
        }
        while self.pending.contains_key(&self.next_cid) {
            self.next_cid = self.next_cid.wrapping_add(1);
        }
        let cid = self.next_cid;
        self.next_cid = cid.wrapping_add(1);
        command.cid = cid;
        command.flags = Command::FLAG_SGL;
        let mut submitted = Submitted {
            to_controller: Vec::new(),
            asked: 0,
            to_host: Vec::new(),
            to_host_length: 0,
            is_corrupt: false,
        };
        let mut inline = Vec::new();
        command.sgl = Sgl::transport(0);
        match data {
            CommandData::None => {}
            CommandData::ToHost(length) => {
                command.sgl = Sgl::transport(length);
                submitted.to_host_length = length as usize;
            }
            CommandData::ToController(bytes) if bytes.is_empty() => {}
            CommandData::ToController(bytes) if bytes.len() <= self.capsule_data_max => {
                command.sgl = Sgl::in_capsule(bytes.len() as u32);
                inline = bytes;
            }
            CommandData::ToController(bytes) => {
                command.sgl = Sgl::transport(bytes.len() as u32);
                submitted.to_controller = bytes;
            }
        }
        self.pending.insert(cid, submitted);
        encode(
            &Pdu::CapsuleCmd(command.encode(), inline.into()),
            self.framing,
            output,
        );
        Some(cid)
    }

    /// Takes bytes from the controller. What is to be sent is appended to `output`; commands that have ended are
    /// returned.
    ///
    /// # Errors
    ///
    /// A fault of the controller: the connection must close.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<Vec<(u16, Response)>, String> {
        self.decoder.push(bytes);
        let mut ended = Vec::new();
        while let Some(pdu) = self.decoder.next_pdu().map_err(|error| error.to_string())? {
            match pdu {
                Pdu::IcResp(response) => self.open(&response)?,
                Pdu::CapsuleResp(bytes) => ended.push(self.complete(Completion::decode(&bytes))?),
                Pdu::C2hData(header, payload) => {
                    self.take_data(&header, &payload)?;
                    if header.is_success {
                        ended.push(self.complete(Completion {
                            cid: header.cid,
                            ..Completion::default()
                        })?);
                    }
                }
                Pdu::R2t(request) => self.send_data(&request, output)?,
                Pdu::C2hTermReq(terminate) => {
                    let (error, at) = (terminate.error, terminate.information);
                    return Err(format!("it ends the connection with error {error} at {at}"));
                }
                other => return Err(format!("a PDU of type {:?}", other.kind())),
            }
        }
        Ok(ended)
    }

    fn open(&mut self, response: &IcResp) -> Result<(), String> {
        if response.format != 0 || response.alignment > 31 {
            return Err("an initialization that is not understood".into());
        }
        if response.host_data_max < HOST_DATA_MIN {
            return Err(format!("a data limit of {} bytes", response.host_data_max));
        }
        // A controller may leave a digest out that was asked for, and must not add one.
        let agreed = response.digests;
        if (agreed.header && !self.digests.header) || (agreed.data && !self.digests.data) {
            return Err("digests that were not asked for".into());
        }
        self.framing = Framing {
            digests: agreed,
            alignment: response.alignment,
        };
        // A multiple of four bytes, and no more than what this side would receive.
        self.host_data_max = (response.host_data_max as usize & !3).min(DATA_MAX);
        self.decoder.initialized(agreed);
        self.is_open = true;
        Ok(())
    }

    fn take_data(&mut self, header: &DataHeader, payload: &Payload) -> Result<(), String> {
        let submitted = self
            .pending
            .get_mut(&header.cid)
            .ok_or("data for no command")?;
        let received = submitted.to_host.len();
        if header.offset as usize != received
            || payload.bytes.len() > submitted.to_host_length - received
        {
            return Err(format!(
                "data at {} where {received} bytes have come",
                header.offset
            ));
        }
        submitted.to_host.extend_from_slice(&payload.bytes);
        submitted.is_corrupt |= payload.is_corrupt;
        Ok(())
    }

    fn send_data(&mut self, request: &ReadyToTransfer, output: &mut Vec<u8>) -> Result<(), String> {
        let submitted = self
            .pending
            .get_mut(&request.cid)
            .ok_or("a request for data of no command")?;
        let (offset, length) = (request.offset as usize, request.length as usize);
        let rest = submitted.to_controller.len() - submitted.asked;
        if offset != submitted.asked || length == 0 || length > rest {
            return Err(format!("a request for {length} bytes at {offset}"));
        }
        submitted.asked += length;
        let data = &submitted.to_controller[offset..offset + length];
        let count = length.div_ceil(self.host_data_max);
        for (i, part) in data.chunks(self.host_data_max).enumerate() {
            let header = DataHeader {
                cid: request.cid,
                tag: request.tag,
                offset: (offset + i * self.host_data_max) as u32,
                is_last: i + 1 == count,
                is_success: false,
            };
            encode(
                &Pdu::H2cData(header, part.to_vec().into()),
                self.framing,
                output,
            );
        }
        Ok(())
    }

    fn complete(&mut self, mut completion: Completion) -> Result<(u16, Response), String> {
        let cid = completion.cid;
        let submitted = self
            .pending
            .remove(&cid)
            .ok_or("a completion of no command")?;
        if completion.status.is_success() {
            if submitted.to_host.len() != submitted.to_host_length {
                return Err(format!(
                    "{} bytes of data where {} were asked for",
                    submitted.to_host.len(),
                    submitted.to_host_length
                ));
            }
            if submitted.is_corrupt {
                completion.status = Status::TRANSIENT_TRANSPORT_ERROR;
            }
        }
        let response = Response {
            completion,
            data: submitted.to_host,
        };
        Ok((cid, response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Terminate;
    use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};

    fn opened(rng: &mut StdRng) -> (Initiator, Framing) {
        let digests = Digests {
            header: rng.r#gen(),
            data: rng.r#gen(),
        };
        let mut initiator = Initiator::new(digests, 16);
        let response = IcResp {
            digests,
            host_data_max: 4096,
            ..IcResp::default()
        };
        let mut bytes = Vec::new();
        encode(&Pdu::IcResp(response), Framing::default(), &mut bytes);
        assert_eq!(initiator.receive(&bytes, &mut Vec::new()), Ok(Vec::new()));
        let framing = Framing {
            digests,
            alignment: 0,
        };
        (initiator, framing)
    }

    fn receive(
        initiator: &mut Initiator,
        framing: Framing,
        pdu: &Pdu,
    ) -> Result<Vec<(u16, Response)>, String> {
        let mut bytes = Vec::new();
        encode(pdu, framing, &mut bytes);
        initiator.receive(&bytes, &mut Vec::new())
    }

    fn data(cid: u16, offset: u32, bytes: usize, is_success: bool) -> Pdu {
        let header = DataHeader {
            cid,
            tag: 0,
            offset,
            is_last: true,
            is_success,
        };
        Pdu::C2hData(header, vec![7; bytes].into())
    }

    fn completion(cid: u16) -> Pdu {
        let completion = Completion {
            cid,
            ..Completion::default()
        };
        Pdu::CapsuleResp(completion.encode())
    }

    #[test]
    fn what_was_not_asked_for_is_an_error() {
        let request = |cid, offset, length| {
            Pdu::R2t(ReadyToTransfer {
                cid,
                tag: 1,
                offset,
                length,
            })
        };
        for (pdus, expected) in [
            (vec![completion(9)], "a completion of no command"),
            (vec![data(9, 0, 4, false)], "data for no command"),
            (
                vec![data(0, 0, 9, false)],
                "data at 0 where 0 bytes have come",
            ),
            (
                vec![data(0, 0, 4, false), data(0, 0, 4, false)],
                "data at 0 where 4 bytes have come",
            ),
            (
                vec![data(0, 0, 4, true)],
                "4 bytes of data where 8 were asked for",
            ),
            (
                vec![data(0, 0, 4, false), completion(0)],
                "4 bytes of data where 8 were asked for",
            ),
            (
                vec![data(1, 0, 4, false)],
                "data at 0 where 0 bytes have come",
            ),
            (vec![request(9, 0, 4)], "a request for data of no command"),
            (vec![request(0, 0, 4)], "a request for 4 bytes at 0"),
            (
                vec![request(1, 0, 10_001)],
                "a request for 10001 bytes at 0",
            ),
            (vec![request(1, 4, 4)], "a request for 4 bytes at 4"),
            (
                vec![request(1, 0, 10_000), request(1, 0, 10_000)],
                "a request for 10000 bytes at 0",
            ),
        ] {
            let (mut initiator, framing) = opened(&mut StdRng::seed_from_u64(1));
            let mut output = Vec::new();
            let read = initiator.submit(Command::new(2, 1), CommandData::ToHost(8), &mut output);
            let write = CommandData::ToController(vec![1; 10_000]);
            let write = initiator.submit(Command::new(1, 1), write, &mut output);
            assert_eq!((read, write), (Some(0), Some(1)));
            let last = pdus.len() - 1;
            for (i, pdu) in pdus.iter().enumerate() {
                let outcome = receive(&mut initiator, framing, pdu);
                if i == last {
                    assert_eq!(outcome, Err(expected.into()));
                } else {
                    assert_eq!(outcome, Ok(Vec::new()));
                }
            }
        }
    }

    #[test]
    fn the_queue_holds_one_command_less_than_its_entries() {
        let (mut initiator, framing) = opened(&mut StdRng::seed_from_u64(1));
        let mut output = Vec::new();
        let mut submit = |initiator: &mut Initiator| {
            initiator.submit(Command::new(0, 1), CommandData::None, &mut output)
        };
        for cid in 0..15 {
            assert_eq!(submit(&mut initiator), Some(cid));
        }
        assert_eq!(submit(&mut initiator), None);
        assert_eq!(
            receive(&mut initiator, framing, &completion(3))
                .unwrap()
                .len(),
            1
        );
        assert_eq!(submit(&mut initiator), Some(15));
    }

    /// Hostile controllers: nothing panics, and what is sent to them is at most what commands have as data.
    #[test]
    fn a_hostile_controller_ends_its_connection_or_is_served_in_bounds() {
        let mut rng = StdRng::seed_from_u64(5);
        let (mut sent, mut ended, mut refused) = (0, 0, 0);
        while sent < 300_000 {
            let (mut initiator, framing) = opened(&mut rng);
            let mut output = Vec::new();
            let (mut to_send, mut plain) = (0, Vec::new());
            for _ in 0..200 {
                let command = match rng.gen_range(0..3) {
                    0 => CommandData::None,
                    1 => CommandData::ToHost(rng.gen_range(0..64)),
                    _ => {
                        let length = rng.gen_range(8193..20_000);
                        to_send += length;
                        CommandData::ToController(vec![1; length])
                    }
                };
                let is_plain = matches!(command, CommandData::None);
                let submitted = initiator.submit(Command::new(0, 1), command, &mut Vec::new());
                plain.extend(submitted.filter(|_| is_plain));
                // Mostly an answer to a command that is there.
                let is_known = !plain.is_empty() && rng.gen_range(0..8) > 0;
                let cid = if is_known {
                    plain.swap_remove(rng.gen_range(0..plain.len()))
                } else {
                    rng.gen_range(0..20)
                };
                let small = |rng: &mut StdRng| [0, 8, 4096, rng.r#gen()][rng.gen_range(0..4)];
                let pdu = match rng.gen_range(0..9) {
                    _ if is_known => completion(cid),
                    0..4 => completion(cid),
                    4 | 5 => data(
                        cid,
                        if rng.r#gen() { 0 } else { small(&mut rng) },
                        rng.gen_range(1..64),
                        rng.r#gen(),
                    ),
                    6 | 7 => Pdu::R2t(ReadyToTransfer {
                        cid,
                        tag: 1,
                        offset: 0,
                        length: small(&mut rng),
                    }),
                    _ => Pdu::C2hTermReq(Terminate {
                        error: 1,
                        information: 0,
                        header: vec![0; 8],
                    }),
                };
                let mut bytes = Vec::new();
                encode(&pdu, framing, &mut bytes);
                if rng.gen_range(0..10) == 0 {
                    let at = rng.gen_range(0..bytes.len());
                    bytes[at] = rng.r#gen();
                }
                sent += 1;
                match initiator.receive(&bytes, &mut output) {
                    Ok(commands) => ended += commands.len(),
                    Err(_) => {
                        refused += 1;
                        break;
                    }
                }
            }
            // Headers, digests and padding of PDUs of 4,096 bytes come on top.
            assert!(output.len() <= to_send + to_send / 8 + 4096);
            assert!(initiator.outstanding() <= 15);
        }
        assert!(ended > 20_000 && refused > 10_000, "{ended} {refused}");
    }
}
