//! Calls against snarkjs 0.7.6, and against the layout of the ABI's specification.

use ark_bn254::Fr;
use ark_ec::AffineRepr;
use proofmill_groth16::snarkjs::{inputs_from_json, proof_from_json};
use proofmill_groth16::{Bls12_381, Bn254, Proof};
use proofmill_solidity::{BatchEntry, Call, CallError, encode_proof};

/// A proof of a circuit with one public input.
const PROOF: &[u8] = include_bytes!("data/proof.json");
const INPUTS: &[u8] = include_bytes!("data/public.json");
/// `snarkjs zkey export soliditycalldata public.json proof.json`
const SNARKJS: &str = include_str!("data/calldata.txt");

fn bn254() -> (Proof<Bn254>, Vec<Fr>) {
    let proof = proof_from_json(PROOF).expect("a proof");
    let inputs = inputs_from_json(INPUTS).expect("inputs");
    (proof, inputs)
}

fn generators() -> Proof<Bls12_381> {
    Proof {
        a: AffineRepr::generator(),
        b: AffineRepr::generator(),
        c: AffineRepr::generator(),
    }
}

fn word(number: usize) -> String {
    format!("{number:064x}")
}

#[test]
fn arguments_over_bn254_are_those_of_snarkjs() {
    let (proof, inputs) = bn254();
    let call = Call::single(&proof, &inputs).expect("a call");
    assert_eq!(call.arguments(), SNARKJS.trim_end());
}

#[test]
fn a_call_over_bn254_has_the_words_of_snarkjs_in_order() {
    let (proof, inputs) = bn254();
    let call = Call::single(&proof, &inputs).expect("a call");
    let words = SNARKJS.split("0x").skip(1).map(|rest| &rest[..64]);
    // The selector of snarkjs's contracts with one public input.
    let expected = "43753b4d".to_owned() + &words.collect::<String>();
    assert_eq!(hex::encode(call.abi()), expected);
}

#[test]
fn a_batch_over_bn254_is_two_arrays() {
    let (proof, inputs) = bn254();
    let entry = BatchEntry { proof, inputs };
    let call = Call::batch(&[entry.clone(), entry]).expect("a call");
    assert_eq!(call.signature(), "verifyProofs(uint256[8][],uint256[1][])");
    let proof_hex = hex::encode(encode_proof(&proof).expect("a curve"));
    let input = hex::encode(call.input_words()[0]);
    let expected = [
        "b72fa3ac".to_owned(),
        word(0x40),
        word(0x40 + 0x20 + 2 * 256),
        word(2),
        proof_hex.repeat(2),
        word(2),
        input.repeat(2),
    ];
    assert_eq!(hex::encode(call.abi()), expected.concat());
    let one = SNARKJS.trim_end().replace(", ", ",");
    let proof_words = one.rsplit_once(",[").expect("the inputs come last").0;
    let proof_words = format!("[{}]", proof_words.replace(['[', ']'], ""));
    let inputs = format!("[\"0x{input}\"]");
    let expected = format!("[{proof_words},{proof_words}],[{inputs},{inputs}]");
    assert_eq!(call.arguments(), expected);
}

#[test]
fn a_call_over_bls12_381_is_bytes_and_an_array() {
    let inputs = [3u64, 5].map(ark_bls12_381::Fr::from);
    let call = Call::single(&generators(), &inputs).expect("a call");
    assert_eq!(call.signature(), "verifyProof(bytes,uint256[])");
    let proof = hex::encode(call.proof_bytes());
    let expected = [
        "1e8e1e13".to_owned(),
        word(0x40),
        word(0x40 + 0x20 + 512),
        word(512),
        proof.clone(),
        word(2),
        word(3),
        word(5),
    ];
    assert_eq!(hex::encode(call.abi()), expected.concat());
    let arguments = format!("\"0x{proof}\",[\"0x{}\",\"0x{}\"]", word(3), word(5));
    assert_eq!(call.arguments(), arguments);
}

#[test]
fn a_batch_over_bls12_381_is_of_one_length() {
    let entry = |inputs: &[u64]| BatchEntry {
        proof: generators(),
        inputs: inputs.iter().copied().map(Into::into).collect(),
    };
    let call = Call::batch(&[entry(&[1, 2]), entry(&[3, 4])]).expect("a call");
    assert_eq!(hex::encode(call.selector()), "ac216afa");
    let last = call
        .input_words()
        .iter()
        .map(hex::encode)
        .collect::<String>();
    assert_eq!(last, [1, 2, 3, 4].map(word).concat());
    let other = Call::batch(&[entry(&[1, 2]), entry(&[3])]);
    let refused = CallError::InputCount {
        index: 1,
        found: 1,
        expected: 2,
    };
    assert_eq!(other, Err(refused));
    assert_eq!(Call::batch::<Bls12_381>(&[]), Err(CallError::EmptyBatch));
    assert_eq!(Call::batch(&[entry(&[])]), Err(CallError::NoInputs));
    assert_eq!(Call::single(&generators(), &[]), Err(CallError::NoInputs));
}
