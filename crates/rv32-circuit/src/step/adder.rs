//! The adder: sums, differences, addresses, the comparison, and the check of a remainder.

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;

use super::State;
use super::calls::Calls;
use super::multiplier::Words;
use super::operands::{Fields, Operands};
use crate::builder::Builder;
use crate::row::Flag;
use crate::sum::{Sum, number};

/// First byte of the output, among byte addresses of the streams. That of the input is 0.
const OUTPUT_START: i128 = 1 << 31;

/// The adder's outputs.
pub(super) struct Adder {
    /// The bits of the sum, the least significant first, without the carry.
    pub(super) bits: Vec<Sum>,
    /// The sum modulo 2³².
    pub(super) sum: Sum,
    /// Whether the left operand is less than the right, of a subtraction.
    pub(super) less: Sum,
    /// Whether the operands are equal.
    pub(super) equal: Sum,
}

// === impl Adder ===

impl Adder {
    pub(super) fn new<F: PrimeField>(
        b: &mut Builder<F>,
        row: &Fields,
        operands: &Operands,
        calls: &Calls,
        state: &State,
        words: &Words,
    ) -> Result<Self, SynthesisError> {
        let (left, right) = (operands.left.number(), operands.right.number());
        let subtrahend = b.product(row.flag(Flag::Subtract), &right)?;
        let offset = Sum::of(0, [(1, &row.immediate), (-1, &right)]);
        let offset = b.product(row.flag(Flag::Store), &offset)?;
        let mut total = Sum::of(
            0,
            [
                (1, &left),
                (1, &right),
                (1 << 32, row.flag(Flag::Subtract)),
                (-2, &subtrahend),
                (1, &offset),
            ],
        );
        // |divisor| − 1 − |remainder| + 2³², which has a carry unless the divisor is zero.
        let remainder_fits = Sum::of(
            (1 << 32) - 1,
            [(1, &words.divisor_size), (-1, &words.remainder_size)],
        );
        let input = state.read.clone();
        let output = Sum::of(OUTPUT_START, [(1, &state.written)]);
        let replacements = [
            (row.flag(Flag::Divide), remainder_fits),
            (&calls.reads, input),
            (&calls.writes, output),
        ];
        let ordinary = total.clone();
        for (condition, replacement) in replacements {
            let change = b.product(condition, &replacement.plus(-1, &ordinary))?;
            total.add(1, &change);
        }
        let mut bits = b.bits(total.value(), 33)?;
        b.enforce_zero(&number(&bits).plus(-1, &total))?;
        let carry = bits.pop().unwrap_or_default();
        let borrow = carry.not();
        let less = xor3(
            b,
            [&borrow, &operands.left_negative, &operands.right_negative],
        )?;
        let equal = b.is_zero(&left.plus(-1, &right))?;

        // A division has no carry only if the divisor is zero, and then the quotient is 2³² − 1. Both are numbers that
        // are not negative, so that their sum is zero only if both are.
        let divisor_is_zero = b.product(row.flag(Flag::Divide), &borrow)?;
        let quotient_missing = Sum::of((1 << 32) - 1, [(1, &right), (-1, &words.low.number())]);
        b.enforce(&divisor_is_zero, &quotient_missing, &Sum::default())?;
        Ok(Self {
            sum: number(&bits),
            bits,
            less,
            equal,
        })
    }
}

/// The exclusive or of three bits, with s = x + y + z: `(s − 2 − 2·out) · s = −3·out` has one solution for each s from 0
/// to 3, as s(s − 2)/(2s − 3) is 0, 1, 0, 1.
fn xor3<F: PrimeField>(b: &mut Builder<F>, bits: [&Sum; 3]) -> Result<Sum, SynthesisError> {
    let sum = Sum::of(0, bits.map(|bit| (1, bit)));
    let out = b.witness(sum.value() & 1)?;
    let left = Sum::of(-2, [(1, &sum), (-2, &out)]);
    b.enforce(&left, &sum, &Sum::of(0, [(-3, &out)]))?;
    Ok(out)
}
