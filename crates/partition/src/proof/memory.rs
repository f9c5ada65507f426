//! The memory that a proof takes, by a formula, and the form of keys that fits into a limit.
//!
//! Bytes in use are at their peak, beside the program's own:
//!
//! ```text
//! circuit + records + max(part, aggregation)
//! ```
//!
//! * `circuit`: the constraints of each class once, and four bytes for each access and for each address.
//! * `records`: of each part a few hundred bytes, and 32 bytes for each address and for each value put into the
//!   multiset or taken, the traces.
//! * `part`: the largest over classes, as one key is held at a time.
//! * `aggregation`: no key is held by then.
//!
//! With v variables in the class, d points of its domain and k bytes of its key in the form that it is held in:
//!
//! ```text
//! part = k + products + max(64·v, 32·v + 64·d)
//! ```
//!
//! The first term of the maximum is synthesis, the second A·z and B·z; loading a key takes no more than that. Products
//! keep their scratch memory from part to part: what [`proofmill_groth16::stages`] measured for each point of the longest
//! query in the first group, and for each point of the query in the second.
//!
//! The formula leaves out the memory of the circuit's own code while a part is run, and small allocations, mostly the
//! threads' stacks and the kernels' buckets. [`SLACK`] covers them.

use proofmill_groth16::mirage::{Commitment, ProvingKeyInfo};
use proofmill_groth16::{Curve, MAPPED_WINDOW_POINTS, Proof};

use super::PartitionCurve;
use crate::Partition;
use crate::tree::Leaf;

/// Bytes added to the formula for the memory that it leaves out.
pub const SLACK: u64 = 16 << 20;

/// The fewest parts of a class for which prepared points save more time than they take to make.
pub(super) const PREPARED_PARTS_MIN: usize = 8;

/// Bytes of the aggregation's vectors and products for each part, padded to a power of two, in points of the first
/// group: measured, see `docs/large-circuits.md`.
const AGGREGATION_POINTS: u64 = 44;

/// The form in which the keys of classes are held while they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// Mapped from their files: this takes the least memory, and each proof reads the whole key again.
    Mapped,
    /// One copy of the points in memory.
    Plain,
    /// The points in memory, with precomputed multiples where a class has parts enough, and plain where it has not.
    Prepared {
        /// The limit for the points, in bytes.
        memory_limit: u64,
    },
}

/// The bytes that a proof takes, by component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNeeds {
    circuit: u64,
    records: u64,
    aggregation: u64,
    classes: Vec<ClassNeeds>,
}

/// The bytes that parts of a class take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClassNeeds {
    /// The number of its parts.
    parts: usize,
    /// The key: in memory, with its points in the file, and the file.
    plain: u64,
    mapped: u64,
    file: u64,
    /// Bytes of the values of a part, and of the vectors computed from them.
    values: u64,
    /// Scratch memory in bytes of products over unprepared, prepared and mapped points.
    products_plain: u64,
    products_prepared: u64,
    products_mapped: u64,
}

/// A limit that no form of keys keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{limit} bytes of memory: this proof takes {least} at least, of which {circuit} are for the constraints of all \
     classes, {records} for records of all parts, and {part} for one part with its key in its file"
)]
pub struct MemoryLimit {
    /// The limit.
    pub limit: u64,
    /// The least that would do.
    pub least: u64,
    /// Bytes of it for constraints and addresses.
    pub circuit: u64,
    /// Bytes of it for records of all parts.
    pub records: u64,
    /// Bytes of it for the largest part, or for the aggregation if that is more.
    pub part: u64,
}

// === impl MemoryNeeds ===

impl MemoryNeeds {
    /// The needs of proofs for a partition with keys of these sizes, in the order of classes.
    pub fn new<E: PartitionCurve>(
        partition: &Partition<E::ScalarField>,
        keys: &[ProvingKeyInfo],
    ) -> Self {
        let parts = partition.num_parts() as u64;
        let scalar = size_of::<E::ScalarField>() as u64;
        let [g1, g2] = [size_of::<E::G1Affine>(), size_of::<E::G2Affine>()].map(|size| size as u64);
        let padded = parts.next_power_of_two();
        let string = padded * (4 * g1 + 2 * g2);
        let journal = size_of::<Option<Commitment<E>>>() + size_of::<Option<Proof<E>>>();
        // The points of inputs, the class, a leaf, its node and those above, and the place of the transfers' values.
        let index = 4 * g1 + 4;
        let state = size_of::<Leaf<E::ScalarField>>() as u64 + scalar * 4 / 3;
        let of_parts = journal as u64 + index + state + size_of::<Box<[u8]>>() as u64;
        let traced = partition.num_addresses() + partition.num_transferred();
        Self {
            circuit: partition.bytes() as u64,
            records: string + parts * of_parts + scalar * traced as u64,
            aggregation: padded * g1 * AGGREGATION_POINTS,
            classes: partition
                .parts_of_classes()
                .into_iter()
                .zip(keys)
                .map(|(parts, key)| ClassNeeds::of::<E>(parts, key))
                .collect(),
        }
    }

    /// The most bytes in use at once, beside the program's own, with keys in this form.
    pub fn peak(&self, form: KeyForm) -> u64 {
        self.circuit + self.records + self.part(form).max(self.aggregation) + SLACK
    }

    /// The fastest form of keys with which a proof stays within `limit` bytes, not counting the program itself.
    ///
    /// # Errors
    ///
    /// [`MemoryLimit`] if no form stays within the limit.
    pub fn fastest(&self, limit: u64) -> Result<KeyForm, MemoryLimit> {
        let of_parts = limit.saturating_sub(self.circuit + self.records + SLACK);
        let large = self.classes.iter().filter(|class| class.is_large());
        let prepared = large.map(|class| class.prepared(of_parts));
        // One key is held at a time, so the smallest limit serves all.
        let prepared = prepared.min().flatten();
        let prepared = prepared.map(|memory_limit| KeyForm::Prepared { memory_limit });
        let prepared = prepared.filter(|form| self.peak(*form) <= limit);
        if let Some(form) = prepared {
            return Ok(form);
        }
        let forms = [KeyForm::Plain, KeyForm::Mapped];
        let fitting = forms.into_iter().find(|form| self.peak(*form) <= limit);
        fitting.ok_or_else(|| MemoryLimit {
            limit,
            least: self.peak(KeyForm::Mapped),
            circuit: self.circuit,
            records: self.records,
            part: self.part(KeyForm::Mapped).max(self.aggregation),
        })
    }

    fn part(&self, form: KeyForm) -> u64 {
        let classes = self.classes.iter().map(|class| class.bytes(form));
        classes.max().unwrap_or(0)
    }
}

// === impl ClassNeeds ===

impl ClassNeeds {
    fn of<E: PartitionCurve>(parts: usize, key: &ProvingKeyInfo) -> Self {
        let plain = &key.plain;
        let (variables, domain) = (plain.variables as u64, plain.domain as u64);
        let queries = &plain.points;
        let committed = key.committed as u64;
        let in_first = [queries.a, queries.b_g1, queries.l, committed, domain];
        let in_first = in_first.into_iter().max().unwrap_or(0);
        let in_second = queries.b_g2;
        // Bytes for each point, from the table in `proofmill_groth16::stages`.
        let (as_they_are, prepared) = match E::CURVE {
            Curve::Bn254 => ((160, 320), (32, 68)),
            Curve::Bls12_381 | Curve::Bls12_377 => ((320, 640), (68, 136)),
        };
        let products = |(first, second): (u64, u64), most: u64| {
            first * in_first.min(most) + second * in_second.min(most)
        };
        let window = MAPPED_WINDOW_POINTS as u64;
        let decoded = size_of::<E::G2Affine>() as u64 + 32;
        Self {
            parts,
            plain: key.plain_bytes::<E>(),
            mapped: key.mapped_bytes::<E>(),
            file: key.file_bytes,
            values: (64 * variables).max(32 * variables + 64 * domain),
            products_plain: products(as_they_are, u64::MAX),
            products_prepared: products(prepared, u64::MAX),
            products_mapped: products(as_they_are, window) + window * decoded,
        }
    }

    /// Whether it has parts enough for prepared points to save time.
    const fn is_large(&self) -> bool {
        self.parts >= PREPARED_PARTS_MIN
    }

    fn bytes(&self, form: KeyForm) -> u64 {
        match form {
            KeyForm::Mapped => self.mapped + self.products_mapped + self.values,
            KeyForm::Prepared { memory_limit } if self.is_large() => {
                memory_limit + self.beside_prepared()
            }
            KeyForm::Plain | KeyForm::Prepared { .. } => {
                self.plain + self.products_plain + self.values
            }
        }
    }

    /// Prepared points are made from unprepared ones, which are freed before parts are proved.
    fn beside_prepared(&self) -> u64 {
        let proving = self.products_prepared + self.values;
        self.plain.max(proving)
    }

    /// The limit for prepared points with which parts of the class stay within `limit` bytes; `None` if it would not
    /// hold one copy.
    fn prepared(&self, limit: u64) -> Option<u64> {
        // In the widest layout, the one copy that is always kept takes three halves of the bytes of the file.
        let least = self.file / 2 * 3;
        let left = limit.checked_sub(self.beside_prepared())?;
        (left >= least).then_some(left)
    }
}
