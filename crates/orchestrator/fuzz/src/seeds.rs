//! Valid inputs to start from.

use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::bundle::{Bundle, BundledFile, Facts, Stage, Work};
use proofmill_orchestrator::collector::PartitionRef;
use proofmill_orchestrator::conversation::{
    Decision, HostCommand, HostEvent, HostJoin, HostRequest, Lease, LeaseRef, Output, Query,
    Request, Rewind, RoleCommand, RoleEvent, SinkCommand, SinkEvent, Submit, Target, TaskSelection,
    Uniqueness, Verdict, Verdicts, WorkerCommand, WorkerEvent, WorkerFailure, WorkerJoin,
    WorkerResult,
};
use proofmill_orchestrator::core::{LeaseKey, LeaseTag, TaskPhase};
use proofmill_orchestrator::grouping::{Member, OfferDecision, OverdueDecision};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::origin::Origins;
use proofmill_orchestrator::payload::{Encoding, Payload};
use proofmill_orchestrator::plan::{Needs, QueueIx, StageIx};
use proofmill_orchestrator::record::{
    Attempt, DeadRecord, DoneRecord, EndKind, Failure, GroupRecord, HistoryEntry, HistoryRecord,
    PartialResult, PauseKind, PauseRecord, Record, RecordKey, SlotRecord, TaskEnd, TaskOutcome,
    TaskRecord, TaskTimeline,
};
use proofmill_orchestrator::remote::{Call, CallBody, Notice, NoticeBody};

use sha2::{Digest as _, Sha256};

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
        trace: proofmill_orchestrator::traces::TaskTrace::default(),
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

fn worker_events() -> Vec<Vec<WorkerEvent>> {
    let worker: Arc<str> = WORKER.into();
    let join = WorkerEvent::Join(WorkerJoin {
        worker: worker.clone(),
        group: "prove".into(),
        labels: ["prover:a".to_owned()].into(),
        memory: 1 << 30,
        slots: 2,
    });
    let complete = |grouping| {
        WorkerEvent::Complete(WorkerResult {
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
    let fail = WorkerEvent::Fail(WorkerFailure {
        worker: worker.clone(),
        lease: lease(),
        failure: Failure {
            exit: Some(1),
            ..Failure::permanent("r")
        },
    });
    let beat = WorkerEvent::Heartbeat {
        worker: worker.clone(),
        running: vec![lease()],
        retired: false,
        paused: None,
    };
    vec![
        vec![join.clone(), beat, complete(Vec::new())],
        vec![join.clone(), complete(vec![(StageIx(1), Ok("1".into()))])],
        vec![join.clone(), complete(vec![(StageIx(1), Err("n".into()))])],
        vec![
            join.clone(),
            fail,
            WorkerEvent::Retire {
                worker: worker.clone(),
            },
        ],
        vec![
            join,
            WorkerEvent::Release {
                worker: worker.clone(),
                lease: lease(),
            },
            WorkerEvent::Leave { worker },
        ],
    ]
}

fn host_events() -> Vec<Vec<HostEvent>> {
    let partition = PartitionRef {
        stage: StageIx(1),
        number: 3,
    };
    let verdict = |decision| Verdict {
        partition,
        epoch: 1,
        decision,
    };
    let join = HostEvent::Join(HostJoin {
        host: "h".into(),
        session: 5,
        stages: [StageIx(1)].into(),
    });
    let offered = Decision::Offered(id("gather", 0), OfferDecision::Skip("s".into()));
    let overdue = OverdueDecision::Reject {
        members: vec![id("gather", 0)],
        why: "w".into(),
    };
    let verdicts = HostEvent::Verdicts(Verdicts {
        host: "h".into(),
        session: 5,
        number: 1,
        verdicts: vec![verdict(offered), verdict(Decision::Overdue(overdue))],
    });
    vec![vec![
        join,
        HostEvent::Heartbeat { host: "h".into() },
        verdicts,
        HostEvent::Leave { host: "h".into() },
    ]]
}

fn queries() -> Vec<Query> {
    let of = TaskSelection {
        stage: Some("prove".into()),
        block: Some(1),
        phase: Some(TaskPhase::Waiting),
    };
    vec![
        Query::Queues,
        Query::Workers {
            after: Some("w".into()),
            limit: 2,
        },
        Query::Tasks {
            of,
            after: Some(id("prove", 0)),
            limit: usize::MAX,
        },
        Query::DeadLetters {
            after: None,
            limit: 0,
        },
        Query::DeadLetter(id("prove", 0)),
        Query::Block(1),
        Query::Blocks { first: 1, last: 0 },
        Query::Blocks {
            first: 0,
            last: u64::MAX,
        },
        Query::Steps,
    ]
}

/// Calls of every seat, after the byte that says where they come.
pub fn calls() -> Vec<Vec<u8>> {
    let plan = PLAN.digest();
    fn events<E: Into<RoleEvent>>(events: Vec<E>) -> CallBody {
        CallBody::Events {
            number: 1,
            events: events.into_iter().map(Into::into).collect(),
            presence: Vec::new(),
        }
    }
    let request = |request| CallBody::Request { number: 1, request };
    let submit = |uniqueness| {
        Request::Submit(Submit {
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
            uniqueness,
            source_next: Some(5),
            caller: None,
        })
    };
    let rewind = Request::Rewind(Rewind {
        source: "blocks".into(),
        queues: vec![QueueIx(0)],
        from: 1,
    });
    let mut bodies: Vec<(u8, &str, CallBody)> = Vec::new();
    let own = "dispatcher.prove.mallory.p";
    let of_workers = worker_events().into_iter();
    bodies.extend(of_workers.map(|said| (0, own, events(said))));
    let mut again = worker_events().swap_remove(0);
    let presence = again.drain(..2).collect();
    let events_again = again.into_iter().map(Into::into).collect();
    let again = CallBody::Events {
        number: 2,
        events: events_again,
        presence,
    };
    bodies.push((0, own, again));
    let of_hosts = host_events().into_iter();
    bodies.extend(of_hosts.map(|said| (1, "collector.h", events(said))));
    for asked in [
        submit(Uniqueness::Multiple),
        submit(Uniqueness::Single),
        rewind,
    ] {
        bodies.push((2, "source.s", request(asked)));
    }
    let next = Query::SourceNext("blocks".into());
    for query in [next, Query::Status] {
        bodies.push((2, "source.s", CallBody::Query(query)));
    }
    for query in queries() {
        bodies.push((4, "operator.o", CallBody::Query(query)));
    }
    let emitted = vec![
        SinkEvent::Attach { term: 3 },
        SinkEvent::Emitted {
            task: id("emit", 0),
            places: vec!["file 0".into()],
        },
    ];
    bodies.push((3, "sequencer.s", events(emitted)));
    for asked in [
        Request::Cancel(Target::All),
        Request::Cancel(Target::Block(1)),
        Request::RetryDead(id("prove", 0)),
        Request::DropDead(id("prove", 0)),
        Request::RunNow(id("prove", 0)),
        Request::Pause {
            kind: PauseKind::Stage,
            name: "prove".into(),
            by: "alice".into(),
        },
        Request::Resume {
            kind: PauseKind::Worker,
            name: WORKER.into(),
        },
    ] {
        bodies.push((4, "operator.o", request(asked)));
    }
    let encode = |(seat, client, body): (u8, &str, CallBody)| {
        let call = Call {
            plan,
            term: 1,
            client: client.into(),
            session: 1,
            open_from: 0,
            body,
        };
        postcard::to_extend(&call, vec![seat]).expect("it can be encoded")
    };
    bodies.into_iter().map(encode).collect()
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
    let offer = HostRequest::Offer(Member {
        id: id("gather", 0),
        queue: "proofs".into(),
        first: 0,
        last: 0,
        group: Some("1".into()),
        payload: Payload::json("1"),
    });
    let to_host = |request| HostCommand::Request {
        session: 5,
        number: 1,
        partition: PartitionRef {
            stage: StageIx(1),
            number: 3,
        },
        epoch: 1,
        request,
    };
    let all = vec![
        RoleCommand::Worker(WORKER.into(), WorkerCommand::Assign(vec![lease.clone()])),
        RoleCommand::Worker(WORKER.into(), WorkerCommand::Cancel(lease.reference())),
        RoleCommand::Worker(WORKER.into(), WorkerCommand::Unknown),
        RoleCommand::Host("h".into(), HostCommand::Unknown),
        RoleCommand::Host("h".into(), to_host(offer)),
        RoleCommand::Host("h".into(), to_host(HostRequest::Overdue("1".into()))),
        RoleCommand::Sink(SinkCommand::Emit(Arc::new(grouped))),
    ];
    [NoticeBody::Ping, NoticeBody::Commands(all)]
        .into_iter()
        .map(|body| {
            postcard::to_stdvec(&Notice {
                term: 7,
                session: 1,
                incarnation: 1,
                number: 1,
                body,
            })
            .expect("it can be encoded")
        })
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
    let part = PartialResult {
        distinct_name: "prover:a".into(),
        worker: WORKER.into(),
        attempt: 1,
        payload: Payload::json("1"),
        grouping: vec![("gather".into(), Ok("1".into()))],
        at_ms: 1,
    };
    let done = |end| {
        Record::Done(DoneRecord {
            end,
            last: 1,
            at_ms: 1,
            content: Some([3; 16]),
            timeline: Some(TaskTimeline {
                accepted_ms: 1,
                begun_ms: Some(2),
                ran_ms: Some(1),
                by: vec![(WORKER.into(), 1)],
                failed: 0,
                failures: Vec::new(),
                trace: proofmill_orchestrator::traces::TaskTrace::default(),
            }),
        })
    };
    let completed = EndKind::Completed {
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
        &RecordKey::Attempts(id_of(&proven)),
        &Record::Attempts(vec![failed]),
    );
    let key = RecordKey::PartialResult(id_of(&proven), Part::from_text(&part.distinct_name));
    record(&mut work, &key, &Record::PartialResult(part));
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
    let grouped = EndKind::Grouped { key: "1".into() };
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
    let step = TaskEnd {
        task: id("prove", 1),
        last: 1,
        accepted_ms: 1,
        begun_ms: Some(2),
        ran_ms: Some(3),
        ended_ms: 5,
        recorded_ms: Some(6),
        failed: 0,
        failures: Vec::new(),
        outcome: TaskOutcome::Emitted {
            places: vec!["file 0".into()],
        },
        trace: proofmill_orchestrator::traces::TaskTrace::default(),
    };
    let past = HistoryRecord {
        number: 7,
        marks_to: 3,
        entries: vec![HistoryEntry::TaskEnd(step)],
    };
    record(&mut ends, &RecordKey::History(7), &Record::History(past));
    let counts = Record::Counts(vec![2, 1, 1]);
    record(&mut ends, &RecordKey::Counts("prove".into()), &counts);
    let pause = PauseRecord {
        kind: PauseKind::Stage,
        name: "prove".into(),
        by: "alice".into(),
        at_ms: 1,
    };
    let key = RecordKey::Pause(pause.kind, Part::from_text(&pause.name));
    record(&mut ends, &key, &Record::Pause(pause));
    record(&mut ends, &RecordKey::Totals, &Record::Counts(vec![1]));
    vec![work, ends]
}

/// Bundles: of a program's letter with the program, of a native prover's, and of a collector's.
pub fn bundles() -> Vec<Vec<u8>> {
    let program = Work::Program {
        program: "./prove.sh".to_owned(),
        file: Some(BundledFile {
            digest: Sha256::digest(b"#!/bin/sh").into(),
            bytes: 9,
            included: true,
        }),
        args: vec!["-v".to_owned()],
        variables: vec!["TOKEN".to_owned()],
        inherit_env: Vec::new(),
        strict_pids_limit: Some(8),
        input_flag: "-i".to_owned(),
        output_flag: "-o".to_owned(),
        memory_limit: None,
    };
    let native = Work::Native {
        prover: "p".to_owned(),
        params: serde_json::json!({ "parts": 2 }),
    };
    let works = [program, native, Work::Gathers("collector".to_owned())];
    works.map(bundle).to_vec()
}

fn bundle(work: Work) -> Vec<u8> {
    let contents = [&b"{\"g\":1}"[..], b"\x00\x01", b"#!/bin/sh"];
    let contents: [([u8; 32], bytes::Bytes); 3] = contents.map(|content| {
        (
            Sha256::digest(content).into(),
            bytes::Bytes::from_static(content),
        )
    });
    let blob = |at: usize, encoding| Payload::Blob {
        encoding,
        digest: contents[at].0,
        len: contents[at].1.len() as u64,
    };
    let members = vec![
        ("a".into(), blob(0, Encoding::Json)),
        ("b".into(), blob(1, Encoding::Binary)),
    ];
    let mut task = task("prove", 3);
    task.payload = Payload::Group {
        by_queue: true,
        members,
    };
    let failed = Attempt {
        number: 1,
        worker: WORKER.into(),
        at_ms: 1,
        failure: Failure::default(),
    };
    let letter = DeadRecord {
        task,
        reason: "r".into(),
        attempts: vec![failed],
        at_ms: 1,
        late: false,
    };
    let stage = Stage {
        fan_out: false,
        time_limit_ms: Some(1),
        work,
    };
    let facts = Facts {
        program_version: "1".to_owned(),
        os: "linux".to_owned(),
        arch: "x86_64".to_owned(),
        made_at_ms: 1,
        workflow: "fuzzed".to_owned(),
        stages: [("prove".to_owned(), stage)].into(),
    };
    let bundle = Bundle::new(facts, vec![letter], contents.into_iter().collect());
    bundle.encode().expect("small").to_vec()
}
