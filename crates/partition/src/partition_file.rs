//! A partition in a file, so that a prover need not synthesise every part again.
//!
//! Version 2, little-endian, numbers of 4 bytes where nothing else is said:
//!
//! | content | bytes |
//! |---|---|
//! | magic `PMILLPTN` | 8 |
//! | version | 4 |
//! | the field's modulus | 32 |
//! | parts, classes, public inputs, accesses of all parts with those of the public inputs | 4 each |
//! | each class: its name's length and its name in UTF-8; accesses of each part; transfers of each part: their number, and for each a byte, 6 for a put, 7 for a put with a multiplicity, 8 for a take; rows of each [`Check`] in the order `Circuit`, `LeafBefore`, `SumByPart`, `SumByAddress`, `EqualValues`, `Multiset`, `EqualTraces`, `EmptyMultiset`, `LeafAfter`; the length of its system (8 bytes) and its system, [precompiled](proofmill_r1cs::write_precompiled) | |
//! | each part: its class; the digest of its accesses and transfers (32 bytes); its constants (32 bytes each), as many as the class has | |
//! | the address of each access, the public inputs' first, then part after part | 4 each |
//! | SHA-256 of all that | 32 |
//!
//! Derived values are left out: the depth of the tree, the first part of each class (classes are in the order
//! of their first parts), the number of constants, the first accesses of parts, the order by address.
//!
//! The checksum detects damage, not malice: a forged file describes another circuit. Compare
//! [`Partition::digest`]; a verifying key has the digest of the partition that it is for.

mod error;
mod reader;

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use ark_ff::{BigInteger, PrimeField};
use proofmill_files::{MappedFile, Visibility, write_whole};
use proofmill_kernels::Poseidon2Field;
use proofmill_r1cs::iden3::canonical_from_le;
use proofmill_r1cs::{PrecompiledFile, R1cs, write_precompiled};
use sha2::{Digest, Sha256};

use crate::access_order::AccessOrder;
use crate::class::Class;
use crate::memory_check::{Check, Sections, Shape};
use crate::multiset::{MAX_TRANSFER_VALUES, Transfer};
use crate::partition::{PartRecord, Partition};
use crate::tree::depth;

pub use error::PartitionFileError;
use reader::{Head, Reader};

const MAGIC: &[u8; 8] = b"PMILLPTN";
const VERSION: u32 = 2;
/// Bytes of a field element, and of a modulus.
const FIELD_BYTES: usize = 32;
const DIGEST_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 32;

/// Bytes of a class without its name, its transfers and its system.
const CLASS_BYTES_MIN: u64 = 4 + 4 + 4 + 4 * Check::ORDER.len() as u64 + 8;
/// Bytes of a part without its constants.
const PART_BYTES_MIN: u64 = 4 + DIGEST_BYTES as u64;
const ADDRESS_BYTES: u64 = 4;

/// Addresses encoded at a time.
const CHUNK: usize = 1 << 14;

/// A writer that hashes.
struct Hashing<W> {
    out: W,
    hasher: Sha256,
}

// === impl Partition ===

impl<F: Poseidon2Field> Partition<F> {
    /// The content of the partition's file.
    ///
    /// # Panics
    ///
    /// If `F` is no [`ScalarField`](proofmill_r1cs::iden3::ScalarField).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes)
            .expect("a field with proofs, and writing to a vector does not fail");
        bytes
    }

    /// Writes the partition to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`PartitionFileError::File`] if the file system refuses, or `F` is no
    /// [`ScalarField`](proofmill_r1cs::iden3::ScalarField).
    pub fn save(&self, path: &Path) -> Result<(), PartitionFileError> {
        write_whole(path, Visibility::Public, |file| self.write(file))?;
        Ok(())
    }

    /// Decodes an untrusted partition. Memory is allocated only in proportion to the bytes, and
    /// [`to_bytes`](Self::to_bytes) of the partition returns the same bytes.
    ///
    /// # Errors
    ///
    /// [`PartitionFileError`] unless the bytes are those of a partition over `F`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PartitionFileError> {
        let mut reader = Reader::new::<F>(bytes)?;
        let head = Head::read(&mut reader)?;
        let depth = depth(head.parts + 1);
        let mut classes = Vec::with_capacity(head.classes);
        for class in 0..head.classes {
            classes.push(read_class(&mut reader, class, depth, &head)?);
        }
        check_names(&classes)?;
        let (parts, starts) = read_parts(&mut reader, &head, &mut classes)?;
        let addresses = reader.take(head.accesses as u64 * ADDRESS_BYTES, "addresses")?;
        if reader.left() > 0 {
            return Err(PartitionFileError::TrailingBytes(reader.left()));
        }
        let addresses = addresses.as_chunks::<4>().0.iter();
        let addresses = addresses.map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let order =
            AccessOrder::checked(addresses, starts).map_err(PartitionFileError::Addresses)?;
        Ok(Self {
            order,
            classes,
            parts,
            depth,
        })
    }

    /// Reads a partition from a file.
    ///
    /// # Errors
    ///
    /// [`PartitionFileError`] if there is no such file or it holds no partition over `F`.
    pub fn load(path: &Path) -> Result<Self, PartitionFileError> {
        let file = MappedFile::open(path)?;
        let partition = Self::from_bytes(&file)?;
        file.check_unchanged()?;
        Ok(partition)
    }

    fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = Hashing {
            out,
            hasher: Sha256::new(),
        };
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&F::MODULUS.to_bytes_le())?;
        for count in [
            self.num_parts(),
            self.classes.len(),
            self.num_public_inputs(),
            self.num_accesses(),
        ] {
            out.write_all(&encode_count(count))?;
        }
        for class in &self.classes {
            write_class(class, &mut out)?;
        }
        for part in &self.parts {
            let mut record = encode_count(part.class).to_vec();
            record.extend(part.accesses);
            for constant in &part.constants {
                record.extend(constant.into_bigint().to_bytes_le());
            }
            out.write_all(&record)?;
        }
        for addresses in self.order.addresses().chunks(CHUNK) {
            let bytes = addresses.iter().flat_map(|address| address.to_le_bytes());
            out.write_all(&bytes.collect::<Vec<u8>>())?;
        }
        out.finish()
    }
}

fn write_class<F: PrimeField>(class: &Class<F>, out: &mut impl Write) -> io::Result<()> {
    let mut head = encode_count(class.name.len()).to_vec();
    head.extend(class.name.as_bytes());
    head.extend(encode_count(class.shape.accesses));
    head.extend(encode_count(class.shape.transfers.len()));
    head.extend(class.shape.transfers.iter().map(|transfer| transfer.code()));
    for check in Check::ORDER {
        head.extend(encode_count(class.constraints_of(check)));
    }
    let system = encode(&class.system)?;
    head.extend((system.len() as u64).to_le_bytes());
    out.write_all(&head)?;
    out.write_all(&system)
}

fn encode<F: PrimeField>(system: &R1cs<F>) -> io::Result<Vec<u8>> {
    let out = write_precompiled(io::Cursor::new(Vec::new()), system)?;
    Ok(out.into_inner())
}

/// Encodes a count in 32 bits, which suffice for every count in a partition.
const fn encode_count(count: usize) -> [u8; 4] {
    (count as u32).to_le_bytes()
}

fn read_class<F: PrimeField>(
    reader: &mut Reader<'_>,
    class: usize,
    depth: usize,
    head: &Head,
) -> Result<Class<F>, PartitionFileError> {
    let refused = |reason: String| PartitionFileError::Class { class, reason };
    let name = reader.u32("name lengths")?;
    let name = reader.take(name.into(), "class names")?;
    let name = str::from_utf8(name).map_err(|_| refused("a name that is not UTF-8".to_owned()))?;
    let accesses = reader.count(
        "accesses of each part of a class",
        0,
        head.accesses - head.public_inputs,
    )?;
    let transfers = reader.u32("numbers of transfers")?;
    let transfers = reader.take(transfers.into(), "transfers")?;
    let transfers: Option<_> = transfers.iter().copied().map(Transfer::from_code).collect();
    let transfers = transfers.ok_or_else(|| refused("a transfer of no kind".to_owned()))?;
    let shape = Shape::new(accesses, transfers, depth);
    let mut sections = Sections::new();
    let mut end = 0usize;
    for check in Check::ORDER {
        let start = end;
        end = end.saturating_add(reader.u32("numbers of rows")? as usize);
        sections.push((check, start..end));
    }
    let length = reader.u64("lengths of systems")?;
    let bytes = reader.take(length, "constraints")?;
    let (system, digest) = read_system::<F>(class, bytes)?;
    if end != system.num_constraints() {
        let found = system.num_constraints();
        return Err(refused(format!(
            "{found} constraints, where its checks have {end}"
        )));
    }
    let fixed = 1 + shape.instance();
    let Some(constants) = system.num_instance().checked_sub(fixed) else {
        let found = system.num_instance();
        return Err(refused(format!(
            "{found} instance variables, where {accesses} accesses and {depth} levels need {fixed}"
        )));
    };
    let committed = shape.committed();
    if system.num_witness() < committed {
        let found = system.num_witness();
        return Err(refused(format!(
            "{found} witness variables, where accesses and transfers need {committed}"
        )));
    }
    Ok(Class {
        name: name.into(),
        // Known when parts are read.
        first_part: 0,
        system: Arc::new(system),
        digest,
        shape,
        constants,
        sections,
    })
}

/// A system and its digest. Its encoding must be ours to the byte: the container would allow sections
/// in another order, and others besides.
fn read_system<F: PrimeField>(
    class: usize,
    bytes: &[u8],
) -> Result<(R1cs<F>, [u8; 32]), PartitionFileError> {
    let failed = |source| PartitionFileError::System { class, source };
    let file = PrecompiledFile::parse(bytes).map_err(failed)?;
    let system = file.read::<F>().map_err(failed)?;
    let is_ours = encode(&system).is_ok_and(|again| again == bytes);
    if !is_ours {
        let reason = "constraints that are not encoded as this program does".to_owned();
        return Err(PartitionFileError::Class { class, reason });
    }
    Ok((system, file.header().digest))
}

fn check_names<F: PrimeField>(classes: &[Class<F>]) -> Result<(), PartitionFileError> {
    let mut names = HashSet::with_capacity(classes.len());
    match classes.iter().position(|class| !names.insert(class.name())) {
        None => Ok(()),
        Some(class) => {
            let reason = format!("its name, {:?}, is another's", classes[class].name());
            Err(PartitionFileError::Class { class, reason })
        }
    }
}

/// The parts, and the first entry of each and the end; first parts of classes are set.
fn read_parts<F: PrimeField>(
    reader: &mut Reader<'_>,
    head: &Head,
    classes: &mut [Class<F>],
) -> Result<(Vec<PartRecord<F>>, Vec<usize>), PartitionFileError> {
    let mut parts = Vec::with_capacity(head.parts);
    let mut starts = Vec::with_capacity(head.parts + 1);
    let (mut end, mut classes_met, mut transferred) = (head.public_inputs, 0, 0usize);
    starts.push(end);
    for part in 0..head.parts {
        let refused = |reason: String| PartitionFileError::Part { part, reason };
        // Classes are in the order of their first parts.
        let class = reader.u32("classes of parts")? as usize;
        if class > classes_met || class >= classes.len() {
            return Err(refused(format!(
                "class {class}, after parts of {classes_met} classes of {}",
                classes.len()
            )));
        }
        if class == classes_met {
            classes[class].first_part = part;
            classes_met += 1;
        }
        let accesses = reader.array("digests of accesses")?;
        let constants = classes[class].constants as u64 * FIELD_BYTES as u64;
        let constants = reader.take(constants, "constants")?;
        let constants = constants.as_chunks::<FIELD_BYTES>().0.iter();
        let constants: Option<Vec<F>> = constants
            .map(|bytes| canonical_from_le(bytes.as_slice()))
            .collect();
        let constants = constants
            .ok_or_else(|| refused("a constant that is not below the prime".to_owned()))?;
        end += classes[class].shape.accesses;
        if end > head.accesses {
            let all = head.accesses;
            return Err(refused(format!("accesses up to {end}, of {all} there are")));
        }
        starts.push(end);
        transferred += classes[class].shape.transferred;
        if transferred > MAX_TRANSFER_VALUES {
            return Err(refused(format!(
                "{transferred} values put and taken: there must be {MAX_TRANSFER_VALUES} at most"
            )));
        }
        parts.push(PartRecord {
            class,
            constants,
            accesses,
        });
    }
    if classes_met < classes.len() {
        let reason = "no part is of this class".to_owned();
        let class = classes_met;
        return Err(PartitionFileError::Class { class, reason });
    }
    Ok((parts, starts))
}

// === impl Hashing ===

impl<W: Write> Hashing<W> {
    /// Ends the file with the checksum.
    fn finish(mut self) -> io::Result<()> {
        let checksum = self.hasher.finalize();
        self.out.write_all(&checksum)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
