//! The constraints that a part has besides its author's: its share of the memory check.
//!
//! Figure 4 of the paper, with addresses, positions and the order of both traces as preprocessed
//! public inputs. What each constraint is for is in the [crate's documentation](crate).

use std::fmt;
use std::ops::Range;

use ark_ff::PrimeField;
use ark_relations::gr1cs::{SynthesisError, Variable};
use proofmill_kernels::Poseidon2Field;

use crate::gadgets::{Element, Synthesizer, climb, compress};
use crate::tree::{Leaf, Path, child};

/// The purpose of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The author's circuit, and the equality of portals with the values that they are set to.
    Circuit,
    /// The running product of the trace by part.
    ProductByPart,
    /// The running product of the trace by address.
    ProductByAddress,
    /// The equality of values at equal addresses.
    EqualValues,
    /// The membership of the state before the part: it is the leaf at the position before the part's own.
    LeafBefore,
    /// The membership of the state after the part: it is the leaf at the part's own position.
    LeafAfter,
    /// The equality of both products after the last part.
    EqualProducts,
}

/// The rows of a class of parts, by purpose in [`Check::ORDER`]: consecutive, without gaps.
pub(crate) type Sections = Vec<(Check, Range<usize>)>;

/// Sizes that the memory check of a part depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Accesses of the part.
    pub(crate) accesses: usize,
    /// Levels of the tree.
    pub(crate) depth: usize,
}

/// The data of other parts that a part needs, besides its own share of both traces: the states before and
/// after it, in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening<F> {
    /// The root of the tree.
    pub root: F,
    /// The state before the part.
    pub before: Leaf<F>,
    /// The path from that leaf to the root.
    pub before_path: Path<F>,
    /// The salt of the state after the part.
    pub after_salt: F,
    /// The path from the leaf after the part to the root.
    pub after_path: Path<F>,
}

/// A part's share of both traces: the values of its accesses in their order, and as many values of
/// all accesses by address.
///
/// The committed variables of a part, the first of its witness, are these: first all of `by_part`,
/// then all of `by_address`. They are secret: `Debug` prints sizes only.
#[derive(Clone, PartialEq, Eq)]
pub struct PartTrace<F> {
    /// The values of the part's accesses.
    pub by_part: Vec<F>,
    /// The part's share of the values by address.
    pub by_address: Vec<F>,
}

/// The variables of a part that the memory check begins with.
pub(crate) struct MemoryCheck<F> {
    root: Element<F>,
    alpha: Element<F>,
    beta: Element<F>,
    position_before: Vec<[Element<F>; 2]>,
    position_after: Vec<[Element<F>; 2]>,
    is_last: Element<F>,
    address_before: Element<F>,
    addresses_by_part: Vec<Element<F>>,
    addresses_by_address: Vec<Element<F>>,
    by_part: Vec<Element<F>>,
    by_address: Vec<Element<F>>,
    /// The variables of `by_part`.
    pub(crate) variables: Vec<Variable>,
}

// === impl Check ===

impl Check {
    /// The purposes in the order of their rows, each of which is one section.
    pub(crate) const ORDER: [Self; 7] = [
        Self::Circuit,
        Self::LeafBefore,
        Self::ProductByPart,
        Self::ProductByAddress,
        Self::EqualValues,
        Self::EqualProducts,
        Self::LeafAfter,
    ];
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Circuit => "the circuit",
            Self::ProductByPart => "the running product by part",
            Self::ProductByAddress => "the running product by address",
            Self::EqualValues => "equal values at equal addresses",
            Self::LeafBefore => "the state before the part",
            Self::LeafAfter => "the state after the part",
            Self::EqualProducts => "equal products after the last part",
        })
    }
}

// === impl Opening ===

impl<F: Poseidon2Field> Opening<F> {
    /// An opening without values.
    pub(crate) fn zero(depth: usize) -> Self {
        let zero = F::zero();
        Self {
            root: zero,
            before: Leaf {
                salt: zero,
                value: zero,
                by_part: zero,
                by_address: zero,
            },
            before_path: Path::zero(depth),
            after_salt: zero,
            after_path: Path::zero(depth),
        }
    }
}

// === impl PartTrace ===

impl<F: Copy> PartTrace<F> {
    /// The values of the committed variables, in order.
    pub fn committed(&self) -> Vec<F> {
        [&self.by_part[..], &self.by_address[..]].concat()
    }
}

impl<F> fmt::Debug for PartTrace<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartTrace")
            .field("by_part", &self.by_part.len())
            .field("by_address", &self.by_address.len())
            .finish()
    }
}

// === impl Shape ===

impl Shape {
    /// Preprocessed public inputs before the author's constants.
    pub(crate) const fn preprocessed(&self) -> usize {
        4 * self.depth + 2 + 2 * self.accesses
    }

    /// Instance variables without the leading one, before the author's constants.
    pub(crate) const fn instance(&self) -> usize {
        Self::SHARED + self.preprocessed()
    }

    /// Instance variables that all parts have the same values of: the root, α, β.
    pub(crate) const SHARED: usize = 3;
}

/// The preprocessed inputs of a part, in order.
pub(crate) fn preprocessed<F: PrimeField>(
    part: usize,
    parts: usize,
    depth: usize,
    address_before: u32,
    by_part: &[u32],
    by_address: &[u32],
) -> Vec<F> {
    let mut inputs = Vec::new();
    for position in [part, part + 1] {
        for level in 0..depth {
            inputs.extend(child(position, level).map(F::from));
        }
    }
    inputs.push(F::from(part + 1 == parts));
    inputs.push(F::from(address_before));
    inputs.extend(
        by_part
            .iter()
            .chain(by_address)
            .map(|address| F::from(*address)),
    );
    inputs
}

// === impl MemoryCheck ===

impl<F: Poseidon2Field> MemoryCheck<F> {
    /// Allocates the instance and, as the first witness variables, the part's share of both traces.
    ///
    /// `fixed` has the instance without the leading one and the author's constants; where there are
    /// no values, zeros.
    pub(crate) fn allocate(
        s: &Synthesizer<F>,
        cs: &ark_relations::gr1cs::ConstraintSystemRef<F>,
        shape: Shape,
        fixed: &[F],
        trace: &PartTrace<F>,
    ) -> Result<Self, SynthesisError> {
        assert_eq!(fixed.len(), shape.instance(), "values for the instance");
        let mut values = fixed.iter().copied();
        let mut next = || s.instance(values.next().unwrap_or_default());
        let [root, alpha, beta] = [next()?, next()?, next()?];
        let mut positions = Vec::with_capacity(2 * shape.depth);
        for _ in 0..2 * shape.depth {
            positions.push([next()?, next()?]);
        }
        let position_after = positions.split_off(shape.depth);
        let (is_last, address_before) = (next()?, next()?);
        let mut addresses = Vec::with_capacity(2 * shape.accesses);
        for _ in 0..2 * shape.accesses {
            addresses.push(next()?);
        }
        let addresses_by_address = addresses.split_off(shape.accesses);
        let mut variables = Vec::with_capacity(shape.accesses);
        let mut by_part = Vec::with_capacity(shape.accesses);
        for value in &trace.by_part {
            let variable = cs.new_witness_variable(|| Ok(*value))?;
            variables.push(variable);
            by_part.push(s.element(variable, *value));
        }
        let mut by_address = Vec::with_capacity(shape.accesses);
        for value in &trace.by_address {
            by_address.push(s.witness(*value)?);
        }
        Ok(Self {
            root,
            alpha,
            beta,
            position_before: positions,
            position_after,
            is_last,
            address_before,
            addresses_by_part: addresses,
            addresses_by_address,
            by_part,
            by_address,
            variables,
        })
    }

    /// The constraints; gives the rows of each.
    pub(crate) fn enforce(
        &self,
        s: &Synthesizer<F>,
        opening: &Opening<F>,
    ) -> Result<Sections, SynthesisError> {
        let mut sections = vec![(Check::Circuit, 0..s.constraints())];
        let end = |check, sections: &mut Sections| {
            let start = sections.last().map_or(0, |(_, rows)| rows.end);
            sections.push((check, start..s.constraints()));
        };
        let [salt, value, product_by_part, product_by_address] = [
            s.witness(opening.before.salt)?,
            s.witness(opening.before.value)?,
            s.witness(opening.before.by_part)?,
            s.witness(opening.before.by_address)?,
        ];
        let before = compress(
            s,
            &[
                salt,
                value.clone(),
                product_by_part.clone(),
                product_by_address.clone(),
            ],
        )?;
        let root = climb(
            s,
            before,
            &self.position_before,
            opening.before_path.children(),
        )?;
        s.enforce_equal(&root, &self.root)?;
        end(Check::LeafBefore, &mut sections);

        let entries = self.addresses_by_part.iter().zip(&self.by_part);
        let product_by_part = self.product(s, product_by_part, entries)?;
        end(Check::ProductByPart, &mut sections);
        let entries = self.addresses_by_address.iter().zip(&self.by_address);
        let product_by_address = self.product(s, product_by_address, entries)?;
        end(Check::ProductByAddress, &mut sections);
        self.enforce_equal_values(s, &value)?;
        end(Check::EqualValues, &mut sections);

        s.enforce(
            &(&product_by_part - &product_by_address),
            &self.is_last,
            &Element::constant(F::zero()),
        )?;
        end(Check::EqualProducts, &mut sections);
        let salt = s.witness(opening.after_salt)?;
        let value = self.by_address.last().unwrap_or(&value).clone();
        let after = compress(s, &[salt, value, product_by_part, product_by_address])?;
        let root = climb(
            s,
            after,
            &self.position_after,
            opening.after_path.children(),
        )?;
        s.enforce_equal(&root, &self.root)?;
        end(Check::LeafAfter, &mut sections);
        Ok(sections)
    }

    /// A running product after these entries, at two constraints each.
    fn product<'e>(
        &self,
        s: &Synthesizer<F>,
        before: Element<F>,
        mut entries: impl Iterator<Item = (&'e Element<F>, &'e Element<F>)>,
    ) -> Result<Element<F>, SynthesisError> {
        entries.try_fold(before, |product, (address, value)| {
            let weighted = s.product(value, &self.beta)?;
            let factor = &(&self.alpha - address) - &weighted;
            s.product(&factor, &product)
        })
    }

    /// Equal values for equal addresses: the value of an entry is that of the entry before if the address is. One
    /// constraint each.
    ///
    /// Consecutive addresses are equal or differ by one, which was checked when the partition was made.
    fn enforce_equal_values(
        &self,
        s: &Synthesizer<F>,
        value_before: &Element<F>,
    ) -> Result<(), SynthesisError> {
        let zero = Element::constant(F::zero());
        let (mut address_before, mut value_before) = (&self.address_before, value_before);
        for (address, value) in self.addresses_by_address.iter().zip(&self.by_address) {
            let same = (address_before - address).plus(F::one());
            s.enforce(&(value - value_before), &same, &zero)?;
            (address_before, value_before) = (address, value);
        }
        Ok(())
    }
}
