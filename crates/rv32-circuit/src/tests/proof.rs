//! Keys, a proof, and the verifier.

use std::ops::ControlFlow;

use ark_bn254::{Bn254, Fr};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_aggregation::Srs;
use proofmill_groth16::ResidentForm;
use proofmill_groth16::mirage::{ProvingKey, Setup};
use proofmill_partition::Partition;
use proofmill_partition::proof::{ClassKeys, Index, Journal, Prover};
use proofmill_rv32::Instruction;
use proofmill_rv32::instruction::StoreOperation;

use super::programs::{add_immediate, call, program, x};
use crate::{Rv32Circuit, Shape, Statement};

/// Reads a byte, keeps it on the stack, and writes it increased by one.
#[test]
fn an_execution_is_proved_and_verified() {
    let mut code = Vec::new();
    code.extend(call(2));
    code.push(Instruction::Store {
        operation: StoreOperation::Sb,
        rs1: x(2),
        rs2: x(10),
        offset: -1,
    });
    code.push(add_immediate(10, 10, 1));
    code.extend(call(4));
    code.extend(call(0));
    let program = program(&code, &[5]);
    let shape = Shape {
        steps: 5,
        step_parts: 2,
        program_rows: 12,
        data_words: 2,
        zero_words: 2,
        zero_parts: 1,
        input_words: 7,
        input_parts: 1,
        output_words: 7,
        output_parts: 1,
        input_is_public: false,
    };
    let blank = Rv32Circuit::blank(&program, shape).unwrap();
    let partition = Partition::<Fr>::new(&blank).unwrap();
    let rng = &mut StdRng::seed_from_u64(4);
    let srs = Srs::<Bn254>::setup(partition.num_parts().next_power_of_two(), rng).unwrap();
    let setup = Setup::new(rng);
    let systems = partition.classes().iter();
    let keys: Vec<ProvingKey<Bn254>> = systems
        .map(|class| setup.key(class.committed_system().unwrap(), rng).unwrap())
        .collect();
    let of_classes = keys.iter().map(ProvingKey::vk).collect();
    let held = ClassKeys::hold(&partition, keys.clone(), ResidentForm::Plain).unwrap();
    let index = Index::new(partition, of_classes, &srs).unwrap();
    let prover = Prover {
        index: &index,
        srs: &srs,
        keys: &held,
    };
    let circuit = Rv32Circuit::new(&program, b"a", shape).unwrap();
    let mut journal = Journal::in_memory(rng);
    let proof = prover
        .prove(&circuit, &mut journal, rng, |_| ControlFlow::Continue(()))
        .unwrap();

    let statement = Statement {
        program: program.digest(),
        exit_code: u32::from(b'b'),
        output: vec![b'b'],
        input: None,
    };
    assert_eq!(circuit.statement(), Some(statement.clone()));
    let key = index.verifying_key();
    let inputs: Vec<Fr> = statement.public_inputs(&shape).unwrap();
    assert_eq!(key.verify(&inputs, &proof), Ok(()));
    let other = Statement {
        output: vec![b'c'],
        ..statement
    };
    let inputs: Vec<Fr> = other.public_inputs(&shape).unwrap();
    assert!(key.verify(&inputs, &proof).is_err());
}
