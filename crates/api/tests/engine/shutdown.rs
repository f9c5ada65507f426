//! Tests of the answers to callers when the engine ends.

use std::time::Duration;

use proofmill_api::engine::proto::StreamEventsRequest;
use proofmill_engine::{Options, Service};
use proofmill_shutdown::Level;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::engines::{BN254, Gate, options, until};
use crate::site::{Offer, Site, assert_refused, request};

/// A limit that is reached only if something is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_wait_are_answered_at_shutdown() {
    let gate = Gate::closed();
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        interference: Some(gate.clone()),
        state_dir: Some(folder.path().join("state")),
        ..options()
    };
    let site = Site::with(options.clone(), Offer::default()).await;
    let client = site.client().await;
    let mut events = client.events(StreamEventsRequest::default()).await.unwrap();
    let job = client.submit(request("1", BN254, 7)).await.unwrap().job;
    let mut begun = site.handle.events();
    let waiting = {
        let (client, job) = (client.clone(), job.clone());
        tokio::spawn(async move { client.await_result(&job).await })
    };
    let proving = {
        let client = client.clone();
        tokio::spawn(async move { client.prove(request("2", BN254, 8), None).await })
    };
    until(&mut begun, |kind| matches!(kind, proofmill_engine::EventKind::Job { job: it, .. } if it.to_string() != job)).await;
    site.raise(Level::Stop);
    gate.open();
    let end = async {
        assert_refused(waiting.await.unwrap(), Code::Unavailable, "goes on");
        assert_refused(proving.await.unwrap(), Code::Unavailable, "goes on");
        let last = loop {
            match events.message().await {
                Ok(Some(_)) => {}
                last => break last,
            }
        };
        assert_eq!(last.unwrap_err().code(), Code::Unavailable);
    };
    tokio::time::timeout(PATIENCE, end)
        .await
        .expect("an answer");
    site.ended().await;

    // Accepted jobs go on when the engine is started again, and the same request is the same job.
    let site = Site::with(
        Options {
            interference: None,
            ..options
        },
        Offer::default(),
    )
    .await;
    let client = site.client().await;
    let again = client.submit(request("1", BN254, 7)).await.unwrap();
    assert_eq!((again.job, again.existing), (job.clone(), true));
    let result = client.await_result(&job).await.unwrap();
    crate::site::check(BN254, &result.proofs[0], 7);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_engine_refuses_jobs_and_reports_not_serving() {
    let gate = Gate::closed();
    let options = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let site = Site::with(options, Offer::loopback()).await;
    let client = site.client().await;
    let endpoint = Endpoint::from_shared(format!("http://{}", site.tcp.unwrap())).unwrap();
    let mut health = HealthClient::new(endpoint.connect().await.unwrap());
    let about = HealthCheckRequest {
        service: "proofmill.engine.v1.ProvingEngine".to_owned(),
    };
    let mut watched = health.watch(about).await.unwrap().into_inner();
    let first = watched.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    let job = client.submit(request("1", BN254, 7)).await.unwrap().job;
    site.raise(Level::Drain);
    let then = watched.message().await.unwrap().unwrap();
    assert_eq!(then.status(), ServingStatus::NotServing);
    // The engine gets the signal together with the front end, not before it.
    let refused = loop {
        match client.submit(request("2", BN254, 8)).await {
            Ok(_) => tokio::task::yield_now().await,
            refused => break refused,
        }
    };
    assert_refused(refused, Code::Unavailable, "shutting down");
    gate.open();
    let result = client.await_result(&job).await.unwrap();
    crate::site::check(BN254, &result.proofs[0], 7);
    drop(watched);
    site.ended().await;
}

#[tokio::test]
async fn an_engine_without_sockets_runs() {
    let (service, handle) = Service::open(options()).await.unwrap();
    let places = proofmill_api::engine::ServerOptions::default();
    let server = proofmill_api::engine::Server::bind(handle, &places)
        .await
        .unwrap();
    let (trigger, shutdown) = proofmill_shutdown::channel();
    trigger.raise(Level::Stop);
    server.run(service, shutdown).await.unwrap();
}
