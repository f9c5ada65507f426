//! Tests of an engine's status, events, metrics and reflection.

use std::collections::HashSet;
use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use proofmill_api::engine::proto::event::Kind;
use proofmill_api::engine::proto::{JobState, StreamEventsRequest, Tier};
use proofmill_api::engine::timeline::{Timeline, trace, waterfall};
use serde_json::Value;
use tokio::net::TcpStream;
use tonic::transport::Endpoint;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::engines::{BN254, options};
use crate::site::{Offer, Site, request};

async fn get(site: &Site, path: &str) -> (u16, String) {
    get_with(site, path, &[("host", "localhost")]).await
}

async fn get_with(site: &Site, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let answer = answer(site.http.unwrap(), path, headers).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn answer(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
) -> hyper::Response<Incoming> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut request = hyper::Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
    sender.send_request(request).await.unwrap()
}

/// The console is for its own pages on this machine, shows the engine live, and does not keep it from ending.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_shows_an_engine_to_its_own_pages() {
    let site = Site::with(options(), Offer::http()).await;
    let client = site.client().await;
    client.prove(request("1", BN254, 7), None).await.unwrap();
    let address = site.console.unwrap();
    let host = address.to_string();
    let own = [("host", &*host)];
    let page = answer(address, "/", &own).await;
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(answer(address, "/engine.js", &own).await.status(), 200);
    let drawing = answer(address, "/timeline.svg", &own).await;
    assert_eq!(drawing.headers()["content-type"], "image/svg+xml");
    let mut events = answer(address, "/api/events", &own).await.into_body();
    let first = events.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let data = first.lines().find_map(|line| line.strip_prefix("data: "));
    let seen: Value = serde_json::from_str(data.unwrap()).unwrap();
    assert_eq!(seen["recent"][0]["state"], "done");
    assert_eq!(seen["circuits"][0]["tier"], "hot");
    assert_eq!(seen["stages"][2]["stage"], "prove");

    let rebound = [("host", "evil.example")];
    let forged = [own[0], ("origin", "http://evil.example")];
    for headers in [&rebound[..], &forged] {
        for path in ["/", "/api/events", "/timeline.svg"] {
            assert_eq!(answer(address, path, headers).await.status(), 403, "{path}");
        }
    }
    // The page that watches is still there.
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_events_metrics_and_timeline_show_a_job() {
    let site = Site::with(options(), Offer::http()).await;
    let client = site.client().await;
    let result = client.prove(request("1", BN254, 7), None).await.unwrap();
    let status = client.status().await.unwrap();
    assert_eq!(status.recent[0].id, result.job);
    assert_eq!(status.counts.unwrap().done, 1);
    assert_eq!(status.circuits[0].tier(), Tier::Hot);
    let budget = status.budget.unwrap();
    let owned: u64 = budget.owners.iter().map(|it| it.bytes).sum();
    assert_eq!((owned, budget.total), (budget.used, 1 << 30));

    // Events come after the answer: the job's last one ends the stream here.
    let all = StreamEventsRequest {
        past: true,
        end: false,
        job: result.job.clone(),
    };
    let mut stream = client.events(all).await.unwrap();
    let mut stages = HashSet::new();
    loop {
        let event = stream.message().await.unwrap().unwrap();
        match event.kind {
            Some(Kind::Ended(ended)) => {
                stages.insert(ended.stage);
            }
            Some(Kind::Job(job)) if job.state() == JobState::Done => break,
            _ => {}
        }
    }
    assert_eq!(stages.len(), 5);
    let timeline = Timeline::of(&client.past_events().await.unwrap());
    assert_eq!((timeline.rows.len(), timeline.missed), (1, 0));
    assert!(waterfall(&timeline, 10).contains(&BN254.name()[..12]));
    assert!(trace(&timeline).contains("traceEvents"));

    let (code, page) = get(&site, "/metrics").await;
    assert_eq!(code, 200);
    for line in [
        "proofmill_engine_jobs_ended_total{outcome=\"done\"} 1",
        "proofmill_engine_stage_partitions_total{stage=\"verify\"} 1",
        &format!(
            "proofmill_engine_stage_seconds_count{{circuit=\"{}\",stage=\"prove\"}} 1",
            BN254.name()
        ),
        "proofmill_engine_job_seconds_count{priority=\"normal\",outcome=\"done\"} 1",
    ] {
        assert!(page.contains(line), "no {line} in {page}");
    }
    let (code, shown) = get(&site, "/status").await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, &shown["recent"][0]["state"]), (200, &"done".into()));
    assert_eq!(shown["circuits"][0]["tier"], "hot");
    let (code, shown) = get(&site, "/timeline").await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(code, 200);
    assert!(shown["traceEvents"].as_array().unwrap().len() > 10);
    assert_eq!(get(&site, "/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(get(&site, "/elsewhere").await.0, 404);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_gave_this_machine_its_name_reads_nothing() {
    let site = Site::with(options(), Offer::http()).await;
    for path in ["/status", "/timeline", "/metrics", "/healthz"] {
        for headers in [
            &[("host", "evil.example:9465")][..],
            &[("host", "localhost.evil.example")],
            &[("host", "localhost"), ("origin", "http://localhost:9465")],
            &[],
        ] {
            let (status, said) = get_with(&site, path, headers).await;
            assert_eq!(status, 403, "{path} {headers:?}: {said}");
        }
        for host in ["localhost:9465", "127.0.0.1:9465", "[::1]:9465"] {
            assert_eq!(get_with(&site, path, &[("host", host)]).await.0, 200);
        }
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_lists_the_service() {
    let site = Site::with(options(), Offer::loopback()).await;
    let endpoint = Endpoint::from_shared(format!("http://{}", site.tcp.unwrap())).unwrap();
    let mut reflection = ServerReflectionClient::new(endpoint.connect().await.unwrap());
    let question = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let asked = tokio_stream::iter([question]);
    let mut answers = reflection
        .server_reflection_info(asked)
        .await
        .unwrap()
        .into_inner();
    let answer = answers.message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(listed)) = answer.message_response else {
        panic!("{answer:?}");
    };
    let names: HashSet<String> = listed.service.into_iter().map(|it| it.name).collect();
    assert!(
        names.contains("proofmill.engine.v1.ProvingEngine"),
        "{names:?}"
    );
    assert!(names.contains("grpc.health.v1.Health"), "{names:?}");
    drop(answers);
    site.stop().await;
}
