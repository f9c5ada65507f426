//! Functions that feed hostile bytes to the code under test. Each ends the process, by a panic, if
//! it finds a defect.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use proofmill_bus::Seq;
use proofmill_orchestrator::bundle::Bundle;
use proofmill_orchestrator::conversation::{QueryAnswer, Request, Submit};
use proofmill_orchestrator::core::{Action, Core, CoreOptions, Event, Now, RequestId, Time};
use proofmill_orchestrator::grouping::{Expected, Match};
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{
    Backoff, CollectorPlan, Deadline, DispatcherPlan, Distinct, Hedge, Late, Needs, Plan, QueueIx,
    QueuePlan, Speculation, StageIx, StageKind, StagePlan,
};
use proofmill_orchestrator::remote::{Call, CallBody, Notice, admit, parse};
use sha2::{Digest as _, Sha256};

/// Subjects on which calls arrive. The first byte of an input selects one.
pub const SUBJECTS: [&str; 5] = [
    "proofmill.leader.fuzzed.dispatcher.prove.mallory",
    "proofmill.leader.fuzzed.collector",
    "proofmill.leader.fuzzed.source",
    "proofmill.leader.fuzzed.sequencer",
    "proofmill.leader.fuzzed.operator",
];

/// A workflow with all kinds of stages: blocks are proven by two of three workers, gathered and emitted.
pub static PLAN: LazyLock<Arc<Plan>> = LazyLock::new(|| {
    let queue = |name: &str, reader| QueuePlan {
        name: name.into(),
        readers: vec![StageIx(reader)],
        many_writers: reader == 0,
        q_max: 4,
    };
    let prove = DispatcherPlan {
        group: "prove".into(),
        needs: Needs::default(),
        t_ack: Duration::from_secs(3),
        r_max: 2,
        backoff: Backoff {
            initial: Duration::from_millis(10),
            max: Duration::from_secs(1),
            factor: 2.0,
            jitter: 0.2,
        },
        batch: 2,
        speculation: Speculation {
            copies: 3,
            accept: 2,
            distinct: Distinct::Label("prover:".into()),
            hedge: Some(Hedge {
                percentile: 90,
                min: Duration::from_millis(1),
            }),
        },
    };
    let gather = CollectorPlan {
        strategy: Arc::new(Match {
            expected: Expected::Total(2),
            partial: false,
        }),
        settings: "gather".into(),
        group_by: Some("/g".into()),
        t_collect: Some(Duration::from_secs(1)),
        late: Late::Emit,
    };
    let stage = |name: &str, input, outputs: &[usize], kind| StagePlan {
        name: name.into(),
        inputs: vec![QueueIx(input)],
        outputs: outputs.iter().copied().map(QueueIx).collect(),
        kind,
    };
    Arc::new(Plan {
        workflow: "fuzzed".into(),
        stages: vec![
            stage("prove", 0, &[1], StageKind::Dispatcher(prove)),
            stage("gather", 1, &[2], StageKind::Collector(gather)),
            stage("emit", 2, &[], StageKind::Sequencer { start: 0 }),
        ],
        queues: vec![queue("blocks", 0), queue("proofs", 1), queue("out", 2)],
        sources: Vec::new(),
        retain_blocks: 4,
        cuts_blocks: false,
        deadline: Some(Deadline {
            slot: Duration::from_secs(1),
            drop_missed: true,
        }),
    })
});

fn core() -> Core {
    Core::new(PLAN.clone(), CoreOptions::default())
}

fn at(second: u64) -> Now {
    Now {
        mono: Time(second * 1_000_000),
        wall_ms: second * 1_000,
    }
}

/// Carries out actions as a log that accepts every append, until no further actions follow.
fn carry_out(core: &mut Core, second: u64, mut actions: Vec<Action>, seq: &mut u64) {
    let mut rounds = 0;
    while !actions.is_empty() {
        let mut follows = Vec::new();
        for action in actions {
            match action {
                Action::Append { token, ops } => {
                    *seq += ops.len() as u64;
                    let seq = Seq(*seq);
                    let accepted = Event::Accepted { token, seq };
                    follows.extend(core.handle(at(second), accepted));
                }
                Action::Defect { why } => panic!("{why}"),
                _ => {}
            }
        }
        rounds += 1;
        assert!(rounds < 10_000, "it does not come to rest");
        actions = follows;
    }
    #[cfg(debug_assertions)]
    core.check().expect("its indices are in step");
}

fn submission(block: u64) -> Event {
    let submit = Submit {
        producer: "blocks".into(),
        queue: QueueIx(0),
        message: Message {
            first: block,
            last: block,
            part: Part::whole(),
            payload: Payload::json("{\"g\":1}"),
            needs: None,
            grouping: Vec::new(),
        },
        uniqueness: Default::default(),
        source_next: Some(block + 1),
        caller: None,
    };
    Event::Request {
        id: RequestId(block),
        request: Request::Submit(submit),
    }
}

/// A peer's call: the first byte selects the subject, and the rest is the encoded call.
pub fn call(bytes: &[u8]) {
    let [first, rest @ ..] = bytes else { return };
    let subject = SUBJECTS[usize::from(*first) % SUBJECTS.len()];
    let Ok(call) = parse::<Call>(rest) else {
        return;
    };
    let again = postcard::to_stdvec(&call).expect("it can be encoded");
    parse::<Call>(&again).expect("what was decoded can be decoded again");
    if admit(&call, subject, &PLAN).is_err() {
        return;
    }
    let mut queries = Vec::new();
    let events: Vec<Event> = match call.body {
        CallBody::Events {
            events, presence, ..
        } => {
            let presence = presence.into_iter().map(Event::from);
            presence
                .chain(events.into_iter().map(Event::from))
                .collect()
        }
        CallBody::Request { request, .. } => {
            let id = RequestId(u64::MAX);
            vec![Event::Request { id, request }]
        }
        CallBody::Query(query) => {
            queries.push(query);
            Vec::new()
        }
    };
    let (mut core, mut seq) = (core(), 0);
    let actions = core.start(at(1));
    carry_out(&mut core, 1, actions, &mut seq);
    let events = (0..2).map(submission).chain(events).chain([Event::Tick]);
    for (second, event) in (2..).zip(events) {
        let actions = core.handle(at(second), event);
        carry_out(&mut core, second, actions, &mut seq);
    }
    for query in queries {
        let answer = core.answer(query);
        let bytes = postcard::to_stdvec(&answer).expect("it can be encoded");
        parse::<QueryAnswer>(&bytes).expect("a client reads what a leader answers");
    }
    core.status();
}

/// A leader's notice.
pub fn notice(bytes: &[u8]) {
    let Ok(notice) = parse::<Notice>(bytes) else {
        return;
    };
    let again = postcard::to_stdvec(&notice).expect("it can be encoded");
    let again = parse::<Notice>(&again).expect("what was decoded can be decoded again");
    assert_eq!(format!("{notice:?}"), format!("{again:?}"));
}

/// A bundle of dead letters: as it is, and with the digests that its sections should have, so that what they hold is
/// read too.
pub fn bundle(bytes: &[u8]) {
    for file in [bytes.to_vec(), resealed(bytes)] {
        let Ok(bundle) = Bundle::decode(&file.into()) else {
            continue;
        };
        for letter in bundle.letters() {
            let input = bundle.input(letter).expect("a bundle is complete");
            // Binary inputs in groups have no form for programs.
            let _ = input.to_program_input();
        }
        let again = bundle.encode().expect("it is no larger");
        assert_eq!(Bundle::decode(&again).expect("ours"), bundle);
    }
}

/// A bundle's bytes with right digests, as far as it has whole sections.
fn resealed(bytes: &[u8]) -> Vec<u8> {
    const HEADER: usize = 16;
    const SECTION: usize = 41;
    let mut file = bytes.to_vec();
    let Some(end) = file.len().checked_sub(32) else {
        return file;
    };
    let mut at = HEADER;
    while let Some(length) = file.get(at + 1..at + 9) {
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
        let content = at + SECTION;
        let after = usize::try_from(length).ok();
        let after = after.and_then(|length| content.checked_add(length));
        let Some(after) = after.filter(|after| *after <= end) else {
            break;
        };
        let digest = Sha256::digest(&file[content..after]);
        file[at + 9..content].copy_from_slice(&digest);
        at = after;
    }
    let checksum = Sha256::digest(&file[..end]);
    file[end..].copy_from_slice(&checksum);
    file
}

/// The records of a log: length and key, length (two bytes) and value, and so on.
pub fn records(bytes: &[u8]) {
    let (mut core, mut rest, mut live) = (core(), bytes, BTreeMap::new());
    while let Some((key, value, after)) = split(rest) {
        rest = after;
        if let Ok(key) = std::str::from_utf8(key) {
            live.insert(key, Bytes::copy_from_slice(value));
        }
    }
    let mut seq = 0;
    for (key, value) in &live {
        seq += 1;
        if core.replay(key, value, Seq(seq)).is_err() {
            return;
        }
    }
    let actions = core.start(at(1));
    carry_out(&mut core, 1, actions, &mut seq);
    for second in 2..5 {
        let actions = core.handle(at(second), submission(second));
        carry_out(&mut core, second, actions, &mut seq);
    }
    core.status();
    core.tasks(|_| true);
    core.live_blobs();
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (key, rest) = rest.split_at_checked(usize::from(*length))?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((key, value, rest))
}
