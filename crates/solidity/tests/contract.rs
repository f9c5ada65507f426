//! The contracts' text. What their code does is tested on a node, in `contracts/test`.

use ark_ec::AffineRepr;
use ark_std::UniformRand;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_groth16::{
    Bls12_377, Bls12_381, Bn254, Curve, KeyElement, SnarkCurve, VerifyingKey, Weakness,
};
use proofmill_solidity::{
    ContractError, ContractName, ContractOptions, UnsupportedCurve, encode_g1, encode_g2,
    inputs_max, is_generated, key_digest, verifier_contract,
};

fn key<E: SnarkCurve>(inputs: usize) -> VerifyingKey<E> {
    let mut rng = StdRng::seed_from_u64(inputs as u64);
    let rng = &mut rng;
    VerifyingKey {
        circuit: [0; 32],
        alpha_g1: g1::<E>(rng),
        beta_g2: g2::<E>(rng),
        gamma_g2: g2::<E>(rng),
        delta_g2: g2::<E>(rng),
        instance: (0..=inputs).map(|_| g1::<E>(rng)).collect(),
    }
}

fn g1<E: SnarkCurve>(rng: &mut StdRng) -> E::G1Affine {
    E::G1::rand(rng).into()
}

fn g2<E: SnarkCurve>(rng: &mut StdRng) -> E::G2Affine {
    E::G2::rand(rng).into()
}

fn contract<E: SnarkCurve>(key: &VerifyingKey<E>, batch: bool) -> String {
    let name = ContractName::new("Verifier1").expect("a name");
    verifier_contract(key, &ContractOptions { name, batch }).expect("a contract")
}

/// All hexadecimal literals of a contract, one after the other.
fn literals(contract: &str) -> String {
    let parts = contract.split("hex\"").skip(1);
    parts
        .map(|part| part.split('"').next().expect("a literal ends"))
        .collect()
}

fn check_text<E: SnarkCurve>(inputs: usize) {
    let key = key::<E>(inputs);
    for batch in [false, true] {
        let text = contract(&key, batch);
        assert!(text.contains("\ncontract Verifier1 {\n"), "{text}");
        assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
        assert!(text.is_ascii() && is_generated(&text));
        assert_eq!(text.contains("function verifyProofs("), batch);
        assert!(text.contains(&format!("uint256 private constant INPUTS = {inputs};")));
        let digest = hex::encode(key_digest(&key).expect("a curve"));
        assert!(text.contains(&format!("0x{digest}")));
        let longest = text.lines().map(str::len).max();
        // A coordinate of 64 bytes is one literal.
        assert!(longest <= Some(142), "{longest:?}");
    }
}

#[test]
fn contracts_have_their_constants() {
    for inputs in [1, 2, 8] {
        check_text::<Bn254>(inputs);
        check_text::<Bls12_381>(inputs);
    }
}

#[test]
fn tables_hold_the_points_and_the_negated_elements() {
    let key = key::<Bls12_381>(2);
    let g1 = |point| hex::encode(encode_g1::<Bls12_381>(point).expect("a curve"));
    let negated = |point: ark_bls12_381::G2Affine| {
        hex::encode(encode_g2::<Bls12_381>(&-point).expect("a curve"))
    };
    let zeros = |bytes: usize| "00".repeat(bytes);
    let mut expected = String::new();
    for point in &key.instance {
        expected += &(g1(point) + &zeros(32));
    }
    expected += &zeros(512);
    expected += &(negated(key.delta_g2) + &zeros(128));
    expected += &negated(key.gamma_g2);
    expected += &(g1(&key.alpha_g1) + &negated(key.beta_g2));
    assert_eq!(literals(&contract(&key, true)), expected);
}

/// Weights of batches are hashed with a prefix of the key.
#[test]
fn contracts_of_two_keys_have_two_domains() {
    let domain = |inputs| {
        let text = contract(&key::<Bn254>(inputs), true);
        let line = text.lines().find(|line| line.contains("DOMAIN = 0x"));
        line.expect("a domain").to_owned()
    };
    assert_ne!(domain(1), domain(2));
}

#[test]
fn keys_that_prove_nothing_are_refused() {
    fn refused<E: SnarkCurve>(key: &VerifyingKey<E>) -> Vec<Weakness> {
        match verifier_contract(key, &ContractOptions::default()) {
            Err(ContractError::Insecure(insecure)) => insecure.weaknesses().to_vec(),
            other => panic!("{other:?}"),
        }
    }
    let good = key::<Bn254>(1);
    let related = Weakness::Related(KeyElement::Gamma, KeyElement::Delta);
    let mut bad = good.clone();
    bad.delta_g2 = bad.gamma_g2;
    assert_eq!(refused(&bad), [related]);
    bad.delta_g2 = -bad.gamma_g2;
    assert_eq!(refused(&bad), [related]);
    let mut bad = good.clone();
    bad.alpha_g1 = AffineRepr::zero();
    assert_eq!(refused(&bad), [Weakness::Infinity(KeyElement::Alpha)]);
    let mut bad = good;
    bad.instance[1] = AffineRepr::zero();
    let (first, count) = (1, 1);
    assert_eq!(refused(&bad), [Weakness::UnboundInputs { first, count }]);
}

#[test]
fn the_number_of_inputs_is_limited() {
    let options = ContractOptions::default();
    let none = verifier_contract(&key::<Bls12_381>(0), &options);
    assert_eq!(none, Err(ContractError::NoInputs));
    let max = inputs_max(Curve::Bls12_381).expect("a curve");
    let mut key = key::<Bls12_381>(max);
    assert!(verifier_contract(&key, &options).is_ok());
    key.instance.push(key.alpha_g1);
    let many = ContractError::TooManyInputs {
        curve: Curve::Bls12_381,
        found: max + 1,
        max,
    };
    assert_eq!(verifier_contract(&key, &options), Err(many));
}

#[test]
fn keys_over_bls12_377_are_refused() {
    let refused = verifier_contract(&key::<Bls12_377>(1), &ContractOptions::default());
    let curve = UnsupportedCurve(Curve::Bls12_377);
    assert_eq!(refused, Err(ContractError::Curve(curve)));
}
