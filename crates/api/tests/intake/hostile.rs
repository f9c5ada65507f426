//! Any bytes posted to or called at the intake are answered with a status and without a panic. Also used by
//! the fuzz target `bodies`.
//!
//! The first byte chooses HTTP or gRPC and the kind of body; the second chooses the queue, or the framing
//! of the rest: one message, messages that each begin with their length, or a body that may end anywhere.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};
use proofmill_api::Submissions;
use proofmill_api::intake::in_process;
use proofmill_bus::{BlobStore, MemoryLog};
use proofmill_orchestrator::coordinator::{self, Coordinator};
use proofmill_orchestrator::plan::Plan;
use proofmill_shutdown::{Trigger, channel};
use proofmill_workflow::Workflow;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tonic::body::Body;
use tonic::{Code, Status};
use tower_service::Service;

#[path = "framing.rs"]
mod framing;
use framing::framed;

/// A workflow without workers: messages stay until the site is replaced.
const WORKFLOW: &str = r#"
name = "fuzzed"
[[queue]]
name = "in"
q_max = 64
[[queue]]
name = "few"
q_max = 1
[[queue]]
name = "proofs"
writers = "many"
[[source]]
name = "outside"
kind = "submit"
output = "in"
[[source]]
name = "more"
kind = "submit"
output = "few"
[[collector]]
name = "gather"
inputs = ["in"]
output = "groups"
strategy = { kind = "match", k = 2, group_by = "/group" }
[[dispatcher]]
name = "prove"
input = "groups"
output = "proofs"
executor = { kind = "native", prover = "none" }
[[dispatcher]]
name = "slow"
input = "few"
output = "proofs"
executor = { kind = "native", prover = "none" }
[sequencer]
input = "proofs"
"#;

/// Number of inputs after which a site is replaced, since it keeps all messages.
const INPUTS_PER_SITE: usize = 4096;

const QUEUES: [&str; 6] = ["in", "few", "groups", "proofs", "nowhere", "%ff"];

const CALLS: [&str; 4] = [
    "/proofmill.mill.v1.Intake/Submit",
    "/proofmill.mill.v1.Intake/SubmitStream",
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

type Answer = Pin<Box<dyn Future<Output = Response<Answered>>>>;

/// The body of an answer.
type Answered = http_body_util::combinators::UnsyncBoxBody<Bytes, String>;

/// A coordinator with an empty log, and the intake before it.
struct Site {
    services: Box<dyn Fn(Request<Body>) -> Answer>,
    inputs: usize,
    _folder: TempDir,
    _trigger: Trigger,
}

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_all().build().unwrap();
    static SITE: RefCell<Option<Site>> = const { RefCell::new(None) };
}

impl Site {
    async fn open() -> Self {
        let workflow = Workflow::parse(WORKFLOW, Path::new("fuzzed.toml")).unwrap();
        let plan = Arc::new(Plan::compile(&workflow, &BTreeMap::new()).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let blobs = Arc::new(BlobStore::open(folder.path()).unwrap());
        let log = Arc::new(MemoryLog::new());
        let opened = Coordinator::open(plan, log, coordinator::Options::default()).await;
        let (coordinator, handle) = opened.unwrap();
        let (trigger, shutdown) = channel();
        tokio::spawn(coordinator.run(shutdown));
        let submissions = Submissions::new(handle.source(), blobs);
        let router = in_process(submissions, Duration::from_millis(2)).await;
        let services = move |request: Request<Body>| -> Answer {
            let mut router = router.clone();
            Box::pin(async move {
                let answer = router.call(request).await.unwrap();
                answer.map(|body| body.map_err(|error| error.to_string()).boxed_unsync())
            })
        };
        Self {
            services: Box::new(services),
            inputs: 0,
            _folder: folder,
            _trigger: trigger,
        }
    }
}

/// Reads a body to its end, which is marked by trailers. tonic's bodies report their end to callers that
/// ask, as HTTP/2 does, and repeat their trailers to callers that do not.
async fn read(mut body: Answered) -> Result<(), String> {
    while let Some(frame) = body.frame().await {
        if frame?.is_trailers() {
            break;
        }
    }
    Ok(())
}

/// The request of an input, and whether it is a call with valid framing.
fn request(kind: u8, second: u8, content: &[u8]) -> (Request<Body>, bool) {
    let post = |path: &str, kind: &str, bytes: Vec<u8>| {
        let whole = Full::new(Bytes::from(bytes)).map_err(|never| match never {});
        Request::post(path)
            .header("host", "localhost")
            .header("content-type", kind)
            .header("te", "trailers")
            .body(Body::new(whole))
            .unwrap()
    };
    let queue = QUEUES[usize::from(second) % QUEUES.len()];
    let messages = format!("/v1/queues/{queue}/messages");
    match kind % 6 {
        0 => (post(&messages, "application/json", content.to_vec()), false),
        1 => (
            post(&messages, "application/x-ndjson", content.to_vec()),
            false,
        ),
        call => {
            let path = CALLS[usize::from(call) - 2];
            let bytes = framed(second, content);
            let is_framed = second & 0x83 < 3 && !bytes.is_empty();
            let is_ours = path.starts_with("/proofmill.");
            (post(path, "application/grpc", bytes), is_framed && is_ours)
        }
    }
}

/// Processes an input.
///
/// # Panics
///
/// If there is no answer, or an answer that no input may have.
pub(crate) fn answer(input: &[u8]) {
    let [kind, second, content @ ..] = input else {
        return;
    };
    let (request, is_framed) = request(*kind, *second, content);
    let is_call = kind % 6 > 1;
    RUNTIME.with(|runtime| {
        SITE.with_borrow_mut(|site| {
            if site
                .as_ref()
                .is_none_or(|site| site.inputs >= INPUTS_PER_SITE)
            {
                *site = Some(runtime.block_on(Site::open()));
            }
            let site = site.as_mut().expect("it was opened");
            site.inputs += 1;
            let answered = async {
                let answer = (site.services)(request).await;
                let status = answer.status().as_u16();
                let told = Status::from_header_map(answer.headers());
                if is_call {
                    // The rest of a stream that goes on is not checked.
                    let rest = read(answer.into_body()).now_or_never();
                    return (status, told, rest);
                }
                let rest = read(answer.into_body()).await;
                (status, told, Some(rest))
            };
            let patient = async { tokio::time::timeout(Duration::from_secs(120), answered).await };
            let (status, told, rest) = runtime.block_on(patient).expect("an answer in time");
            if is_call {
                assert_eq!(status, 200);
            } else {
                assert!(rest.is_some_and(|rest| rest.is_ok()));
                let known = [200, 201, 400, 403, 404, 409, 413, 422, 429, 503];
                assert!(known.contains(&status), "{status}");
            }
            // gRPC answers malformed frames, and a call without a message, with INTERNAL.
            if let Some(told) = told.filter(|_| is_framed) {
                assert!(
                    ![Code::Internal, Code::Unknown].contains(&told.code()),
                    "{told}"
                );
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use proofmill_mutation::Mutator;

    use super::answer;

    /// Bytes of valid inputs, and words that have a meaning in them.
    const SEEDS: [&[u8]; 6] = [
        b"\0\0{\"block\": 7, \"payload\": {\"group\": 7}}",
        b"\0\x01{\"first\": 6, \"last\": 9, \"part\": \"a\", \"requires\": [\"gpu\"], \"payload\": [1]}",
        b"\x01\0{\"block\": 1, \"payload\": 1}\n\n{\"block\": 2, \"payload\": {\"group\": \"a\"}}",
        b"\x02\0\x0a\x02in\x10\x07\x18\x09\x22\x01a\x2a\x0c{\"group\": 7}\x32\x05\x0a\x03gpu",
        b"\x03\x02\x10\x0a\x0e\x0a\x02in\x10\x07\x2a\x06[1, 2]\x0c\x0a\x0a\x0a\x03few\x10\x01\x2a\x011",
        b"\x04\0",
    ];
    const WORDS: [&[u8]; 12] = [
        b"\"block\":",
        b"\"last\":",
        b"\"part\":",
        b"18446744073709551615",
        b"-1",
        b"1e999",
        b"[[[[[[[[",
        b"\\ud800",
        b"null",
        b"\n",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\0\0\0\0\xff",
    ];

    #[test]
    fn any_body_is_answered() {
        let seeds = SEEDS.map(<[u8]>::to_vec);
        let bodies = Mutator::of(&seeds).with_words(&WORDS).inputs(2_000);
        bodies.run("bodies", answer);
    }
}
