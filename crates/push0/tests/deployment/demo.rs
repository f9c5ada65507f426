//! The topology of the public Ethproofs demo: a block source, three dispatchers that share the splitting of
//! blocks into ten steps and the proving of steps, a collector of steps, a dispatcher that aggregates, a
//! collector of proofs. Every role is a process, configured as in the demo.

use crate::chain::Node;
use crate::support::Deployment;

/// A script in place of the demo's prover, whose output depends on the input only.
const PROVER: &str = r#"case "$input" in
\[*)
    steps=$(printf '%s' "$input" | grep -o '"task_id":"[a-z_0-9]*"' | sort -u | wc -l)
    block=$(printf '%s' "$input" | sed 's/.*"group_id":\([0-9]*\)}\]$/\1/')
    [ "$steps" -eq 10 ] || { echo "only $steps steps" >&2; exit 65; }
    printf '{"block":%s,"proof":"0xff","prover":"stand-in"}' "$block" > "$out" ;;
\{*)
    block=$(printf '%s' "$input" | sed 's/.*"block":\([0-9]*\).*/\1/')
    step=$(printf '%s' "$input" | sed 's/.*"step_id":"\([a-z_0-9]*\)".*/\1/')
    printf '{"data":{"block":%s,"proof":"0xff","prover":"stand-in"},"task_id":"%s","group_id":%s}' \
        "$block" "$step" "$block" > "$out" ;;
*)
    steps=
    for i in 0 1 2 3 4 5 6 7 8 9; do
        steps="$steps,{\"block\":$input,\"step_id\":\"example_step_$i\",\"payload\":\"tx_${i}_data\"}"
    done
    printf '[%s]' "${steps#,}" > "$out" ;;
esac"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_completes_block_after_block() {
    // No stream exists yet; the first process makes it.
    let deployment = Deployment::start().await;
    let node = Node::start(104).await;
    let prover = deployment.program("prover.sh", PROVER);
    let dispatcher = |input, output, more: &[(&str, &str)]| {
        let mut variables = vec![("INPUT_QUEUE", input), ("OUTPUT_QUEUE", output)];
        variables.extend(more);
        deployment.dispatcher(&prover, &variables)
    };
    let collector = |variables: &[(&str, &str)]| deployment.role("collector", variables);
    let metrics = proofmill_nats_server::free_port().to_string();
    let mut roles = vec![
        collector(&[
            ("INPUT_QUEUE", "unused"),
            ("OUTPUT_QUEUE", "blocks"),
            ("STRATEGY", "Block"),
            ("NUM_INPUTS", "1"),
            ("SINGLE_OUTPUT", "true"),
            ("COLLECT_TIMEOUT_PERIOD_MILLIS", "500"),
            ("L1_RPC", &node.url),
            ("NEXT_BLOCK", "100"),
        ]),
        collector(&[
            ("INPUT_QUEUE", "step_proofs"),
            ("OUTPUT_QUEUE", "collected_step_proofs"),
            ("STRATEGY", "Match"),
            ("SINGLE_OUTPUT", "false"),
            ("NUM_INPUTS", "10"),
        ]),
        dispatcher("collected_step_proofs", "block_proofs", &[]),
        collector(&[
            ("INPUT_QUEUE", "block_proofs,blocks"),
            ("OUTPUT_QUEUE", "completed_proofs"),
            ("STRATEGY", "Proof"),
            ("SINGLE_OUTPUT", "true"),
            ("COLLECT_TIMEOUT_PERIOD_MILLIS", "500"),
            ("NUM_INPUTS", "1"),
            ("METRICS_PORT", &metrics),
        ]),
    ];
    for _ in 0..3 {
        roles.push(dispatcher("blocks", "steps", &[("MULTIPLE_OUTPUT", "1")]));
        roles.push(dispatcher("steps", "step_proofs", &[]));
    }
    deployment.read("completed_proofs", 5).await;
    // The chain grows, and the deployment follows.
    node.extend(5);
    let completed = deployment.payloads("completed_proofs", 10).await;
    let expected: Vec<String> = (100..110)
        .map(|block| {
            format!(
                r#"{{"block":{block},"proofs":[{{"block":{block},"proof":"0xff","prover":"stand-in"}}]}}"#
            )
        })
        .collect();
    assert_eq!(completed, expected);
    assert_eq!(deployment.look("steps").await.len(), 100);
    assert_eq!(deployment.look("step_proofs").await.len(), 100);
    // A group counts a moment after it is in its queue.
    let of_ten = |line: &str| {
        line.contains("groups_emitted_total{role=\"collector\"") && line.ends_with(" 10.0")
    };
    deployment
        .until_shown(metrics.parse().unwrap(), of_ten)
        .await;
    for role in &mut roles {
        role.terminate();
    }
    for role in &mut roles {
        assert!(role.ended().await.success(), "{}", role.log());
    }
}
