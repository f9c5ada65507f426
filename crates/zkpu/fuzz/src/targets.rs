//! The fuzz targets' uses of their input.

use proofmill_zkpu::controller::{Controller, Execution, FunctionalModel, ModelOptions};
use proofmill_zkpu::nvme::opcode::{admin, memory, nvm, program};
use proofmill_zkpu::nvme::{COMMAND_BYTES, Command, Configuration, Direction, Fabrics, property};
use proofmill_zkpu::target::{ConnectionId, Session, Subsystem};
use proofmill_zkpu::tcp::{Digests, Framing, Limits, Pdu, PduDecoder, Receiver, encode};

const MEMORY_BYTES: u64 = 1 << 16;
const LIMITS: Limits = Limits {
    capsule_data: 8192,
    data: 1 << 17,
};
/// Runs of a session for one input: far more than it needs.
const RUNS_MAX: usize = 1000;

fn model() -> FunctionalModel {
    FunctionalModel::new(ModelOptions {
        serial: "FUZZ".into(),
        memory_bytes: MEMORY_BYTES,
        adders: 2,
        power_on_id: 1,
        execution: Execution::Inline,
    })
}

/// Two bytes choose digests and the parts in which the rest comes, to a decoder of each side and to a new session.
pub fn pdus(bytes: &[u8]) {
    let [choice, part, rest @ ..] = bytes else {
        return;
    };
    let digests = Digests {
        header: choice & 1 == 1,
        data: choice & 2 == 2,
    };
    let part = usize::from(*part).max(1);
    for receiver in [Receiver::Controller, Receiver::Host] {
        let mut decoder = PduDecoder::new(receiver, LIMITS);
        if choice & 4 == 4 {
            decoder.initialized(digests);
        }
        'stream: for chunk in rest.chunks(part) {
            decoder.push(chunk);
            loop {
                match decoder.next_pdu() {
                    Ok(Some(pdu)) => read_again(&pdu, receiver, digests, choice & 4 == 4),
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
        }
    }
    let mut subsystem = Subsystem::new(model());
    let mut session = Session::new(ConnectionId(1));
    for chunk in rest.chunks(part) {
        session.push(chunk);
        let runs = (0..RUNS_MAX).take_while(|_| {
            let must_run_again = session.run(&mut subsystem, 0);
            session.take_output();
            must_run_again
        });
        assert!(runs.count() < RUNS_MAX, "a session that never ends");
    }
    subsystem.disconnect(ConnectionId(1));
    assert!(!subsystem.is_associated());
}

/// A PDU that was read is within the limits, and the same when it is written and read again.
fn read_again(pdu: &Pdu, receiver: Receiver, digests: Digests, is_initialized: bool) {
    if let Pdu::CapsuleCmd(_, data) | Pdu::H2cData(_, data) | Pdu::C2hData(_, data) = pdu {
        assert!(data.bytes.len() <= LIMITS.data);
        if data.is_corrupt {
            return;
        }
    }
    let framing = Framing {
        digests,
        alignment: 0,
    };
    let mut bytes = Vec::new();
    encode(pdu, framing, &mut bytes);
    let mut decoder = PduDecoder::new(receiver, LIMITS);
    if is_initialized {
        decoder.initialized(digests);
    }
    decoder.push(&bytes);
    assert_eq!(decoder.next_pdu().as_ref(), Ok(&Some(pdu.clone())));
    assert_eq!(decoder.buffered(), 0);
}

/// A list of commands, each of a byte for its queue, one for its opcode, and 64 for its entry, to an enabled controller.
pub fn commands(bytes: &[u8]) {
    const OPCODES: [u8; 17] = [
        admin::GET_LOG_PAGE,
        admin::IDENTIFY,
        admin::ABORT,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::EVENT_REQUEST,
        admin::PROGRAM_ACTIVATION,
        admin::RANGE_SET_MANAGEMENT,
        nvm::WRITE,
        nvm::READ,
        nvm::START,
        nvm::WAIT,
        nvm::CANCEL,
        nvm::SET_BASE,
        nvm::PRECOMPUTE,
        memory::WRITE,
        program::EXECUTE,
    ];
    let fabrics = Fabrics {
        keep_alive_units: 10,
        command_capsule: 516,
        response_capsule: 1,
    };
    let mut controller = Controller::new(model(), fabrics, 64);
    let enable = Configuration::ENABLE_ALL_SETS.0;
    assert_eq!(
        controller.set_property(property::CC, false, enable.into()),
        Ok(())
    );
    let mut commands = 0_usize;
    let mut replies = 0_usize;
    for entry in bytes.chunks_exact(2 + COMMAND_BYTES) {
        let Ok(fields) = entry[2..].try_into() else {
            return;
        };
        let mut command = Command::decode(fields);
        // Most entries have an opcode that there is, and a namespace near those that there are.
        if let Some(opcode) = OPCODES.get(usize::from(entry[1])) {
            command.opcode = *opcode;
            command.nsid %= 5;
        }
        let queue = u16::from(entry[0] % 5);
        commands += 1;
        let planned = match controller.plan(queue, &command) {
            Ok(planned) => planned,
            Err(status) => {
                controller.refuse(queue, &command, status);
                continue;
            }
        };
        let data = match command.direction() {
            Direction::ToController => vec![entry[1]; planned as usize],
            _ => Vec::new(),
        };
        controller.execute(queue, &command, &data);
        while let Some(reply) = controller.next_reply() {
            replies += 1;
            if reply.cid == command.cid && reply.queue == queue && reply.status.is_success() {
                assert!(reply.data.len() <= planned as usize);
            }
        }
    }
    controller.end_association();
    assert!(replies <= commands, "a command was answered twice");
}
