//! Writing a key.

use std::io::{self, Seek, Write};
use std::path::Path;

use ark_ff::{BigInteger, PrimeField};
use proofmill_files::{FileError, Visibility, write_whole};
use proofmill_r1cs::iden3::{ContainerWriter, MontgomeryField, width};
use rayon::prelude::*;

use super::file::r;
use super::format::{
    A, B_G1, B_G2, C, COEFFICIENTS, CONTRIBUTIONS, GROTH16, GROTH16_HEADER, H, HEADER, IC,
    ZKEY_FORMAT,
};
use super::points::{point_bytes, write_points};
use super::{CoefficientMatrix, Zkey};
use crate::{PointGroup, SnarkCurve};

/// Points or coefficients that one task encodes.
const CHUNK: usize = 1 << 12;
/// Chunks encoded in memory at a time.
const AHEAD: usize = 16;

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
    /// Those of `out`; [`io::ErrorKind::InvalidInput`] if the parts do not make a key: numbers of
    /// points that contradict each other, or more than 32 bits count.
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
            IC => return points(&self.ic, out),
            COEFFICIENTS => return self.write_coefficients(out),
            A => return points(&self.a, out),
            B_G1 => return points(&self.b_g1, out),
            B_G2 => return points(&self.b_g2, out),
            C => return points(&self.c, out),
            H => return points(&self.h, out),
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
        prime::<E::BaseField>(out);
        prime::<E::ScalarField>(out);
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
        let r = r::<E::ScalarField>();
        let size = 12 + width::<E::ScalarField>();
        in_chunks(&self.coefficients, size, out, |coefficient, bytes| {
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

fn prime<F: PrimeField>(out: &mut Vec<u8>) {
    out.extend((width::<F>() as u32).to_le_bytes());
    out.extend(F::MODULUS.to_bytes_le());
}

fn points<P: PointGroup>(points: &[P], out: &mut impl Write) -> io::Result<()> {
    let size = point_bytes::<P>();
    in_chunks(points, size, out, |point, bytes| {
        write_points(std::slice::from_ref(point), bytes);
    })
}

/// Writes items, which are encoded in parallel.
fn in_chunks<T: Sync>(
    items: &[T],
    size: usize,
    out: &mut impl Write,
    convert: impl Fn(&T, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    for items in items.chunks(AHEAD * CHUNK) {
        let chunks: Vec<Vec<u8>> = items
            .par_chunks(CHUNK)
            .map(|items| {
                let mut bytes = Vec::with_capacity(items.len() * size);
                items.iter().for_each(|item| convert(item, &mut bytes));
                bytes
            })
            .collect();
        for chunk in chunks {
            out.write_all(&chunk)?;
        }
    }
    Ok(())
}
