//! Dispatchers.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use async_nats::jetstream;

use crate::support::{DRAINS, Deployment, Role, STREAM, scrape, scrape_at, subject};

const ECHO: &str = r#"sleep 0.05; printf '{"who":"%s","block":%s}' "$WHO" "$input" > "$out""#;

fn blocks(payloads: &[String]) -> BTreeSet<&str> {
    payloads
        .iter()
        .map(|payload| {
            payload
                .split("\"block\":")
                .nth(1)
                .unwrap()
                .trim_end_matches('}')
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dispatchers_with_equal_names_or_without_names_share_the_work() {
    for name in ["prover", ""] {
        let deployment = Deployment::start().await;
        // Neither gets ahead of the other with its first three blocks, even if one has no processor.
        let program = deployment.program(
            "echo.sh",
            &format!(
                r#"echo "$input" >> "$DIR/$WHO"
                runs=$(wc -l < "$DIR/$WHO")
                if [ "$WHO" = a ]; then other=b; else other=a; fi
                while [ "$runs" -le 3 ] && [ "$(cat "$DIR/$other" 2>/dev/null | wc -l)" -lt "$runs" ]; do
                    sleep 0.05
                done
                {ECHO}"#
            ),
        );
        let start = |who| {
            let variables = [
                ("INPUT_QUEUE", "blocks"),
                ("OUTPUT_QUEUE", "proofs"),
                ("CONSUMER_NAME", name),
                ("WHO", who),
            ];
            deployment.dispatcher(&program, &variables)
        };
        let _roles = [start("a"), start("b")];
        deployment
            .until("the stream is there", async || {
                deployment.context.get_stream(STREAM).await.is_ok()
            })
            .await;
        for block in 0..30 {
            deployment.publish("blocks", block.to_string()).await;
        }
        let payloads = deployment.payloads("proofs", 30).await;
        assert_eq!(payloads.len(), 30, "each block once: {payloads:?}");
        assert_eq!(blocks(&payloads).len(), 30);
        for who in ["a", "b"] {
            let share = payloads
                .iter()
                .filter(|payload| payload.contains(&format!("\"{who}\"")))
                .count();
            assert!(share >= 3, "{who} did {share} of 30");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn distinct_names_each_get_every_message() {
    let deployment = Deployment::with_stream().await;
    let program = deployment.program("echo.sh", ECHO);
    let start = |who| {
        let variables = [
            ("INPUT_QUEUE", "blocks"),
            ("OUTPUT_QUEUE", "proofs"),
            ("CONSUMER_NAME", who),
            ("WHO", who),
        ];
        deployment.dispatcher(&program, &variables)
    };
    let _roles = [start("sp1"), start("risc0"), start("zisk")];
    for block in 0..8 {
        deployment.publish("blocks", block.to_string()).await;
    }
    let payloads = deployment.payloads("proofs", 24).await;
    assert_eq!(payloads.iter().collect::<BTreeSet<_>>().len(), 24);
    assert_eq!(payloads.len(), 24);
}

/// The dispatcher `who` on the consumer `prover`, with a program that hangs for a dispatcher named `victim`.
/// Others run for longer than the shortest ACK_WAIT below.
fn prover(deployment: &Deployment, who: &str, ack_wait: Duration) -> Role {
    let program = deployment.program(
        &format!("slow-{who}.sh"),
        r#"echo "$WHO" >> "$DIR/runs"
        if [ "$WHO" = victim ]; then sleep 600; fi
        sleep 2.5; printf '{"who":"%s","block":%s}' "$WHO" "$input" > "$out""#,
    );
    let ack_wait = format!("{}s", ack_wait.as_secs());
    let variables = [
        ("INPUT_QUEUE", "blocks"),
        ("OUTPUT_QUEUE", "proofs"),
        ("CONSUMER_NAME", "prover"),
        ("ACK_WAIT", ack_wait.as_str()),
        ("WHO", who),
    ];
    deployment.dispatcher(&program, &variables)
}

/// A deployment with one message, a dispatcher whose program hangs, and an idle one. `None` if the second
/// one was given the message although the first one ran for two and a half ACK_WAITs.
async fn left_alone(ack_wait: Duration) -> Option<(Deployment, Role, Role)> {
    let deployment = Deployment::with_stream().await;
    deployment.publish("blocks", "7").await;
    let victim = prover(&deployment, "victim", ack_wait);
    let runs = deployment.directory.path().join("runs");
    deployment.until("it runs", async || runs.exists()).await;
    let heir = prover(&deployment, "heir", ack_wait);
    tokio::time::sleep(ack_wait * 5 / 2).await;
    let ran = std::fs::read_to_string(&runs).unwrap();
    (ran == "victim\n").then_some((deployment, victim, heir))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_dispatcher_loses_nothing_and_a_long_program_is_left_alone() {
    // The acknowledgement deadline is extended while the program runs, so no other dispatcher gets the
    // block. A dispatcher that the machine gives no time for ACK_WAIT looks dead, so longer ones are tried too.
    let mut found = None;
    let mut ack_wait = Duration::from_secs(1);
    for seconds in [1, 7, 25] {
        ack_wait = Duration::from_secs(seconds);
        found = left_alone(ack_wait).await;
        if found.is_some() {
            break;
        }
    }
    let (deployment, mut victim, mut heir) = found.expect("a long program is left alone");
    let runs = deployment.directory.path().join("runs");
    victim.kill();
    let payloads = deployment.payloads("proofs", 1).await;
    assert_eq!(payloads, [r#"{"who":"heir","block":7}"#]);
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "victim\nheir\n");
    deployment.until_held("prover", 0).await;
    heir.terminate();
    assert!(heir.ended().await.success());

    // The next dispatcher on this machine kills the program that the killed one left behind.
    let _next = prover(&deployment, "next", ack_wait);
    let left = || {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|process| {
                let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
                let environ = String::from_utf8_lossy(&environ);
                environ.contains("WHO=victim")
                    && environ.contains("PROOFMILL_SCRATCH=")
                    && environ.contains(deployment.directory.path().to_str().unwrap())
            })
    };
    deployment
        .until("what was left behind ended", async || !left())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_becomes_many_messages_and_a_repeat_none() {
    let deployment = Deployment::with_stream().await;
    let program = deployment.program(
        "split.sh",
        r#"printf '[{"block":%s,"step_id":"a"}, {"block":%s,"step_id":"b"} , 3]' "$input" "$input" > "$out""#,
    );
    let port = proofmill_nats_server::free_port().to_string();
    let variables = [
        ("INPUT_QUEUE", "blocks"),
        ("OUTPUT_QUEUE", "steps"),
        ("CONSUMER_NAME", "splitter"),
        ("MULTIPLE_OUTPUT", "1"),
        ("METRICS_PORT", port.as_str()),
    ];
    let mut splitter = deployment.dispatcher(&program, &variables);
    deployment.publish("blocks", "1").await;
    deployment.publish("blocks", "2").await;
    let expected = [
        "3",
        "3",
        r#"{"block":1,"step_id":"a"}"#,
        r#"{"block":1,"step_id":"b"}"#,
        r#"{"block":2,"step_id":"a"}"#,
        r#"{"block":2,"step_id":"b"}"#,
    ];
    assert_eq!(deployment.payloads("steps", 6).await, expected);
    // A message counts as completed a moment after its outputs are in their queue.
    let port = port.parse().unwrap();
    for line in ["completed_total", "received_total"] {
        let line = format!("proofmill_push0_{line}{{role=\"dispatcher\",consumer=\"splitter\"}} 2");
        deployment
            .until_shown(port, |shown| shown.starts_with(&line))
            .await;
    }
    // A new consumer knows of no acknowledgement: every message is processed again, and stored once.
    splitter.kill();
    let stream = deployment.context.get_stream(STREAM).await.unwrap();
    stream.delete_consumer("splitter").await.unwrap();
    let _splitter = deployment.dispatcher(&program, &variables);
    deployment
        .until("it did", async || {
            let info = stream.consumer_info("splitter").await;
            info.is_ok_and(|info| info.ack_floor.consumer_sequence == 2)
        })
        .await;
    assert_eq!(deployment.payloads("steps", 6).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn permanent_failures_go_to_the_dead_letters_with_a_reason() {
    let deployment = Deployment::with_stream().await;
    let program = deployment.program(
        "fail.sh",
        r#"case "$input" in
        65) echo "no such block" >&2; exit 65 ;;
        1) echo "flaky" >&2; exit 1 ;;
        2) printf 'not json' > "$out" ;;
        *) printf '%s' "$input" > "$out" ;;
        esac"#,
    );
    let variables = [
        ("INPUT_QUEUE", "blocks"),
        ("OUTPUT_QUEUE", "proofs"),
        ("MAX_DELIVER", "2"),
    ];
    let _role = deployment.dispatcher(&program, &variables);
    for payload in ["65", "1", "2", "{\"block\":9}", "\u{1}not json at all"] {
        deployment.publish("blocks", payload).await;
    }
    let mut dead = deployment.read("proofs.dlq", 4).await;
    dead.sort_by(|one, two| one.payload.cmp(&two.payload));
    let told = |index: usize, name: &str| {
        let letter: &crate::support::Stored = &dead[index];
        letter.headers.get(name).unwrap().as_str().to_owned()
    };
    assert_eq!(dead.len(), 4);
    // Input that is not JSON is left to the program; its output must be JSON.
    assert_eq!(dead[0].payload, "\u{1}not json at all");
    assert_eq!(dead[1].payload, "1");
    assert!(
        told(1, "Proofmill-Error").contains("flaky"),
        "{}",
        told(1, "Proofmill-Error")
    );
    assert_eq!(told(1, "Proofmill-Deliveries"), "2");
    assert!(told(2, "Proofmill-Error").contains("not JSON"));
    assert!(told(3, "Proofmill-Error").contains("no such block"));
    assert_eq!(told(3, "Proofmill-Deliveries"), "1");
    assert_eq!(told(3, "Proofmill-Queue"), subject("blocks"));
    assert_eq!(deployment.payloads("proofs", 1).await, ["{\"block\":9}"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_finishes_what_runs_and_takes_nothing_new() {
    let deployment = Deployment::with_stream().await;
    let program = deployment.program(
        "slow.sh",
        r#"touch "$DIR/began"
        until [ -e "$DIR/go" ]; do sleep 0.05; done
        printf '%s' "$input" > "$out""#,
    );
    let variables = [
        ("INPUT_QUEUE", "blocks,more"),
        ("OUTPUT_QUEUE", "proofs"),
        ("CONSUMER_NAME", "prover"),
    ];
    let mut role = deployment.dispatcher(&program, &variables);
    deployment.publish("more", "1").await;
    deployment.publish("blocks", "2").await;
    let began = deployment.directory.path().join("began");
    deployment.until("it runs", async || began.exists()).await;
    role.terminate();
    deployment
        .until("it drains", async || role.log().contains(DRAINS))
        .await;
    std::fs::write(deployment.directory.path().join("go"), "").unwrap();
    assert!(role.ended().await.success(), "{}", role.log());
    assert_eq!(deployment.payloads("proofs", 1).await, ["1"]);
    // The other message is available to the next dispatcher at once.
    let _next = deployment.dispatcher(&program, &variables);
    assert_eq!(deployment.payloads("proofs", 2).await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_streams_are_used_as_they_are_or_refused() {
    let deployment = Deployment::start().await;
    let program = deployment.program("echo.sh", ECHO);
    let config = jetstream::stream::Config {
        name: STREAM.to_owned(),
        subjects: vec![subject("blocks"), subject("proofs")],
        ..Default::default()
    };
    deployment.context.create_stream(config).await.unwrap();
    let variables = [("INPUT_QUEUE", "blocks"), ("OUTPUT_QUEUE", "elsewhere")];
    let mut refused = deployment.dispatcher(&program, &variables);
    assert!(!refused.ended().await.success());
    assert!(
        refused
            .log()
            .contains("nats stream edit modularorchestrator --subjects"),
        "{}",
        refused.log()
    );

    let variables = [
        ("INPUT_QUEUE", "blocks"),
        ("OUTPUT_QUEUE", "proofs"),
        ("ONE_CONSUMER_PER_SUBJECT", "true"),
        ("CONSUMER_NAME", "prover"),
    ];
    let _role = deployment.dispatcher(&program, &variables);
    deployment.publish("blocks", "5").await;
    assert_eq!(deployment.payloads("proofs", 1).await.len(), 1);
    let stream = deployment.context.get_stream(STREAM).await.unwrap();
    assert_eq!(stream.cached_info().config.subjects.len(), 2);
    assert!(
        stream
            .consumer_info("prover-modularorchestrator_blocks")
            .await
            .is_ok()
    );
    // The dead letters have a stream of their own.
    assert!(
        deployment
            .context
            .get_stream("modularorchestrator_dlq")
            .await
            .is_ok()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_kills_dispatchers_is_not_delivered_for_ever() {
    let deployment = Deployment::with_stream().await;
    let program = deployment.program("hang.sh", r#"touch "$DIR/began"; sleep 600"#);
    let variables = [
        ("INPUT_QUEUE", "blocks"),
        ("OUTPUT_QUEUE", "proofs"),
        ("MAX_DELIVER", "1"),
        ("ACK_WAIT", "500ms"),
    ];
    let mut victim = deployment.dispatcher(&program, &variables);
    deployment.publish("blocks", "7").await;
    let began = deployment.directory.path().join("began");
    deployment.until("it runs", async || began.exists()).await;
    victim.kill();
    let _heir = deployment.dispatcher(&program, &variables);
    let dead = deployment.read("proofs.dlq", 1).await;
    assert_eq!(dead[0].payload, "7");
    let error = dead[0].headers.get("Proofmill-Error").unwrap().as_str();
    assert!(error.contains("died"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_the_program_keeps_its_message_until_it_is_there() {
    let deployment = Deployment::with_stream().await;
    let program = deployment.program("later.sh", "exit 1");
    let variables = [
        ("INPUT_QUEUE", "blocks"),
        ("OUTPUT_QUEUE", "proofs"),
        ("MAX_DELIVER", "1"),
        ("ACK_WAIT", "500ms"),
    ];
    let role = deployment.dispatcher(&program, &variables);
    deployment
        .until("it is ready", async || role.log().contains("ready, reads"))
        .await;
    std::fs::remove_file(&program).unwrap();
    deployment.publish("blocks", "7").await;
    deployment
        .until("it said so", async || role.log().contains("does not exist"))
        .await;
    deployment.program("later.sh", r#"printf '%s' "$input" > "$out""#);
    assert_eq!(deployment.payloads("proofs", 1).await, ["7"]);
    assert!(deployment.look("proofs.dlq").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_is_waited_for() {
    let mut deployment = Deployment::with_stream().await;
    let program = deployment.program(
        "slow.sh",
        r#"touch "$DIR/began"; sleep 1; printf '{"group_id":1,"block":%s}' "$input" > "$out""#,
    );
    let variables = [("INPUT_QUEUE", "blocks"), ("OUTPUT_QUEUE", "proofs")];
    let _dispatcher = deployment.dispatcher(&program, &variables);
    let _collector = deployment.role(
        "collector",
        &[
            ("INPUT_QUEUE", "proofs"),
            ("OUTPUT_QUEUE", "pairs"),
            ("STRATEGY", "Match"),
            ("NUM_INPUTS", "3"),
            ("ACK_WAIT", "2s"),
        ],
    );
    for block in 1..=3 {
        deployment.publish("blocks", block.to_string()).await;
    }
    let began = deployment.directory.path().join("began");
    deployment.until("it runs", async || began.exists()).await;
    deployment.nats.restart();
    let pairs = deployment.payloads("pairs", 1).await;
    assert_eq!(pairs.len(), 1);
    for block in 1..=3 {
        assert!(
            pairs[0].contains(&format!("\"block\":{block}")),
            "{pairs:?}"
        );
    }
    assert_eq!(deployment.look("proofs").await.len(), 3);
}

/// A container is reached by an address of its own, not by loopback. All of 127.0.0.0/8 are addresses of
/// this machine, and a listener on 127.0.0.1 has only one of them.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_reached_by_every_address_unless_one_is_named() {
    let deployment = Deployment::with_stream().await;
    let program = deployment.program("same.sh", r#"printf '%s' "$input" > "$out""#);
    for (bind, elsewhere) in [("", true), ("0.0.0.0", true), ("127.0.0.1", false)] {
        let port = proofmill_nats_server::free_port();
        let shown = port.to_string();
        let variables = [
            ("INPUT_QUEUE", "blocks"),
            ("OUTPUT_QUEUE", "proofs"),
            ("METRICS_PORT", shown.as_str()),
            ("METRICS_BIND", bind),
        ];
        let role = deployment.dispatcher(&program, &variables);
        deployment
            .until("it serves metrics", async || scrape(port).await.is_some())
            .await;
        assert_eq!(
            scrape_at("127.0.0.2", port).await.is_some(),
            elsewhere,
            "{bind:?}"
        );
        deployment
            .until("it says where", async || role.log().contains("/metrics"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_reported_before_any_message() {
    let deployment = Deployment::with_stream().await;
    let queues = [("INPUT_QUEUE", "blocks"), ("OUTPUT_QUEUE", "proofs")];
    let missing = deployment.directory.path().join("missing");
    let plain = deployment.directory.path().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    for (binary, part) in [
        (missing.as_path(), "expected an existing program"),
        (Path::new("no-such-program"), "or a name in PATH"),
        (&plain, "chmod +x"),
    ] {
        let mut role = deployment.dispatcher(binary, &queues);
        assert!(!role.ended().await.success());
        let log = role.log();
        assert!(log.contains("BINARY holds") && log.contains(part), "{log}");
    }
    let mut role = deployment.dispatcher(Path::new("true"), &queues);
    deployment
        .until("it is ready", async || {
            role.log()
                .contains("ready, reads modularorchestrator.blocks")
        })
        .await;
    role.terminate();
    assert!(role.ended().await.success(), "{}", role.log());
}
