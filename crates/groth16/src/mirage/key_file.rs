//! Files of Mirage's keys. Little-endian; points are uncompressed:
//!
//! | content | bytes |
//! |---|---|
//! | magic, version, kind and curve, as in other key files; the kind is 3 (proving key) or 4 (verifying key) | 32 |
//! | number of committed variables | 8 |
//! | η₂; of a proving key also η₁ and the points of committed variables | |
//! | plain key: the whole content of its file | |
//! | SHA-256 of all bytes before the plain key and of the plain key's own checksum | 32 |

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use ark_ec::{AffineRepr, CurveGroup};
use proofmill_files::{MappedFile, Visibility, write_whole};
use proofmill_kernels::pairing::product_is_one;
use proofmill_r1cs::R1cs;
use sha2::{Digest, Sha256};

use super::{CommitmentKey, ProvingKey, ResidentKey, VerifyingKey};
use crate::keys::bases::HeldBases;
use crate::keys::encoding::{uncompressed_size, write_points};
use crate::keys::file::{
    CHECKSUM_BYTES, MappedKey, PREFIX_BYTES, Sections, io_error, little_endian, open, open_known,
    read_prefix, read_unchanged, write_prefix,
};
use crate::{KeyError, PointCheck, SnarkCurve};

const PROVING: u32 = 3;
const VERIFYING: u32 = 4;
const HEAD_BYTES: usize = PREFIX_BYTES + 8;

/// The head of a proving key's file, which is read without reading any point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvingKeyInfo {
    /// The number of committed variables.
    pub committed: usize,
    /// The head of the plain Groth16 key inside the file.
    pub plain: crate::ProvingKeyInfo,
    /// The bytes of the file.
    pub file_bytes: u64,
    /// The file's own checksum, which loading the key compares with the content.
    pub checksum: [u8; CHECKSUM_BYTES],
}

/// The sections of a file whose head was checked. `Parts::read` checks the checksum too,
/// `Parts::split` does not.
struct Parts<'a> {
    /// The number of committed variables.
    committed: usize,
    /// The encoded points of Mirage, η₂ first.
    mirage_points: &'a [u8],
    /// The content of the plain key's file.
    plain: &'a [u8],
    /// All bytes before the plain key.
    before_plain: &'a [u8],
    checksum: &'a [u8],
}

// === impl Parts ===

impl<'a> Parts<'a> {
    fn read<E: SnarkCurve>(bytes: &'a [u8], kind: u32) -> Result<Self, KeyError> {
        let parts = Self::split::<E>(bytes, kind)?;
        if checksum_of(parts.before_plain, parts.plain) != parts.checksum {
            return Err(KeyError::Checksum);
        }
        Ok(parts)
    }

    fn split<E: SnarkCurve>(bytes: &'a [u8], kind: u32) -> Result<Self, KeyError> {
        let total = bytes.len() as u64;
        let count = read_prefix::<E>(kind, bytes, HEAD_BYTES, total)?;
        let committed = u32::try_from(little_endian(count)).map_err(|_| KeyError::Lengths)?;
        // No overflow: the count is below 2³². The plain key's own head is checked when it is read.
        let [g1, g2] = [
            uncompressed_size::<E::G1Affine>(),
            uncompressed_size::<E::G2Affine>(),
        ]
        .map(|size| size as u64);
        let mirage_bytes = match kind {
            PROVING => g2 + g1 + u64::from(committed) * g1,
            _ => g2,
        };
        let total_min = HEAD_BYTES as u64 + mirage_bytes + 2 * CHECKSUM_BYTES as u64;
        if total < total_min {
            return Err(KeyError::Length {
                expected: total_min,
                found: total,
            });
        }
        let (before_plain, rest) = bytes.split_at(HEAD_BYTES + mirage_bytes as usize);
        let (plain, checksum) = rest.split_at(rest.len() - CHECKSUM_BYTES);
        Ok(Self {
            committed: committed as usize,
            mirage_points: &before_plain[HEAD_BYTES..],
            plain,
            before_plain,
            checksum,
        })
    }

    /// A reader of Mirage's points.
    fn sections(&self, validate: bool, mapped: Option<&'a MappedFile>) -> Sections<'a> {
        Sections {
            rest: self.mirage_points,
            validate,
            mapped,
        }
    }
}

/// The checksum over the bytes before the plain key and over the plain key's own checksum.
fn checksum_of(before_plain: &[u8], plain: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = Sha256::new();
    hasher.update(before_plain);
    hasher.update(&plain[plain.len() - CHECKSUM_BYTES..]);
    hasher.finalize().into()
}

fn head<E: SnarkCurve>(kind: u32, committed: usize) -> Vec<u8> {
    let mut head = Vec::new();
    write_prefix::<E>(kind, &mut head);
    head.extend((committed as u64).to_le_bytes());
    head
}

/// Writes the part before the plain key, that key, and the checksum.
fn write(out: &mut impl Write, before_plain: &[u8], plain: &[u8]) -> io::Result<()> {
    out.write_all(before_plain)?;
    out.write_all(plain)?;
    out.write_all(&checksum_of(before_plain, plain))
}

/// The whole content of a key file.
fn content(before_plain: &[u8], plain: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(before_plain.len() + plain.len() + CHECKSUM_BYTES);
    write(&mut bytes, before_plain, plain).expect("writing to a vector");
    bytes
}

/// Writes a key, readable by its owner only.
fn save(path: &Path, before_plain: &[u8], plain: &[u8]) -> Result<(), KeyError> {
    write_whole(path, Visibility::Private, |file| {
        write(file, before_plain, plain)
    })
    .map_err(|error| io_error(path, error))
}

// === impl ResidentKey ===

impl<E: SnarkCurve> ResidentKey<E> {
    /// A key whose points stay in its file, which takes the least memory, and its circuit. Each product decodes the
    /// points anew, [`MAPPED_WINDOW_POINTS`](crate::MAPPED_WINDOW_POINTS) at a time.
    ///
    /// The file must not be changed in place: after a write to it proofs do not verify, and if it is shortened the
    /// process is killed. Replacing it by renaming another file over it is safe.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file, it is not a proving key of Mirage, or the file changes while it is
    /// read; [`KeyError::Circuit`] if the key is for another circuit.
    pub fn map(path: &Path, r1cs: Arc<R1cs<E::ScalarField>>) -> Result<Self, KeyError> {
        let file = Arc::new(open(path)?);
        let key = read_unchanged(path, &file, |_| Self::mapped(&file, r1cs));
        file.release(&file);
        key
    }

    fn mapped(file: &Arc<MappedFile>, r1cs: Arc<R1cs<E::ScalarField>>) -> Result<Self, KeyError> {
        let parts = Parts::read::<E>(file, PROVING)?;
        if parts.committed > r1cs.num_witness() {
            return Err(KeyError::Circuit);
        }
        let start = parts.plain.as_ptr() as usize - file.as_ptr() as usize;
        let plain = MappedKey::read(file, start..start + parts.plain.len())?;
        let mut sections = parts.sections(false, Some(file));
        let eta_g2 = sections.point("eta")?;
        let eta_g1 = sections.point("eta in the first group")?;
        let committed = sections.mapped_points(parts.committed, file, "committed variables")?;
        let plain = crate::ResidentKey::mapped(plain, r1cs).map_err(|_| KeyError::Circuit)?;
        Ok(Self {
            plain: Arc::new(plain),
            committed: HeldBases::Mapped(committed),
            eta_g1,
            eta_g2,
        })
    }
}

// === impl CommitmentKey ===

impl<E: SnarkCurve> CommitmentKey<E> {
    /// Reads the commitment key in a proving key's file, and no more of it.
    ///
    /// The file's checksum is over the checksum of the plain key in it, so it is compared without reading the plain
    /// key. Of that only \[δ\]₁ is needed: e(\[δ\]₁, \[β\]₂) must be e(\[β\]₁, \[δ\]₂).
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file, it is no proving key of Mirage, or the file changes while it is read.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        read_unchanged(path, &open(path)?, |file| {
            let parts = Parts::read::<E>(file, PROVING)?;
            let (vk, points) = crate::ProvingKey::<E>::points_before_queries(parts.plain)?;
            let [beta_g1, delta_g1] = points;
            let negated = (-beta_g1.into_group()).into_affine();
            if !product_is_one::<E>(&[delta_g1, negated], &[vk.beta_g2, vk.delta_g2]) {
                let section = "delta in the first group";
                return Err(KeyError::Point { section });
            }
            let mut sections = parts.sections(false, None);
            let _: E::G2Affine = sections.point("eta")?;
            let _: E::G1Affine = sections.point("eta in the first group")?;
            Ok(Self {
                circuit: vk.circuit,
                committed: sections.points(parts.committed, "committed variables")?,
                delta_g1,
            })
        })
    }
}

// === impl ProvingKeyInfo ===

impl ProvingKeyInfo {
    /// The kind in the file, as [`KeyError::Kind`] names it.
    pub const KIND: u32 = PROVING;

    /// Reads the heads of a key file over a curve.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file, or it is no proving key of Mirage.
    pub fn of<E: SnarkCurve>(path: &Path) -> Result<Self, KeyError> {
        let file = open(path)?;
        let parts = Parts::split::<E>(&file, PROVING)?;
        Ok(Self {
            committed: parts.committed,
            plain: crate::ProvingKeyInfo::of_bytes::<E>(parts.plain)?,
            file_bytes: file.len() as u64,
            // The file is long enough, or it would have no parts.
            checksum: parts.checksum.try_into().unwrap_or_default(),
        })
    }

    /// Memory in bytes that the key takes with unprepared points.
    pub fn plain_bytes<E: SnarkCurve>(&self) -> u64 {
        let plain = &self.plain;
        let committed_bytes = self.committed as u64 * size_of::<E::G1Affine>() as u64;
        let query_bytes = plain
            .points
            .plain_bytes::<E>(plain.domain as u64, plain.instance as u64);
        committed_bytes + query_bytes
    }

    /// Memory in bytes that the key takes if its points stay in the file.
    pub fn mapped_bytes<E: SnarkCurve>(&self) -> u64 {
        let points = &self.plain.points;
        let indices = points.a + points.b_g1 + points.l;
        let instance = self.plain.instance as u64 * size_of::<E::G1Affine>() as u64;
        size_of::<u32>() as u64 * indices + instance
    }
}

// === impl VerifyingKey ===

impl<E: SnarkCurve> VerifyingKey<E> {
    fn before_plain(&self) -> Vec<u8> {
        let mut before = head::<E>(VERIFYING, self.committed);
        write_points(&[self.eta_g2], &mut before);
        before
    }

    /// The key as a key file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        content(&self.before_plain(), &self.plain.to_bytes())
    }

    /// Decodes an untrusted verifying key: all its points are checked.
    /// [`require_secure`](Self::require_secure) finds keys under which anyone can forge proofs.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let parts = Parts::read::<E>(bytes, VERIFYING)?;
        Ok(Self {
            plain: crate::VerifyingKey::from_bytes(parts.plain)?,
            eta_g2: parts.sections(true, None).point("eta")?,
            committed: parts.committed,
        })
    }

    /// Writes the key to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`KeyError::Io`] if the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        save(path, &self.before_plain(), &self.plain.to_bytes())
    }

    /// Reads an untrusted key file.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file or it is no verifying key of Mirage.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        Self::from_bytes(&open(path)?)
    }
}

// === impl ProvingKey ===

impl<E: SnarkCurve> ProvingKey<E> {
    fn before_plain(&self) -> Vec<u8> {
        let mut before = head::<E>(PROVING, self.committed.len());
        write_points(&[self.eta_g2], &mut before);
        write_points(&[self.eta_g1], &mut before);
        write_points(&self.committed, &mut before);
        before
    }

    /// The key as a key file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        content(&self.before_plain(), &self.plain.to_bytes())
    }

    /// Decodes a proving key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8], check: PointCheck) -> Result<Self, KeyError> {
        Self::read(bytes, check, None)
    }

    fn read(
        bytes: &[u8],
        check: PointCheck,
        mapped: Option<&MappedFile>,
    ) -> Result<Self, KeyError> {
        let parts = Parts::read::<E>(bytes, PROVING)?;
        let plain = crate::ProvingKey::<E>::read(parts.plain, check, mapped)?;
        // Every count is below 2³².
        if plain.vk.instance.len() + parts.committed > plain.variables {
            return Err(KeyError::Lengths);
        }
        let mut sections = parts.sections(check == PointCheck::Full, mapped);
        Ok(Self {
            eta_g2: sections.point("eta")?,
            eta_g1: sections.point("eta in the first group")?,
            committed: sections.points(parts.committed, "committed variables")?,
            plain,
        })
    }

    /// Writes the key to a file atomically, readable by its owner only.
    ///
    /// # Errors
    ///
    /// [`KeyError::Io`] if the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        save(path, &self.before_plain(), &self.plain.to_bytes())
    }

    /// Reads a key file. A large one is mapped, and at most [`READING_WINDOW_BYTES`](crate::READING_WINDOW_BYTES) bytes
    /// of the plain key are in memory at once beside the key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file, it is no proving key of Mirage, or the file changes while it
    /// is read.
    pub fn load(path: &Path, check: PointCheck) -> Result<Self, KeyError> {
        read_unchanged(path, &open(path)?, |file| {
            Self::read(file, check, Some(file))
        })
    }

    /// Like [`load`](Self::load), but only if the file has a known checksum; a file replaced since is refused.
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

    /// Reads the verifying key in a proving key's file, and no more of it: its points are checked, the checksum is not.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file or it is no proving key of Mirage.
    pub fn load_verifying_key(path: &Path) -> Result<VerifyingKey<E>, KeyError> {
        let file = open(path)?;
        let parts = Parts::split::<E>(&file, PROVING)?;
        Ok(VerifyingKey {
            plain: crate::ProvingKey::<E>::verifying_key_in(parts.plain)?,
            eta_g2: parts.sections(true, None).point("eta")?,
            committed: parts.committed,
        })
    }

    /// Reads η in the first group, with which a plain proof is [completed](super::complete), and no more of a proving
    /// key's file. The point is checked, the checksum is not.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no such file or it is no proving key of Mirage.
    pub fn load_eta(path: &Path) -> Result<E::G1Affine, KeyError> {
        let file = open(path)?;
        let parts = Parts::split::<E>(&file, PROVING)?;
        let mut sections = parts.sections(true, None);
        let _: E::G2Affine = sections.point("eta")?;
        sections.point("eta in the first group")
    }
}
