//! Collectors.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::{Deployment, Role, STREAM};

fn member(group: u64, task: u64) -> String {
    format!(r#"{{"data":{{"block":{group}}},"task_id":"step_{task}","group_id":{group}}}"#)
}

fn matching(deployment: &Deployment, more: &[(&str, &str)]) -> Role {
    let mut variables = vec![
        ("INPUT_QUEUE", "step_proofs"),
        ("OUTPUT_QUEUE", "collected"),
        ("STRATEGY", "Match"),
        ("SINGLE_OUTPUT", "false"),
        ("NUM_INPUTS", "3"),
        ("CONSUMER_NAME", "steps"),
        ("ACK_WAIT", "1500ms"),
    ];
    variables.extend(more);
    deployment.role("collector", &variables)
}

/// Number of emissions of each group. Checks that each has all its members.
fn groups(payloads: &[String]) -> BTreeMap<u64, usize> {
    let mut groups = BTreeMap::new();
    for payload in payloads {
        let members: Vec<serde_json::Value> = serde_json::from_str(payload).unwrap();
        let group = members[0]["group_id"].as_u64().unwrap();
        let mut tasks: Vec<&str> = members
            .iter()
            .map(|member| member["task_id"].as_str().unwrap())
            .collect();
        tasks.sort_unstable();
        assert_eq!(tasks, ["step_0", "step_1", "step_2"], "{payload}");
        assert!(
            members.iter().all(|member| member["group_id"] == group),
            "{payload}"
        );
        *groups.entry(group).or_default() += 1;
    }
    groups
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_killed_in_mid_group_emits_each_group_once_after_a_restart() {
    let deployment = Deployment::with_stream().await;
    let mut collector = matching(&deployment, &[]);
    for group in 0..4 {
        deployment.publish("step_proofs", member(group, 0)).await;
        deployment.publish("step_proofs", member(group, 1)).await;
        // The result of a task that ran twice.
        deployment.publish("step_proofs", member(group, 1)).await;
    }
    deployment.until_held("steps", 8).await;
    collector.kill();
    let mut collector = matching(&deployment, &[]);
    deployment.publish("step_proofs", member(0, 2)).await;
    deployment.publish("step_proofs", member(1, 2)).await;
    assert_eq!(groups(&deployment.payloads("collected", 2).await).len(), 2);
    // A collector that is shut down hands back at once the messages that it holds.
    collector.terminate();
    assert!(collector.ended().await.success(), "{}", collector.log());
    let _collector = matching(&deployment, &[]);
    deployment.publish("step_proofs", member(2, 2)).await;
    deployment.publish("step_proofs", member(3, 2)).await;
    let groups = groups(&deployment.payloads("collected", 4).await);
    assert_eq!(groups, (0..4).map(|group| (group, 1)).collect());
    deployment.until_held("steps", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collectors_that_are_killed_all_the_time_still_emit_each_group_once() {
    const GROUPS: u64 = 60;
    let deployment = Deployment::with_stream().await;
    // One works and one stands by; they swap with every kill.
    let mut collectors = [matching(&deployment, &[]), matching(&deployment, &[])];
    let mut kills = 0;
    for task in 0..3 {
        for group in 0..GROUPS {
            deployment.publish("step_proofs", member(group, task)).await;
            if (group + task * 7) % 20 == 0 {
                // At another point of a group's life each time.
                tokio::time::sleep(Duration::from_millis(37 * kills % 400)).await;
                let victim = (kills % 2) as usize;
                collectors[victim].kill();
                collectors[victim] = matching(&deployment, &[]);
                kills += 1;
            }
        }
    }
    let groups = groups(&deployment.payloads("collected", GROUPS as usize).await);
    assert_eq!(groups, (0..GROUPS).map(|group| (group, 1)).collect());
    deployment.until_held("steps", 0).await;
    assert!(deployment.look("collected.dlq").await.is_empty());
}

/// A collector dies after storing a group and before the server has its acknowledgements, and is away for
/// longer than the server recognises repeats. A consumer without acknowledgements delivers everything
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_group_is_recognised_after_a_restart() {
    let deployment = Deployment::start().await;
    let config = async_nats::jetstream::stream::Config {
        name: STREAM.to_owned(),
        subjects: vec![format!("{STREAM}.>")],
        duplicate_window: Duration::from_millis(200),
        ..Default::default()
    };
    deployment.context.create_stream(config).await.unwrap();
    let mut collector = matching(&deployment, &[]);
    for task in 0..3 {
        deployment.publish("step_proofs", member(7, task)).await;
    }
    deployment.read("collected", 1).await;
    collector.kill();
    let stream = deployment.context.get_stream(STREAM).await.unwrap();
    stream.delete_consumer("steps").await.unwrap();
    let _collector = matching(&deployment, &[]);
    deployment.publish("step_proofs", member(8, 0)).await;
    deployment.until_held("steps", 1).await;
    let groups = groups(&deployment.payloads("collected", 1).await);
    assert_eq!(groups, BTreeMap::from([(7, 1)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_put_in_order_also_over_a_restart() {
    let deployment = Deployment::with_stream().await;
    let variables = [
        ("INPUT_QUEUE", "proofs"),
        ("OUTPUT_QUEUE", "ordered"),
        ("STRATEGY", "Sequential"),
        ("CONSUMER_NAME", "order"),
        ("NEXT_BLOCK", "5"),
        ("ACK_WAIT", "1"),
    ];
    let mut collector = deployment.role("collector", &variables);
    for block in [7, 5, 9, 6] {
        deployment
            .publish("proofs", format!("{{\"block\":{block}}}"))
            .await;
    }
    deployment.read("ordered", 3).await;
    collector.kill();
    let _collector = deployment.role("collector", &variables);
    for block in [5, 10, 8] {
        deployment
            .publish("proofs", format!("{{\"block\":{block}}}"))
            .await;
    }
    let stored = deployment.read("ordered", 6).await;
    let payloads: Vec<&str> = stored.iter().map(|stored| &*stored.payload).collect();
    let expected: Vec<String> = (5..=10)
        .map(|block| format!("{{\"block\":{block}}}"))
        .collect();
    assert_eq!(payloads, expected);
    let dead = deployment.read("ordered.dlq", 1).await;
    assert_eq!(dead.len(), 1);
    // The next block depends on the order in which messages are delivered again.
    let error = dead[0].headers.get("Proofmill-Error").unwrap().as_str();
    let is_early = (8..=11).any(|next| error.contains(&format!("before block {next},")));
    assert!(is_early, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_joined_with_their_proofs() {
    let deployment = Deployment::with_stream().await;
    for (queue, single, expected) in [
        (
            "one",
            "true",
            r#"{"block":7,"proofs":[{"block":7,"prover":"a"},{"block":7,"prover":"b"}]}"#,
        ),
        (
            "list",
            "false",
            r#"[7,{"block":7,"prover":"a"},{"block":7,"prover":"b"}]"#,
        ),
    ] {
        let variables = [
            ("INPUT_QUEUE", "block_proofs,blocks"),
            ("OUTPUT_QUEUE", queue),
            ("STRATEGY", "Proof"),
            ("NUM_INPUTS", "2"),
            ("SINGLE_OUTPUT", single),
            ("ONE_CONSUMER_PER_SUBJECT", "1"),
            // As in the demo, and much shorter than proving takes; no message is lost by it.
            ("COLLECT_TIMEOUT_PERIOD_MILLIS", "200"),
        ];
        let _collector = deployment.role("collector", &variables);
        if single == "true" {
            deployment.publish("blocks", "7").await;
            deployment
                .publish("block_proofs", r#"{"block":7,"prover":"a"}"#)
                .await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            deployment
                .publish("block_proofs", r#"{"block":7,"prover":"b"}"#)
                .await;
        }
        let stored = deployment.read(queue, 1).await;
        assert_eq!(stored.len(), 1);
        assert_eq!(stored[0].payload, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_no_group_go_to_the_dead_letters() {
    let deployment = Deployment::with_stream().await;
    let more = [
        ("COLLECT_TIMEOUT_PERIOD_MILLIS", "100"),
        ("MAX_DELIVER", "3"),
    ];
    let _collector = matching(&deployment, &more);
    deployment.publish("step_proofs", "{}").await;
    deployment.publish("step_proofs", "}").await;
    deployment.publish("step_proofs", member(1, 0)).await;
    let dead = deployment.read("collected.dlq", 3).await;
    let mut reasons: Vec<&str> = dead
        .iter()
        .map(|dead| dead.headers.get("Proofmill-Error").unwrap().as_str())
        .collect();
    reasons.sort_unstable();
    assert!(
        reasons[0].contains("grouping field") && reasons[1].contains("not JSON"),
        "{reasons:?}"
    );
    assert!(
        reasons[2].contains("COLLECT_TIMEOUT_PERIOD_MILLIS"),
        "{reasons:?}"
    );
    deployment.until_held("steps", 0).await;
}
