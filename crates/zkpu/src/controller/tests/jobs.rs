//! The memory personality's jobs: acceptance, waiters, ends, events, timeouts, faults.

use super::*;
use crate::nvme::opcode::{admin, feature, log, nvm};
use crate::nvme::zkpu::{Event, JobState};

fn with_cid(mut command: Command, cid: u16) -> Command {
    command.cid = cid;
    command
}

fn of_job(opcode: u8, number: u32) -> Command {
    Command::new(opcode, 1).with_dwords(&[number])
}

fn request_event(cid: u16) -> Command {
    with_cid(Command::new(admin::EVENT_REQUEST, 0), cid)
}

fn read_jobs() -> Command {
    let selector = u32::from(log::JOBS) | (1088 / 4 - 1) << 16;
    with_cid(
        Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[selector]),
        500,
    )
}

fn set_feature(controller: &mut Controller<Scripted>, id: u8, value: u32) {
    let command = Command::new(admin::SET_FEATURES, 0).with_dwords(&[id.into(), value]);
    assert_eq!(status(controller, 0, command, &[]), Status::SUCCESS);
}

fn state(controller: &Controller<Scripted>, number: u32) -> JobState {
    controller.job_table().find(number).unwrap().state
}

#[test]
fn a_job_runs_and_its_entry_tells_of_it() {
    let mut controller = enabled();
    let reply = run(&mut controller, 1, with_cid(start(0), 3), &[]).unwrap();
    assert_eq!((reply.status, reply.result), (Status::SUCCESS, [1, 0]));
    let job = controller.device().started[0];
    assert_eq!(
        (job.scalars, job.table, job.result, job.count, job.shape),
        (0, 8 * 512, 16 * 512, 2, SHAPE)
    );
    assert_eq!(state(&controller, 1), JobState::Running);
    finish(&mut controller, 0);
    let table = controller.job_table();
    let entry = table.find(1).unwrap();
    assert_eq!(
        (entry.state, entry.tag, entry.cid, entry.core_cycles),
        (JobState::Done, 77, 3, 1000)
    );
    assert_eq!((table.live, table.ends, table.newest), (0, 1, 1));
    let counters = controller.counters();
    assert_eq!(
        (
            counters.jobs_accepted,
            counters.jobs_completed,
            counters.points
        ),
        (1, 1, 2)
    );
    assert_eq!(counters.core, [1000, 20, 3, 4, 5]);
    // Wait for a job that has ended is answered at once.
    let reply = run(&mut controller, 1, of_job(nvm::WAIT, 1), &[]).unwrap();
    assert_eq!((reply.status, reply.result[0]), (Status::SUCCESS, 1000));
}

/// The order of the page: reserved bits, curve and flags, base set, window and levels, count, areas, overlap.
#[test]
fn a_start_is_checked_in_the_order_of_the_page() {
    let mut controller = enabled();
    let with = |changes: &[(usize, u32)]| {
        let mut command = start(0);
        for (dword, value) in changes {
            command.cdw10[dword - 10] = *value;
        }
        command
    };
    let shape = |window: u32, levels: u32| window | levels << 8;
    let far = (10, u32::MAX);
    for (changes, expected) in [
        (
            vec![(14, shape(13, 1) | 1 << 27), far, (13, 0)],
            Status::INVALID_FIELD,
        ),
        (vec![(14, shape(13, 1) | 1 << 5)], Status::INVALID_FIELD),
        (vec![(14, shape(13, 1) | 1 << 13)], Status::INVALID_FIELD),
        (
            vec![(14, shape(13, 1) | 1 << 26), (13, 0)],
            Status::UNSUPPORTED_JOB,
        ),
        (vec![(14, shape(0, 1) | 1 << 16)], Status::UNSUPPORTED_JOB),
        (
            vec![(14, shape(0, 0) | 1 << 25), (11, 1)],
            Status::UNKNOWN_BASE_SET,
        ),
        (
            vec![(14, shape(0, 0) | 1 << 25), (11, 0)],
            Status::UNKNOWN_BASE_SET,
        ),
        (
            vec![(14, shape(0, 0) | 1 << 25), (11, 17)],
            Status::UNKNOWN_BASE_SET,
        ),
        (vec![(14, shape(3, 1)), (13, 0)], Status::INVALID_SHAPE),
        (vec![(14, shape(19, 1))], Status::INVALID_SHAPE),
        (vec![(14, shape(13, 0))], Status::INVALID_SHAPE),
        (vec![(14, shape(13, 21))], Status::INVALID_SHAPE),
        (vec![(13, 0), far], Status::INVALID_COUNT),
        (vec![(13, (1 << 26) + 1), far], Status::INVALID_COUNT),
        (vec![far], Status::LBA_OUT_OF_RANGE),
        (vec![(11, 2048)], Status::LBA_OUT_OF_RANGE),
        (vec![(12, 2048)], Status::LBA_OUT_OF_RANGE),
        (vec![(13, 1 << 26)], Status::LBA_OUT_OF_RANGE),
        (vec![(12, 0)], Status::OVERLAPPING_AREAS),
        (vec![(12, 8)], Status::OVERLAPPING_AREAS),
    ] {
        assert_eq!(
            status(&mut controller, 1, with(&changes), &[]),
            expected,
            "{changes:?}"
        );
    }
    assert_eq!(controller.job_table().newest, 0, "none was accepted");
    // The last block is within memory.
    assert_eq!(
        status(&mut controller, 1, with(&[(12, 2047)]), &[]),
        Status::SUCCESS
    );
}

#[test]
fn eight_jobs_are_live_and_run_in_their_order() {
    let mut controller = enabled();
    for number in 1..=8 {
        assert_eq!(
            run(&mut controller, 1, start(0), &[]).unwrap().result[0],
            number
        );
    }
    assert_eq!(
        status(&mut controller, 1, start(0), &[]),
        Status::JOB_QUEUE_FULL
    );
    for number in 1..=8 {
        assert_eq!(state(&controller, number), JobState::Running);
        finish(&mut controller, 0);
        assert_eq!(state(&controller, number), JobState::Done);
    }
    // Ended entries stay until others need them: the last eight ends are readable.
    for _ in 9..=17 {
        run(&mut controller, 1, start(0), &[]).unwrap();
        finish(&mut controller, 0);
    }
    let table = controller.job_table();
    assert_eq!(table.find(1), None);
    assert!((10..=17).all(|number| table.find(number).is_some()));
    assert_eq!(
        status(&mut controller, 1, of_job(nvm::WAIT, 1), &[]),
        Status::UNKNOWN_JOB
    );
    assert_eq!(
        status(&mut controller, 1, of_job(nvm::CANCEL, 0), &[]),
        Status::UNKNOWN_JOB
    );
}

#[test]
fn waiters_are_answered_and_get_no_event() {
    let mut controller = enabled();
    assert_eq!(run(&mut controller, 0, request_event(1), &[]), None);
    assert_eq!(run(&mut controller, 2, with_cid(start(1), 5), &[]), None);
    assert_eq!(
        status(&mut controller, 2, with_cid(start(0), 5), &[]),
        Status::COMMAND_ID_CONFLICT
    );
    assert_eq!(
        status(&mut controller, 1, of_job(nvm::WAIT, 1), &[]),
        Status::JOB_WAITED_FOR
    );
    finish(&mut controller, 0);
    let reply = controller.next_reply().unwrap();
    assert_eq!(
        (reply.queue, reply.cid, reply.status, reply.result),
        (2, 5, Status::SUCCESS, [1, 0])
    );
    // A job without *wait* gets its waiter later; a failed one tells the core's code.
    run(&mut controller, 1, start(0), &[]).unwrap();
    assert_eq!(
        run(&mut controller, 1, with_cid(of_job(nvm::WAIT, 2), 6), &[]),
        None
    );
    finish(&mut controller, 4);
    let reply = controller.next_reply().unwrap();
    assert_eq!(
        (reply.cid, reply.status, reply.result[0]),
        (6, Status::CORE_ERROR, 4)
    );
    let reply = run(&mut controller, 1, of_job(nvm::WAIT, 2), &[]).unwrap();
    assert_eq!((reply.status, reply.result[0]), (Status::CORE_ERROR, 4));
    assert_eq!(controller.next_reply(), None, "no event");
    assert_eq!(controller.job_table().ends, 0);
}

#[test]
fn one_event_covers_all_ends_until_the_table_is_read() {
    let mut controller = enabled();
    let ended = |controller: &mut Controller<Scripted>| {
        run(controller, 1, with_cid(start(0), 9), &[]).unwrap();
        finish(controller, 0);
    };
    // Ends without a request outstanding are kept.
    ended(&mut controller);
    let reply = run(&mut controller, 0, request_event(1), &[]).unwrap();
    assert_eq!(Event::decode(reply.result[0]), Event::JobsEnded);
    assert_eq!(run(&mut controller, 0, request_event(2), &[]), None);
    ended(&mut controller);
    assert_eq!(controller.next_reply(), None, "masked");
    assert_eq!(
        status(&mut controller, 0, read_jobs(), &[]),
        Status::SUCCESS
    );
    assert_eq!(controller.job_table().ends, 0);
    ended(&mut controller);
    assert_eq!(controller.next_reply().unwrap().cid, 2);
    set_feature(&mut controller, feature::EVENTS, 0);
    assert_eq!(
        status(&mut controller, 0, read_jobs(), &[]),
        Status::SUCCESS
    );
    assert_eq!(run(&mut controller, 0, request_event(3), &[]), None);
    ended(&mut controller);
    assert_eq!(controller.next_reply(), None, "turned off");
}

#[test]
fn four_event_requests_are_held() {
    let mut controller = enabled();
    for cid in 0..4 {
        assert_eq!(run(&mut controller, 0, request_event(cid), &[]), None);
    }
    assert_eq!(
        status(&mut controller, 0, request_event(3), &[]),
        Status::COMMAND_ID_CONFLICT
    );
    assert_eq!(
        status(&mut controller, 0, request_event(4), &[]),
        Status::EVENT_LIMIT_EXCEEDED
    );
    let abort = |cid: u32| with_cid(Command::new(admin::ABORT, 0).with_dwords(&[cid << 16]), 99);
    controller.execute(0, &abort(2), &[]);
    let aborted = controller.next_reply().unwrap();
    assert_eq!((aborted.cid, aborted.status), (2, Status::ABORT_REQUESTED));
    assert_eq!(controller.next_reply().unwrap().result[0], 0);
    assert_eq!(
        run(&mut controller, 0, abort(2), &[]).unwrap().result[0],
        1,
        "not there any more"
    );
}

#[test]
fn cancelling_removes_a_queued_job_and_stops_a_running_one() {
    let mut controller = enabled();
    for _ in 0..2 {
        run(&mut controller, 1, start(0), &[]).unwrap();
    }
    assert_eq!(
        status(&mut controller, 1, of_job(nvm::CANCEL, 2), &[]),
        Status::SUCCESS
    );
    assert_eq!(state(&controller, 2), JobState::Cancelled);
    assert_eq!(
        run(&mut controller, 1, with_cid(of_job(nvm::WAIT, 1), 4), &[]),
        None
    );
    controller.execute(1, &with_cid(of_job(nvm::CANCEL, 1), 5), &[]);
    let waiter = controller.next_reply().unwrap();
    assert_eq!((waiter.cid, waiter.status), (4, Status::JOB_CANCELLED));
    assert_eq!(controller.next_reply().unwrap().cid, 5);
    assert_eq!(controller.device().running, None);
    assert_eq!(
        status(&mut controller, 1, of_job(nvm::CANCEL, 1), &[]),
        Status::SUCCESS,
        "it stays as it is"
    );
    assert_eq!(controller.counters().jobs_cancelled, 2);
}

#[test]
fn an_abort_ends_a_wait_alone_and_cancels_the_job_of_a_start() {
    let mut controller = enabled();
    let abort = |cid: u32| {
        with_cid(
            Command::new(admin::ABORT, 0).with_dwords(&[1 | cid << 16]),
            99,
        )
    };
    run(&mut controller, 1, start(0), &[]).unwrap();
    assert_eq!(
        run(&mut controller, 1, with_cid(of_job(nvm::WAIT, 1), 4), &[]),
        None
    );
    controller.execute(0, &abort(4), &[]);
    let waiter = controller.next_reply().unwrap();
    assert_eq!(
        (waiter.queue, waiter.cid, waiter.status),
        (1, 4, Status::ABORT_REQUESTED)
    );
    assert_eq!(controller.next_reply().unwrap().result[0], 0);
    assert_eq!(state(&controller, 1), JobState::Running);
    assert_eq!(run(&mut controller, 1, with_cid(start(1), 6), &[]), None);
    controller.execute(0, &abort(6), &[]);
    assert_eq!(
        controller.next_reply().unwrap().status,
        Status::ABORT_REQUESTED
    );
    assert_eq!(state(&controller, 2), JobState::Cancelled);
}

#[test]
fn a_queue_that_is_deleted_takes_the_jobs_that_it_waits_for() {
    let mut controller = enabled();
    assert_eq!(run(&mut controller, 2, with_cid(start(1), 1), &[]), None);
    run(&mut controller, 2, start(0), &[]).unwrap();
    controller.delete_queue(2);
    assert_eq!(controller.next_reply(), None);
    controller.poll();
    assert_eq!(
        (state(&controller, 1), state(&controller, 2)),
        (JobState::Cancelled, JobState::Running)
    );
}

#[test]
fn base_sets_have_their_own_shape_and_count() {
    let mut controller = enabled();
    let set = |number: u32, table: u32, count: u32, word: u32| {
        Command::new(nvm::SET_BASE, 1).with_dwords(&[number, table, 0, count, word])
    };
    let word = 13 | 1 << 8;
    for (command, expected) in [
        (set(0, 8, 2, word), Status::UNKNOWN_BASE_SET),
        (set(17, 8, 2, word), Status::UNKNOWN_BASE_SET),
        (set(1, 8, 2, word | 1 << 24), Status::INVALID_FIELD),
        (set(1, 8, 2, word | 1 << 16), Status::UNSUPPORTED_JOB),
        (set(1, 8, 2, 13), Status::INVALID_SHAPE),
        (set(1, 8, 1 << 27, word), Status::INVALID_COUNT),
        (set(1, 2047, 4, word), Status::LBA_OUT_OF_RANGE),
        (set(1, 8, 2, word), Status::SUCCESS),
    ] {
        assert_eq!(status(&mut controller, 1, command, &[]), expected);
    }
    let based = |count| Command::new(nvm::START, 1).with_dwords(&[0, 1, 16, count, 2 << 24]);
    assert_eq!(
        status(&mut controller, 1, based(3), &[]),
        Status::INVALID_COUNT
    );
    assert_eq!(status(&mut controller, 1, based(2), &[]), Status::SUCCESS);
    assert_eq!(controller.device().started[0].table, 8 * 512);
    assert_eq!(
        status(&mut controller, 1, set(1, 8, 0, 0), &[]),
        Status::BASE_SET_IN_USE
    );
    finish(&mut controller, 0);
    assert_eq!(controller.health().base_sets, 1);
    assert_eq!(
        status(&mut controller, 1, set(1, 0, 0, 0), &[]),
        Status::SUCCESS
    );
    assert_eq!(
        status(&mut controller, 1, based(2), &[]),
        Status::UNKNOWN_BASE_SET
    );
}

#[test]
fn a_late_job_is_stopped_and_the_next_one_runs() {
    let mut controller = enabled();
    set_feature(&mut controller, feature::JOB_TIMEOUT, 1);
    run(&mut controller, 1, start(0), &[]).unwrap();
    run(&mut controller, 1, start(0), &[]).unwrap();
    controller.device_mut().cycles = 1 << 20;
    controller.poll();
    assert_eq!(state(&controller, 1), JobState::Running);
    controller.device_mut().cycles += 1;
    controller.poll();
    assert_eq!(
        (state(&controller, 1), state(&controller, 2)),
        (JobState::TimedOut, JobState::Running)
    );
    // A core that does not obey is reset, and its job fails.
    controller.device_mut().stop = Stop::Reset(CoreCounters::default());
    controller.device_mut().cycles += (1 << 20) + 1;
    controller.poll();
    assert_eq!(state(&controller, 2), JobState::Failed);
    let reply = run(&mut controller, 1, of_job(nvm::WAIT, 1), &[]).unwrap();
    assert_eq!(reply.status, Status::JOB_TIMED_OUT);
    assert!(!reply.status.do_not_retry());
}

#[test]
fn a_core_that_is_stuck_fences_the_device() {
    let mut controller = enabled();
    assert_eq!(run(&mut controller, 0, request_event(1), &[]), None);
    run(&mut controller, 1, start(0), &[]).unwrap();
    assert_eq!(run(&mut controller, 1, with_cid(start(1), 7), &[]), None);
    controller.device_mut().stop = Stop::Stuck;
    controller.device_mut().cycles = 1 << 30;
    controller.poll();
    let replies: Vec<Reply> = std::iter::from_fn(|| controller.next_reply()).collect();
    let waiter = replies.iter().find(|reply| reply.cid == 7).unwrap();
    assert_eq!(waiter.status, Status::INTERNAL_ERROR);
    assert!(replies.iter().any(|reply| reply.queue == 0));
    assert!(controller.health().is_fenced);
    assert_eq!(
        status(&mut controller, 1, start(0), &[]),
        Status::INTERNAL_ERROR
    );
    let read = Command::new(nvm::READ, 1);
    assert_eq!(
        status(&mut controller, 1, read, &[]),
        Status::SUCCESS,
        "memory can still be read"
    );
    enable(&mut controller, 0);
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0);
    assert_eq!(
        status(&mut controller, 1, start(0), &[]),
        Status::INTERNAL_ERROR,
        "until power-on"
    );
}

#[test]
fn a_reset_keeps_memory_and_counters_and_nothing_else() {
    let mut controller = enabled();
    let write = Command::new(nvm::WRITE, 1);
    assert_eq!(
        status(&mut controller, 1, write, &[7; 512]),
        Status::SUCCESS
    );
    assert_eq!(run(&mut controller, 0, request_event(1), &[]), None);
    assert_eq!(run(&mut controller, 1, with_cid(start(1), 7), &[]), None);
    enable(&mut controller, 0);
    assert_eq!(controller.next_reply(), None, "no completions");
    assert_eq!(controller.device().running, None);
    assert!(controller.job_table().jobs.iter().all(Option::is_none));
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0);
    let read = run(&mut controller, 1, Command::new(nvm::READ, 1), &[]).unwrap();
    assert_eq!(read.data, [7; 512]);
    assert_eq!(
        (
            controller.counters().jobs_cancelled,
            controller.counters().resets
        ),
        (1, 1)
    );
    // A shutdown cancels with completions.
    assert_eq!(run(&mut controller, 1, with_cid(start(1), 8), &[]), None);
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0 | 1 << 14);
    assert_eq!(
        controller.next_reply().unwrap().status,
        Status::JOB_CANCELLED
    );
}
