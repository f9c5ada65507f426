//! Tests of `[ethproofs]`: the fields that are read, and the faults that are reported.

mod support;

use std::time::Duration;

use proofmill_workflow::{Code, Ethproofs, Secret};
use support::{codes, fault, sound, with};

const CHAIN: &str = r#"name = "chain"

[[source]]
name = "blocks"
kind = "range"
output = "blocks"

[sequencer]
input = "blocks"
"#;

const LEAST: &str = r#"
[ethproofs]
token_env = "ETHPROOFS_TOKEN"
cluster_id = 4
"#;

fn read(table: &str) -> Ethproofs {
    sound(&with(CHAIN, table)).ethproofs.expect("it is there")
}

#[test]
fn little_has_to_be_said() {
    let least = read(LEAST);
    assert!(least.url.is_tls());
    assert_eq!(
        (least.url.host(), least.url.path()),
        ("ethproofs.org", "/api/v0")
    );
    assert_eq!(least.token, Secret::Environment("ETHPROOFS_TOKEN".into()));
    assert_eq!((least.cluster_id, least.every), (4, 1));
    assert_eq!(
        (least.calls_per_minute, least.queue, least.keep),
        (55, 8_192, 4 << 30)
    );
    assert_eq!(least.time_limit, Duration::from_secs(35));
    assert_eq!(
        (least.begins_at, least.proof, least.verifier_id),
        (None, None, None)
    );
}

#[test]
fn everything_can_be_said() {
    let all = read(
        r#"
[ethproofs]
url = "http://127.0.0.1:8080/api/v0"
token_file = "key"
cluster_id = 0
verifier_id = "0x2f"
every = 10
proof = "/proof"
cycles = "/stats/cycles"
time_limit = "5s"
calls_per_minute = 600
queue = 100
keep = "1MiB"
"#,
    );
    assert_eq!(all.token, Secret::File("/w/key".into()));
    assert_eq!((all.every, all.queue, all.keep), (10, 100, 1 << 20));
    assert_eq!(all.proof.map(|it| it.to_string()), Some("/proof".into()));
    assert_eq!(
        all.cycles.map(|it| it.to_string()),
        Some("/stats/cycles".into())
    );
}

#[test]
fn faults_are_named_where_they_are() {
    let spoiled = |from: &str, to: &str| with(CHAIN, &LEAST.replacen(from, to, 1));
    for (from, to, code, field) in [
        (
            "token_env = \"ETHPROOFS_TOKEN\"\n",
            "",
            Code::MissingField,
            "ethproofs",
        ),
        (
            "ETHPROOFS_TOKEN",
            "KEY=abc",
            Code::BadPath,
            "ethproofs.token_env",
        ),
        ("cluster_id = 4\n", "", Code::MissingField, "ethproofs"),
        (
            "cluster_id = 4",
            "cluster_id = 4294967296",
            Code::OutOfRange,
            "ethproofs.cluster_id",
        ),
        (
            "cluster_id = 4",
            "cluster_id = 4\nevery = 0",
            Code::OutOfRange,
            "ethproofs.every",
        ),
        (
            "cluster_id = 4",
            "cluster_id = 4\nproof = \"x\"",
            Code::BadPointer,
            "ethproofs.proof",
        ),
        (
            "cluster_id = 4",
            "cluster_id = 4\nclusters = 4",
            Code::UnknownField,
            "ethproofs.clusters",
        ),
        (
            "cluster_id = 4",
            "cluster_id = 4\ntoken_file = \"k\"",
            Code::TwoSecrets,
            "ethproofs.token_file",
        ),
        (
            "cluster_id = 4",
            "cluster_id = 4\nca = \"no.pem\"",
            Code::MissingFile,
            "ethproofs.ca",
        ),
        (
            "cluster_id = 4",
            "cluster_id = 4\nbegins_at = \"prove\"",
            Code::UnknownStage,
            "ethproofs.begins_at",
        ),
        (
            "cluster_id = 4",
            "cluster_id = 4\nurl = \"http://a.example/v0\"",
            Code::BadUrl,
            "ethproofs.url",
        ),
    ] {
        assert!(LEAST.contains(from), "{from}");
        let found = fault(&spoiled(from, to), code);
        assert!(found.field.starts_with(field), "{to}: {}", found.field);
    }
    for url in [
        "http://localhost:1/x",
        "http://[::1]:1",
        "https://a.example",
    ] {
        let text = spoiled(
            "cluster_id = 4",
            &format!("cluster_id = 4\nurl = \"{url}\""),
        );
        assert_eq!(codes(&text), [Code::UnverifiedEmission], "{url}");
    }
    let text = with(CHAIN, LEAST).replace("[sequencer]\ninput = \"blocks\"\n", "");
    assert!(codes(&text).contains(&Code::NothingEmitted));
    // A key never stands in the file.
    let text = spoiled("token_env", "token");
    assert!(codes(&text).contains(&Code::UnknownField));
}
