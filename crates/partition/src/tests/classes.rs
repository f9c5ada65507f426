//! Circuits that break the rules, and digests.

use ark_bn254::Fr;
use ark_relations::gr1cs::{ConstraintSystem, LinearCombination, SynthesisError, SynthesisMode};
use ark_std::rand::{SeedableRng, rngs::StdRng};

use super::chain::Chain;
use crate::access_order::AccessOrder;
use crate::{
    Challenges, Check, Difference, Monolithic, Part, Partition, PartitionError, PartitionedCircuit,
    Transfer,
};

/// Parts of one class whose code is given by a closure.
struct ClosureCircuit<G> {
    parts: usize,
    public_inputs: usize,
    run: G,
}

impl<G> PartitionedCircuit<Fr> for ClosureCircuit<G>
where
    G: Fn(usize, &mut Part<'_, Fr>) -> Result<(), PartitionError> + Sync,
{
    fn num_parts(&self) -> usize {
        self.parts
    }

    fn class(&self, _: usize) -> &'static str {
        "all"
    }

    fn num_public_inputs(&self) -> usize {
        self.public_inputs
    }

    fn public_inputs(&self) -> Vec<Fr> {
        vec![Fr::from(7u64); self.public_inputs]
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
        (self.run)(part, wires)
    }
}

fn closure_circuit<G>(parts: usize, run: G) -> ClosureCircuit<G>
where
    G: Fn(usize, &mut Part<'_, Fr>) -> Result<(), PartitionError> + Sync,
{
    ClosureCircuit {
        parts,
        public_inputs: 1,
        run,
    }
}

/// w · w = factor · w, for the first witness variable of the part's own.
fn squares(wires: &mut Part<'_, Fr>, factor: u64) -> Result<(), PartitionError> {
    let w = wires.witness(Fr::from(0u64))?.variable;
    wires.cs().enforce_r1cs_constraint(
        || w.into(),
        || w.into(),
        || LinearCombination(vec![(Fr::from(factor), w)]),
    )?;
    Ok(())
}

fn refused<G>(circuit: &ClosureCircuit<G>) -> PartitionError
where
    G: Fn(usize, &mut Part<'_, Fr>) -> Result<(), PartitionError> + Sync,
{
    Partition::new(circuit).unwrap_err()
}

#[test]
fn the_first_difference_within_a_class_is_named() {
    let error = refused(&closure_circuit(4, |part, wires| {
        squares(wires, 1)?;
        squares(wires, if part == 2 { 5 } else { 4 })
    }));
    let PartitionError::ClassDiffers {
        class: "all",
        first: 0,
        part: 2,
        difference,
    } = &error
    else {
        panic!("{error}");
    };
    let expected = Difference::Row {
        constraint: 1,
        check: Check::Circuit,
        matrix: 'C',
        first: "4·w1".to_owned(),
        other: "5·w1".to_owned(),
    };
    assert_eq!(*difference, expected);
    assert_eq!(
        error.to_string(),
        "parts 0 and 2 are both of class \"all\", but differ in constraint 1 (the circuit), \
         matrix C: 4·w1 and 5·w1"
    );
}

#[test]
fn numbers_that_differ_within_a_class_are_named() {
    type Code = fn(usize, &mut Part<'_, Fr>) -> Result<(), PartitionError>;
    let cases: [(&str, Code); 8] = [
        ("have 1 and 2 accesses to shared wires", |part, wires| {
            for _ in 0..=part {
                wires.public_input(0)?;
            }
            Ok(())
        }),
        ("have 1 and 0 accesses to shared wires", |part, wires| {
            if part == 0 {
                wires.public_input(0)?;
            }
            Ok(())
        }),
        ("have 1 and 2 transfers", |part, wires| {
            for _ in 0..=part {
                let wire = wires.witness(Fr::from(0u64))?;
                wires.put(wire)?;
            }
            Ok(())
        }),
        // The order by kind is part of the shape, although each code has the same constraints.
        ("differ in transfer 0: a put and a take", |part, wires| {
            let [a, b] = [0u64; 2].map(|value| wires.witness(Fr::from(value)));
            let (a, b) = (a?, b?);
            match part {
                0 => wires.put(a).and_then(|()| wires.take(b)),
                _ => wires.take(a).and_then(|()| wires.put(b)),
            }
        }),
        (
            "differ in transfer 0: a put with a multiplicity and a put",
            |part, wires| {
                let wire = wires.witness(Fr::from(0u64))?;
                match part {
                    0 => wires.put_times(wire, wire),
                    _ => wires.put(wire).and_then(|()| wires.put(wire)),
                }
            },
        ),
        ("have 0 and 1 accesses to shared wires", |part, wires| {
            let wire = wires.witness(Fr::from(0u64))?;
            match part {
                0 => wires.put(wire),
                _ => wires.set("x", wire),
            }
        }),
        ("have 0 and 1 constants", |part, wires| {
            for _ in 0..part {
                wires.constant(Fr::from(0u64))?;
            }
            Ok(())
        }),
        ("and", |part, wires| {
            for _ in 0..part {
                wires.witness(Fr::from(0u64))?;
            }
            Ok(())
        }),
    ];
    for (expected, code) in cases {
        let error = refused(&closure_circuit(2, code)).to_string();
        let start = "parts 0 and 1 are both of class \"all\", but ";
        assert!(
            error.starts_with(start) && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn wires_are_set_once_and_before_they_are_read() {
    let error = refused(&closure_circuit(2, |part, wires| {
        wires.get(("x", part))?;
        Ok(())
    }));
    assert_eq!(
        error.to_string(),
        "part 0 reads x[0], which no part before sets: wires flow to later parts only"
    );
    let error = refused(&closure_circuit(1, |_, wires| {
        wires.load("cell")?;
        Ok(())
    }));
    assert!(
        matches!(error, PartitionError::NotSet { part: 0, .. }),
        "{error}"
    );
    let twice = closure_circuit(3, |_, wires| {
        let wire = wires.witness(Fr::from(1u64))?;
        wires.set("x", wire)
    });
    let error = refused(&twice);
    let PartitionError::SetTwice { part, first, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((part, first), (1, 0));
    let cs = ark_relations::gr1cs::ConstraintSystem::new_ref();
    let error = Monolithic::new(&twice).synthesize(&cs).unwrap_err();
    assert!(matches!(error, PartitionError::SetTwice { .. }), "{error}");
}

#[test]
fn public_inputs_come_from_the_part() {
    let error = refused(&closure_circuit(1, |_, wires| {
        wires.public_input(1)?;
        Ok(())
    }));
    assert_eq!(error.to_string(), "part 0 reads public input 1 of 1");
    let allocating = closure_circuit(2, |_, wires| {
        wires.constant(Fr::from(0u64))?;
        let _ = wires.cs().new_input_variable(|| Ok(Fr::from(0u64)))?;
        Ok(())
    });
    let error = refused(&allocating);
    let own = |error: &PartitionError| {
        matches!(
            error,
            PartitionError::InstanceVariables { part: 0, count: 1 }
        )
    };
    assert!(own(&error), "{error}");
    let cs = ark_relations::gr1cs::ConstraintSystem::new_ref();
    let error = Monolithic::new(&allocating).synthesize(&cs).unwrap_err();
    assert!(own(&error), "{error}");
}

#[test]
fn errors_of_the_code_are_passed_on() {
    let failing = closure_circuit(1, |_, _| Err(SynthesisError::DivisionByZero.into()));
    let error = refused(&failing);
    assert!(
        matches!(
            error,
            PartitionError::Synthesis(SynthesisError::DivisionByZero)
        ),
        "{error}"
    );
    let error = refused(&closure_circuit(0, |_, _| Ok(())));
    assert_eq!(error.to_string(), "0 parts: there must be 1 to 16777216");
}

#[test]
fn accesses_that_depend_on_values_are_refused() {
    let names = |names: [&'static str; 2]| {
        closure_circuit(2, move |part, wires| {
            let wire = wires.witness(Fr::from(part as u64))?;
            wires.set(names[part], wire)?;
            wires.get(names[part])?;
            Ok(())
        })
    };
    let partition = Partition::new(&names(["a", "b"])).unwrap();
    let traces = partition.trace(&names(["a", "b"])).unwrap();
    let other = names(["a", "c"]);
    let error = partition.trace(&other).unwrap_err();
    assert!(
        matches!(error, PartitionError::AccessesChanged { part: 1 }),
        "{error}"
    );

    let (rng, challenges) = (&mut StdRng::seed_from_u64(1), super::attempt::challenges());
    let states = partition.states(&traces, challenges, rng).unwrap();
    let assign = |part, challenges: &Challenges<Fr>| {
        let trace = partition.part_trace(&traces, part)?;
        let opening = states.opening(part)?;
        partition.assignment(&other, part, &trace, challenges, &opening)
    };
    assert!(assign(0, &challenges).is_ok());
    let error = assign(1, &challenges).unwrap_err();
    assert!(
        matches!(error, PartitionError::AccessesChanged { part: 1 }),
        "{error}"
    );
    let error = assign(2, &challenges).unwrap_err();
    assert!(
        matches!(error, PartitionError::NoPart { part: 2, parts: 2 }),
        "{error}"
    );
}

/// Puts and takes of the same number, in an order that depends on a value.
#[test]
fn transfers_that_depend_on_values_are_refused() {
    let ordered = |put_first: bool| {
        closure_circuit(2, move |_, wires| {
            let wire = wires.witness(Fr::from(9u64))?;
            for is_put in [put_first, !put_first] {
                match is_put {
                    true => wires.put(wire)?,
                    false => wires.take(wire)?,
                }
            }
            Ok(())
        })
    };
    let partition = Partition::new(&ordered(true)).unwrap();
    assert!(partition.trace(&ordered(true)).is_ok());
    let error = partition.trace(&ordered(false)).unwrap_err();
    assert!(
        matches!(error, PartitionError::AccessesChanged { part: 0 }),
        "{error}"
    );
}

/// A value that is not put as often as it is taken, in parts and in one piece.
#[test]
fn unmatched_values_are_named_without_being_shown() {
    let circuit = |put: [u64; 3], taken: [u64; 3]| {
        closure_circuit(3, move |part, wires| {
            let put = wires.witness(Fr::from(put[part]))?;
            wires.put(put)?;
            let taken = wires.witness(Fr::from(taken[part]))?;
            wires.take(taken)
        })
    };
    let blank = circuit([0; 3], [0; 3]);
    let partition = Partition::new(&blank).unwrap();
    let refusals = |circuit: &_| {
        let cs = ConstraintSystem::new_ref();
        cs.set_mode(SynthesisMode::Prove {
            construct_matrices: true,
            generate_lc_assignments: false,
        });
        let in_one_piece = Monolithic::new(circuit).synthesize(&cs);
        [partition.trace(circuit).map(|_| ()), in_one_piece]
    };
    for accepted in refusals(&circuit([11, 22, 33], [33, 11, 22])) {
        accepted.unwrap();
    }
    for refused in refusals(&circuit([11, 22, 22], [22, 44, 11])) {
        assert_eq!(
            refused.unwrap_err().to_string(),
            "part 1: the value of transfer 1, a take, is not put into the multiset as often as it is taken"
        );
    }
    for refused in refusals(&circuit([11, 22, 33], [33, 11, 11])) {
        let error = refused.unwrap_err();
        let (part, transfer, kind) = (1, 1, Transfer::Take);
        let expected = PartitionError::Unmatched {
            part,
            transfer,
            kind,
        };
        assert_eq!(error.to_string(), expected.to_string());
    }
    // A circuit without a witness is not looked at.
    let cs = ConstraintSystem::new_ref();
    cs.set_mode(SynthesisMode::Setup);
    let unmatched = circuit([1, 1, 1], [0, 0, 0]);
    Monolithic::new(&unmatched).synthesize(&cs).unwrap();
}

#[test]
fn values_of_another_partition_are_refused() {
    let long = Partition::<Fr>::new(&Chain::blank(7)).unwrap();
    let short = Partition::<Fr>::new(&Chain::blank(3)).unwrap();
    let circuit = Chain::<Fr>::new(3, 1, 2);
    let traces = short.trace(&circuit).unwrap();
    let rng = &mut StdRng::seed_from_u64(1);
    let is_length = |error: PartitionError| matches!(error, PartitionError::Length { .. });
    assert!(is_length(long.trace(&circuit).unwrap_err()));
    assert!(is_length(long.part_trace(&traces, 0).unwrap_err()));
    let challenges = super::attempt::challenges();
    assert!(is_length(
        long.states(&traces, challenges, rng).unwrap_err()
    ));
    let states = short.states(&traces, challenges, rng).unwrap();
    let opening = states.opening(0).unwrap();
    let trace = short.part_trace(&traces, 0).unwrap();
    let assign = long.assignment(&circuit, 1, &trace, &challenges, &opening);
    assert!(is_length(assign.unwrap_err()));
    assert!(states.opening(3).is_err() && short.preprocessed(3).is_err());
}

/// Digests cover everything that a partition fixes; names are not in them.
#[test]
fn digests_tell_partitions_apart() {
    let wired = |first: usize, second: usize, constant: u64, public_inputs: usize| {
        let circuit = ClosureCircuit {
            parts: 3,
            public_inputs,
            run: move |part: usize, wires: &mut Part<'_, Fr>| {
                let wire = wires.witness(Fr::from(0u64))?;
                wires.constant(Fr::from(constant))?;
                wires.set(("x", part), wire)?;
                wires.get(("x", [0, first, second][part]))?;
                Ok(())
            },
        };
        Partition::new(&circuit).unwrap().digest()
    };
    let digests = [
        wired(0, 0, 1, 1),
        wired(1, 0, 1, 1),
        wired(0, 1, 1, 1),
        wired(0, 0, 2, 1),
        wired(0, 0, 1, 2),
        Partition::<Fr>::new(&Chain::blank(3)).unwrap().digest(),
        Partition::<Fr>::new(&Chain::blank(4)).unwrap().digest(),
        Partition::<Fr>::new(&Chain::blank(5)).unwrap().digest(),
    ];
    for (i, digest) in digests.iter().enumerate() {
        assert!(!digests[..i].contains(digest), "{i}");
    }
    assert_eq!(wired(0, 1, 1, 1), digests[2]);
}

/// Addresses that are declared as constants would enter a key without β. A part with the same constraints and the same
/// fixed inputs, but without accesses, is another partition.
#[test]
fn digests_tell_addresses_from_constants() {
    let circuit = ClosureCircuit {
        parts: 1,
        public_inputs: 1,
        run: |_: usize, wires: &mut Part<'_, Fr>| {
            let input = wires.public_input(0)?;
            wires.set("x", input)?;
            Ok(())
        },
    };
    let honest = Partition::<Fr>::new(&circuit).unwrap();
    let mut forged = honest.clone();
    let class = &mut forged.classes[0];
    let accesses = std::mem::take(&mut class.shape.accesses);
    class.shape.transfers = vec![Transfer::Put; 2 * accesses].into();
    class.shape.transferred = 2 * accesses;
    forged.order = AccessOrder::new(vec![1], vec![1, 1]);
    let addresses = honest
        .preprocessed(0)
        .unwrap()
        .split_off(4 * honest.depth + 2);
    forged.parts[0].constants = addresses;
    let same = |of: &Partition<Fr>| {
        let layout = of.classes[0].layout();
        (
            of.preprocessed(0).unwrap(),
            layout.committed,
            of.public_state(),
        )
    };
    assert_eq!(same(&honest), same(&forged));
    assert_ne!(honest.digest(), forged.digest());
}
