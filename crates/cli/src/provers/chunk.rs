//! A proven chunk of headers: its encoding between `bitcoin.prove` and `bitcoin.verify`, its emitted form, and the
//! comparison of both with the submitted headers.

use proofmill_bitcoin::ChunkProof;
use proofmill_bitcoin::{ChunkStatement, Difficulty, HEADER_BYTES, Header, MAX_SLOTS};
use proofmill_orchestrator::origin::Origin;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// A chunk's headers and their proof, neither checked yet.
///
/// Encoded as the number of headers (4 little-endian bytes), the headers, and the proof in
/// [`ChunkProof`]'s encoding.
#[derive(Clone, Debug)]
pub(super) struct ProvenChunk {
    headers: Vec<Header>,
    proof: ChunkProof,
}

/// A proven chunk in the form that the mill emits, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmittedChunk {
    /// Height of the first header.
    pub(crate) first: u64,
    /// Height of the last header.
    pub(crate) last: u64,
    /// Hash of the header before the first, as block explorers show it.
    pub(crate) prev_hash: String,
    /// Hash of the last header.
    pub(crate) last_hash: String,
    /// The chunk's work, hexadecimal.
    pub(crate) work: String,
    /// `groth16-bls12-381`.
    pub(crate) system: String,
    /// Slots of the circuit.
    pub(crate) slots: usize,
    /// The headers that are proven, 80 bytes each, hexadecimal.
    pub(crate) headers: String,
    /// Statement and proof in [`ChunkProof`]'s encoding, hexadecimal.
    pub(crate) proof: String,
}

// === impl ProvenChunk ===

impl ProvenChunk {
    /// The encoding of a proof of `headers`, 80 bytes each.
    pub(super) fn encode(headers: &[u8], proof: &ChunkProof) -> Vec<u8> {
        let count = u32::try_from(headers.len() / HEADER_BYTES).unwrap_or(u32::MAX);
        let mut bytes = count.to_le_bytes().to_vec();
        bytes.extend_from_slice(headers);
        bytes.extend(proof.to_bytes());
        bytes
    }

    /// Decodes an encoding from an untrusted source.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let short = || format!("{} bytes are no proven chunk", bytes.len());
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let count = u32::from_le_bytes(*count) as usize;
        if count == 0 || count > MAX_SLOTS {
            return Err(format!("{count} headers: a chunk has 1 to {MAX_SLOTS}"));
        }
        let split = rest.split_at_checked(count * HEADER_BYTES);
        let (headers, proof) = split.ok_or_else(short)?;
        Ok(Self {
            headers: split_headers(headers)?,
            proof: ChunkProof::from_bytes(proof).map_err(|error| error.to_string())?,
        })
    }

    /// The chunk that was emitted as `emitted`.
    pub(super) fn of(emitted: &EmittedChunk) -> Result<Self, String> {
        let headers = hex::decode(&emitted.headers).map_err(|error| error.to_string())?;
        Ok(Self {
            headers: split_headers(&headers)?,
            proof: emitted.decode()?,
        })
    }

    pub(super) fn proof(&self) -> &ChunkProof {
        &self.proof
    }

    /// Compares the chunk with the submission; does not verify the proof. The headers must be those of `origin`, as
    /// many as its blocks, and the proof's statement (the hash before them, the last hash, the bits of each) must be
    /// theirs. With `retarget` their bits must be those that Bitcoin's main network requires at the heights of these
    /// blocks, as far as the chunk alone shows.
    pub(super) fn compare(&self, origin: &Origin, retarget: bool) -> Result<(), String> {
        let Origin { first, last, .. } = origin;
        let raw = raw(&self.headers);
        let digest: [u8; 32] = sha2::Sha256::digest(&raw).into();
        if digest != origin.digest {
            return Err(format!(
                "it is of other headers than those submitted as blocks {first} to {last}"
            ));
        }
        let count = self.headers.len() as u64;
        if last
            .checked_sub(*first)
            .and_then(|more| more.checked_add(1))
            != Some(count)
        {
            return Err(format!("{count} headers are not blocks {first} to {last}"));
        }
        let stated = &self.proof.statement;
        if ChunkStatement::of(&self.headers).as_ref() != Some(stated) {
            return Err(format!(
                "its statement ({} headers after {}, up to {}) is not about the headers submitted \
                 as blocks {first} to {last}",
                stated.count(),
                stated.prev_hash,
                stated.last_hash
            ));
        }
        if retarget {
            let mut difficulty = Difficulty::starting_at(*first);
            self.check_bits(&mut difficulty)?;
        }
        Ok(())
    }

    /// Checks that the headers' bits are those that the network requires after the headers before them.
    pub(super) fn check_bits(&self, difficulty: &mut Difficulty) -> Result<(), String> {
        for header in &self.headers {
            let height = difficulty.height();
            let taken = difficulty.take(header);
            taken.map_err(|error| format!("header {height}: {error}"))?;
        }
        Ok(())
    }

    /// The emitted form of the chunk, proven with a circuit of `slots` headers.
    pub(super) fn emitted(&self, origin: &Origin, slots: usize) -> Result<EmittedChunk, String> {
        let statement = &self.proof.statement;
        let work = statement.total_work().map_err(|error| error.to_string())?;
        Ok(EmittedChunk {
            first: origin.first,
            last: origin.last,
            prev_hash: statement.prev_hash.to_string(),
            last_hash: statement.last_hash.to_string(),
            work: work.to_string(),
            system: "groth16-bls12-381".to_owned(),
            slots,
            headers: hex::encode(raw(&self.headers)),
            proof: hex::encode(self.proof.to_bytes()),
        })
    }
}

// === impl EmittedChunk ===

impl EmittedChunk {
    /// The statement and the proof.
    pub(crate) fn decode(&self) -> Result<ChunkProof, String> {
        let bytes = hex::decode(&self.proof).map_err(|error| error.to_string())?;
        ChunkProof::from_bytes(&bytes).map_err(|error| error.to_string())
    }
}

/// Splits bytes into headers of 80 bytes each.
pub(super) fn split_headers(bytes: &[u8]) -> Result<Vec<Header>, String> {
    let (headers, rest) = bytes.as_chunks::<HEADER_BYTES>();
    if !rest.is_empty() {
        return Err(format!(
            "{} bytes are no whole number of headers",
            bytes.len()
        ));
    }
    Ok(headers.iter().map(|header| Header::new(*header)).collect())
}

fn raw(headers: &[Header]) -> Vec<u8> {
    let bytes = headers.iter().flat_map(|header| *header.as_bytes());
    bytes.collect()
}
