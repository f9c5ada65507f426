//! Writing a key.

use std::io::{self, Seek, Write};
use std::path::Path;

use ark_ff::{BigInteger, PrimeField};
use proofmill_files::{FileError, Visibility, write_whole};
use proofmill_r1cs::iden3::{ContainerWriter, MontgomeryField, width};
use rayon::prelude::*;

use super::file::montgomery_r;
use super::format::{
    A, B_G1, B_G2, C, COEFFICIENTS, CONTRIBUTIONS, GROTH16, GROTH16_HEADER, H, HEADER, IC,
    ZKEY_FORMAT,
};
use super::points::{point_bytes, write_points};
use super::{CoefficientMatrix, Zkey};
use crate::{PointGroup, SnarkCurve};

/// Number of points or coefficients that one task encodes.
const CHUNK_ITEMS: usize = 1 << 12;
/// Number of chunks that are encoded before they are written: the most in memory at a time.
const CHUNKS_IN_MEMORY: usize = 16;

impl<E: SnarkCurve> Zkey<E> {
    /// Writes the key to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if the file system refuses, or as for [`write`](Self::write).
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        write_whole(path, Visibility::Public, |file| {
            self.write(file).map(|_| ())
        })
    }

    /// Writes the key, its sections in their [`order`](Self::order): a key that was read is written
    /// back byte for byte.
    ///
    /// # Errors
    ///
    /// Those of `out`; [`io::ErrorKind::InvalidInput`] if [`check`](Self::check) refuses the key.
    pub fn write<W: Write + Seek>(&self, out: W) -> io::Result<W> {
        self.check()
            .map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        let mut writer = ContainerWriter::new(out, &ZKEY_FORMAT)?;
        for kind in &self.order {
            if *kind == CONTRIBUTIONS && self.contributions.is_none() {
                continue;
            }
            writer.begin(*kind)?;
            self.write_section(*kind, &mut writer)?;
            writer.end()?;
        }
        writer.finish()
    }

    fn write_section(&self, kind: u32, out: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        match kind {
            HEADER => bytes.extend(GROTH16.to_le_bytes()),
            GROTH16_HEADER => self.write_header(&mut bytes),
            IC => return write_query(&self.ic, out),
            COEFFICIENTS => return self.write_coefficients(out),
            A => return write_query(&self.a, out),
            B_G1 => return write_query(&self.b_g1, out),
            B_G2 => return write_query(&self.b_g2, out),
            C => return write_query(&self.c, out),
            H => return write_query(&self.h, out),
            CONTRIBUTIONS => {
                if let Some(contributions) = &self.contributions {
                    contributions.write(&mut bytes);
                }
            }
            _ => {}
        }
        out.write_all(&bytes)
    }

    fn write_header(&self, out: &mut Vec<u8>) {
        write_prime::<E::BaseField>(out);
        write_prime::<E::ScalarField>(out);
        for count in [self.a.len() as u32, self.public, self.h.len() as u32] {
            out.extend(count.to_le_bytes());
        }
        write_points(&[self.alpha_g1, self.beta_g1], out);
        write_points(&[self.beta_g2, self.gamma_g2], out);
        write_points(&[self.delta_g1], out);
        write_points(&[self.delta_g2], out);
    }

    fn write_coefficients(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&(self.coefficients.len() as u32).to_le_bytes())?;
        let r = montgomery_r::<E::ScalarField>();
        let size = 12 + width::<E::ScalarField>();
        write_in_chunks(&self.coefficients, size, out, |coefficient, bytes| {
            let matrix: u32 = match coefficient.matrix {
                CoefficientMatrix::A => 0,
                CoefficientMatrix::B => 1,
            };
            for number in [matrix, coefficient.row, coefficient.variable] {
                bytes.extend(number.to_le_bytes());
            }
            (coefficient.value * r).write_montgomery_le(bytes);
        })
    }
}

fn write_prime<F: PrimeField>(out: &mut Vec<u8>) {
    out.extend((width::<F>() as u32).to_le_bytes());
    out.extend(F::MODULUS.to_bytes_le());
}

fn write_query<P: PointGroup>(points: &[P], out: &mut impl Write) -> io::Result<()> {
    let size = point_bytes::<P>();
    write_in_chunks(points, size, out, |point, bytes| {
        write_points(std::slice::from_ref(point), bytes);
    })
}

/// Writes items that are encoded in parallel, `size` bytes each.
fn write_in_chunks<T: Sync>(
    items: &[T],
    size: usize,
    out: &mut impl Write,
    encode: impl Fn(&T, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    for items in items.chunks(CHUNKS_IN_MEMORY * CHUNK_ITEMS) {
        let chunks: Vec<Vec<u8>> = items
            .par_chunks(CHUNK_ITEMS)
            .map(|items| {
                let mut bytes = Vec::with_capacity(items.len() * size);
                items.iter().for_each(|item| encode(item, &mut bytes));
                bytes
            })
            .collect();
        for chunk in chunks {
            out.write_all(&chunk)?;
        }
    }
    Ok(())
}
