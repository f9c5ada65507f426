//! The smallest circuit of any number of parts: repeated squarings, on lanes that go from part to part.

use ark_ff::PrimeField;
use ark_relations::gr1cs::LinearCombination;

use super::SizeError;
use crate::encoding::{read, write};
use crate::{DistributedCircuit, Part, PartitionError, PartitionedCircuit, Wire};

/// Each part squares each of several secret values a given number of times and passes them on; the values of the last
/// part add up to the public input.
#[derive(Clone, Debug)]
pub struct Squarings<F: PrimeField> {
    parts: usize,
    squarings: usize,
    lanes: usize,
    values: Vec<F>,
    sum: F,
}

// === impl Squarings ===

impl<F: PrimeField> Squarings<F> {
    /// The circuit without a witness: `parts` parts, each of which squares the values of `lanes` lanes `squarings`
    /// times.
    ///
    /// # Errors
    ///
    /// [`SizeError`] if one of the numbers is 0, or `parts` exceeds [`MAX_PARTS`](crate::MAX_PARTS).
    pub fn blank(parts: usize, squarings: usize, lanes: usize) -> Result<Self, SizeError> {
        SizeError::check("parts", parts, 1, crate::MAX_PARTS)?;
        SizeError::check("squarings in each part", squarings, 1, u32::MAX as usize)?;
        SizeError::check("lanes", lanes, 1, crate::MAX_ACCESSES)?;
        Ok(Self {
            parts,
            squarings,
            lanes,
            values: Vec::new(),
            sum: F::zero(),
        })
    }

    /// The circuit over these secret values, one for each lane.
    ///
    /// # Errors
    ///
    /// As for [`blank`](Self::blank).
    pub fn new(parts: usize, squarings: usize, values: Vec<F>) -> Result<Self, SizeError> {
        let mut circuit = Self::blank(parts, squarings, values.len())?;
        circuit.sum = values
            .iter()
            .map(|value| (0..parts * squarings).fold(*value, |value, _| value.square()))
            .sum();
        circuit.values = values;
        Ok(circuit)
    }

    fn value(&self, lane: usize) -> F {
        self.values.get(lane).copied().unwrap_or_default()
    }
}

impl<F: PrimeField> DistributedCircuit<F> for Squarings<F> {
    fn part_witness(&self, part: usize) -> Vec<u8> {
        match part {
            0 => write(self.values.iter()),
            _ => Vec::new(),
        }
    }

    fn with_part_witness(&self, part: usize, bytes: &[u8]) -> Result<Self, String> {
        let values = read("witness of the part", bytes).map_err(|error| error.to_string())?;
        let expected = if part == 0 { self.lanes } else { 0 };
        if values.len() != expected {
            let found = values.len();
            return Err(format!("{found} values, where the part takes {expected}"));
        }
        Ok(Self {
            values,
            ..self.clone()
        })
    }
}

impl<F: PrimeField> PartitionedCircuit<F> for Squarings<F> {
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
        1
    }

    fn public_inputs(&self) -> Vec<F> {
        vec![self.sum]
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        let cs = wires.cs();
        let of = |wire: Wire<F>| move || LinearCombination(vec![(F::one(), wire.variable)]);
        let mut sum = Vec::with_capacity(self.lanes + 1);
        for lane in 0..self.lanes {
            let mut value = match part {
                0 => wires.witness(self.value(lane))?,
                _ => wires.get(("lane", part - 1, lane))?,
            };
            for _ in 0..self.squarings {
                let square = wires.witness(value.value.square())?;
                cs.enforce_r1cs_constraint(of(value), of(value), of(square))?;
                value = square;
            }
            match part + 1 == self.parts {
                true => sum.push((F::one(), value.variable)),
                false => wires.set(("lane", part, lane), value)?,
            }
        }
        if part + 1 == self.parts {
            let expected = wires.public_input(0)?;
            sum.push((-F::one(), expected.variable));
            let zero = LinearCombination::zero;
            cs.enforce_r1cs_constraint(zero, zero, || LinearCombination(sum))?;
        }
        Ok(())
    }
}
