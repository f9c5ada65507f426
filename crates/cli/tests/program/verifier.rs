//! `proofmill verifier serve` over its socket, in frames as other programs send them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use proofmill_api::verifier::{
    Answer, AnswerBody, MAX_FRAME_BYTES, Request, RequestBody, VERSION, VerificationResult,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;

use crate::operate::get_as;
use crate::support::{Running, folder, proofmill, repository, url};

pub(crate) const KIND: &str = "groth16-bn254";

/// By how much a verifier's memory may grow after a tenth of many frames, KiB: what is kept for each is more than this
/// after a million of them.
const GROWTH_MAX_KIB: u64 = 100_000;

/// A client on the verifier's socket.
pub(crate) struct Client<S> {
    stream: S,
    next: u64,
}

pub(crate) fn serve(folder: &Path, more: &[&str]) -> Running {
    // The points for rollup proofs are derived once for all tests.
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verifier");
    let socket = folder.join("v.sock");
    let verifier = Running::start(
        proofmill(folder)
            .args(["verifier", "serve", "--state"])
            .arg(state)
            .arg("--socket")
            .arg(socket)
            .args(more),
    );
    verifier.line("the verifier takes");
    verifier
}

pub(crate) fn connect(folder: &Path) -> Client<UnixStream> {
    let stream = UnixStream::connect(folder.join("v.sock")).expect("a socket");
    let patience = Some(Duration::from_secs(120));
    stream.set_read_timeout(patience).expect("a timeout");
    Client { stream, next: 1 }
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = repository("crates/groth16/tests/fixtures/bn254").join(name);
    std::fs::read(path).expect("a fixture")
}

pub(crate) fn rollup_proof() -> Vec<u8> {
    let path = repository("crates/ipa/tests/data/rollup-0.proof");
    std::fs::read(path).expect("a proof")
}

// === impl Client ===

impl<S: Read + Write> Client<S> {
    fn frame(&mut self, content: &[u8]) {
        let length = u32::try_from(content.len()).expect("a length");
        let frame = [&length.to_be_bytes(), content].concat();
        self.stream.write_all(&frame).expect("written");
    }

    /// Asks, and returns the request's number.
    pub(crate) fn ask(&mut self, body: RequestBody<'_>) -> u64 {
        let request_id = self.next;
        self.next += 1;
        let request = Request {
            version: VERSION,
            request_id,
            body,
        };
        self.frame(&rmp_serde::to_vec_named(&request).expect("encoded"));
        request_id
    }

    fn verify(&mut self, kind: &str, key: Option<&str>, statement: &[u8], proof: &[u8]) -> u64 {
        self.ask(RequestBody::Verify {
            kind,
            key,
            statement,
            proof,
            source: "",
            priority: 0,
            deadline_ms: None,
        })
    }

    /// The next answer; none where the stream ends.
    fn answer(&mut self) -> Option<Answer> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut content = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut content).expect("a whole frame");
        Some(rmp_serde::from_slice(&content).expect("an answer"))
    }

    fn body(&mut self) -> AnswerBody {
        self.answer().expect("an answer").body
    }

    pub(crate) fn result(&mut self) -> VerificationResult {
        match self.body() {
            AnswerBody::Result(result) => result,
            other => panic!("no result: {other:?}"),
        }
    }

    fn add_key(&mut self) -> String {
        self.add_key_of(&fixture("verification_key.json"))
    }

    /// Adds a key of [`KIND`], and returns its digest.
    pub(crate) fn add_key_of(&mut self, key: &[u8]) -> String {
        self.ask(RequestBody::AddKey { kind: KIND, key });
        match self.body() {
            AnswerBody::Key { digest } => digest,
            other => panic!("no key: {other:?}"),
        }
    }
}

#[test]
fn proofs_of_two_kinds_have_their_verdicts() {
    let folder = folder();
    let verifier = serve(folder.path(), &["--http", "127.0.0.1:0"]);
    let mut client = connect(folder.path());
    client.ask(RequestBody::ListKinds);
    let kinds = [
        KIND,
        "groth16-bls12-381",
        "groth16-bls12-377",
        "groth16-aggregate-bn254",
        "groth16-aggregate-bls12-381",
        "partition-bn254",
        "partition-bls12-381",
        "kzg",
        "halo2",
        "orchard",
        "grumpkin-ipa",
    ]
    .map(str::to_owned);
    assert_eq!(client.body(), AnswerBody::Kinds(kinds.to_vec()));
    let key = client.add_key();
    let (proof, public) = (fixture("proof.json"), fixture("public.json"));
    let other = String::from_utf8(public.clone())
        .expect("JSON")
        .replace("156", "157");
    let rollup = rollup_proof();
    let mut bent = rollup.clone();
    // The value that is claimed.
    bent[11 * 32 - 1] ^= 1;

    let mut expected = Vec::new();
    for _ in 0..4 {
        expected.push((client.verify(KIND, Some(&key), &public, &proof), 0));
        expected.push((client.verify("grumpkin-ipa", None, &[], &rollup), 0));
    }
    assert_ne!(other.as_bytes(), public);
    expected.push((client.verify(KIND, Some(&key), other.as_bytes(), &proof), 1));
    expected.push((client.verify("grumpkin-ipa", None, &[], &bent), 1));
    expected.push((client.verify("spells", None, &[], &rollup), 2));
    expected.push((
        client.verify(KIND, Some(&"00".repeat(32)), &public, &proof),
        2,
    ));
    let mut results: Vec<_> = expected.iter().map(|_| client.result()).collect();
    results.sort_by_key(|result| result.request_id);
    for (result, (request, status)) in results.iter().zip(&expected) {
        assert_eq!(
            (result.request_id, result.status),
            (*request, *status),
            "{result:?}"
        );
        assert_eq!(result.error_message.is_empty(), *status == 0);
    }
    let line = verifier.line("the verifier takes");
    let address = url(&line).trim_start_matches("http://");
    let metrics = get_as(address, "/metrics", "host: localhost");
    assert!(
        metrics.contains("proofmill_verifier_final_checks_total"),
        "{metrics}"
    );
    let simulator = get_as(address, "/simulator", "host: localhost");
    assert!(simulator.contains("<!doctype html>"), "{simulator}");
    verifier.signal(Signal::TERM);
    verifier.end().1.succeeded();
}

/// Pipes, as a node has with a verifier that it starts itself.
#[test]
fn pipes_are_a_conversation() {
    let folder = folder();
    let pipes = folder.path().join("pipes");
    let verifier = serve(folder.path(), &["--pipes", "pipes"]);
    let open = |name: &str, write: bool| {
        let mut options = std::fs::OpenOptions::new();
        options
            .read(!write)
            .write(write)
            .open(pipes.join(name))
            .expect("a pipe")
    };
    struct Pipes(std::fs::File, std::fs::File);
    impl Read for Pipes {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1.read(buffer)
        }
    }
    impl Write for Pipes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            self.0.flush()
        }
    }
    let stream = Pipes(open("requests", true), open("results", false));
    let mut client = Client { stream, next: 1 };
    let key = client.add_key();
    let request = client.verify(
        KIND,
        Some(&key),
        &fixture("public.json"),
        &fixture("proof.json"),
    );
    let result = client.result();
    assert_eq!((result.request_id, result.status), (request, 0));
    verifier.signal(Signal::TERM);
    verifier.end().1.succeeded();
}

#[test]
fn a_stop_answers_everything_that_was_accepted() {
    let folder = folder();
    let verifier = serve(folder.path(), &[]);
    let mut client = connect(folder.path());
    let rollup = rollup_proof();
    let asked: Vec<_> = (0..40)
        .map(|_| client.verify("grumpkin-ipa", None, &[], &rollup))
        .collect();
    // It has been read: an answer to what was asked after it is there.
    client.ask(RequestBody::ListKeys);
    let mut results = Vec::new();
    loop {
        match client.body() {
            AnswerBody::Result(result) => results.push(result),
            AnswerBody::Keys(_) => break,
            other => panic!("{other:?}"),
        }
    }
    verifier.signal(Signal::TERM);
    while let Some(answer) = client.answer() {
        match answer.body {
            AnswerBody::Result(result) => results.push(result),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(results.len(), asked.len());
    assert!(results.iter().all(|result| result.status == 0));
    verifier.end().1.succeeded();
}

/// Sends a frame changed by chance, 5,000 times or as often as `FRAMES` says; each is answered, and after a tenth of them
/// the verifier's memory grows no more by much.
fn bend(verifier: &Running, client: &mut Client<UnixStream>, whole: &[u8]) {
    let rng = &mut StdRng::seed_from_u64(3);
    let frames = std::env::var("FRAMES").map(|frames| frames.parse().expect("a number"));
    let frames: u32 = frames.unwrap_or(5000);
    let (began, mut early) = (Instant::now(), None);
    for number in 0..frames {
        if number == frames / 10 {
            early = resident_kib(verifier);
        }
        let mut content = whole.to_vec();
        for _ in 0..rng.random_range(1..4) {
            let place = rng.random_range(0..content.len());
            content[place] = rng.random();
        }
        content.truncate(rng.random_range(0..=content.len() * 2));
        client.frame(&content);
        assert!(client.answer().is_some());
    }
    let (took, late) = (began.elapsed().as_secs_f64(), resident_kib(verifier));
    println!(
        "{frames} frames in {took:.1} s, {early:?} KiB after a tenth of them, {late:?} KiB at the end"
    );
    if let (Some(early), Some(late)) = (early, late) {
        assert!(
            late < early + GROWTH_MAX_KIB,
            "grown from {early} to {late} KiB"
        );
    }
}

/// Memory that a verifier has in use; none where the system does not tell.
fn resident_kib(verifier: &Running) -> Option<u64> {
    let process = verifier.pid().as_raw_nonzero().get().unsigned_abs();
    proofmill_memory::size(process, "VmRSS").map(|bytes| bytes >> 10)
}

/// Garbage, frames that are too long, clients that vanish: later clients are still served.
#[test]
fn malformed_input_of_one_client_does_not_affect_the_next() {
    let folder = folder();
    let verifier = serve(folder.path(), &[]);
    let mut honest = connect(folder.path());
    let key = honest.add_key();
    let (proof, public) = (fixture("proof.json"), fixture("public.json"));

    let mut too_long = connect(folder.path());
    let length = u32::try_from(MAX_FRAME_BYTES + 1).expect("a length");
    too_long
        .stream
        .write_all(&length.to_be_bytes())
        .expect("written");
    assert!(matches!(too_long.body(), AnswerBody::Refused { .. }));
    assert_eq!(too_long.answer(), None);

    let mut garbage = connect(folder.path());
    for content in [&b""[..], b"GET / HTTP/1.1", &[0xdf, 0xff, 0xff, 0xff, 0xff]] {
        garbage.frame(content);
        assert!(matches!(garbage.body(), AnswerBody::Refused { .. }));
    }
    // It is understood again afterwards.
    garbage.verify(KIND, Some(&key), &public, &proof);
    assert_eq!(garbage.result().status, 0);

    let request = Request {
        version: VERSION,
        request_id: 1,
        body: RequestBody::Verify {
            kind: KIND,
            key: Some(&key),
            statement: &public,
            proof: &proof,
            source: "peer",
            priority: 0,
            deadline_ms: Some(1000),
        },
    };
    let whole = rmp_serde::to_vec_named(&request).expect("encoded");
    bend(&verifier, &mut connect(folder.path()), &whole);

    // Clients that go in the middle of a frame, and before their answers.
    for cut in [1, 3, 4, 100] {
        let mut gone = connect(folder.path());
        for _ in 0..8 {
            gone.verify(KIND, Some(&key), &public, &proof);
        }
        let length = u32::try_from(whole.len()).expect("a length").to_be_bytes();
        let frame = [&length, &*whole].concat();
        gone.stream.write_all(&frame[..cut]).expect("written");
    }
    honest.verify(KIND, Some(&key), &public, &proof);
    assert_eq!(honest.result().status, 0);
    verifier.signal(Signal::TERM);
    let (_, ran) = verifier.end();
    let stderr = ran.succeeded().stderr;
    assert!(!stderr.contains("panicked"), "{stderr}");
}
