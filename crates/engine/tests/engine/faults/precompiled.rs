//! Past faults of precompiled circuits. The format's own tests are in `proofmill-r1cs`.

use std::path::{Path, PathBuf};

use proofmill_engine::{CircuitSource, ConstraintsFrom, Options, Registration, Tier};
use proofmill_shutdown::Level;

use crate::support::{BLS12_381, Chain, FROM_R1CS, Running, options};

fn precompiled(state: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(state.join("precompiled")).unwrap();
    files.next().unwrap().unwrap().path()
}

#[tokio::test(flavor = "multi_thread")]
async fn precompiled_files_without_checksum_or_with_trusted_counts() {
    let state = tempfile::tempdir().unwrap();
    let options = Options {
        state_dir: Some(state.path().to_owned()),
        ..options()
    };
    let running = Running::with(options, &[FROM_R1CS]).await;
    let path = precompiled(state.path());
    let whole = std::fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut counted = whole.clone();
    // The number of constraints, after two heads, the prime, and two counts.
    counted[12 + 12 + 36 + 8..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    for broken in [flipped, counted, whole[..whole.len() - 1].to_vec()] {
        std::fs::write(&path, broken).unwrap();
        let view = running
            .handle
            .preload(FROM_R1CS.circuit(), Tier::Hot)
            .await
            .unwrap();
        assert_eq!(view.from, ConstraintsFrom::R1cs, "and that is said");
        assert_eq!(
            std::fs::read(&path).unwrap(),
            whole,
            "it is precompiled again"
        );
        running.handle.evict(FROM_R1CS.circuit()).await.unwrap();
    }
    let view = running
        .handle
        .preload(FROM_R1CS.circuit(), Tier::Hot)
        .await
        .unwrap();
    assert_eq!(view.from, ConstraintsFrom::Precompiled);
    running.prove(FROM_R1CS, "1", 1).await;
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn precompiled_files_without_circuit_binding() {
    let folder = tempfile::tempdir().unwrap();
    let source = BLS12_381.make(folder.path());
    let CircuitSource::System { constraints, .. } = &source else {
        unreachable!()
    };
    let running = Running::start(options()).await;
    let registration = Registration {
        name: BLS12_381.name(),
        source: source.clone(),
    };
    running.handle.register(registration).await.unwrap();
    // A valid file of another circuit of the same curve in its place.
    let other = Chain {
        length: 201,
        ..BLS12_381
    };
    other
        .system::<proofmill_groth16::Bls12_381>()
        .save_precompiled(constraints)
        .unwrap();
    let error = running
        .handle
        .preload(BLS12_381.circuit(), Tier::Hot)
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("not the file that was registered"),
        "{error}"
    );
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_precompiled_path_silently_unused() {
    let running = Running::with(options(), &[FROM_R1CS, BLS12_381]).await;
    for chain in [FROM_R1CS, BLS12_381] {
        running.prove(chain, &chain.name(), 1).await;
    }
    for circuit in running.handle.circuits().await.unwrap() {
        assert_eq!(
            circuit.from,
            ConstraintsFrom::Precompiled,
            "{}",
            circuit.name
        );
    }
    running.stop(Level::Drain).await;
}
