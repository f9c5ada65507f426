//! Precompute: what is refused, the job, its areas and its timeout.

use super::*;
use crate::nvme::opcode::nvm;
use crate::nvme::zkpu::{JobEntry, JobState};

fn command(plain: u32, table: u32, reserved: u32, count: u32, word: u32) -> Command {
    Command::new(nvm::PRECOMPUTE, 1).with_dwords(&[plain, table, reserved, count, word, 5])
}

/// Window 13, ten levels.
const WORD: u32 = 13 | 10 << 8;

#[test]
fn what_is_not_on_the_page_is_refused() {
    let mut controller = enabled();
    let blocks = (MEMORY / 512) as u32;
    for (command, expected) in [
        (command(0, 8, 1, 2, WORD), Status::INVALID_FIELD),
        (command(0, 8, 0, 2, WORD | 1 << 25), Status::INVALID_FIELD),
        (command(0, 8, 0, 2, WORD | 1 << 5), Status::INVALID_FIELD),
        (command(0, 8, 0, 2, WORD | 1 << 16), Status::UNSUPPORTED_JOB),
        (command(0, 8, 0, 2, 13), Status::INVALID_SHAPE),
        (command(0, 8, 0, 2, 13 | 21 << 8), Status::INVALID_SHAPE),
        (command(0, 8, 0, 0, WORD), Status::INVALID_COUNT),
        (command(0, 8, 0, 1 << 27, WORD), Status::INVALID_COUNT),
        (command(blocks, 8, 0, 1, WORD), Status::LBA_OUT_OF_RANGE),
        // Two points have 2,880 bytes: five blocks and a part of the sixth.
        (command(0, blocks - 5, 0, 2, WORD), Status::LBA_OUT_OF_RANGE),
        (command(5, 0, 0, 2, WORD), Status::OVERLAPPING_AREAS),
        (command(6, 0, 0, 2, WORD), Status::SUCCESS),
    ] {
        assert_eq!(
            status(&mut controller, 1, command, &[]),
            expected,
            "{command:?}"
        );
    }
}

#[test]
fn it_is_a_job_whose_points_are_not_counted() {
    let mut controller = enabled();
    let waiting = command(0, 8, 0, 2, WORD | 1 << 24);
    assert!(run(&mut controller, 1, waiting, &[]).is_none());
    let job = controller.device().started[0];
    assert_eq!(job.work, Work::Precompute);
    assert_eq!(job.reads(), [(0, 0), (0, 2 * 144)]);
    assert_eq!(job.writes(), (8 * 512, 2 * 10 * 144));
    finish(&mut controller, 0);
    let reply = controller.next_reply().expect("the end of the job");
    assert_eq!((reply.status, reply.result[0]), (Status::SUCCESS, 1));
    let entry = *controller.job_table().find(1).unwrap();
    assert_eq!(
        (entry.state, entry.flags, entry.result, entry.tag),
        (
            JobState::Done,
            JobEntry::PRECOMPUTE | JobEntry::WAIT,
            8 * 512,
            5
        )
    );
    assert_eq!(controller.counters().points, 0);
}

#[test]
fn it_has_more_time_than_a_product() {
    let mut controller = enabled();
    let state = |controller: &Controller<Scripted>| controller.job_table().find(1).unwrap().state;
    run(&mut controller, 1, command(0, 256, 0, 600, WORD), &[]).unwrap();
    // 16 units as a product, and 19 · (2^15 + 10 · (26 · 2^10 + 2^12)) cycles.
    controller.device_mut().cycles = 22 << 20;
    controller.poll();
    assert_eq!(state(&controller), JobState::Running);
    controller.device_mut().cycles += 1;
    controller.poll();
    assert_eq!(state(&controller), JobState::TimedOut);
}
