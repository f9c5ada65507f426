//! `bitcoin.header-chain`: chunks of headers as arguments of the contract `HeaderChain`.

use std::sync::Arc;

use proofmill_bitcoin::{HEADER_BYTES, INTERVAL};
use proofmill_groth16::Bls12_381;
use proofmill_orchestrator::sink::PayloadForm;
use proofmill_settlement::Emission;
use proofmill_solidity::encode_proof;
use serde_json::{Value, json};

use super::chunk::EmittedChunk;

/// ABI of `contracts/src/HeaderChain.sol`.
const ABI: &str = include_str!("../../../../contracts/abi/HeaderChain.json");

/// The form of payloads for the contract.
pub(super) fn header_chain() -> PayloadForm {
    PayloadForm {
        abi: ABI,
        function: "advanceMany",
        settled: "known",
        arguments: Arc::new(arguments),
    }
}

/// The arguments of a chunk: fields of the contract's struct `Chunk`, and `hash` of the function `known`.
fn arguments(emission: &Emission) -> Result<Value, String> {
    let chunk: EmittedChunk = serde_json::from_slice(&emission.bytes)
        .map_err(|error| format!("not a proven chunk of headers: {error}"))?;
    let proof = chunk.decode()?;
    let statement = &proof.statement;
    let headers = hex::decode(&chunk.headers).map_err(|error| error.to_string())?;
    let count = statement.count();
    if headers.len() != count * HEADER_BYTES {
        return Err(format!("{} bytes are not {count} headers", headers.len()));
    }
    let from = first_shown(chunk.first, count) * HEADER_BYTES;
    let bits: Vec<u32> = statement.bits.iter().map(|bits| bits.0).collect();
    let encoded = encode_proof::<Bls12_381>(&proof.proof).map_err(|error| error.to_string())?;
    let hex = |bytes: &[u8]| format!("0x{}", hex::encode(bytes));
    Ok(json!({
        "prevHash": hex(&statement.prev_hash.0),
        "lastHash": hex(&statement.last_hash.0),
        "bits": bits,
        "proof": hex(&encoded),
        "headers": hex(&headers[from..]),
        "hash": hex(&statement.last_hash.0),
    }))
}

/// Index of the first header that the contract is shown, of a chunk of `count` headers from height `first` on: the one before
/// the difficulty changes if the chunk has it, the one at which it changes if that is the chunk's first, else the last.
fn first_shown(first: u64, count: usize) -> usize {
    let last = first.saturating_add(count as u64).saturating_sub(1);
    let change = last - last % INTERVAL;
    match change {
        0 => count - 1,
        change if change < first => count - 1,
        change => (change - first).saturating_sub(1) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_shown_from_where_the_difficulty_changes() {
        for (first, count, expected) in [
            (0, 2, 1),
            (0, 1, 0),
            (2014, 2, 1),
            (2014, 3, 1),
            (2015, 2, 0),
            (2016, 1, 0),
            (2016, 5, 0),
            (2012, 8, 3),
            (2017, 4, 3),
            (4030, 10, 1),
        ] {
            assert_eq!(first_shown(first, count), expected, "{count} from {first}");
        }
    }
}
