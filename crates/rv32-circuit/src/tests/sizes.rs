//! The cost of a step, and of each row of other parts.

use ark_bn254::Fr;
use proofmill_partition::{Layout, Partition};

use super::one_step::{INSTANCE, OneStep};
use super::whole::{INPUT, SHAPE, summing_program};
use crate::{Demand, Rv32Circuit, Rv32Error, Shape};

/// The sizes of each class, and the number of terms in its matrices.
fn layouts(shape: Shape) -> Vec<(String, Layout, usize)> {
    let blank = Rv32Circuit::blank(&summing_program(), shape).unwrap();
    let partition = Partition::<Fr>::new(&blank).unwrap();
    let classes = partition.classes().iter();
    classes
        .map(|class| {
            let matrices = class.system().matrices();
            let terms = matrices.into_iter().map(|matrix| matrix.entries()).sum();
            (class.name().to_owned(), class.layout(), terms)
        })
        .collect()
}

#[test]
fn a_step_and_a_row_cost_what_the_documentation_says() {
    let system = OneStep::system().r1cs;
    // Nine entries and three values of the state are compared with the instance.
    let gadget = system.num_constraints() - 12;
    println!(
        "a step: {gadget} constraints, {} variables",
        system.num_witness()
    );
    assert_eq!(system.num_instance(), INSTANCE);
    assert_eq!(gadget, 463);

    let doubled = Shape {
        steps: 2 * SHAPE.steps,
        program_rows: 2 * SHAPE.program_rows,
        data_words: 2 * SHAPE.data_words,
        zero_words: 2 * SHAPE.zero_words,
        input_words: 2 * SHAPE.input_words,
        output_words: 2 * SHAPE.output_words,
        ..SHAPE
    };
    let small = layouts(SHAPE);
    let large = layouts(doubled);
    // The class, its further rows, and the constraints and committed variables of each. Rows of the input and the output
    // are seven words with the public input that packs them.
    let expected = [
        ("steps", SHAPE.steps, 484, 9),
        ("program", SHAPE.program_rows, 3, 2),
        ("data", SHAPE.data_words, 4, 2),
        ("zero", SHAPE.zero_words, 28, 2),
        ("input", 1, 298, 16),
        ("output", 1, 452, 16),
    ];
    for (name, rows, constraints, committed) in expected {
        let of = |layouts: &[(String, Layout, usize)]| {
            let found = layouts.iter().find(|(found, ..)| found == name);
            let (_, layout, terms) = found.unwrap();
            (*layout, *terms)
        };
        let ((small, small_terms), (large, large_terms)) = (of(&small), of(&large));
        println!("{name}: {large:?}, {large_terms} terms");
        // Sums that grow from row to row would have four times as many.
        assert!(large_terms <= 2 * small_terms, "{name}");
        let growth = (
            large.constraints - small.constraints,
            large.committed - small.committed,
        );
        assert_eq!(growth, (rows * constraints, rows * committed), "{name}");
    }
}

/// The shape that an execution's own demand gives has room for it, and none to spare for more steps.
#[test]
fn a_shape_fits_its_execution() {
    let program = summing_program();
    let demand = Demand::of(&program, INPUT).unwrap();
    for steps_per_part in [1, 16, 1024] {
        let shape = Shape::fitting(&program, &demand, steps_per_part).unwrap();
        let circuit = Rv32Circuit::new(&program, INPUT, shape).unwrap();
        assert_eq!(circuit.statement().unwrap().exit_code, 9);
        assert!(shape.num_steps() - demand.steps < steps_per_part as u64);
        let shape = Shape::fitting(&program, &demand.with_room(), steps_per_part).unwrap();
        let longer = [INPUT, b"x"].concat();
        let more = Rv32Circuit::new(
            &program,
            &longer,
            Shape {
                step_parts: 2 * shape.step_parts,
                ..shape
            },
        );
        assert!(more.is_ok());
    }
    let beyond = Demand {
        steps: 1 << 40,
        ..demand
    };
    assert!(matches!(
        Shape::fitting(&program, &beyond, 1024),
        Err(Rv32Error::Shape(_))
    ));
}
