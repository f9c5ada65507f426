//! Precompiled systems: files that hold the matrices in their form in memory.
//!
//! A container (see [`iden3`](crate::iden3)) of version 1, little-endian; with w a width of 1, 2, 4 or
//! 8 bytes:
//!
//! | section | content |
//! |---|---|
//! | 1 header | the prime (its length first), instance variables, witness variables, constraints, coefficients (u32 each), the system's digest (32 bytes) |
//! | 2 coefficients | each as its number, 32 bytes; 1 and −1 first |
//! | 3 A, 4 B, 5 C | entries (u64), w of the row starts, w of the coefficient indices (u32 each), row starts (one more than constraints), columns (u32 each), coefficient indices |
//!
//! The digest, [`R1cs::digest`], covers everything that follows it, so it is also the checksum. A `.r1cs`
//! file would hold the same system in 36 bytes for each entry instead of 5 to 8, without a checksum.

use std::io::{self, Seek, Write};
use std::path::Path;

use ark_ff::{BigInteger, PrimeField};

use crate::iden3::{
    Container, ContainerWriter, Cursor, Format, FormatError, ReadError, Reason, ScalarField,
};
use crate::packed::Packed;
use crate::{Coefficients, Matrix, R1cs};
use proofmill_files::{FileError, MappedFile, Visibility, write_whole};

const HEADER: u32 = 1;
const COEFFICIENTS: u32 = 2;
const MATRICES: [u32; 3] = [3, 4, 5];

/// Numbers encoded at a time.
const CHUNK: usize = 1 << 16;

/// The container of precompiled systems.
pub static PRECOMPILED_FORMAT: Format = Format {
    name: "precompiled circuit",
    magic: *b"pmcs",
    version: 1,
    sections: &[
        (HEADER, "header"),
        (COEFFICIENTS, "coefficients"),
        (MATRICES[0], "A"),
        (MATRICES[1], "B"),
        (MATRICES[2], "C"),
    ],
};

/// The header of a precompiled system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrecompiledHeader {
    /// The field, by which a caller chooses the curve.
    pub prime: ScalarField,
    /// The number of instance variables, the leading one included.
    pub instance: u32,
    /// The number of witness variables.
    pub witness: u32,
    /// The number of constraints.
    pub constraints: u32,
    /// The number of distinct coefficients.
    pub coefficients: u32,
    /// The system's digest, [`R1cs::digest`].
    pub digest: [u8; 32],
}

/// A precompiled system whose header was read.
#[derive(Clone, Debug)]
pub struct PrecompiledFile<'a> {
    container: Container<'a>,
    header: PrecompiledHeader,
}

// === impl PrecompiledFile ===

impl<'a> PrecompiledFile<'a> {
    /// Reads the container's head and the header; nothing is allocated.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the section and the offset.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let container = Container::parse(&PRECOMPILED_FORMAT, bytes)?;
        let mut cursor = container.section(HEADER)?;
        let header = PrecompiledHeader {
            prime: ScalarField::read(&mut cursor)?,
            instance: cursor.u32()?,
            witness: cursor.u32()?,
            constraints: cursor.u32()?,
            coefficients: cursor.u32()?,
            digest: cursor.array()?,
        };
        cursor.finish()?;
        Ok(Self { container, header })
    }

    /// The header.
    pub const fn header(&self) -> &PrecompiledHeader {
        &self.header
    }

    /// Reads the system. No more is allocated than the file holds, and the returned system has the header's
    /// digest.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the section and the offset: among others if the header names another field
    /// than `F`, entries lie beyond the matrices, or the digest does not match.
    pub fn read<F: PrimeField>(&self) -> Result<R1cs<F>, FormatError> {
        let head = self.container.section(HEADER)?;
        let header = &self.header;
        header
            .prime
            .expect::<F>()
            .map_err(|reason| head.error(reason))?;
        let mut cursor = self.container.section(COEFFICIENTS)?;
        let start = cursor.offset();
        let values: Vec<F> = cursor.fields(header.coefficients.into())?;
        let table = Coefficients::from_values(&values).ok_or_else(|| {
            inconsistent(
                &cursor,
                start,
                "the coefficients are not 1, −1, and then others, each once",
            )
        })?;
        cursor.finish()?;
        drop(values);
        let matrix = |section| self.read_matrix(self.container.section(section)?);
        let matrices = [
            matrix(MATRICES[0])?,
            matrix(MATRICES[1])?,
            matrix(MATRICES[2])?,
        ];
        let (instance, witness) = (header.instance as usize, header.witness as usize);
        let system = R1cs::from_matrices(instance, witness, matrices, table)
            .map_err(|error| head.error(Reason::Inconsistent(error.to_string().into())))?;
        if system.digest() != header.digest {
            let reason = "the digest is not that of the content: the file is corrupt";
            return Err(head.error(Reason::Inconsistent(reason.into())));
        }
        Ok(system)
    }

    fn read_matrix(&self, mut cursor: Cursor<'a>) -> Result<Matrix, FormatError> {
        let rows = self.header.constraints as usize;
        let variables = u64::from(self.header.instance) + u64::from(self.header.witness);
        let entries = cursor.u64()?;
        let widths = cursor.offset();
        let [start_width, index_width] = [cursor.u32()? as usize, cursor.u32()? as usize];
        let packed = |cursor: &mut Cursor<'a>, count: u64, width: usize| {
            let bytes = cursor.items(count, width)?;
            let reason = "a width other than 1, 2, 4 and 8";
            Packed::from_le(width, bytes).ok_or_else(|| inconsistent(cursor, widths, reason))
        };
        let starts_at = cursor.offset();
        let starts = packed(&mut cursor, rows as u64 + 1, start_width)?;
        let ascending = starts.iter().is_sorted();
        if !ascending || starts.get(0) != 0 || starts.get(rows) != entries {
            let reason = "row starts that do not ascend from 0 to the number of entries";
            return Err(inconsistent(&cursor, starts_at, reason));
        }
        let columns_at = cursor.offset();
        let columns = cursor.convert(entries, 4, |bytes| {
            let (chunks, _) = bytes.as_chunks::<4>();
            chunks.first().map(|chunk| u32::from_le_bytes(*chunk))
        })?;
        if columns.iter().any(|column| u64::from(*column) >= variables) {
            let reason = format!("an entry for another variable than the {variables} there are");
            return Err(inconsistent(&cursor, columns_at, reason));
        }
        let indices_at = cursor.offset();
        let indices = packed(&mut cursor, entries, index_width)?;
        if indices
            .iter()
            .any(|index| index >= u64::from(self.header.coefficients))
        {
            return Err(inconsistent(
                &cursor,
                indices_at,
                "an index beyond the coefficients",
            ));
        }
        cursor.finish()?;
        Ok(Matrix::from_parts(starts, columns, indices))
    }
}

/// Loads a precompiled system from a file.
///
/// # Errors
///
/// [`ReadError`]: a format error names the section and the offset.
pub fn load_precompiled<F: PrimeField>(file: &MappedFile) -> Result<R1cs<F>, ReadError> {
    PrecompiledFile::parse(file)
        .and_then(|precompiled| precompiled.read())
        .map_err(|error| error.in_file(file.path()))
}

// === impl R1cs ===

impl<F: PrimeField> R1cs<F> {
    /// Writes the system, precompiled, to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if the file system refuses, or as for [`write_precompiled`].
    pub fn save_precompiled(&self, path: &Path) -> Result<(), FileError> {
        write_whole(path, Visibility::Public, |file| {
            write_precompiled(file, self).map(|_| ())
        })
    }
}

/// Writes a system, precompiled.
///
/// # Errors
///
/// Those of `out`; [`io::ErrorKind::InvalidInput`] if `F` is no [`ScalarField`].
pub fn write_precompiled<F: PrimeField, W: Write + Seek>(
    out: W,
    system: &R1cs<F>,
) -> io::Result<W> {
    let prime = ScalarField::of::<F>().ok_or_else(|| {
        let what = "not the field of a curve that is proven over";
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })?;
    let mut out = ContainerWriter::new(out, &PRECOMPILED_FORMAT)?;
    let modulus = prime.modulus_le();
    let mut header = Vec::new();
    header.extend((modulus.len() as u32).to_le_bytes());
    header.extend(modulus);
    // A system has no more of anything than 32 bits count.
    for count in [
        system.num_instance(),
        system.num_witness(),
        system.num_constraints(),
        system.coefficients().len(),
    ] {
        header.extend((count as u32).to_le_bytes());
    }
    header.extend(system.digest());
    out.section(HEADER, &header)?;
    out.begin(COEFFICIENTS)?;
    for coefficient in system.coefficients() {
        out.write_all(&coefficient.into_bigint().to_bytes_le())?;
    }
    out.end()?;
    for (section, matrix) in MATRICES.into_iter().zip(system.matrices()) {
        out.begin(section)?;
        out.write_all(&(matrix.entries() as u64).to_le_bytes())?;
        for numbers in [&matrix.row_starts, &matrix.coefficients] {
            out.write_all(&(numbers.width() as u32).to_le_bytes())?;
        }
        write_packed(&matrix.row_starts, &mut out)?;
        for columns in matrix.columns.chunks(CHUNK) {
            let bytes: Vec<u8> = columns
                .iter()
                .flat_map(|column| column.to_le_bytes())
                .collect();
            out.write_all(&bytes)?;
        }
        write_packed(&matrix.coefficients, &mut out)?;
        out.end()?;
    }
    out.finish()
}

fn write_packed(numbers: &Packed, out: &mut impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    for start in (0..numbers.len()).step_by(CHUNK) {
        bytes.clear();
        numbers.write_le(start..(start + CHUNK).min(numbers.len()), &mut bytes);
        out.write_all(&bytes)?;
    }
    Ok(())
}

fn inconsistent(
    cursor: &Cursor<'_>,
    offset: u64,
    reason: impl Into<std::borrow::Cow<'static, str>>,
) -> FormatError {
    cursor.error_at(offset, Reason::Inconsistent(reason.into()))
}
