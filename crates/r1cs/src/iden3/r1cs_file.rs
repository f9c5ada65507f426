//! `.r1cs`: a circuit as circom writes it.
//!
//! Version 1 (iden3, "Binary format for Rank-1 Constraint System"). Section 1, the header: the
//! prime, the numbers of wires, public outputs, public inputs, private inputs (u32 each), labels
//! (u64) and constraints (u32). Section 2: for each constraint A, B and C, each as the number of its
//! terms (u32) and for each term a wire (u32) and a coefficient. Section 3: for each wire its label
//! (u64). Wire 0 is the constant one; public outputs, public inputs, private inputs and the wires
//! in between follow. Sections 4 and 5, custom gates of PLONK, are refused.

use std::fmt;
use std::io::{self, Seek, Write};

use ark_ff::{BigInteger, PrimeField};

use super::{
    Container, ContainerWriter, Cursor, Format, FormatError, Reason, SCALAR_BYTES, ScalarField,
    canonical_from_le,
};
use crate::{Coefficients, MatrixBuilder, R1cs};

const HEADER: u32 = 1;
const CONSTRAINTS: u32 = 2;
const LABELS: u32 = 3;
const CUSTOM_GATES: u32 = 4;
const CUSTOM_GATE_USES: u32 = 5;

/// Bytes of a term: wire and coefficient.
const TERM_BYTES: usize = 4 + SCALAR_BYTES;

/// The container of `.r1cs` files.
pub static R1CS_FORMAT: Format = Format {
    name: ".r1cs",
    magic: *b"r1cs",
    version: 1,
    sections: &[
        (HEADER, "header"),
        (CONSTRAINTS, "constraints"),
        (LABELS, "labels of wires"),
        (CUSTOM_GATES, "custom gates"),
        (CUSTOM_GATE_USES, "uses of custom gates"),
    ],
};

/// The header of a `.r1cs` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R1csHeader {
    /// The field, by which a caller chooses the curve.
    pub prime: ScalarField,
    /// The number of wires, the constant one included.
    pub n_wires: u32,
    /// The number of public outputs.
    pub n_pub_out: u32,
    /// The number of public inputs.
    pub n_pub_in: u32,
    /// The number of private inputs.
    pub n_prv_in: u32,
    /// The number of labels: signals before optimisation.
    pub n_labels: u64,
    /// The number of constraints.
    pub n_constraints: u32,
}

/// A `.r1cs` file whose header was read; constraints and labels are read on demand.
#[derive(Clone, Debug)]
pub struct R1csFile<'a> {
    container: Container<'a>,
    header: R1csHeader,
}

/// A circuit and the labels of its wires, as read by [`R1csFile::read`] and written by [`write_r1cs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledR1cs<F: PrimeField> {
    /// The header.
    pub header: R1csHeader,
    /// The constraints. Their instance is the constant one, public outputs and public inputs.
    pub system: R1cs<F>,
    /// The label of each wire, by which circom's `.sym` file names it.
    pub labels: Vec<u64>,
}

/// The terms of one linear combination, in the file's order.
#[derive(Clone)]
pub struct Terms<'a> {
    bytes: std::slice::ChunksExact<'a, u8>,
}

// === impl R1csHeader ===

impl R1csHeader {
    /// The number of instance variables: the constant one, public outputs and public inputs.
    pub const fn instance(&self) -> usize {
        1 + self.n_pub_out as usize + self.n_pub_in as usize
    }

    fn read(mut cursor: Cursor<'_>) -> Result<Self, FormatError> {
        let prime = ScalarField::read(&mut cursor)?;
        let offset = cursor.offset();
        let header = Self {
            prime,
            n_wires: cursor.u32()?,
            n_pub_out: cursor.u32()?,
            n_pub_in: cursor.u32()?,
            n_prv_in: cursor.u32()?,
            n_labels: cursor.u64()?,
            n_constraints: cursor.u32()?,
        };
        let named = [header.n_pub_out, header.n_pub_in, header.n_prv_in];
        if 1 + named.iter().map(|n| u64::from(*n)).sum::<u64>() > u64::from(header.n_wires) {
            let reason = format!(
                "{} wires for the constant one, {} outputs, {} public and {} private inputs",
                header.n_wires, header.n_pub_out, header.n_pub_in, header.n_prv_in
            );
            return Err(cursor.error_at(offset, Reason::Inconsistent(reason.into())));
        }
        cursor.finish()?;
        Ok(header)
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let prime = self.prime.modulus_le();
        out.write_all(&(prime.len() as u32).to_le_bytes())?;
        out.write_all(prime)?;
        for number in [self.n_wires, self.n_pub_out, self.n_pub_in, self.n_prv_in] {
            out.write_all(&number.to_le_bytes())?;
        }
        out.write_all(&self.n_labels.to_le_bytes())?;
        out.write_all(&self.n_constraints.to_le_bytes())
    }
}

// === impl R1csFile ===

impl<'a> R1csFile<'a> {
    /// Reads the container's head and the header; nothing is allocated that grows with the file.
    ///
    /// # Errors
    ///
    /// [`FormatError`], among others for a circuit with custom gates and for other fields than
    /// those of [`ScalarField`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let container = Container::parse(&R1CS_FORMAT, bytes)?;
        for kind in [CUSTOM_GATES, CUSTOM_GATE_USES] {
            if let Some(section) = container.optional(kind) {
                // Where there are none, circom writes an empty section, with a length of zero.
                let mut content = section.clone();
                if section.remaining() != 4 || content.u32()? != 0 {
                    let reason = "custom gates, which only PLONK has".into();
                    return Err(section.error(Reason::Unsupported(reason)));
                }
            }
        }
        let header = R1csHeader::read(container.section(HEADER)?)?;
        Ok(Self { container, header })
    }

    /// The header.
    pub const fn header(&self) -> &R1csHeader {
        &self.header
    }

    /// Calls `each` with (matrix, constraint, terms) for A, B and C (0, 1, 2) of every constraint, in
    /// the file's order. Wires are checked to be within the header's number; coefficients are not checked.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the section is cut short or names a wire beyond the header's, or the error of `each`,
    /// with the position of the terms.
    pub fn for_each(
        &self,
        mut each: impl FnMut(usize, u32, Terms<'a>) -> Result<(), (usize, Reason)>,
    ) -> Result<(), FormatError> {
        let mut cursor = self.container.section(CONSTRAINTS)?;
        for constraint in 0..self.header.n_constraints {
            for matrix in 0..3 {
                let count = cursor.u32()?;
                let start = cursor.offset();
                let bytes = cursor.items(u64::from(count), TERM_BYTES)?;
                let terms = Terms {
                    bytes: bytes.chunks_exact(TERM_BYTES),
                };
                for (i, (wire, _)) in terms.clone().enumerate() {
                    if wire >= self.header.n_wires {
                        let offset = start + (i * TERM_BYTES) as u64;
                        let wires = self.header.n_wires;
                        let reason =
                            format!("constraint {constraint} names wire {wire} of {wires}");
                        return Err(cursor.error_at(offset, Reason::Inconsistent(reason.into())));
                    }
                }
                each(matrix, constraint, terms).map_err(|(term, reason)| {
                    cursor.error_at(start + (term * TERM_BYTES) as u64, reason)
                })?;
            }
        }
        cursor.finish()
    }

    /// The constraints.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the header names another field than `F`, or a constraint is cut short,
    /// names a wire that is not there, or has a coefficient that is not below the prime.
    pub fn system<F: PrimeField>(&self) -> Result<R1cs<F>, FormatError> {
        let header = self.container.section(HEADER)?;
        let in_header = |reason| header.error(reason);
        self.header.prime.expect::<F>().map_err(in_header)?;
        let mut table = Coefficients::<F>::new();
        let mut builders: [MatrixBuilder<F>; 3] = Default::default();
        self.for_each(|matrix, _, terms| {
            let builder = &mut builders[matrix];
            for (i, (wire, bytes)) in terms.enumerate() {
                let value = canonical_from_le(bytes).ok_or((i, Reason::NotCanonical))?;
                builder.push(wire, value);
            }
            builder.end_row(&mut table);
            Ok(())
        })?;
        let instance = self.header.instance();
        let witness = self.header.n_wires as usize - instance;
        let matrices = builders.map(MatrixBuilder::finish);
        R1cs::from_matrices(instance, witness, matrices, table)
            .map_err(|error| in_header(Reason::Inconsistent(error.to_string().into())))
    }

    /// The label of each wire.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the number of labels is not that of wires.
    pub fn labels(&self) -> Result<Vec<u64>, FormatError> {
        let mut cursor = self.label_section()?;
        let bytes = cursor.bytes(cursor.remaining())?;
        let (labels, _) = bytes.as_chunks::<8>();
        Ok(labels
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .collect())
    }

    /// Checks that the file has a label for each wire of the header, as circom writes them. The header's number
    /// of wires is only a claim: after this check, allocations for each wire are at most in proportion to the
    /// file's size.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the number of labels is not that of wires.
    pub fn check_labels(&self) -> Result<(), FormatError> {
        self.label_section().map(drop)
    }

    fn label_section(&self) -> Result<Cursor<'a>, FormatError> {
        let cursor = self.container.section(LABELS)?;
        cursor.expect_length(u64::from(self.header.n_wires) * 8)?;
        Ok(cursor)
    }

    /// All of it.
    ///
    /// # Errors
    ///
    /// [`FormatError`] as [`system`](Self::system) and [`labels`](Self::labels).
    pub fn read<F: PrimeField>(&self) -> Result<LabelledR1cs<F>, FormatError> {
        Ok(LabelledR1cs {
            header: self.header,
            system: self.system()?,
            labels: self.labels()?,
        })
    }
}

// === impl Terms ===

impl<'a> Iterator for Terms<'a> {
    /// A wire and its coefficient, [`width`](super::width) bytes, little-endian, as in the file.
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (wire, coefficient) = self.bytes.next()?.split_first_chunk::<4>()?;
        Some((u32::from_le_bytes(*wire), coefficient))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.bytes.size_hint()
    }
}

impl ExactSizeIterator for Terms<'_> {}

impl fmt::Debug for Terms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("left", &self.len()).finish()
    }
}

// === impl LabelledR1cs ===

impl<F: PrimeField> LabelledR1cs<F> {
    /// `system` with a default header: all public inputs are inputs, none outputs; the witness is all
    /// intermediate; each wire is its own label. `None` if `F` is not a [`ScalarField`].
    pub fn plain(system: R1cs<F>) -> Option<Self> {
        // An R1cs has no more of anything than 32 bits count.
        let wires = system.num_variables();
        let header = R1csHeader {
            prime: ScalarField::of::<F>()?,
            n_wires: wires as u32,
            n_pub_out: 0,
            n_pub_in: system.num_instance() as u32 - 1,
            n_prv_in: 0,
            n_labels: wires as u64,
            n_constraints: system.num_constraints() as u32,
        };
        let labels = (0..wires as u64).collect();
        Some(Self {
            header,
            system,
            labels,
        })
    }
}

/// Writes a `.r1cs` file, its sections in circom's order, the terms of each linear combination by
/// wire. A file of circom's is written again byte for byte if it has its terms in that order too; it
/// has not where the compiler substituted signals and numbered the wires afterwards, and the files
/// then differ in that order alone.
///
/// # Errors
///
/// Those of `out`.
pub fn write_r1cs<F: PrimeField, W: Write + Seek>(
    out: W,
    circuit: &LabelledR1cs<F>,
) -> io::Result<W> {
    let LabelledR1cs {
        header,
        system,
        labels,
    } = circuit;
    let coefficients: Vec<Vec<u8>> = system
        .coefficients()
        .iter()
        .map(|value| value.into_bigint().to_bytes_le())
        .collect();
    let mut out = ContainerWriter::new(out, &R1CS_FORMAT)?;
    out.begin(CONSTRAINTS)?;
    let mut row = Vec::new();
    for constraint in 0..system.num_constraints() {
        row.clear();
        for matrix in system.matrices() {
            let count = matrix.row(constraint).count() as u32;
            row.extend_from_slice(&count.to_le_bytes());
            for (column, coefficient) in matrix.row(constraint) {
                row.extend_from_slice(&(column as u32).to_le_bytes());
                row.extend_from_slice(&coefficients[coefficient]);
            }
        }
        out.write_all(&row)?;
    }
    out.end()?;
    out.begin(HEADER)?;
    header.write(&mut out)?;
    out.end()?;
    out.begin(LABELS)?;
    for label in labels {
        out.write_all(&label.to_le_bytes())?;
    }
    out.end()?;
    out.finish()
}
