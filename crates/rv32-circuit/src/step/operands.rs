//! The row of the program, and the two operands.

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;

use super::StepWitness;
use crate::builder::Builder;
use crate::entry::Entry;
use crate::row::{CLASSES, FLAGS, Flag, Row};
use crate::sum::{Sum, number};

/// The parts of a row.
pub(super) struct Fields {
    flags: Vec<Sum>,
    pub(super) rd: Sum,
    /// Whether the destination is [`SINK`](crate::entry::SINK).
    pub(super) is_sink: Sum,
    pub(super) rs1: Sum,
    pub(super) rs2: Sum,
    pub(super) immediate: Sum,
    /// The entry of the program that is taken.
    pub(super) entry: Entry,
}

/// A 32-bit word with its bits.
pub(super) struct Word {
    pub(super) bits: Vec<Sum>,
    number: Sum,
}

/// The operands.
pub(super) struct Operands {
    /// The left operand.
    pub(super) left: Word,
    /// The register of the right operand: 0 if the operand is the immediate.
    pub(super) register: Sum,
    /// The right operand: the register or the immediate.
    pub(super) right: Word,
    /// The left operand's sign bit, if it is signed.
    pub(super) left_negative: Sum,
    /// The right operand's sign bit, if it is signed.
    pub(super) right_negative: Sum,
    /// The left operand as a signed number, if it is signed.
    pub(super) left_signed: Sum,
    /// The right operand as a signed number, if it is signed.
    pub(super) right_signed: Sum,
}

// === impl Word ===

impl Word {
    /// A private word.
    pub(super) fn new<F: PrimeField>(
        b: &mut Builder<F>,
        value: u32,
    ) -> Result<Self, SynthesisError> {
        let bits = b.bits(value.into(), 32)?;
        let number = number(&bits);
        Ok(Self { bits, number })
    }

    /// The word as a number.
    pub(super) fn number(&self) -> Sum {
        self.number.clone()
    }

    /// The number below 2³², natively.
    pub(super) fn value(&self) -> u32 {
        self.number.value() as u32
    }

    /// The number of some of the bits.
    pub(super) fn part(&self, from: usize, to: usize) -> Sum {
        number(&self.bits[from..to])
    }
}

// === impl Fields ===

impl Fields {
    /// A row for the instruction at `pc`. Every part has its range, the immediate by its use in
    /// [`Operands`], the adder or the multiplier.
    pub(super) fn new<F: PrimeField>(
        b: &mut Builder<F>,
        pc: &Sum,
        row: &Row,
    ) -> Result<Self, SynthesisError> {
        let immediate = b.witness(row.immediate.into())?;
        let flags = b.bits(row.flags.into(), FLAGS)?;
        let rd_bits = b.bits(row.rd.into(), 6)?;
        let rd = number(&rd_bits);
        let rs1 = b.ranged(row.rs1.into(), 5)?;
        let rs2 = b.ranged(row.rs2.into(), 5)?;
        let low = low(pc, &number(&flags), [&rd, &rs1, &rs2]);
        let fields = Self {
            entry: Entry::row(low, immediate.clone()),
            flags,
            rd,
            is_sink: rd_bits[5].clone(),
            rs1,
            rs2,
            immediate,
        };
        let classes = CLASSES.map(|class| (1, fields.flag(class)));
        b.enforce_zero(&Sum::of(-1, classes))?;
        Ok(fields)
    }

    /// A control bit.
    pub(super) fn flag(&self, flag: Flag) -> &Sum {
        &self.flags[flag as usize]
    }
}

/// The parts of a row besides the immediate, as one number of 76 bits.
pub(crate) fn low(pc: &Sum, flags: &Sum, [rd, rs1, rs2]: [&Sum; 3]) -> Sum {
    let weighted = [
        (1, flags),
        (1 << FLAGS, rd),
        (1 << (FLAGS + 6), rs1),
        (1 << (FLAGS + 11), rs2),
        (1 << (FLAGS + 16), pc),
    ];
    Sum::of(0, weighted)
}

// === impl Operands ===

impl Operands {
    pub(super) fn new<F: PrimeField>(
        b: &mut Builder<F>,
        row: &Fields,
        witness: &StepWitness,
    ) -> Result<Self, SynthesisError> {
        let uses_immediate = row.flag(Flag::Immediate);
        let left = Word::new(b, witness.left)?;
        let register = b.witness(witness.right.into())?;
        let value = match witness.row.has(Flag::Immediate) {
            true => witness.row.immediate,
            false => witness.right,
        };
        let right = Word::new(b, value)?;
        // right = register + uses_immediate · immediate, where the register is zero if the immediate is used.
        b.enforce(uses_immediate, &register, &Sum::default())?;
        let difference = right.number().plus(-1, &register);
        b.enforce(uses_immediate, &row.immediate, &difference)?;
        // An immediate that is neither operand, nor added by a store, nor a branch's target, is zero.
        let uses = [Flag::Immediate, Flag::Store, Flag::Branch];
        let unused = Sum::of(1, uses.map(|flag| (-1, row.flag(flag))));
        b.enforce(&unused, &row.immediate, &Sum::default())?;

        let left_negative = b.product(row.flag(Flag::LeftSigned), &left.bits[31])?;
        let right_negative = b.product(row.flag(Flag::RightSigned), &right.bits[31])?;
        let left_signed = left.number().plus(-(1 << 32), &left_negative);
        let right_signed = right.number().plus(-(1 << 32), &right_negative);
        Ok(Self {
            left,
            register,
            right,
            left_negative,
            right_negative,
            left_signed,
            right_signed,
        })
    }
}
