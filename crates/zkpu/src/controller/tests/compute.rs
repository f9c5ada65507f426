//! The compute personality, and both personalities on the functional model.

use super::*;
use crate::bytes::{put_u32, put_u64};
use crate::curve::{decode_result, encode_scalars, table};
use crate::nvme::opcode::{admin, memory, nvm, program};
use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ec::CurveGroup;
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};

/// Descriptors of ranges: namespace, first byte, length.
fn descriptors(ranges: &[(u32, u64, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; 32 * ranges.len()];
    for (to, (nsid, first, length)) in bytes.chunks_exact_mut(32).zip(ranges) {
        put_u32(to, 0, *nsid);
        put_u32(to, 4, *length);
        put_u64(to, 8, *first);
    }
    bytes
}

fn create(count: u32) -> Command {
    Command::new(admin::RANGE_SET_MANAGEMENT, 3).with_dwords(&[0, count])
}

fn delete(id: u32) -> Command {
    Command::new(admin::RANGE_SET_MANAGEMENT, 3).with_dwords(&[1 | id << 16])
}

/// Execute Program for two points.
fn execute(range_set: u32) -> Command {
    let mut command = Command::new(program::EXECUTE, 3).with_dwords(&[2, 13 | 1 << 8, 9]);
    command.cdw2 = [1 | range_set << 16, if range_set == 0 { 3 } else { 0 }];
    command.metadata = if range_set == 0 { 96 } else { 0 };
    command
}

const GOOD: [(u32, u64, u32); 3] = [(2, 0, 64), (2, 4096, 320), (2, 8192, 192)];

#[test]
fn range_sets_are_checked() {
    let mut controller = enabled();
    let mut created = |ranges: &[(u32, u64, u32)]| {
        let command = create(ranges.len() as u32);
        status(&mut controller, 0, command, &descriptors(ranges))
    };
    for (ranges, expected) in [
        (vec![(1, 0, 64)], Status::INVALID_MEMORY_NAMESPACE),
        (vec![(2, 0, 0)], Status::INVALID_RANGE_SET),
        (vec![(2, 32, 64)], Status::INVALID_RANGE_SET),
        (vec![(2, 0, 96)], Status::INVALID_RANGE_SET),
        (vec![(2, MEMORY, 64)], Status::INVALID_RANGE_SET),
        (vec![(2, u64::MAX - 63, 64)], Status::INVALID_RANGE_SET),
        (vec![(2, 0, 128), (2, 64, 64)], Status::OVERLAPPING_RANGES),
        (vec![(2, 0, 64), (2, 64, 64)], Status::SUCCESS),
    ] {
        assert_eq!(created(&ranges), expected, "{ranges:?}");
    }
    for (command, expected) in [
        (create(0), Status::RANGES_EXCEEDED),
        (create(5), Status::RANGES_EXCEEDED),
        (
            Command::new(admin::RANGE_SET_MANAGEMENT, 3).with_dwords(&[2, 1]),
            Status::INVALID_FIELD,
        ),
        (
            Command::new(admin::RANGE_SET_MANAGEMENT, 1).with_dwords(&[0, 1]),
            Status::INVALID_NAMESPACE,
        ),
        (delete(0), Status::INVALID_RANGE_SET_ID),
        (delete(2), Status::INVALID_RANGE_SET_ID),
        (delete(1), Status::SUCCESS),
        (delete(1), Status::INVALID_RANGE_SET_ID),
    ] {
        assert_eq!(
            status(&mut controller, 0, command, &[]),
            expected,
            "{command:?}"
        );
    }
    for id in 1..=16 {
        let reply = run(&mut controller, 0, create(1), &descriptors(&[(2, 0, 64)])).unwrap();
        assert_eq!(reply.result[0], id);
    }
    assert_eq!(
        status(&mut controller, 0, create(1), &descriptors(&[(2, 0, 64)])),
        Status::RANGE_SETS_EXCEEDED
    );
}

#[test]
fn programs_are_activated_and_not_loaded() {
    let mut controller = enabled();
    let activate = |index: u32, select: u32| {
        Command::new(admin::PROGRAM_ACTIVATION, 3).with_dwords(&[index | select << 16])
    };
    let load = |index: u32| Command::new(admin::LOAD_PROGRAM, 3).with_dwords(&[index]);
    for (command, expected) in [
        (load(1), Status::PROGRAM_NOT_DOWNLOADABLE),
        (load(2), Status::INVALID_PROGRAM_INDEX),
        (activate(2, 1), Status::INVALID_PROGRAM_INDEX),
        (activate(1, 2), Status::INVALID_FIELD),
        (activate(1, 0), Status::SUCCESS),
    ] {
        assert_eq!(status(&mut controller, 0, command, &[]), expected);
    }
    assert_eq!(
        status(&mut controller, 1, execute(0), &descriptors(&GOOD)),
        Status::PROGRAM_NOT_ACTIVATED
    );
    assert_eq!(
        status(&mut controller, 0, activate(1, 1), &[]),
        Status::SUCCESS
    );
    assert_eq!(
        run(&mut controller, 1, execute(0), &descriptors(&GOOD)),
        None
    );
    assert_eq!(
        status(&mut controller, 0, activate(1, 0), &[]),
        Status::PROGRAM_IN_USE
    );
}

#[test]
fn executions_are_checked() {
    let mut controller = enabled();
    let change = |changed: &dyn Fn(&mut Command)| {
        let mut command = execute(0);
        changed(&mut command);
        command
    };
    let good = descriptors(&GOOD);
    for (command, expected) in [
        (
            change(&|command| command.cdw2[0] = 2),
            Status::INVALID_PROGRAM_INDEX,
        ),
        (
            change(&|command| command.cdw10[1] |= 1 << 24),
            Status::INVALID_FIELD,
        ),
        (
            change(&|command| command.cdw10[3] = 1),
            Status::INVALID_FIELD,
        ),
        (
            change(&|command| command.cdw10[1] |= 1 << 26),
            Status::UNSUPPORTED_JOB,
        ),
        (
            change(&|command| command.cdw10[1] |= 1 << 16),
            Status::UNSUPPORTED_JOB,
        ),
        (
            change(&|command| command.cdw2[1] = 2),
            Status::RANGES_EXCEEDED,
        ),
        (
            change(&|command| command.metadata = 64),
            Status::INVALID_FIELD,
        ),
        (
            change(&|command| command.cdw2[0] = 1 | 5 << 16),
            Status::INVALID_FIELD,
        ),
        (execute(5), Status::INVALID_RANGE_SET_ID),
        (
            change(&|command| command.cdw10[1] = 3 | 1 << 8),
            Status::INVALID_SHAPE,
        ),
        (
            change(&|command| command.cdw10[0] = 0),
            Status::INVALID_COUNT,
        ),
        (
            change(&|command| command.cdw10[0] = 3),
            Status::INVALID_RANGE_SET,
        ),
    ] {
        assert_eq!(
            status(&mut controller, 1, command, &good),
            expected,
            "{command:?}"
        );
    }
    for (at, length) in [(1, 256), (2, 128)] {
        let mut ranges = GOOD;
        ranges[at].2 = length;
        assert_eq!(
            status(&mut controller, 1, execute(0), &descriptors(&ranges)),
            Status::INVALID_RANGE_SET
        );
    }
    assert_eq!(
        status(&mut controller, 0, create(1), &descriptors(&GOOD[..1])),
        Status::SUCCESS
    );
    assert_eq!(
        status(&mut controller, 1, execute(1), &[]),
        Status::INVALID_RANGE_SET,
        "one range"
    );
}

#[test]
fn a_range_set_in_use_stays() {
    let mut controller = enabled();
    assert_eq!(
        status(&mut controller, 0, create(3), &descriptors(&GOOD)),
        Status::SUCCESS
    );
    assert_eq!(run(&mut controller, 1, execute(1), &[]), None);
    assert_eq!(
        status(&mut controller, 0, delete(1), &[]),
        Status::RANGE_SET_IN_USE
    );
    finish(&mut controller, 0);
    let reply = controller.next_reply().unwrap();
    assert_eq!((reply.status, reply.result), (Status::SUCCESS, [1000, 0]));
    assert_eq!(status(&mut controller, 0, delete(1), &[]), Status::SUCCESS);
}

/// Both personalities on the functional model give the product.
#[test]
fn products_by_both_personalities() {
    let model = FunctionalModel::new(ModelOptions {
        serial: "1".into(),
        memory_bytes: 1 << 20,
        adders: 2,
        power_on_id: 1,
        execution: Execution::Inline,
    });
    let mut controller = Controller::new(model, FABRICS, 128);
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0);
    let mut rng = StdRng::seed_from_u64(5);
    let points: Vec<G1Affine> = (0..64)
        .map(|_| G1Projective::rand(&mut rng).into_affine())
        .collect();
    let scalars: Vec<Fr> = (0..64).map(|_| Fr::rand(&mut rng)).collect();
    let expected: G1Projective = points
        .iter()
        .zip(&scalars)
        .map(|(point, scalar)| *point * scalar)
        .sum();
    let entries = table(&points, SHAPE);
    let (scalar_blocks, table_blocks) = (4, (entries.len() / 512) as u32);
    let write =
        |first: u32, count: u32| Command::new(nvm::WRITE, 1).with_dwords(&[first, 0, count - 1]);
    assert_eq!(
        status(
            &mut controller,
            1,
            write(0, scalar_blocks),
            &encode_scalars(&scalars)
        ),
        Status::SUCCESS
    );
    assert_eq!(
        status(&mut controller, 1, write(8, table_blocks), &entries),
        Status::SUCCESS
    );

    let start = Command::new(nvm::START, 1).with_dwords(&[0, 8, 100, 64, 13 | 1 << 8 | 1 << 24, 0]);
    assert_eq!(run(&mut controller, 1, start, &[]), None);
    controller.poll();
    let reply = controller.next_reply().unwrap();
    assert_eq!((reply.status, reply.result[0]), (Status::SUCCESS, 1));
    let read = |first: u64| Command::new(memory::READ, 2).with_dwords(&[first as u32, 0, 192]);
    let result = run(&mut controller, 1, read(100 * 512), &[]).unwrap().data;
    assert_eq!(decode_result(&result), Ok(expected));

    let ranges = [
        (2, 0, 2048),
        (2, 8 * 512, entries.len() as u32),
        (2, 200 * 512, 192),
    ];
    let mut command = execute(0);
    command.cdw10[0] = 64;
    assert_eq!(
        run(&mut controller, 1, command, &descriptors(&ranges)),
        None
    );
    controller.poll();
    let reply = controller.next_reply().unwrap();
    let cycles = CycleModel { adders: 2 }.cycles(64, SHAPE);
    assert_eq!(
        (reply.status, u64::from(reply.result[0])),
        (Status::SUCCESS, cycles)
    );
    let result = run(&mut controller, 1, read(200 * 512), &[]).unwrap().data;
    assert_eq!(decode_result(&result), Ok(expected));
}
