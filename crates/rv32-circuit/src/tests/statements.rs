//! Statements to public inputs and back, and errors.

use ark_bn254::Fr;
use proofmill_rv32::Instruction;

use super::programs::{add_immediate, program};
use super::whole::{INPUT, SHAPE, summing_program};
use crate::{Rv32Circuit, Rv32Error, Shape, Statement, StatementError};

#[test]
fn statements_come_back_from_public_inputs() {
    for input_is_public in [false, true] {
        let shape = Shape {
            input_is_public,
            ..SHAPE
        };
        let program = summing_program();
        let circuit = Rv32Circuit::new(&program, INPUT, shape).unwrap();
        let statement = circuit.statement().unwrap();
        let inputs: Vec<Fr> = statement.public_inputs(&shape).unwrap();
        assert_eq!(inputs.len(), Statement::num_public_inputs(&shape));
        assert_eq!(inputs.len(), if input_is_public { 7 } else { 4 });
        let back = Statement::from_public_inputs(program.digest(), &shape, &inputs).unwrap();
        assert_eq!(back, statement);
    }
}

#[test]
fn public_inputs_that_are_no_statement_are_refused() {
    let circuit = Rv32Circuit::new(&summing_program(), INPUT, SHAPE).unwrap();
    let statement = circuit.statement().unwrap();
    let good: Vec<Fr> = statement.public_inputs(&SHAPE).unwrap();
    let refusal = |change: fn(&mut Vec<Fr>)| {
        let mut inputs = good.clone();
        change(&mut inputs);
        Statement::from_public_inputs([0; 32], &SHAPE, &inputs).unwrap_err()
    };
    let count = refusal(|inputs| inputs.truncate(6));
    assert_eq!(count.to_string(), "6 public inputs where the shape has 7");
    let code = refusal(|inputs| inputs[0] = Fr::from(1u64 << 32));
    assert_eq!(code.to_string(), "public input 0 is no exit code");
    let long = refusal(|inputs| inputs[1] = Fr::from(57));
    assert_eq!(
        long.to_string(),
        "57 bytes of output, and the shape has room for 56"
    );
    let padding = refusal(|inputs| inputs[1] -= Fr::from(1));
    assert_eq!(padding.to_string(), "the output has bytes beyond its end");
    let words = refusal(|inputs| inputs[5] = -Fr::from(1));
    assert_eq!(words.to_string(), "public input 5 is no packed words");
    let private = Statement {
        input: None,
        ..statement
    };
    let is_public = true;
    let result = private.public_inputs::<Fr>(&SHAPE);
    assert_eq!(result, Err(StatementError::Input { is_public }));
}

#[test]
fn executions_beyond_a_shape_are_named() {
    let error = |program, input: &[u8], shape| {
        let result = Rv32Circuit::new(program, input, shape);
        result.map(|_| ()).unwrap_err()
    };
    let summing = summing_program();
    let shape = |change: fn(&mut Shape)| {
        let mut shape = SHAPE;
        change(&mut shape);
        shape
    };
    assert_eq!(
        error(&summing, INPUT, shape(|shape| shape.step_parts = 2)),
        Rv32Error::TooManySteps { steps: 32 }
    );
    let long = error(&summing, &[0; 56], SHAPE).to_string();
    assert_eq!(
        long,
        "56 bytes of input, and the shape has room for 55; take a shape with more"
    );
    let words = shape(|shape| (shape.zero_words, shape.zero_parts) = (1, 1));
    let words = error(&summing, INPUT, words).to_string();
    assert!(words.starts_with("2 words of memory"), "{words}");
    let empty = error(&summing, INPUT, shape(|shape| shape.steps = 0)).to_string();
    assert_eq!(empty, "0 steps in a part: there must be 1 to 16777216");
    let odd = error(&summing, INPUT, shape(|shape| shape.output_words = 8)).to_string();
    assert!(odd.ends_with("it must be a multiple of 7"), "{odd}");
    let endless = Instruction::Jal {
        rd: super::programs::x(0),
        offset: 0,
    };
    let endless = program(&[endless], &[]);
    assert_eq!(
        error(&endless, &[], SHAPE),
        Rv32Error::TooManySteps { steps: 224 }
    );
    let trap = error(&program(&[add_immediate(1, 0, 1)], &[]), &[], SHAPE).to_string();
    assert!(
        trap.starts_with("the program does not halt: trap at pc 0x00001004"),
        "{trap}"
    );
}
