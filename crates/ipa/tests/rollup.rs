//! Real `noir-rollup` proofs of barretenberg, made by `data/make.mjs`.

use std::sync::LazyLock;

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, PrimeField};
use proofmill_ipa::{
    Base, BatchError, DecodeError, Opening, Point, ROLLUP_LOG_SIZE, Srs, Verifier,
};

static VERIFIER: LazyLock<Verifier> =
    LazyLock::new(|| Verifier::new(&Srs::derive(ROLLUP_LOG_SIZE), 16 << 20));

const PROOFS: [&[u8]; 3] = [
    include_bytes!("data/rollup-0.proof"),
    include_bytes!("data/rollup-1.proof"),
    include_bytes!("data/rollup-2.proof"),
];

/// Elements of a proof.
const ELEMENTS: usize = 480;
/// Elements of x and v, each in two halves.
const CLAIMED_SCALARS: std::ops::Range<usize> = 8..12;
/// First element of C.
const COMMITMENT: usize = 12;
/// Elements of the rounds' points and of G₀.
const POINTS: std::ops::Range<usize> = 416..478;
/// Elements of a₀, in two halves.
const FOLDED_COEFFICIENT: std::ops::Range<usize> = 478..480;

fn opening(proof: &[u8]) -> Opening {
    Opening::from_rollup_proof(proof).unwrap()
}

fn element(proof: &mut [u8], index: usize) -> &mut [u8] {
    &mut proof[32 * index..][..32]
}

/// Adds one to an element, which is not the modulus less one.
fn increment(proof: &mut [u8], index: usize) {
    let element = element(proof, index);
    let value = Base::from_be_bytes_mod_order(element) + Base::from(1);
    element.copy_from_slice(&value.into_bigint().to_bytes_be());
}

/// Replaces a point by another.
fn move_point(proof: &mut [u8], index: usize) {
    let [x, y] = [index, index + 1].map(|i| Base::from_be_bytes_mod_order(element(proof, i)));
    let moved = (Point::new(x, y) + Point::generator()).into_affine();
    for (index, coordinate) in [(index, moved.x), (index + 1, moved.y)] {
        element(proof, index).copy_from_slice(&coordinate.into_bigint().to_bytes_be());
    }
}

#[test]
fn real_proofs_are_accepted() {
    let openings = PROOFS.map(opening);
    for opening in &openings {
        assert_eq!(VERIFIER.verify(opening), Ok(()));
        let compact = opening.to_compact();
        assert_eq!(compact.len(), 2150);
        assert_eq!(Opening::from_compact(&compact).as_ref(), Ok(opening));
    }
    VERIFIER.verify_batch(&openings).unwrap();
}

/// Each element of the claim and of the argument, changed alone: a coordinate is no point's any
/// more, a half of a scalar makes another scalar.
#[test]
fn every_changed_element_is_refused() {
    let points = || POINTS.chain(COMMITMENT..COMMITMENT + 2);
    for index in points() {
        let mut proof = PROOFS[0].to_vec();
        increment(&mut proof, index);
        let error = Opening::from_rollup_proof(&proof).unwrap_err();
        assert!(
            matches!(error, DecodeError::NotOnCurve(_)),
            "{index}: {error}"
        );
    }
    for index in CLAIMED_SCALARS.chain(FOLDED_COEFFICIENT) {
        let mut proof = PROOFS[0].to_vec();
        increment(&mut proof, index);
        assert!(VERIFIER.verify(&opening(&proof)).is_err(), "{index}");
    }
}

/// Each point, replaced by another one of the curve, alone and in a batch.
#[test]
fn every_changed_point_is_refused() {
    for index in POINTS.step_by(2).chain([COMMITMENT]) {
        let mut proof = PROOFS[1].to_vec();
        move_point(&mut proof, index);
        let changed = opening(&proof);
        assert!(VERIFIER.verify(&changed).is_err(), "{index}");
        let batch = VERIFIER.verify_batch(&[opening(PROOFS[0]), changed]);
        assert!(matches!(batch, Err(BatchError::Invalid(2))), "{index}");
    }
}

/// The claim of one proof with the argument of another.
#[test]
fn arguments_hold_for_their_claims_only() {
    let [first, second, _] = PROOFS.map(opening);
    let mixed = Opening {
        claim: first.claim,
        ..second
    };
    assert!(VERIFIER.verify(&mixed).is_err());
}

#[test]
fn non_canonical_elements_are_refused_wherever_they_are() {
    let modulus = Base::MODULUS.to_bytes_be();
    for index in 0..ELEMENTS {
        for bytes in [modulus.as_slice(), &[0xff; 32]] {
            let mut proof = PROOFS[0].to_vec();
            element(&mut proof, index).copy_from_slice(bytes);
            let error = Opening::from_rollup_proof(&proof).unwrap_err();
            assert_eq!(error, DecodeError::NotCanonical(index));
        }
    }
}

#[test]
fn halves_of_scalars_have_their_bits() {
    for (index, bits) in [
        (8, 136),
        (9, 118),
        (10, 136),
        (11, 118),
        (478, 136),
        (479, 118),
    ] {
        let mut proof = PROOFS[0].to_vec();
        let element = element(&mut proof, index);
        element.fill(0);
        element[31 - bits / 8] = 1 << (bits % 8);
        let error = Opening::from_rollup_proof(&proof).unwrap_err();
        let bits = bits as u32;
        assert_eq!(error, DecodeError::Limb { index, bits });
    }
    // Both halves in range, and together not below the modulus.
    for index in [8, 10, 478] {
        let mut proof = PROOFS[0].to_vec();
        element(&mut proof, index).copy_from_slice(&bits_set(136));
        element(&mut proof, index + 1).copy_from_slice(&bits_set(118));
        let error = Opening::from_rollup_proof(&proof).unwrap_err();
        assert_eq!(error, DecodeError::Scalar(index));
    }
}

/// 2^bits − 1.
fn bits_set(bits: usize) -> [u8; 32] {
    std::array::from_fn(|i| {
        let lower = 8 * (31 - i);
        (0..8)
            .filter(|bit| lower + bit < bits)
            .map(|bit| 1 << bit)
            .sum()
    })
}

#[test]
fn other_lengths_are_refused() {
    for length in [0, 31, 32 * 64, 32 * 479, 32 * 480 - 1] {
        let error = Opening::from_rollup_proof(&PROOFS[0][..length]).unwrap_err();
        assert_eq!(error.to_string(), format!("{length} bytes: expected 15360"));
    }
    let longer = [PROOFS[0], &[0]].concat();
    assert!(Opening::from_rollup_proof(&longer).is_err());
}
