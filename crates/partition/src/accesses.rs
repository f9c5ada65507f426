//! The accesses of a part to shared wires, and its transfers: where their variables and values come from.

use ark_ff::{BigInteger, PrimeField};
use ark_relations::gr1cs::{ConstraintSystemRef, Variable};
use sha2::{Digest, Sha256};

use crate::multiset::{Transfer, num_values};
use crate::part::Directory;
use crate::{Name, PartitionError, Wire};

/// The most accesses of all parts and public inputs together: what 32 bits count.
pub const MAX_ACCESSES: usize = u32::MAX as usize - 1;

/// Domain of the digest of a part's accesses and transfers.
const DIGEST_DOMAIN: &[u8] = b"proofmill/partition/accesses/2";

/// An access to a shared wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Set(Name),
    Get(Name),
    Store(Name),
    Load(Name),
    PublicInput(usize),
}

/// The addresses of all accesses, part after part.
#[derive(Debug)]
pub(crate) struct Recorder {
    directory: Directory<u32>,
    next_address: u32,
    /// The address of each access; the public inputs come first.
    pub(crate) addresses: Vec<u32>,
}

/// The value of each address, where the address of each access of a part is known.
#[derive(Debug)]
pub(crate) struct Memory<'a, F> {
    /// The address of each access of the part, in order.
    pub(crate) addresses: &'a [u32],
    /// The value of each address, from 1; those of addresses that are yet to be written do not matter.
    pub(crate) values: &'a mut [F],
}

/// The committed variables of a part that its code meets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommittedVariables<'a> {
    /// The variable of each access.
    pub(crate) accesses: &'a [Variable],
    /// The variables of the transfers' values, in order.
    pub(crate) transfers: &'a [Variable],
}

/// The accesses and transfers of one part in one run of its code.
#[derive(Debug)]
pub(crate) struct Accesses<'a, F> {
    /// The variables, if the part has its trace; `None` while accesses are only recorded.
    variables: Option<CommittedVariables<'a>>,
    /// The value of each access, where it is known from a trace.
    values: Option<&'a [F]>,
    /// The accesses, in order, if they are recorded.
    log: Option<&'a mut Vec<Access>>,
    memory: Option<Memory<'a, F>>,
    made: usize,
    transfers: Vec<Transfer>,
    /// The values of `transfers`.
    transferred: Vec<F>,
    constants: Vec<F>,
    hasher: Sha256,
}

/// The accesses, transfers and constants that a part made in a run of its code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run<F> {
    /// The number of accesses.
    pub(crate) accesses: usize,
    /// The transfers, in order.
    pub(crate) transfers: Vec<Transfer>,
    /// The values of the transfers, each that is put with a multiplicity followed by it.
    pub(crate) transferred: Vec<F>,
    /// SHA-256 of the accesses, kinds of transfers and constants, in order.
    pub(crate) digest: [u8; 32],
    /// The values of [`Part::constant`](crate::Part::constant), in order.
    pub(crate) constants: Vec<F>,
}

// === impl Recorder ===

impl Recorder {
    /// Begins with the public inputs, which have the first addresses, from 1.
    pub(crate) fn new(public_inputs: usize) -> Result<Self, PartitionError> {
        check_count(public_inputs)?;
        let addresses: Vec<u32> = (1..=public_inputs as u32).collect();
        Ok(Self {
            directory: Directory::new(addresses.clone()),
            next_address: addresses.len() as u32 + 1,
            addresses,
        })
    }

    /// Records the accesses of the next part.
    pub(crate) fn record(&mut self, part: usize, log: &[Access]) -> Result<(), PartitionError> {
        for access in log.iter().copied() {
            match access {
                Access::Set(_) | Access::Store(_) => self.write(access, part)?,
                Access::Get(_) | Access::Load(_) | Access::PublicInput(_) => {
                    let address = self.directory.read(access, part)?;
                    self.push(address)?;
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, address: u32) -> Result<(), PartitionError> {
        check_count(self.addresses.len() + 1)?;
        self.addresses.push(address);
        Ok(())
    }

    fn write(&mut self, access: Access, part: usize) -> Result<(), PartitionError> {
        let address = self.next_address;
        self.push(address)?;
        self.directory.write(access, part, address)?;
        // Below the number of accesses, which 32 bits count.
        self.next_address += 1;
        Ok(())
    }
}

fn check_count(found: usize) -> Result<(), PartitionError> {
    if found <= MAX_ACCESSES {
        return Ok(());
    }
    Err(PartitionError::Size {
        what: "public inputs and accesses to shared wires",
        found,
        least: 0,
        most: MAX_ACCESSES,
    })
}

// === impl Memory ===

impl<F> Memory<'_, F> {
    /// The value at the address of an access; `None` for an access beyond the expected number.
    fn at(&mut self, access: usize) -> Option<&mut F> {
        let address = *self.addresses.get(access)? as usize;
        self.values.get_mut(address.checked_sub(1)?)
    }
}

// === impl Accesses ===

impl<'a, F: PrimeField> Accesses<'a, F> {
    /// Accesses that are only counted.
    pub(crate) fn counted() -> Self {
        Self::new(None, None, None)
    }

    /// Accesses by the addresses that a run before has recorded. Of a circuit that makes others, values mean nothing,
    /// and the digest differs.
    pub(crate) fn in_memory(memory: Memory<'a, F>) -> Self {
        Self {
            memory: Some(memory),
            ..Self::new(None, None, None)
        }
    }

    /// Accesses of a part whose trace has these variables; they are appended to `log`. The values of what the part reads
    /// are zeros.
    pub(crate) fn constrained(variables: CommittedVariables<'a>, log: &'a mut Vec<Access>) -> Self {
        Self::new(Some(variables), None, Some(log))
    }

    /// Accesses whose variables and values are those of the part's trace.
    pub(crate) fn replayed(variables: CommittedVariables<'a>, values: &'a [F]) -> Self {
        Self::new(Some(variables), Some(values), None)
    }

    fn new(
        variables: Option<CommittedVariables<'a>>,
        values: Option<&'a [F]>,
        log: Option<&'a mut Vec<Access>>,
    ) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(DIGEST_DOMAIN);
        Self {
            variables,
            values,
            log,
            memory: None,
            made: 0,
            transfers: Vec::new(),
            transferred: Vec::new(),
            constants: Vec::new(),
            hasher,
        }
    }

    /// The record of all accesses.
    pub(crate) fn finish(self) -> Run<F> {
        Run {
            accesses: self.made,
            transfers: self.transfers,
            transferred: self.transferred,
            digest: self.hasher.finalize().into(),
            constants: self.constants,
        }
    }

    pub(crate) fn record_constant(&mut self, value: F) {
        self.hasher.update([5]);
        self.hasher.update(value.into_bigint().to_bytes_le());
        self.constants.push(value);
    }

    /// The wire that a part reads.
    pub(crate) fn read(
        &mut self,
        cs: &ConstraintSystemRef<F>,
        access: Access,
    ) -> Result<Wire<F>, PartitionError> {
        let found = self.memory.as_mut().and_then(|memory| memory.at(self.made));
        let recorded = found.map_or(F::zero(), |value| *value);
        let traced = self.values.and_then(|values| values.get(self.made));
        let value = traced.copied().unwrap_or(recorded);
        let variable = match self.next(access) {
            Some(variable) => variable,
            None => cs.new_witness_variable(|| Ok(value))?,
        };
        Ok(Wire { variable, value })
    }

    /// Records a write and returns the variable of the trace that must be equal to it.
    pub(crate) fn write(&mut self, access: Access, value: F) -> Option<Variable> {
        if let Some(place) = self.memory.as_mut().and_then(|memory| memory.at(self.made)) {
            *place = value;
        }
        self.next(access)
    }

    /// Counts and hashes an access and returns its variable in the trace. An access beyond the expected number has
    /// none: the number is compared when the part is complete.
    fn next(&mut self, access: Access) -> Option<Variable> {
        let (kind, name) = match access {
            Access::Set(name) => (0, Some(name)),
            Access::Get(name) => (1, Some(name)),
            Access::Store(name) => (2, Some(name)),
            Access::Load(name) => (3, Some(name)),
            Access::PublicInput(_) => (4, None),
        };
        self.hasher.update([kind]);
        if let Access::PublicInput(index) = access {
            self.hasher.update((index as u64).to_le_bytes());
        }
        if let Some(name) = name {
            self.hasher
                .update((name.label().len() as u64).to_le_bytes());
            self.hasher.update(name.label());
            self.hasher.update([name.indices().len() as u8]);
            for index in name.indices() {
                self.hasher.update(index.to_le_bytes());
            }
        }
        if let Some(log) = &mut self.log {
            log.push(access);
        }
        self.made += 1;
        let variables = self.variables?.accesses;
        variables.get(self.made - 1).copied()
    }

    /// Counts and hashes a transfer with its values, as many as its kind has, and returns their variables, which must
    /// be equal to them: none while accesses are only recorded, and none beyond the expected number.
    pub(crate) fn transfer(&mut self, transfer: Transfer, values: &[F]) -> &'a [Variable] {
        debug_assert_eq!(
            values.len(),
            num_values(&[transfer]),
            "values of a {transfer}"
        );
        self.hasher.update([transfer.code()]);
        self.transfers.push(transfer);
        let start = self.transferred.len();
        self.transferred.extend_from_slice(values);
        let variables = self.variables.map(|variables| variables.transfers);
        let variables = variables.and_then(|all| all.get(start..self.transferred.len()));
        variables.unwrap_or_default()
    }
}
