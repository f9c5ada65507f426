//! Past faults of the job queue.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proofmill_engine::{
    Error, EventKind, JobId, JobState, Options, Owner, OwnerUse, PipelineStage, Priority,
    StageWorkers, Submission, Tier,
};
use proofmill_shutdown::Level;

use crate::support::{BN254, Gate, Running, begins, ends, options, submission, until};

fn gated() -> (Arc<Gate>, Options) {
    let gate = Gate::closed();
    let options = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    (gate, options)
}

/// Whether a partition of `job` left the stage before the device.
fn evaluated(event: &EventKind, job: JobId) -> bool {
    matches!(event, EventKind::Ended { span, stage: PipelineStage::Evaluate, .. } if span.job == job)
}

fn job(client: &str, request: &str, seed: u64) -> Submission {
    submission(client, request, vec![BN254.partition(seed)])
}

#[tokio::test(flavor = "multi_thread")]
async fn two_jobs_at_one_queue_key_silently_replacing_each_other() {
    let running = Running::with(options(), &[BN254]).await;
    // The same priority, moment, circuit and request id, from several clients.
    let submitted: Vec<_> = (0..8u64)
        .map(|seed| {
            let handle = running.handle.clone();
            tokio::spawn(async move {
                let submitted = handle
                    .submit(job(&format!("client-{seed}"), "same", seed))
                    .await;
                (seed, submitted.unwrap().job)
            })
        })
        .collect();
    for one in submitted {
        let (seed, id) = one.await.unwrap();
        let result = running.result(id).await;
        assert_eq!(result.state, JobState::Done);
        BN254.check(&result.proofs[0], seed);
    }
    assert_eq!(running.handle.status().await.unwrap().counts.done, 8);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_ids_overwriting_a_running_jobs_assembler() {
    let (gate, options) = gated();
    let running = Running::with(options, &[BN254]).await;
    let mut events = running.handle.events();
    let partitions = || (0..3).map(|seed| BN254.partition(seed)).collect();
    let first = running
        .submit(submission("client", "1", partitions()))
        .await;
    until(&mut events, |event| {
        begins(event, first, PipelineStage::Prove)
    })
    .await;
    // The same content is the same job, and other content is refused; neither changes the job.
    let again = running
        .handle
        .submit(submission("client", "1", partitions()))
        .await
        .unwrap();
    assert_eq!((again.job, again.existing), (first, true));
    let other = running
        .handle
        .submit(job("client", "1", 9))
        .await
        .unwrap_err();
    assert!(
        matches!(other, Error::Conflict { job, .. } if job == first),
        "{other}"
    );
    gate.open();
    let result = running.result(first).await;
    for (seed, proof) in (0..).zip(result.proofs.iter()) {
        BN254.check(proof, seed);
    }
    assert_eq!(result.proofs.len(), 3);
    let other = running
        .handle
        .submit(job("client", "1", 9))
        .await
        .unwrap_err();
    assert!(
        matches!(other, Error::Conflict { .. }),
        "and so it is once it has ended"
    );
    assert_eq!(running.handle.status().await.unwrap().counts.repeated, 1);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_that_does_nothing() {
    let (gate, options) = gated();
    let running = Running::with(options, &[BN254]).await;
    let mut events = running.handle.events();
    let proving = running.submit(job("client", "proving", 1)).await;
    until(&mut events, |event| {
        begins(event, proving, PipelineStage::Prove)
    })
    .await;
    let many = (0..6).map(|seed| BN254.partition(seed)).collect();
    let waiting = running.submit(submission("client", "waiting", many)).await;
    until(&mut events, |event| evaluated(event, waiting)).await;
    // One waits before the device, others wait for slots, and one is on the device.
    for id in [waiting, proving] {
        let view = running.handle.cancel(id).await.unwrap();
        assert_eq!((view.state, view.bytes), (JobState::Cancelled, 0));
        assert_eq!(running.result(id).await.state, JobState::Cancelled);
    }
    let status = running.handle.status().await.unwrap();
    let of_waiting =
        |used: &OwnerUse| matches!(used.owner, Owner::Partition(job, _) if job == waiting);
    assert!(
        !status.budget.owners.iter().any(of_waiting),
        "what waited holds nothing more"
    );
    gate.open();
    // The partition on the device gives its memory back when its stage ends.
    until(&mut events, |event| {
        matches!(event, EventKind::Ended { span, stage: PipelineStage::Prove, bytes: 0, .. } if span.job == proving)
    })
    .await;
    running.prove(BN254, "after", 2).await;
    let status = running.handle.status().await.unwrap();
    assert_eq!((status.counts.cancelled, status.counts.done), (2, 1));
    assert_eq!(
        running.handle.cancel(proving).await.unwrap().state,
        JobState::Cancelled
    );
    assert!(matches!(
        running.handle.cancel(JobId([9; 16])).await,
        Err(Error::UnknownJob(_))
    ));
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timeouts_ignored() {
    let (gate, options) = gated();
    let running = Running::with(options, &[BN254]).await;
    let mut late = job("client", "1", 1);
    late.deadline = Some(SystemTime::now() + Duration::from_millis(200));
    let late = running.submit(late).await;
    let mut past = job("client", "2", 1);
    past.deadline = Some(SystemTime::now() - Duration::from_secs(1));
    let past = running.submit(past).await;
    // The gate stays closed, so only the clock ends them.
    for id in [late, past] {
        assert_eq!(running.result(id).await.state, JobState::Expired);
    }
    gate.open();
    let mut soon = job("client", "3", 1);
    soon.deadline = Some(SystemTime::now() + Duration::from_secs(600));
    let result = running.handle.prove(soon).await.unwrap();
    assert_eq!(result.state, JobState::Done);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_never_pruned() {
    let state = tempfile::tempdir().unwrap();
    let with_ttl = |result_ttl| Options {
        state_dir: Some(state.path().to_owned()),
        result_ttl,
        ..options()
    };
    let running = Running::with(with_ttl(Duration::ZERO), &[BN254]).await;
    let result = running.handle.prove(job("client", "1", 1)).await.unwrap();
    assert_eq!(result.state, JobState::Done, "who waits gets it");
    let gone = running.handle.await_result(result.job).await.unwrap_err();
    assert!(matches!(gone, Error::UnknownJob(_)));
    let status = running.handle.status().await.unwrap();
    assert_eq!((status.counts.pruned, status.recent.len()), (1, 0));
    running.stop(Level::Drain).await;
    // Nothing of it is on disk either.
    let mut few = with_ttl(Duration::from_secs(600));
    few.limits.results = 2;
    let running = Running::start(few).await;
    assert!(running.handle.job(result.job).await.is_err());
    for request in ["a", "b", "c"] {
        running.prove(BN254, request, 1).await;
    }
    let status = running.handle.status().await.unwrap();
    assert_eq!(
        (status.recent.len(), status.counts.pruned),
        (2, 1),
        "the oldest goes"
    );
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn priority_lost_after_the_first_queue() {
    let (gate, options) = gated();
    let options = Options {
        partition_workers: 8,
        stage_workers: StageWorkers::default(),
        ..options
    };
    let running = Running::with(options, &[BN254]).await;
    let mut events = running.handle.events();
    let blocker = running.submit(job("client", "blocker", 0)).await;
    until(&mut events, |event| {
        begins(event, blocker, PipelineStage::Prove)
    })
    .await;
    let mut jobs = Vec::new();
    for (request, priority) in [
        ("low", Priority::Low),
        ("normal", Priority::Normal),
        ("high", Priority::High),
        ("critical", Priority::Critical),
    ] {
        let mut job = job("client", request, 1);
        job.priority = priority;
        let id = running.submit(job).await;
        // Each is before the device when the next is submitted.
        until(&mut events, |event| evaluated(event, id)).await;
        jobs.push(id);
    }
    gate.open();
    let mut order = Vec::new();
    for _ in &jobs {
        let mut entered = None;
        until(&mut events, |event| match event {
            EventKind::Began {
                span,
                stage: PipelineStage::Prove,
                ..
            } if span.job != blocker => {
                entered = Some(span.job);
                true
            }
            _ => false,
        })
        .await;
        order.extend(entered);
    }
    for id in &jobs {
        assert_eq!(running.result(*id).await.state, JobState::Done);
    }
    jobs.reverse();
    assert_eq!(order, jobs, "critical first at the device too");
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_critical_job_that_waits_behind_normal_ones() {
    let (gate, options) = gated();
    let running = Running::with(options, &[BN254]).await;
    let mut events = running.handle.events();
    for number in 0..20 {
        running
            .submit(job("client", &number.to_string(), number))
            .await;
    }
    // All ordinary slots are taken, by partitions that are held up.
    let mut critical = job("client", "critical", 1);
    critical.priority = Priority::Critical;
    let critical = running.submit(critical).await;
    until(&mut events, |event| {
        begins(event, critical, PipelineStage::Evaluate)
    })
    .await;
    gate.open();
    let mut before = 0;
    until(&mut events, |event| {
        before += usize::from(matches!(event, EventKind::Job { state, .. } if state.is_final()));
        ends(event, critical)
    })
    .await;
    assert!(
        before <= 3,
        "itself, and at most those that had slots: {before}"
    );
    running.stop(Level::Stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_hanging_at_shutdown() {
    let (gate, options) = gated();
    let state = tempfile::tempdir().unwrap();
    let options = Options {
        state_dir: Some(state.path().to_owned()),
        ..options
    };
    let running = Running::with(options.clone(), &[BN254]).await;
    // Partitions that wait for a key to be loaded go on in any order.
    let preloaded = running.handle.preload(BN254.circuit(), Tier::Hot).await;
    preloaded.unwrap();
    let mut events = running.handle.events();
    let mut ids = Vec::new();
    for number in 0..5 {
        let job = job("client", &number.to_string(), number);
        ids.push(running.submit(job).await);
    }
    let waiting: Vec<_> = ids
        .iter()
        .map(|id| {
            let (handle, id) = (running.handle.clone(), *id);
            tokio::spawn(async move { handle.await_result(id).await })
        })
        .collect();
    let handle = running.handle.clone();
    until(&mut events, |event| {
        begins(event, ids[0], PipelineStage::Prove)
    })
    .await;
    running.raise(Level::Drain);
    // New work is refused while accepted work goes on.
    for number in 0.. {
        match handle
            .submit(job("client", &format!("new-{number}"), 1))
            .await
        {
            Err(Error::Draining) => break,
            // The service has not received the signal yet.
            other => assert!(!other.unwrap().existing),
        }
    }
    gate.open();
    running.raise(Level::Stop);
    let answers = futures_util::future::join_all(waiting).await;
    for answer in answers {
        match answer.unwrap() {
            Ok(result) => assert_eq!(result.state, JobState::Done),
            Err(error) => assert!(matches!(error, Error::Stopped), "{error}"),
        }
    }
    running.stop(Level::Stop).await;
    assert!(matches!(handle.status().await, Err(Error::Stopped)));
    assert!(matches!(
        handle.submit(job("client", "late", 1)).await,
        Err(Error::Stopped)
    ));
    drop(handle);
    // Unfinished jobs go on.
    let running = Running::start(options).await;
    for (seed, id) in (0..).zip(ids) {
        let result = running.result(id).await;
        BN254.check(&result.proofs[0], seed);
    }
    running.stop(Level::Drain).await;
}
