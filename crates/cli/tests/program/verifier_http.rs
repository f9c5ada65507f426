//! `proofmill verifier serve --listen` over HTTP: verdicts, keys, and what is refused.

use std::io::{Read, Write};
use std::net::TcpStream;

use proofmill_api::verifier::{Answer, AnswerBody, MAX_FRAME_BYTES, Request, RequestBody, VERSION};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::engine_network::private;
use crate::support::{Running, folder, url};
use crate::verifier::{KIND, fixture, rollup_proof, serve};

/// The port of a verifier.
struct Port(String);

/// The answer of a port: status, head and body.
#[derive(Debug)]
struct Answered {
    status: u16,
    head: String,
    body: Vec<u8>,
}

fn listening(folder: &std::path::Path, more: &[&str]) -> (Running, Port) {
    let listen = ["--listen", "127.0.0.1:0"];
    let verifier = serve(folder, &[&listen[..], more].concat());
    let line = verifier.line("the verifier takes");
    let address = url(&line)
        .trim_end_matches(',')
        .trim_start_matches("http://");
    let port = Port(address.to_owned());
    (verifier, port)
}

fn ended(verifier: Running) {
    verifier.signal(Signal::TERM);
    let stderr = verifier.end().1.succeeded().stderr;
    assert!(!stderr.contains("panicked"), "{stderr}");
}

// === impl Port ===

impl Port {
    /// Sends a head, whose lines are all given, and a body.
    fn ask(&self, head: &str, body: &[u8]) -> Answered {
        let mut stream = TcpStream::connect(&self.0).expect("connected");
        let head = head.replace('\n', "\r\n");
        let head = format!("{head}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        // It may have been refused by its head.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let end = answer
            .windows(4)
            .position(|it| it == b"\r\n\r\n")
            .expect("a head");
        let head = String::from_utf8(answer[..end].to_vec()).expect("text");
        Answered {
            status: head[9..12].parse().expect("a status"),
            head,
            body: answer[end + 4..].to_vec(),
        }
    }

    fn post(&self, path: &str, kind: &str, body: &[u8]) -> Answered {
        let length = body.len();
        self.ask(
            &format!(
                "POST {path} HTTP/1.1\nhost: {}\ncontent-type: {kind}\ncontent-length: {length}",
                self.0
            ),
            body,
        )
    }

    fn method(&self, method: &str, path: &str) -> Answered {
        self.ask(&format!("{method} {path} HTTP/1.1\nhost: {}", self.0), b"")
    }

    fn verify(&self, body: &Value) -> Answered {
        self.post(
            "/v1/verify",
            "application/json",
            body.to_string().as_bytes(),
        )
    }

    fn add_key(&self) -> String {
        let path = format!("/v1/keys?kind={KIND}");
        let answer = self.post(&path, "application/json", &fixture("verification_key.json"));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["digest"]
            .as_str()
            .expect("a digest")
            .to_owned()
    }
}

// === impl Answered ===

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that the port refuses with this status and reason.
    #[track_caller]
    fn refuses(&self, status: u16, why: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let body = String::from_utf8_lossy(&self.body);
        assert!(body.contains(why), "no {why:?} in {body}");
    }
}

fn json_fixture(name: &str) -> Value {
    serde_json::from_slice(&fixture(name)).expect("JSON")
}

#[test]
fn a_proof_has_its_verdict_over_http() {
    let folder = folder();
    let (verifier, port) = listening(folder.path(), &[]);
    let key = port.add_key();
    let keys = port.method("GET", "/v1/keys").json();
    assert_eq!(keys["keys"][0]["digest"], *key);
    assert_eq!(keys["keys"][0]["kind"], KIND);
    let kinds = port.method("GET", "/v1/kinds").json();
    assert!(
        kinds["kinds"]
            .as_array()
            .expect("kinds")
            .contains(&json!(KIND))
    );

    let ask = |proof: Value, statement: Value, key: &str| json!({"request_id": 7, "kind": KIND, "key": key, "proof": proof, "statement": statement});
    let (good, public) = (json_fixture("proof.json"), json_fixture("public.json"));
    let none = "00".repeat(32);
    for (body, verdict, status) in [
        (ask(good.clone(), public.clone(), &key), "valid", 0),
        (ask(good.clone(), json!(["157"]), &key), "invalid", 1),
        (ask(json!({}), public.clone(), &key), "invalid", 1),
        (ask(good.clone(), public.clone(), &none), "unavailable", 2),
        (json!({"kind": "spells", "proof": 1}), "unavailable", 2),
        (
            json!({"kind": "grumpkin-ipa", "proof": format!("0x{}", hex(&rollup_proof()))}),
            "valid",
            0,
        ),
    ] {
        let answer = port.verify(&body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        assert_eq!(answer["verdict"], verdict, "{answer}");
        assert_eq!(answer["status"], status, "{answer}");
        assert_eq!(
            answer["request_id"],
            body["request_id"].as_u64().unwrap_or(0)
        );
        let message = answer["error_message"].as_str().expect("a message");
        assert_eq!(message.is_empty(), status == 0, "{answer}");
    }

    // The content of a frame.
    let (statement, proof) = (fixture("public.json"), fixture("proof.json"));
    let frame = Request {
        version: VERSION,
        request_id: 8,
        body: RequestBody::Verify {
            kind: KIND,
            key: Some(&key),
            statement: &statement,
            proof: &proof,
            source: "peer",
            priority: 3,
            deadline_ms: Some(60_000),
        },
    };
    let bytes = rmp_serde::to_vec_named(&frame).expect("encoded");
    let answer = port.post("/v1/verify", "application/msgpack", &bytes);
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer: Answer = rmp_serde::from_slice(&answer.body).expect("an answer");
    match answer.body {
        AnswerBody::Result(result) => assert_eq!((result.request_id, result.status), (8, 0)),
        other => panic!("no result: {other:?}"),
    }
    let other = Request {
        body: RequestBody::ListKeys,
        ..frame
    };
    let bytes = rmp_serde::to_vec_named(&other).expect("encoded");
    let answer = port.post("/v1/verify", "application/msgpack", &bytes);
    answer.refuses(400, "keys are at /v1/keys");

    let removed = port.method("DELETE", &format!("/v1/keys/{key}"));
    assert_eq!(removed.status, 204, "{removed:?}");
    port.method("DELETE", &format!("/v1/keys/{key}"))
        .refuses(404, "you have no key");
    port.method("DELETE", "/v1/keys/xyz")
        .refuses(400, "64 hexadecimal digits");
    let gone = port.verify(&ask(good, public, &key)).json();
    assert_eq!(gone["verdict"], "unavailable", "{gone}");

    let page = port.method("GET", "/");
    assert_eq!(page.status, 200, "{page:?}");
    page.refuses(200, "POST /v1/verify");
    page.refuses(200, "docs/verifier.md");
    ended(verifier);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn malformed_requests_are_refused_with_advice() {
    let folder = folder();
    let (verifier, port) = listening(folder.path(), &[]);
    let json = "application/json";
    for (body, why) in [
        ("", "EOF"),
        ("{\"kind\":", "EOF"),
        ("[1]", "not a request"),
        ("{\"kind\": \"kzg\"}", "missing field `proof`"),
        (
            "{\"kind\": \"kzg\", \"proof\": \"0x0\"}",
            "`proof`: expected",
        ),
        (
            "{\"kind\": \"kzg\", \"proof\": 1, \"prooof\": 2}",
            "unknown field `prooof`",
        ),
    ] {
        port.post("/v1/verify", json, body.as_bytes())
            .refuses(400, why);
    }
    let long = json!({"kind": "kzg", "proof": 1, "source": "x".repeat(129)});
    port.verify(&long).refuses(400, "at most 128");
    port.post("/v1/verify", "text/plain", b"{}")
        .refuses(415, "application/json");
    port.post("/v1/verify", "application/msgpack", b"\xc1")
        .refuses(400, "not a request");
    port.post("/v1/keys", json, b"{}")
        .refuses(400, "/v1/keys?kind=");
    port.post("/v1/keys?kind=spells", json, b"{}")
        .refuses(400, "there are");
    port.post("/v1/keys?kind=kzg", json, b"{}")
        .refuses(400, "has no keys");
    let key = format!("/v1/keys?kind={KIND}");
    port.post(&key, json, b"{}").refuses(400, "missing field");
    port.post(&key, "text/plain", b"{}")
        .refuses(415, "application/octet-stream");
    port.method("GET", "/v1/verify/more")
        .refuses(404, "POST /v1/verify");
    assert_eq!(port.method("GET", "/v1/verify").status, 405);

    // By their lengths, before their bytes.
    let length = MAX_FRAME_BYTES + 1;
    let head = |extra: &str| {
        format!(
            "POST /v1/verify HTTP/1.1\nhost: {}\ncontent-type: {json}\n{extra}",
            port.0
        )
    };
    port.ask(&head(&format!("content-length: {length}")), b"")
        .refuses(413, &format!("at most {MAX_FRAME_BYTES} bytes"));
    // And where none is told.
    let mut chunk = format!("{length:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + length, b' ');
    port.ask(&head("transfer-encoding: chunked"), &chunk)
        .refuses(413, "at most");

    // Pages in a browser, by their own name or another.
    let body = b"{}";
    let asked_as = |host: &str, extra: &str| {
        let head = format!(
            "POST /v1/verify HTTP/1.1\nhost: {host}\ncontent-type: {json}\ncontent-length: 2{extra}"
        );
        port.ask(&head, body)
    };
    asked_as("evil.example", "").refuses(403, "Host header");
    asked_as("localhost", "\norigin: http://localhost").refuses(403, "Origin");
    asked_as("localhost", "").refuses(400, "missing field");
    for path in ["/v1/keys", "/v1/kinds"] {
        let head = format!("GET {path} HTTP/1.1\nhost: evil.example");
        port.ask(&head, b"").refuses(403, "Host header");
    }
    // After any of these, the next request is served.
    let rollup = json!({"kind": "grumpkin-ipa", "proof": format!("0x{}", hex(&rollup_proof()))});
    assert_eq!(port.verify(&rollup).json()["verdict"], "valid");
    ended(verifier);
}

#[test]
fn a_token_is_needed_where_there_are_tokens() {
    let folder = folder();
    let token = "0123456789abcdef0123456789abcdef";
    private(&folder.path().join("tokens"), &format!("rollup {token}\n"));
    let (verifier, port) = listening(folder.path(), &["--tokens", "tokens"]);
    let ask = |extra: &str| {
        port.ask(
            &format!("GET /v1/keys HTTP/1.1\nhost: any.example{extra}"),
            b"",
        )
    };
    for wrong in [
        "",
        "\nauthorization: Bearer 0123456789abcdef0123456789abcdee",
    ] {
        let refused = ask(wrong);
        refused.refuses(401, "--tokens");
        assert!(
            refused.head.contains("www-authenticate: Bearer"),
            "{refused:?}"
        );
    }
    let shown = format!("\nauthorization: Bearer {token}");
    assert_eq!(ask(&shown).json(), json!({"keys": []}));
    let page = format!("{shown}\norigin: http://any.example");
    ask(&page).refuses(403, "Origin");
    // What the port is may be known.
    assert_eq!(port.method("GET", "/").status, 200);
    ended(verifier);
}
