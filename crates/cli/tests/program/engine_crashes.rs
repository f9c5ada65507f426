//! An engine that is killed while clients have proofs made, and started again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::engine::{fixtures, serve};
use crate::support::{eventually, folder, run};

const KILLS: usize = 3;
const CLIENTS: usize = 2;

/// A client's requests, and the proofs that it was given.
type Known = BTreeMap<(usize, usize), Vec<u8>>;

/// Asks for a request's proof until there is one.
fn prove(folder: &Path, client: usize, request: usize) -> Vec<u8> {
    let file = format!("{client}-{request}.json");
    let (client, request) = (client.to_string(), request.to_string());
    let args = ["engine", "prove", "circuit", "witness.wtns", "-o", &file];
    let who = ["--client", &client, "--request", &request];
    eventually("a proof", || {
        let ran = run(folder, args.iter().chain(&who));
        (ran.code == Some(0)).then_some(())
    });
    std::fs::read(folder.join(file)).expect("written")
}

#[test]
fn killed_at_any_moment_it_loses_no_job_and_gives_each_one_proof() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    let mut engine = serve(here, &[]);
    let (stop, proven) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    let client = move |number: usize| {
        let mut known = Known::new();
        for request in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let proof = prove(here, number, request);
            assert_eq!(prove(here, number, request), proof, "{number}/{request}");
            known.insert((number, request), proof);
            proven.fetch_add(1, Ordering::Relaxed);
        }
        known
    };
    let mut random = StdRng::seed_from_u64(7);
    let mut all = Known::new();
    let engine = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(move || client(number)))
            .collect();
        for _ in 0..KILLS {
            let before = proven.load(Ordering::Relaxed);
            eventually("something is proven", || {
                (proven.load(Ordering::Relaxed) > before).then_some(())
            });
            // Wherever it then is.
            std::thread::sleep(Duration::from_millis(random.random_range(0..200)));
            engine.kill();
            engine = serve(here, &[]);
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            all.extend(client.join().expect("no panic"));
        }
        engine
    });
    engine.kill();
    let engine = serve(here, &[]);
    assert!(all.len() >= KILLS, "{}", all.len());
    for ((client, request), proof) in &all {
        assert_eq!(&prove(here, *client, *request), proof, "{client}/{request}");
    }
    // Nothing was made again.
    let status = run(here, ["engine", "status", "--json"]).succeeded().json();
    assert_eq!(status["counts"]["done"], 0, "{status}");
    engine.kill();
}
