//! The circuit: its parts in order, and what it was made from.

use ark_ff::PrimeField;
use proofmill_partition::{DistributedCircuit, Part, PartitionError, PartitionedCircuit};
use proofmill_rv32::Program;
use proofmill_rv32::memory_map::DATA_REGION;

use crate::error::Rv32Error;
use crate::execution::{self, Execution};
use crate::part_witness::PartWitness;
use crate::parts;
use crate::row::Row;
use crate::shape::Shape;
use crate::statement::Statement;

/// Address of the first word of data.
pub(crate) const DATA_START: i128 = (DATA_REGION.start / 4) as i128;

/// Address after the last word of data.
pub(crate) const DATA_END: i128 = (DATA_REGION.end / 4) as i128;

/// The execution of a program as a circuit in parts.
///
/// Whoever makes keys and a verifying key needs the [blank](Self::blank) circuit of a program and a shape.
#[derive(Clone, Debug)]
pub struct Rv32Circuit {
    pub(crate) shape: Shape,
    pub(crate) entry: u32,
    pub(crate) rows: Vec<Row>,
    /// Words at the start of data: up to the last that is not zero, and filled up to whole parts.
    pub(crate) image: Vec<u32>,
    digest: [u8; 32],
    pub(crate) execution: Option<Execution>,
    /// Of one part only, in a process that proves it.
    received: Option<(usize, PartWitness)>,
    /// Addresses of words that are zero at the start, in increasing order: as many as the shape has.
    pub(crate) zero_addresses: Vec<u32>,
}

/// What a part does, with its number among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Start,
    Program(usize),
    Data(usize),
    Zero(usize),
    Input(usize),
    Steps(usize),
    Output(usize),
    Registers,
}

// === impl Rv32Circuit ===

impl Rv32Circuit {
    /// The circuit of a program without a witness.
    ///
    /// # Errors
    ///
    /// [`Rv32Error::Shape`]; [`Rv32Error::TooMany`] if data of the program and of the shape exceed the machine's.
    pub fn blank(program: &Program, shape: Shape) -> Result<Self, Rv32Error> {
        shape.check()?;
        let rows = Row::of_program(program);
        let mut image = Vec::new();
        for (address, word) in program.data_words() {
            // Words come in increasing order of addresses, all in data.
            let index = (i128::from(address / 4) - DATA_START) as usize;
            image.resize(index, 0);
            image.push(word);
        }
        let parts = image.len().div_ceil(shape.data_words);
        image.resize(parts.saturating_mul(shape.data_words), 0);
        let words = (image.len() as u64).saturating_add(shape.num_zero_words());
        execution::check(
            "words of data in all parts",
            usize::try_from(words).unwrap_or(usize::MAX),
            (DATA_END - DATA_START) as u64,
        )?;
        Ok(Self {
            shape,
            entry: program.entry(),
            rows,
            image,
            digest: program.digest(),
            execution: None,
            received: None,
            zero_addresses: Vec::new(),
        })
    }

    /// The circuit of a program's execution on an input.
    ///
    /// # Errors
    ///
    /// Those of [`blank`](Self::blank), and others of [`Rv32Error`] if the program does not halt within the shape's
    /// steps, words of memory, and bytes of input and output.
    pub fn new(program: &Program, input: &[u8], shape: Shape) -> Result<Self, Rv32Error> {
        let mut circuit = Self::blank(program, shape)?;
        let execution = Execution::new(program, &circuit.rows, input, &shape)?;
        circuit.zero_addresses = circuit.zero_addresses_of(&execution)?;
        circuit.execution = Some(execution);
        Ok(circuit)
    }

    /// The shape.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What the circuit states; nothing without a witness.
    pub fn statement(&self) -> Option<Statement> {
        let execution = self.execution.as_ref()?;
        let is_public = self.shape.input_is_public;
        Some(Statement {
            program: self.digest,
            exit_code: execution.exit_code,
            output: execution.output.clone(),
            input: is_public.then(|| execution.input.clone()),
        })
    }

    /// Accessed words beyond the image, and further ones up to the shape's number, in increasing order.
    fn zero_addresses_of(&self, execution: &Execution) -> Result<Vec<u32>, Rv32Error> {
        let start = DATA_START + self.image.len() as i128;
        let accessed = execution.data.range(start..).map(|(address, _)| *address);
        let mut addresses: Vec<i128> = accessed.collect();
        let most = self.shape.num_zero_words();
        execution::check(
            "words of memory besides the program's data",
            addresses.len(),
            most,
        )?;
        let mut missing = most as usize - addresses.len();
        let mut candidate = start;
        // Both together fit into data: `blank` has checked it.
        while missing > 0 && candidate < DATA_END {
            if !execution.data.contains_key(&candidate) {
                addresses.push(candidate);
                missing -= 1;
            }
            candidate += 1;
        }
        addresses.sort_unstable();
        Ok(addresses
            .into_iter()
            .map(|address| address as u32)
            .collect())
    }

    /// Address of the word before a word that is zero at the start, by its number among those of all parts.
    pub(crate) fn zero_address_before(&self, number: usize) -> u32 {
        match number.checked_sub(1) {
            Some(before) => self.zero_addresses.get(before).copied().unwrap_or_default(),
            None => (DATA_START + self.image.len() as i128 - 1) as u32,
        }
    }

    /// The private values of a part.
    fn witness_of(&self, part: usize) -> PartWitness {
        match (&self.received, &self.execution) {
            (Some((of, witness)), _) if *of == part => witness.clone(),
            (_, Some(execution)) => PartWitness::of(self, execution, self.kind(part)),
            _ => PartWitness::blank(self, self.kind(part)),
        }
    }

    /// Numbers of parts by kind, in order.
    fn counts(&self) -> [usize; 8] {
        let shape = &self.shape;
        [
            1,
            self.rows.len().div_ceil(shape.program_rows),
            self.image.len() / shape.data_words,
            shape.zero_parts,
            shape.input_parts,
            shape.step_parts,
            shape.output_parts,
            1,
        ]
    }

    /// What a part does; the last does for all beyond.
    pub(crate) fn kind(&self, part: usize) -> Kind {
        let kinds: [fn(usize) -> Kind; 8] = [
            |_| Kind::Start,
            Kind::Program,
            Kind::Data,
            Kind::Zero,
            Kind::Input,
            Kind::Steps,
            Kind::Output,
            |_| Kind::Registers,
        ];
        let mut index = part;
        for (kind, count) in kinds.into_iter().zip(self.counts()) {
            match index.checked_sub(count) {
                Some(rest) => index = rest,
                None => return kind(index),
            }
        }
        Kind::Registers
    }
}

impl<F: PrimeField> PartitionedCircuit<F> for Rv32Circuit {
    fn num_parts(&self) -> usize {
        self.counts().into_iter().sum()
    }

    fn class(&self, part: usize) -> &'static str {
        match self.kind(part) {
            Kind::Start => "start",
            Kind::Program(_) => "program",
            Kind::Data(_) => "data",
            Kind::Zero(_) => "zero",
            Kind::Input(_) => "input",
            Kind::Steps(_) => "steps",
            Kind::Output(_) => "output",
            Kind::Registers => "registers",
        }
    }

    fn num_public_inputs(&self) -> usize {
        Statement::num_public_inputs(&self.shape)
    }

    fn public_inputs(&self) -> Vec<F> {
        let inputs =
            (self.statement()).and_then(|statement| statement.public_inputs(&self.shape).ok());
        let count = Statement::num_public_inputs(&self.shape);
        inputs.unwrap_or_else(|| vec![F::zero(); count])
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        let witness = &self.witness_of(part);
        match self.kind(part) {
            Kind::Start => parts::start(self, witness, wires),
            Kind::Program(index) => parts::program(self, index, witness, wires),
            Kind::Data(index) => parts::data(self, index, witness, wires),
            Kind::Zero(index) => parts::zero(index, witness, wires),
            Kind::Input(index) => parts::input(self, index, witness, wires),
            Kind::Steps(index) => parts::steps(self, index, witness, wires),
            Kind::Output(index) => parts::output(self, index, witness, wires),
            Kind::Registers => parts::registers(self, witness, wires),
        }
    }
}

impl<F: PrimeField> DistributedCircuit<F> for Rv32Circuit {
    fn part_witness(&self, part: usize) -> Vec<u8> {
        self.witness_of(part).to_bytes()
    }

    fn with_part_witness(&self, part: usize, bytes: &[u8]) -> Result<Self, String> {
        let witness = PartWitness::from_bytes(self, self.kind(part), bytes)?;
        let mut circuit = self.clone();
        circuit.received = Some((part, witness));
        Ok(circuit)
    }
}
