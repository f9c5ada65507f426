//! `proofmill vkd serve`: what it answers, what it refuses, and new epochs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use proofmill_directory::store::KeyDirectory;
use proofmill_directory::{Digest, chain};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::engine_network::private;
use crate::support::{Running, eventually, folder, proofmill, run, url};
use crate::vkd::{lines, update};

/// The status and the body of an answer.
type Answer = (u16, String);

fn serve(here: &Path, more: &[&str]) -> (Running, String) {
    let args = ["vkd", "serve", "directory", "--listen", "127.0.0.1:0"];
    let running = Running::start(proofmill(here).args([&args[..], more].concat()));
    let line = running.line("is served on");
    let address = url(&line).trim_start_matches("http://").to_owned();
    (running, address)
}

fn ask(address: &str, request: &str, headers: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("connected");
    let head = format!("{request} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

fn get(address: &str, path: &str) -> Answer {
    ask(
        address,
        &format!("GET {path}"),
        &format!("host: {address}\r\n"),
    )
}

#[track_caller]
fn got(address: &str, path: &str) -> Value {
    let (status, body) = get(address, path);
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).expect("JSON")
}

#[track_caller]
fn refused((status, body): Answer, expected: u16, why: &str) {
    assert_eq!(status, expected, "{body}");
    assert!(body.contains(why), "no {why:?} in {body}");
}

fn ended(running: Running) {
    running.signal(Signal::TERM);
    let stderr = running.end().1.succeeded().stderr;
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// A directory with one epoch.
fn directory(here: &Path) {
    run(here, ["vkd", "init", "directory"]).succeeded();
    let text = lines(&[("alice", "a0"), ("a/b c", "1"), ("alice", "a1")]);
    update(
        here,
        &(text + "{\"key_hex\": \"00ff\", \"value_hex\": \"ff\"}\n"),
    )
    .succeeded();
}

/// A client that knows the root verifies the answers as they came.
#[test]
fn answers_are_verified_and_follow_new_epochs() {
    let folder = folder();
    let here = folder.path();
    directory(here);
    let (running, address) = serve(here, &[]);
    let root = got(&address, "/v1/root");
    assert_eq!(root["number"], 1);
    let root = root["root"].as_str().expect("a root");
    let cases: [(&str, &[&str], Value); 4] = [
        ("alice", &["alice"], json!({"version": 1, "value": "a1"})),
        ("a%2Fb%20c", &["a/b c"], json!({"version": 0, "value": "1"})),
        ("eve", &["eve"], Value::Null),
        (
            "?hex=00ff",
            &["00ff", "--key-hex"],
            json!({"version": 0, "value_hex": "ff"}),
        ),
    ];
    for (path, key, state) in cases {
        let slash = if path.starts_with('?') { "" } else { "/" };
        let answer = got(&address, &format!("/v1/keys{slash}{path}"));
        assert_eq!((&answer["epoch"], &answer["state"]), (&1.into(), &state));
        fs::write(here.join("answer"), answer.to_string()).expect("written");
        let verify = ["vkd", "verify", "key", "--root", root, "--key"];
        run(here, [&verify[..], key, &["answer"]].concat()).succeeded();
    }

    // The next epoch, and its record once there is one.
    let second = update(here, &lines(&[("alice", "a2")])).succeeded().json();
    eventually("the second epoch", || {
        (got(&address, "/v1/root")["number"] == 2).then_some(())
    });
    assert_eq!(got(&address, "/v1/root")["root"], second["root"]);
    assert_eq!(got(&address, "/v1/keys/alice")["state"]["value"], "a2");
    refused(get(&address, "/v1/epochs/2"), 404, "not proved yet");
    let record = record(here);
    assert_eq!(got(&address, "/v1/epochs/2"), record);
    ended(running);
}

/// Publishes a record for the second epoch. Its proof is none: the server need not know.
fn record(here: &Path) -> Value {
    let directory = KeyDirectory::load(&here.join("directory")).expect("a directory");
    let epoch = directory.epoch_updates(2).expect("an epoch");
    let mut record = chain::EpochRecord::new(2, epoch.root_before);
    record.batches = [Digest([1; 32]), epoch.root_after]
        .map(|root_after| chain::BatchRecord {
            root_after,
            updates: 1,
            proof: vec![7; 100_000],
        })
        .into();
    directory.publish(&record).expect("published");
    serde_json::to_value(&record).expect("JSON")
}

#[test]
fn other_requests_are_refused() {
    let folder = folder();
    let here = folder.path();
    directory(here);
    let (running, address) = serve(here, &[]);
    let long = format!("/v1/keys/{}", "a".repeat(1025));
    for (path, status, why) in [
        (
            "/v1/epochs/0",
            404,
            "there is no epoch 0: the last one is 1",
        ),
        ("/v1/epochs/9", 404, "there is no epoch 9"),
        ("/v1/epochs/-1", 400, "error"),
        ("/v1/epochs/1", 404, "epoch 1 is not proved yet"),
        ("/v1/keys", 400, "/v1/keys/alice"),
        ("/v1/keys?hex=0", 400, "`hex`"),
        ("/v1/keys?key=alice", 400, "/v1/keys/alice"),
        ("/v1/keys/%ff", 400, "error"),
        (long.as_str(), 400, "1024 at most"),
        ("/v1/else", 404, "GET /v1/root"),
    ] {
        refused(get(&address, path), status, why);
    }
    let host = format!("host: {address}\r\n");
    assert_eq!(ask(&address, "POST /v1/root", &host).0, 405);
    refused(
        ask(&address, "GET /v1/root", "host: evil.example\r\n"),
        403,
        "Host header",
    );
    let page = format!("{host}origin: http://{address}\r\n");
    refused(ask(&address, "GET /v1/root", &page), 403, "Origin");

    // A record that cannot be read is no secret, but its place on the disk is.
    let path = here.join("directory/records/0000000001");
    fs::write(path, "something else").expect("written");
    let answer = get(&address, "/v1/epochs/1");
    assert!(!answer.1.contains("records/"), "{answer:?}");
    refused(answer, 500, "cannot be read");
    let (status, body) = get(&address, "/");
    assert_eq!(status, 200);
    assert!(body.contains("/v1/root"), "{body}");
    ended(running);
}

#[test]
fn other_machines_need_tokens_and_tls() {
    let folder = folder();
    let here = folder.path();
    directory(here);
    let exposed = ["vkd", "serve", "directory", "--listen", "0.0.0.0:0"];
    let told = run(here, exposed).failed(1, "can be reached from other machines");
    assert!(told.stderr.contains("--tls-certificate"), "{told:?}");
    let token = "0123456789abcdef0123456789abcdef";
    private(&here.join("tokens"), &format!("client {token}\n"));
    let (running, address) = serve(here, &["--tokens", "tokens"]);
    let host = format!("host: {address}\r\n");
    refused(ask(&address, "GET /v1/root", &host), 401, "--tokens");
    let shown = format!("{host}authorization: Bearer {token}\r\n");
    assert_eq!(ask(&address, "GET /v1/root", &shown).0, 200);
    assert_eq!(ask(&address, "GET /", &host).0, 200);
    ended(running);
}
