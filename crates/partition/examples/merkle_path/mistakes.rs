//! Common mistakes of authors, and the messages that the guide explains.

use ark_bn254::Fr;
use ark_relations::gr1cs::LinearCombination;
use proofmill_partition::{Part, Partition, PartitionError, PartitionedCircuit};

const GUIDE: &str = include_str!("../../../../docs/partition-your-circuit.md");

/// Sources whose code the guide shows.
const SOURCES: [&str; 5] = [
    include_str!("circuit.rs"),
    include_str!("parts.rs"),
    include_str!("proving.rs"),
    include_str!("tests.rs"),
    include_str!("../lookup.rs"),
];

/// A circuit of two parts of one class, with a public input and a mistake.
#[derive(Clone, Copy, Debug)]
struct Mistaken {
    mistake: Mistake,
    value: u64,
}

#[derive(Clone, Copy, Debug)]
enum Mistake {
    ReadsALaterWire,
    SetsAWireTwice,
    ReadsAMissingInput,
    AllocatesAnInput,
    AccessesMoreInALaterPart,
    MultipliesByThePart,
    BranchesOnAValue,
    TakesWhatIsNotPut,
}

// === impl Mistaken ===

impl PartitionedCircuit<Fr> for Mistaken {
    fn num_parts(&self) -> usize {
        2
    }

    fn class(&self, _part: usize) -> &'static str {
        "step"
    }

    fn num_public_inputs(&self) -> usize {
        1
    }

    fn public_inputs(&self) -> Vec<Fr> {
        vec![Fr::from(7)]
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
        let x = wires.witness(Fr::from(self.value))?;
        match (self.mistake, part) {
            (Mistake::ReadsALaterWire, 0) => drop(wires.get("carry")?),
            (Mistake::ReadsALaterWire, _) => wires.set("carry", x)?,
            (Mistake::SetsAWireTwice, _) => wires.set("carry", x)?,
            (Mistake::ReadsAMissingInput, _) => drop(wires.public_input(2)?),
            (Mistake::AllocatesAnInput, _) => {
                let _ = wires.cs().new_input_variable(|| Ok(Fr::from(7)))?;
            }
            (Mistake::AccessesMoreInALaterPart, _) => {
                for _ in 0..=part {
                    wires.public_input(0)?;
                }
            }
            (Mistake::MultipliesByThePart, _) => {
                let weight = Fr::from(2 + part as u64);
                let of_x = || LinearCombination::from((weight, x.variable));
                let zero = LinearCombination::zero;
                wires.cs().enforce_r1cs_constraint(of_x, of_x, zero)?;
            }
            (Mistake::BranchesOnAValue, _) if self.value == 0 => {}
            (Mistake::BranchesOnAValue, _) => drop(wires.public_input(0)?),
            (Mistake::TakesWhatIsNotPut, _) => wires.take(x)?,
        }
        Ok(())
    }
}

/// The error of making the partition, or else of tracing a witness.
fn error_of(mistake: Mistake) -> String {
    let with = |value| Mistaken { mistake, value };
    let traced = Partition::new(&with(0)).and_then(|partition| partition.trace(&with(1)));
    traced.expect_err("a mistake").to_string()
}

/// Spaces and line breaks do not count.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_guide_has_the_messages() {
    let guide = words(GUIDE);
    for mistake in [
        Mistake::ReadsALaterWire,
        Mistake::SetsAWireTwice,
        Mistake::ReadsAMissingInput,
        Mistake::AllocatesAnInput,
        Mistake::AccessesMoreInALaterPart,
        Mistake::MultipliesByThePart,
        Mistake::BranchesOnAValue,
        Mistake::TakesWhatIsNotPut,
    ] {
        let message = error_of(mistake);
        assert!(
            guide.contains(&words(&message)),
            "{mistake:?}: the guide lacks {message:?}"
        );
    }
}

/// Every fence of Rust in the guide is a run of lines of the sources, up to indentation. A line `…` stands for lines that
/// are left out.
#[test]
fn the_guide_shows_code_that_compiles() {
    let sources = SOURCES.map(words);
    let mut shown = 0;
    let fences = GUIDE.split("```rust\n").skip(1);
    for fence in fences.filter_map(|rest| rest.split("```").next()) {
        for piece in fence.split('…') {
            let piece = words(piece);
            let is_there = sources.iter().any(|source| source.contains(&piece));
            assert!(is_there, "not in the example: {piece}");
            shown += 1;
        }
    }
    assert!(shown >= 6, "{shown} pieces of code");
}
