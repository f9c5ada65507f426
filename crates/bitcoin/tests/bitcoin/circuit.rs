//! The header-chain circuit: complete for Bitcoin's headers, unsatisfied for anything else.

use ark_bls12_381::Fr;
use ark_ff::One;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal,
};
use proofmill_bitcoin::{
    ChainFault, ChunkStatement, Header, HeaderChain, HeaderChainError, check_chain, mainnet_headers,
};
use proofmill_r1cs::{Assignment, R1cs};

fn synthesise(circuit: HeaderChain) -> ConstraintSystemRef<Fr> {
    let cs = ConstraintSystem::<Fr>::new_ref();
    cs.set_optimization_goal(OptimizationGoal::Constraints);
    circuit.generate_constraints(cs.clone()).unwrap();
    cs
}

fn satisfied(slots: usize, headers: &[Header]) -> bool {
    let circuit = HeaderChain::unchecked(slots, headers).unwrap();
    synthesise(circuit).is_satisfied().unwrap()
}

fn flip(header: &Header, bit: usize) -> Header {
    let mut bytes = *header.as_bytes();
    bytes[bit / 8] ^= 1 << (bit % 8);
    Header::new(bytes)
}

#[test]
fn constraints_for_each_header() {
    let count = |slots| {
        let cs = synthesise(HeaderChain::unchecked(slots, &mainnet_headers()[..1]).unwrap());
        cs.num_constraints()
    };
    let (one, two) = (count(1), count(2));
    assert!(one <= 52_400, "{one} constraints for one header");
    assert!(
        two - one <= 52_400,
        "{} constraints for one more header",
        two - one
    );
    println!(
        "constraints: {one} for one header, {} for each further",
        two - one
    );
}

#[test]
fn any_prefix_of_the_slots_may_be_active() {
    let headers = mainnet_headers();
    for (slots, range) in [(1, 0..1), (3, 4..7), (3, 4..6), (3, 31..32)] {
        let headers = &headers[range];
        let cs = synthesise(HeaderChain::new(slots, headers).unwrap());
        assert!(
            cs.is_satisfied().unwrap(),
            "{slots} slots, {} headers",
            headers.len()
        );
        let inputs = cs.instance_assignment().unwrap();
        assert_eq!(
            ChunkStatement::from_inputs(&inputs[1..]).unwrap(),
            ChunkStatement::of(headers).unwrap()
        );
    }
}

/// The shape must not depend on the witness: keys are made without one.
#[test]
fn every_assignment_has_the_same_shape() {
    let headers = mainnet_headers();
    let shape = |cs: ConstraintSystemRef<Fr>| {
        cs.finalize();
        (cs.num_witness_variables(), cs.to_matrices().unwrap())
    };
    let blank = ConstraintSystem::<Fr>::new_ref();
    blank.set_mode(ark_relations::gr1cs::SynthesisMode::Setup);
    HeaderChain::blank(2)
        .unwrap()
        .generate_constraints(blank.clone())
        .unwrap();
    let blank = shape(blank);
    assert!(blank == shape(synthesise(HeaderChain::new(2, &headers[..1]).unwrap())));
    assert!(blank == shape(synthesise(HeaderChain::new(2, &headers[..2]).unwrap())));
}

/// One bit flipped in each field of a header: the native check names the header, and the
/// constraints, asked without that check, are not satisfied either.
#[test]
fn a_flipped_bit_cannot_be_proven() {
    let headers = mainnet_headers()[5..8].to_vec();
    let fields = [
        ("version", 3),
        ("prev", 4 * 8 + 77),
        ("merkle", 36 * 8 + 200),
        ("time", 68 * 8),
        ("bits", 72 * 8 + 5),
        ("exponent", 75 * 8),
        ("sign", 74 * 8 + 7),
        ("nonce", 79 * 8 + 7),
    ];
    for index in 0..3 {
        for (field, bit) in fields {
            let mut bad = headers.clone();
            bad[index] = flip(&bad[index], bit);
            let error = check_chain(&bad).unwrap_err();
            assert_eq!(error.index, index, "{field}");
            assert_eq!(
                HeaderChain::new(3, &bad).unwrap_err(),
                HeaderChainError::Chain(error.clone()),
                "{field}"
            );
            let expected = match (field, index) {
                ("prev", 1 | 2) => matches!(error.fault, ChainFault::WrongPrevious { .. }),
                ("sign", _) => matches!(error.fault, ChainFault::InvalidBits { .. }),
                _ => matches!(error.fault, ChainFault::TargetMissed { .. }),
            };
            assert!(expected, "{field}: {error}");
            assert!(!satisfied(3, &bad), "{field} of header {index}");
        }
    }
}

#[test]
fn headers_that_do_not_follow_cannot_be_proven() {
    let headers = mainnet_headers();
    assert!(!satisfied(2, &[headers[3], headers[5]]));
    assert!(!satisfied(2, &[headers[4], headers[3]]));
}

/// Each public input is bound: change it alone and the constraints are not satisfied.
#[test]
fn every_public_input_is_bound() {
    let headers = mainnet_headers();
    let system = R1cs::<Fr>::from_circuit(HeaderChain::blank(3).unwrap()).unwrap();
    let circuit = HeaderChain::new(3, &headers[9..11]).unwrap();
    let mut z = Assignment::from_circuit(circuit).unwrap().z().to_vec();
    assert_eq!(system.is_satisfied(&z), Ok(()));
    for input in 1..system.num_instance() {
        z[input] += Fr::one();
        assert!(system.is_satisfied(&z).is_err(), "input {input}");
        z[input] -= Fr::one();
    }
    assert_eq!(system.is_satisfied(&z), Ok(()));
}

#[test]
fn counts_that_do_not_fit_are_refused() {
    let headers = mainnet_headers();
    assert!(HeaderChain::new(2, &headers[..3]).is_err());
    assert!(HeaderChain::new(2, &[]).is_err());
    assert!(HeaderChain::blank(0).is_err());
    assert!(HeaderChain::blank(100_000).is_err());
}
