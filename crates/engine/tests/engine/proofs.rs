//! Proofs: of every kind of circuit, of one partition and of many.

use proofmill_engine::{
    ConstraintsFrom, DeviceKind, Input, JobState, KeyForm, Options, Partition, Secret, Tier,
};
use proofmill_groth16::Curve;
use proofmill_shutdown::Level;

use super::support::{
    BLS12_377, BLS12_381, BN254, Chain, FROM_R1CS, Running, Source, options, submission,
};

#[tokio::test(flavor = "multi_thread")]
async fn circuits_of_every_curve_and_of_every_source_are_proven() {
    let chains = [BN254, BLS12_381, FROM_R1CS, BLS12_377];
    let running = Running::with(options(), &chains).await;
    for (seed, chain) in (0..).zip(chains) {
        running.prove(chain, &chain.name(), seed).await;
    }
    let circuits = running.handle.circuits().await.unwrap();
    let from = |chain: Chain| {
        let found = circuits.iter().find(|circuit| circuit.name == chain.name());
        let circuit = found.unwrap();
        assert_eq!(
            (circuit.tier, circuit.loads, circuit.proofs),
            (Tier::Hot, 1, 1)
        );
        assert!(circuit.measured && circuit.bytes == circuit.hot_bytes);
        assert_eq!(circuit.variables, chain.length as u64 + 3);
        circuit.from
    };
    assert_eq!(from(BN254), ConstraintsFrom::Zkey);
    assert_eq!(from(BLS12_381), ConstraintsFrom::Precompiled);
    assert_eq!(from(FROM_R1CS), ConstraintsFrom::Precompiled);
    assert_eq!(from(BLS12_377), ConstraintsFrom::Precompiled);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proofs_of_many_partitions_are_in_order() {
    let options = Options {
        partition_workers: 4,
        ..options()
    };
    let running = Running::with(options, &[BN254, BLS12_381]).await;
    let chain = |number: u64| {
        if number.is_multiple_of(3) {
            BLS12_381
        } else {
            BN254
        }
    };
    let partitions = (0..10)
        .map(|number| chain(number).partition(number))
        .collect();
    let result = running
        .handle
        .prove(submission("client", "many", partitions))
        .await;
    let result = result.unwrap();
    assert_eq!(result.state, JobState::Done);
    assert_eq!(result.proofs.len(), 10);
    for (number, proof) in (0..).zip(result.proofs.iter()) {
        chain(number).check(proof, number);
    }
    let status = running.handle.status().await.unwrap();
    assert_eq!((status.counts.done, status.counts.retries), (1, 0));
    assert!(
        status
            .stages
            .iter()
            .all(|stage| stage.ended == 10 && stage.busy == 0)
    );
    assert_eq!(status.devices[0].products, 10);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_keys_prove_the_same() {
    let options = Options {
        key_form: KeyForm::Prepared { percent: 400 },
        ..options()
    };
    let running = Running::with(options, &[BN254, BLS12_381]).await;
    running.prove(BN254, "1", 1).await;
    running.prove(BLS12_381, "2", 2).await;
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_witness_fails_its_job_with_a_reason() {
    let running = Running::with(options(), &[BN254, FROM_R1CS]).await;
    let fail = async |chain: Chain, request: &str, vector: Vec<u8>| {
        let partition = Partition {
            circuit: chain.circuit(),
            input: Input::Vector(Secret::new(vector)),
        };
        let result = running
            .handle
            .prove(submission("client", request, vec![partition]));
        match result.await.unwrap().state {
            JobState::Failed(why) => why,
            other => panic!("{other}"),
        }
    };
    // If all constraints are known, the error names the first that does not hold.
    let why = fail(FROM_R1CS, "1", FROM_R1CS.wrong_vector(1)).await;
    assert!(
        why.contains("partition 0 of circuit bn254-400-r1cs"),
        "{why}"
    );
    assert!(why.contains("constraint 399 is not satisfied"), "{why}");
    // A .zkey does not contain all constraints: the fault shows when the proof is verified.
    let why = fail(BN254, "2", BN254.wrong_vector(1)).await;
    assert!(
        why.contains("the witness does not satisfy the circuit"),
        "{why}"
    );
    let status = running.handle.status().await.unwrap();
    assert_eq!(status.devices[0].suspected, 0, "the witness was wrong");
    let mut above = BN254.vector(1);
    above[32..64].fill(0xff);
    let why = fail(BN254, "3", above).await;
    assert!(why.contains("variable 1 is not below"), "{why}");
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_with_threads_of_their_own_share_the_work() {
    let mut devices = super::support::devices(&["one", "two"]);
    let kind = DeviceKind::Processors { threads: Some(1) };
    devices
        .iter_mut()
        .for_each(|device| device.kind = kind.clone());
    let options = Options {
        devices,
        partition_workers: 4,
        ..options()
    };
    let chain = Chain {
        source: Source::Zkey,
        curve: Curve::Bn254,
        length: 3_000,
    };
    let running = Running::with(options, &[chain]).await;
    let partitions = (0..12).map(|seed| chain.partition(seed)).collect();
    let job = running.submit(submission("client", "1", partitions)).await;
    assert_eq!(running.result(job).await.state, JobState::Done);
    let status = running.handle.status().await.unwrap();
    let products = [0, 1].map(|device| status.devices[device].products);
    assert_eq!(products.iter().sum::<u64>(), 12);
    assert!(
        products.iter().all(|products| *products > 0),
        "{products:?}"
    );
    running.stop(Level::Drain).await;
}
