//! A small circuit's proofs: each verdict of ours is compared with halo2's own single verification.

#[expect(unreachable_pub, reason = "an example makes data with it")]
mod circuit;
mod random;
mod shapes;

use std::sync::{Arc, LazyLock};

use ark_ff::{BigInteger, One, PrimeField, Zero};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use halo2_proofs::pasta::{EqAffine, Fp};
use halo2_proofs::plonk::{
    BatchVerifier, ProvingKey, SingleVerifier, VerifyingKey as Halo2Key, verify_proof,
};
use halo2_proofs::poly::commitment::Params as Halo2Params;
use halo2_proofs::transcript::{Blake2bRead, Challenge255};
use proofmill_halo2::{
    Claim, Invalid, KeyError, Params, Scalar, Sum, Verifier, VerifyingKey, draw_weights,
};

use circuit::FACTORS;

static HALO2: LazyLock<(Halo2Params<EqAffine>, ProvingKey<EqAffine>)> =
    LazyLock::new(circuit::keys);
static KEY: LazyLock<Arc<VerifyingKey>> = LazyLock::new(|| {
    let text = format!("{:?}", HALO2.1.get_vk().pinned());
    Arc::new(VerifyingKey::from_pinned(&text).unwrap())
});
static VERIFIER: LazyLock<Verifier> =
    LazyLock::new(|| Verifier::new(&Params::derive(circuit::K), 4, 1 << 20));
/// Valid proofs: of one circuit, and the last two of two and three together.
static VALID: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let rng = &mut StdRng::seed_from_u64(1);
    let counts = [1, 1, 1, 1, 1, 1, 2, 3];
    counts.into_iter().map(|count| sample(count, rng)).collect()
});

/// A proof and its public inputs.
#[derive(Clone)]
struct Sample {
    inputs: Vec<Vec<u64>>,
    proof: Vec<u8>,
}

fn sample(count: usize, rng: &mut StdRng) -> Sample {
    let chains: Vec<(u64, [u64; FACTORS])> = (0..count)
        .map(|_| {
            (
                rng.gen_range(1..100),
                [(); FACTORS].map(|()| rng.gen_range(1..16)),
            )
        })
        .collect();
    let inputs = chains.iter().map(|(s, f)| circuit::inputs(*s, *f).to_vec());
    Sample {
        inputs: inputs.collect(),
        proof: circuit::prove(&HALO2, &chains),
    }
}

impl Sample {
    fn instances(&self) -> Vec<Vec<Vec<Scalar>>> {
        let column = |inputs: &Vec<u64>| inputs.iter().map(|input| Scalar::from(*input)).collect();
        self.inputs
            .iter()
            .map(|inputs| vec![column(inputs)])
            .collect()
    }

    fn reduce(&self) -> Result<Claim, Invalid> {
        VERIFIER.reduce(&KEY, &self.instances(), &self.proof)
    }

    fn verify(&self) -> Result<(), Invalid> {
        VERIFIER.check(&self.reduce()?)
    }

    /// halo2's own verdict.
    fn reference_accepts(&self) -> bool {
        let column = |inputs: &Vec<u64>| inputs.iter().map(|input| Fp::from(*input)).collect();
        let columns = self.inputs.iter().map(|inputs| vec![column(inputs)]);
        let (params, key) = &*HALO2;
        halo2_accepts(
            params,
            key.get_vk(),
            &columns.collect::<Vec<_>>(),
            &self.proof,
        )
    }
}

/// halo2's own verdict, with the public inputs of each circuit by columns.
fn halo2_accepts(
    params: &Halo2Params<EqAffine>,
    key: &Halo2Key<EqAffine>,
    instances: &[Vec<Vec<Fp>>],
    proof: &[u8],
) -> bool {
    let instances: Vec<Vec<&[Fp]>> = instances
        .iter()
        .map(|circuit| circuit.iter().map(|column| &column[..]).collect())
        .collect();
    let instances: Vec<&[&[Fp]]> = instances.iter().map(|columns| &columns[..]).collect();
    let strategy = SingleVerifier::new(params);
    let mut transcript = Blake2bRead::<_, EqAffine, Challenge255<_>>::init(proof);
    verify_proof(params, key, strategy, &instances, &mut transcript).is_ok()
}

/// The sample with one part, chosen by chance, changed to another of its kind, as halo2 reads it.
fn tampered(sample: &Sample, rng: &mut StdRng) -> Sample {
    loop {
        let mut changed = sample.clone();
        if rng.gen_range(0..4) == 0 {
            let inputs = changed.inputs.choose_mut(rng).unwrap();
            *inputs.choose_mut(rng).unwrap() += 1;
        } else {
            let at = rng.gen_range(0..changed.proof.len());
            changed.proof[at] ^= 1 << rng.gen_range(0..8);
        }
        if changed.reduce().is_ok() {
            return changed;
        }
    }
}

#[test]
fn what_halo2_proves_is_accepted() {
    for sample in VALID.iter() {
        assert!(sample.reference_accepts());
        assert_eq!(sample.verify(), Ok(()));
    }
}

#[test]
fn every_changed_byte_is_refused() {
    for (sample, step) in [(&VALID[0], 1), (&VALID[7], 7)] {
        for at in (0..sample.proof.len()).step_by(step) {
            let mut changed = sample.clone();
            changed.proof[at] ^= 1 << (at % 8);
            assert!(changed.verify().is_err(), "byte {at}");
            if at % 64 == 0 {
                assert!(!changed.reference_accepts(), "byte {at}");
            }
        }
    }
}

/// Changes that still decode: each number of the proof plus one, and each point's negative.
#[test]
fn every_changed_element_is_refused() {
    let sample = &VALID[0];
    let mut reduced = 0;
    for at in (0..sample.proof.len()).step_by(32) {
        for sign in [false, true] {
            let mut changed = sample.clone();
            let word = &mut changed.proof[at..at + 32];
            if sign {
                word[31] ^= 0x80;
            } else {
                let value = Scalar::from_le_bytes_mod_order(word) + Scalar::one();
                word.copy_from_slice(&value.into_bigint().to_bytes_le());
            }
            reduced += usize::from(changed.reduce().is_ok());
            assert!(changed.verify().is_err(), "byte {at}");
            assert!(!changed.reference_accepts(), "byte {at}");
        }
    }
    assert!(reduced > sample.proof.len() / 32, "{reduced} were read");
}

#[test]
fn other_public_inputs_are_refused() {
    for sample in [&VALID[0], &VALID[7]] {
        for circuit in 0..sample.inputs.len() {
            for input in 0..2 {
                let mut changed = sample.clone();
                changed.inputs[circuit][input] += 1;
                assert!(!changed.reference_accepts());
                assert_eq!(changed.verify(), Err(Invalid::Proof));
            }
        }
    }
    let mut swapped = VALID[7].clone();
    swapped.inputs.swap(0, 1);
    assert!(swapped.inputs != VALID[7].inputs && !swapped.reference_accepts());
    assert_eq!(swapped.verify(), Err(Invalid::Proof));
}

#[test]
fn public_inputs_have_their_shape() {
    let sample = &VALID[0];
    let refuse = |instances: &[Vec<Vec<Scalar>>], expected| {
        let reduced = VERIFIER.reduce(&KEY, instances, &sample.proof);
        assert_eq!(reduced.unwrap_err(), expected);
    };
    let one = Scalar::one();
    refuse(&[], Invalid::Circuits(0));
    refuse(&vec![vec![]; 1 << 16], Invalid::Circuits(1 << 16));
    let (found, expected) = (2, 1);
    refuse(
        &[vec![vec![one], vec![one]]],
        Invalid::Columns { found, expected },
    );
    let (found, maximum) = (5, 4);
    refuse(&[vec![vec![one; 5]]], Invalid::Inputs { found, maximum });
    // No inputs are the same as zeros, which are other public inputs.
    for column in [vec![], vec![Scalar::zero(); 4]] {
        let verified = VERIFIER.verify(&KEY, &[vec![column]], &sample.proof);
        assert_eq!(verified, Err(Invalid::Proof));
    }
    // Inputs of zero behind the others are the same public inputs.
    let mut longer = sample.clone();
    longer.inputs[0].extend([0, 0]);
    assert!(longer.reference_accepts());
    assert_eq!(longer.verify(), Ok(()));
}

#[test]
fn other_lengths_are_refused() {
    let sample = &VALID[0];
    for length in 0..sample.proof.len() {
        let mut short = sample.clone();
        short.proof.truncate(length);
        assert_eq!(short.verify(), Err(Invalid::Short(length / 32 * 32)));
    }
    let mut long = sample.clone();
    long.proof.push(0);
    assert_eq!(long.verify(), Err(Invalid::Long(1)));
}

/// Indices of the false claims, given the sum `value` of all: the second half's sum is found by subtraction, and
/// single claims are checked.
fn bad(claims: &[(&Claim, Scalar)], first: usize, value: Sum) -> Vec<usize> {
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
    let judged = |sample: &Sample| (sample.reduce().unwrap(), sample.reference_accepts());
    let good: Vec<_> = VALID.iter().map(judged).collect();
    let wrong: Vec<_> = VALID.iter().map(|s| judged(&tampered(s, rng))).collect();
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

/// A verifier of more points checks claims of smaller circuits, beside those of others.
#[test]
fn circuits_of_fewer_rows_are_checked_with_more_points() {
    let larger = Verifier::new(&Params::derive(circuit::K + 1), 4, 1 << 20);
    let reduce = |sample: &Sample| larger.reduce(&KEY, &sample.instances(), &sample.proof);
    let mut claims: Vec<_> = VALID.iter().map(|s| reduce(s).unwrap()).collect();
    let weights = draw_weights(claims.len()).unwrap();
    let holds =
        |claims: &[Claim]| larger.all_hold(&claims.iter().zip(weights.clone()).collect::<Vec<_>>());
    assert!(holds(&claims));
    claims[2] = reduce(&tampered(&VALID[2], &mut StdRng::seed_from_u64(6))).unwrap();
    assert!(!holds(&claims));
    assert_eq!(larger.check(&claims[2]), Err(Invalid::Proof));
    assert_eq!(larger.check(&claims[3]), Ok(()));
}

/// halo2's own batches have one verdict for all.
#[test]
fn batches_agree_with_halo2s() {
    let rng = &mut StdRng::seed_from_u64(4);
    let (params, key) = &*HALO2;
    for bad_count in [0, 1, 3] {
        let mut samples: Vec<Sample> = VALID[..6].to_vec();
        for sample in &mut samples[..bad_count] {
            *sample = tampered(sample, rng);
        }
        let mut batch = BatchVerifier::new();
        for sample in &samples {
            let columns = sample.inputs.iter();
            let columns = columns.map(|c| vec![c.iter().map(|i| Fp::from(*i)).collect()]);
            batch.add_proof(columns.collect(), sample.proof.clone());
        }
        let claims: Vec<_> = samples.iter().map(|s| s.reduce().unwrap()).collect();
        let weighted: Vec<_> = claims.iter().zip(draw_weights(6).unwrap()).collect();
        assert_eq!(VERIFIER.all_hold(&weighted), bad_count == 0);
        assert_eq!(batch.finalize(params, key.get_vk()), bad_count == 0);
    }
}

/// The property that locates a single bad proof with one more sum: numbered weights multiply its value by its number.
#[test]
fn a_numbered_sum_points_at_the_only_bad_claim() {
    let mut claims: Vec<_> = VALID
        .iter()
        .map(|sample| sample.reduce().unwrap())
        .collect();
    let rng = &mut StdRng::seed_from_u64(5);
    claims[5] = tampered(&VALID[5], rng).reduce().unwrap();
    let weights = draw_weights(claims.len()).unwrap();
    let weighted: Vec<_> = claims.iter().zip(weights).collect();
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

#[test]
fn keys_are_read_and_other_texts_refused() {
    let text = format!("{:?}", HALO2.1.get_vk().pinned());
    assert_eq!((KEY.k(), KEY.instance_columns()), (circuit::K, 1));
    for length in (0..text.len()).step_by(7) {
        assert!(VerifyingKey::from_pinned(&text[..length]).is_err());
    }
    let refuse = |from: &str, to: &str, expected: &str| {
        assert!(text.contains(from), "{from}");
        let error = VerifyingKey::from_pinned(&text.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    refuse("k: 6", "k: 5", "no root of unity");
    refuse("k: 6", "k: 21", "more rows than 2^20");
    refuse(
        "query_index: 0",
        "query_index: 77",
        "a query that is not there",
    );
    refuse(
        "num_fixed_columns: ",
        "num_fixed_columns: 1",
        "one commitment for each",
    );
    refuse("column_type: Advice", "column_type: Fixed", "another query");
    refuse(
        "commitments: [(0x",
        "commitments: [(0xf",
        "an element of the field",
    );
    let (at, point) = text.match_indices("(0x").last().unwrap();
    let mut moved = text.clone();
    let digit = at + point.len()..at + point.len() + 1;
    let other = if &text[digit.clone()] == "0" {
        "1"
    } else {
        "0"
    };
    moved.replace_range(digit, other);
    let error = VerifyingKey::from_pinned(&moved).unwrap_err().to_string();
    assert!(error.contains("a point of Vesta"), "{error}");
    refuse("Product(", "Quotient(", "an expression");
    let rotations: String = (2..80)
        .map(|rotation| {
            format!("(Column {{ index: 0, column_type: Advice }}, Rotation({rotation})), ")
        })
        .collect();
    refuse(
        "advice_queries: [",
        &format!("advice_queries: [{rotations}"),
        "more than 64 rotations",
    );
    refuse(
        "minimum_degree: None",
        "minimum_degree: Some(99)",
        "too high a degree",
    );
    let deep = text.replacen(
        "gates: [",
        &format!("gates: [{}", "Negated(".repeat(1000)),
        1,
    );
    let error = VerifyingKey::from_pinned(&deep).unwrap_err().to_string();
    assert!(error.contains("less depth"), "{error}");
    let long = " ".repeat(proofmill_halo2::MAX_KEY_BYTES + 1);
    let error = VerifyingKey::from_pinned(&long).unwrap_err();
    assert_eq!(error, KeyError::TooLong(long.len()));
    let other = Verifier::new(&Params::derive(4), 2, 1 << 20);
    let reduced = other.reduce(&KEY, &VALID[0].instances(), &VALID[0].proof);
    let (key, verifier) = (6, 4);
    assert_eq!(reduced.unwrap_err(), Invalid::Rows { key, verifier });
}
