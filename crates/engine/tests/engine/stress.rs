//! Many jobs of many circuits with little memory.

use proofmill_engine::{JobState, Options, Priority};
use proofmill_groth16::Curve;
use proofmill_shutdown::Level;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::residency::budget_for;
use super::support::{Chain, Running, Source, options, submission};

const JOBS: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn mixed_jobs_with_random_priorities_and_cancels() {
    let sources = [Source::Zkey, Source::R1cs, Source::Precompiled];
    let chains: Vec<Chain> = (0..6)
        .map(|number| Chain {
            curve: Curve::ALL[number % 2],
            length: 250 + 150 * number,
            source: sources[number / 2],
        })
        .collect();
    let memory = Some(budget_for(&chains, 1).await);
    let options = Options {
        memory,
        partition_workers: 3,
        ..options()
    };
    let running = Running::with(options, &chains).await;
    let mut rng = StdRng::seed_from_u64(6);
    let mut jobs = Vec::new();
    for number in 0..JOBS {
        let parts: Vec<(Chain, u64)> = (0..rng.random_range(1..4))
            .map(|_| {
                (
                    chains[rng.random_range(0..chains.len())],
                    rng.random_range(0..20),
                )
            })
            .collect();
        let partitions = parts
            .iter()
            .map(|(chain, seed)| chain.partition(*seed))
            .collect();
        let mut job = submission("client", &number.to_string(), partitions);
        job.priority = Priority::ALL[rng.random_range(0..4)];
        let id = running.submit(job).await;
        jobs.push((id, parts));
        if rng.random_bool(0.2) {
            let (victim, _) = &jobs[rng.random_range(0..jobs.len())];
            running.handle.cancel(*victim).await.unwrap();
        }
    }
    let mut done = 0;
    for (id, parts) in &jobs {
        let result = running.result(*id).await;
        match &result.state {
            JobState::Done => {
                done += 1;
                assert_eq!(result.proofs.len(), parts.len());
                for ((chain, seed), proof) in parts.iter().zip(result.proofs.iter()) {
                    // The engine has verified each proof. This checks that it is the proof that was asked
                    // for.
                    assert_eq!(proof.proof.curve(), chain.curve);
                    if done % 10 == 0 {
                        chain.check(proof, *seed);
                    }
                }
            }
            JobState::Cancelled => {}
            other => panic!("{other}"),
        }
    }
    let status = running.handle.status().await.unwrap();
    assert!(done > JOBS as u64 / 2);
    assert_eq!(
        (status.counts.done, status.counts.cancelled),
        (done, JOBS as u64 - done)
    );
    assert!(status.budget.peak <= status.budget.total);
    assert!(status.budget.evictions > 0);
    assert!(status.jobs.is_empty());
    running.stop(Level::Drain).await;
}
