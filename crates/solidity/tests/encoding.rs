//! Encodings against the vectors of the EIPs.

use ark_ec::AffineRepr;
use ark_ff::{One, Zero};
use ark_std::UniformRand;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_groth16::{Bls12_377, Bls12_381, Bn254, Curve, Proof};
use proofmill_solidity::{
    UnsupportedCurve, encode_g1, encode_g2, encode_proof, encode_scalar, inputs_max,
};

/// EIP-2537, "Curve parameters": the generators' coordinates.
const BLS_G1: [&str; 2] = [
    "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb",
    "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1",
];
const BLS_G2: [&str; 4] = [
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8",
    "13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e",
    "0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801",
    "0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be",
];

/// EIP-197, "Definition of the groups": x and y of the second group's generator, the imaginary part first.
const BN_G2: [&str; 4] = [
    "11559732032986387107991004021392285783925812861821192530917403151452391805634",
    "10857046999023057135944570762232829481370756359578518086990519993285655852781",
    "4082367875863433681332203403145435568316851327593401208105741076214120093531",
    "8495653923123431417604973247489272438418190587263600148770280649306958101930",
];

/// A coordinate of 48 bytes as EIP-2537 has it: in 64.
fn padded(coordinate: &str) -> String {
    format!("{coordinate:0>128}")
}

fn decimal(bytes: &[u8]) -> String {
    use ark_ff::PrimeField;
    ark_bn254::Fq::from_be_bytes_mod_order(bytes).to_string()
}

#[test]
fn generators_of_bls12_381_are_those_of_eip_2537() {
    let g1 = encode_g1::<Bls12_381>(&ark_bls12_381::G1Affine::generator()).expect("a curve");
    assert_eq!(hex::encode(g1), BLS_G1.map(padded).concat());
    let g2 = encode_g2::<Bls12_381>(&ark_bls12_381::G2Affine::generator()).expect("a curve");
    assert_eq!(hex::encode(g2), BLS_G2.map(padded).concat());
}

#[test]
fn generators_of_bn254_are_those_of_eip_197() {
    let g1 = encode_g1::<Bn254>(&ark_bn254::G1Affine::generator()).expect("a curve");
    let one = format!("{:064x}", 1);
    assert_eq!(hex::encode(g1), one + &format!("{:064x}", 2));
    let g2 = encode_g2::<Bn254>(&ark_bn254::G2Affine::generator()).expect("a curve");
    let found: Vec<String> = g2.chunks(32).map(decimal).collect();
    assert_eq!(found, BN_G2);
}

#[test]
fn infinity_is_all_zeros() {
    let bls = Proof::<Bls12_381> {
        a: AffineRepr::zero(),
        b: AffineRepr::zero(),
        c: AffineRepr::zero(),
    };
    assert_eq!(encode_proof(&bls), Ok(vec![0; 512]));
    let bn = Proof::<Bn254> {
        a: AffineRepr::zero(),
        b: AffineRepr::zero(),
        c: AffineRepr::zero(),
    };
    assert_eq!(encode_proof(&bn), Ok(vec![0; 256]));
}

#[test]
fn proofs_are_a_b_and_c_one_after_the_other() {
    let mut rng = StdRng::seed_from_u64(1);
    let proof = Proof::<Bls12_381> {
        a: UniformRand::rand(&mut rng),
        b: UniformRand::rand(&mut rng),
        c: UniformRand::rand(&mut rng),
    };
    let bytes = encode_proof(&proof).expect("a curve");
    assert_eq!(
        bytes[..128],
        encode_g1::<Bls12_381>(&proof.a).expect("a curve")
    );
    assert_eq!(
        bytes[128..384],
        encode_g2::<Bls12_381>(&proof.b).expect("a curve")
    );
    assert_eq!(
        bytes[384..],
        encode_g1::<Bls12_381>(&proof.c).expect("a curve")
    );
}

#[test]
fn scalars_are_words() {
    assert_eq!(encode_scalar(&ark_bn254::Fr::zero()), [0; 32]);
    let mut one = [0; 32];
    one[31] = 1;
    assert_eq!(encode_scalar(&ark_bls12_381::Fr::one()), one);
    let largest = encode_scalar(&-ark_bls12_381::Fr::one());
    let order_minus_one = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000";
    assert_eq!(hex::encode(largest), order_minus_one);
}

#[test]
fn bls12_377_is_refused() {
    let refused = UnsupportedCurve(Curve::Bls12_377);
    let point = AffineRepr::generator();
    assert_eq!(encode_g1::<Bls12_377>(&point), Err(refused));
    assert_eq!(inputs_max(Curve::Bls12_377), Err(refused));
}
