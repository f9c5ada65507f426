//! The multiplier: products, shifts, quotients and remainders, and the bytes of accessed words.
//!
//! One equation `x · y = z` serves all of them:
//!
//! | instructions | x | y | z |
//! |---|---|---|---|
//! | `SLL`, `SLLI` | left | 2ˢ | product |
//! | `SRL`, `SRA`, `SRLI`, `SRAI` | left | 2³²⁻ˢ | product |
//! | divisions | quotient | right | left − remainder |
//! | accesses to a data word | the word | 2³²⁻⁸ᵒ for the byte offset o | product |
//! | branches | the target, which gives it a range | 2³²⁻ˢ | product |
//! | all others | left | right | product |
//!
//! The product is `low + 2³² · high − 2⁶⁴ · negative`, the quotient `low − 2³² · negative`, the remainder
//! `high − 2³² · remainder_negative`.

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;

use super::StepWitness;
use super::adder::Adder;
use super::data::Selected;
use super::operands::{Fields, Operands, Word};
use crate::builder::Builder;
use crate::row::Flag;
use crate::sum::Sum;

/// What a prover fills into the words of the multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// The low word of the product, or the quotient.
    pub(crate) low: u32,
    /// The high word of the product, or the remainder.
    pub(crate) high: u32,
    /// Whether the product or the quotient is negative.
    pub(crate) negative: bool,
    /// Whether the remainder is negative.
    pub(crate) remainder_negative: bool,
}

/// The words of the multiplier.
pub(super) struct Words {
    /// The low word of the product, or the quotient.
    pub(super) low: Word,
    /// The high word of the product, or the remainder.
    pub(super) high: Word,
    negative: Sum,
    /// The remainder with its sign.
    remainder: Sum,
    /// The remainder's absolute value.
    pub(super) remainder_size: Sum,
    /// The absolute value of the right operand.
    pub(super) divisor_size: Sum,
}

// === impl Advice ===

impl Advice {
    /// The right values. `byte` is the offset in the accessed word, if one is accessed.
    pub(super) fn new(witness: &StepWitness, operands: &Operands, byte: Option<u32>) -> Self {
        let row = &witness.row;
        let (left, right) = (operands.left_signed.value(), operands.right_signed.value());
        if row.has(Flag::Divide) {
            // Rounded toward zero, as Rust does.
            let (quotient, remainder) = match right {
                0 => (i128::from(u32::MAX), left),
                right => (left / right, left % right),
            };
            return Self {
                low: quotient as u32,
                high: remainder as u32,
                negative: quotient < 0,
                remainder_negative: remainder < 0,
            };
        }
        let shift = operands.right.value() & 31;
        let product = match byte {
            Some(byte) => i128::from(witness.word) << (32 - 8 * byte),
            None if row.has(Flag::Branch) => i128::from(row.immediate) << (32 - shift),
            None if row.has(Flag::ShiftLeft) => left << shift,
            None if row.has(Flag::ShiftRight) => left << (32 - shift),
            None => left * right,
        };
        Self {
            low: product as u32,
            high: (product >> 32) as u32,
            negative: product < 0,
            remainder_negative: operands.left_negative.value() == 1,
        }
    }
}

// === impl Words ===

impl Words {
    /// Private words, with the sign of the remainder: zero, or that of the left operand.
    pub(super) fn new<F: PrimeField>(
        b: &mut Builder<F>,
        operands: &Operands,
        advice: &Advice,
    ) -> Result<Self, SynthesisError> {
        let low = Word::new(b, advice.low)?;
        let high = Word::new(b, advice.high)?;
        let negative = b.bit(advice.negative)?;
        let remainder_negative = b.bit(advice.remainder_negative)?;
        let (left_negative, right_negative) = (&operands.left_negative, &operands.right_negative);
        // Of a left operand that is not negative it is not negative; of a negative one it is not positive.
        b.enforce(&remainder_negative, &left_negative.not(), &Sum::default())?;
        let differ = Sum::of(0, [(1, left_negative), (-1, &remainder_negative)]);
        b.enforce(&differ, &high.number(), &Sum::default())?;

        let remainder = high.number().plus(-(1 << 32), &remainder_negative);
        let sign = |negative: &Sum| Sum::of(1, [(-2, negative)]);
        let remainder_size = b.product(&remainder, &sign(left_negative))?;
        let divisor_size = b.product(&operands.right_signed, &sign(right_negative))?;
        Ok(Self {
            low,
            high,
            negative,
            remainder,
            remainder_size,
            divisor_size,
        })
    }
}

/// Enforces the equation, and returns the power of two that shifts to the left: 2ˢ, or 2⁸ᵒ.
pub(super) fn enforce<F: PrimeField>(
    b: &mut Builder<F>,
    row: &Fields,
    operands: &Operands,
    adder: &Adder,
    selected: &Selected,
    words: &Words,
    word: &Sum,
) -> Result<Sum, SynthesisError> {
    let power = power(b, operands, adder, selected)?;
    // Its quotient with 2³²: the power is not zero, so there is one.
    let opposite = (1 << 32) / power.value().max(1);
    let opposite = b.witness(opposite)?;
    b.enforce(&opposite, &power, &Sum::constant(1 << 32))?;

    let quotient = words.low.number().plus(-(1 << 32), &words.negative);
    let left = &operands.left_signed;
    let mut x = left.clone();
    let replacements = [
        (row.flag(Flag::Divide), &quotient),
        (&selected.accesses, word),
        (row.flag(Flag::Branch), &row.immediate),
    ];
    for (condition, replacement) in replacements {
        let change = b.product(condition, &replacement.clone().plus(-1, left))?;
        x.add(1, &change);
    }

    let right = &operands.right_signed;
    let weighted = [
        (1, row.flag(Flag::ShiftRight)),
        (1, row.flag(Flag::Branch)),
        (1, &selected.accesses),
    ];
    let to_the_right = Sum::of(0, weighted);
    let mut y = right.clone();
    for (condition, replacement) in [
        (row.flag(Flag::ShiftLeft), &power),
        (&to_the_right, &opposite),
    ] {
        let change = b.product(condition, &replacement.clone().plus(-1, right))?;
        y.add(1, &change);
    }

    let product = Sum::of(
        0,
        [
            (1, &words.low.number()),
            (1 << 32, &words.high.number()),
            (-(1 << 64), &words.negative),
        ],
    );
    let divided = Sum::of(0, [(1, left), (-1, &words.remainder), (-1, &product)]);
    let change = b.product(row.flag(Flag::Divide), &divided)?;
    b.enforce(&x, &y, &product.plus(1, &change))?;
    Ok(power)
}

/// 2ˢ for the low five bits s of the right operand; of an access 2⁸ᵒ for the offset o in its word.
fn power<F: PrimeField>(
    b: &mut Builder<F>,
    operands: &Operands,
    adder: &Adder,
    selected: &Selected,
) -> Result<Sum, SynthesisError> {
    // 1 + bit · (2^(2^i) − 1).
    let factor = |bit: &Sum, i: u32| Sum::of(1, [((1 << (1 << i)) - 1, bit)]);
    let amount = &operands.right.bits[..5];
    let mut power = factor(&amount[0], 0);
    for (i, bit) in (1..).zip(&amount[1..]) {
        power = b.product(&power, &factor(bit, i))?;
    }
    let [first, second] = [&adder.bits[0], &adder.bits[1]];
    let of_bytes = b.product(&factor(first, 3), &factor(second, 4))?;
    let change = b.product(&selected.accesses, &of_bytes.plus(-1, &power))?;
    Ok(power.plus(1, &change))
}
