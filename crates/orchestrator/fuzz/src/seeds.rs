//! Valid inputs to start from.

use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::collector::{
    Do, HostJoin, Judged, Member, Outcome, Overdue, PartitionRef, ToHost, Verdict, Verdicts,
};
use proofmill_orchestrator::coordinator::{Asked, SubmitRequest, ToWorker};
use proofmill_orchestrator::core::{
    Complete, Edition, Fail, Join, Lease, LeaseKey, LeaseRef, LeaseTag, Output, Target,
};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::origin::Origins;
use proofmill_orchestrator::payload::{Encoding, Payload};
use proofmill_orchestrator::plan::{Needs, QueueIx, StageIx};
use proofmill_orchestrator::record::{
    Attempt, Course, DeadRecord, DoneRecord, Failure, Finish, GroupRecord, Outcome as Ended,
    PartRecord, Past, PastRecord, Record, RecordKey, SlotRecord, StepRecord, TaskRecord,
};
use proofmill_orchestrator::remote::{Call, Notice, Said, Tell, Told, What};

use super::targets::PLAN;

const WORKER: &str = "w@prove.mallory.p";

fn id(stage: &str, block: u64) -> TaskId {
    TaskId {
        stage: stage.into(),
        block,
        part: Part::whole(),
    }
}

/// The task of a block that the targets submit.
fn task(stage: &str, block: u64) -> TaskRecord {
    let mut id = id(stage, block);
    if stage == "prove" {
        id.part = id.part.of("blocks");
    }
    TaskRecord {
        id,
        queue: "blocks".into(),
        last: block,
        group: (stage == "gather").then(|| "1".into()),
        needs: Some(Needs {
            labels: ["gpu".to_owned()].into(),
            memory: 1,
        }),
        payload: Payload::json("{\"g\":1}"),
        at_ms: 1,
        origins: Origins::default(),
    }
}

/// A lease that is truly given, where the log has no key.
fn lease() -> LeaseRef {
    let task = task("prove", 0);
    let tag = LeaseKey::new(&[0; 32]).tag(WORKER, &task, &task.content(), 1);
    LeaseRef {
        task: task.id,
        attempt: 1,
        tag,
    }
}

fn groups() -> Payload {
    let blob = Payload::Blob {
        encoding: Encoding::Binary,
        digest: [7; 32],
        len: 9,
    };
    let group = |member| Payload::Group {
        by_queue: true,
        members: vec![("proofs".into(), member)],
    };
    group(group(blob))
}

fn said() -> Vec<Vec<Said>> {
    let worker: Arc<str> = WORKER.into();
    let join = Said::Join(Join {
        worker: worker.clone(),
        group: "prove".into(),
        labels: ["prover:a".to_owned()].into(),
        memory: 1 << 30,
        slots: 2,
    });
    let complete = |grouping| {
        Said::Complete(Complete {
            worker: worker.clone(),
            lease: lease(),
            outputs: vec![Output {
                element: None,
                payload: Payload::json("{\"g\":1}"),
                grouping,
            }],
            ran: Duration::from_millis(7),
        })
    };
    let fail = Said::Fail(Fail {
        worker: worker.clone(),
        lease: lease(),
        failure: Failure {
            permanent: true,
            reason: "r".to_owned(),
            exit: Some(1),
            ..Failure::default()
        },
    });
    let beat = Said::Heartbeat {
        worker: worker.clone(),
        running: vec![lease()],
        retired: false,
        paused: None,
    };
    vec![
        vec![join.clone(), beat, complete(Vec::new())],
        vec![join.clone(), complete(vec![(StageIx(1), Ok("1".into()))])],
        vec![join.clone(), complete(vec![(StageIx(1), Err("n".into()))])],
        vec![join.clone(), fail, Said::Retire(worker.clone())],
        vec![
            join,
            Said::Release(worker.clone(), lease()),
            Said::Leave(worker),
        ],
    ]
}

fn hosts() -> Vec<Vec<Said>> {
    let at = PartitionRef {
        stage: StageIx(1),
        number: 3,
    };
    let verdict = |what| Verdict { at, epoch: 1, what };
    let join = Said::HostJoin(HostJoin {
        host: "h".into(),
        session: 5,
        stages: [StageIx(1)].into(),
    });
    let offered = Judged::Offered(id("gather", 0), Outcome::Skip("s".into()));
    let overdue = Overdue::Reject {
        members: vec![id("gather", 0)],
        why: "w".into(),
    };
    let verdicts = Said::Verdicts(Verdicts {
        host: "h".into(),
        session: 5,
        number: 1,
        verdicts: vec![verdict(offered), verdict(Judged::Overdue(overdue))],
    });
    vec![vec![
        join,
        Said::HostBeat("h".into()),
        verdicts,
        Said::HostLeave("h".into()),
    ]]
}

/// Calls of every seat, after the byte that says where they come.
pub fn calls() -> Vec<Vec<u8>> {
    let plan = PLAN.digest();
    let events = |events| What::Events { number: 1, events };
    let ask = |asked| What::Ask { number: 1, asked };
    let submit = |edition| {
        Asked::Submit(SubmitRequest {
            producer: "blocks".into(),
            queue: QueueIx(0),
            message: Message {
                first: 3,
                last: 4,
                part: Part::whole(),
                payload: Payload::json("{}"),
                needs: Some(Needs::default()),
                grouping: Vec::new(),
            },
            edition,
            source_next: Some(5),
        })
    };
    let rewind = Asked::Rewind {
        source: "blocks".into(),
        queues: vec![QueueIx(0)],
        from: 1,
    };
    let mut whats: Vec<(u8, &str, What)> = Vec::new();
    let own = "dispatcher.prove.mallory.p";
    whats.extend(said().into_iter().map(|said| (0, own, events(said))));
    whats.extend(
        hosts()
            .into_iter()
            .map(|said| (1, "collector.h", events(said))),
    );
    for asked in [submit(Edition::Any), submit(Edition::Only), rewind] {
        whats.push((2, "source.s", ask(asked)));
    }
    whats.push((2, "source.s", What::SourceNext("blocks".into())));
    whats.push((2, "source.s", What::Status));
    let emitted = vec![
        Said::AttachSink { term: 3 },
        Said::Emitted(id("emit", 0), vec!["file 0".into()]),
    ];
    whats.push((3, "sequencer.s", events(emitted)));
    for asked in [
        Asked::Cancel(Target::All),
        Asked::Cancel(Target::Block(1)),
        Asked::RetryDead(id("prove", 0)),
        Asked::DropDead(id("prove", 0)),
    ] {
        whats.push((4, "operator.o", ask(asked)));
    }
    let encode = |(seat, client, what): (u8, &str, What)| {
        let call = Call {
            plan,
            term: 1,
            client: client.into(),
            session: 1,
            open_from: 0,
            what,
        };
        postcard::to_extend(&call, vec![seat]).expect("it can be encoded")
    };
    whats.into_iter().map(encode).collect()
}

/// Notices.
pub fn notices() -> Vec<Vec<u8>> {
    let mut grouped = task("prove", 0);
    grouped.payload = groups();
    let lease = Lease {
        stage: StageIx(0),
        task: Arc::new(grouped.clone()),
        attempt: 1,
        tag: LeaseTag::from_bytes([3; 16]),
    };
    let offer = Do::Offer(Member {
        id: id("gather", 0),
        queue: "proofs".into(),
        first: 0,
        last: 0,
        group: Some("1".into()),
        payload: Payload::json("1"),
    });
    let to_host = |what| ToHost::Do {
        session: 5,
        number: 1,
        at: PartitionRef {
            stage: StageIx(1),
            number: 3,
        },
        epoch: 1,
        what,
    };
    let all = vec![
        Told::Worker(WORKER.into(), ToWorker::Assign(vec![lease.clone()])),
        Told::Worker(WORKER.into(), ToWorker::Cancel(lease.name())),
        Told::Worker(WORKER.into(), ToWorker::Unknown),
        Told::Host("h".into(), ToHost::Unknown),
        Told::Host("h".into(), to_host(offer)),
        Told::Host("h".into(), to_host(Do::Overdue("1".into()))),
        Told::Emit(Arc::new(grouped)),
    ];
    [Tell::Ping, Tell::All(all)]
        .into_iter()
        .map(|tell| postcard::to_stdvec(&Notice {
                term: 7,
                session: 1,
                incarnation: 1,
                number: 1,
                tell,
            }).expect("it can be encoded"))
        .collect()
}

fn record(bytes: &mut Vec<u8>, key: &RecordKey, record: &Record) {
    let (key, value) = (key.to_key().expect("a key"), record.encode());
    bytes.push(key.as_str().len() as u8);
    bytes.extend(key.as_str().as_bytes());
    bytes.extend((value.len() as u16).to_le_bytes());
    bytes.extend(&value[..]);
}

/// Logs with every kind of record.
pub fn logs() -> Vec<Vec<u8>> {
    let failed = Attempt {
        number: 1,
        worker: WORKER.into(),
        at_ms: 1,
        failure: Failure::default(),
    };
    let part = PartRecord {
        name: "prover:a".into(),
        worker: WORKER.into(),
        attempt: 1,
        payload: Payload::json("1"),
        grouping: vec![("gather".into(), Ok("1".into()))],
        at_ms: 1,
    };
    let done = |finish| {
        Record::Done(DoneRecord {
            finish,
            last: 1,
            at_ms: 1,
            content: Some([3; 16]),
            course: Some(Course {
                accepted_ms: 1,
                begun_ms: Some(2),
                ran_ms: Some(1),
                by: vec![(WORKER.into(), 1)],
                failed: 0,
                failures: Vec::new(),
            }),
        })
    };
    let completed = Finish::Completed {
        worker: WORKER.into(),
        attempt: 1,
    };
    let proven = task("prove", 2);
    let dead = DeadRecord {
        task: task("prove", 3),
        reason: "r".into(),
        attempts: vec![failed.clone()],
        at_ms: 1,
        late: true,
    };
    let mut work = Vec::new();
    record(&mut work, &RecordKey::LeaseKey, &Record::LeaseKey([5; 32]));
    let id_of = |task: &TaskRecord| task.id.clone();
    record(
        &mut work,
        &RecordKey::Task(id_of(&proven)),
        &Record::Task(proven.clone()),
    );
    record(
        &mut work,
        &RecordKey::Tries(id_of(&proven)),
        &Record::Tries(vec![failed]),
    );
    let key = RecordKey::Part(id_of(&proven), Part::from_text(&part.name));
    record(&mut work, &key, &Record::Part(part));
    record(
        &mut work,
        &RecordKey::Dead(id_of(&dead.task)),
        &Record::Dead(dead),
    );
    record(
        &mut work,
        &RecordKey::Source("blocks".into()),
        &Record::Source(4),
    );
    let mut ends = Vec::new();
    record(&mut ends, &RecordKey::Cursor, &Record::Cursor(1));
    let slot = SlotRecord {
        last: 2,
        at_ms: 1,
        missed: false,
    };
    record(&mut ends, &RecordKey::Slot(2), &Record::Slot(slot));
    record(
        &mut ends,
        &RecordKey::Done(id("prove", 1)),
        &done(completed),
    );
    let grouped = Finish::Grouped { key: "1".into() };
    record(&mut ends, &RecordKey::Done(id("gather", 1)), &done(grouped));
    let group = GroupRecord {
        last: 1,
        members: 2,
    };
    let key = RecordKey::Group("gather".into(), Part::from_text("1"));
    record(&mut ends, &key, &Record::Group(group));
    let gathered = task("gather", 2);
    record(
        &mut ends,
        &RecordKey::Task(id_of(&gathered)),
        &Record::Task(gathered),
    );
    let out = task("emit", 1);
    record(&mut ends, &RecordKey::Task(id_of(&out)), &Record::Task(out));
    let step = StepRecord {
        task: id("prove", 1),
        last: 1,
        accepted_ms: 1,
        begun_ms: Some(2),
        ran_ms: Some(3),
        ended_ms: 5,
        failed: 0,
        failures: Vec::new(),
        outcome: Ended::Emitted {
            places: vec!["file 0".into()],
        },
    };
    let past = PastRecord {
        number: 7,
        marks_to: 3,
        entries: vec![Past::Step(step)],
    };
    record(&mut ends, &RecordKey::Past(7), &Record::Past(past));
    let counts = Record::Counts(vec![2, 1, 1]);
    record(&mut ends, &RecordKey::Counts("prove".into()), &counts);
    record(&mut ends, &RecordKey::Totals, &Record::Counts(vec![1]));
    vec![work, ends]
}
