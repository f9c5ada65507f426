//! Tests of each call.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ark_ec::pairing::Pairing;
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::register_request::Source;
use proofmill_api::engine::proto::{
    JobState, Partition, Priority, RegisterRequest, SubmitRequest, Tier,
};
use proofmill_engine::{CircuitSource, Options};
use proofmill_groth16::Bn254;
use proofmill_groth16::snarkjs::{inputs_from_json, proof_from_json};
use tonic::Code;

use crate::engines::{BLS12_381, BN254, Gate, options};
use crate::site::{Offer, Site, assert_refused, check, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_is_returned_in_every_form_and_verifies() {
    let site = Site::open().await;
    let client = site.client().await;
    let result = client.prove(request("1", BN254, 7), None).await.unwrap();
    assert_eq!(result.state(), JobState::Done);
    let proof = &result.proofs[0];
    check(BN254, proof, 7);
    let again = proof_from_json::<Bn254>(proof.proof_json.as_bytes()).unwrap();
    assert_eq!(again.to_bytes(), proof.proof);
    let public: Vec<<Bn254 as Pairing>::ScalarField> =
        inputs_from_json(proof.public_json.as_bytes()).unwrap();
    assert_eq!(public.len(), proof.public_inputs.len());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_is_the_same_job_and_other_content_is_refused() {
    let site = Site::open().await;
    let client = site.client().await;
    let first = client.submit(request("1", BN254, 7)).await.unwrap();
    assert!(!first.existing);
    let again = client.submit(request("1", BN254, 7)).await.unwrap();
    assert!(again.existing);
    assert_eq!(again.job, first.job);
    let other = client.submit(request("1", BN254, 8)).await;
    assert_refused(other, Code::AlreadyExists, "other content");
    let result = client.await_result(&first.job).await.unwrap();
    check(BN254, &result.proofs[0], 7);
    let job = client.job(&first.job).await.unwrap();
    assert_eq!((job.state(), &*job.client), (JobState::Done, "default"));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_and_ids_are_not_found() {
    let site = Site::open().await;
    let client = site.client().await;
    let nobody = "00".repeat(16);
    assert_refused(client.await_result(&nobody).await, Code::NotFound, &nobody);
    assert_refused(client.cancel(&nobody).await, Code::NotFound, &nobody);
    assert_refused(client.job(&nobody).await, Code::NotFound, &nobody);
    let malformed = client.job("zz").await;
    assert_refused(malformed, Code::InvalidArgument, "32 lower-case");
    let unknown = SubmitRequest {
        partitions: vec![Partition {
            circuit: "nothing".to_owned(),
            input: Some(Input::Vector(vec![0; 32])),
        }],
        ..request("1", BN254, 7)
    };
    assert_refused(client.submit(unknown).await, Code::NotFound, "nothing");
    assert_refused(client.evict("nothing").await, Code::NotFound, "nothing");
    let loaded = client.preload("nothing", Tier::Hot).await;
    assert_refused(loaded, Code::NotFound, "nothing");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_witness_fails_with_the_reason() {
    let site = Site::open().await;
    let client = site.client().await;
    let mut wrong = request("1", BN254, 7);
    wrong.partitions[0].input = Some(Input::Vector(BN254.wrong_vector(7)));
    let refused = client.prove(wrong.clone(), None).await;
    assert_refused(refused, Code::FailedPrecondition, "failed");
    // A caller that awaits the job gets its outcome.
    let job = client.submit(wrong).await.unwrap().job;
    let result = client.await_result(&job).await.unwrap();
    assert_eq!(result.state(), JobState::Failed);
    assert!(!result.failure.is_empty() && result.proofs.is_empty());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_wait_for_a_cancelled_job_are_answered() {
    let gate = Gate::closed();
    let options = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let site = Site::with(options, Offer::default()).await;
    let client = site.client().await;
    let job = client.submit(request("1", BN254, 7)).await.unwrap().job;
    let waiting = {
        let (client, job) = (client.clone(), job.clone());
        tokio::spawn(async move { client.await_result(&job).await })
    };
    client.cancel(&job).await.unwrap();
    let result = waiting.await.unwrap().unwrap();
    assert_eq!(result.state(), JobState::Cancelled);
    let refused = client.prove(request("1", BN254, 7), None).await;
    assert_refused(refused, Code::Cancelled, &job);
    gate.open();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_timeout_is_honoured_and_becomes_the_jobs_deadline() {
    let gate = Gate::closed();
    let options = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let site = Site::with(options, Offer::default()).await;
    let client = site.client().await;
    // Longer after a time in which a loaded machine did not even take the job.
    let mut timeouts = [300, 3_000, 30_000].into_iter().enumerate();
    let job = loop {
        let (attempt, timeout) = timeouts.next().expect("no call became a job");
        let asked = || request(&format!("1-{attempt}"), BN254, 7);
        let timeout = Some(Duration::from_millis(timeout));
        let late = client.prove(asked(), timeout).await;
        assert_refused(late, Code::DeadlineExceeded, "");
        let job = client.submit(asked()).await.unwrap();
        if job.existing {
            break job;
        }
    };
    assert!(client.job(&job.job).await.unwrap().deadline_ms.is_some());
    let result = client.await_result(&job.job).await.unwrap();
    assert_eq!(result.state(), JobState::Expired);

    let past = SystemTime::now() - Duration::from_secs(1);
    let past = past.duration_since(UNIX_EPOCH).unwrap().as_millis();
    let expired = SubmitRequest {
        deadline_ms: Some(u64::try_from(past).unwrap()),
        priority: Priority::Critical.into(),
        ..request("2", BN254, 7)
    };
    let refused = client.prove(expired, None).await;
    assert_refused(refused, Code::DeadlineExceeded, "");
    gate.open();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn circuits_are_registered_listed_and_removed() {
    let site = Site::open().await;
    let client = site.client().await;
    let CircuitSource::System { constraints, key } = BLS12_381.source() else {
        panic!("it is not a .zkey");
    };
    let text = |path: std::path::PathBuf| path.into_os_string().into_string().unwrap();
    let registration = RegisterRequest {
        name: "second".to_owned(),
        source: Some(Source::System(proofmill_api::engine::proto::SystemFiles {
            constraints: text(constraints),
            key: text(key),
        })),
    };
    let circuit = client.register(registration.clone()).await.unwrap();
    assert_eq!((&*circuit.curve, circuit.public_inputs), ("bls12-381", 2));
    assert_eq!(
        client.register(registration.clone()).await.unwrap().id,
        circuit.id
    );
    let names: Vec<String> = client
        .circuits()
        .await
        .unwrap()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, [BN254.name(), "second".to_owned()]);

    let hot = client.preload("second", Tier::Hot).await.unwrap();
    assert_eq!(hot.tier(), Tier::Hot);
    client.pin(&circuit.id, true).await.unwrap();
    assert_refused(
        client.evict("second").await,
        Code::FailedPrecondition,
        "pinned",
    );
    client.pin("second", false).await.unwrap();
    assert!(client.evict("second").await.unwrap() > 0);

    let taken = RegisterRequest {
        name: BN254.name(),
        ..registration.clone()
    };
    assert_refused(client.register(taken).await, Code::AlreadyExists, "taken");
    let near = RegisterRequest {
        source: Some(Source::Zkey("here.zkey".to_owned())),
        ..registration.clone()
    };
    assert_refused(
        client.register(near).await,
        Code::InvalidArgument,
        "absolute",
    );
    let absent = RegisterRequest {
        source: Some(Source::Zkey("/nowhere/at/all.zkey".to_owned())),
        name: "third".to_owned(),
    };
    assert_refused(
        client.register(absent).await,
        Code::FailedPrecondition,
        "all.zkey",
    );
    client.unregister("second").await.unwrap();
    assert_refused(client.unregister("second").await, Code::NotFound, "second");
    site.stop().await;
}
