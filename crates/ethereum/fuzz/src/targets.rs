//! Functions that feed hostile bytes to the code under test. Each panics if it finds a defect.

use std::sync::LazyLock;

use proofmill_ethereum::revert::ErrorAbi;
use proofmill_ethereum::{Recovered, hostile};

static ERRORS: LazyLock<Vec<ErrorAbi>> = LazyLock::new(|| {
    let abi = r#"[{"type": "error", "name": "E", "inputs": [{"name": "a", "type": "uint64"},
        {"name": "b", "type": "string"}, {"name": "c", "type": "bytes32[]"}]}]"#;
    ErrorAbi::read(abi).expect("it is an ABI")
});

/// A raw transaction.
pub fn transaction(bytes: &[u8]) {
    if let Ok(found) = Recovered::decode(bytes) {
        let transaction = found.transaction;
        assert!(transaction.max_priority_fee_per_gas <= transaction.max_fee_per_gas);
        assert!(transaction.nonce < u64::MAX && bytes[0] == 2);
        // A transaction has one encoding, so that other bytes are another transaction or none.
        let mut other = bytes.to_vec();
        other.push(0);
        assert!(Recovered::decode(&other).is_err());
    }
}

/// The body of a response.
pub fn answer(bytes: &[u8]) {
    hostile::read_answer(bytes, &ERRORS);
}
