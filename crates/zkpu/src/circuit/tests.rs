//! Lengths of data against the state machine's plan, hostile answers, and programs that are no simulators. What needs a
//! simulator is in `tests/circuit.rs`.

use std::path::PathBuf;
use std::time::Duration;

use ark_std::rand::{Rng, RngCore, SeedableRng, rngs::StdRng};

use crate::circuit::data::data_bytes;
use crate::circuit::frames::{Answer, Frame, Request};
use crate::circuit::{Circuit, CircuitError, CircuitOptions};
use crate::controller::Controller;
use crate::controller::tests::Scripted;
use crate::nvme::opcode::{admin, memory, nvm, program};
use crate::nvme::{Command, Configuration, Status, property};
use crate::target::FABRICS;

/// The opcodes of a queue's namespaces, and one that none has.
fn opcodes(is_admin: bool) -> &'static [u8] {
    match is_admin {
        true => &[
            admin::GET_LOG_PAGE,
            admin::IDENTIFY,
            admin::ABORT,
            admin::SET_FEATURES,
            admin::GET_FEATURES,
            admin::EVENT_REQUEST,
            admin::LOAD_PROGRAM,
            admin::PROGRAM_ACTIVATION,
            admin::RANGE_SET_MANAGEMENT,
            0xff,
        ],
        false => &[
            nvm::FLUSH,
            nvm::WRITE,
            nvm::READ,
            nvm::START,
            nvm::WAIT,
            nvm::CANCEL,
            nvm::SET_BASE,
            memory::WRITE,
            program::EXECUTE,
            0xff,
        ],
    }
}

/// A circuit that moved other lengths than were given to it would leave its pages.
#[test]
fn lengths_are_those_of_the_state_machine() {
    let mut controller = Controller::new(Scripted::new(), FABRICS, 32);
    controller
        .set_property(property::CC, false, Configuration::ENABLE_ALL_SETS.0.into())
        .unwrap();
    let mut rng = StdRng::seed_from_u64(11);
    let (mut with_data, mut without) = (0, 0);
    for _ in 0..200_000 {
        let is_admin = rng.gen_bool(0.4);
        let opcodes = opcodes(is_admin);
        let mut command = Command::new(
            opcodes[rng.gen_range(0..opcodes.len())],
            rng.gen_range(0..5),
        );
        for dword in &mut command.cdw10 {
            *dword = rng.next_u32() >> rng.gen_range(0..32);
        }
        command.cdw2 = [
            rng.gen_range(0..3) << 16 | rng.gen_range(0..3),
            rng.gen_range(2..5),
        ];
        command.metadata = [0, 96, 64][rng.gen_range(0..3)];
        let Ok(planned) = controller.plan(u16::from(!is_admin), &command) else {
            continue;
        };
        let told = data_bytes(is_admin, &command);
        // The firmware refuses these before data, as the state machine does after it.
        if let Some(told) = told {
            assert_eq!(told, u64::from(planned), "{command:?}");
        } else {
            assert!(
                matches!(
                    command.opcode,
                    admin::LOAD_PROGRAM | admin::PROGRAM_ACTIVATION
                ),
                "{command:?}"
            );
        }
        match planned {
            0 => without += 1,
            _ => with_data += 1,
        }
    }
    assert!(with_data > 1000 && without > 1000);
}

#[test]
fn an_answer_is_read_whole_or_refused() {
    let mut bytes = Vec::new();
    bytes.extend(28_u32.to_le_bytes());
    bytes.extend([129, 0, 0, 0]);
    bytes.extend(7_u32.to_le_bytes());
    bytes.extend([
        1, 0, 0, 0, 2, 0, 0, 0, 0xc9, 0x41, 0, 0, 4, 0, 0, 0, 9, 9, 9, 9,
    ]);
    let answer = Answer::Completion {
        result: [1, 2],
        status: Status::INVALID_COUNT,
        data: vec![9; 4],
    };
    assert_eq!(
        Frame::read(&mut &*bytes).unwrap(),
        Some(Frame { tag: 7, answer })
    );
    for cut in 4..bytes.len() {
        assert!(Frame::read(&mut &bytes[..cut]).is_err());
    }
    assert_eq!(Frame::read(&mut &[][..]).unwrap(), None);
    let mut rng = StdRng::seed_from_u64(12);
    let mut refused = 0;
    for _ in 0..100_000 {
        let mut random = vec![0; rng.gen_range(8..60)];
        rng.fill_bytes(&mut random);
        let kinds = [129, 130, 131, 132, 133, 134, 136, 143, 255, 0];
        random[0] = kinds[rng.gen_range(0..kinds.len())];
        let length = match rng.gen_bool(0.9) {
            true => random.len() as u32,
            false => rng.next_u32(),
        };
        let frame = [&length.to_le_bytes()[..], &random].concat();
        refused += u32::from(Frame::read(&mut &*frame).is_err());
    }
    assert!((10_000..90_000).contains(&refused), "{refused}");
}

#[test]
fn a_command_is_written_as_the_simulator_reads_it() {
    let command = Request::Command {
        queue: 3,
        entry: [5; 64],
        to_circuit: vec![1, 2],
        from_circuit: 0,
    };
    let bytes = command.encode(0x0102_0304);
    assert_eq!(bytes[..4], 82_u32.to_le_bytes());
    assert_eq!(
        bytes[4..20],
        [1, 0, 0, 0, 4, 3, 2, 1, 3, 0, 1, 1, 2, 0, 0, 0]
    );
    assert_eq!(
        bytes[20..],
        [[5; 66].as_slice()].concat()[..64]
            .iter()
            .copied()
            .chain([1, 2])
            .collect::<Vec<u8>>()
    );
}

fn launch(simulator: &str, firmware: &str) -> CircuitError {
    let options = CircuitOptions {
        simulator: PathBuf::from(simulator),
        firmware: PathBuf::from(firmware),
        memory_bytes: 4096,
        power_on_id: 1,
        silence_max: Duration::from_secs(5),
    };
    Circuit::launch(&options).unwrap_err()
}

#[test]
fn what_is_no_simulator_is_named() {
    let missing = launch("/nowhere/zkpu_sim", "/etc/passwd").to_string();
    assert!(
        missing.contains("/nowhere/zkpu_sim is not there"),
        "{missing}"
    );
    assert!(missing.contains("make -C hardware/zkpu"), "{missing}");
    let ended = launch("/bin/true", "/etc/passwd");
    assert!(
        matches!(&ended, CircuitError::Unusable { reason, .. } if reason.contains("the simulator ended")),
        "{ended}"
    );
    // It prints the file, which is no frame.
    let talks = launch("/bin/cat", "/etc/passwd");
    assert!(
        matches!(&talks, CircuitError::Unusable { reason, .. } if reason.contains("a frame of")),
        "{talks}"
    );
    let no_program = launch("/etc/passwd", "/etc/passwd");
    assert!(
        matches!(no_program, CircuitError::Start { .. }),
        "{no_program}"
    );
}
