//! The binary files of iden3's tools, circom and snarkjs.
//!
//! All of them (`.r1cs`, `.wtns`, `.zkey`, `.ptau`) are one container: a magic word, a version, and
//! numbered sections. [`Container`] reads it from bytes, [`Cursor`] reads within a section,
//! [`ContainerWriter`] writes it.
//! [`R1csFile`] and [`WtnsFile`] read circuits and witnesses, [`write_r1cs`] and [`write_wtns`] write
//! them. A reader of a format consists of a [`Format`] and code for its sections; its errors are
//! [`FormatError`]s, which name the section and the offset in the file.
//!
//! Layout, from snarkjs's `binfileutils` and circom's `binary-format` documents; little-endian:
//!
//! ```text
//! magic (4 bytes) | version (u32) | number of sections (u32)
//! then each section: kind (u32) | length of its content (u64) | content
//! ```

mod container;
mod cursor;
mod error;
mod field;
mod prime;
mod r1cs_file;
mod wtns_file;

pub use container::{Container, ContainerWriter, Format, MAX_SECTIONS};
pub use cursor::Cursor;
pub use error::{FormatError, ReadError, Reason};
pub use field::{MontgomeryField, SCALAR_BYTES, canonical_from_le, width};
pub use prime::ScalarField;
pub use r1cs_file::{LabelledR1cs, R1CS_FORMAT, R1csFile, R1csHeader, Terms, write_r1cs};
pub use wtns_file::{WTNS_FORMAT, Witness, WtnsFile, WtnsHeader, write_wtns};
