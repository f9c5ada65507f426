//! Tests of the intake over gRPC.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use proofmill_api::intake::proto::intake_client::IntakeClient;
use proofmill_api::intake::proto::submit_stream_response::Told;
use proofmill_api::intake::proto::{
    Labels, Outcome, SubmitRequest, SubmitResponse, SubmitStreamRequest,
};
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_types::StatusExt;

use crate::support::{Files, PATIENCE, Site, TOKEN, submission};

async fn channel(site: &Site) -> Channel {
    let address = format!("http://{}", site.address);
    let endpoint = Endpoint::from_shared(address).expect("an address");
    endpoint.connect().await.expect("it listens")
}

async fn client(site: &Site) -> IntakeClient<Channel> {
    IntakeClient::new(channel(site).await)
}

fn message(queue: &str, block: u64, payload: &str) -> SubmitRequest {
    SubmitRequest {
        queue: queue.to_owned(),
        block,
        payload: payload.to_owned().into(),
        ..SubmitRequest::default()
    }
}

/// The outcome of a message.
async fn outcome(
    client: &mut IntakeClient<Channel>,
    message: SubmitRequest,
) -> Result<Outcome, Status> {
    let answer = client.submit(message).await?;
    Ok(answer.into_inner().outcome())
}

#[track_caller]
fn assert_status<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, why: &str) -> Status {
    let status = answer.expect_err("refused");
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(why), "no {why:?} in {status}");
    status
}

#[tokio::test]
async fn the_status_code_reports_the_outcome_of_a_message() {
    let site = Site::open(|_| {}).await;
    let mut calls = client(&site).await;
    let first = message("in", 4, r#"{"group": 7}"#);
    assert_eq!(
        outcome(&mut calls, first.clone()).await.ok(),
        Some(Outcome::Accepted)
    );
    assert_eq!(
        outcome(&mut calls, first).await.ok(),
        Some(Outcome::Duplicate)
    );
    // The same content as over HTTP, where a line may have white space.
    let spaced = message("in", 4, " {\"group\": 7}\n");
    assert_eq!(
        outcome(&mut calls, spaced).await.ok(),
        Some(Outcome::Duplicate)
    );
    let posted = site
        .post("in", r#"{"block": 4, "payload": {"group": 7}}"#)
        .await;
    assert_eq!(posted.status, 200, "{}", posted.body);

    let other = outcome(&mut calls, message("in", 4, r#"{"group": 8}"#)).await;
    assert_status(other, Code::AlreadyExists, "carries something else");
    for why in ["it is in the dead-letter queue", "task gather/5/"] {
        let answer = outcome(&mut calls, message("in", 5, "{}")).await;
        assert_status(answer, Code::FailedPrecondition, why);
    }
    let nowhere = outcome(&mut calls, message("nowhere", 1, "1")).await;
    assert_status(
        nowhere,
        Code::NotFound,
        "it has few, proofs, in, groups, gathered",
    );
    let span = SubmitRequest {
        last: Some(9),
        part: Some("a".to_owned()),
        requires: Some(Labels {
            labels: vec!["gpu".to_owned()],
        }),
        ..message("groups", 6, "[1]")
    };
    assert_eq!(
        outcome(&mut calls, span.clone()).await.ok(),
        Some(Outcome::Accepted)
    );
    let large = message("groups", 10, &format!("{:?}", "x".repeat(5_000_000)));
    assert_eq!(
        outcome(&mut calls, large).await.ok(),
        Some(Outcome::Accepted)
    );
    for (wrong, why) in [
        (message("groups", 1, ""), "`payload` is no JSON: EOF"),
        (message("groups", 1, "1 2"), "trailing"),
        (
            SubmitRequest {
                last: Some(5),
                ..span.clone()
            },
            "below `first`",
        ),
        (
            SubmitRequest {
                part: Some("../x".to_owned()),
                ..span
            },
            "invalid part",
        ),
    ] {
        assert_status(outcome(&mut calls, wrong).await, Code::InvalidArgument, why);
    }
    assert_eq!(site.status().await["live"], 3);

    site.mill.handle().drain().await.expect("it drains");
    let draining = outcome(&mut calls, message("groups", 11, "1")).await;
    let status = assert_status(draining, Code::Unavailable, "drains");
    let wait = status
        .get_details_retry_info()
        .and_then(|it| it.retry_delay);
    assert_eq!(wait, Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn many_messages_are_answered_in_their_order() {
    let site = Site::open(|_| {}).await;
    let mut calls = client(&site).await;
    let messages = (0..300).map(|number| match number % 3 {
        0 => Some(message("groups", number, "1")),
        1 => Some(message("nowhere", number, "1")),
        _ => None,
    });
    let requests = messages.map(|message| SubmitStreamRequest { message });
    let answers = calls.submit_stream(stream::iter(requests)).await;
    let mut answers = answers.expect("answers").into_inner();
    for number in 0..300 {
        let answer = answers.next().await.expect("one for each").expect("no end");
        match (number % 3, answer.told) {
            (0, Some(Told::Taken(SubmitResponse { outcome, .. }))) => {
                assert_eq!(outcome, i32::from(Outcome::Accepted), "{number}");
            }
            (1, Some(Told::Refused(refusal))) => {
                assert_eq!(refusal.code, i32::from(Code::NotFound), "{refusal:?}");
                assert_eq!(refusal.retry_after_ms, None);
            }
            (2, Some(Told::Refused(refusal))) => {
                assert_eq!(
                    refusal.code,
                    i32::from(Code::InvalidArgument),
                    "{refusal:?}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(answers.next().await.is_none());
    assert_eq!(site.status().await["live"], 100);
}

#[tokio::test]
async fn a_full_queue_suggests_a_wait_and_a_client_that_does_not_read_is_not_read_from() {
    let site = Site::open(|options| options.patience = Duration::from_millis(300)).await;
    let mut calls = client(&site).await;
    site.post_until_taken("few", &submission(1, "1")).await;
    let full = outcome(&mut calls, message("few", 2, "2")).await;
    let status = assert_status(full, Code::ResourceExhausted, "the queue is full");
    let wait = status
        .get_details_retry_info()
        .and_then(|it| it.retry_delay);
    assert_eq!(wait, Some(Duration::from_secs(1)));
    assert_eq!(
        status
            .metadata()
            .get("grpc-retry-pushback-ms")
            .expect("a number"),
        "1000"
    );
    // In a stream, the messages after a refused one are still taken.
    let messages = [message("few", 3, "3"), message("few", 0, "0")];
    let requests = messages.map(|message| SubmitStreamRequest {
        message: Some(message),
    });
    let answers = calls.submit_stream(stream::iter(requests)).await;
    let answers: Vec<_> = answers.expect("answers").into_inner().collect().await;
    let [Ok(full), Ok(lower)] = &answers[..] else {
        panic!("{answers:?}")
    };
    let Some(Told::Refused(refusal)) = &full.told else {
        panic!("{full:?}")
    };
    assert_eq!(refusal.code, i32::from(Code::ResourceExhausted));
    assert_eq!(refusal.retry_after_ms, Some(1000));
    if !matches!(lower.told, Some(Told::Taken(_))) {
        // On a loaded machine the patience may end before it is recorded; then it is known.
        let status = site.post_until_taken("few", &submission(0, "0")).await;
        assert_eq!(status, 200, "{lower:?}");
    }
}

#[tokio::test]
async fn too_large_and_malformed_messages_are_refused() {
    let site = Site::open(|_| {}).await;
    let mut calls = client(&site).await;
    let large = message("groups", 1, &" ".repeat((65 << 20) + 1));
    let refused = outcome(&mut calls, large).await;
    assert_status(refused, Code::InvalidArgument, "at most 68157440");
    // A message of another type, whose first field is a number.
    let mut raw = tonic::client::Grpc::new(channel(&site).await);
    raw.ready().await.expect("it listens");
    let path = "/proofmill.mill.v1.Intake/Submit".parse().expect("a path");
    let codec = tonic_prost::ProstCodec::<SubmitResponse, SubmitResponse>::default();
    let request = Request::new(SubmitResponse {
        outcome: 1,
        same: None,
    });
    let refused = raw.unary(request, path, codec).await;
    assert_status(
        refused.map(drop),
        Code::InvalidArgument,
        "SubmitRequest.queue",
    );
    let mut raw = tonic::client::Grpc::new(channel(&site).await);
    raw.ready().await.expect("it listens");
    let path = "/proofmill.mill.v1.Intake/Nothing".parse().expect("a path");
    let codec = tonic_prost::ProstCodec::<SubmitResponse, SubmitResponse>::default();
    let unknown = raw
        .unary(Request::new(SubmitResponse::default()), path, codec)
        .await;
    assert_status(unknown.map(drop), Code::Unimplemented, "");
    assert_eq!(site.status().await["live"], 0);
}

#[tokio::test]
async fn over_tls_calls_need_the_token_and_health_checks_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Files::new(folder.path());
    let site = Site::guarded(&files).await;
    let connect = async |authority: &std::path::Path| {
        let pem = std::fs::read(authority).expect("a file");
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
        let endpoint = Endpoint::from_shared(format!("https://{}", site.address));
        let endpoint = endpoint.expect("an address").tls_config(tls);
        endpoint.expect("settings").connect().await
    };
    assert!(connect(&files.other_authority).await.is_err());
    let channel = connect(&files.authority).await.expect("it is trusted");
    let mut calls = IntakeClient::new(channel.clone());
    let mut with = async |token: Option<&str>| {
        let mut request = Request::new(message("groups", 1, "1"));
        if let Some(token) = token {
            let value: MetadataValue<_> = format!("Bearer {token}").parse().expect("ASCII");
            request.metadata_mut().insert("authorization", value);
        }
        calls
            .submit(request)
            .await
            .map(|answer| answer.into_inner().outcome())
    };
    assert_status(with(None).await, Code::Unauthenticated, "--submit-token");
    let wrong = with(Some("0123456789abcdeF")).await;
    assert_status(wrong, Code::Unauthenticated, "--submit-token");
    assert_eq!(with(Some(TOKEN)).await.ok(), Some(Outcome::Accepted));

    let mut health = HealthClient::new(channel);
    let whole = HealthCheckRequest::default();
    let checked = health.check(whole.clone()).await.expect("an answer");
    assert_eq!(checked.into_inner().status(), ServingStatus::Serving);
    // Only single checks: a watch needs the token.
    for _ in 0..1100 {
        let refused = health.watch(whole.clone()).await;
        assert_status(refused.map(drop), Code::Unauthenticated, "--submit-token");
    }
    let mut question = Request::new(whole.clone());
    let bearer = format!("Bearer {TOKEN}").parse().expect("ASCII");
    question.metadata_mut().insert("authorization", bearer);
    let mut watched = health
        .watch(question)
        .await
        .expect("an answer")
        .into_inner();
    let mut next = async || {
        let status = tokio::time::timeout(PATIENCE, watched.next()).await;
        status
            .expect("in time")
            .expect("one more")
            .expect("a status")
            .status()
    };
    assert_eq!(next().await, ServingStatus::Serving);
    site.stop();
    assert_eq!(next().await, ServingStatus::NotServing);
    drop(watched);
    site.ended().await;
}

#[tokio::test]
async fn reflection_lists_the_service() {
    let site = Site::open(|_| {}).await;
    let mut reflection = ServerReflectionClient::new(channel(&site).await);
    let question = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = reflection.server_reflection_info(stream::iter([question]));
    let mut answers = answers.await.expect("answers").into_inner();
    let answer = answers.next().await.expect("one").expect("no refusal");
    let Some(MessageResponse::ListServicesResponse(listed)) = answer.message_response else {
        panic!("{answer:?}")
    };
    let names: Vec<String> = listed.service.into_iter().map(|it| it.name).collect();
    for name in ["proofmill.mill.v1.Intake", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|it| it == name), "{names:?}");
    }
}

#[tokio::test]
async fn a_token_for_one_queue_is_refused_at_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Files::new(folder.path());
    let tokens = format!("one {TOKEN} queues=in\n");
    std::fs::write(&files.token, tokens).expect("written");
    let site = Site::open(|options| options.tokens = Some(files.token.clone())).await;
    let mut calls = client(&site).await;
    let bearer: MetadataValue<_> = format!("Bearer {TOKEN}").parse().expect("ASCII");
    let with_token = |message: SubmitRequest| {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert("authorization", bearer.clone());
        request
    };
    let payload = r#"{"group": 7}"#;
    for queue in ["groups", "gathered", "proofs"] {
        let refused = calls.submit(with_token(message(queue, 1, payload))).await;
        assert_status(
            refused.map(drop),
            Code::PermissionDenied,
            "its line in the file of tokens has queues=in",
        );
    }
    let taken = calls.submit(with_token(message("in", 1, payload))).await;
    assert_eq!(
        taken.expect("taken").into_inner().outcome(),
        Outcome::Accepted
    );
    // In a stream each message is authorised by itself.
    let messages = ["in", "proofs"].map(|queue| SubmitStreamRequest {
        message: Some(message(queue, 2, r#"{"group": 8}"#)),
    });
    let mut request = Request::new(stream::iter(messages));
    let metadata = request.metadata_mut();
    metadata.insert("authorization", bearer.clone());
    let answers = calls.submit_stream(request).await.expect("answers");
    let answers: Vec<_> = answers.into_inner().collect().await;
    let [Ok(taken), Ok(refused)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert!(matches!(taken.told, Some(Told::Taken(_))), "{taken:?}");
    let Some(Told::Refused(refusal)) = &refused.told else {
        panic!("{refused:?}")
    };
    assert_eq!(refusal.code, i32::from(Code::PermissionDenied));
    assert_eq!(site.status().await["live"], 2);
}
