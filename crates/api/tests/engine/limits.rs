//! Tests of limits.

use futures_util::stream;
use proofmill_api::engine::ClientError;
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::proving_engine_client::ProvingEngineClient;
use proofmill_api::engine::proto::register_request::Source;
use proofmill_api::engine::proto::submit_stream_request::Part;
use proofmill_api::engine::proto::{
    AwaitRequest, CancelRequest, JobState, Partition, RegisterRequest, StreamedWitness,
    SubmitRequest, SubmitStreamRequest,
};
use proofmill_engine::{CircuitSource, Limits, Options};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::engines::{BN254, Chain, Gate, options};
use crate::site::{Offer, Site, assert_refused, check, request};

/// A site with a TCP port on loopback, and a client that can send any message.
async fn with_raw_client(options: Options) -> (Site, ProvingEngineClient<Channel>) {
    let site = Site::with(options, Offer::loopback()).await;
    let address = format!("http://{}", site.tcp.unwrap());
    let channel = Endpoint::from_shared(address)
        .unwrap()
        .connect()
        .await
        .unwrap();
    (site, ProvingEngineClient::new(channel))
}

#[track_caller]
fn assert_status<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, why: &str) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(why), "no {why:?} in {status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_its_quota_gets_a_suggested_wait() {
    let gate = Gate::closed();
    let options = Options {
        interference: Some(gate.clone()),
        limits: Limits {
            jobs_per_client: 2,
            ..Limits::default()
        },
        ..options()
    };
    let site = Site::with(options, Offer::default()).await;
    let client = site.client().await;
    for id in ["1", "2"] {
        client.submit(request(id, BN254, 7)).await.unwrap();
    }
    match client.submit(request("3", BN254, 7)).await {
        Err(ClientError::Refused {
            code: Code::ResourceExhausted,
            retry_after: Some(wait),
            ..
        }) => assert!(!wait.is_zero()),
        other => panic!("{other:?}"),
    }
    // Another client has a quota of its own.
    let other = SubmitRequest {
        client: "other".to_owned(),
        ..request("3", BN254, 7)
    };
    client.submit(other).await.unwrap();
    gate.open();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_never_fits_is_refused_with_its_need() {
    let options = Options {
        memory: Some(1 << 20),
        ..options()
    };
    let site = Site::with(options, Offer::default()).await;
    let client = site.client().await;
    let large = Chain {
        length: 3000,
        ..BN254
    };
    let CircuitSource::Zkey(path) = large.source() else {
        panic!("it is a .zkey");
    };
    let registration = RegisterRequest {
        name: large.name(),
        source: Some(Source::Zkey(path.into_os_string().into_string().unwrap())),
    };
    let refused = client.register(registration).await;
    assert_refused(refused, Code::FailedPrecondition, "MiB of memory");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_its_own_message_size_limit() {
    let (site, mut calls) = with_raw_client(options()).await;
    let mut large = request("1", BN254, 7);
    large.partitions[0].input = Some(Input::Wtns(vec![0; 5 << 20]));
    assert_status(
        calls.submit(large.clone()).await,
        Code::InvalidArgument,
        "SubmitStream",
    );
    assert_status(
        calls.prove(large).await,
        Code::InvalidArgument,
        "SubmitStream",
    );
    let cancel = CancelRequest {
        job: "0".repeat(100 << 10),
        waiting: None,
    };
    assert_status(calls.cancel(cancel).await, Code::InvalidArgument, "65536");
    // The connection still works.
    calls.submit(request("1", BN254, 7)).await.unwrap();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_are_invalid_arguments() {
    let (site, mut calls) = with_raw_client(options()).await;
    let address = format!("http://{}", site.tcp.unwrap());
    let channel = Endpoint::from_shared(address).unwrap().connect().await;
    // A message of another type, whose first field is a number.
    let mut raw = tonic::client::Grpc::new(channel.unwrap());
    raw.ready().await.unwrap();
    let path = "/proofmill.engine.v1.ProvingEngine/Submit".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<StreamedWitness, StreamedWitness>::default();
    let number = tonic::Request::new(StreamedWitness { bytes: 1 });
    let answer = raw.unary(number, path, codec).await;
    assert_status(
        answer.map(drop),
        Code::InvalidArgument,
        "SubmitRequest.client",
    );
    calls.submit(request("1", BN254, 7)).await.unwrap();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_witnesses_are_streamed() {
    let (site, mut calls) = with_raw_client(options()).await;
    let vector = BN254.vector(7);
    let parts = streaming(&vector, 4, 1000);
    let job = calls
        .submit_stream(stream::iter(parts))
        .await
        .unwrap()
        .into_inner()
        .job;
    let result = calls.r#await(AwaitRequest { job }).await.unwrap();
    let proofs = result.into_inner().proofs;
    assert_eq!(proofs.len(), 4);
    proofs.iter().for_each(|proof| check(BN254, proof, 7));
    // The client streams a witness that is too large for a message; the engine reports that it is
    // malformed.
    let client = site.client().await;
    let mut padded = request("padded", BN254, 7);
    padded.partitions[0].input = Some(Input::Vector(vec![0; 5 << 20]));
    let job = client.submit(padded).await.unwrap().job;
    let result = client.await_result(&job).await.unwrap();
    assert_eq!(result.state(), JobState::Failed, "{}", result.failure);
    site.stop().await;
}

/// A stream of `count` partitions with that witness, in chunks.
fn streaming(vector: &[u8], count: usize, chunk: usize) -> Vec<SubmitStreamRequest> {
    let streamed = StreamedWitness {
        bytes: vector.len() as u64,
    };
    let partition = Partition {
        circuit: BN254.name(),
        input: Some(Input::Streamed(streamed)),
    };
    let job = SubmitRequest {
        request_id: "streamed".to_owned(),
        partitions: vec![partition; count],
        ..SubmitRequest::default()
    };
    let chunks = (0..count).flat_map(|_| vector.chunks(chunk));
    let parts = chunks.map(|it| Part::Chunk(it.to_vec()));
    std::iter::once(Part::Job(job))
        .chain(parts)
        .map(|part| SubmitStreamRequest { part: Some(part) })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_differs_from_its_job_is_refused() {
    let options = Options {
        limits: Limits {
            witness_bytes: 20_000,
            ..Limits::default()
        },
        ..options()
    };
    let (site, mut calls) = with_raw_client(options).await;
    let vector = BN254.vector(7);
    let whole = || streaming(&vector, 1, 1000);
    let without_last = whole().into_iter().rev().skip(1).rev().collect::<Vec<_>>();
    let with_more = whole().into_iter().chain(whole().pop()).collect();
    let no_job = whole().into_iter().skip(1).collect();
    let two_jobs = whole().into_iter().take(1).chain(whole()).collect();
    let empty = vec![SubmitStreamRequest { part: None }];
    let too_long = streaming(&vec![0; 30_000], 1, 1000);
    let beyond = {
        let mut parts = whole();
        parts[1].part = Some(Part::Chunk(vec![0; vector.len() + 1]));
        parts
    };
    let too_many = streaming(&vector, 17, 1000);
    let cases: [(Vec<SubmitStreamRequest>, &str); 9] = [
        (without_last, "before its end"),
        (with_more, "more came"),
        (no_job, "is the job"),
        (two_jobs, "second job"),
        (empty, "neither job nor chunk"),
        (Vec::new(), "is the job"),
        (too_long, "20000"),
        (beyond, "were left"),
        (too_many, "at most 16"),
    ];
    for (parts, why) in cases {
        let answer = calls.submit_stream(stream::iter(parts)).await;
        assert_status(answer, Code::InvalidArgument, why);
    }
    // None of them is kept, so there is room for a valid one.
    calls.submit_stream(stream::iter(whole())).await.unwrap();
    let mut inline = streaming(&vector, 1, 1000).remove(0);
    let Some(Part::Job(job)) = inline.part.take() else {
        panic!("the job is first")
    };
    assert_status(
        calls.submit(job).await,
        Code::InvalidArgument,
        "SubmitStream",
    );
    site.stop().await;
}
