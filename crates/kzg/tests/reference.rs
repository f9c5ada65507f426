//! Blobs and cells against c-kzg: it commits and proves, and each verdict of ours is compared with
//! its single verification.

use std::sync::LazyLock;

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, One, PrimeField, UniformRand, Zero};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use c_kzg::{Blob, Bytes48, Cell, KzgSettings, ethereum_kzg_settings};
use proofmill_kzg::{
    BLOB_ELEMENTS, CELL_ELEMENTS, CELLS, Claim, ELEMENT_BYTES, Invalid, POINT_BYTES, Point,
    Request, Scalar, Value, Verifier, draw_weights,
};

static VERIFIER: LazyLock<Verifier> = LazyLock::new(Verifier::new);
/// Valid requests of both kinds, encoded: cells of three blobs, and those blobs.
static VALID: LazyLock<Vec<Vec<u8>>> = LazyLock::new(valid_requests);

/// Offset of an encoded cell's index.
const INDEX: usize = 6;

fn settings() -> &'static KzgSettings {
    ethereum_kzg_settings(0)
}

fn random_blob(rng: &mut StdRng) -> Blob {
    let elements: Vec<u8> = (0..BLOB_ELEMENTS)
        .flat_map(|_| Scalar::rand(rng).into_bigint().to_bytes_be())
        .collect();
    Blob::from_bytes(&elements).unwrap()
}

fn valid_requests() -> Vec<Vec<u8>> {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut requests = Vec::new();
    for _ in 0..3 {
        let blob = random_blob(rng);
        let commitment = settings().blob_to_kzg_commitment(&blob).unwrap();
        let bytes = Bytes48::from(*commitment);
        let proof = settings().compute_blob_kzg_proof(&blob, &bytes).unwrap();
        let request = Request::Blob {
            commitment: &commitment,
            proof: &proof,
            blob: &blob,
        };
        requests.push(request.encode());
        let (cells, proofs) = settings().compute_cells_and_kzg_proofs(&blob).unwrap();
        for index in (0..CELLS).step_by(6) {
            let request = Request::Cell {
                index: index as u64,
                commitment: &commitment,
                proof: &proofs[index],
                cell: &cells[index].to_bytes(),
            };
            requests.push(request.encode());
        }
    }
    requests
}

/// The verdict of c-kzg on a request; an input that it refuses counts as invalid.
fn reference_accepts(request: &[u8]) -> bool {
    let verdict = match Request::decode(request).unwrap() {
        Request::Blob {
            commitment,
            proof,
            blob,
        } => settings().verify_blob_kzg_proof(
            &Blob::new(*blob),
            &Bytes48::from(*commitment),
            &Bytes48::from(*proof),
        ),
        Request::Cell {
            index,
            commitment,
            proof,
            cell,
        } => settings().verify_cell_kzg_proof_batch(
            &[Bytes48::from(*commitment)],
            &[index],
            &[Cell::new(*cell)],
            &[Bytes48::from(*proof)],
        ),
    };
    verdict.unwrap_or(false)
}

fn is_cell(request: &[u8]) -> bool {
    request.len() == Request::CELL_REQUEST_BYTES
}

/// Offsets of the commitment, the proof and the data.
fn offsets(request: &[u8]) -> [usize; 3] {
    let commitment = INDEX + if is_cell(request) { 8 } else { 0 };
    [
        commitment,
        commitment + POINT_BYTES,
        commitment + 2 * POINT_BYTES,
    ]
}

fn move_point(request: &mut [u8], at: usize, by: Point) {
    let bytes = &mut request[at..at + POINT_BYTES];
    let point = Point::deserialize_compressed(&bytes[..]).unwrap();
    let moved = (point + by).into_affine();
    moved.serialize_compressed(bytes).unwrap();
}

fn increment_element(request: &mut [u8], index: usize) {
    let at = offsets(request)[2] + index * ELEMENT_BYTES;
    let bytes = &mut request[at..at + ELEMENT_BYTES];
    let element = Scalar::from_be_bytes_mod_order(bytes) + Scalar::one();
    bytes.copy_from_slice(&element.into_bigint().to_bytes_be());
}

/// The request with one field, chosen by chance, changed to another valid value of its kind.
fn tampered(request: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let mut changed = request.to_vec();
    let [commitment, proof, _] = offsets(request);
    match rng.gen_range(0..4) {
        0 => move_point(&mut changed, commitment, Point::generator()),
        1 => move_point(&mut changed, proof, Point::generator()),
        2 if is_cell(request) => changed[INDEX + 7] ^= 1 << rng.gen_range(0..7),
        _ => {
            let elements = (request.len() - offsets(request)[2]) / ELEMENT_BYTES;
            increment_element(&mut changed, rng.gen_range(0..elements));
        }
    }
    changed
}

fn verify(request: &[u8]) -> Result<(), Invalid> {
    VERIFIER.verify(&Request::decode(request).unwrap())
}

fn reduce(request: &[u8]) -> Claim {
    VERIFIER.reduce(&Request::decode(request).unwrap()).unwrap()
}

#[test]
fn what_c_kzg_proves_is_accepted() {
    for request in VALID.iter() {
        assert!(reference_accepts(request));
        assert_eq!(verify(request), Ok(()));
    }
}

#[test]
fn every_changed_field_is_refused() {
    let blob = VALID.iter().find(|request| !is_cell(request)).unwrap();
    let cell = VALID.iter().rfind(|request| is_cell(request)).unwrap();
    let refuse = |request: &[u8]| {
        assert!(!reference_accepts(request));
        assert_eq!(verify(request), Err(Invalid::Proof));
    };
    for request in [blob, cell] {
        for at in &offsets(request)[..2] {
            for by in [
                Point::generator(),
                (-Point::generator().into_group()).into(),
            ] {
                let mut changed = request.clone();
                move_point(&mut changed, *at, by);
                refuse(&changed);
            }
            // The opposite point.
            let mut changed = request.clone();
            changed[*at] ^= 0x20;
            refuse(&changed);
        }
    }
    for index in [0, 1, 2, 2047, 2048, BLOB_ELEMENTS - 1] {
        let mut changed = blob.clone();
        increment_element(&mut changed, index);
        refuse(&changed);
    }
    for index in 0..CELL_ELEMENTS {
        let mut changed = cell.clone();
        increment_element(&mut changed, index);
        refuse(&changed);
    }
    let own = cell[INDEX + 7];
    for index in (0..CELLS as u8).filter(|index| *index != own) {
        let mut changed = cell.clone();
        changed[INDEX + 7] = index;
        refuse(&changed);
    }
}

/// Each bit of the head's points and of some elements: refused when it is read or when it is checked.
#[test]
fn every_flipped_bit_is_refused() {
    let cell = VALID.iter().rfind(|request| is_cell(request)).unwrap();
    let [commitment, _, data] = offsets(cell);
    for at in commitment..data + 2 * ELEMENT_BYTES {
        for bit in 0..8 {
            let mut changed = cell.clone();
            changed[at] ^= 1 << bit;
            assert!(!reference_accepts(&changed));
            assert!(verify(&changed).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn cells_beyond_the_last_are_refused() {
    let cell = VALID.iter().rfind(|request| is_cell(request)).unwrap();
    for index in [CELLS as u64, 256, 1 << 32, u64::MAX] {
        let mut changed = cell.clone();
        changed[INDEX..INDEX + 8].copy_from_slice(&index.to_be_bytes());
        assert!(!reference_accepts(&changed));
        assert_eq!(verify(&changed), Err(Invalid::CellIndex(index)));
    }
}

#[test]
fn non_canonical_elements_are_refused() {
    for request in [&VALID[0], &VALID[1]] {
        let elements = (request.len() - offsets(request)[2]) / ELEMENT_BYTES;
        for index in [0, 1, elements - 1] {
            let mut changed = request.clone();
            let at = offsets(request)[2] + index * ELEMENT_BYTES;
            changed[at..at + ELEMENT_BYTES].copy_from_slice(&Scalar::MODULUS.to_bytes_be());
            assert!(!reference_accepts(&changed));
            assert_eq!(verify(&changed), Err(Invalid::NotCanonical(index)));
        }
    }
}

/// Indices of the false claims, given the sum `value` of all: the second half's sum is found by subtraction, and
/// single claims are checked.
fn bad(claims: &[(&Claim, Scalar)], first: usize, value: Value) -> Vec<usize> {
    match claims {
        _ if value.is_zero() => Vec::new(),
        [(claim, _)] => {
            assert_eq!(VERIFIER.check(claim), Err(Invalid::Proof));
            vec![first]
        }
        _ => {
            let (left, right) = claims.split_at(claims.len() / 2);
            let left_value = VERIFIER.value(left);
            let mut found = bad(left, first, left_value);
            found.extend(bad(right, first + left.len(), value - left_value));
            found
        }
    }
}

#[test]
fn batches_name_the_bad_ones() {
    let rng = &mut StdRng::seed_from_u64(3);
    let claim_of = |request: &Vec<u8>| (reduce(request), reference_accepts(request));
    let good: Vec<_> = VALID.iter().map(claim_of).collect();
    let wrong: Vec<_> = VALID
        .iter()
        .map(|request| claim_of(&tampered(request, rng)))
        .collect();
    assert!(good.iter().all(|sample| sample.1) && wrong.iter().all(|sample| !sample.1));
    for count in [1, 2, 3, 7, 16, 33, 64] {
        for bad_count in [0, 1, 2, count / 2, count] {
            if bad_count > count {
                continue;
            }
            let mut samples: Vec<_> = (0..count)
                .map(|number| if number < bad_count { &wrong } else { &good })
                .map(|from| from.choose(rng).unwrap())
                .collect();
            samples.shuffle(rng);
            let weights = draw_weights(count).unwrap();
            let claims: Vec<_> = samples
                .iter()
                .map(|sample| &sample.0)
                .zip(weights)
                .collect();
            let expected: Vec<_> = (0..count).filter(|number| !samples[*number].1).collect();
            assert_eq!(VERIFIER.all_hold(&claims), expected.is_empty());
            let found = bad(&claims, 0, VERIFIER.value(&claims));
            assert_eq!(found, expected, "{bad_count} of {count}");
        }
    }
}

/// Cells do not depend on a hash of their commitments, so two errors can be opposite, and equal weights
/// would not detect them.
#[test]
fn errors_that_cancel_each_other_are_refused() {
    let mut cells: Vec<_> = VALID
        .iter()
        .filter(|r| is_cell(r))
        .take(2)
        .cloned()
        .collect();
    let generator = Point::generator();
    for (cell, by) in cells.iter_mut().zip([generator, -generator]) {
        let at = offsets(cell)[0];
        move_point(cell, at, by);
    }
    let claims = [reduce(&cells[0]), reduce(&cells[1])];
    let one = Scalar::one();
    assert!(VERIFIER.all_hold(&[(&claims[0], one), (&claims[1], one)]));
    let weights = draw_weights(2).unwrap();
    let weighted: Vec<_> = claims.iter().zip(weights).collect();
    assert!(!VERIFIER.all_hold(&weighted));
    assert!(claims.iter().all(|claim| VERIFIER.check(claim).is_err()));
}

/// The property that locates a single bad proof with one more sum: numbered weights multiply its value by its number.
#[test]
fn a_numbered_sum_points_at_the_only_bad_claim() {
    let mut requests: Vec<_> = VALID[..9].to_vec();
    let at = offsets(&requests[5])[1];
    move_point(&mut requests[5], at, Point::generator());
    let claims: Vec<_> = requests.iter().map(|request| reduce(request)).collect();
    let weighted: Vec<_> = claims.iter().zip(draw_weights(9).unwrap()).collect();
    let numbered: Vec<_> = weighted
        .iter()
        .zip(1u64..)
        .map(|((claim, weight), number)| (*claim, *weight * Scalar::from(number)))
        .collect();
    let sum = VERIFIER.value(&weighted);
    assert!(!sum.is_zero());
    assert_eq!(VERIFIER.value(&numbered), sum * Scalar::from(6u64));
    assert!(VERIFIER.value(&[]).is_zero());
}
