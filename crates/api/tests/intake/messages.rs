//! Tests of messages over HTTP and their answers.

use std::time::Duration;

use proofmill_orchestrator::conversation::Target;

use crate::support::{Site, lines, post, submission};

#[tokio::test]
async fn the_http_status_reports_the_outcome_of_a_message() {
    let site = Site::open(|_| {}).await;
    let told = async |queue: &str, body: &str| {
        let answer = site.post(queue, body).await;
        (answer.status, answer.json())
    };
    let (status, said) = told("in", &submission(4, r#"{"group": 7}"#)).await;
    assert_eq!((status, &said["outcome"]), (201, &"accepted".into()));
    let (status, said) = told("in", &submission(4, r#"{"group": 7}"#)).await;
    assert_eq!((status, &said["outcome"]), (200, &"duplicate".into()));
    let (status, said) = told("in", &submission(4, r#"{"group": 8}"#)).await;
    let why = said["error"].as_str().expect("a reason");
    assert_eq!(status, 409, "{said}");
    assert!(why.contains("gather/4/") && why.contains("carries something else"));
    // Without a group it goes to the dead-letter queue, and the second time it is there already.
    let (status, said) = told("in", &submission(5, "{}")).await;
    assert_eq!((status, &said["outcome"]), (422, &"rejected".into()));
    let (status, said) = told("in", &submission(5, "{}")).await;
    assert_eq!((status, &said["outcome"]), (409, &"dead".into()));
    // A span with a part and labels; a payload that is stored as a blob.
    let span = r#"{"first": 6, "last": 9, "part": "a", "requires": ["gpu"], "payload": [1]}"#;
    assert_eq!(told("groups", span).await.0, 201);
    let large = submission(10, &format!("{:?}", "x".repeat(300_000)));
    assert_eq!(told("groups", &large).await.0, 201);

    let (status, said) = told("nowhere", &submission(1, "1")).await;
    assert_eq!(status, 404);
    assert_eq!(
        said["error"],
        "no queue \"nowhere\" in workflow \"taken\"; it has few, proofs, in, groups, gathered"
    );
    for (body, why) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("7", "invalid type"),
        (r#"{"block": 1}"#, "missing field `payload`"),
        (r#"{"block": -1, "payload": 1}"#, "invalid value"),
        (r#"{"first": 2, "last": 1, "payload": 1}"#, "below `first`"),
        (
            r#"{"block": 1, "part": "../x", "payload": 1}"#,
            "invalid part",
        ),
        (
            r#"{"block": 1, "payload": 1, "queue": "in"}"#,
            "unknown field",
        ),
    ] {
        let (status, said) = told("in", body).await;
        let said = said["error"].as_str().expect("a reason");
        assert!(
            status == 400 && said.contains(why),
            "{body}: {status} {said}"
        );
    }
    let answer = site.get("/v1/status").await;
    let status = answer.json();
    assert_eq!(
        (
            answer.status,
            &status["workflow"],
            &status["live"],
            &status["dead"]
        ),
        (200, &"taken".into(), &3.into(), &1.into()),
    );
    let page = site.get("/").await;
    assert!(
        page.status == 200 && page.body.contains("POST /v1/queues/NAME/messages"),
        "{}",
        page.body
    );
    // Operators' requests are not served here.
    for path in ["/v1/queues", "/v1/tasks", "/v1/dead", "/v1/queues/in"] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
    assert_eq!(site.get("/v1/queues/in/messages").await.status, 405);
    assert_eq!(site.post_to("/v1/cancel", "\"all\"").await.status, 404);

    site.mill.handle().drain().await.expect("it drains");
    let answer = site.post("groups", &submission(11, "1")).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
}

#[tokio::test]
async fn many_messages_are_taken_in_one_request() {
    let site = Site::open(|_| {}).await;
    let body = [
        &submission(1, "1"),
        "",
        &submission(1, "1"),
        &submission(1, "2"),
        "{",
        &submission(2, "{\"at\": \"the end\"}"),
    ];
    let answer = site.post_lines("groups", &body.join("\n")).await;
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let said = lines(&answer.body);
    let statuses: Vec<u64> = said
        .iter()
        .map(|line| line["status"].as_u64().expect("a status"))
        .collect();
    assert_eq!(statuses[2..], [409, 400, 201], "{said:?}");
    // The two equal messages may come in either order.
    assert_eq!(statuses[0] + statuses[1], 401, "{said:?}");
    assert_eq!(said[4]["outcome"], "accepted");
    assert!(said[3]["error"].as_str().expect("why").contains("EOF"));

    let body = "1\n".repeat(10_001);
    let answer = site.post_lines("groups", &body).await;
    assert_eq!(answer.status, 413, "{}", answer.body);
    assert_eq!(site.post_lines("groups", "\n \n").await.body, "");
}

#[tokio::test]
async fn a_full_queue_is_reported_and_the_message_keeps_its_place() {
    let site = Site::open(|options| options.patience = Duration::from_millis(300)).await;
    site.post_until_taken("few", &submission(1, "1")).await;
    let answer = site.post("few", &submission(2, "2")).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("1")),
        "{}",
        answer.body
    );
    // A lower block does not wait, since the full queue may be waiting for it.
    site.post_until_taken("few", &submission(0, "0")).await;
    // When there is room, the message that was refused for now is recorded.
    for block in [0, 1] {
        site.mill
            .handle()
            .operator()
            .cancel(Target::Block(block))
            .await
            .expect("it runs");
    }
    site.until("block 2 is live", |status| status["live"] == 1)
        .await;
}

#[tokio::test]
async fn waiting_requests_are_answered_when_the_intake_ends() {
    let site = Site::open(|_| {}).await;
    assert_eq!(site.post("few", &submission(1, "1")).await.status, 201);
    let waiting = {
        let address = site.address;
        tokio::spawn(
            async move { post(address, "/v1/queues/few/messages", &submission(2, "2")).await },
        )
    };
    site.until("it waits", |status| status["producers_waiting"] == 1)
        .await;
    site.stop();
    // New connections are refused, and the old one is answered.
    site.until_refused().await;
    site.mill
        .handle()
        .operator()
        .cancel(Target::Block(1))
        .await
        .expect("it runs");
    assert_eq!(waiting.await.expect("no panic").status, 201);
    site.ended().await;
}
