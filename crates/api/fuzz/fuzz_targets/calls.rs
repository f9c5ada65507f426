//! Any bytes as the messages of any call are answered with a status and without a panic.
//!
//! The first byte chooses the call, the second the framing of the rest: one message, messages that each
//! begin with their length, or a body that may end anywhere.
#![no_main]

use std::cell::RefCell;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use ark_bn254::Fr;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};
use ark_relations::lc;
use ark_std::rand::rngs::OsRng;
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};
use libfuzzer_sys::fuzz_target;
use proofmill_api::engine::in_process;
use proofmill_engine::{CircuitSource, Limits, Options, Registration, Service as Engine};
use proofmill_groth16::{Bn254, setup};
use proofmill_r1cs::R1cs;
use proofmill_shutdown::{Trigger, channel};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

#[path = "../../tests/intake/framing.rs"]
mod framing;
use framing::framed;

const CALLS: [&str; 17] = [
    "proofmill.engine.v1.ProvingEngine/Submit",
    "proofmill.engine.v1.ProvingEngine/SubmitStream",
    "proofmill.engine.v1.ProvingEngine/Await",
    "proofmill.engine.v1.ProvingEngine/Prove",
    "proofmill.engine.v1.ProvingEngine/Cancel",
    "proofmill.engine.v1.ProvingEngine/GetJob",
    "proofmill.engine.v1.ProvingEngine/StreamEvents",
    "proofmill.engine.v1.ProvingEngine/GetStatus",
    "proofmill.engine.v1.ProvingEngine/Register",
    "proofmill.engine.v1.ProvingEngine/Unregister",
    "proofmill.engine.v1.ProvingEngine/ListCircuits",
    "proofmill.engine.v1.ProvingEngine/Preload",
    "proofmill.engine.v1.ProvingEngine/Evict",
    "proofmill.engine.v1.ProvingEngine/Pin",
    "proofmill.engine.v1.ProvingEngine/Nothing",
    "grpc.health.v1.Health/Check",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

type Answer = Pin<Box<dyn Future<Output = Response<Body>>>>;

/// An engine with a circuit, and its services, for the life of the process.
struct Site {
    runtime: Runtime,
    services: Box<dyn Fn(Request<Body>) -> Answer>,
    _folder: TempDir,
    _trigger: Trigger,
}

/// The circuit y = x·x with y public.
struct Square;

thread_local! {
    static SITE: RefCell<Site> = RefCell::new(Site::open());
}

impl ConstraintSynthesizer<Fr> for Square {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let y = cs.new_input_variable(|| Ok(Fr::from(9)))?;
        let x = cs.new_witness_variable(|| Ok(Fr::from(3)))?;
        cs.enforce_r1cs_constraint(|| lc!() + x, || lc!() + x, || lc!() + y)
    }
}

/// Writes the circuit's files.
fn square(folder: &Path) -> CircuitSource {
    let (constraints, key) = (folder.join("circuit.pmcs"), folder.join("circuit.key"));
    let system = R1cs::<Fr>::from_circuit(Square).unwrap();
    system.save_precompiled(&constraints).unwrap();
    setup::<Bn254>(&system, &mut OsRng)
        .unwrap()
        .save(&key)
        .unwrap();
    CircuitSource::System { constraints, key }
}

impl Site {
    fn open() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // Low limits, so that they are reached and stored data stops growing.
        let options = Options {
            memory: Some(64 << 20),
            threads: 1,
            limits: Limits {
                jobs: 8,
                jobs_per_client: 6,
                partitions: 4,
                uploads: 4,
                results: 16,
                ..Limits::default()
            },
            recent: 4,
            ..Options::default()
        };
        let (service, handle) = runtime.block_on(Engine::open(options)).unwrap();
        let (trigger, shutdown) = channel();
        runtime.spawn(service.run(shutdown));
        let folder = tempfile::tempdir().unwrap();
        let registration = Registration {
            name: "circuit".to_owned(),
            source: square(folder.path()),
        };
        runtime.block_on(handle.register(registration)).unwrap();
        let services = in_process(handle).unwrap();
        let services = move |request| -> Answer {
            let mut services = services.clone();
            Box::pin(async move { services.call(request).await.unwrap() })
        };
        Self {
            runtime,
            services: Box::new(services),
            _folder: folder,
            _trigger: trigger,
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [call, framing, content @ ..] = input else {
        return;
    };
    let path = CALLS[usize::from(*call) % CALLS.len()];
    let framing = *framing;
    let bytes = framed(framing, content);
    let has_message = !bytes.is_empty();
    SITE.with_borrow(|site| {
        let whole = Full::new(Bytes::from(bytes)).map_err(|never| match never {});
        let request = Request::post(format!("/{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Body::new(whole))
            .unwrap();
        let answered = async {
            let answer = (site.services)(request).await;
            let told = Status::from_header_map(answer.headers());
            // The rest of a stream that goes on is not checked.
            let rest = answer.into_body().collect().now_or_never();
            (told, rest)
        };
        let patient = async { tokio::time::timeout(Duration::from_secs(20), answered).await };
        let (told, rest) = site.runtime.block_on(patient).expect("an answer in time");
        // gRPC answers malformed frames, and a call without a message, with INTERNAL. The decoders of
        // health and reflection are tonic's, and answer malformed messages so as well.
        let well_framed = framing & 0x83 < 3 && has_message;
        if let Some(told) = told.filter(|_| well_framed && path.starts_with("proofmill.")) {
            assert_ne!(told.code(), tonic::Code::Internal, "{told}");
        }
        if let Some(Err(broken)) = rest {
            assert_ne!(broken.code(), tonic::Code::Unknown, "{broken}");
        }
    });
});
