//! One transaction of the journal.

use alloy_primitives::{Address, B256};
use serde::{Deserialize, Serialize};

use crate::contract::Emission;
use crate::fees::Fees;

/// A transaction that was or may have been sent, with all that replaced each other under its nonce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Nonce of the account.
    pub nonce: u64,
    /// The contract that is called.
    pub to: [u8; 20],
    /// The emissions that the transaction settles, in order.
    pub emissions: Vec<EmissionRange>,
    /// Calldata.
    pub data: Vec<u8>,
    /// Maximum units of gas.
    pub gas_limit: u64,
    /// Transactions that were signed under this nonce, oldest first; only the fees differ. Never empty.
    pub attempts: Vec<Attempt>,
    /// The last attempt as it is sent: signed, in the encoding of EIP-2718.
    pub raw: Vec<u8>,
}

/// One signed transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Hash of the transaction.
    pub hash: [u8; 32],
    /// `maxFeePerGas`, in wei.
    pub max_fee: u128,
    /// `maxPriorityFeePerGas`, in wei.
    pub priority_fee: u128,
    /// Time when it was signed, in milliseconds since 1970-01-01 UTC.
    pub signed_ms: u64,
}

/// Blocks of one emission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmissionRange {
    /// First block.
    pub first: u64,
    /// Last block, inclusive.
    pub last: u64,
}

// === impl EmissionRange ===

impl From<&Emission> for EmissionRange {
    fn from(emission: &Emission) -> Self {
        Self {
            first: emission.first,
            last: emission.last,
        }
    }
}

// === impl Entry ===

impl Entry {
    /// The contract that is called.
    pub fn contract(&self) -> Address {
        Address::from(self.to)
    }

    /// The offer of the last attempt.
    pub fn fees(&self) -> Fees {
        let last = self.attempts.last();
        Fees {
            max_fee: last.map_or(0, |attempt| attempt.max_fee),
            priority_fee: last.map_or(0, |attempt| attempt.priority_fee),
        }
    }

    /// Time of the last attempt's signature, in milliseconds since 1970-01-01 UTC.
    pub fn signed_ms(&self) -> u64 {
        self.attempts.last().map_or(0, |attempt| attempt.signed_ms)
    }

    /// Hashes of all attempts, the last first: it is the likeliest to be in a block.
    pub fn hashes(&self) -> impl Iterator<Item = B256> {
        let attempts = self.attempts.iter().rev();
        attempts.map(|attempt| B256::from(attempt.hash))
    }

    /// First and last block of its emissions, for people.
    pub fn blocks(&self) -> (u64, u64) {
        let first = self.emissions.first().map_or(0, |range| range.first);
        let last = self.emissions.last().map_or(0, |range| range.last);
        (first, last)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn attempt(number: u8) -> Attempt {
        Attempt {
            hash: [number; 32],
            max_fee: 100 * u128::from(number),
            priority_fee: u128::from(number),
            signed_ms: 1_700_000_000_000 + u64::from(number),
        }
    }

    pub(in super::super) fn entry(nonce: u64) -> Entry {
        Entry {
            nonce,
            to: [0xc0; 20],
            emissions: vec![EmissionRange { first: 4, last: 5 }],
            data: vec![1, 2, 3],
            gas_limit: 300_000,
            attempts: vec![attempt(1)],
            raw: vec![2, 0xc0],
        }
    }

    #[test]
    fn the_last_attempt_is_asked_for_first() {
        let mut entry = entry(3);
        entry.attempts.push(attempt(2));
        let hashes: Vec<B256> = entry.hashes().collect();
        assert_eq!(hashes, [B256::from([2; 32]), B256::from([1; 32])]);
        assert_eq!((entry.fees().max_fee, entry.fees().priority_fee), (200, 2));
        assert_eq!(entry.blocks(), (4, 5));
    }
}
