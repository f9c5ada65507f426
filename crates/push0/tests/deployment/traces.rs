//! Trace context in the headers of messages.

use async_nats::HeaderMap;

use crate::support::{Deployment, Stored, subject};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

async fn publish(deployment: &Deployment, queue: &str, payload: &str, pairs: &[(&str, &str)]) {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, *value);
    }
    let payload = payload.to_owned().into();
    let published = deployment
        .context
        .publish_with_headers(subject(queue), headers, payload);
    published.await.unwrap().await.unwrap();
}

fn header<'a>(message: &'a Stored, name: &str) -> Option<&'a str> {
    message.headers.get(name).map(|value| value.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatcher_gives_the_context_of_a_message_to_its_program_and_to_its_output() {
    let deployment = Deployment::with_stream().await;
    let script = r#"if [ "$input" = 4 ]; then exit 65; fi
        printf '{"block":%s,"seen":"%s|%s"}' "$input" "$TRACEPARENT" "$TRACESTATE" > "$out""#;
    let program = deployment.program("tells.sh", script);
    let variables = [
        ("INPUT_QUEUE", "blocks"),
        ("OUTPUT_QUEUE", "proofs"),
        ("CONSUMER_NAME", "prover"),
    ];
    let state = format!("rojo=1,long={}", "x".repeat(600));
    let with_state = [("traceparent", CALLER), ("tracestate", "rojo=1,congo=t61")];
    publish(&deployment, "blocks", "1", &with_state).await;
    publish(
        &deployment,
        "blocks",
        "2",
        &[("Traceparent", CALLER), ("Tracestate", &state)],
    )
    .await;
    let malformed = [("traceparent", "00-zz"), ("tracestate", "rojo=1")];
    publish(&deployment, "blocks", "3", &malformed).await;
    publish(&deployment, "blocks", "4", &with_state).await;
    publish(&deployment, "blocks", "5", &[]).await;
    let _dispatcher = deployment.dispatcher(&program, &variables);
    let mut proofs = deployment.read("proofs", 4).await;
    proofs.sort_by(|one, other| one.payload.cmp(&other.payload));
    let expected = [
        (1, Some(CALLER), Some("rojo=1,congo=t61")),
        // The value is longer than any may be: the list is malformed.
        (2, Some(CALLER), None),
        (3, None, None),
        (5, None, None),
    ];
    assert_eq!(proofs.len(), expected.len(), "{proofs:?}");
    for (proof, (block, parent, state)) in proofs.iter().zip(expected) {
        let seen = format!("{}|{}", parent.unwrap_or(""), state.unwrap_or(""));
        let payload = format!(r#"{{"block":{block},"seen":"{seen}"}}"#);
        assert_eq!(proof.payload, payload);
        assert_eq!(header(proof, "traceparent"), parent, "{block}");
        assert_eq!(header(proof, "tracestate"), state, "{block}");
    }
    // Published again from the dead letters, it still belongs to its trace.
    let dead = deployment.read("proofs.dlq", 1).await;
    assert_eq!(dead[0].payload, "4");
    assert_eq!(header(&dead[0], "traceparent"), Some(CALLER));
    assert_eq!(header(&dead[0], "tracestate"), Some("rojo=1,congo=t61"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_continues_the_trace_of_its_first_member_that_has_one() {
    let deployment = Deployment::with_stream().await;
    let member = |task: u64| format!(r#"{{"task_id":"step_{task}","group_id":7}}"#);
    let contexts = [
        &[][..],
        &[("traceparent", CALLER)],
        &[("traceparent", OTHER)],
    ];
    for (task, context) in (0..).zip(contexts) {
        publish(&deployment, "steps", &member(task), context).await;
    }
    let variables = [
        ("INPUT_QUEUE", "steps"),
        ("OUTPUT_QUEUE", "collected"),
        ("STRATEGY", "Match"),
        ("SINGLE_OUTPUT", "false"),
        ("NUM_INPUTS", "3"),
        ("CONSUMER_NAME", "steps"),
    ];
    let _collector = deployment.role("collector", &variables);
    let groups = deployment.read("collected", 1).await;
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(header(&groups[0], "traceparent"), Some(CALLER));
    assert!(header(&groups[0], "Proofmill-Members").is_some());
}
