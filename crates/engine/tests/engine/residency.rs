//! Tests of loading and evicting keys.

use std::sync::Arc;

use proofmill_engine::{
    CircuitSource, ConstraintsFrom, Error, JobState, Options, Registration, Tier,
};
use proofmill_groth16::Curve;
use proofmill_shutdown::Level;

use super::support::{
    BLS12_381, BN254, Chain, FROM_R1CS, Gate, Running, Source, options, submission,
};

/// Circuits whose keys have about the same size.
pub(crate) fn chains(count: usize) -> Vec<Chain> {
    let chain = |number: usize| Chain {
        curve: Curve::Bn254,
        length: 2_000 + number,
        source: Source::Zkey,
    };
    (0..count).map(chain).collect()
}

/// A budget in which one of these keys can be loaded and a proof made with it, while `hot` others are hot.
pub(crate) async fn budget_for(chains: &[Chain], hot: u64) -> u64 {
    let running = Running::with(options(), chains).await;
    let circuits = running.handle.circuits().await.unwrap();
    let needed = circuits.iter().map(|circuit| circuit.needed_bytes).max();
    for chain in chains {
        running
            .handle
            .preload(chain.circuit(), Tier::Hot)
            .await
            .unwrap();
    }
    let circuits = running.handle.circuits().await.unwrap();
    let key = circuits.iter().map(|circuit| circuit.bytes).max().unwrap();
    running.stop(Level::Stop).await;
    needed.unwrap() + hot * key
}

/// The number of loads for three jobs each of two circuits, in turns, with memory for one key.
async fn loads_of_jobs_in_turns(batch: u32) -> u64 {
    let chains = chains(2);
    let gate = Gate::closed();
    let gated = Options {
        memory: Some(budget_for(&chains, 0).await),
        partition_workers: 1,
        interference: Some(gate.clone()),
        batch,
        ..options()
    };
    let running = Running::with(gated, &chains).await;
    let mut jobs = Vec::new();
    for number in 0..6 {
        let chain = chains[number % 2];
        let partitions = vec![chain.partition(number as u64)];
        let submission = submission("turns", &number.to_string(), partitions);
        jobs.push(running.submit(submission).await);
    }
    gate.open();
    for job in jobs {
        assert_eq!(running.result(job).await.state, JobState::Done);
    }
    let circuits = running.handle.circuits().await.unwrap();
    running.stop(Level::Stop).await;
    circuits.iter().map(|circuit| circuit.loads).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_with_loaded_keys_overtake_as_often_as_allowed() {
    assert_eq!(loads_of_jobs_in_turns(0).await, 6);
    assert_eq!(loads_of_jobs_in_turns(1).await, 3);
    assert_eq!(loads_of_jobs_in_turns(9).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_recently_used_key_is_evicted_first() {
    let chains = chains(4);
    let memory = Some(budget_for(&chains, 2).await);
    let running = Running::with(
        Options {
            memory,
            ..options()
        },
        &chains,
    )
    .await;
    for (number, chain) in chains[..3].iter().enumerate() {
        running.prove(*chain, &number.to_string(), 1).await;
    }
    let tiers = async || {
        let circuits = running.handle.circuits().await.unwrap();
        circuits
            .iter()
            .map(|circuit| circuit.tier == Tier::Hot)
            .collect::<Vec<_>>()
    };
    assert_eq!(tiers().await, [true, true, true, false]);
    running.prove(chains[0], "again", 1).await;
    running.prove(chains[3], "3", 1).await;
    let hot = tiers().await;
    assert!(hot[0] && hot[3] && !hot[1], "{hot:?}");
    let status = running.handle.status().await.unwrap();
    assert!(status.budget.evictions >= 1);
    assert!(status.budget.peak <= status.budget.total);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_of_a_key_is_estimated_from_its_points() {
    for chain in [BN254, BLS12_381, FROM_R1CS, chains(1)[0]] {
        let running = Running::with(options(), &[chain]).await;
        let before = running.handle.circuits().await.unwrap().remove(0);
        running.prove(chain, "1", 1).await;
        let after = running.handle.circuits().await.unwrap().remove(0);
        let name = chain.name();
        assert!(!before.measured && after.measured, "{name}");
        assert!(after.hot_bytes == after.bytes && after.bytes > 0, "{name}");
        let (estimate, measured) = (before.hot_bytes, after.hot_bytes);
        assert!(
            (measured..=measured * 3 / 2 + (16 << 10)).contains(&estimate),
            "{name}: {estimate} bytes were expected, {measured} measured"
        );
        running.stop(Level::Drain).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_is_made_with_needed_bytes_and_not_with_less() {
    for chain in [BN254, BLS12_381, chains(1)[0]] {
        let needed = budget_for(&[chain], 0).await;
        let enough = Options {
            memory: Some(needed),
            ..options()
        };
        let running = Running::with(enough, &[chain]).await;
        // The second proof finds the key measured, and the third has to load it again.
        running.prove(chain, "1", 1).await;
        running.prove(chain, "2", 2).await;
        running.handle.evict(chain.circuit()).await.unwrap();
        running.prove(chain, "3", 3).await;
        let budget = running.handle.status().await.unwrap().budget;
        assert!(budget.peak <= needed, "{} of {needed}", budget.peak);
        running.stop(Level::Drain).await;
        let too_little = Options {
            memory: Some(needed - 1),
            ..options()
        };
        let running = Running::start(too_little).await;
        let registration = Registration {
            name: chain.name(),
            source: chain.source(),
        };
        let refused = running.handle.register(registration).await.unwrap_err();
        assert!(refused.to_string().contains("MiB"), "{refused}");
        running.stop(Level::Drain).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn measured_sizes_survive_a_restart_and_damage_is_harmless() {
    let state = tempfile::tempdir().unwrap();
    let options = || Options {
        state_dir: Some(state.path().to_owned()),
        ..options()
    };
    let running = Running::with(options(), &[BN254]).await;
    running.prove(BN254, "1", 1).await;
    let measured = running.handle.circuits().await.unwrap().remove(0);
    running.stop(Level::Drain).await;

    let running = Running::start(options()).await;
    let again = running.handle.circuits().await.unwrap().remove(0);
    assert!(again.measured && again.bytes == 0);
    assert_eq!(again.hot_bytes, measured.hot_bytes);
    assert_eq!(again.work_bytes, measured.work_bytes);
    running.stop(Level::Drain).await;

    let figures = state.path().join("figures");
    let mut bytes = std::fs::read(&figures).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&figures, &bytes).unwrap();
    let running = Running::start(options()).await;
    let damaged = running.handle.circuits().await.unwrap().remove(0);
    assert!(!damaged.measured && damaged.hot_bytes >= measured.hot_bytes);
    running.prove(BN254, "2", 2).await;
    let healed = running.handle.circuits().await.unwrap().remove(0);
    assert_eq!(healed.hot_bytes, measured.hot_bytes);
    running.stop(Level::Drain).await;
    let running = Running::start(options()).await;
    assert!(running.handle.circuits().await.unwrap()[0].measured);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_key_stays_and_impossible_work_is_refused() {
    let chains = chains(2);
    let memory = Some(budget_for(&chains, 0).await);
    let running = Running::with(
        Options {
            memory,
            ..options()
        },
        &chains,
    )
    .await;
    let [pinned, other] = [0, 1].map(|number: usize| chains[number].circuit());
    running
        .handle
        .preload(pinned.clone(), Tier::Hot)
        .await
        .unwrap();
    assert!(
        running
            .handle
            .pin(pinned.clone(), true)
            .await
            .unwrap()
            .pinned
    );
    let refused = running.handle.evict(pinned.clone()).await.unwrap_err();
    assert!(matches!(refused, Error::InUse(_, "pinned")));
    let job = submission("client", "1", vec![chains[1].partition(1)]);
    let refused = running.handle.submit(job).await.unwrap_err();
    assert!(
        matches!(refused, Error::Impossible { pinned, .. } if pinned > 0),
        "{refused}"
    );
    running.handle.pin(pinned.clone(), false).await.unwrap();
    running.handle.preload(other, Tier::Hot).await.unwrap();
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_loaded_once_for_all_waiters_even_if_the_first_gives_up() {
    let running = Arc::new(Running::with(options(), &chains(1)).await);
    let circuit = chains(1)[0].circuit();
    let first = {
        let (running, circuit) = (running.clone(), circuit.clone());
        tokio::spawn(async move { running.handle.preload(circuit, Tier::Hot).await })
    };
    let others: Vec<_> = (0..5)
        .map(|_| {
            let (running, circuit) = (running.clone(), circuit.clone());
            tokio::spawn(async move { running.handle.preload(circuit, Tier::Hot).await })
        })
        .collect();
    first.abort();
    for other in others {
        let view = other.await.unwrap().unwrap();
        assert_eq!((view.tier, view.loads), (Tier::Hot, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_of_a_mapped_and_loaded_key_is_given_back() {
    let running = Running::with(options(), &[BN254]).await;
    let used = async || running.handle.status().await.unwrap().budget.used;
    let warm = running
        .handle
        .preload(BN254.circuit(), Tier::Warm)
        .await
        .unwrap();
    let CircuitSource::Zkey(path) = BN254.source() else {
        unreachable!()
    };
    assert_eq!(warm.tier, Tier::Warm);
    assert_eq!(warm.bytes, std::fs::metadata(path).unwrap().len());
    assert_eq!(used().await, warm.bytes);
    let hot = running
        .handle
        .preload(BN254.circuit(), Tier::Hot)
        .await
        .unwrap();
    assert_eq!((hot.tier, used().await), (Tier::Hot, hot.bytes));
    assert_eq!(
        running.handle.evict(BN254.circuit()).await.unwrap(),
        hot.bytes
    );
    assert_eq!(used().await, 0);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_file_has_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(options()).await;
    let source = BN254.make(folder.path());
    let CircuitSource::Zkey(path) = &source else {
        unreachable!()
    };
    let registration = Registration {
        name: BN254.name(),
        source: source.clone(),
    };
    running.handle.register(registration.clone()).await.unwrap();
    running.handle.register(registration).await.unwrap();
    let CircuitSource::Zkey(other) = (Chain {
        length: 301,
        ..BN254
    })
    .source() else {
        unreachable!()
    };
    let taken = Registration {
        name: BN254.name(),
        source: CircuitSource::Zkey(other.clone()),
    };
    let taken = running.handle.register(taken).await.unwrap_err();
    assert!(matches!(taken, Error::NameTaken { .. }), "{taken}");
    std::fs::rename(
        {
            let copy = folder.path().join("copy");
            std::fs::copy(&other, &copy).unwrap();
            copy
        },
        path,
    )
    .unwrap();
    let error = running
        .handle
        .preload(BN254.circuit(), Tier::Hot)
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("not the file that was registered"),
        "{error}"
    );
    let used = running.handle.status().await.unwrap().budget.used;
    assert_eq!(used, 0, "what was reserved for it is given back");
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_another_circuit_is_not_registered() {
    let (CircuitSource::System { constraints, .. }, CircuitSource::System { key, .. }) =
        (FROM_R1CS.source(), BLS12_381.source())
    else {
        unreachable!()
    };
    let running = Running::start(options()).await;
    let registration = Registration {
        name: "mixed".to_owned(),
        source: CircuitSource::System { constraints, key },
    };
    let error = running.handle.register(registration).await.unwrap_err();
    assert!(error.to_string().contains("another circuit"), "{error}");
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circuit_is_unregistered_only_when_no_job_needs_it() {
    let gate = Gate::closed();
    let options = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let running = Running::with(options, &[BN254]).await;
    let job = running
        .submit(submission("client", "1", vec![BN254.partition(1)]))
        .await;
    let refused = running.handle.unregister(BN254.name()).await.unwrap_err();
    assert!(matches!(refused, Error::InUse(..)));
    gate.open();
    assert_eq!(running.result(job).await.state, JobState::Done);
    running.handle.evict(BN254.circuit()).await.ok();
    running.handle.unregister(BN254.name()).await.unwrap();
    let unknown = running
        .handle
        .preload(BN254.circuit(), Tier::Hot)
        .await
        .unwrap_err();
    assert!(matches!(unknown, Error::UnknownCircuit { .. }));
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registered_circuits_are_known_after_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let options = || Options {
        state_dir: Some(state.path().to_owned()),
        ..options()
    };
    let running = Running::with(options(), &[FROM_R1CS, BN254]).await;
    running.handle.unregister(BN254.name()).await.unwrap();
    let other = Chain {
        length: 401,
        ..FROM_R1CS
    };
    other.register(&running.handle).await;
    let precompiled = state.path().join("precompiled");
    assert_eq!(std::fs::read_dir(&precompiled).unwrap().count(), 2);
    running.handle.unregister(other.name()).await.unwrap();
    assert_eq!(std::fs::read_dir(&precompiled).unwrap().count(), 1);
    running.stop(Level::Stop).await;
    let running = Running::start(options()).await;
    let circuits = running.handle.circuits().await.unwrap();
    assert_eq!(circuits.len(), 1);
    assert_eq!(circuits[0].name, FROM_R1CS.name());
    running.prove(FROM_R1CS, "1", 1).await;
    let view = &running.handle.circuits().await.unwrap()[0];
    assert_eq!(view.from, ConstraintsFrom::Precompiled);
    running.stop(Level::Drain).await;
}
