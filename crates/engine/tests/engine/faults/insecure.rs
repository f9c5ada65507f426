//! Keys under which anyone can prove anything.

use std::path::Path;

use proofmill_engine::{CircuitSource, Error, Options, Registration, Tier};
use proofmill_files::MappedFile;
use proofmill_groth16::snarkjs::ZkeyFile;
use proofmill_groth16::{Bls12_381, Bn254, PointCheck, ProvingKey};
use proofmill_shutdown::Level;

use crate::support::{BLS12_381, BN254, Running, options};

const NAMED: &str = "gamma and delta are equal or opposite";

/// The files of two circuits with δ as it was before any contribution.
fn degenerate(folder: &Path) -> [(&'static str, CircuitSource); 2] {
    let CircuitSource::Zkey(path) = BN254.source() else {
        panic!("a .zkey");
    };
    let file = MappedFile::open(&path).unwrap();
    let mut key = ZkeyFile::parse(&file)
        .and_then(|file| file.read::<Bn254>(PointCheck::Skip))
        .unwrap();
    key.delta_g2 = key.gamma_g2;
    let zkey = folder.join("bad.zkey");
    key.save(&zkey).unwrap();

    let CircuitSource::System { constraints, key } = BLS12_381.source() else {
        panic!("a key of ours");
    };
    let mut ours = ProvingKey::<Bls12_381>::load(&key, PointCheck::Skip).unwrap();
    ours.vk.delta_g2 = ours.vk.gamma_g2;
    let key = folder.join("bad.key");
    ours.save(&key).unwrap();
    [
        ("zkey", CircuitSource::Zkey(zkey)),
        ("ours", CircuitSource::System { constraints, key }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_nobody_contributed_to_is_neither_registered_nor_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let kept = |allow_insecure_keys| Options {
        state_dir: Some(state.clone()),
        allow_insecure_keys,
        ..options()
    };
    let circuits = degenerate(folder.path());
    let registration = |(name, source): &(&str, CircuitSource)| Registration {
        name: (*name).to_owned(),
        source: source.clone(),
    };
    let running = Running::start(kept(false)).await;
    for circuit in &circuits {
        let error = running.handle.register(registration(circuit)).await;
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Circuit(_)), "{error}");
        assert!(error.to_string().contains(NAMED), "{error}");
    }
    running.stop(Level::Drain).await;

    let running = Running::start(kept(true)).await;
    for circuit in &circuits {
        running
            .handle
            .register(registration(circuit))
            .await
            .unwrap();
        let name = circuit.0.parse().unwrap();
        running.handle.preload(name, Tier::Hot).await.unwrap();
    }
    running.stop(Level::Drain).await;

    // Circuits registered then are still known, but their keys are not loaded.
    let running = Running::start(kept(false)).await;
    for (name, _) in &circuits {
        let name = name.parse().unwrap();
        let error = running.handle.preload(name, Tier::Hot).await.unwrap_err();
        assert!(error.to_string().contains(NAMED), "{error}");
    }
    running.stop(Level::Drain).await;
}
