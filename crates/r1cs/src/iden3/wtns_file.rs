//! `.wtns`: a witness as circom's programs and snarkjs write it.
//!
//! Version 2. Section 1, the header: the prime and the number of values (u32). Section 2: the values
//! in the order of the circuit's wires, the constant one first, each 32 bytes, below the prime.

use std::fmt;
use std::io::{self, Seek, Write};

use ark_ff::PrimeField;
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use super::{Container, ContainerWriter, Format, FormatError, Reason, SCALAR_BYTES, ScalarField};
use crate::Assignment;

const HEADER: u32 = 1;
const VALUES: u32 = 2;

/// Values written at once.
const CHUNK: usize = 1 << 12;

/// The container of `.wtns` files.
pub static WTNS_FORMAT: Format = Format {
    name: ".wtns",
    magic: *b"wtns",
    version: 2,
    sections: &[(HEADER, "header"), (VALUES, "values")],
};

/// The header of a `.wtns` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WtnsHeader {
    /// The field, by which a caller chooses the curve.
    pub prime: ScalarField,
    /// The number of values, the leading one included.
    pub n_values: u32,
}

/// A `.wtns` file whose header was read.
#[derive(Clone)]
pub struct WtnsFile<'a> {
    container: Container<'a>,
    header: WtnsHeader,
}

/// The values of all wires, the constant one first. They are secret: erased when dropped, and
/// `Debug` prints their number only.
#[derive(Clone, PartialEq, Eq)]
pub struct Witness<F: PrimeField> {
    values: Vec<F>,
}

// === impl WtnsFile ===

impl<'a> WtnsFile<'a> {
    /// Reads the container's head and the header; nothing is allocated.
    ///
    /// # Errors
    ///
    /// [`FormatError`], among others for other fields than those of [`ScalarField`], and if the number of
    /// values is not the header's.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let container = Container::parse(&WTNS_FORMAT, bytes)?;
        let mut cursor = container.section(HEADER)?;
        let header = WtnsHeader {
            prime: ScalarField::read(&mut cursor)?,
            n_values: cursor.u32()?,
        };
        cursor.finish()?;
        let values = container.section(VALUES)?;
        values.expect_length(u64::from(header.n_values) * SCALAR_BYTES as u64)?;
        Ok(Self { container, header })
    }

    /// The header.
    pub const fn header(&self) -> &WtnsHeader {
        &self.header
    }

    /// The values, converted in parallel.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the header names another field than `F`, a value is not below the prime,
    /// or the first is not one.
    pub fn read<F: PrimeField>(&self) -> Result<Witness<F>, FormatError> {
        let header = self.container.section(HEADER)?;
        self.header
            .prime
            .expect::<F>()
            .map_err(|reason| header.error(reason))?;
        let mut cursor = self.container.section(VALUES)?;
        let start = cursor.offset();
        let witness = Witness {
            values: cursor.fields(u64::from(self.header.n_values))?,
        };
        if !witness.values.first().is_some_and(F::is_one) {
            let reason = "the first value is not one".into();
            return Err(cursor.error_at(start, Reason::Inconsistent(reason)));
        }
        Ok(witness)
    }

    /// The first `count` values after the leading one, such as the public inputs; the rest is not read.
    ///
    /// # Errors
    ///
    /// [`FormatError`] as for [`read`](Self::read), and if there are fewer.
    pub fn leading<F: PrimeField>(&self, count: usize) -> Result<Vec<F>, FormatError> {
        let header = self.container.section(HEADER)?;
        self.header
            .prime
            .expect::<F>()
            .map_err(|reason| header.error(reason))?;
        let mut cursor = self.container.section(VALUES)?;
        let start = cursor.offset();
        if !cursor.field::<F>()?.is_one() {
            let reason = "the first value is not one".into();
            return Err(cursor.error_at(start, Reason::Inconsistent(reason)));
        }
        cursor.fields(count as u64)
    }
}

impl fmt::Debug for WtnsFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WtnsFile")
            .field("header", &self.header)
            .finish()
    }
}

// === impl Witness ===

impl<F: PrimeField> Witness<F> {
    /// A witness of the values of all wires, the first of which must be one.
    pub const fn new(values: Vec<F>) -> Self {
        Self { values }
    }

    /// The values.
    pub fn values(&self) -> &[F] {
        &self.values
    }

    /// The values as an assignment whose instance is the first `instance` of them. They are no
    /// longer erased by this type.
    ///
    /// # Panics
    ///
    /// If `instance` is zero or exceeds the number of values.
    pub fn into_assignment(mut self, instance: usize) -> Assignment<F> {
        Assignment::from_values(std::mem::take(&mut self.values), instance)
    }
}

impl<F: PrimeField> Drop for Witness<F> {
    fn drop(&mut self) {
        self.values.zeroize();
    }
}

impl<F: PrimeField> fmt::Debug for Witness<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness")
            .field("values", &self.values.len())
            .finish()
    }
}

/// Writes a `.wtns` file; the file is secret, see
/// [`Visibility::Private`](proofmill_files::Visibility::Private).
///
/// # Errors
///
/// Those of `out`; [`io::ErrorKind::InvalidInput`] if `F` is no [`ScalarField`] or there are more
/// values than 32 bits count.
pub fn write_wtns<F: PrimeField, W: Write + Seek>(out: W, values: &[F]) -> io::Result<W> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    let prime = ScalarField::of::<F>().ok_or_else(|| invalid("not a field of .wtns files"))?;
    let count = u32::try_from(values.len()).map_err(|_| invalid("too many values"))?;
    let mut out = ContainerWriter::new(out, &WTNS_FORMAT)?;
    out.begin(HEADER)?;
    out.write_all(&(SCALAR_BYTES as u32).to_le_bytes())?;
    out.write_all(prime.modulus_le())?;
    out.write_all(&count.to_le_bytes())?;
    out.end()?;
    out.begin(VALUES)?;
    for values in values.chunks(CHUNK * rayon::current_num_threads()) {
        let mut bytes = Zeroizing::new(vec![0; values.len() * SCALAR_BYTES]);
        bytes
            .par_chunks_mut(SCALAR_BYTES)
            .zip(values)
            .with_min_len(CHUNK)
            .for_each(|(bytes, value)| {
                for (bytes, word) in bytes.chunks_mut(8).zip(value.into_bigint().as_ref()) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
            });
        out.write_all(&bytes)?;
    }
    out.end()?;
    out.finish()
}
