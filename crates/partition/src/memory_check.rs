//! The constraints that a part has besides its author's: its share of the memory check and of the multiset.
//!
//! Figure 4 of the paper, with addresses, positions and the order of both traces as preprocessed
//! public inputs, and with sums of fractions instead of products. What each constraint is for is in the
//! [crate's documentation](crate).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ark_ff::{PrimeField, batch_inversion};
use ark_relations::gr1cs::{SynthesisError, Variable};
use proofmill_kernels::Poseidon2Field;

use crate::gadgets::{Element, Synthesizer, climb, compress};
use crate::multiset::{Transfer, num_values};
use crate::tree::{ARITY, Leaf, Path, child};

/// The purpose of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The author's circuit, and the equality of committed values with what portals are set to and with what is put
    /// into the multiset and taken.
    Circuit,
    /// The running sum of the trace by part.
    SumByPart,
    /// The running sum of the trace by address, which is subtracted.
    SumByAddress,
    /// The equality of values at equal addresses.
    EqualValues,
    /// The running sum of the multiset.
    Multiset,
    /// The membership of the state before the part: it is the leaf at the position before the part's own.
    LeafBefore,
    /// The membership of the state after the part: it is the leaf at the part's own position.
    LeafAfter,
    /// The equality of both traces' sums after the last part.
    EqualTraces,
    /// The sum of the multiset after the last part, which is that of no values: everything put was taken.
    EmptyMultiset,
}

/// The rows of a class of parts, by purpose in [`Check::ORDER`]: consecutive, without gaps.
pub(crate) type Sections = Vec<(Check, Range<usize>)>;

/// Sizes that the memory check of a part depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Accesses of the part.
    pub(crate) accesses: usize,
    /// Transfers of the part, in order.
    pub(crate) transfers: Arc<[Transfer]>,
    /// Values of all transfers.
    pub(crate) transferred: usize,
    /// Levels of the tree.
    pub(crate) depth: usize,
}

/// The data of other parts that a part needs, besides its share of both traces and its transfers: the states before
/// and after it, in the tree. They are secret: `Debug` prints the root only.
#[derive(Clone, PartialEq, Eq)]
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
/// all accesses by address; and the values of its transfers.
///
/// The committed variables of a part, the first of its witness, are these: first all of `by_part`,
/// then all of `by_address`, then all of `transfers`. They are secret: `Debug` prints sizes only.
#[derive(Clone, PartialEq, Eq)]
pub struct PartTrace<F> {
    /// The values of the part's accesses.
    pub by_part: Vec<F>,
    /// The part's share of the values by address.
    pub by_address: Vec<F>,
    /// The values that the part puts into the multiset and takes, in order, each that is put with a multiplicity
    /// followed by it.
    pub transfers: Vec<F>,
}

/// The variables of a part that the memory check begins with.
pub(crate) struct MemoryCheck<F> {
    root: Element<F>,
    alpha: Element<F>,
    beta: Element<F>,
    position_before: Vec<[Element<F>; 2]>,
    position_after: Vec<[Element<F>; 2]>,
    is_last: Element<F>,
    /// Addresses, each times β.
    address_before: Element<F>,
    addresses_by_part: Vec<Element<F>>,
    addresses_by_address: Vec<Element<F>>,
    by_part: Vec<Element<F>>,
    by_address: Vec<Element<F>>,
    transfers: Arc<[Transfer]>,
    transferred: Vec<Element<F>>,
    /// The variables of `by_part`.
    pub(crate) access_variables: Vec<Variable>,
    /// The variables of `transferred`.
    pub(crate) transfer_variables: Vec<Variable>,
}

/// Fractions whose denominators are inverted together.
const INVERTED_AT_ONCE: usize = 1 << 12;

/// A term of a running sum.
struct Fraction<F> {
    numerator: Element<F>,
    denominator: Element<F>,
}

// === impl Check ===

impl Check {
    /// The purposes in the order of their rows, each of which is one section.
    pub(crate) const ORDER: [Self; 9] = [
        Self::Circuit,
        Self::LeafBefore,
        Self::SumByPart,
        Self::SumByAddress,
        Self::EqualValues,
        Self::Multiset,
        Self::EqualTraces,
        Self::EmptyMultiset,
        Self::LeafAfter,
    ];
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Circuit => "the circuit",
            Self::SumByPart => "the running sum by part",
            Self::SumByAddress => "the running sum by address",
            Self::EqualValues => "equal values at equal addresses",
            Self::Multiset => "the running sum of the multiset",
            Self::LeafBefore => "the state before the part",
            Self::LeafAfter => "the state after the part",
            Self::EqualTraces => "equal traces after the last part",
            Self::EmptyMultiset => "an empty multiset after the last part",
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
                traces: zero,
                multiset: zero,
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
        [&self.by_part[..], &self.by_address, &self.transfers].concat()
    }
}

impl<F: fmt::Debug> fmt::Debug for Opening<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for PartTrace<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartTrace")
            .field("by_part", &self.by_part.len())
            .field("by_address", &self.by_address.len())
            .field("transfers", &self.transfers.len())
            .finish()
    }
}

// === impl Shape ===

impl Shape {
    pub(crate) fn new(accesses: usize, transfers: Arc<[Transfer]>, depth: usize) -> Self {
        Self {
            accesses,
            transferred: num_values(&transfers),
            transfers,
            depth,
        }
    }

    /// Preprocessed public inputs before the author's constants.
    pub(crate) const fn preprocessed(&self) -> usize {
        self.addresses().end
    }

    /// The preprocessed public inputs that are addresses, which the instance has times β.
    pub(crate) const fn addresses(&self) -> Range<usize> {
        let start = 4 * self.depth + 1;
        start..start + 1 + 2 * self.accesses
    }

    /// Committed variables: the first of the witness.
    pub(crate) const fn committed(&self) -> usize {
        2 * self.accesses + self.transferred
    }

    /// Instance variables without the leading one, before the author's constants.
    pub(crate) const fn instance(&self) -> usize {
        Self::SHARED + self.preprocessed()
    }

    /// Instance variables that all parts have the same values of: the root, α, β.
    pub(crate) const SHARED: usize = 3;
}

/// The preprocessed inputs of a part, in order, before addresses are multiplied by β.
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
    /// Allocates the instance and, as the first witness variables, the part's share of both traces and its transfers.
    ///
    /// `fixed` has the instance without the leading one and the author's constants; where there are
    /// no values, zeros.
    pub(crate) fn allocate(
        s: &Synthesizer<F>,
        cs: &ark_relations::gr1cs::ConstraintSystemRef<F>,
        shape: &Shape,
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
        let committed = |values: &[F]| -> Result<(Vec<Variable>, Vec<Element<F>>), SynthesisError> {
            let mut variables = Vec::with_capacity(values.len());
            let mut elements = Vec::with_capacity(values.len());
            for value in values {
                let variable = cs.new_witness_variable(|| Ok(*value))?;
                variables.push(variable);
                elements.push(s.element(variable, *value));
            }
            Ok((variables, elements))
        };
        let (access_variables, by_part) = committed(&trace.by_part)?;
        let (_, by_address) = committed(&trace.by_address)?;
        let (transfer_variables, transferred) = committed(&trace.transfers)?;
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
            transfers: Arc::clone(&shape.transfers),
            transferred,
            access_variables,
            transfer_variables,
        })
    }

    /// The constraints; gives the rows of each.
    pub(crate) fn enforce(
        &self,
        s: &Synthesizer<F>,
        opening: &Opening<F>,
    ) -> Result<Sections, SynthesisError> {
        let mut sections = vec![(Check::Circuit, 0..s.constraints())];
        let mut end = |check| {
            let start = sections.last().map_or(0, |(_, rows)| rows.end);
            sections.push((check, start..s.constraints()));
        };
        let before = &opening.before;
        let salt = s.witness(before.salt)?;
        let value = s.witness(before.value)?;
        let traces = s.witness(before.traces)?;
        let multiset = s.witness(before.multiset)?;
        let leaf = [salt, value.clone(), traces.clone(), multiset.clone()];
        self.enforce_leaf(s, &leaf, &self.position_before, &opening.before_path)?;
        end(Check::LeafBefore);

        let (one, zero) = (F::one(), Element::constant(F::zero()));
        let entries = self.fractions(&self.addresses_by_part, &self.by_part, one);
        let traces = sum(s, traces, entries)?;
        end(Check::SumByPart);
        let entries = self.fractions(&self.addresses_by_address, &self.by_address, -one);
        let traces = sum(s, traces, entries)?;
        end(Check::SumByAddress);
        self.enforce_equal_values(s, &value)?;
        end(Check::EqualValues);
        let multiset = sum(s, multiset, self.transfer_fractions())?;
        end(Check::Multiset);

        s.enforce(&traces, &self.is_last, &zero)?;
        end(Check::EqualTraces);
        s.enforce(&multiset, &self.is_last, &zero)?;
        end(Check::EmptyMultiset);
        let salt = s.witness(opening.after_salt)?;
        let value = self.by_address.last().unwrap_or(&value).clone();
        let leaf = [salt, value, traces, multiset];
        self.enforce_leaf(s, &leaf, &self.position_after, &opening.after_path)?;
        end(Check::LeafAfter);
        Ok(sections)
    }

    /// A leaf at its position under the root.
    fn enforce_leaf(
        &self,
        s: &Synthesizer<F>,
        leaf: &[Element<F>; ARITY],
        position: &[[Element<F>; 2]],
        path: &Path<F>,
    ) -> Result<(), SynthesisError> {
        let node = compress(s, leaf)?;
        let root = climb(s, node, position, path.children())?;
        s.enforce_equal(&root, &self.root)
    }

    /// The fractions of entries of a trace: weight/(α − (value + β·address)).
    fn fractions<'e>(
        &'e self,
        addresses: &'e [Element<F>],
        values: &'e [Element<F>],
        weight: F,
    ) -> impl Iterator<Item = Fraction<F>> + 'e {
        let entries = addresses.iter().zip(values);
        entries.map(move |(address, value)| Fraction {
            numerator: Element::constant(weight),
            denominator: &(&self.alpha - address) - value,
        })
    }

    /// The fractions of transfers: times/(α − value), where a take has −1 times.
    fn transfer_fractions(&self) -> impl Iterator<Item = Fraction<F>> + '_ {
        let mut values = self.transferred.iter();
        let mut next = move || values.next().expect("as many values as transfers have");
        self.transfers.iter().map(move |transfer| {
            let denominator = &self.alpha - next();
            let numerator = match transfer {
                Transfer::Put => Element::constant(F::one()),
                Transfer::PutTimes => next().clone(),
                Transfer::Take => Element::constant(-F::one()),
            };
            Fraction {
                numerator,
                denominator,
            }
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
            // β for equal addresses, 0 for one and the next.
            let same = &(address_before - address) + &self.beta;
            s.enforce(&(value - value_before), &same, &zero)?;
            (address_before, value_before) = (address, value);
        }
        Ok(())
    }
}

/// A running sum after these fractions, at one constraint each: what is added, times the denominator, is the
/// numerator. Where a denominator is 0, so is what is added.
fn sum<F: Poseidon2Field>(
    s: &Synthesizer<F>,
    mut sum: Element<F>,
    mut fractions: impl Iterator<Item = Fraction<F>>,
) -> Result<Element<F>, SynthesisError> {
    loop {
        let some: Vec<Fraction<F>> = fractions.by_ref().take(INVERTED_AT_ONCE).collect();
        if some.is_empty() {
            return Ok(sum);
        }
        let denominators = some.iter().map(|fraction| fraction.denominator.value());
        let mut inverses: Vec<F> = denominators.collect();
        batch_inversion(&mut inverses);
        for (fraction, inverse) in some.iter().zip(inverses) {
            let after = s.witness(sum.value() + fraction.numerator.value() * inverse)?;
            let added = &after - &sum;
            s.enforce(&fraction.denominator, &added, &fraction.numerator)?;
            sum = after;
        }
    }
}
