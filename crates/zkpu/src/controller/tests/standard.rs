//! The standard parts of an NVMe controller: properties, Identify, features, log pages.

use super::*;
use crate::bytes::u32_at;
use crate::nvme::opcode::{admin, feature, log};
use crate::nvme::{ControllerStatus, ErrorEntry, IdentifyController, NamespaceBlocks};

fn csts(controller: &Controller<Scripted>) -> u64 {
    controller.property(property::CSTS, false).unwrap()
}

fn identify(cns: u32, nsid: u32, set: u32) -> Command {
    Command::new(admin::IDENTIFY, nsid).with_dwords(&[cns, set << 24])
}

#[test]
fn enabling_resetting_and_shutting_down() {
    let mut controller = Controller::new(Scripted::new(), FABRICS, 128);
    assert_eq!(
        controller.property(property::CAP, true),
        Ok(0x0000_0830_1401_00ff)
    );
    assert_eq!(controller.property(0x04, false), Ok(0x0830));
    assert_eq!(controller.property(property::VS, false), Ok(0x0002_0000));
    let flush = Command::new(opcode::nvm::FLUSH, 1);
    assert_eq!(
        status(&mut controller, 1, flush, &[]),
        Status::COMMAND_SEQUENCE_ERROR
    );
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0);
    assert_eq!(csts(&controller), 1);
    assert_eq!(status(&mut controller, 1, flush, &[]), Status::SUCCESS);
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0 & !1);
    assert_eq!((csts(&controller), controller.counters().resets), (0, 1));
    // A command set that is not supported, and pages of another size.
    for bad in [1 | 1 << 4, 1 | 1 << 7, 1 | 1 << 11] {
        enable(&mut controller, bad);
        assert_eq!(csts(&controller), ControllerStatus::FATAL.into());
        enable(&mut controller, 0);
        assert_eq!(csts(&controller), 0);
    }
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0);
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0 | 1 << 14);
    assert_eq!(csts(&controller), 1 | 2 << 2);
    assert_eq!(
        status(&mut controller, 1, flush, &[]),
        Status::COMMAND_SEQUENCE_ERROR
    );
    controller
        .set_property(property::NSSR, false, property::NSSR_RESET.into())
        .unwrap();
    assert_eq!(csts(&controller), ControllerStatus::SUBSYSTEM_RESET.into());
    controller
        .set_property(property::CSTS, false, 1 << 4)
        .unwrap();
    assert_eq!(csts(&controller), 0);
    for (offset, is_wide) in [(0x24, false), (0x08, true), (0x3c, false)] {
        assert_eq!(
            controller.property(offset, is_wide),
            Err(Status::CONNECT_INVALID_PARAMETERS)
        );
    }
    assert!(controller.set_property(property::CAP, true, 0).is_err());
}

#[test]
fn the_effects_page_has_the_commands_of_each_set() {
    let mut controller = enabled();
    let mut page = |set: u32| {
        let command = Command::new(opcode::admin::GET_LOG_PAGE, 0).with_dwords(&[
            u32::from(opcode::log::EFFECTS) | 1023 << 16,
            0,
            0,
            0,
            set << 24,
        ]);
        run(&mut controller, 0, command, &[]).unwrap()
    };
    for (set, opcodes) in [
        (0, &[0x00, 0x01, 0x02, 0x80, 0x84, 0x88, 0x8c, 0x90][..]),
        (3, &[0x00, 0x02, 0x05]),
        (4, &[0x01]),
    ] {
        let reply = page(set);
        assert_eq!((reply.status, reply.data.len()), (Status::SUCCESS, 4096));
        for opcode in 0..256 {
            let entry = u32_at(&reply.data, 1024 + 4 * opcode);
            assert_eq!(entry & 1 == 1, opcodes.contains(&opcode), "{opcode:#x}");
        }
        assert_eq!(u32_at(&reply.data, 4 * 0x06), 1, "Identify");
        assert_eq!(u32_at(&reply.data, 4 * 0x89), u32::from(set == 4));
    }
    assert_eq!(page(2).status, Status::INVALID_COMMAND_SET);
}

#[test]
fn identify_gives_what_the_page_says() {
    let mut controller = enabled();
    let mut page = |command| {
        let reply = run(&mut controller, 0, command, &[]).unwrap();
        assert_eq!(reply.status, Status::SUCCESS);
        assert_eq!(reply.data.len(), 4096);
        reply.data
    };
    let identity = IdentifyController::decode(&page(identify(1, 0, 0))).unwrap();
    assert_eq!(
        identity.subsystem,
        "nqn.2026-01.org.proofmill:zkpu:00000000000000AB"
    );
    assert_eq!(
        (identity.mdts, identity.controller, identity.namespaces),
        (8, 1, 3)
    );
    let capability = identity.zkpu.unwrap();
    assert_eq!(
        (
            capability.memory_bytes,
            capability.flags,
            capability.power_on_id
        ),
        (MEMORY, 0x1b, 0x55)
    );
    let namespace = NamespaceBlocks::decode(&page(identify(0, 1, 0))).unwrap();
    assert_eq!((namespace.blocks, namespace.block_log), (MEMORY / 512, 9));
    let list = page(identify(2, 0, 0));
    assert_eq!([0, 4, 8, 12].map(|at| u32_at(&list, at)), [1, 2, 3, 0]);
    assert_eq!(u32_at(&page(identify(2, 2, 0)), 0), 3);
    assert_eq!(u32_at(&page(identify(7, 0, 3)), 0), 2);
    let descriptors = page(identify(3, 2, 0));
    assert_eq!(descriptors[..2], [2, 16]);
    assert_eq!(descriptors[20..26], [4, 1, 0, 0, 3, 0]);
    let memory = page(identify(5, 2, 3));
    assert_eq!(
        memory[..18],
        [0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 4, 0]
    );
    assert_eq!(page(identify(5, 3, 4))[..8], [1, 0, 16, 0, 6, 0, 4, 0]);
    assert!(page(identify(6, 0, 4)).iter().all(|byte| *byte == 0));
    assert_eq!(page(identify(8, 3, 0))[14], 1);
    assert_eq!(u32_at(&page(identify(0x1c, 0, 0)), 0), 0x19);
}

#[test]
fn identify_refuses_what_is_not_there() {
    let mut controller = enabled();
    for (command, expected) in [
        (identify(0, 2, 0), Status::INVALID_COMMAND_SET),
        (identify(0, 4, 0), Status::INVALID_NAMESPACE),
        (identify(0, 0, 0), Status::INVALID_NAMESPACE),
        (identify(2, 0xffff_fffe, 0), Status::INVALID_NAMESPACE),
        (identify(3, 9, 0), Status::INVALID_NAMESPACE),
        (identify(5, 2, 1), Status::INVALID_COMMAND_SET),
        (identify(5, 2, 4), Status::INVALID_COMMAND_SET),
        (identify(6, 0, 2), Status::INVALID_COMMAND_SET),
        (identify(0x55, 0, 0), Status::INVALID_FIELD),
    ] {
        assert_eq!(status(&mut controller, 0, command, &[]), expected);
    }
}

#[test]
fn without_other_command_sets_there_is_one_namespace() {
    let mut controller = Controller::new(Scripted::new(), FABRICS, 128);
    enable(&mut controller, 1 | 6 << 16 | 4 << 20);
    let list = run(&mut controller, 0, identify(2, 0, 0), &[])
        .unwrap()
        .data;
    assert_eq!((u32_at(&list, 0), u32_at(&list, 4)), (1, 0));
    let fill = Command::new(opcode::memory::FILL, 2);
    assert_eq!(
        status(&mut controller, 1, fill, &[]),
        Status::INVALID_NAMESPACE
    );
    let activate = Command::new(admin::PROGRAM_ACTIVATION, 3).with_dwords(&[0x1_0001]);
    assert_eq!(
        status(&mut controller, 0, activate, &[]),
        Status::INVALID_NAMESPACE
    );
}

#[test]
fn features_are_kept_and_given_back() {
    let mut controller = enabled();
    let mut call = |opcode, dwords: &[u32]| {
        let reply = run(
            &mut controller,
            0,
            Command::new(opcode, 0).with_dwords(dwords),
            &[],
        )
        .unwrap();
        (reply.status, reply.result[0])
    };
    let (set, get) = (admin::SET_FEATURES, admin::GET_FEATURES);
    assert_eq!(
        call(set, &[feature::QUEUES.into(), 0x0063_0063]),
        (Status::SUCCESS, 0x0003_0003)
    );
    assert_eq!(
        call(set, &[feature::QUEUES.into(), 0xffff]).0,
        Status::INVALID_FIELD
    );
    assert_eq!(call(get, &[0x04, 0]), (Status::SUCCESS, 358));
    assert_eq!(call(set, &[0x04, 300]), (Status::SUCCESS, 0));
    assert_eq!(call(get, &[0x04, 0]), (Status::SUCCESS, 300));
    assert_eq!(
        call(get, &[0x104, 0]),
        (Status::SUCCESS, 358),
        "the default"
    );
    assert_eq!(
        call(get, &[0x304, 0]),
        (Status::SUCCESS, 4),
        "what can be done with it"
    );
    assert_eq!(call(get, &[0x404, 0]).0, Status::INVALID_FIELD);
    assert_eq!(call(set, &[0x8000_0004, 0]).0, Status::FEATURE_NOT_SAVEABLE);
    assert_eq!(call(set, &[0x06, 0]).0, Status::INVALID_FIELD);
    assert_eq!(call(set, &[0x19, 1]).0, Status::INVALID_FIELD);
    assert_eq!(call(get, &[0xc0, 0]), (Status::SUCCESS, 1));
    assert_eq!(call(set, &[0xc1, 5]), (Status::SUCCESS, 0));
    assert_eq!(call(get, &[0xc1, 0]), (Status::SUCCESS, 5));
    assert_eq!(call(set, &[0x0f, 9000]), (Status::SUCCESS, 0));
    assert_eq!(controller.keep_alive_ms(), 9000);
}

fn log_page(id: u8, bytes: u32, offset: u32) -> Command {
    let selector = u32::from(id) | (bytes / 4 - 1) << 16;
    Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[selector, 0, offset])
}

#[test]
fn log_pages_have_their_sizes_and_offsets() {
    let mut controller = enabled();
    let bad = Command {
        cid: 9,
        ..Command::new(0x55, 1)
    };
    assert_eq!(status(&mut controller, 1, bad, &[]), Status::INVALID_OPCODE);
    let errors = run(&mut controller, 0, log_page(log::ERRORS, 1024, 0), &[])
        .unwrap()
        .data;
    let entry = ErrorEntry::decode(&errors).unwrap();
    assert_eq!(
        (entry.number, entry.queue, entry.cid, entry.status),
        (1, 1, 9, Status::INVALID_OPCODE.field())
    );
    let health = run(&mut controller, 0, log_page(log::HEALTH, 512, 0), &[])
        .unwrap()
        .data;
    assert_eq!((health[3], health[176]), (100, 1));
    let firmware = run(&mut controller, 0, log_page(log::FIRMWARE, 16, 8), &[])
        .unwrap()
        .data;
    assert_eq!(&firmware, b"1.0     \0\0\0\0\0\0\0\0");
    let beyond = run(&mut controller, 0, log_page(log::ZKPU, 8, 508), &[]).unwrap();
    assert_eq!((beyond.status, beyond.data.len()), (Status::SUCCESS, 8));
    for (command, expected) in [
        (log_page(log::ZKPU, 8, 516), Status::INVALID_FIELD),
        (log_page(log::ZKPU, 8, 2), Status::INVALID_FIELD),
        (log_page(0x0d, 8, 0), Status::INVALID_LOG_PAGE),
        (
            Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[1 | 0xffff << 16, 0xffff]),
            Status::INVALID_FIELD,
        ),
    ] {
        assert_eq!(status(&mut controller, 0, command, &[]), expected);
    }
}

/// Queues are made by Connect, and of a fabric's commands none are for the controller.
#[test]
fn commands_of_other_transports_are_unknown() {
    let mut controller = enabled();
    for opcode in [0x00, 0x01, 0x04, 0x05, 0x10, 0x11, 0x7f, 0x80, 0xc0] {
        assert_eq!(
            status(&mut controller, 0, Command::new(opcode, 0), &[]),
            Status::INVALID_OPCODE
        );
    }
}
