//! Aggregates of real Groth16 proofs, under one key and several.

use ark_ff::{One, UniformRand};
use ark_std::rand::Rng;
use ark_std::rand::rngs::StdRng;
use proofmill_aggregation::{
    Aggregate, AggregateKind, AggregateVerifyError, AggregationCurve, Groth16Index, IndexError,
    MAX_KEYS, StatementError, curve_of,
};
use proofmill_groth16::{Bls12_381, Bn254, Proof, ProvingKey, VerifyingKey, prove, setup, verify};
use proofmill_r1cs::{Assignment, R1cs};

use crate::case::{rng, srs};

type Row<F> = Vec<(F, usize)>;

/// A circuit whose public inputs must be the powers x², x³ … of a witness x.
struct Circuit<E: AggregationCurve> {
    system: R1cs<E::ScalarField>,
    key: ProvingKey<E>,
    inputs: usize,
}

/// Proofs of such circuits.
pub(crate) struct Batch<E: AggregationCurve> {
    pub(crate) keys: Vec<VerifyingKey<E>>,
    pub(crate) key_of: Vec<u32>,
    pub(crate) inputs: Vec<Vec<E::ScalarField>>,
    pub(crate) proofs: Vec<Proof<E>>,
}

impl<E: AggregationCurve> Circuit<E> {
    fn new(rng: &mut StdRng, inputs: usize) -> Self {
        let one = E::ScalarField::one();
        // Variables: one, the public powers, x.
        let x = inputs + 1;
        let mut rows: [Vec<Row<E::ScalarField>>; 3] = Default::default();
        for power in 1..=inputs {
            let before = if power == 1 { x } else { power - 1 };
            rows[0].push(vec![(one, before)]);
            rows[1].push(vec![(one, x)]);
            rows[2].push(vec![(one, power)]);
        }
        let system = R1cs::from_rows(1 + inputs, 1, rows).unwrap();
        let key = setup::<E>(&system, rng).unwrap();
        Self {
            system,
            key,
            inputs,
        }
    }

    fn prove(&self, rng: &mut StdRng) -> (Vec<E::ScalarField>, Proof<E>) {
        let x = E::ScalarField::rand(rng);
        let powers = std::iter::successors(Some(x * x), |power| Some(*power * x));
        let inputs: Vec<_> = powers.take(self.inputs).collect();
        let assignment = Assignment::new(&inputs, &[x]);
        let (proof, _) = prove(&self.key, &self.system, &assignment, rng).unwrap();
        (inputs, proof)
    }
}

impl<E: AggregationCurve> Batch<E> {
    /// A case of `count` proofs, each under a random one of `keys` keys.
    pub(crate) fn random(seed: u64, count: usize, keys: usize) -> Self {
        let rng = &mut rng(seed);
        let circuits: Vec<_> = (1..=keys).map(|i| Circuit::<E>::new(rng, i)).collect();
        let key_of: Vec<u32> = (0..count).map(|_| rng.gen_range(0..keys as u32)).collect();
        let proved = key_of.iter().map(|key| circuits[*key as usize].prove(rng));
        let (inputs, proofs) = proved.unzip();
        Self {
            keys: circuits.into_iter().map(|circuit| circuit.key.vk).collect(),
            key_of,
            inputs,
            proofs,
        }
    }

    fn holds(&self) -> bool {
        let prepared: Vec<_> = self.keys.iter().map(|key| key.clone().into()).collect();
        let proofs = self.proofs.iter().zip(&self.inputs).zip(&self.key_of);
        proofs.fold(true, |all, ((proof, inputs), key)| {
            verify(&prepared[*key as usize], inputs, proof).is_ok() && all
        })
    }
}

fn any_number_under_several_keys<E: AggregationCurve>() {
    let srs = srs::<E>(64);
    for (count, keys) in [(1, 1), (2, 2), (3, 1), (5, 3), (7, 2), (32, 1), (33, 4)] {
        let mut batch = Batch::<E>::random(count as u64, count, keys);
        assert!(batch.holds());
        let index = Groth16Index::new(&srs, batch.keys.clone(), batch.key_of.clone()).unwrap();
        let aggregate = index.aggregate(&srs, &batch.inputs, &batch.proofs).unwrap();
        assert_eq!(index.verify(&batch.inputs, &aggregate), Ok(()));
        let bytes = aggregate.to_bytes();
        let size = Aggregate::<E>::encoded_size(AggregateKind::Groth16, count);
        assert_eq!(bytes.len(), size);
        let read = Aggregate::from_bytes(&bytes).unwrap();
        assert_eq!(read, aggregate);
        // A verifier that has nothing but bytes.
        let key = Groth16Index::<E>::from_bytes(&index.to_bytes()).unwrap();
        assert_eq!(key.digest(), index.digest());
        assert_eq!(key.verify(&batch.inputs, &read), Ok(()));

        // One false proof, or one false input.
        let at = count / 2;
        let invalid = Err(AggregateVerifyError::Invalid);
        let c = batch.proofs[at].c;
        batch.proofs[at].c = batch.proofs[at].a;
        assert!(!batch.holds());
        let aggregate = index.aggregate(&srs, &batch.inputs, &batch.proofs).unwrap();
        assert_eq!(index.verify(&batch.inputs, &aggregate), invalid);
        batch.proofs[at].c = c;
        batch.inputs[at][0] += E::ScalarField::one();
        assert!(!batch.holds());
        let aggregate = index.aggregate(&srs, &batch.inputs, &batch.proofs).unwrap();
        assert_eq!(index.verify(&batch.inputs, &aggregate), invalid);
    }
}

#[test]
fn any_number_under_several_keys_on_bls12_381() {
    any_number_under_several_keys::<Bls12_381>();
}

#[test]
fn any_number_under_several_keys_on_bn254() {
    any_number_under_several_keys::<Bn254>();
}

#[test]
fn statements_and_keys_are_bound() {
    type E = Bn254;
    let small = srs::<E>(8);
    let batch = Batch::<E>::random(50, 6, 2);
    let index = Groth16Index::new(&small, batch.keys.clone(), batch.key_of.clone()).unwrap();
    let aggregate = index
        .aggregate(&small, &batch.inputs, &batch.proofs)
        .unwrap();
    let bytes = aggregate.to_bytes();
    assert_eq!(index.verify(&batch.inputs, &aggregate), Ok(()));

    for proof in 0..6 {
        for input in 0..batch.inputs[proof].len() {
            let mut inputs = batch.inputs.clone();
            inputs[proof][input] += ark_bn254::Fr::one();
            let invalid = Err(AggregateVerifyError::Invalid);
            assert_eq!(index.verify(&inputs, &aggregate), invalid);
        }
    }
    let fewer = index.verify(&batch.inputs[..5], &aggregate).unwrap_err();
    assert_eq!(
        fewer.to_string(),
        "5 lists of public inputs: the key is for 6"
    );
    let mut inputs = batch.inputs.clone();
    inputs[3].pop();
    assert!(matches!(
        index.verify(&inputs, &aggregate),
        Err(AggregateVerifyError::Count { .. })
    ));

    // Other keys: with other points, of another reference string, proofs under another one.
    let invalid = Err(AggregateVerifyError::Invalid);
    let others = Batch::<E>::random(51, 6, 2);
    let elsewhere = srs::<E>(16);
    for (srs, keys) in [
        (&small, others.keys.clone()),
        (&elsewhere, batch.keys.clone()),
    ] {
        let other = Groth16Index::new(srs, keys, batch.key_of.clone()).unwrap();
        assert_eq!(other.verify(&batch.inputs, &aggregate), invalid);
    }

    // Any bit of any element.
    let step = bytes.len() / 60;
    for place in (44..bytes.len()).step_by(step) {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        if let Ok(changed) = Aggregate::from_bytes(&changed) {
            assert_eq!(index.verify(&batch.inputs, &changed), invalid);
        }
    }
}

#[test]
fn statements_are_read_as_they_are_written() {
    type E = Bls12_381;
    let srs = srs::<E>(8);
    let batch = Batch::<E>::random(55, 7, 3);
    let index = Groth16Index::new(&srs, batch.keys, batch.key_of).unwrap();
    let bytes = Groth16Index::<E>::encode_statement(&batch.inputs);
    assert_eq!(bytes.len(), index.statement_bytes());
    assert_eq!(index.decode_statement(&bytes), Ok(batch.inputs.clone()));
    for length in [0, 1, bytes.len() - 32, bytes.len() - 1] {
        let refused = index.decode_statement(&bytes[..length]).unwrap_err();
        assert!(matches!(refused, StatementError::Length { .. }));
    }
    let longer = [&bytes[..], &[0; 32]].concat();
    assert!(index.decode_statement(&longer).is_err());
    // The last input of each proof becomes 2²⁵⁶ − 1.
    let mut end = 0;
    for (proof, count) in index.input_counts().enumerate() {
        end += 32 * count;
        let mut changed = bytes.clone();
        changed[end - 32..end].fill(0xff);
        let input = count - 1;
        let refused = Err(StatementError::Input { proof, input });
        assert_eq!(index.decode_statement(&changed), refused);
    }
}

fn files_name_their_curve<E: AggregationCurve>() {
    let srs = srs::<E>(8);
    let batch = Batch::<E>::random(56, 2, 1);
    let index = Groth16Index::new(&srs, batch.keys, batch.key_of).unwrap();
    let aggregate = index.aggregate(&srs, &batch.inputs, &batch.proofs).unwrap();
    let files = [srs.to_bytes(), index.to_bytes()];
    for file in &files {
        assert_eq!(curve_of(file), Some(E::CURVE));
        assert_eq!(curve_of(&file[..28]), Some(E::CURVE));
        assert_eq!(curve_of(&file[..27]), None);
        // Neither the other's magic nor a name that continues.
        assert_eq!(Aggregate::<E>::kind_and_curve(file), None);
        let mut renamed = file.clone();
        renamed[27] = b'x';
        assert_eq!(curve_of(&renamed), None);
    }
    let aggregate = aggregate.to_bytes();
    let known = Some((AggregateKind::Groth16, E::CURVE));
    assert_eq!(Aggregate::<E>::kind_and_curve(&aggregate), known);
    assert_eq!(Aggregate::<E>::kind_and_curve(&aggregate[..31]), None);
    assert_eq!(curve_of(&aggregate), None);
}

#[test]
fn files_name_their_curve_whichever_it_is() {
    files_name_their_curve::<Bn254>();
    files_name_their_curve::<Bls12_381>();
}

#[test]
fn insecure_keys_are_refused() {
    type E = Bn254;
    let srs = srs::<E>(2);
    let mut batch = Batch::<E>::random(60, 1, 1);
    let too_many = vec![batch.keys[0].clone(); MAX_KEYS + 1];
    let refused = Groth16Index::new(&srs, too_many, vec![0]).unwrap_err();
    assert!(matches!(refused, IndexError::Keys(_)));
    batch.keys[0].delta_g2 = batch.keys[0].gamma_g2;
    let refused = Groth16Index::new(&srs, batch.keys, vec![0]).unwrap_err();
    assert!(matches!(refused, IndexError::Insecure { key: 0, .. }));
    let refused = Groth16Index::<E>::new(&srs, Vec::new(), vec![0]).unwrap_err();
    assert!(matches!(refused, IndexError::Class { classes: 0, .. }));
}
