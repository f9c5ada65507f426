//! Malicious peers on a cluster with the shipped configuration of nats-server: each has the credentials
//! of one role and sends arbitrary messages in the protocol of the programs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proofmill_bus::{Connection, Credentials, NatsOptions, RequestError};
use proofmill_nats_server::Deployed;
use proofmill_orchestrator::conversation::{
    HostEvent, LeaseRef, Output, Request, Rewind, RoleEvent, SinkEvent, Submit, Uniqueness,
    WorkerEvent, WorkerFailure, WorkerJoin, WorkerResult,
};
use proofmill_orchestrator::core::LeaseTag;
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{Plan, QueueIx, StageIx};
use proofmill_orchestrator::record::Failure;
use proofmill_orchestrator::remote::{Call, CallBody, Role, encode};
use proofmill_workflow::{LocalHost, validate_file};

use crate::cluster_roles::{as_user, prepare};
use crate::support::{Finished, PATIENCE, Running, answered, eventually, finish, names};

/// Honest part of the cluster: its server, its folder and its coordinator.
struct Mill {
    server: Deployed,
    folder: tempfile::TempDir,
    coordinator: Running,
}

/// A peer with one user's credentials.
struct Liar {
    runtime: tokio::runtime::Runtime,
    connection: Connection,
    plan: Plan,
    seat: String,
    numbers: u64,
}

const SUBJECT: &str = "proofmill.leader.roles";

impl Mill {
    /// A coordinator and a source that has brought two blocks; nobody works on them yet.
    fn start() -> Self {
        let server = Deployed::start();
        let folder = prepare(2);
        let start = |role: &str| {
            let mut command = as_user(&server, folder.path(), role);
            Running::start(command.args([role, "workflow.toml"]))
        };
        let coordinator = start("coordinator");
        let source = start("source");
        let mill = Self {
            server,
            folder,
            coordinator,
        };
        eventually("two blocks", || (mill.status()?["live"] == 2).then_some(()));
        source.kill();
        mill
    }

    fn ask(&self, args: &[&str]) -> Finished {
        let mut command = as_user(&self.server, self.folder.path(), "operator");
        command.args(args).args(["--workflow", "roles"]);
        answered(|| finish(&mut command))
    }

    fn status(&self) -> Option<serde_json::Value> {
        let ran = self.ask(&["status", "--json"]);
        (ran.code == Some(0)).then(|| ran.json())
    }

    fn liar(&self, role: Role, user: &str, seat: &str) -> Liar {
        let client = self.server.client.clone();
        let options = NatsOptions {
            membership: role.membership(),
            credentials: Credentials::UserPassword {
                user: user.into(),
                password: Deployed::password(user),
            },
            ca_file: Some(self.server.authority.clone()),
            client_certificate: Some((client.certificate, client.key)),
            connect_timeout: PATIENCE,
            ..NatsOptions::new(&self.server.server.url())
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let connection = runtime.block_on(Connection::open(options)).expect("open");
        Liar {
            runtime,
            connection,
            plan: plan(self.folder.path()),
            seat: seat.into(),
            numbers: 1,
        }
    }

    /// The leader still answers, nothing has left, and the blocks are still to be proven; then
    /// honest processes prove, verify and emit them.
    fn has_come_to_no_harm(self, liar: Liar) {
        drop(liar);
        let status = self.status().expect("the coordinator answers");
        assert_eq!(status["live"], 2, "{status}");
        assert_eq!(status["dead"], 0, "{status}");
        assert_eq!(status["next_block"], 0, "{status}");
        let start = |(user, role, more): (&str, &str, &[&str])| {
            let mut command = as_user(&self.server, self.folder.path(), user);
            Running::start(command.args([role, "workflow.toml"]).args(more))
        };
        let honest: [(&str, &str, &[&str]); 4] = [
            ("prover", "dispatcher", &["--stage", "prove"]),
            ("verifier", "dispatcher", &["--stage", "verify"]),
            ("collector", "collector", &[]),
            ("sequencer", "sequencer", &[]),
        ];
        let running = honest.map(start);
        let proofs = self.folder.path().join(".proofmill/roles/proofs");
        eventually("the honest result", || {
            (proofs.is_dir() && names(&proofs) == ["0000000000-0000000001.json"]).then_some(())
        });
        let emitted = std::fs::read_to_string(proofs.join("0000000000-0000000001.json"));
        assert!(!emitted.expect("a file").contains("forged"));
        for role in running {
            role.kill();
        }
        let said = self.coordinator.kill().join("\n");
        assert!(!said.contains("panicked"), "{said}");
    }
}

fn plan(folder: &Path) -> Plan {
    let host = LocalHost::new(Vec::<String>::new());
    let (workflow, _) = validate_file(&folder.join("workflow.toml"), &host).expect("a workflow");
    Plan::compile(&workflow, &BTreeMap::new()).expect("a plan")
}

impl Liar {
    fn call(&mut self, body: CallBody, term: u64) -> Vec<u8> {
        let call = Call {
            plan: self.plan.digest(),
            term,
            client: format!("{}.liar", self.seat).into(),
            session: 1,
            open_from: 0,
            body,
        };
        let blobs = self
            .runtime
            .block_on(proofmill_bus::open_blobs(&self.connection));
        let blobs = blobs.expect("blobs");
        let encoded = encode(&call, &self.connection, &blobs);
        self.runtime.block_on(encoded).expect("encodes").to_vec()
    }

    /// Says something; what comes back does not matter.
    fn send(&mut self, bytes: Vec<u8>) {
        let subject = format!("{SUBJECT}.{}", self.seat);
        let bytes = Bytes::from(bytes);
        eventually("somebody hears the liar", || {
            let asked = self
                .connection
                .request(&subject, bytes.clone(), Duration::from_secs(2));
            match self.runtime.block_on(asked) {
                Ok(_) | Err(RequestError::TimedOut(_)) => Some(()),
                // A coordinator that waits for its turn of the processor may lose its lease, which it takes again.
                Err(RequestError::NoResponders(_)) => None,
                Err(error) => panic!("nobody hears the liar: {error}"),
            }
        });
    }

    fn says<E: Into<RoleEvent>>(&mut self, events: Vec<E>) {
        let events = events.into_iter().map(Into::into).collect();
        self.numbers += 1;
        let number = self.numbers;
        let body = CallBody::Events {
            number,
            events,
            presence: Vec::new(),
        };
        let bytes = self.call(body, 0);
        self.send(bytes);
    }

    /// Says something where only joins and heartbeats of its own workers are said.
    fn shows(&mut self, presence: Vec<WorkerEvent>) {
        self.numbers += 1;
        let number = self.numbers;
        let body = CallBody::Events {
            number,
            events: Vec::new(),
            presence,
        };
        let bytes = self.call(body, 0);
        self.send(bytes);
    }

    fn asks(&mut self, request: Request) {
        self.numbers += 1;
        let number = self.numbers;
        let bytes = self.call(CallBody::Request { number, request }, 0);
        self.send(bytes);
    }
}

fn lease(stage: &str, block: u64, part: &str) -> LeaseRef {
    LeaseRef {
        task: TaskId {
            stage: stage.into(),
            block,
            part: Part::new(part).expect("a part"),
        },
        attempt: 1,
        tag: LeaseTag::from_bytes([7; 16]),
    }
}

fn result(worker: &str, lease: LeaseRef, payload: Payload) -> WorkerResult {
    WorkerResult {
        worker: worker.into(),
        lease,
        outputs: vec![Output {
            element: None,
            payload,
            grouping: Vec::new(),
        }],
        ran: Duration::ZERO,
    }
}

fn join(worker: &str, group: &str) -> WorkerEvent {
    WorkerEvent::Join(WorkerJoin {
        worker: worker.into(),
        group: group.into(),
        labels: ["site-a".to_owned()].into(),
        memory: u64::MAX,
        slots: 0,
    })
}

const OWN: &str = "w@prove.prover.liar";

#[test]
fn a_provers_credentials_forge_no_stage() {
    let mill = Mill::start();
    let mut liar = mill.liar(Role::Dispatcher, "prover", "dispatcher.prove.prover");
    let forged = || Payload::json("\"forged\"");
    let tasks = [("prove", 0, "0"), ("verify", 0, "0"), ("verify", 1, "0")];
    // A worker that nobody knows, then one that has joined, then one of somebody else.
    for worker in [OWN, "verify-0@verify.verifier.host", "verify-0"] {
        for group in ["prove", "verify"] {
            liar.says(vec![join(worker, group)]);
        }
        for (stage, block, part) in tasks {
            let complete = result(worker, lease(stage, block, part), forged());
            liar.says(vec![WorkerEvent::Complete(complete)]);
            liar.says(vec![WorkerEvent::Fail(WorkerFailure {
                worker: worker.into(),
                lease: lease(stage, block, part),
                failure: Failure::permanent(""),
            })]);
            liar.says(vec![WorkerEvent::Heartbeat {
                worker: worker.into(),
                running: vec![lease(stage, block, part)],
                retired: false,
                paused: None,
            }]);
        }
        // As signs of life.
        for group in ["prove", "verify"] {
            liar.shows(vec![join(worker, group)]);
        }
        let alive = WorkerEvent::Heartbeat {
            worker: worker.into(),
            running: vec![lease("verify", 0, "0")],
            retired: false,
            paused: None,
        };
        let complete = result(worker, lease("verify", 0, "0"), forged());
        let leave = || WorkerEvent::Leave {
            worker: worker.into(),
        };
        for event in [alive, WorkerEvent::Complete(complete), leave()] {
            liar.shows(vec![join(worker, "prove"), event]);
        }
        liar.says(vec![leave()]);
    }
    // What another role says.
    liar.says(vec![SinkEvent::Attach { term: u64::MAX }]);
    liar.says(vec![SinkEvent::Emitted {
        task: lease("emit", 0, "0").task,
        places: Vec::new(),
    }]);
    liar.says(vec![HostEvent::Leave {
        host: "host".into(),
    }]);
    mill.has_come_to_no_harm(liar);
}

/// Replaces one run of bytes by another.
fn splice(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut windows = bytes.windows(from.len());
    let at = windows.position(|window| window == from).expect("is there");
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn one_malformed_message_stops_no_leader() {
    let mill = Mill::start();
    let mut liar = mill.liar(Role::Dispatcher, "prover", "dispatcher.prove.prover");
    let plain = || Payload::json("\"forged\"");
    // Ten thousand groups within each other.
    let complete = result(OWN, lease("prove", 0, "0"), Payload::binary("MARKER"));
    let bytes = liar.call(
        CallBody::Events {
            number: 90,
            events: vec![WorkerEvent::Complete(complete).into()],
            presence: Vec::new(),
        },
        0,
    );
    let mut nested = [2, 0, 1, 0].repeat(10_000);
    nested.extend([2, 0, 0]);
    // The variant, the encoding, the length, the bytes.
    liar.send(splice(&bytes, b"\x00\x01\x06MARKER", &nested));
    // A part that no key can hold.
    let complete = result(OWN, lease("prove", 0, "PARTPART"), plain());
    let bytes = liar.call(
        CallBody::Events {
            number: 91,
            events: vec![WorkerEvent::Complete(complete).into()],
            presence: Vec::new(),
        },
        0,
    );
    liar.send(splice(&bytes, b"PARTPART", b"P.R*P>RT"));
    // Names of eight mebibytes, which travel as a blob.
    let long = format!("{}@prove.prover.liar", "w".repeat(9 << 20));
    liar.says(vec![join(&long, "prove")]);
    liar.says(vec![WorkerEvent::Complete(result(
        &long,
        lease("prove", 0, "0"),
        plain(),
    ))]);
    // A grouping value for a stage that is not there.
    let mut complete = result(OWN, lease("prove", 0, "0"), plain());
    complete.outputs[0].grouping = vec![(StageIx(99), Ok("x".into()))];
    liar.says(vec![WorkerEvent::Complete(complete)]);
    // A term that no leader has.
    for number in 0..20 {
        let call = CallBody::Events {
            number: 1_000 + number,
            events: Vec::new(),
            presence: Vec::new(),
        };
        let bytes = liar.call(call, u64::MAX);
        liar.send(bytes);
        std::thread::sleep(Duration::from_millis(50));
    }
    // Garbage.
    for length in [0, 1, 2, 3, 34, 1_000] {
        liar.send(vec![4; length]);
        liar.send(vec![0; length]);
    }
    mill.has_come_to_no_harm(liar);
}

#[test]
fn a_source_submits_to_no_queue_that_a_stage_writes_or_that_is_not_there() {
    let mill = Mill::start();
    let mut liar = mill.liar(Role::Source, "source", "source");
    let queues: Vec<QueueIx> = (0..liar.plan.queues.len())
        .filter(|ix| &*liar.plan.queues[*ix].name != "blocks")
        .chain([99, usize::MAX])
        .map(QueueIx)
        .collect();
    for queue in queues {
        let request = |producer: &str, payload| Submit {
            producer: producer.into(),
            queue,
            message: Message {
                first: 0,
                last: 0,
                part: Part::whole(),
                payload,
                needs: None,
                grouping: Vec::new(),
            },
            uniqueness: Uniqueness::Multiple,
            source_next: Some(1_000),
            caller: None,
        };
        liar.asks(Request::Submit(request(
            "file",
            Payload::json("\"forged\""),
        )));
        liar.asks(Request::Rewind(Rewind {
            source: "file".into(),
            queues: vec![queue],
            from: 0,
        }));
    }
    // A producer whose name no key can hold, and one that is too long for a record.
    let blocks = liar.plan.queue_named("blocks").expect("a queue");
    for producer in ["a.b", "*", "", &"p".repeat(9 << 20)] {
        let producer: Arc<str> = producer.into();
        liar.asks(Request::Submit(Submit {
            producer,
            queue: blocks,
            message: Message {
                first: 9,
                last: 9,
                part: Part::whole(),
                payload: Payload::json("\"forged\""),
                needs: None,
                grouping: vec![(StageIx(99), Ok("x".into()))],
            },
            uniqueness: Uniqueness::Multiple,
            source_next: Some(u64::MAX),
            caller: None,
        }));
    }
    mill.has_come_to_no_harm(liar);
}
