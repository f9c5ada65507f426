//! The private values that the code of one part takes, and their bytes for a worker that proves only this part.

use ark_ff::PrimeField;
use proofmill_partition::{Part, PartitionError};
use proofmill_rv32::Register;
use proofmill_rv32::memory_map::STACK_TOP;

use crate::circuit::{DATA_START, Kind, Rv32Circuit};
use crate::entry::{REGISTER_WORDS, packed_word};
use crate::execution::{Checkpoint, Execution, StepRecord, WordState};
use crate::row::HALTED;
use crate::step::ACCESSES;

/// Bytes of a [`StepRecord`]: the row, four values, four times.
const STEP_BYTES: usize = 4 * (5 + ACCESSES);

/// Bytes of a [`WordState`]: value and time.
const WORD_BYTES: usize = 8;

/// Bytes before the lists: the input's length, pc, and the positions in input and output.
const HEAD_BYTES: usize = 4 + 8 + 4 + 4;

/// The private values of a part. A list is empty where the part's kind takes nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartWitness {
    /// Length of the input in bytes.
    pub(crate) input_length: u32,
    /// The state before the part's steps; in the last part, after all steps.
    pub(crate) at: Checkpoint,
    /// The part's steps.
    pub(crate) steps: Vec<StepRecord>,
    /// How often each of the part's instructions was executed.
    pub(crate) counts: Vec<u64>,
    /// Address of the word before those of the part, and their own.
    pub(crate) addresses: Vec<u32>,
    /// The last state of each of the part's words.
    pub(crate) words: Vec<WordState>,
}

/// Lengths of the lists of a part's witness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lengths {
    steps: usize,
    counts: usize,
    addresses: usize,
    words: usize,
}

// === impl PartWitness ===

impl PartWitness {
    /// The witness of a circuit without one: as many zeros.
    pub(crate) fn blank(circuit: &Rv32Circuit, kind: Kind) -> Self {
        let lengths = Lengths::of(circuit, kind);
        Self {
            input_length: 0,
            at: Checkpoint::default(),
            // Row 0 is that of a halted program.
            steps: vec![StepRecord::default(); lengths.steps],
            counts: vec![0; lengths.counts],
            addresses: vec![0; lengths.addresses],
            words: vec![WordState::default(); lengths.words],
        }
    }

    /// The witness of a part in an execution.
    pub(crate) fn of(circuit: &Rv32Circuit, execution: &Execution, kind: Kind) -> Self {
        let shape = &circuit.shape;
        let mut witness = Self::blank(circuit, kind);
        match kind {
            Kind::Start => witness.input_length = execution.input.len() as u32,
            Kind::Program(index) => {
                copy_from(&mut witness.counts, &execution.counts, index);
            }
            Kind::Data(index) => {
                let first = index * shape.data_words;
                for (row, word) in witness.words.iter_mut().enumerate() {
                    let address = DATA_START + (first + row) as i128;
                    *word = execution.data.get(&address).copied().unwrap_or(WordState {
                        value: circuit.image.get(first + row).copied().unwrap_or_default(),
                        time: 0,
                    });
                }
            }
            Kind::Zero(index) => {
                let first = index * shape.zero_words;
                for (row, address) in witness.addresses.iter_mut().enumerate() {
                    *address = circuit.zero_address_before(first + row);
                }
                let addresses = &witness.addresses[1..];
                for (word, address) in witness.words.iter_mut().zip(addresses) {
                    let state = execution.data.get(&i128::from(*address));
                    *word = state.copied().unwrap_or_default();
                }
            }
            Kind::Input(index) => {
                witness.input_length = execution.input.len() as u32;
                copy_from(&mut witness.words, &execution.input_words, index);
            }
            Kind::Steps(index) => {
                witness.input_length = execution.input.len() as u32;
                let at = execution.checkpoints.get(index);
                witness.at = at.copied().unwrap_or_default();
                copy_from(&mut witness.steps, &execution.steps, index);
            }
            Kind::Output(index) => {
                copy_from(&mut witness.words, &execution.output_words, index);
            }
            Kind::Registers => {
                let at = execution.checkpoints.get(shape.step_parts);
                witness.at = at.copied().unwrap_or_default();
                witness.words.copy_from_slice(&execution.registers);
            }
        }
        witness
    }

    /// Little-endian: the input's length (4 bytes), pc (8), the positions in input and output (4 each); of each step the
    /// row's number, four values and four times (4 each); counts (8 each); addresses (4 each); of each word the value and
    /// the time (4 each). Their numbers follow from the shape and the part.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let lengths = Lengths {
            steps: self.steps.len(),
            counts: self.counts.len(),
            addresses: self.addresses.len(),
            words: self.words.len(),
        };
        let mut bytes = Vec::with_capacity(lengths.encoded_size());
        let mut put = |number: u32| bytes.extend(number.to_le_bytes());
        put(self.input_length);
        put(self.at.pc as u32);
        put((self.at.pc >> 32) as u32);
        put(self.at.read);
        put(self.at.written);
        for step in &self.steps {
            for number in [step.row, step.left, step.right, step.word, step.destination] {
                put(number);
            }
            step.times.iter().copied().for_each(&mut put);
        }
        for count in &self.counts {
            put(*count as u32);
            put((count >> 32) as u32);
        }
        self.addresses.iter().copied().for_each(&mut put);
        for word in &self.words {
            put(word.value);
            put(word.time);
        }
        bytes
    }

    /// Decodes untrusted bytes for a part. The values may be no execution's; then the part has no proof.
    pub(crate) fn from_bytes(
        circuit: &Rv32Circuit,
        kind: Kind,
        bytes: &[u8],
    ) -> Result<Self, String> {
        let lengths = Lengths::of(circuit, kind);
        let (expected, found) = (lengths.encoded_size(), bytes.len());
        if found != expected {
            return Err(format!(
                "{found} bytes of witness, where the part takes {expected}"
            ));
        }
        let mut numbers = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| u32::from_le_bytes(*b));
        // There are as many numbers as the length says.
        let mut next = || numbers.next().unwrap_or_default();
        let mut witness = Self {
            input_length: next(),
            at: Checkpoint {
                pc: u64::from(next()) | u64::from(next()) << 32,
                read: next(),
                written: next(),
            },
            ..Self::default()
        };
        if witness.at.pc > HALTED {
            return Err(format!("a pc of {:#x}", witness.at.pc));
        }
        for _ in 0..lengths.steps {
            let step = StepRecord {
                row: next(),
                left: next(),
                right: next(),
                word: next(),
                destination: next(),
                times: std::array::from_fn(|_| next()),
            };
            if step.row as usize >= circuit.rows.len() {
                return Err(format!("a step of instruction {}, which is none", step.row));
            }
            witness.steps.push(step);
        }
        for _ in 0..lengths.counts {
            witness
                .counts
                .push(u64::from(next()) | u64::from(next()) << 32);
        }
        for _ in 0..lengths.addresses {
            witness.addresses.push(next());
        }
        for _ in 0..lengths.words {
            witness.words.push(WordState {
                value: next(),
                time: next(),
            });
        }
        Ok(witness)
    }
}

/// Copies the part's share of a list, which may end within it.
fn copy_from<T: Copy>(own: &mut [T], all: &[T], index: usize) {
    let first = (index * own.len()).min(all.len());
    for (own, value) in own.iter_mut().zip(&all[first..]) {
        *own = *value;
    }
}

/// Value of a register before the first step.
pub(crate) const fn initial_register(register: usize) -> u32 {
    if register == Register::SP.index() {
        STACK_TOP
    } else {
        0
    }
}

// === impl WordState ===

impl WordState {
    /// Takes the word's state out of the multiset. The entry is arbitrary: all others of its address are taken by
    /// accesses.
    pub(crate) fn take<F: PrimeField>(
        &self,
        address: i128,
        wires: &mut Part<'_, F>,
    ) -> Result<(), PartitionError> {
        let last = wires.witness(packed_word(address, self.value, self.time))?;
        wires.take(last)
    }
}

// === impl Lengths ===

impl Lengths {
    fn of(circuit: &Rv32Circuit, kind: Kind) -> Self {
        let shape = &circuit.shape;
        let none = Self::default();
        let words = |words| Self { words, ..none };
        match kind {
            Kind::Start => none,
            Kind::Program(_) => Self {
                counts: shape.program_rows,
                ..none
            },
            Kind::Data(_) => words(shape.data_words),
            Kind::Zero(_) => Self {
                addresses: shape.zero_words + 1,
                ..words(shape.zero_words)
            },
            Kind::Input(_) => words(shape.input_words),
            Kind::Steps(_) => Self {
                steps: shape.steps,
                ..none
            },
            Kind::Output(_) => words(shape.output_words),
            Kind::Registers => words(REGISTER_WORDS),
        }
    }

    const fn encoded_size(self) -> usize {
        HEAD_BYTES
            + STEP_BYTES * self.steps
            + 8 * self.counts
            + 4 * self.addresses
            + WORD_BYTES * self.words
    }
}
