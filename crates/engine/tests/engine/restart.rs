//! Tests that an engine that ends at any moment goes on from its state directory.

use std::collections::HashMap;
use std::time::Duration;

use proofmill_engine::{JobId, JobResult, JobState, Options};
use proofmill_shutdown::Level;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::support::{BN254, FROM_R1CS, Running, options, submission};

/// Jobs in each history.
const JOBS: u64 = 8;

#[tokio::test(flavor = "multi_thread")]
async fn no_accepted_job_is_lost_and_none_has_two_results() {
    for seed in 0..6 {
        history(seed).await;
    }
}

async fn history(seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let state = tempfile::tempdir().unwrap();
    let options = || Options {
        state_dir: Some(state.path().to_owned()),
        ..options()
    };
    let chain = |number: u64| {
        if number.is_multiple_of(2) {
            BN254
        } else {
            FROM_R1CS
        }
    };
    let job = |number: u64| {
        let partitions = (0..1 + number % 3).map(|part| chain(number).partition(number + part));
        submission("client", &number.to_string(), partitions.collect())
    };
    let mut accepted: HashMap<u64, JobId> = HashMap::new();
    let mut seen: HashMap<u64, JobResult> = HashMap::new();
    let mut running = Running::with(options(), &[BN254, FROM_R1CS]).await;
    while seen.len() < JOBS as usize {
        for number in 0..JOBS {
            if rng.random_bool(0.4) {
                let submitted = running.handle.submit(job(number)).await.unwrap();
                let before = accepted.insert(number, submitted.job);
                assert!(
                    before.is_none() || submitted.existing,
                    "seed {seed}: {number} is there"
                );
            }
        }
        let patience = Duration::from_millis(rng.random_range(1..80));
        for (number, id) in &accepted {
            let asked = tokio::time::timeout(patience, running.handle.await_result(*id)).await;
            let Ok(result) = asked else { break };
            let result = result.unwrap();
            assert_eq!(result.state, JobState::Done, "seed {seed}");
            // Proofs are blinded, so equal bytes mean the same proof.
            let first = seen.entry(*number).or_insert_with(|| result.clone());
            assert_eq!(*first, result, "seed {seed}: one result");
        }
        match rng.random_range(0..3) {
            0 => running.crash().await,
            1 => running.stop(Level::Stop).await,
            _ => running.stop(Level::Drain).await,
        }
        running = Running::start(options()).await;
    }
    for (number, result) in &seen {
        let again = running.result(accepted[number]).await;
        assert_eq!(again, *result, "seed {seed}");
        for (part, proof) in (0..).zip(result.proofs.iter()) {
            chain(*number).check(proof, number + part);
        }
    }
    running.stop(Level::Drain).await;
}
