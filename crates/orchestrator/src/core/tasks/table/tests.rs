use super::*;
use crate::core::tag::LeaseTag;
use crate::plan::Needs;
use crate::record::Failure;

const STAGE: StageIx = StageIx(0);

fn id(block: u64) -> TaskId {
    TaskId {
        stage: "prove".into(),
        block,
        part: Part::whole(),
    }
}

fn class() -> Class {
    Arc::new((STAGE, Needs::default()))
}

fn insert(table: &mut TaskTable, block: u64, copies: usize) -> TaskNo {
    let record = TaskRecord::for_tests(id(block));
    let policy = RunPolicy {
        copies_wanted: copies,
        results_required: 1,
        attempts_max: 3,
        hedges: true,
    };
    table.insert(NewTask {
        record,
        stage: STAGE,
        class: Some((0, class())),
        policy,
        seq: Seq(1),
        accepted: Time(0),
        replayed: false,
    })
}

fn copy(worker: &str, since: u64) -> ActiveLease {
    let tag = LeaseTag::from_bytes([0; 16]);
    let held = ActiveLease::new(worker.into(), worker.into(), 1, tag);
    held.in_batch(since).lasting(Time(since), 0, Time(99))
}

fn failed(number: u32, worker: &str) -> Attempt {
    Attempt {
        number,
        worker: worker.into(),
        at_ms: 0,
        failure: Failure::default(),
    }
}

#[test]
fn every_index_follows_a_task_from_acceptance_to_its_end() {
    let mut table = TaskTable::new(1, 1);
    let (high, low) = (insert(&mut table, 8, 1), insert(&mut table, 7, 1));
    for no in [high, low] {
        assert_eq!(table.set_phase(no, Phase::Ready), Some(Phase::New));
    }
    assert_eq!(table.check(), Ok(()));
    let head = table.head_of(0, &class()).map(|head| head.no());
    assert_eq!((head, table.class_len(0, &class())), (Some(low), 2));
    table.lease(low, copy("w", 5));
    assert_eq!(table[low].phase(), Phase::Leased);
    assert_eq!(table.leased(STAGE).lowest(), Some(7));
    assert_eq!(table.waiting(STAGE).lowest(), Some(8));
    assert_eq!(table.hedgeable(STAGE).collect::<Vec<_>>(), [(Time(5), low)]);
    assert!(!table.only_claimable_move());
    let ended = table.end_copy(low, &"w".into());
    assert_eq!(ended.map(|held| held.batch()), Some(5));
    table.note_failure(low, vec![failed(1, "w")]);
    table.set_phase(low, Phase::Ready);
    assert_eq!(table.check(), Ok(()));
    assert!(table.only_claimable_move());
    assert_eq!(table.take_changed(), [low].into());
    assert!(table.remove(&id(7)).is_some() && table.remove(&id(7)).is_none());
    assert_eq!((table.len(), table.present(STAGE).lowest()), (1, Some(8)));
    assert_eq!(table.check(), Ok(()));
}

#[test]
fn a_task_for_two_workers_stays_claimable_after_the_first() {
    let mut table = TaskTable::new(1, 1);
    let no = insert(&mut table, 3, 2);
    table.set_phase(no, Phase::Ready);
    table.lease(no, copy("a", 1));
    assert_eq!(
        (table[no].phase(), table[no].workers_missing()),
        (Phase::Ready, 1)
    );
    assert!(table.heads(0).next().is_none());
    assert_eq!(
        table.partially_assigned(0).map(|next| next.no()).next(),
        Some(no)
    );
    table.lease(no, copy("b", 2));
    assert_eq!(table[no].phase(), Phase::Leased);
    assert_eq!(table.check(), Ok(()));
    assert_eq!(table.end_copies(no).len(), 2);
}

#[test]
fn what_waits_for_the_sequencer_is_in_order_of_blocks() {
    let mut table = TaskTable::new(1, 1);
    let (second, first) = (insert(&mut table, 9, 1), insert(&mut table, 4, 1));
    table.set_phase(second, Phase::Queued);
    table.set_phase(first, Phase::Queued);
    assert_eq!(table.first_queued(), Some((4, first)));
    assert_eq!(table.queued().collect::<Vec<_>>(), [(4, 4), (9, 9)]);
    table.set_phase(first, Phase::Emitting);
    assert_eq!(table.first_queued(), Some((9, second)));
    assert_eq!(table.check(), Ok(()));
}

#[test]
fn an_attempt_from_before_a_restart_is_lost_until_its_worker_speaks_of_it() {
    let mut table = TaskTable::new(1, 1);
    let no = insert(&mut table, 3, 1);
    let begun = |worker: &str| StartedAttempt {
        worker: worker.into(),
        attempt: 1,
        at_ms: 0,
        orphaned: false,
    };
    let run = AttemptsInProgress {
        attempts: vec![begun("a"), begun("b"), begun("c")],
        retry_at_ms: Some(7),
    };
    table.replay_run(no, run);
    assert!(table[no].is_run_recorded());
    assert_eq!(table.take_retry_time(no), Some(7));
    assert_eq!(table.take_retry_time(no), None);
    table.confirm_attempt(no, &"a".into(), 1);
    table.confirm_attempt(no, &"b".into(), 2);
    let settled = table.settle_unconfirmed(no, |begun| &*begun.worker == "b");
    assert_eq!(settled.len(), 1);
    assert!(table[no].unconfirmed()[0].orphaned && table.has_changed());
}
