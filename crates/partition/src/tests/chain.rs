//! A circuit of any number of parts that uses every kind of access and transfer.

use ark_ff::Field;
use ark_relations::gr1cs::{LinearCombination, Variable};
use proofmill_kernels::Poseidon2Field;

use crate::{Part, PartitionError, PartitionedCircuit, Wire};

/// A circuit with public inputs x, y and their "sum" z. Part i squares the value of the part before and adds a
/// constant; a cell adds up all values, plus the first part's value for each later part; the last part compares
/// the cell with z.
///
/// The first part puts the rows of a table, and each part looks a secret digit up. Each part but the first puts its
/// square, and the part before takes it: against the order of parts.
#[derive(Clone, Debug)]
pub(crate) struct Chain<F> {
    pub(crate) parts: usize,
    pub(crate) public: [F; 3],
    /// A part, a read of its code, and a number added to the value read, which the constraint system does not see.
    pub(crate) lie: Option<(usize, Read, F)>,
    /// The digit of each part.
    pub(crate) digits: Vec<F>,
    /// The value that each part but the last takes from the one after it.
    pub(crate) heard: Vec<F>,
    /// The number of times that each row of the table is looked up.
    pub(crate) times: [F; ROWS],
}

/// Rows of the table, which has the numbers from 0.
pub(crate) const ROWS: usize = 4;

/// The number added to squares that are put, which keeps them apart from digits.
const SQUARES: u64 = 1 << 32;

/// Places of the values of a middle part's transfers, and of the first multiplicity of the first part.
pub(crate) const DIGIT: usize = 0;
pub(crate) const SQUARE: usize = 1;
pub(crate) const HEARD: usize = 2;
pub(crate) const FIRST_TIMES: usize = 1;

/// The reads of a middle part, at their places among its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Power = 0,
    First = 1,
    Cell = 2,
}

impl<F: Poseidon2Field> Chain<F> {
    pub(crate) fn blank(parts: usize) -> Self {
        Self {
            parts,
            public: [F::ZERO; 3],
            lie: None,
            digits: vec![F::ZERO; parts],
            heard: vec![F::ZERO; parts],
            times: [F::ZERO; ROWS],
        }
    }

    /// A chain with a witness; the last public input is computed natively.
    pub(crate) fn new(parts: usize, x: u64, y: u64) -> Self {
        Self::lying(parts, [x, y], None)
    }

    /// A chain whose values follow from a lie.
    pub(crate) fn lying(parts: usize, public: [u64; 2], lie: Option<(usize, Read, F)>) -> Self {
        let [x, y] = public.map(F::from);
        let told = |part: usize, read: Read| match lie {
            Some((liar, place, difference)) if (liar, place) == (part, read) => difference,
            _ => F::ZERO,
        };
        let mut chain = Self::blank(parts);
        let (mut power, mut cell, mut first) = (x, y, F::ZERO);
        for part in 0..parts {
            let square = (power + told(part, Read::Power)).square();
            if part > 0 {
                chain.heard[part - 1] = square + F::from(SQUARES);
            }
            chain.digits[part] = F::from((part % ROWS) as u64);
            chain.times[part % ROWS] += F::ONE;
            power = square + constant::<F>(part);
            cell += power + told(part, Read::First) + told(part, Read::Cell);
            match part {
                0 => first = power,
                _ => cell += first,
            }
        }
        Self {
            public: [x, y, cell],
            lie,
            ..chain
        }
    }

    fn transfer(
        &self,
        part: usize,
        wires: &mut Part<'_, F>,
        square: Wire<F>,
    ) -> Result<(), PartitionError> {
        let fixed = |number: u64| (F::from(number), Variable::One);
        for (row, times) in (0..).zip(self.times).filter(|_| part == 0) {
            let times = wires.witness(times)?;
            let sum = || LinearCombination(vec![fixed(row)]);
            wires.put_sum_times(F::from(row), sum, times)?;
        }
        let digit = wires.witness(self.digits[part])?;
        wires.take(digit)?;
        if part > 0 {
            let sum = || LinearCombination(vec![fixed(SQUARES), (F::ONE, square.variable)]);
            wires.put_sum(square.value + F::from(SQUARES), sum)?;
        }
        if part + 1 < self.parts {
            let heard = wires.witness(self.heard[part])?;
            wires.take(heard)?;
        }
        Ok(())
    }

    fn read(&self, part: usize, read: Read, wire: Wire<F>) -> Wire<F> {
        match self.lie {
            Some((liar, place, difference)) if (liar, place) == (part, read) => Wire {
                value: wire.value + difference,
                ..wire
            },
            _ => wire,
        }
    }
}

/// The constant of a part: one of two, so that parts that are two apart have the same.
fn constant<F: Field>(part: usize) -> F {
    F::from(3 + part as u64 % 2)
}

fn sum<F: Field>(wires: &[Wire<F>]) -> (F, LinearCombination<F>) {
    let terms = wires.iter().map(|wire| (F::ONE, wire.variable));
    let value = wires.iter().map(|wire| wire.value).sum();
    (value, LinearCombination(terms.collect()))
}

impl<F: Poseidon2Field> PartitionedCircuit<F> for Chain<F> {
    fn num_parts(&self) -> usize {
        self.parts
    }

    fn class(&self, part: usize) -> &'static str {
        match (part == 0, part + 1 == self.parts) {
            (true, true) => "only",
            (true, false) => "first",
            (false, true) => "last",
            (false, false) => "middle",
        }
    }

    fn num_public_inputs(&self) -> usize {
        3
    }

    fn public_inputs(&self) -> Vec<F> {
        self.public.to_vec()
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        let mut added = Vec::new();
        let base = if part == 0 {
            let base = wires.public_input(0)?;
            added.push(wires.public_input(1)?);
            base
        } else {
            let base = self.read(part, Read::Power, wires.get(("power", part - 1))?);
            let first = wires.get(("power", 0))?;
            added.push(self.read(part, Read::First, first));
            added.push(self.read(part, Read::Cell, wires.load("sum")?));
            base
        };
        let constant = wires.constant(constant(part))?;
        let square = wires.witness(base.value.square())?;
        let of = |wire: Wire<F>| move || LinearCombination(vec![(F::ONE, wire.variable)]);
        wires
            .cs()
            .enforce_r1cs_constraint(of(base), of(base), of(square))?;
        self.transfer(part, wires, square)?;
        let (value, power) = sum(&[square, constant]);
        added.extend([square, constant]);
        let (total, all) = sum(&added);
        if part + 1 < self.parts {
            wires.set_sum(("power", part), value, || power)?;
            let cell = wires.witness(total)?;
            wires.cs().enforce_r1cs_constraint(
                LinearCombination::zero,
                LinearCombination::zero,
                || all - of(cell)(),
            )?;
            wires.store("sum", cell)?;
        } else {
            let expected = wires.public_input(2)?;
            let zero = LinearCombination::zero;
            wires
                .cs()
                .enforce_r1cs_constraint(zero, zero, || all - of(expected)())?;
        }
        Ok(())
    }
}
