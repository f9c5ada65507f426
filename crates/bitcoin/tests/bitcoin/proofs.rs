//! Keys, proofs and verdicts for chunks of Bitcoin headers.

use std::sync::{Mutex, OnceLock};

use proofmill_bitcoin::{ChainFault, CompactTarget, Header, U256, mainnet_headers};
use proofmill_bitcoin::{
    ChunkProof, HeaderChainKeys, HeaderChainVerifier, KeysError, ProveError, prove_chunk,
    verify_chunks,
};
use proofmill_groth16::{KeyError, VerifyingKey};

/// One key directory for all tests of this file; two threads race for the key.
fn keys() -> &'static HeaderChainKeys {
    static KEYS: OnceLock<(tempfile::TempDir, HeaderChainKeys)> = OnceLock::new();
    let (_, keys) = KEYS.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let steps = Mutex::new(Vec::new());
        let generate = || {
            HeaderChainKeys::load_or_generate(directory.path(), 2, &|step| {
                steps.lock().unwrap().push(step.to_owned());
            })
            .unwrap()
        };
        let load = || HeaderChainKeys::load_or_generate(directory.path(), 2, &|_| {}).unwrap();
        let (one, two) = std::thread::scope(|scope| {
            let other = scope.spawn(load);
            (generate(), other.join().unwrap())
        });
        assert_eq!(
            one.verifier().vk(),
            two.verifier().vk(),
            "both must have the same key"
        );
        assert!(!steps.into_inner().unwrap().is_empty());
        (directory, one)
    });
    keys
}

#[test]
fn full_and_short_chunks_are_proven_and_verified_together() {
    let headers = mainnet_headers();
    let chunks: Vec<ChunkProof> = [&headers[..2], &headers[2..4], &headers[4..5]]
        .map(|headers| prove_chunk(keys(), headers).unwrap())
        .into();
    let mut batch: Vec<_> = chunks
        .iter()
        .map(|chunk| (chunk.statement.clone(), chunk.proof))
        .collect();
    assert!(
        verify_chunks(keys().verifier(), &batch)
            .iter()
            .all(Result::is_ok)
    );
    assert_eq!(chunks[0].statement.last_hash, chunks[1].statement.prev_hash);
    assert_eq!(
        chunks[0].statement.total_work(),
        Ok(U256::from(2 * 0x1_0001_0001))
    );

    // One proof under another's statement, and a statement that fits no circuit.
    batch[1].1 = batch[0].1;
    batch[2].0.bits = vec![CompactTarget(0x1d00_ffff); 3];
    let verdicts = verify_chunks(keys().verifier(), &batch);
    assert_eq!(
        verdicts.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, false, false]
    );

    let bytes = chunks[2].to_bytes();
    let decoded = ChunkProof::from_bytes(&bytes).unwrap();
    assert_eq!(
        (&decoded.statement, decoded.proof),
        (&chunks[2].statement, chunks[2].proof)
    );
    for index in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[index] ^= 1;
        assert!(ChunkProof::from_bytes(&bad).is_err(), "byte {index}");
        assert!(
            ChunkProof::from_bytes(&bytes[..index]).is_err(),
            "cut at {index}"
        );
    }

    // Any change of the statement makes the proof fail.
    let good = (&chunks[2].statement, chunks[2].proof);
    let tampered = [
        {
            let mut s = good.0.clone();
            s.prev_hash.0[0] ^= 1;
            s
        },
        {
            let mut s = good.0.clone();
            s.prev_hash.0[31] ^= 1;
            s
        },
        {
            let mut s = good.0.clone();
            s.last_hash.0[0] ^= 1;
            s
        },
        {
            let mut s = good.0.clone();
            s.last_hash.0[31] ^= 1;
            s
        },
        {
            let mut s = good.0.clone();
            s.bits[0].0 ^= 1;
            s
        },
        {
            let mut s = good.0.clone();
            s.bits.push(CompactTarget(0));
            s
        },
        {
            let mut s = good.0.clone();
            s.bits.push(s.bits[0]);
            s
        },
    ];
    for statement in tampered {
        let verdict = &verify_chunks(keys().verifier(), &[(statement.clone(), good.1)])[0];
        assert!(verdict.is_err(), "{statement:?}");
    }
}

#[test]
fn an_invalid_header_is_named_and_never_retried() {
    let mut headers = mainnet_headers()[6..8].to_vec();
    let mut bytes = *headers[1].as_bytes();
    bytes[77] ^= 4;
    headers[1] = Header::new(bytes);
    let error = prove_chunk(keys(), &headers).unwrap_err();
    assert!(error.is_permanent());
    assert!(error.to_string().contains("header 1: its hash"), "{error}");
    let ProveError::InvalidHeader(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.index, 1);
    assert!(matches!(error.fault, ChainFault::TargetMissed { .. }));

    for count in [0, 3] {
        let error = prove_chunk(keys(), &mainnet_headers()[..count]).unwrap_err();
        assert!(
            matches!(error, ProveError::Count(_)) && error.is_permanent(),
            "{error}"
        );
    }
}

#[test]
fn keys_are_cached_and_corruption_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let source = keys().key_path();
    let path = directory.path().join(source.file_name().unwrap());
    std::fs::copy(source, &path).unwrap();
    let loaded = HeaderChainKeys::load_or_generate(directory.path(), 2, &|step| {
        assert!(!step.contains("generating"), "{step}");
    });
    assert_eq!(loaded.unwrap().proving_key(), keys().proving_key());

    let vk = VerifyingKey::load(&path.with_extension("vk")).unwrap();
    assert_eq!(
        HeaderChainVerifier::new(2, vk.clone()).unwrap().vk(),
        keys().verifier().vk()
    );
    assert!(matches!(
        HeaderChainVerifier::new(3, vk),
        Err(KeyError::Circuit)
    ));

    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = HeaderChainKeys::load_or_generate(directory.path(), 2, &|_| {}).unwrap_err();
    assert!(
        matches!(
            error,
            KeysError::Key {
                source: KeyError::Checksum,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("delete the file"), "{error}");
}
