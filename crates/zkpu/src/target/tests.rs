//! Sessions without sockets: the handshake, data both ways, errors, and a million hostile PDUs.

mod hostile;
mod linux;

use ark_std::rand::{RngCore, SeedableRng, rngs::StdRng};

use super::*;
use crate::controller::Controller;
use crate::controller::tests::{Scripted, end};
use crate::host::{CommandData, Initiator, Response};
use crate::nvme::opcode::{admin, nvm};
use crate::nvme::{
    Command, Configuration, ConnectData, ConnectFields, DISCOVERY_NQN, DYNAMIC_CONTROLLER,
    IdentifyController, PropertyFields, Sgl, Status, parse_discovery_log, property,
};
use crate::tcp::{
    DataHeader, Digests, Framing, Limits, Payload, Pdu, PduDecoder, Receiver, encode,
};

const SUBSYSTEM: &str = "nqn.2026-01.org.proofmill:zkpu:00000000000000AB";
const BOTH: Digests = Digests {
    header: true,
    data: true,
};
/// Runs of a session for one exchange: far more than it needs.
const RUNS_MAX: usize = 1000;

/// A host's queue and its session, joined by nothing but bytes.
struct Link {
    session: Session,
    initiator: Initiator,
    ended: Vec<(u16, Response)>,
}

impl Link {
    fn new(id: u64, digests: Digests, subsystem: &mut Subsystem<Controller<Scripted>>) -> Self {
        let mut link = Self {
            session: Session::new(ConnectionId(id)),
            initiator: Initiator::new(digests, 32),
            ended: Vec::new(),
        };
        link.session.push(&link.initiator.hello());
        link.exchange(subsystem, 0);
        assert!(link.initiator.is_open());
        link
    }

    /// Moves bytes until both sides are quiet.
    fn exchange(&mut self, subsystem: &mut Subsystem<Controller<Scripted>>, now_ms: u64) {
        for _ in 0..RUNS_MAX {
            let again = self.session.run(subsystem, now_ms);
            let output = self.session.take_output();
            if output.is_empty() && !again {
                return;
            }
            let mut answer = Vec::new();
            self.ended
                .extend(self.initiator.receive(&output, &mut answer).unwrap());
            self.session.push(&answer);
        }
        panic!("it does not end");
    }

    fn call(
        &mut self,
        subsystem: &mut Subsystem<Controller<Scripted>>,
        command: Command,
        data: CommandData,
    ) -> Option<Response> {
        let mut bytes = Vec::new();
        let cid = self.initiator.submit(command, data, &mut bytes).unwrap();
        self.session.push(&bytes);
        self.exchange(subsystem, 0);
        let at = self.ended.iter().position(|(ended, _)| *ended == cid)?;
        Some(self.ended.remove(at).1)
    }

    fn status(
        &mut self,
        subsystem: &mut Subsystem<Controller<Scripted>>,
        command: Command,
        data: CommandData,
    ) -> Status {
        self.call(subsystem, command, data)
            .expect("it ends at once")
            .completion
            .status
    }
}

fn connect_data(controller: u16, name: &str) -> ConnectData {
    ConnectData {
        host_id: [1; 16],
        controller,
        subsystem: name.into(),
        host: "nqn.host".into(),
    }
}

fn connect_fields(queue: u16) -> ConnectFields {
    ConnectFields {
        format: 0,
        queue,
        size: 31,
        attributes: 0,
        keep_alive_ms: 5000,
    }
}

fn connect(
    link: &mut Link,
    subsystem: &mut Subsystem<Controller<Scripted>>,
    queue: u16,
    data: &ConnectData,
) -> (Status, u32) {
    let data = CommandData::ToController(data.encode().to_vec());
    let response = link
        .call(subsystem, connect_fields(queue).command(), data)
        .unwrap();
    (response.completion.status, response.completion.result[0])
}

/// An admin queue and an I/O queue of an enabled controller.
fn connected(
    subsystem: &mut Subsystem<Controller<Scripted>>,
    first_id: u64,
    digests: Digests,
) -> (Link, Link) {
    let mut admin = Link::new(first_id, digests, subsystem);
    let data = connect_data(DYNAMIC_CONTROLLER, SUBSYSTEM);
    assert_eq!(
        connect(&mut admin, subsystem, 0, &data),
        (Status::SUCCESS, 1)
    );
    let enable = PropertyFields::set(property::CC, Configuration::ENABLE_ALL_SETS.0);
    assert_eq!(
        admin.status(subsystem, enable, CommandData::None),
        Status::SUCCESS
    );
    let mut io = Link::new(first_id + 1, digests, subsystem);
    assert_eq!(
        connect(&mut io, subsystem, 1, &connect_data(1, SUBSYSTEM)),
        (Status::SUCCESS, 1)
    );
    (admin, io)
}

fn blocks(opcode: u8, first: u32, count: u32) -> Command {
    Command::new(opcode, 1).with_dwords(&[first, 0, count - 1])
}

#[test]
fn data_goes_both_ways_in_capsules_and_by_requests() {
    for digests in [Digests::default(), BOTH] {
        let mut subsystem = Subsystem::new(Scripted::new());
        let (mut admin, mut io) = connected(&mut subsystem, 1, digests);
        let identify = Command::new(admin::IDENTIFY, 0).with_dwords(&[1]);
        let data = admin
            .call(&mut subsystem, identify, CommandData::ToHost(4096))
            .unwrap()
            .data;
        assert_eq!(
            IdentifyController::decode(&data).unwrap().subsystem,
            SUBSYSTEM
        );
        // 512 bytes come in the capsule, 8 KiB as well, a megabyte by an R2T in eight PDUs.
        for count in [1_u32, 16, 2048] {
            let mut written = vec![0; count as usize * 512];
            StdRng::seed_from_u64(count.into()).fill_bytes(&mut written);
            let data = CommandData::ToController(written.clone());
            assert_eq!(
                io.status(&mut subsystem, blocks(nvm::WRITE, 0, count), data),
                Status::SUCCESS
            );
            let data = CommandData::ToHost(count * 512);
            let read = io
                .call(&mut subsystem, blocks(nvm::READ, 0, count), data)
                .unwrap();
            assert!(read.data == written);
        }
        assert!(!io.session.is_closing());
    }
}

#[test]
fn a_job_that_ends_later_is_answered_on_its_queue() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let (_admin, mut io) = connected(&mut subsystem, 1, BOTH);
    let start = Command::new(nvm::START, 1).with_dwords(&[0, 8, 16, 2, 13 | 1 << 8 | 1 << 24, 7]);
    assert_eq!(io.call(&mut subsystem, start, CommandData::None), None);
    subsystem.controller_mut().device_mut().end = Some(end(0));
    subsystem.poll();
    assert_eq!(
        subsystem.take_woken().into_iter().collect::<Vec<_>>(),
        [ConnectionId(2)]
    );
    io.exchange(&mut subsystem, 0);
    assert_eq!(io.ended.pop().unwrap().1.completion.result[0], 1);
}

#[test]
fn connect_is_checked() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let any = connect_data(DYNAMIC_CONTROLLER, SUBSYSTEM);
    let mut link = Link::new(1, BOTH, &mut subsystem);
    let flush = Command::new(nvm::FLUSH, 1);
    assert_eq!(
        link.status(&mut subsystem, flush, CommandData::None),
        Status::COMMAND_SEQUENCE_ERROR
    );
    let get = PropertyFields::get(property::CSTS, false);
    assert_eq!(
        link.status(&mut subsystem, get, CommandData::None),
        Status::COMMAND_SEQUENCE_ERROR
    );
    let invalid = Status::CONNECT_INVALID_PARAMETERS;
    let other = connect_data(DYNAMIC_CONTROLLER, "nqn.other");
    assert_eq!(
        connect(&mut link, &mut subsystem, 0, &other),
        (invalid, 0x1_0100)
    );
    assert_eq!(
        connect(&mut link, &mut subsystem, 0, &connect_data(7, SUBSYSTEM)),
        (invalid, 0x1_0010)
    );
    assert_eq!(
        connect(&mut link, &mut subsystem, 1, &connect_data(1, SUBSYSTEM)).0,
        Status::COMMAND_SEQUENCE_ERROR
    );
    let mut fields = connect_fields(0);
    fields.size = 0;
    let data = CommandData::ToController(any.encode().to_vec());
    let refused = link
        .call(&mut subsystem, fields.command(), data.clone())
        .unwrap()
        .completion;
    assert_eq!((refused.status, refused.result[0]), (invalid, 44));
    fields = connect_fields(0);
    fields.format = 1;
    assert_eq!(
        link.status(&mut subsystem, fields.command(), data.clone()),
        Status::CONNECT_FORMAT
    );
    assert_eq!(
        connect(&mut link, &mut subsystem, 0, &any),
        (Status::SUCCESS, 1)
    );
    assert_eq!(
        connect(&mut link, &mut subsystem, 0, &any).0,
        Status::COMMAND_SEQUENCE_ERROR,
        "a second time"
    );
}

/// Further queues belong to the host that has the controller.
#[test]
fn queues_are_for_the_host_that_has_the_controller() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let any = connect_data(DYNAMIC_CONTROLLER, SUBSYSTEM);
    let get = PropertyFields::get(property::CSTS, false);
    let mut link = Link::new(1, BOTH, &mut subsystem);
    assert_eq!(
        connect(&mut link, &mut subsystem, 0, &any),
        (Status::SUCCESS, 1)
    );
    let mut second = Link::new(2, BOTH, &mut subsystem);
    assert_eq!(
        connect(&mut second, &mut subsystem, 0, &any).0,
        Status::CONNECT_BUSY
    );
    let mut of_other_host = connect_data(1, SUBSYSTEM);
    of_other_host.host_id = [2; 16];
    let enable = PropertyFields::set(property::CC, Configuration::ENABLE_ALL_SETS.0);
    assert_eq!(
        link.status(&mut subsystem, enable, CommandData::None),
        Status::SUCCESS
    );
    assert_eq!(
        connect(&mut second, &mut subsystem, 1, &of_other_host).0,
        Status::CONNECT_INVALID_HOST
    );
    assert_eq!(
        connect(&mut second, &mut subsystem, 5, &connect_data(1, SUBSYSTEM)).0,
        Status::INVALID_QUEUE_ID
    );
    assert_eq!(
        connect(&mut second, &mut subsystem, 1, &connect_data(1, SUBSYSTEM)).0,
        Status::SUCCESS
    );
    let mut third = Link::new(3, BOTH, &mut subsystem);
    assert_eq!(
        connect(&mut third, &mut subsystem, 1, &connect_data(1, SUBSYSTEM)).0,
        Status::INVALID_QUEUE_ID
    );
    assert_eq!(
        second.status(&mut subsystem, get, CommandData::None),
        Status::INVALID_OPCODE,
        "not on an I/O queue"
    );
}

#[test]
fn without_its_admin_queue_an_association_ends() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let (admin, mut io) = connected(&mut subsystem, 1, BOTH);
    drop(admin);
    subsystem.disconnect(ConnectionId(1));
    assert!(!subsystem.is_associated());
    io.exchange(&mut subsystem, 0);
    assert!(io.session.is_closing());
    subsystem.disconnect(ConnectionId(2));
    // Another host may connect now.
    connected(&mut subsystem, 3, BOTH);
}

#[test]
fn a_reset_closes_the_queues_and_silence_the_association() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let (mut admin, mut io) = connected(&mut subsystem, 1, BOTH);
    let disable = PropertyFields::set(property::CC, 0);
    assert_eq!(
        admin.status(&mut subsystem, disable, CommandData::None),
        Status::SUCCESS
    );
    io.exchange(&mut subsystem, 0);
    assert!(io.session.is_closing());
    subsystem.disconnect(ConnectionId(2));
    subsystem.expire(5000);
    assert!(subsystem.is_associated(), "the timeout is five seconds");
    subsystem.expire(5001);
    assert!(!subsystem.is_associated());
    admin.exchange(&mut subsystem, 5001);
    assert!(admin.session.is_closing());
}

#[test]
fn the_discovery_service_tells_of_the_subsystem() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let entry = crate::nvme::DiscoveryEntry {
        subsystem: SUBSYSTEM.into(),
        address: "127.0.0.1".into(),
        port: "4420".into(),
        is_ipv6: false,
    };
    subsystem.set_discovery(vec![entry.clone()]);
    let mut link = Link::new(1, BOTH, &mut subsystem);
    assert_eq!(
        connect(
            &mut link,
            &mut subsystem,
            0,
            &connect_data(DYNAMIC_CONTROLLER, DISCOVERY_NQN)
        )
        .0,
        Status::SUCCESS
    );
    let identify = Command::new(admin::IDENTIFY, 0).with_dwords(&[1]);
    assert_eq!(
        link.status(&mut subsystem, identify, CommandData::ToHost(4096)),
        Status::COMMAND_SEQUENCE_ERROR,
        "not enabled"
    );
    let enable = PropertyFields::set(property::CC, 1);
    assert_eq!(
        link.status(&mut subsystem, enable, CommandData::None),
        Status::SUCCESS
    );
    let identity = link
        .call(&mut subsystem, identify, CommandData::ToHost(4096))
        .unwrap()
        .data;
    assert_eq!(IdentifyController::decode(&identity).unwrap().kind, 2);
    let log = |bytes: u32| {
        Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[0x70 | (bytes / 4 - 1) << 16])
    };
    let page = link
        .call(&mut subsystem, log(4096), CommandData::ToHost(4096))
        .unwrap()
        .data;
    assert_eq!(parse_discovery_log(&page), Some(vec![entry]));
    let write = CommandData::ToController(vec![0; 512]);
    assert_eq!(
        link.status(&mut subsystem, Command::new(nvm::WRITE, 1), write),
        Status::INVALID_OPCODE
    );
    assert!(!subsystem.is_associated(), "it is another controller");
}

/// A host that reads no answers gets no more than what is bounded: it is served again when they are sent.
#[test]
fn answers_that_are_not_taken_are_bounded() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let (_admin, mut io) = connected(&mut subsystem, 1, Digests::default());
    let mut bytes = Vec::new();
    for _ in 0..20 {
        let data = CommandData::ToHost(1 << 20);
        io.initiator
            .submit(blocks(nvm::READ, 0, 2048), data, &mut bytes)
            .unwrap();
    }
    io.session.push(&bytes);
    assert!(io.session.run(&mut subsystem, 0), "more is to come");
    let output = io.session.take_output();
    assert!(output.len() < 6 << 20);
    let mut answer = Vec::new();
    let mut ended = io.initiator.receive(&output, &mut answer).unwrap().len();
    while ended < 20 {
        io.session.run(&mut subsystem, 0);
        let output = io.session.take_output();
        assert!(!output.is_empty() && output.len() < 6 << 20);
        ended += io.initiator.receive(&output, &mut answer).unwrap().len();
    }
}

/// Writes PDUs to a session that is already connected.
fn send(
    session: &mut Session,
    subsystem: &mut Subsystem<Controller<Scripted>>,
    pdu: &Pdu,
    framing: Framing,
) -> Vec<Pdu> {
    let mut bytes = Vec::new();
    encode(pdu, framing, &mut bytes);
    session.push(&bytes);
    session.run(subsystem, 0);
    pdus_of(&session.take_output(), framing.digests)
}

fn pdus_of(bytes: &[u8], digests: Digests) -> Vec<Pdu> {
    let limits = Limits {
        capsule_data: 0,
        data: 1 << 20,
    };
    let mut decoder = PduDecoder::new(Receiver::Host, limits);
    decoder.initialized(digests);
    decoder.push(bytes);
    std::iter::from_fn(|| decoder.next_pdu().unwrap()).collect()
}

fn write_command(cid: u16, sgl: Sgl, count: u32) -> [u8; 64] {
    let command = Command {
        cid,
        sgl,
        flags: Command::FLAG_SGL,
        ..blocks(nvm::WRITE, 0, count)
    };
    command.encode()
}

fn completion_status(pdus: &[Pdu]) -> Status {
    match pdus {
        [Pdu::CapsuleResp(bytes)] => crate::nvme::Completion::decode(bytes).status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sgls_must_fit_their_commands() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let (_admin, mut io) = connected(&mut subsystem, 1, Digests::default());
    let framing = Framing::default();
    let offset = Sgl {
        address: 8,
        ..Sgl::in_capsule(512)
    };
    let keyed = Sgl {
        identifier: 0x40,
        ..Sgl::transport(512)
    };
    for (sgl, inline, expected) in [
        (Sgl::in_capsule(512), 512, Status::SUCCESS),
        (Sgl::in_capsule(512), 511, Status::DATA_SGL_LENGTH_INVALID),
        (Sgl::in_capsule(512), 0, Status::DATA_SGL_LENGTH_INVALID),
        (Sgl::in_capsule(1024), 1024, Status::DATA_SGL_LENGTH_INVALID),
        (offset, 512, Status::SGL_OFFSET_INVALID),
        (keyed, 0, Status::SGL_TYPE_INVALID),
        (Sgl::transport(512), 512, Status::INVALID_FIELD),
        (Sgl::transport(1024), 0, Status::DATA_SGL_LENGTH_INVALID),
    ] {
        let pdu = Pdu::CapsuleCmd(write_command(3, sgl, 1), vec![0; inline].into());
        let answer = send(&mut io.session, &mut subsystem, &pdu, framing);
        assert_eq!(
            completion_status(&answer),
            expected,
            "{sgl:?} with {inline}"
        );
    }
    let mut prp = Command::decode(&write_command(3, Sgl::default(), 1));
    prp.flags = 0;
    let answer = send(
        &mut io.session,
        &mut subsystem,
        &Pdu::CapsuleCmd(prp.encode(), Payload::default()),
        framing,
    );
    assert_eq!(completion_status(&answer), Status::INVALID_FIELD);
}

#[test]
fn corrupt_data_fails_its_command_and_not_the_connection() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let (_admin, mut io) = connected(&mut subsystem, 1, BOTH);
    let framing = Framing {
        digests: BOTH,
        alignment: 0,
    };
    let pdu = Pdu::CapsuleCmd(
        write_command(3, Sgl::in_capsule(512), 1),
        vec![1; 512].into(),
    );
    let mut bytes = Vec::new();
    encode(&pdu, framing, &mut bytes);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    io.session.push(&bytes);
    io.session.run(&mut subsystem, 0);
    let answer = pdus_of(&io.session.take_output(), BOTH);
    assert_eq!(
        completion_status(&answer),
        Status::TRANSIENT_TRANSPORT_ERROR
    );
    let read = io
        .call(
            &mut subsystem,
            blocks(nvm::READ, 0, 1),
            CommandData::ToHost(512),
        )
        .unwrap();
    assert_eq!(read.data, vec![0; 512], "nothing was written");
}

#[test]
fn an_identifier_twice_is_a_conflict_and_too_many_commands_end_the_connection() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let (_admin, mut io) = connected(&mut subsystem, 1, Digests::default());
    let framing = Framing::default();
    let waiting = |cid| {
        Pdu::CapsuleCmd(
            write_command(cid, Sgl::transport(512), 1),
            Payload::default(),
        )
    };
    assert!(matches!(
        send(&mut io.session, &mut subsystem, &waiting(0), framing)[..],
        [Pdu::R2t(_)]
    ));
    let answer = send(&mut io.session, &mut subsystem, &waiting(0), framing);
    assert_eq!(completion_status(&answer), Status::COMMAND_ID_CONFLICT);
    for cid in 1..32 {
        send(&mut io.session, &mut subsystem, &waiting(cid), framing);
        assert!(!io.session.is_closing());
    }
    let answer = send(&mut io.session, &mut subsystem, &waiting(32), framing);
    assert!(matches!(answer[..], [Pdu::C2hTermReq(_)]));
    assert!(io.session.is_closing());
}
