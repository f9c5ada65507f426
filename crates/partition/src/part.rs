//! A part under synthesis: what its author's code sees.

use std::collections::HashMap;
use std::fmt;

use ark_ff::PrimeField;
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, Variable};

use crate::accesses::{Access, Accesses, Run};
use crate::multiset::Transfer;
use crate::{Name, PartitionError};

/// A variable and its value; the value is meaningless where there is no witness.
#[derive(Clone, Copy, Debug)]
pub struct Wire<F> {
    /// The variable.
    pub variable: Variable,
    /// The wire's value.
    pub value: F,
}

/// A part of a circuit under synthesis: its constraint system, the wires it shares, and the circuit's multiset.
///
/// The constraint system is arkworks', so that every gadget for it can be used. Public inputs and
/// fixed values come from here, not from the constraint system.
///
/// # The multiset
///
/// All parts of a circuit share one multiset of field elements, empty before the first part and after the last:
/// every value is [put](Self::put) as often as it is [taken](Self::take). The order is irrelevant, so a part may take
/// a value that a later part puts. Values may depend on the witness, where names of shared wires may not: this is how
/// to look a value up in a table, or to read a memory at an address that is computed.
///
/// * Several things in one value, such as an address, a time and a word, are packed by the author into a sum whose
///   terms are known to be small enough to tell them apart.
/// * There is one multiset. Circuits that need several pack a number of the multiset with each value.
/// * Multiplicities are elements of the field: [`put_times`](Self::put_times) with −1 is a take. Puts and takes are
///   fewer than 2³², far below the field's characteristic, so that they cannot add up to zero by wrapping around.
pub struct Part<'a, F: PrimeField> {
    cs: ConstraintSystemRef<F>,
    number: usize,
    wires: Wires<'a, F>,
}

/// The holder of shared wires: the trace of one part, or a circuit that has all parts.
pub(crate) enum Wires<'a, F: PrimeField> {
    Traced(Box<Accesses<'a, F>>),
    Direct(&'a mut Whole<F>),
}

/// Shared wires and transfers of a circuit in one piece.
#[derive(Debug)]
pub(crate) struct Whole<F> {
    pub(crate) directory: Directory<Wire<F>>,
    /// The transfers of each part so far, and their values.
    pub(crate) transfers: Vec<(Vec<Transfer>, Vec<F>)>,
}

/// Values by name, with the rules that every way to run a circuit has: set before read, portals once.
#[derive(Debug)]
pub(crate) struct Directory<V> {
    public: Vec<V>,
    /// Portals have version 0, cells 1 and more. With each value, the part that set it.
    entries: HashMap<(Name, u32), (V, usize)>,
    /// The latest version of each cell.
    versions: HashMap<Name, u32>,
}

// === impl Part ===

impl<'a, F: PrimeField> Part<'a, F> {
    pub(crate) fn new(cs: ConstraintSystemRef<F>, number: usize, wires: Wires<'a, F>) -> Self {
        Self { cs, number, wires }
    }

    /// The record of the part's run, after its end.
    pub(crate) fn finish(self) -> Run<F> {
        match self.wires {
            Wires::Traced(accesses) => accesses.finish(),
            Wires::Direct(_) => Run::default(),
        }
    }

    /// The constraint system.
    pub fn cs(&self) -> ConstraintSystemRef<F> {
        self.cs.clone()
    }

    /// The part's number, from 0. A constraint must not depend on it within a class: use
    /// [`constant`](Self::constant) for values that do.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// A private variable, otherwise unconstrained.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn witness(&mut self, value: F) -> Result<Wire<F>, PartitionError> {
        let variable = self.cs.new_witness_variable(|| Ok(value))?;
        Ok(Wire { variable, value })
    }

    /// A value that the partition fixes for this part: a preprocessed public input, which other
    /// parts of the class may have another value for. In the monolithic circuit it is a constant.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn constant(&mut self, value: F) -> Result<Wire<F>, PartitionError> {
        match &mut self.wires {
            Wires::Traced(accesses) => {
                accesses.record_constant(value);
                let variable = self.cs.new_input_variable(|| Ok(value))?;
                Ok(Wire { variable, value })
            }
            Wires::Direct(_) => {
                let variable = self.cs.new_witness_variable(|| Ok(value))?;
                let fixed = LinearCombination(vec![(value, Variable::One)]);
                enforce_equal(&self.cs, variable, || fixed)?;
                Ok(Wire { variable, value })
            }
        }
    }

    /// The public input of this index, from 0.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPublicInput`], and those of the constraint system.
    pub fn public_input(&mut self, index: usize) -> Result<Wire<F>, PartitionError> {
        self.read(Access::PublicInput(index))
    }

    /// Gives a portal its value, for this part and later ones.
    ///
    /// # Errors
    ///
    /// [`PartitionError::SetTwice`], and those of the constraint system.
    pub fn set(&mut self, name: impl Into<Name>, wire: Wire<F>) -> Result<(), PartitionError> {
        self.write(Access::Set(name.into()), wire)
    }

    /// Like [`set`](Self::set), to a sum of variables.
    ///
    /// # Errors
    ///
    /// Like [`set`](Self::set).
    pub fn set_sum<S: Into<LinearCombination<F>>>(
        &mut self,
        name: impl Into<Name>,
        value: F,
        sum: impl FnOnce() -> S,
    ) -> Result<(), PartitionError> {
        self.write_sum(Access::Set(name.into()), value, sum)
    }

    /// The value of a portal that this part or one before has set.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NotSet`], and those of the constraint system.
    pub fn get(&mut self, name: impl Into<Name>) -> Result<Wire<F>, PartitionError> {
        self.read(Access::Get(name.into()))
    }

    /// Gives a cell of the read-write memory a new value, for this part's later loads and later
    /// parts'. Which cell it is must not depend on values.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn store(&mut self, cell: impl Into<Name>, wire: Wire<F>) -> Result<(), PartitionError> {
        self.write(Access::Store(cell.into()), wire)
    }

    /// The value that was last stored in a cell, by this part or one before.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NotSet`], and those of the constraint system.
    pub fn load(&mut self, cell: impl Into<Name>) -> Result<Wire<F>, PartitionError> {
        self.read(Access::Load(cell.into()))
    }

    /// Puts a value into the [multiset](Self#the-multiset), from which some part must take it.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn put(&mut self, wire: Wire<F>) -> Result<(), PartitionError> {
        self.put_sum(wire.value, || alone(wire))
    }

    /// Like [`put`](Self::put), of a sum of variables.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn put_sum<S: Into<LinearCombination<F>>>(
        &mut self,
        value: F,
        sum: impl FnOnce() -> S,
    ) -> Result<(), PartitionError> {
        self.transfer_once(Transfer::Put, value, sum)
    }

    /// Puts a value into the [multiset](Self#the-multiset) as many times as another wire says: a row of a table, as often
    /// as it is looked up. The number needs no other constraint, since it must be that of the takes.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn put_times(&mut self, wire: Wire<F>, times: Wire<F>) -> Result<(), PartitionError> {
        self.put_sum_times(wire.value, || alone(wire), times)
    }

    /// Like [`put_times`](Self::put_times), of a sum of variables.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn put_sum_times<S: Into<LinearCombination<F>>>(
        &mut self,
        value: F,
        sum: impl FnOnce() -> S,
        times: Wire<F>,
    ) -> Result<(), PartitionError> {
        match *self.transfer(Transfer::PutTimes, &[value, times.value]) {
            [variable, of_times] => {
                enforce_equal(&self.cs, variable, || sum().into())?;
                enforce_equal(&self.cs, of_times, || alone(times))
            }
            _ => Ok(()),
        }
    }

    /// Takes a value from the [multiset](Self#the-multiset), into which some part must put it, this one, one before or
    /// one after.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn take(&mut self, wire: Wire<F>) -> Result<(), PartitionError> {
        self.take_sum(wire.value, || alone(wire))
    }

    /// Like [`take`](Self::take), of a sum of variables.
    ///
    /// # Errors
    ///
    /// Those of the constraint system.
    pub fn take_sum<S: Into<LinearCombination<F>>>(
        &mut self,
        value: F,
        sum: impl FnOnce() -> S,
    ) -> Result<(), PartitionError> {
        self.transfer_once(Transfer::Take, value, sum)
    }

    fn read(&mut self, access: Access) -> Result<Wire<F>, PartitionError> {
        match &mut self.wires {
            Wires::Traced(accesses) => accesses.read(&self.cs, access),
            Wires::Direct(whole) => whole.directory.read(access, self.number),
        }
    }

    fn write(&mut self, access: Access, wire: Wire<F>) -> Result<(), PartitionError> {
        match &mut self.wires {
            Wires::Traced(_) => self.write_sum(access, wire.value, || alone(wire)),
            Wires::Direct(whole) => whole.directory.write(access, self.number, wire),
        }
    }

    fn write_sum<S: Into<LinearCombination<F>>>(
        &mut self,
        access: Access,
        value: F,
        sum: impl FnOnce() -> S,
    ) -> Result<(), PartitionError> {
        match &mut self.wires {
            Wires::Traced(accesses) => {
                if let Some(variable) = accesses.write(access, value) {
                    enforce_equal(&self.cs, variable, || sum().into())?;
                }
                Ok(())
            }
            Wires::Direct(whole) => {
                let variable = self.cs.new_witness_variable(|| Ok(value))?;
                enforce_equal(&self.cs, variable, || sum().into())?;
                let wire = Wire { variable, value };
                whole.directory.write(access, self.number, wire)
            }
        }
    }

    /// Gives a transfer its values. Variables of the part that must be equal to them, if there are any.
    fn transfer(&mut self, transfer: Transfer, values: &[F]) -> &'a [Variable] {
        match &mut self.wires {
            Wires::Traced(accesses) => accesses.transfer(transfer, values),
            Wires::Direct(whole) => {
                if let Some((transfers, transferred)) = whole.transfers.last_mut() {
                    transfers.push(transfer);
                    transferred.extend_from_slice(values);
                }
                &[]
            }
        }
    }

    fn transfer_once<S: Into<LinearCombination<F>>>(
        &mut self,
        transfer: Transfer,
        value: F,
        sum: impl FnOnce() -> S,
    ) -> Result<(), PartitionError> {
        match *self.transfer(transfer, &[value]) {
            [variable] => enforce_equal(&self.cs, variable, || sum().into()),
            _ => Ok(()),
        }
    }
}

/// The number only: the values of wires are secret.
impl<F: PrimeField> fmt::Debug for Part<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

fn alone<F: PrimeField>(wire: Wire<F>) -> LinearCombination<F> {
    LinearCombination(vec![(F::one(), wire.variable)])
}

/// `variable = sum`, as `0 · 0 = sum − variable`.
fn enforce_equal<F: PrimeField>(
    cs: &ConstraintSystemRef<F>,
    variable: Variable,
    sum: impl FnOnce() -> LinearCombination<F>,
) -> Result<(), PartitionError> {
    cs.enforce_r1cs_constraint(LinearCombination::zero, LinearCombination::zero, || {
        let mut sum = sum();
        sum.0.push((-F::one(), variable));
        sum
    })?;
    Ok(())
}

// === impl Directory ===

impl<V: Copy> Directory<V> {
    /// A directory with the public inputs only.
    pub(crate) fn new(public: Vec<V>) -> Self {
        Self {
            public,
            entries: HashMap::new(),
            versions: HashMap::new(),
        }
    }

    /// The value that a part reads.
    pub(crate) fn read(&self, access: Access, part: usize) -> Result<V, PartitionError> {
        let key = match access {
            Access::PublicInput(index) => {
                let count = self.public.len();
                let missing = PartitionError::NoPublicInput { part, index, count };
                return self.public.get(index).copied().ok_or(missing);
            }
            Access::Set(name) | Access::Get(name) => (name, 0),
            Access::Store(name) | Access::Load(name) => (
                name,
                self.versions.get(&name).copied().unwrap_or_default().max(1),
            ),
        };
        let entry = self.entries.get(&key).map(|(value, _)| *value);
        entry.ok_or(PartitionError::NotSet { name: key.0, part })
    }

    /// Takes a value that a part writes.
    pub(crate) fn write(
        &mut self,
        access: Access,
        part: usize,
        value: V,
    ) -> Result<(), PartitionError> {
        let key = match access {
            Access::Set(name) | Access::Get(name) => (name, 0),
            Access::Store(name) | Access::Load(name) => {
                let version = self.versions.entry(name).or_default();
                *version += 1;
                (name, *version)
            }
            Access::PublicInput(index) => {
                let count = self.public.len();
                return Err(PartitionError::NoPublicInput { part, index, count });
            }
        };
        match self.entries.insert(key, (value, part)) {
            None => Ok(()),
            Some((_, first)) => Err(PartitionError::SetTwice {
                name: key.0,
                part,
                first,
            }),
        }
    }
}
