//! Any commands and property writes reach a controller: nothing panics, each command has at most one reply, with no more
//! data than was planned, and every job ends: `cargo +nightly fuzz run commands`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_zkpu::controller::{Controller, Execution, FunctionalModel, ModelOptions};
use proofmill_zkpu::nvme::{COMMAND_BYTES, Command, Configuration, Fabrics, property};

/// A command, and two bytes before it.
const RECORD: usize = COMMAND_BYTES + 2;
const MEMORY_BYTES: u64 = 1 << 16;
/// Most bytes of data that a command gets here; longer ones are refused as a transport would.
const DATA_MAX: u32 = 1 << 16;
/// Jobs that wait for nothing end within as many polls.
const POLLS_MAX: usize = 1_000;

fn controller() -> Controller<FunctionalModel> {
    let model = FunctionalModel::new(ModelOptions {
        serial: "FUZZ".into(),
        memory_bytes: MEMORY_BYTES,
        adders: 2,
        power_on_id: 1,
        execution: Execution::Inline,
    });
    let fabrics = Fabrics {
        keep_alive_units: 10,
        command_capsule: 516,
        response_capsule: 1,
    };
    Controller::new(model, fabrics, 64)
}

/// Commands without a reply yet, by queue and identifier, with the most bytes of their replies.
type Outstanding = Vec<(u16, u16, usize)>;

fn take_replies(controller: &mut Controller<FunctionalModel>, outstanding: &mut Outstanding) {
    while let Some(reply) = controller.next_reply() {
        let answers = |(queue, cid, most): &(u16, u16, usize)| {
            (*queue, *cid) == (reply.queue, reply.cid) && reply.data.len() <= *most
        };
        let at = outstanding.iter().position(answers);
        outstanding.swap_remove(at.expect("a reply to a command, as long as was planned"));
    }
}

/// Writes a property whose offset and value are in the input, and reads it.
fn access_property(controller: &mut Controller<FunctionalModel>, offset: u8, bytes: &[u8]) {
    let value = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    let is_wide = value >> 63 != 0;
    let _ = controller.set_property(offset.into(), is_wide, value);
    let _ = controller.property(offset.into(), is_wide);
}

fuzz_target!(|input: &[u8]| {
    let mut controller = controller();
    let mut outstanding = Outstanding::new();
    let enable = u64::from(Configuration::ENABLE_ALL_SETS.0);
    let _ = controller.set_property(property::CC, false, enable);
    for record in input.chunks_exact(RECORD) {
        let (what, fill) = (record[0], record[1]);
        let bytes: &[u8; COMMAND_BYTES] = record[2..].try_into().expect("a whole command");
        if what == u8::MAX {
            access_property(&mut controller, fill, bytes);
            // A reset ends commands without replies.
            if !controller.is_ready() {
                outstanding.clear();
            }
            continue;
        }
        let command = Command::decode(bytes);
        let queue = u16::from(what % 3);
        match controller.plan(queue, &command) {
            Err(status) => {
                outstanding.push((queue, command.cid, 0));
                controller.refuse(queue, &command, status);
            }
            Ok(length) if length > DATA_MAX => continue,
            Ok(length) => {
                let is_sent = command.opcode & 1 == 1;
                let sent = vec![fill; if is_sent { length as usize } else { 0 }];
                outstanding.push((queue, command.cid, length as usize));
                controller.execute(queue, &command, &sent);
            }
        }
        take_replies(&mut controller, &mut outstanding);
    }
    for _ in 0..POLLS_MAX {
        controller.poll();
        take_replies(&mut controller, &mut outstanding);
    }
    assert!(!controller.is_busy(), "a job neither runs nor ends");
});
