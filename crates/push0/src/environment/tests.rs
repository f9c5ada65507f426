//! Tests with environments of real deployments, and with mistaken ones.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Config, EnvError> {
    let mut all = BTreeMap::from([
        ("NATS_URL", "nats://127.0.0.1:4222"),
        ("INPUT_STREAM", "mo"),
        ("INPUT_QUEUE", "mo.in"),
        ("OUTPUT_QUEUE", "mo.out"),
    ]);
    all.extend(variables.iter().copied());
    Environment::read(|name| all.get(name).map(|value| (*value).to_owned()))
}

fn strategy(variables: &[(&str, &str)]) -> super::Strategy {
    read(variables).unwrap().collection.unwrap().strategy
}

#[test]
fn a_dispatcher_of_the_demo() {
    let config = read(&[
        ("MESSAGE_BUS_TYPE", "NatsBasic"),
        ("STORAGE_TYPE", "Nats"),
        ("CONSUMER_NAME", "mock-prover"),
        ("INPUT_QUEUE", "mo.blocks, mo.more"),
        ("EXECUTOR_TYPE", "JsonExecutor"),
        ("BINARY", "/provers/mock"),
        ("MULTIPLE_OUTPUT", "1"),
        ("INHERIT_ENV", "RPC_URL, THREADS,"),
        ("METRICS_PORT", "8888"),
        ("ONE_CONSUMER_PER_SUBJECT", "true"),
        ("NEXT_BLOCK", ""),
    ])
    .unwrap();
    assert_eq!(config.output_stream, "mo");
    assert_eq!(config.metrics, Some("0.0.0.0:8888".parse().unwrap()));
    let bound = read(&[("METRICS_PORT", "8888"), ("METRICS_BIND", "::1")]);
    assert_eq!(bound.unwrap().metrics, Some("[::1]:8888".parse().unwrap()));
    assert_eq!(read(&[("METRICS_BIND", "::1")]).unwrap().metrics, None);
    assert!(config.program().unwrap().multiple_output);
    assert_eq!(
        config.program().unwrap().inherit_env,
        ["RPC_URL", "THREADS"]
    );
    let consumers = config.consumers("dispatcher");
    let names: Vec<&str> = consumers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["mock-prover-mo_blocks", "mock-prover-mo_more"]);
    assert_eq!(config.dead_letter_queue(), "mo.out.dlq");
    assert_eq!(config.collection().unwrap_err().variable, "STRATEGY");
}

#[test]
fn unnamed_processes_with_the_same_work_get_the_same_name() {
    let name = |variables: &[(&str, &str)]| read(variables).unwrap().consumer("dispatcher");
    assert_eq!(name(&[]), "dispatcher-mo_in-mo_out");
    assert_eq!(
        name(&[]),
        name(&[("ACK_WAIT", "5"), ("CONSUMER_NAME", " ")])
    );
    assert_ne!(name(&[]), name(&[("OUTPUT_QUEUE", "mo.other")]));
}

#[test]
fn the_strategies_have_their_variables() {
    use super::Strategy as S;
    let matching = strategy(&[("STRATEGY", "Match"), ("NUM_INPUTS", "10")]);
    assert_eq!(
        matching,
        S::Match {
            inputs: 10,
            field: None
        }
    );
    assert_eq!(
        strategy(&[("STRATEGY", "sequential"), ("NEXT_BLOCK", "7")]),
        S::Sequential {
            blocks: 1,
            start: Some(7)
        }
    );
    assert_eq!(strategy(&[("STRATEGY", "Proof")]), S::Proof { proofs: 1 });
    for (next_block, expected) in [
        ("", Start::Behind(0)),
        ("0", Start::At(0)),
        ("-5", Start::Behind(5)),
    ] {
        let source = strategy(&[
            ("STRATEGY", "Block"),
            ("L1_RPC", "http://node:8545"),
            ("NEXT_BLOCK", next_block),
        ]);
        assert!(
            matches!(source, S::Block { start, .. } if start == expected),
            "{source:?}"
        );
    }
}

#[test]
fn an_error_names_the_variable_what_it_holds_and_what_is_expected() {
    let told = |variables: &[(&str, &str)]| read(variables).unwrap_err().to_string();
    assert_eq!(
        told(&[("ACK_WAIT", "soon")]),
        "ACK_WAIT holds \"soon\"; expected seconds, or a time such as 500ms, 30s, 5m; at most 24h"
    );
    // A value written into the wrong variable may be a secret.
    assert!(!told(&[("INHERIT_ENV", "TOKEN=hunter2")]).contains("hunter2"));
    assert_eq!(
        told(&[("STRATEGY", "Match")]),
        "NUM_INPUTS is not set; expected how many messages make a group"
    );
    for (variables, variable) in [
        (&[("NATS_URL", "")][..], "NATS_URL"),
        (&[("NATS_URL", "http://user:secret@x")], "NATS_URL"),
        (&[("INPUT_STREAM", "a.b")], "INPUT_STREAM"),
        (&[("INPUT_STREAM", "")], "INPUT_STREAM"),
        (&[("INPUT_QUEUE", "a,,b")], "INPUT_QUEUE"),
        (&[("INPUT_QUEUE", "a,a")], "INPUT_QUEUE"),
        (&[("INPUT_QUEUE", "a.>")], "INPUT_QUEUE"),
        (&[("OUTPUT_QUEUE", "a,b")], "OUTPUT_QUEUE"),
        (&[("OUTPUT_QUEUE", "mo.in")], "OUTPUT_QUEUE"),
        (&[("CONSUMER_NAME", "a b")], "CONSUMER_NAME"),
        (&[("EXECUTOR_TYPE", "Other")], "EXECUTOR_TYPE"),
        (&[("MESSAGE_BUS_TYPE", "Kafka")], "MESSAGE_BUS_TYPE"),
        (&[("MULTIPLE_OUTPUT", "maybe")], "MULTIPLE_OUTPUT"),
        (&[("INHERIT_ENV", "A,B=c")], "INHERIT_ENV"),
        (&[("METRICS_PORT", "0")], "METRICS_PORT"),
        (
            &[("METRICS_PORT", "8888"), ("METRICS_BIND", "eth0")],
            "METRICS_BIND",
        ),
        (&[("MAX_DELIVER", "0")], "MAX_DELIVER"),
        (&[("STRATEGY", "Random")], "STRATEGY"),
        (
            &[("STRATEGY", "Match"), ("NUM_INPUTS", "1000000")],
            "NUM_INPUTS",
        ),
        (
            &[("STRATEGY", "Sequential"), ("NEXT_BLOCK", "-1")],
            "NEXT_BLOCK",
        ),
        (&[("STRATEGY", "Block")], "L1_RPC"),
        (
            &[("STRATEGY", "Block"), ("L1_RPC", "https://me:secret@x/")],
            "L1_RPC",
        ),
        (
            &[
                ("STRATEGY", "Block"),
                ("L1_RPC", "http://x"),
                ("NUM_INPUTS", "2"),
            ],
            "NUM_INPUTS",
        ),
    ] {
        let error = read(variables).unwrap_err();
        assert_eq!(error.variable, variable, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert_eq!(
        read(&[("INPUT_QUEUE", "")])
            .unwrap()
            .program()
            .unwrap_err()
            .variable,
        "INPUT_QUEUE"
    );
}

proptest! {
    #[test]
    fn no_text_panics(values in proptest::collection::vec("\\PC{0,20}|-?[0-9]{0,25}|[a-zA-Z]{0,10}", 21)) {
        const NAMES: [&str; 21] = [
            "NATS_URL", "INPUT_STREAM", "OUTPUT_STREAM", "INPUT_QUEUE", "OUTPUT_QUEUE",
            "CONSUMER_NAME", "ONE_CONSUMER_PER_SUBJECT", "ACK_WAIT", "MAX_DELIVER", "METRICS_PORT",
            "METRICS_BIND", "BINARY", "MULTIPLE_OUTPUT", "STRATEGY", "NUM_INPUTS", "GROUPING_FIELD", "NEXT_BLOCK",
            "SINGLE_OUTPUT", "COLLECT_TIMEOUT_PERIOD_MILLIS", "L1_RPC", "EXECUTOR_TYPE",
        ];
        for only in NAMES {
            let of = |name: &str| {
                let index = NAMES.iter().position(|known| *known == name)?;
                // One variable has any value and the others are valid, so that every check is reached.
                let anything = Some(values[index].clone());
                match name {
                    _ if name == only => anything,
                    "NATS_URL" => Some("nats://x".to_owned()),
                    "INPUT_STREAM" => Some("s".to_owned()),
                    "STRATEGY" if only == "L1_RPC" => Some("Block".to_owned()),
                    "STRATEGY" => Some("Match".to_owned()),
                    "NUM_INPUTS" if only != "L1_RPC" => Some("2".to_owned()),
                    _ => None,
                }
            };
            let _ = Environment::read(of);
        }
    }
}
