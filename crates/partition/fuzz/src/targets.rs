//! Functions that feed hostile bytes to the code under test. Each ends the process, by a panic, if
//! it finds a defect.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use ark_bn254::Fr;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::mirage::{self, ProvingKey, ProvingKeyInfo, ResidentKey};
use proofmill_groth16::snarkjs::{inputs_from_json, inputs_to_json};
use proofmill_groth16::{Bn254, PointCheck, ResidentForm};
use proofmill_partition::proof::{Journal, PartitionProof, VerifyingKey};
use proofmill_partition::tree::{Path, Tree, depth};
use proofmill_partition::{Challenges, PartTrace, Partition};
use proofmill_r1cs::R1cs;
use sha2::{Digest, Sha256};

use super::seeds::{POSITION, Proved, Squares, leaves, smallest_system, temporary};

const CHECKSUM_BYTES: usize = 32;

/// Bytes of a journal's head, and of its records over BN254.
const JOURNAL_HEAD_BYTES: usize = 128;
const COMMITMENT_BYTES: usize = 53;
const PROOF_BYTES: usize = 149;

static PROVED: LazyLock<Proved> = LazyLock::new(Proved::new);
static SYSTEM: LazyLock<Arc<R1cs<Fr>>> = LazyLock::new(|| Arc::new(smallest_system()));
static TREE: LazyLock<Tree<Fr>> = LazyLock::new(|| Tree::new(&leaves()));
/// Inputs that are read from files.
static JOURNAL: LazyLock<PathBuf> = LazyLock::new(|| temporary("journal"));
static KEY: LazyLock<PathBuf> = LazyLock::new(|| temporary("key"));

/// Takes bytes as a partition's file, unchanged and with a corrected checksum: a decoded partition must encode to the
/// same bytes, and is used.
pub fn decode(bytes: &[u8]) {
    decode_as_it_is(bytes);
    if let Some(sealed) = sealed(bytes) {
        decode_as_it_is(&sealed);
    }
}

/// Takes bytes as a proof and as a verifying key, unchanged and with a corrected checksum: decoded values must encode
/// to the same bytes, and only the original proof may verify.
pub fn proof(bytes: &[u8]) {
    proof_as_it_is(bytes);
    if let Some(sealed) = sealed(bytes) {
        proof_as_it_is(&sealed);
    }
}

/// Takes bytes as a journal's file, unchanged and with corrected checksums of its head and records: the journal must
/// not have more records than the original.
pub fn journal(bytes: &[u8]) {
    journal_as_it_is(bytes);
    let mut sealed = bytes.to_vec();
    if seal_journal(&mut sealed).is_some() {
        journal_as_it_is(&sealed);
    }
}

/// Takes bytes as the keys of a class, unchanged and with corrected checksums: a decoded key must encode to the same
/// bytes, and a mapped key must equal one read into memory.
pub fn keys(bytes: &[u8]) {
    keys_as_they_are(bytes);
    let mut sealed = bytes.to_vec();
    if seal_key(&mut sealed).is_some() {
        keys_as_they_are(&sealed);
    }
}

/// Bytes as public inputs, in JSON and as the verifier of many proofs takes them.
pub fn statement(bytes: &[u8]) {
    if let Ok(inputs) = inputs_from_json::<Fr>(bytes) {
        let json = inputs_to_json(&inputs);
        let again = inputs_from_json::<Fr>(json.as_bytes());
        assert!(again.is_ok_and(|again| again == inputs));
    }
    let key = &PROVED.key;
    if let Ok(inputs) = key.decode_statement(bytes) {
        assert!(VerifyingKey::<Bn254>::encode_statement(&inputs) == bytes);
        assert_eq!(inputs.len(), PROVED.public_inputs.len());
    }
}

/// Takes bytes as messages about a part from other processes: its share of the traces, and a path of a leaf. Decoded
/// values must encode to the same bytes.
pub fn share(bytes: &[u8]) {
    if let Ok(trace) = PartTrace::<Fr>::from_bytes(bytes) {
        assert!(trace.to_bytes() == bytes, "one encoding");
        assert_eq!(trace.by_part.len(), trace.by_address.len());
    }
    if let Ok(path) = Path::<Fr>::from_bytes(bytes) {
        assert!(path.to_bytes() == bytes, "one encoding");
        let leaf = &leaves()[POSITION];
        let leads = path.leads(leaf, POSITION, depth(leaves().len()), TREE.root());
        assert_eq!(leads, path == TREE.path(POSITION));
    }
}

fn journal_as_it_is(bytes: &[u8]) {
    let path = &*JOURNAL;
    std::fs::write(path, bytes).expect("a file for inputs");
    let rng = &mut StdRng::seed_from_u64(1);
    if let Ok(journal) = Journal::<Bn254>::open(path, rng) {
        let (commitments, proofs) = journal.progress();
        let records = bytes.len().saturating_sub(JOURNAL_HEAD_BYTES);
        assert!(commitments * COMMITMENT_BYTES + proofs * PROOF_BYTES <= records);
    }
}

/// The checksum of a journal's head, and of each whole record after it.
fn seal_journal(bytes: &mut [u8]) -> Option<()> {
    let (head, mut records) = bytes.split_at_mut_checked(JOURNAL_HEAD_BYTES)?;
    let (content, checksum) = head.split_last_chunk_mut::<CHECKSUM_BYTES>()?;
    checksum.copy_from_slice(&Sha256::digest(content));
    let head = *checksum;
    while let Some(kind) = records.first() {
        let length = match kind {
            1 => COMMITMENT_BYTES,
            2 => PROOF_BYTES,
            _ => break,
        };
        let Some((record, rest)) = records.split_at_mut_checked(length) else {
            break;
        };
        let (content, checksum) = record.split_last_chunk_mut::<16>()?;
        let digest = Sha256::new().chain_update(head).chain_update(content);
        checksum.copy_from_slice(&digest.finalize()[..16]);
        records = rest;
    }
    Some(())
}

fn keys_as_they_are(bytes: &[u8]) {
    if let Ok(read) = mirage::VerifyingKey::<Bn254>::from_bytes(bytes) {
        assert!(read.to_bytes() == bytes, "one encoding");
        let _ = read.require_secure();
    }
    let read = ProvingKey::<Bn254>::from_bytes(bytes, PointCheck::Skip);
    let whole = ProvingKey::<Bn254>::from_bytes(bytes, PointCheck::Full);
    assert!(read.is_ok() || whole.is_err(), "no check is left out");
    let path = &*KEY;
    std::fs::write(path, bytes).expect("a file for inputs");
    let info = ProvingKeyInfo::of::<Bn254>(path);
    let mapped = ResidentKey::<Bn254>::map(path, Arc::clone(&SYSTEM));
    let Ok(read) = read else {
        assert!(mapped.is_err(), "of no key");
        return;
    };
    let info = info.expect("a key has a head");
    assert_eq!(info.committed, read.committed.len());
    assert_eq!(info.plain.variables, read.plain.variables);
    let held = ResidentKey::new(read, Arc::clone(&SYSTEM), ResidentForm::Plain);
    match (held, mapped) {
        (Ok(held), Ok(mapped)) => assert!(held.vk() == mapped.vk()),
        (held, mapped) => assert_eq!(held.is_ok(), mapped.is_ok()),
    }
}

/// The checksum of a plain key in a key, and of the key.
fn seal_key(bytes: &mut [u8]) -> Option<()> {
    let committed = u64::from_le_bytes(*bytes.get(32..)?.first_chunk()?);
    let own = match bytes.get(12)? {
        3 => {
            128 + 64
                + 64 * usize::try_from(committed)
                    .ok()
                    .filter(|count| *count < 1000)?
        }
        _ => 128,
    };
    let (before, rest) = bytes.split_at_mut_checked(40 + own)?;
    let (plain, checksum) = rest.split_last_chunk_mut::<CHECKSUM_BYTES>()?;
    let (content, of_plain) = plain.split_last_chunk_mut::<CHECKSUM_BYTES>()?;
    of_plain.copy_from_slice(&Sha256::digest(content));
    let digest = Sha256::new().chain_update(before).chain_update(of_plain);
    checksum.copy_from_slice(&digest.finalize());
    Some(())
}

fn proof_as_it_is(bytes: &[u8]) {
    let Proved {
        key,
        public_inputs,
        proof,
        ..
    } = &*PROVED;
    if let Ok(read) = PartitionProof::<Bn254>::from_bytes(bytes) {
        assert!(read.to_bytes() == bytes, "one encoding");
        let verdict = key.verify(public_inputs, &read);
        assert_eq!(verdict.is_ok(), read == *proof);
    }
    if let Ok(read) = VerifyingKey::<Bn254>::from_bytes(bytes) {
        assert!(read.to_bytes() == bytes, "one encoding");
        let verdict = read.verify(public_inputs, proof);
        assert_eq!(verdict.is_ok(), read.digest() == key.digest());
    }
}

fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let content = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let mut sealed = bytes[..content].to_vec();
    let checksum = Sha256::digest(&sealed);
    sealed.extend(checksum);
    Some(sealed)
}

fn decode_as_it_is(bytes: &[u8]) {
    let Ok(partition) = Partition::<Fr>::from_bytes(bytes) else {
        return;
    };
    assert!(partition.to_bytes() == bytes, "one encoding");
    let _ = partition.digest();
    for part in 0..partition.num_parts() {
        let class = partition.class_of(part).expect("there is such a part");
        let layout = partition.classes()[class].layout();
        assert!(layout.committed <= layout.witness);
        let inputs = partition.preprocessed(part).expect("there is such a part");
        assert_eq!(inputs.len(), layout.preprocessed);
    }
    let challenges = Challenges {
        alpha: Fr::from(1001u64),
        beta: Fr::from(1002u64),
    };
    let inputs = vec![Fr::from(3u64); partition.num_public_inputs()];
    let leaf = partition.public_state().leaf(&inputs, &challenges);
    assert!(leaf.is_some(), "as many inputs as there are");
    // Only a partition with the accesses of this circuit is traced.
    let _ = partition.trace(&Squares(partition.num_parts().min(3)));
}
