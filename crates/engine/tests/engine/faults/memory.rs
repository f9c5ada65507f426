//! Past faults of memory accounting.

use proofmill_engine::{Error, JobState, Options, Owner, Priority, Tier};
use proofmill_shutdown::Level;

use crate::residency::{budget_for, chains};
use crate::support::{BN254, Running, options, submission};

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_lost_between_a_failed_check_and_the_wait() {
    // Only one partition fits at a time, and each needs a key that is not loaded. The interleavings
    // themselves are covered by `tests/budget_model.rs`.
    let chains = chains(3);
    let memory = Some(budget_for(&chains, 0).await);
    let options = Options {
        memory,
        partition_workers: 4,
        ..options()
    };
    let running = Running::with(options, &chains).await;
    let mut jobs = Vec::new();
    for number in 0..30usize {
        let mut job = submission(
            "client",
            &number.to_string(),
            vec![chains[number % 3].partition(number as u64)],
        );
        job.priority = Priority::ALL[number % 4];
        jobs.push(running.submit(job).await);
    }
    for job in jobs {
        assert_eq!(running.result(job).await.state, JobState::Done);
    }
    let status = running.handle.status().await.unwrap();
    assert!(status.budget.peak <= status.budget.total);
    assert_eq!(status.budget.waiting, 0);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_above_the_total_budget_waiting_forever() {
    let memory = Some(budget_for(&[BN254], 0).await);
    let running = Running::with(
        Options {
            memory,
            ..options()
        },
        &[BN254],
    )
    .await;
    let larger = chains(1)[0];
    let registration = proofmill_engine::Registration {
        name: larger.name(),
        source: larger.source(),
    };
    let refused = running.handle.register(registration).await.unwrap_err();
    let Error::Impossible { needed, total, .. } = refused else {
        panic!("{refused}");
    };
    assert!(needed > total && Some(total) == memory);
    running.prove(BN254, "1", 1).await;
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evicting_memory_that_was_never_counted() {
    let chains = chains(3);
    let memory = Some(budget_for(&chains, 1).await);
    let running = Running::with(
        Options {
            memory,
            ..options()
        },
        &chains,
    )
    .await;
    for round in 0..3 {
        for (number, chain) in chains.iter().enumerate() {
            running.prove(*chain, &format!("{round}-{number}"), 1).await;
        }
    }
    let status = running.handle.status().await.unwrap();
    assert!(status.budget.evictions >= 3);
    // All memory in use belongs to keys, and each key's bytes are those that its circuit shows.
    let mut sum = 0;
    for used in &status.budget.owners {
        let Owner::Key(id) = used.owner else {
            panic!("{} holds {} bytes", used.owner, used.bytes);
        };
        let circuit = status
            .circuits
            .iter()
            .find(|circuit| circuit.id == id)
            .unwrap();
        assert_eq!((circuit.tier, circuit.bytes), (Tier::Hot, used.bytes));
        sum += used.bytes;
    }
    assert_eq!(sum, status.budget.used);
    let evicted: u64 = status
        .circuits
        .iter()
        .map(|circuit| circuit.evictions)
        .sum();
    assert_eq!(evicted, status.budget.evictions);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evict_that_does_nothing() {
    let running = Running::with(options(), &[BN254]).await;
    assert_eq!(
        running.handle.evict(BN254.circuit()).await.unwrap(),
        0,
        "it is cold"
    );
    running.prove(BN254, "1", 1).await;
    let bytes = running.handle.circuits().await.unwrap()[0].bytes;
    assert!(bytes > 0);
    assert_eq!(running.handle.evict(BN254.circuit()).await.unwrap(), bytes);
    let status = running.handle.status().await.unwrap();
    assert_eq!(
        (status.budget.used, status.circuits[0].tier),
        (0, Tier::Cold)
    );
    running.prove(BN254, "2", 2).await;
    assert_eq!(running.handle.circuits().await.unwrap()[0].loads, 2);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evict_of_a_key_in_use() {
    let gate = crate::support::Gate::closed();
    let options = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let running = Running::with(options, &[BN254]).await;
    let mut events = running.handle.events();
    let job = running
        .submit(submission("client", "1", vec![BN254.partition(1)]))
        .await;
    crate::support::until(&mut events, |event| {
        crate::support::begins(event, job, proofmill_engine::PipelineStage::Prove)
    })
    .await;
    let refused = running.handle.evict(BN254.circuit()).await.unwrap_err();
    assert!(matches!(refused, Error::InUse(_, "in use")));
    gate.open();
    assert_eq!(running.result(job).await.state, JobState::Done);
    running.stop(Level::Drain).await;
}
