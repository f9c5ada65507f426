//! The record of a prover's work so far, in memory or in a file from which an interrupted prover resumes.
//!
//! The file: magic `PMILLPJN`, version and curve; a random seed, from which the prover's randomness follows (32
//! bytes); a tag of the witness (32 bytes); the number of parts (4 bytes, little-endian); the SHA-256 of all that.
//! Then records: kind (one byte, 1 a commitment, 2 a proof), part (4 bytes), the commitment or proof in its own
//! encoding, and the first 16 bytes of the SHA-256 of the head's checksum and the record. A record is on the disk
//! before the next is begun. The last record, or the head, may be cut short by a crash of the machine; it is then
//! ignored.
//!
//! The file is private: its seed, with the proofs, would reveal the witness.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ark_std::rand::{CryptoRng, RngCore};
use proofmill_aggregation::MAX_CAPACITY;
use proofmill_aggregation::files::{
    AggregationFileError, BEGINNING_BYTES, CHECKSUM_BYTES, FileKind,
};
use proofmill_files::check_regular;
use proofmill_groth16::Proof;
use proofmill_groth16::mirage::Commitment;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::PartitionCurve;

const KIND: FileKind = FileKind {
    magic: b"PMILLPJN",
    what: "journal of a partitioned proof",
};
const SEED_BYTES: usize = 32;
const TAG_BYTES: usize = 32;
const HEAD_BYTES: usize = SEED_BYTES + TAG_BYTES + 4;
const RECORD_HEAD_BYTES: usize = 5;
const RECORD_CHECKSUM_BYTES: usize = 16;
const COMMITMENT: u8 = 1;
const PROOF: u8 = 2;

/// The commitments and proofs of a witness's parts that have been made so far. Its seed is secret, and `Debug` leaves it out.
pub struct Journal<E: PartitionCurve> {
    seed: Zeroizing<[u8; SEED_BYTES]>,
    records: Option<JournalRecords<E>>,
    place: JournalPlace,
}

/// The records of a witness.
#[derive(Debug)]
struct JournalRecords<E: PartitionCurve> {
    witness: [u8; TAG_BYTES],
    parts: usize,
    /// Commitments by part. Until the journal is bound to a witness, the list ends with the last
    /// commitment.
    commitments: Vec<Option<Commitment<E>>>,
    proofs: Vec<Option<Proof<E>>>,
}

/// Place of a journal's records.
#[derive(Debug)]
enum JournalPlace {
    Memory,
    /// A locked file without a complete head.
    New {
        path: PathBuf,
        file: File,
    },
    /// A locked file to which records are appended.
    Open {
        path: PathBuf,
        file: File,
        /// The checksum of the head.
        head: [u8; CHECKSUM_BYTES],
    },
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another process is using the journal.
    #[error("{}: another prover is using this journal", .0.display())]
    InUse(PathBuf),
    /// The file is not a journal.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: AggregationFileError,
    },
    /// A record that no prover wrote, before others.
    #[error("{}: the record at byte {at} is corrupt: delete the journal to begin anew", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The place of the record.
        at: usize,
    },
    /// The journal of another proof.
    #[error(
        "{}: it is of another witness, key or circuit: give another path, or delete it to begin anew",
        .0.display()
    )]
    OtherWitness(PathBuf),
}

// === impl Journal ===

impl<E: PartitionCurve> Journal<E> {
    /// A journal in memory, which is lost when the process ends.
    pub fn in_memory(rng: &mut (impl RngCore + CryptoRng)) -> Self {
        Self::new(JournalPlace::Memory, rng)
    }

    /// A journal in a file: starts a new one, or resumes from its records. The file is locked until the journal is
    /// dropped.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if the file is not a journal, or is in use.
    pub fn open(path: &Path, rng: &mut (impl RngCore + CryptoRng)) -> Result<Self, JournalError> {
        let mut file = open_locked(path)?;
        let bytes = read_all::<E>(&mut file, path)?;
        if is_beginning_of_head::<E>(&bytes) {
            let mut journal = Self::new(JournalPlace::Memory, rng);
            let path = path.to_owned();
            journal.place = JournalPlace::New { path, file };
            return Ok(journal);
        }
        let in_file = |source| JournalError::File {
            path: path.to_owned(),
            source,
        };
        let (mut journal, head) = Self::read_head(&bytes).map_err(in_file)?;
        let end = journal
            .read_records(&bytes, &head)
            .map_err(|at| JournalError::Record {
                path: path.to_owned(),
                at,
            })?;
        file.set_len(end as u64).map_err(failed(path))?;
        file.seek(SeekFrom::End(0)).map_err(failed(path))?;
        journal.place = JournalPlace::Open {
            path: path.to_owned(),
            file,
            head,
        };
        Ok(journal)
    }

    fn new(place: JournalPlace, rng: &mut (impl RngCore + CryptoRng)) -> Self {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        rng.fill_bytes(&mut *seed);
        Self {
            seed,
            records: None,
            place,
        }
    }

    fn read_head(bytes: &[u8]) -> Result<(Self, [u8; CHECKSUM_BYTES]), AggregationFileError> {
        let end = BEGINNING_BYTES + HEAD_BYTES + CHECKSUM_BYTES;
        let head = KIND.after_beginning::<E>(bytes, HEAD_BYTES + CHECKSUM_BYTES)?;
        KIND.checked(&bytes[..end], end as u64)?;
        let (seed, rest) = head.split_first_chunk().expect("as many bytes");
        let (witness, rest) = rest.split_first_chunk().expect("as many bytes");
        let (parts, rest) = rest.split_first_chunk().expect("as many bytes");
        let (checksum, _) = rest.split_first_chunk().expect("as many bytes");
        let parts = u32::from_le_bytes(*parts) as usize;
        if !(1..=MAX_CAPACITY).contains(&parts) {
            return Err(AggregationFileError::Head(KIND.what));
        }
        let journal = Self {
            seed: Zeroizing::new(*seed),
            records: Some(JournalRecords::new(*witness, parts)),
            place: JournalPlace::Memory,
        };
        Ok((journal, *checksum))
    }

    /// Takes the records after the head; gives the end of the last whole one, or the place of a bad one.
    fn read_records(&mut self, bytes: &[u8], head: &[u8]) -> Result<usize, usize> {
        let records = self.records.as_mut().expect("read with the head");
        let mut at = BEGINNING_BYTES + HEAD_BYTES + CHECKSUM_BYTES;
        while at < bytes.len() {
            match records.take_record(&bytes[at..], head) {
                Some(length) => at += length,
                // At most one record was being written.
                None if bytes.len() - at < longest_record::<E>() => break,
                None => return Err(at),
            }
        }
        Ok(at)
    }

    pub(super) fn seed(&self) -> &[u8; SEED_BYTES] {
        &self.seed
    }

    /// Ties the journal to a witness: a new one is begun, an old one must be of the same.
    pub(super) fn bind(
        &mut self,
        witness: [u8; TAG_BYTES],
        parts: usize,
    ) -> Result<(), JournalError> {
        if let Some(records) = &mut self.records {
            let is_same = records.witness == witness && records.parts == parts;
            return match (is_same, &self.place) {
                (true, _) => {
                    records.fill();
                    Ok(())
                }
                (false, JournalPlace::Open { path, .. } | JournalPlace::New { path, .. }) => {
                    Err(JournalError::OtherWitness(path.clone()))
                }
                (false, JournalPlace::Memory) => Err(JournalError::OtherWitness(PathBuf::new())),
            };
        }
        let mut records = JournalRecords::new(witness, parts);
        records.fill();
        self.records = Some(records);
        let place = std::mem::replace(&mut self.place, JournalPlace::Memory);
        let JournalPlace::New { path, mut file } = place else {
            self.place = place;
            return Ok(());
        };
        let mut head = Zeroizing::new(KIND.begin::<E>());
        head.extend(*self.seed);
        head.extend(witness);
        head.extend((parts as u32).to_le_bytes());
        let head = Zeroizing::new(KIND.end(std::mem::take(&mut *head)));
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(&head))
            .and_then(|()| file.sync_all())
            .map_err(failed(&path))?;
        let (_, checksum) = head.split_last_chunk().expect("as many bytes");
        self.place = JournalPlace::Open {
            path,
            file,
            head: *checksum,
        };
        Ok(())
    }

    /// The commitment of a part, if it was made.
    pub(super) fn commitment(&self, part: usize) -> Option<&Commitment<E>> {
        self.records.as_ref()?.commitments.get(part)?.as_ref()
    }

    /// The proof of a part, if it was made.
    pub(super) fn proof(&self, part: usize) -> Option<&Proof<E>> {
        self.records.as_ref()?.proofs.get(part)?.as_ref()
    }

    /// The number of commitments and of proofs that were made.
    pub fn progress(&self) -> (usize, usize) {
        self.records.as_ref().map_or((0, 0), |records| {
            let commitments = records.commitments.iter().flatten().count();
            (commitments, records.proofs.iter().flatten().count())
        })
    }

    pub(super) fn add_commitment(
        &mut self,
        part: usize,
        commitment: Commitment<E>,
    ) -> Result<(), JournalError> {
        self.append(COMMITMENT, part, &commitment.to_bytes())?;
        let records = self.records.as_mut().expect("bound to a witness");
        records.commitments[part] = Some(commitment);
        Ok(())
    }

    pub(super) fn add_proof(&mut self, part: usize, proof: Proof<E>) -> Result<(), JournalError> {
        self.append(PROOF, part, &proof.to_bytes())?;
        let records = self.records.as_mut().expect("bound to a witness");
        records.proofs[part] = Some(proof);
        Ok(())
    }

    fn append(&mut self, kind: u8, part: usize, content: &[u8]) -> Result<(), JournalError> {
        let JournalPlace::Open { path, file, head } = &mut self.place else {
            return Ok(());
        };
        let mut record = vec![kind];
        record.extend((part as u32).to_le_bytes());
        record.extend(content);
        record.extend(checksum(head, &record));
        file.write_all(&record)
            .and_then(|()| file.sync_data())
            .map_err(failed(path))
    }

    /// Removes the file, when the proof is safe elsewhere.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`] if the file system refuses.
    pub fn remove(self) -> Result<(), JournalError> {
        match self.place {
            JournalPlace::Open { path, .. } | JournalPlace::New { path, .. } => {
                std::fs::remove_file(&path).map_err(failed(&path))
            }
            JournalPlace::Memory => Ok(()),
        }
    }
}

impl<E: PartitionCurve> fmt::Debug for Journal<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("records", &self.records)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> JournalError {
    move |source| JournalError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Opens a file, or creates one that only its owner may access, and locks it.
fn open_locked(path: &Path) -> Result<File, JournalError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path).map_err(failed(path))?;
    let metadata = file.metadata().map_err(failed(path))?;
    check_regular(&metadata).map_err(failed(path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(path)(source)),
    }
}

/// Reads the file of a journal. Fails if the file is larger than the largest journal.
fn read_all<E: PartitionCurve>(
    file: &mut File,
    path: &Path,
) -> Result<Zeroizing<Vec<u8>>, JournalError> {
    let most = file_bytes::<E>(MAX_CAPACITY) as u64;
    let found = file.metadata().map_err(failed(path))?.len();
    if found > most {
        return Err(JournalError::File {
            path: path.to_owned(),
            source: KIND.length(most, found),
        });
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(found as usize));
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(failed(path))?;
    Ok(bytes)
}

/// True if the head was being written when its prover went away: then there is no record after it.
fn is_beginning_of_head<E: PartitionCurve>(bytes: &[u8]) -> bool {
    let beginning = KIND.begin::<E>();
    let checked = bytes.len().min(beginning.len());
    let whole = BEGINNING_BYTES + HEAD_BYTES + CHECKSUM_BYTES;
    bytes.len() < whole && bytes[..checked] == beginning[..checked]
}

fn checksum(head: &[u8], record: &[u8]) -> [u8; RECORD_CHECKSUM_BYTES] {
    let digest = Sha256::new().chain_update(head).chain_update(record);
    let digest: [u8; 32] = digest.finalize().into();
    *digest.first_chunk().expect("half of a digest")
}

fn content_bytes<E: PartitionCurve>(kind: u8) -> Option<usize> {
    match kind {
        COMMITMENT => Some(Commitment::<E>::encoded_size()),
        PROOF => Some(Proof::<E>::encoded_size()),
        _ => None,
    }
}

fn longest_record<E: PartitionCurve>() -> usize {
    RECORD_HEAD_BYTES + Proof::<E>::encoded_size() + RECORD_CHECKSUM_BYTES
}

fn file_bytes<E: PartitionCurve>(parts: usize) -> usize {
    BEGINNING_BYTES + HEAD_BYTES + CHECKSUM_BYTES + 2 * (parts + 1) * longest_record::<E>()
}

// === impl JournalRecords ===

impl<E: PartitionCurve> JournalRecords<E> {
    const fn new(witness: [u8; TAG_BYTES], parts: usize) -> Self {
        Self {
            witness,
            parts,
            commitments: Vec::new(),
            proofs: Vec::new(),
        }
    }

    /// Allocates entries for all parts, once their number is known to be right.
    fn fill(&mut self) {
        let missing = self.parts - self.commitments.len();
        self.commitments.reserve_exact(missing);
        self.commitments.resize(self.parts, None);
        let missing = self.parts - self.proofs.len();
        self.proofs.reserve_exact(missing);
        self.proofs.resize(self.parts, None);
    }

    /// Takes the record at the beginning of these bytes and returns its length; `None` if it is incomplete.
    fn take_record(&mut self, bytes: &[u8], head: &[u8]) -> Option<usize> {
        let kind = *bytes.first()?;
        let checked = RECORD_HEAD_BYTES + content_bytes::<E>(kind)?;
        let (record, rest) = bytes.split_at_checked(checked)?;
        let (found, _) = rest.split_first_chunk::<RECORD_CHECKSUM_BYTES>()?;
        if *found != checksum(head, record) {
            return None;
        }
        let part = u32::from_le_bytes(*record[1..].first_chunk()?) as usize;
        if part >= self.parts {
            return None;
        }
        let content = &record[RECORD_HEAD_BYTES..];
        match kind {
            COMMITMENT => put(
                &mut self.commitments,
                part,
                Commitment::from_bytes(content).ok()?,
            ),
            _ => put(&mut self.proofs, part, Proof::from_bytes(content).ok()?),
        }
        Some(checked + RECORD_CHECKSUM_BYTES)
    }
}

/// Puts a record in a part's place.
fn put<T: Clone>(records: &mut Vec<Option<T>>, part: usize, record: T) {
    if records.len() <= part {
        records.resize(part + 1, None);
    }
    records[part] = Some(record);
}
