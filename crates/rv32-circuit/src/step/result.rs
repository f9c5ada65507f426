//! The value of the destination, and the next pc.

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;

use super::State;
use super::adder::Adder;
use super::calls::Calls;
use super::data::{Data, Selected};
use super::multiplier::Words;
use super::operands::{Fields, Operands};
use crate::builder::Builder;
use crate::row::{Flag, HALTED};
use crate::sum::{Sum, number};

/// Outputs of the units.
pub(super) struct Units<'a> {
    pub(super) row: &'a Fields,
    pub(super) operands: &'a Operands,
    pub(super) calls: &'a Calls,
    pub(super) words: &'a Words,
    pub(super) adder: &'a Adder,
    pub(super) selected: &'a Selected,
    pub(super) data: &'a Data,
    pub(super) state: &'a State,
}

/// Flags of results that are not the adder's sum. Stores and branches have it too, for no register.
const OTHER_RESULTS: [Flag; 10] = [
    Flag::Low,
    Flag::High,
    Flag::Less,
    Flag::And,
    Flag::Or,
    Flag::Xor,
    Flag::Jump,
    Flag::JumpRegister,
    Flag::Load,
    Flag::Call,
];

// === impl Units ===

impl Units<'_> {
    /// The value of the destination after the step.
    pub(super) fn result<F: PrimeField>(&self, b: &mut Builder<F>) -> Result<Sum, SynthesisError> {
        let flag = |flag| self.row.flag(flag);
        let (left, right) = (&self.operands.left, &self.operands.right);
        let mut ands = Vec::with_capacity(32);
        for (left, right) in left.bits.iter().zip(&right.bits) {
            ands.push(b.product(left, right)?);
        }
        // x ∨ y = x + y − (x ∧ y), x ⊕ y = x + y − 2·(x ∧ y).
        let sums = Sum::of(0, [(1, flag(Flag::Or)), (1, flag(Flag::Xor))]);
        let weight = Sum::of(
            0,
            [
                (1, flag(Flag::And)),
                (-1, flag(Flag::Or)),
                (-2, flag(Flag::Xor)),
            ],
        );
        let is_sum = Sum::of(1, OTHER_RESULTS.map(|other| (-1, flag(other))));
        let is_link = Sum::of(0, [(1, flag(Flag::Jump)), (1, flag(Flag::JumpRegister))]);
        let link = Sum::of(4, [(1, &self.state.pc)]);
        // Calls without a result leave a0, the right operand, as it is.
        let calls = self.calls;
        let unchanged = Sum::of(0, [(1, &calls.halt), (1, &calls.writes)]);
        let chosen = [
            (is_sum, self.adder.sum.clone()),
            (flag(Flag::Low).clone(), self.words.low.number()),
            (flag(Flag::High).clone(), self.words.high.number()),
            (flag(Flag::Less).clone(), self.adder.less.clone()),
            (sums, left.number().plus(1, &right.number())),
            (weight, number(&ands)),
            (is_link, link),
            (self.selected.fetches.clone(), self.data.loaded.clone()),
            (unchanged, right.number()),
            (calls.remaining.clone(), calls.rest.clone()),
        ];
        let mut result = Sum::of(0, [(i128::from(u32::MAX), &calls.byte_at_end)]);
        for (condition, value) in chosen {
            let term = b.product(&condition, &value)?;
            result.add(1, &term);
        }
        Ok(result)
    }

    /// The address of the next instruction.
    pub(super) fn next_pc<F: PrimeField>(&self, b: &mut Builder<F>) -> Result<Sum, SynthesisError> {
        let flag = |flag| self.row.flag(flag);
        let adder = self.adder;
        let equal = b.product(flag(Flag::Branch), &adder.equal)?;
        let difference = adder.less.clone().plus(-1, &adder.equal);
        let difference = b.product(flag(Flag::BranchLess), &difference)?;
        let holds = equal.plus(1, &difference);
        let both = b.product(&holds, flag(Flag::BranchUnless))?;
        let jumps = Sum::of(
            0,
            [
                (1, &holds),
                (1, flag(Flag::BranchUnless)),
                (-2, &both),
                (1, flag(Flag::Jump)),
            ],
        );
        // Exactly one of the four next addresses. Rows of the program are so; that an invented row must be too bounds pc,
        // and with it every entry that is put, before it is known that the row is one of the program (see `entry`).
        b.enforce(&jumps, &jumps.not(), &Sum::default())?;
        let moves = [&jumps, flag(Flag::JumpRegister), &self.calls.halt];
        let moves = Sum::of(0, moves.map(|condition| (1, condition)));
        b.enforce(&moves, &moves.not(), &Sum::default())?;
        let target = adder.sum.clone().plus(-1, &adder.bits[0]);
        let next = Sum::of(4, [(1, &self.state.pc)]);
        let mut pc = next.clone();
        for (condition, target) in [
            (&jumps, self.row.immediate.clone()),
            (flag(Flag::JumpRegister), target),
            (&self.calls.halt, Sum::constant(HALTED.into())),
        ] {
            let change = b.product(condition, &target.plus(-1, &next))?;
            pc.add(1, &change);
        }
        Ok(pc)
    }
}
