//! Unverified proofs must not be returned.

use std::sync::Arc;

use proofmill_engine::{Fault, Interference, JobState, Options};
use proofmill_shutdown::Level;

use crate::support::{BLS12_381, BN254, Chain, Running, devices, options, submission};

/// Makes one device or all of them compute wrongly.
#[derive(Debug)]
struct Broken {
    device: Option<&'static str>,
    fault: Fault,
}

impl Interference for Broken {
    fn with_products(&self, device: &str, partition: u32, _: u32) -> Fault {
        let hit = self.device.is_none_or(|broken| broken == device) && partition == 1;
        if hit { self.fault } else { Fault::None }
    }
}

async fn run(chain: Chain, broken: Broken) -> (JobState, Vec<u64>, u64) {
    let options = Options {
        devices: devices(&["first", "second"]),
        interference: Some(Arc::new(broken)),
        partition_workers: 1,
        ..options()
    };
    let running = Running::with(options, &[chain]).await;
    let partitions = (0..3).map(|seed| chain.partition(seed)).collect();
    let result = running
        .handle
        .prove(submission("client", "1", partitions))
        .await
        .unwrap();
    for (seed, proof) in (0..).zip(result.proofs.iter()) {
        chain.check(proof, seed);
    }
    let status = running.handle.status().await.unwrap();
    let suspected = status
        .devices
        .iter()
        .map(|device| device.suspected)
        .collect();
    running.stop(Level::Drain).await;
    (result.state, suspected, status.counts.retries)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_returned_unverified() {
    for chain in [BN254, BLS12_381] {
        let broken = Broken {
            device: None,
            fault: Fault::WrongProduct,
        };
        let (state, ..) = run(chain, broken).await;
        let JobState::Failed(why) = state else {
            panic!("{state}")
        };
        let circuit = format!("partition 1 of circuit {}", chain.name());
        assert!(why.contains(&circuit), "{why}");
        assert!(
            why.contains("on device ") && why.contains("does not verify"),
            "{why}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_computes_wrongly_is_suspected_and_its_partition_alone_is_tried_elsewhere() {
    for chain in [BN254, BLS12_381] {
        // The first free device is the first in the options.
        let broken = Broken {
            device: Some("first"),
            fault: Fault::WrongProduct,
        };
        let (state, suspected, retries) = run(chain, broken).await;
        assert_eq!((state, suspected, retries), (JobState::Done, vec![1, 0], 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_panics_fails_the_attempt_and_not_the_engine() {
    let broken = Broken {
        device: Some("first"),
        fault: Fault::Panic,
    };
    let (state, suspected, retries) = run(BN254, broken).await;
    assert_eq!((state, suspected, retries), (JobState::Done, vec![0, 0], 1));
}
