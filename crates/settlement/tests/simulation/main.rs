//! Settlement on a simulated chain, killed at any step: every emission has exactly one effect, in order, and is where it was
//! said to be.

mod chain;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Address;
use bytes::Bytes;
use proofmill_ethereum::{Local, Signer};
use proofmill_settlement::{Contract, Emission, FeePolicy, Options, Rules, Settlement};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use self::chain::{Counter, GAS, Simulated, Weather};

const CONFIRMATIONS: u64 = 3;
const FINALITY: u64 = 14;
const MAX_FEE: u128 = 200;

/// Number of emissions of a run.
const ALL: u64 = 40;

fn options(chain: &Simulated) -> Options {
    let key = Local::from_bytes(&[7; 32], "the test").expect("a key");
    Options {
        chain: Arc::new(chain.clone()),
        chain_id: 1337,
        contract: Arc::new(Counter),
        to: Address::repeat_byte(0xc0),
        signer: Arc::new(Signer::Local(key)),
        rules: Rules {
            confirmations: CONFIRMATIONS,
            finality: FINALITY,
            fees: FeePolicy {
                max_fee: MAX_FEE,
                replace_after: Duration::from_secs(4),
            },
        },
        poll: Duration::from_millis(300),
        observer: None,
        clock: chain.clock(),
    }
}

fn emissions(numbers: std::ops::Range<u64>) -> Vec<Emission> {
    let emission = |number| Emission {
        first: number,
        last: number,
        bytes: Bytes::new(),
    };
    numbers.map(emission).collect()
}

/// Runs one life of the settling process: `live` until it ends, or until it is killed after `limit`.
fn life<T>(chain: &Simulated, limit: Duration, live: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let result = runtime.block_on(async {
        chain.begin_life();
        let result = tokio::time::timeout(limit, live).await.ok();
        chain.end_life();
        result
    });
    // Drops the task that settles wherever it waits.
    drop(runtime);
    result
}

/// The sequencer: settles from `cursor` on, in batches, until all are settled; moves `cursor` after each batch.
async fn sequence(chain: &Simulated, journal: &Path, random: &mut StdRng, cursor: &mut u64) {
    let settlement = Settlement::start(options(chain), journal).expect("the journal");
    while *cursor < ALL {
        let end = (*cursor + random.random_range(1..9)).min(ALL);
        match settlement.settle(emissions(*cursor..end)).await {
            Ok(()) => {
                let world = chain.world();
                // A reorganisation of fewer blocks than the confirmations cannot undo it.
                if world.weather.depth_max < CONFIRMATIONS as usize {
                    let next = world.next();
                    assert!(
                        next >= end,
                        "settled to {end}, and the contract expects {next}"
                    );
                }
                *cursor = end;
            }
            Err(error) => {
                // Only what was undone makes the contract refuse what follows, and only until it is offered again.
                let is_deep = chain.world().weather.depth_max >= CONFIRMATIONS as usize;
                let is_foreign = chain.world().weather.foreign > 0.0;
                assert!(!error.is_permanent() || is_deep || is_foreign, "{error}");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
}

/// Settles all emissions in this weather over many lives.
fn settle_all(seed: u64, weather: Weather, loses_journal: bool) -> Simulated {
    let chain = Simulated::new(seed, weather);
    let mut random = StdRng::seed_from_u64(seed ^ 0x5e77);
    let folder = tempfile::tempdir().expect("a folder");
    let (mut cursor, mut lives, mut machine) = (0, 0, 0);
    while cursor < ALL {
        lives += 1;
        assert!(lives < 2000, "seed {seed}: at {cursor} after {lives} lives");
        let limit = match random.random_bool(0.7) {
            true => Duration::from_millis(random.random_range(1..4000)),
            false => Duration::from_secs(random.random_range(4..60)),
        };
        if loses_journal && random.random_bool(0.1) {
            machine += 1;
        }
        let journal = folder.path().join(format!("journal-{machine}"));
        let mut reached = cursor;
        life(
            &chain,
            limit,
            sequence(&chain, &journal, &mut random, &mut reached),
        );
        // The sequencer records its cursor after the answer: a crash may lose that.
        if random.random_bool(0.9) {
            cursor = reached;
        }
    }
    // What a late reorganisation undid comes back while nothing is asked for.
    chain.world().weather = Weather::CALM;
    let journal = folder.path().join(format!("journal-{machine}"));
    let quiet = life(&chain, Duration::from_secs(300), async {
        let settlement = Settlement::start(options(&chain), &journal).expect("the journal");
        tokio::time::sleep(Duration::from_secs(60)).await;
        settlement.settle(emissions(ALL - 1..ALL)).await
    });
    quiet.expect("in time").expect("settled");
    let world = chain.world();
    assert_eq!(world.next(), ALL, "seed {seed}");
    let (spent, bound) = world.spent();
    assert!(spent <= bound, "{spent} of {bound}");
    drop(world);
    chain
}

const STORM: Weather = Weather {
    faults: 0.03,
    reorganisations: 0.08,
    depth_max: 2,
    forgets: 0.05,
    foreign: 0.0,
    spikes: 0.06,
    late: 0.1,
};

#[test]
fn every_emission_has_one_effect_whatever_is_killed() {
    let (mut undone, mut replaced) = (0, 0);
    for seed in 0..60 {
        let chain = settle_all(seed, STORM, false);
        let world = chain.world();
        undone += world.undone;
        replaced += world.replaced;
        assert_eq!(world.reverted, 0, "seed {seed}: gas was spent for nothing");
    }
    assert!(
        undone > 50 && replaced > 50,
        "{undone} undone, {replaced} replaced"
    );
}

#[test]
fn what_deep_reorganisations_undo_is_offered_again() {
    let weather = Weather {
        depth_max: 8,
        reorganisations: 0.03,
        ..STORM
    };
    for seed in 100..140 {
        settle_all(seed, weather, false);
    }
}

#[test]
fn a_lost_journal_or_another_user_of_the_account_costs_gas_and_nothing_else() {
    let weather = Weather {
        foreign: 0.03,
        ..STORM
    };
    for seed in 200..240 {
        settle_all(seed, weather, true);
    }
}

#[test]
fn in_calm_weather_each_batch_is_one_transaction() {
    let chain = Simulated::new(1, Weather::CALM);
    let folder = tempfile::tempdir().expect("a folder");
    let ran = life(&chain, Duration::from_secs(300), async {
        let settlement = Settlement::start(options(&chain), folder.path()).expect("the journal");
        settlement.settle(emissions(0..8)).await.expect("settled");
        settlement
            .settle(emissions(0..8))
            .await
            .expect("settled before");
        let error = settlement
            .settle(emissions(9..10))
            .await
            .expect_err("not next");
        assert_eq!(
            error.to_string(),
            "the contract would refuse blocks 9 to 9: expected 8"
        );
        assert!(error.is_permanent());
    });
    ran.expect("in time");
    let world = chain.world();
    // Two transactions, at the base fee of 8 to 11 and a priority fee of 2.
    let price = world.spent().0 / (2 * u128::from(GAS));
    assert!((10..=13).contains(&price), "{price}");
    assert_eq!((world.reverted, world.replaced), (0, 0));
}

/// A contract whose question is about something else than what it settles.
struct Denying;

impl Contract for Denying {
    fn batch_max(&self) -> usize {
        1
    }

    fn settle(&self, emissions: &[Emission]) -> Result<Bytes, String> {
        Counter.settle(emissions)
    }

    fn is_settled(&self, emission: &Emission) -> Result<Bytes, String> {
        let mut other = emission.clone();
        other.first = u64::MAX;
        Counter.is_settled(&other)
    }

    fn explain(&self, revert: &[u8]) -> String {
        Counter.explain(revert)
    }
}

#[test]
fn a_contract_that_denies_what_it_has_settled_is_not_paid_again() {
    let chain = Simulated::new(1, Weather::CALM);
    let folder = tempfile::tempdir().expect("a folder");
    let ran = life(&chain, Duration::from_secs(600), async {
        let mut options = options(&chain);
        options.contract = Arc::new(Denying);
        let settlement = Settlement::start(options, folder.path()).expect("the journal");
        for _ in 0..3 {
            let error = settlement.settle(emissions(0..1)).await;
            let error = error.expect_err("denied").to_string();
            assert!(error.contains("says that they are not"), "{error}");
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    });
    ran.expect("in time");
    assert_eq!(chain.world().included(), 1);
}

#[test]
fn a_chain_that_begins_anew_is_settled_on_again_with_its_own_nonces() {
    let chain = Simulated::new(1, Weather::CALM);
    let folder = tempfile::tempdir().expect("a folder");
    for nonce in [None, Some(3), Some(1)] {
        if let Some(nonce) = nonce {
            chain.world().restart(nonce);
        }
        let ran = life(&chain, Duration::from_secs(600), async {
            let settlement = Settlement::start(options(&chain), folder.path());
            settlement
                .expect("the journal")
                .settle(emissions(0..6))
                .await
        });
        ran.expect("in time").expect("settled");
        assert_eq!(chain.world().next(), 6);
    }
}
