//! The record of a ceremony's contributions in a key.

use std::fmt;

use blake2::{Blake2b512, Digest};
use proofmill_r1cs::iden3::{Cursor, FormatError, Reason};

use super::points::{point_bytes, read_points, write_points};
use crate::snarkjs::point_bytes::uncompressed_bytes;
use crate::{PointCheck, PointGroup, SnarkCurve};

/// A lower bound on the bytes of a contribution's parameters.
const MIN_PARAMETERS: usize = 64 + 4 + 4;

const NAME: u8 = 1;
const ITERATIONS: u8 = 2;
const BEACON: u8 = 3;

/// The content of section 10: the record of the ceremony.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contributions<E: SnarkCurve> {
    /// Blake2b-512 of the key before the first contribution.
    pub circuit_hash: [u8; 64],
    /// The contributions, in order.
    pub list: Vec<Contribution<E>>,
}

/// A contribution of the second phase. Its content in the file, with x the contributor's secret:
///
/// * the points δ, s, s·x and H(transcript)·x;
/// * the transcript's hash (64 bytes);
/// * the kind (u32);
/// * the length of the parameters in bytes (u32);
/// * the parameters, each after its number (u8), in ascending order: 1, a name (length as u8, then the bytes); 2, the
///   logarithm of the beacon's iterations (u8); 3, the beacon (length as u8, then the bytes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution<E: SnarkCurve> {
    /// δ in the first group, after the contribution.
    pub delta_after: E::G1Affine,
    /// A random point of the first group.
    pub s: E::G1Affine,
    /// The point `s` times the contributor's secret.
    pub s_x: E::G1Affine,
    /// A point of the second group that follows from the transcript, times the secret.
    pub sp_x: E::G2Affine,
    /// Hash of the circuit, of the earlier contributions, and of `s` and `s_x`.
    pub transcript: [u8; 64],
    /// Origin of the secret: 0 a contributor, 1 a random beacon.
    pub kind: u32,
    /// The contributor's name, if there is one; any bytes.
    pub name: Option<Vec<u8>>,
    /// The base-two logarithm of the number of iterations, for a beacon.
    pub log_iterations: Option<u8>,
    /// The beacon's value, for a beacon.
    pub beacon: Option<Vec<u8>>,
}

/// A hash of 64 bytes. It is shown as snarkjs shows it: 16 groups of 8 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ContributionHash(pub [u8; 64]);

// === impl Contributions ===

impl<E: SnarkCurve> Contributions<E> {
    pub(super) fn read(mut cursor: Cursor<'_>, check: PointCheck) -> Result<Self, FormatError> {
        let circuit_hash = cursor.array()?;
        let start = cursor.offset();
        let count = cursor.u32()?;
        let bytes_min =
            3 * point_bytes::<E::G1Affine>() + point_bytes::<E::G2Affine>() + MIN_PARAMETERS;
        if count as usize > cursor.remaining() / bytes_min {
            let reason = Reason::Truncated {
                needed: u64::from(count) * bytes_min as u64,
                left: cursor.remaining() as u64,
            };
            return Err(cursor.error_at(start, reason));
        }
        let list = (0..count)
            .map(|_| Contribution::read(&mut cursor, check))
            .collect::<Result<_, _>>()?;
        cursor.finish()?;
        Ok(Self { circuit_hash, list })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.circuit_hash);
        out.extend((self.list.len() as u32).to_le_bytes());
        self.list
            .iter()
            .for_each(|contribution| contribution.write(out));
    }
}

// === impl Contribution ===

impl<E: SnarkCurve> Contribution<E> {
    /// The contribution hash that snarkjs prints: Blake2b-512 of the uncompressed points and the transcript.
    pub fn hash(&self) -> ContributionHash {
        let mut hasher = Blake2b512::new();
        hasher.update(uncompressed_bytes(&[self.delta_after, self.s, self.s_x]));
        hasher.update(uncompressed_bytes(&[self.sp_x]));
        hasher.update(self.transcript);
        ContributionHash(hasher.finalize().into())
    }

    fn read(cursor: &mut Cursor<'_>, check: PointCheck) -> Result<Self, FormatError> {
        fn read_point<P: PointGroup>(
            cursor: &mut Cursor<'_>,
            check: PointCheck,
        ) -> Result<P, FormatError> {
            Ok(read_points(cursor, 1, check, None)?
                .pop()
                .unwrap_or_default())
        }
        let mut contribution = Self {
            delta_after: read_point(cursor, check)?,
            s: read_point(cursor, check)?,
            s_x: read_point(cursor, check)?,
            sp_x: read_point(cursor, check)?,
            transcript: cursor.array()?,
            kind: cursor.u32()?,
            name: None,
            log_iterations: None,
            beacon: None,
        };
        let length = cursor.u32()? as usize;
        let left = cursor.remaining();
        if length > left {
            let (needed, left) = (length as u64, left as u64);
            return Err(cursor.error(Reason::Truncated { needed, left }));
        }
        let end = cursor.position() + length;
        let mut last = 0;
        while cursor.position() < end {
            let start = cursor.offset();
            let [number] = cursor.array()?;
            let inconsistent = |reason: &'static str| Reason::Inconsistent(reason.into());
            if number <= last {
                return Err(cursor.error_at(start, inconsistent("parameters out of order")));
            }
            last = number;
            match number {
                NAME => contribution.name = Some(read_short(cursor)?),
                ITERATIONS => contribution.log_iterations = Some(cursor.array::<1>()?[0]),
                BEACON => contribution.beacon = Some(read_short(cursor)?),
                _ => {
                    return Err(cursor.error_at(start, inconsistent("a parameter of unknown kind")));
                }
            }
            if cursor.position() > end {
                let reason = inconsistent("parameters longer than they are said to be");
                return Err(cursor.error_at(start, reason));
            }
        }
        Ok(contribution)
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_points(&[self.delta_after, self.s, self.s_x], out);
        write_points(&[self.sp_x], out);
        out.extend(self.transcript);
        out.extend(self.kind.to_le_bytes());
        let mut parameters = Vec::new();
        write_short(NAME, self.name.as_deref(), &mut parameters);
        if let Some(log) = self.log_iterations {
            parameters.extend([ITERATIONS, log]);
        }
        write_short(BEACON, self.beacon.as_deref(), &mut parameters);
        out.extend((parameters.len() as u32).to_le_bytes());
        out.extend(parameters);
    }
}

/// Reads the value of a parameter whose length is one byte.
fn read_short(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, FormatError> {
    let [length] = cursor.array()?;
    Ok(cursor.bytes(length.into())?.to_vec())
}

/// Appends a parameter whose length is one byte; a longer value is cut to 255 bytes.
fn write_short(number: u8, bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(bytes) = bytes {
        let bytes = &bytes[..bytes.len().min(255)];
        out.extend([number, bytes.len() as u8]);
        out.extend(bytes);
    }
}

// === impl ContributionHash ===

impl fmt::Display for ContributionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.0.chunks(4).enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            f.write_str(&hex::encode(group))?;
        }
        Ok(())
    }
}

impl fmt::Debug for ContributionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
