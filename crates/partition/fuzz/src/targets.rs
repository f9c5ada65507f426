//! Functions that feed hostile bytes to the code under test. Each ends the process, by a panic, if
//! it finds a defect.

use std::sync::LazyLock;

use ark_bn254::Fr;
use proofmill_groth16::Bn254;
use proofmill_partition::proof::{PartitionProof, VerifyingKey};
use proofmill_partition::{Challenges, Partition};
use sha2::{Digest, Sha256};

use super::seeds::{Proved, Squares};

const CHECKSUM_BYTES: usize = 32;

static PROVED: LazyLock<Proved> = LazyLock::new(Proved::new);

/// Bytes as a partition's file, as they are and with the checksum that they should have: what is read
/// is written again as it was, and used.
pub fn decode(bytes: &[u8]) {
    decode_as_it_is(bytes);
    if let Some(sealed) = sealed(bytes) {
        decode_as_it_is(&sealed);
    }
}

/// Bytes as a proof and as a verifying key, as they are and with the checksum that they should have: what is
/// read is written again as it was, and only the proof that was made verifies.
pub fn proof(bytes: &[u8]) {
    proof_as_it_is(bytes);
    if let Some(sealed) = sealed(bytes) {
        proof_as_it_is(&sealed);
    }
}

fn proof_as_it_is(bytes: &[u8]) {
    let Proved {
        key,
        public_inputs,
        proof,
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
    // Only what has the accesses of this circuit is traced.
    let _ = partition.trace(&Squares(partition.num_parts().min(3)));
}
