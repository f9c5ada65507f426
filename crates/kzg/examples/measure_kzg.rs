//! Times of verifying blobs and cells on one thread, beside c-kzg's:
//! `cargo run --release -p proofmill-kzg --example measure_kzg`.

use std::time::Instant;

use ark_ff::{BigInteger, PrimeField, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use c_kzg::{Blob, Bytes48, Cell, ethereum_kzg_settings};
use proofmill_kzg::{BLOB_ELEMENTS, CELL_BYTES, CELLS, Request, Scalar, Verifier, draw_weights};

const BLOBS: usize = 6;

/// Prints the best of some runs.
fn time<T>(name: &str, mut work: impl FnMut() -> T) {
    let best = (0..10)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_secs_f64() * 1e3
        })
        .fold(f64::MAX, f64::min);
    println!("{name:<52} {best:>8.3} ms");
}

/// Reduces requests and checks them together.
fn verify(verifier: &Verifier, requests: &[Request<'_>]) {
    let reduce = |request| verifier.reduce(request).expect("a valid request");
    let claims: Vec<_> = requests.iter().map(reduce).collect();
    let weights = draw_weights(claims.len()).expect("random numbers");
    let weighted: Vec<_> = claims.iter().zip(weights).collect();
    assert!(verifier.all_hold(&weighted));
}

fn measure() {
    let rng = &mut StdRng::seed_from_u64(1);
    let settings = ethereum_kzg_settings(0);
    let verifier = Verifier::new();
    time("making a verifier", Verifier::new);

    let blobs: Vec<Blob> = (0..BLOBS)
        .map(|_| {
            let mut element = || Scalar::rand(rng).into_bigint().to_bytes_be();
            let bytes: Vec<u8> = (0..BLOB_ELEMENTS).flat_map(|_| element()).collect();
            Blob::from_bytes(&bytes).expect("a blob's bytes")
        })
        .collect();
    let commitments: Vec<Bytes48> = blobs
        .iter()
        .map(|blob| (*settings.blob_to_kzg_commitment(blob).expect("a blob")).into())
        .collect();
    let proofs: Vec<Bytes48> = blobs
        .iter()
        .zip(&commitments)
        .map(|(blob, commitment)| {
            let proof = settings.compute_blob_kzg_proof(blob, commitment);
            (*proof.expect("a blob and its commitment")).into()
        })
        .collect();
    let requests: Vec<_> = (0..BLOBS)
        .map(|i| Request::Blob {
            commitment: &commitments[i],
            proof: &proofs[i],
            blob: &blobs[i],
        })
        .collect();
    let claim = verifier.reduce(&requests[0]).expect("a valid blob");
    time("reducing a blob", || verifier.reduce(&requests[0]));
    time("checking a reduced blob", || verifier.check(&claim));
    time("a blob by c-kzg", || {
        settings.verify_blob_kzg_proof(&blobs[0], &commitments[0], &proofs[0])
    });
    time("6 blobs", || verify(&verifier, &requests));
    time("6 blobs by c-kzg", || {
        settings.verify_blob_kzg_proof_batch(&blobs, &commitments, &proofs)
    });

    let (cells, proofs) = settings
        .compute_cells_and_kzg_proofs(&blobs[0])
        .expect("a blob");
    let proofs: Vec<Bytes48> = proofs.iter().map(|proof| (**proof).into()).collect();
    let bytes: Vec<[u8; CELL_BYTES]> = cells.iter().map(Cell::to_bytes).collect();
    let requests: Vec<_> = (0..CELLS)
        .map(|index| Request::Cell {
            index: index as u64,
            commitment: &commitments[0],
            proof: &proofs[index],
            cell: &bytes[index],
        })
        .collect();
    let claim = verifier.reduce(&requests[0]).expect("a valid cell");
    time("reducing a cell", || verifier.reduce(&requests[0]));
    time("checking a reduced cell", || verifier.check(&claim));
    let indices: Vec<u64> = (0..CELLS as u64).collect();
    for count in [1, 64, 128] {
        time(&format!("{count} cells"), || {
            verify(&verifier, &requests[..count]);
        });
        time(&format!("{count} cells by c-kzg"), || {
            settings.verify_cell_kzg_proof_batch(
                &vec![commitments[0]; count],
                &indices[..count],
                &cells[..count],
                &proofs[..count],
            )
        });
    }
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(measure);
}
