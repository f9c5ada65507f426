//! Malicious engines: their answers are checked against the request before anything is written.

use std::net::SocketAddr;
use std::path::Path;

use ark_bn254::Fr;
use ark_ff::{BigInteger, PrimeField};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofmill_api::engine::proto::proving_engine_server::{ProvingEngine, ProvingEngineServer};
use proofmill_api::engine::proto::{self, JobState};
use proofmill_groth16::snarkjs::{inputs_from_json, proof_from_json};
use proofmill_groth16::{Bn254, Proof};
use proofmill_r1cs::iden3::{WtnsFile, write_wtns};
use rustix::process::Signal;
use tonic::codegen::BoxStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::engine::fixtures;
use crate::support::{Finished, Running, eventually, files, folder, proofmill, run};

/// An engine that has one circuit, and answers every job with one proof.
#[derive(Clone)]
struct Liar {
    circuit: proto::Circuit,
    answer: proto::Proof,
}

type Answer<T> = Result<Response<T>, Status>;

fn unasked<T>() -> Answer<T> {
    Err(Status::unimplemented("nobody asks this here"))
}

#[tonic::async_trait]
impl ProvingEngine for Liar {
    type StreamEventsStream = BoxStream<proto::Event>;

    async fn submit(&self, _: Request<proto::SubmitRequest>) -> Answer<proto::SubmitResponse> {
        Ok(Response::new(proto::SubmitResponse {
            job: "00".repeat(16),
            ..Default::default()
        }))
    }

    async fn r#await(&self, asked: Request<proto::AwaitRequest>) -> Answer<proto::JobResult> {
        Ok(Response::new(proto::JobResult {
            job: asked.into_inner().job,
            state: JobState::Done.into(),
            proofs: vec![self.answer.clone()],
            ..Default::default()
        }))
    }

    async fn get_status(&self, _: Request<proto::GetStatusRequest>) -> Answer<proto::EngineStatus> {
        Ok(Response::new(proto::EngineStatus {
            circuits: vec![self.circuit.clone()],
            ..Default::default()
        }))
    }

    async fn list_circuits(
        &self,
        _: Request<proto::ListCircuitsRequest>,
    ) -> Answer<proto::ListCircuitsResponse> {
        Ok(Response::new(proto::ListCircuitsResponse {
            circuits: vec![self.circuit.clone()],
            ..Default::default()
        }))
    }

    async fn submit_stream(
        &self,
        _: Request<Streaming<proto::SubmitStreamRequest>>,
    ) -> Answer<proto::SubmitResponse> {
        unasked()
    }

    async fn prove(&self, _: Request<proto::SubmitRequest>) -> Answer<proto::JobResult> {
        unasked()
    }

    async fn cancel(&self, _: Request<proto::CancelRequest>) -> Answer<proto::Job> {
        unasked()
    }

    async fn get_job(&self, _: Request<proto::GetJobRequest>) -> Answer<proto::Job> {
        unasked()
    }

    async fn stream_events(
        &self,
        _: Request<proto::StreamEventsRequest>,
    ) -> Answer<Self::StreamEventsStream> {
        unasked()
    }

    async fn register(&self, _: Request<proto::RegisterRequest>) -> Answer<proto::Circuit> {
        unasked()
    }

    async fn unregister(
        &self,
        _: Request<proto::UnregisterRequest>,
    ) -> Answer<proto::UnregisterResponse> {
        unasked()
    }

    async fn preload(&self, _: Request<proto::PreloadRequest>) -> Answer<proto::Circuit> {
        unasked()
    }

    async fn evict(&self, _: Request<proto::EvictRequest>) -> Answer<proto::EvictResponse> {
        unasked()
    }

    async fn pin(&self, _: Request<proto::PinRequest>) -> Answer<proto::Circuit> {
        unasked()
    }
}

/// Files of the fixture's circuit: its key, its witness, another witness (`other.wtns`), and an honest
/// proof for each (`honest.json`, `honest.public.json`; `other.json`, `other.public.json`).
struct Site {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Site {
    fn new() -> Self {
        let folder = folder();
        let here = folder.path();
        fixtures(here);
        other_witness(here);
        for name in ["honest", "other"] {
            let witness = match name {
                "honest" => "witness.wtns",
                _ => "other.wtns",
            };
            let (proof, public) = (format!("{name}.json"), format!("{name}.public.json"));
            let args = ["prove", "--engine", "off", "keys/circuit.zkey", witness];
            run(here, args.iter().copied().chain([&*proof, &*public])).succeeded();
        }
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        Self { folder, runtime }
    }

    fn here(&self) -> &Path {
        self.folder.path()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.here().join(name)).expect("a file")
    }

    /// The answer of an honest engine that was asked for the proof `name`.
    fn answer(&self, name: &str) -> proto::Proof {
        let proof_json = self.text(&format!("{name}.json"));
        let public_json = self.text(&format!("{name}.public.json"));
        let proof: Proof<Bn254> = proof_from_json(proof_json.as_bytes()).expect("a proof");
        let inputs: Vec<Fr> = inputs_from_json(public_json.as_bytes()).expect("inputs");
        proto::Proof {
            circuit_id: "00".repeat(32),
            curve: "bn254".to_owned(),
            proof: proof.to_bytes(),
            public_inputs: inputs
                .iter()
                .map(|input| input.into_bigint().to_bytes_le())
                .collect(),
            proof_json,
            public_json,
        }
    }

    /// Starts an engine with that answer to everything; it runs until the test ends.
    fn liar(&self, answer: proto::Proof) -> SocketAddr {
        let key = std::fs::canonicalize(self.here().join("keys/circuit.zkey")).expect("a key");
        let liar = Liar {
            circuit: proto::Circuit {
                name: "circuit".to_owned(),
                id: "00".repeat(32),
                curve: "bn254".to_owned(),
                key_path: key.to_str().expect("text").to_owned(),
                ..Default::default()
            },
            answer,
        };
        let _inside = self.runtime.enter();
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().expect("an address"));
        let incoming = incoming.expect("a port");
        let address = incoming.local_addr().expect("an address");
        let service = ProvingEngineServer::new(liar);
        let serving = Server::builder().add_service(service);
        self.runtime.spawn(serving.serve_with_incoming(incoming));
        address
    }

    /// `proofmill prove` of the witness through an engine with that answer.
    fn prove(&self, answer: proto::Proof) -> Finished {
        let address = format!("http://{}", self.liar(answer));
        let args = ["prove", "--engine", &address, "keys/circuit.zkey"];
        let more = ["witness.wtns", "proof.json", "public.json"];
        run(self.here(), args.iter().chain(&more))
    }

    /// `proofmill engine prove` of it.
    fn engine_prove(&self, answer: proto::Proof, more: &[&str]) -> Finished {
        let address = format!("http://{}", self.liar(answer));
        let args = ["engine", "prove", "circuit", "witness.wtns", "--engine"];
        let args = args.iter().copied().chain([&*address]);
        let to = ["-o", "proof.json", "--public", "public.json"];
        run(self.here(), args.chain(to).chain(more.iter().copied()))
    }

    #[track_caller]
    fn assert_nothing_written(&self) {
        for name in ["proof.json", "public.json"] {
            assert!(!self.here().join(name).exists(), "{name} was written");
        }
    }

    /// That what was written proves the witness's public signals, and is written as snarkjs does.
    #[track_caller]
    fn assert_honest_files(&self) {
        assert_eq!(self.text("public.json"), self.text("honest.public.json"));
        assert_eq!(self.text("proof.json"), self.text("honest.json"));
        let verify = ["verify", "--vk", "vk.json", "proof.json", "public.json"];
        run(self.here(), verify).succeeded();
    }
}

/// A witness of x = 5 and k = 7, where the fixture's is of x = 3 and k = 4: y = k·x³ + 5·x² + 3.
fn other_witness(folder: &Path) {
    let bytes = std::fs::read(folder.join("witness.wtns")).expect("a witness");
    let witness = WtnsFile::parse(&bytes).and_then(|file| file.read::<Fr>());
    let witness = witness.expect("a witness");
    let values = witness.values().iter().map(|value| {
        let mut pairs = [
            (1, 1),
            (3, 5),
            (4, 7),
            (9, 25),
            (27, 125),
            (108, 875),
            (156, 1003),
        ]
        .map(|(from, to)| (Fr::from(from), Fr::from(to)))
        .into_iter();
        let (_, to) = pairs.find(|(from, _)| from == value).expect("a value");
        to
    });
    let values: Vec<Fr> = values.collect();
    let file = std::fs::File::create(folder.join("other.wtns")).expect("made");
    write_wtns(file, &values).expect("written");
}

#[test]
fn a_valid_proof_of_other_public_signals_is_refused() {
    let site = Site::new();
    let lie = || site.answer("other");
    site.prove(lie()).failed(1, "other public inputs");
    site.engine_prove(lie(), &[])
        .failed(1, "other public inputs");
    // Texts that say what was asked for make it no better.
    let dressed_up = || proto::Proof {
        proof_json: site.text("honest.json"),
        public_json: site.text("honest.public.json"),
        ..lie()
    };
    site.prove(dressed_up()).failed(1, "other public inputs");
    let ran = site.engine_prove(dressed_up(), &[]);
    ran.failed(1, "other public inputs");
    site.assert_nothing_written();
    site.prove(site.answer("honest")).succeeded();
    site.assert_honest_files();
}

#[test]
fn texts_that_are_not_of_the_proof_that_was_verified_are_not_written() {
    let site = Site::new();
    let honest = site.answer("honest");
    let signals: Vec<String> = serde_json::from_str(&honest.public_json).expect("signals");
    // The same number modulo the field's prime, which other verifiers may take for another.
    let mut wide = signals.clone();
    let sum = add_decimal(&wide[0], &Fr::MODULUS.to_string());
    wide[0] = sum;
    let other = site.answer("other");
    for (proof_json, public_json) in [
        (other.proof_json.clone(), other.public_json.clone()),
        (honest.proof_json.clone(), other.public_json.clone()),
        (
            honest.proof_json.clone(),
            serde_json::to_string(&wide).expect("JSON"),
        ),
        ("[1,2".to_owned(), "\u{1b}[2J".to_owned()),
        (String::new(), String::new()),
    ] {
        let lie = proto::Proof {
            proof_json,
            public_json,
            ..honest.clone()
        };
        site.prove(lie.clone()).succeeded();
        site.assert_honest_files();
        site.engine_prove(lie, &[]).succeeded();
        site.assert_honest_files();
    }
}

#[test]
fn encodings_that_are_not_canonical_and_proofs_that_do_not_hold_are_refused() {
    let site = Site::new();
    let honest = site.answer("honest");
    let mut wide = honest.clone();
    let mut sum = Fr::from_le_bytes_mod_order(&wide.public_inputs[0]).into_bigint();
    sum.add_with_carry(&Fr::MODULUS);
    wide.public_inputs[0] = sum.to_bytes_le();
    site.prove(wide.clone())
        .failed(1, "not below the field's prime");
    let ran = site.engine_prove(wide, &[]);
    ran.failed(1, "not below the field's prime");

    let mut fewer = honest.clone();
    fewer.public_inputs.pop();
    site.prove(fewer.clone()).failed(1, "public inputs");
    site.engine_prove(fewer, &["--vk", "vk.json"])
        .failed(1, "public inputs");

    // Points of their groups, and no proof of this.
    let mut invalid = honest.clone();
    invalid.proof = site.answer("other").proof;
    site.prove(invalid.clone()).failed(1, "does not hold");
    site.engine_prove(invalid.clone(), &["--vk", "vk.json"])
        .failed(1, "does not hold");
    let mut bent = honest.clone();
    bent.proof[..32].fill(0xff);
    site.prove(bent.clone()).failed(1, "malformed");
    site.engine_prove(bent, &[]).failed(1, "malformed");
    site.assert_nothing_written();
}

#[test]
fn a_workflow_refuses_made_up_proofs_of_a_lying_engine() {
    let site = Site::new();
    let here = site.here();
    let honest = site.answer("honest");
    let other = site.answer("other");
    let mut invalid = honest.clone();
    invalid.proof.clone_from(&other.proof);
    let mut dressed_up = honest.clone();
    dressed_up.public_json.clone_from(&other.public_json);
    for (name, answer, why) in [
        ("signals", other, Some("other public inputs")),
        ("invalid", invalid, Some("does not hold")),
        ("texts", dressed_up, None),
    ] {
        let address = site.liar(answer);
        let workflow = format!(
            r#"name = "{name}"
[[source]]
name = "operator"
kind = "submit"
output = "witnesses"
[[dispatcher]]
name = "prove"
input = "witnesses"
output = "proofs"
r_max = 0
[dispatcher.executor]
kind = "engine"
circuit = "circuit"
endpoints = ["http://{address}"]
verifying_key = "vk.json"
[sequencer]
input = "proofs"
directory = "proofs-{name}"
"#
        );
        let file = format!("{name}.toml");
        std::fs::write(here.join(&file), workflow).expect("written");
        let mill = Running::start(proofmill(here).args(["run", &file, "--state", name]));
        let state = ["--state", name];
        let ask = |command: &[&'static str]| run(here, command.iter().chain(&state)).stdout;
        eventually("the mill answers", || {
            ask(&["status"]).contains(": running").then_some(())
        });
        let witness = std::fs::read(here.join("witness.wtns")).expect("a witness");
        let payload = serde_json::to_vec(&STANDARD.encode(witness)).expect("JSON");
        std::fs::write(here.join("witness.json"), payload).expect("written");
        let submit = [
            "submit",
            "--queue",
            "witnesses",
            "--block",
            "0",
            "witness.json",
        ];
        run(here, submit.iter().chain(&state)).succeeded();
        let emitted = || {
            let proofs = here.join(name).join(format!("proofs-{name}"));
            let last = files(&proofs).pop();
            last.filter(|(name, _)| name.ends_with(".json"))
        };
        match why {
            Some(why) => {
                let dead = eventually("the task has failed", || {
                    let list = ask(&["dlq", "show", "prove/0/0"]);
                    list.contains(why).then_some(list)
                });
                assert!(emitted().is_none(), "{dead}");
            }
            None => {
                let (_, content) = eventually("a proof has left", emitted);
                let content: serde_json::Value = serde_json::from_slice(&content).expect("JSON");
                let public: serde_json::Value =
                    serde_json::from_str(&honest.public_json).expect("JSON");
                assert_eq!(content["public"], public, "{content}");
            }
        }
        mill.signal(Signal::TERM);
        mill.end();
    }
}

/// The sum of two decimal numbers.
fn add_decimal(left: &str, right: &str) -> String {
    let digit = |text: &str, place: usize| {
        let digit = text.bytes().rev().nth(place);
        digit.map_or(0, |digit| digit - b'0')
    };
    let mut carry = 0;
    let mut digits = Vec::new();
    for place in 0..left.len().max(right.len()) {
        let sum = digit(left, place) + digit(right, place) + carry;
        digits.push(char::from(b'0' + sum % 10));
        carry = sum / 10;
    }
    if carry > 0 {
        digits.push('1');
    }
    digits.into_iter().rev().collect()
}
