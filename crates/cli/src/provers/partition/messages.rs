//! Messages between the steps of a proof, besides the tasks of parts.

use proofmill_orchestrator::executor::ProverError;
use serde::{Deserialize, Serialize};

/// A commitment to a part, or the proof of one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartResult {
    /// Block of the job: parts of one job are gathered.
    pub(super) job: String,
    /// The part, from 0.
    pub(super) part: u32,
    /// The commitment to the part's share of the traces, compressed, hexadecimal.
    pub(super) commitment: String,
    /// The part's proof, in hexadecimal; absent while it is only committed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proof: Option<String>,
}

/// The proof of all parts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WholeProof {
    /// Public inputs, in decimal.
    pub(super) public: Vec<String>,
    /// The proof, in hexadecimal.
    pub(super) proof: String,
}

// === impl PartResult ===

impl PartResult {
    /// The results of all parts of a group, or of a group of batches, in the order of parts.
    pub(super) fn of_group(json: &[u8], parts: usize) -> Result<Vec<Self>, ProverError> {
        let results = match json {
            [b'[', b'[', ..] => {
                serde_json::from_slice(json).map(|batches: Vec<Vec<Self>>| batches.concat())
            }
            _ => serde_json::from_slice(json),
        };
        let mut results = results.map_err(|error| ProverError::Permanent(error.to_string()))?;
        results.sort_by_key(|result| result.part);
        let is_complete = results.len() == parts
            && results
                .iter()
                .enumerate()
                .all(|(part, result)| result.part as usize == part);
        match is_complete {
            true => Ok(results),
            false => Err(ProverError::Permanent(format!(
                "the group is not one result for each of {parts} parts"
            ))),
        }
    }

    /// The commitment and the proof, one after the other.
    pub(super) fn proved_bytes(&self) -> Result<Vec<u8>, ProverError> {
        let mut bytes = bytes_of("commitment", &self.commitment)?;
        let proof = self.proof.as_deref().unwrap_or_default();
        bytes.extend(bytes_of("proof", proof)?);
        Ok(bytes)
    }
}

/// Bytes of a hexadecimal text that another process made.
pub(super) fn bytes_of(what: &str, text: &str) -> Result<Vec<u8>, ProverError> {
    hex::decode(text).map_err(|error| ProverError::Permanent(format!("its {what}: {error}")))
}
