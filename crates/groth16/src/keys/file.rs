//! Key files.
//!
//! Little-endian throughout; points are uncompressed:
//!
//! | content | bytes |
//! |---|---|
//! | magic `PMILLKEY` | 8 |
//! | version | 4 |
//! | kind: 1 proving key, 2 verifying key; 3 and 4 are [`mirage`](crate::mirage)'s, which have another body | 4 |
//! | curve, padded with zeros | 16 |
//! | SHA-256 of the circuit | 32 |
//! | lengths: instance variables, variables, points of A, B, L and H; of a verifying key zeros but the first | 6 × 8 |
//! | α₁ β₂ γ₂ δ₂ and the instance's points | |
//! | of a proving key, β₁ δ₁ | |
//! | of a proving key, A, B (both groups) and L, each after the indices of its variables (4 bytes each); and H | |
//! | SHA-256 of all that precedes | 32 |

mod info;
mod prefix;
mod sections;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofmill_files::{FileError, MappedFile, Visibility, write_whole};
use sha2::{Digest, Sha256};

pub use info::ProvingKeyInfo;
use prefix::VERSION;
pub(crate) use prefix::{PREFIX_BYTES, little_endian, read_prefix, write_prefix};
pub(crate) use sections::Sections;

use crate::keys::encoding::{READING_WINDOW_BYTES, uncompressed_size, write_points};
use crate::keys::key::{ProvingKey, VerifyingKey};
use crate::keys::mapped_points::MappedPoints;
use crate::{InsecureKey, PointCheck, SnarkCurve};

/// The largest key file that is read: 64 GiB.
pub const MAX_KEY_BYTES: u64 = 1 << 36;

/// The number of lengths in a head.
const LENGTHS: usize = 6;
const HEAD_BYTES: usize = PREFIX_BYTES + 32 + 8 * LENGTHS;
pub(crate) const CHECKSUM_BYTES: usize = 32;

/// A key file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: std::io::Error,
    },
    /// The file does not begin with the magic of a key file.
    #[error("not a Proofmill key file")]
    Magic,
    /// The file is of a version that this program does not read.
    #[error(
        "key file version {found}: this program reads version {VERSION}; generate the key again"
    )]
    Version {
        /// The file's version.
        found: u32,
    },
    /// The file holds another kind of key.
    #[error(
        "key kind {found}, not {expected} (1 is a proving key, 2 a verifying key; 3 and 4 are Mirage's)"
    )]
    Kind {
        /// The kind expected.
        expected: u32,
        /// The file's kind.
        found: u32,
    },
    /// The key is for another curve.
    #[error("a key for another curve than {expected}")]
    Curve {
        /// The curve expected.
        expected: &'static str,
    },
    /// The lengths in the head do not match the file's size.
    #[error("a key of {found} bytes whose head asks for {expected}: cut short or corrupt")]
    Length {
        /// Bytes that follow from the head; `u64::MAX` if no file can have that many.
        expected: u64,
        /// The bytes there are.
        found: u64,
    },
    /// The lengths in the head contradict each other.
    #[error("the key's lengths contradict each other")]
    Lengths,
    /// The checksum does not match.
    #[error("the key's checksum does not match: the file is corrupt")]
    Checksum,
    /// A point is malformed, off its curve or outside its group.
    #[error("the key's {section} holds what is not a point of its group")]
    Point {
        /// Name of the section.
        section: &'static str,
    },
    /// A query's variables are not ascending, or beyond the circuit's.
    #[error("the key's {section} names variables out of order or range")]
    Index {
        /// Name of the section.
        section: &'static str,
    },
    /// The key is for another circuit.
    #[error("the key is for another circuit")]
    Circuit,
    /// Proofs under the key prove nothing.
    #[error(transparent)]
    Insecure(#[from] InsecureKey),
}

/// A proving key whose query points stay in the mapped file.
pub(crate) struct MappedKey<E: SnarkCurve> {
    pub(crate) vk: VerifyingKey<E>,
    pub(crate) variables: usize,
    pub(crate) beta_g1: E::G1Affine,
    pub(crate) delta_g1: E::G1Affine,
    pub(crate) a_indices: Vec<u32>,
    pub(crate) a: MappedPoints<E::G1>,
    pub(crate) b_indices: Vec<u32>,
    pub(crate) b_g1: MappedPoints<E::G1>,
    pub(crate) b_g2: MappedPoints<E::G2>,
    pub(crate) l_indices: Vec<u32>,
    pub(crate) l: MappedPoints<E::G1>,
    pub(crate) h: MappedPoints<E::G1>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Proving = 1,
    Verifying = 2,
}

/// A head whose lengths are consistent and match the size of the file; `a` to `h` are the points of each query.
struct Head {
    circuit: [u8; 32],
    instance: usize,
    variables: usize,
    a: usize,
    b: usize,
    l: usize,
    h: usize,
}

// === impl Head ===

impl Head {
    fn write<E: SnarkCurve>(&self, kind: Kind, out: &mut Vec<u8>) {
        write_prefix::<E>(kind as u32, out);
        out.extend(self.circuit);
        for length in [
            self.instance,
            self.variables,
            self.a,
            self.b,
            self.l,
            self.h,
        ] {
            out.extend((length as u64).to_le_bytes());
        }
    }

    /// Reads a head and compares the size that follows from it with the file's `total` size, so that no more is
    /// allocated than the file holds.
    fn read<E: SnarkCurve>(bytes: &[u8], kind: Kind, total: u64) -> Result<Self, KeyError> {
        let lengths = read_prefix::<E>(kind as u32, bytes, HEAD_BYTES, total)?;
        let (circuit, lengths) = lengths.split_at(32);
        let mut numbers = [0; LENGTHS];
        for (number, bytes) in numbers.iter_mut().zip(lengths.chunks_exact(8)) {
            // Indices are of 32 bits, so no length may exceed them.
            *number = u32::try_from(little_endian(bytes)).map_err(|_| KeyError::Lengths)? as usize;
        }
        let [instance, variables, a, b, l, h] = numbers;
        let mut head = Self {
            circuit: [0; 32],
            instance,
            variables,
            a,
            b,
            l,
            h,
        };
        head.circuit.copy_from_slice(circuit);
        let possible = instance >= 1
            && match kind {
                Kind::Proving => {
                    variables >= instance && a.max(b).max(l) <= variables && h.is_power_of_two()
                }
                Kind::Verifying => [variables, a, b, l, h] == [0; 5],
            };
        if !possible {
            return Err(KeyError::Lengths);
        }
        let expected = head.file_size::<E>(kind);
        if expected != total {
            return Err(KeyError::Length {
                expected,
                found: total,
            });
        }
        Ok(head)
    }

    fn file_size<E: SnarkCurve>(&self, kind: Kind) -> u64 {
        let [g1, g2] = [
            uncompressed_size::<E::G1Affine>(),
            uncompressed_size::<E::G2Affine>(),
        ]
        .map(|size| size as u64);
        // Every count is below 2³²: no sum or product comes near 2⁶⁴.
        let [instance, a, b, l, h] =
            [self.instance, self.a, self.b, self.l, self.h].map(|n| n as u64);
        let vk = g1 + 3 * g2 + instance * g1;
        let pk = match kind {
            Kind::Verifying => 0,
            Kind::Proving => 2 * g1 + a * (4 + g1) + b * (4 + g1 + g2) + l * (4 + g1) + h * g1,
        };
        (HEAD_BYTES + CHECKSUM_BYTES) as u64 + vk + pk
    }
}

/// Splits off and checks the checksum; returns the body after the head. Pages of `mapped` that were read are
/// released.
fn checked_body<'a>(bytes: &'a [u8], mapped: Option<&MappedFile>) -> Result<&'a [u8], KeyError> {
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    let mut hasher = Sha256::new();
    for window in content.chunks(READING_WINDOW_BYTES) {
        hasher.update(window);
        if let Some(file) = mapped {
            file.release(window);
        }
    }
    if hasher.finalize().as_slice() != checksum {
        return Err(KeyError::Checksum);
    }
    Ok(&content[HEAD_BYTES..])
}

fn append_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = Sha256::digest(&bytes);
    bytes.extend(checksum);
    bytes
}

// === impl VerifyingKey ===

impl<E: SnarkCurve> VerifyingKey<E> {
    /// The key as a key file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = Head {
            circuit: self.circuit,
            instance: self.instance.len(),
            variables: 0,
            a: 0,
            b: 0,
            l: 0,
            h: 0,
        };
        let mut out = Vec::with_capacity(head.file_size::<E>(Kind::Verifying) as usize);
        head.write::<E>(Kind::Verifying, &mut out);
        self.write_points(&mut out);
        append_checksum(out)
    }

    /// Decodes an untrusted verifying key: all its points are checked.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let head = Head::read::<E>(bytes, Kind::Verifying, bytes.len() as u64)?;
        Sections {
            rest: checked_body(bytes, None)?,
            validate: true,
            mapped: None,
        }
        .verifying_key(&head)
    }

    /// Writes the key to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`KeyError::Io`] if the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        save(path, &self.to_bytes())
    }

    /// Reads an untrusted key file.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file or it is no verifying key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        Self::from_bytes(&open(path)?)
    }

    fn write_points(&self, out: &mut Vec<u8>) {
        write_points(&[self.alpha_g1], out);
        write_points(&[self.beta_g2, self.gamma_g2, self.delta_g2], out);
        write_points(&self.instance, out);
    }
}

// === impl ProvingKey ===

impl<E: SnarkCurve> ProvingKey<E> {
    /// The key as a key file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = Head {
            circuit: self.vk.circuit,
            instance: self.vk.instance.len(),
            variables: self.variables,
            a: self.a.points.len(),
            b: self.b_g1.points.len(),
            l: self.l.points.len(),
            h: self.h.len(),
        };
        let mut out = Vec::with_capacity(head.file_size::<E>(Kind::Proving) as usize);
        head.write::<E>(Kind::Proving, &mut out);
        self.vk.write_points(&mut out);
        write_points(&[self.beta_g1, self.delta_g1], &mut out);
        for (query, more) in [
            (&self.a, &[][..]),
            (&self.b_g1, &self.b_g2[..]),
            (&self.l, &[][..]),
        ] {
            out.extend(query.indices.iter().flat_map(|index| index.to_le_bytes()));
            write_points(&query.points, &mut out);
            write_points(more, &mut out);
        }
        write_points(&self.h, &mut out);
        append_checksum(out)
    }

    /// Decodes a proving key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8], check: PointCheck) -> Result<Self, KeyError> {
        Self::read(bytes, check, None)
    }

    /// Decodes a proving key; `bytes` may be those of a file that is mapped, or a part of them.
    pub(crate) fn read(
        bytes: &[u8],
        check: PointCheck,
        mapped: Option<&MappedFile>,
    ) -> Result<Self, KeyError> {
        let head = Head::read::<E>(bytes, Kind::Proving, bytes.len() as u64)?;
        let mut sections = Sections {
            rest: checked_body(bytes, mapped)?,
            validate: check == PointCheck::Full,
            mapped,
        };
        let vk = sections.verifying_key(&head)?;
        Ok(Self {
            vk,
            variables: head.variables,
            beta_g1: sections.point("beta in the first group")?,
            delta_g1: sections.point("delta in the first group")?,
            a: sections.query(head.a, head.variables, "A query")?,
            b_g1: sections.query(head.b, head.variables, "B query")?,
            b_g2: sections.points(head.b, "B query in the second group")?,
            l: sections.query(head.l, head.variables, "L query")?,
            h: sections.points(head.h, "H query")?,
        })
    }

    /// Writes the key to a file atomically, readable by its owner only.
    ///
    /// # Errors
    ///
    /// [`KeyError::Io`] if the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        save(path, &self.to_bytes())
    }

    /// Reads a key file. A large one is mapped, and at most [`READING_WINDOW_BYTES`] bytes of it are in memory
    /// at once beside the key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file, it is no proving key, or the file changes while it is read.
    pub fn load(path: &Path, check: PointCheck) -> Result<Self, KeyError> {
        read_unchanged(path, &open(path)?, |file| {
            Self::read(file, check, Some(file))
        })
    }

    /// Like [`load`](Self::load), but only if the file has a known checksum, such as that of a file whose points
    /// were checked before; a file replaced since is refused.
    ///
    /// # Errors
    ///
    /// [`KeyError::Checksum`] for another checksum; otherwise as for [`load`](Self::load).
    pub fn load_known(
        path: &Path,
        check: PointCheck,
        checksum: &[u8; CHECKSUM_BYTES],
    ) -> Result<Self, KeyError> {
        read_unchanged(path, &open_known(path, checksum)?, |file| {
            Self::read(file, check, Some(file))
        })
    }

    /// Reads the verifying key in a proving key's file, and no more of it: its points are checked, the
    /// checksum is not.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file or it is no proving key.
    pub fn load_verifying_key(path: &Path) -> Result<VerifyingKey<E>, KeyError> {
        Self::verifying_key_in(&open(path)?)
    }

    /// Reads the verifying key in the content of a proving key's file, as [`load_verifying_key`](Self::load_verifying_key).
    pub(crate) fn verifying_key_in(bytes: &[u8]) -> Result<VerifyingKey<E>, KeyError> {
        let (head, mut sections) = Self::unchecked_sections(bytes)?;
        sections.verifying_key(&head)
    }

    /// The head and the body of a proving key's file, whose points are to be checked as its checksum is not.
    fn unchecked_sections(bytes: &[u8]) -> Result<(Head, Sections<'_>), KeyError> {
        let head = Head::read::<E>(bytes, Kind::Proving, bytes.len() as u64)?;
        let sections = Sections {
            rest: &bytes[HEAD_BYTES..],
            validate: true,
            mapped: None,
        };
        Ok((head, sections))
    }

    /// The verifying key, and β and δ in the first group, in the content of a proving key's file: points are checked,
    /// the checksum is not.
    pub(crate) fn points_before_queries(
        bytes: &[u8],
    ) -> Result<(VerifyingKey<E>, [E::G1Affine; 2]), KeyError> {
        let (head, mut sections) = Self::unchecked_sections(bytes)?;
        let vk = sections.verifying_key(&head)?;
        let beta_g1 = sections.point("beta in the first group")?;
        Ok((vk, [beta_g1, sections.point("delta in the first group")?]))
    }
}

// === impl MappedKey ===

impl<E: SnarkCurve> MappedKey<E> {
    /// Reads the proving key in the range `bytes` of `file`. The points of its queries stay in the file, and are not
    /// checked, as with [`PointCheck::Skip`].
    ///
    /// # Errors
    ///
    /// [`KeyError`] for bytes of no proving key.
    pub(crate) fn read(file: &Arc<MappedFile>, bytes: Range<usize>) -> Result<Self, KeyError> {
        let bytes = &file[bytes];
        let head = Head::read::<E>(bytes, Kind::Proving, bytes.len() as u64)?;
        let mut sections = Sections {
            rest: checked_body(bytes, Some(file))?,
            validate: false,
            mapped: Some(file),
        };
        let vk = sections.verifying_key(&head)?;
        let beta_g1 = sections.point("beta in the first group")?;
        let delta_g1 = sections.point("delta in the first group")?;
        let a_indices = sections.indices(head.a, head.variables, "A query")?;
        let a = sections.mapped_points(head.a, file, "A query")?;
        let b_indices = sections.indices(head.b, head.variables, "B query")?;
        let b_g1 = sections.mapped_points(head.b, file, "B query")?;
        let b_g2 = sections.mapped_points(head.b, file, "B query in the second group")?;
        let l_indices = sections.indices(head.l, head.variables, "L query")?;
        let l = sections.mapped_points(head.l, file, "L query")?;
        let h = sections.mapped_points(head.h, file, "H query")?;
        Ok(Self {
            vk,
            variables: head.variables,
            beta_g1,
            delta_g1,
            a_indices,
            a,
            b_indices,
            b_g1,
            b_g2,
            l_indices,
            l,
            h,
        })
    }
}

/// Opens a key file of at most [`MAX_KEY_BYTES`].
pub(crate) fn open(path: &Path) -> Result<MappedFile, KeyError> {
    let file = MappedFile::open(path).map_err(|error| io_error(path, error))?;
    let found = file.len() as u64;
    if found > MAX_KEY_BYTES {
        return Err(KeyError::Length {
            expected: MAX_KEY_BYTES,
            found,
        });
    }
    Ok(file)
}

/// Opens a key file that must end with this checksum.
pub(crate) fn open_known(
    path: &Path,
    checksum: &[u8; CHECKSUM_BYTES],
) -> Result<MappedFile, KeyError> {
    let file = open(path)?;
    match file.ends_with(checksum) {
        true => Ok(file),
        false => Err(KeyError::Checksum),
    }
}

/// Reads a key, and then checks that the file did not change meanwhile: otherwise the points might come from other
/// content than the one that matched the checksum.
pub(crate) fn read_unchanged<K>(
    path: &Path,
    file: &MappedFile,
    read: impl FnOnce(&MappedFile) -> Result<K, KeyError>,
) -> Result<K, KeyError> {
    let key = read(file)?;
    file.check_unchanged()
        .map_err(|error| io_error(path, error))?;
    Ok(key)
}

pub(crate) fn io_error(path: &Path, error: FileError) -> KeyError {
    let (path, source) = match error {
        FileError::Io { path, source } => (path, source),
        other => (path.to_owned(), std::io::Error::other(other)),
    };
    KeyError::Io { path, source }
}

/// Writes a key, readable by its owner only.
fn save(path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
    write_whole(path, Visibility::Private, |file| file.write_all(bytes))
        .map_err(|error| io_error(path, error))
}
