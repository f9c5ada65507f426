//! The reasons why a node does not take a transaction.

use super::error::RpcError;

/// The reason why a node did not take a transaction. Texts are the node's message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The node has this transaction already, waiting or in a block.
    #[error("the node has it already: {0}")]
    AlreadyKnown(String),
    /// A transaction with this nonce is in a block.
    #[error("its nonce is used: {0}")]
    NonceTooLow(String),
    /// Another transaction with this nonce waits, and this one's fees are not enough higher.
    #[error("its fees are too low to replace the one that waits: {0}")]
    ReplacementUnderpriced(String),
    /// Its fees are below the base fee, or the least that the node takes.
    #[error("its fees are too low: {0}")]
    Underpriced(String),
    /// The sender cannot pay for gas and value.
    #[error("its sender has too little: {0}")]
    InsufficientFunds(String),
    /// The node holds as many transactions as it takes, of this sender or altogether.
    #[error("the node holds too many transactions: {0}")]
    PoolFull(String),
    /// The node refused it for another reason.
    #[error("the node refused it: {0}")]
    Refused(String),
    /// The node could not be asked, or its answer is none: it may have taken the transaction.
    #[error(transparent)]
    Rpc(RpcError),
}

/// A reason that nodes report in their own words.
#[derive(Clone, Copy)]
enum Reason {
    AlreadyKnown,
    NonceTooLow,
    ReplacementUnderpriced,
    Underpriced,
    InsufficientFunds,
    PoolFull,
}

/// Parts of messages, in lower case, and what they mean; the first that a message has decides. Codes are of no use:
/// most nodes give all of them the same. Sources: geth `core/txpool/errors.go`, `core/error.go` (reth, anvil and
/// Nethermind since 1.32 take over most of its texts), erigon `txpoolcfg.go`, Nethermind `AcceptTxResult.cs`, Besu
/// `RpcErrorType.java`, Hardhat's EDR `mem_pool.rs`.
const MESSAGES: [(&str, Reason); 33] = [
    // geth, reth, erigon
    ("already known", Reason::AlreadyKnown),
    // anvil, reth
    ("already imported", Reason::AlreadyKnown),
    // Nethermind before 1.32
    ("alreadyknown", Reason::AlreadyKnown),
    ("ownnoncealreadyused", Reason::AlreadyKnown),
    // Besu, Hardhat
    ("known transaction", Reason::AlreadyKnown),
    // erigon, older and newer
    ("existing tx with same hash", Reason::AlreadyKnown),
    ("existing txn with same hash", Reason::AlreadyKnown),
    // all but Nethermind before 1.32
    ("nonce too low", Reason::NonceTooLow),
    ("oldnonce", Reason::NonceTooLow),
    ("nonce is too low", Reason::NonceTooLow),
    // all but erigon and Nethermind before 1.32
    (
        "replacement transaction underpriced",
        Reason::ReplacementUnderpriced,
    ),
    // reth inside its pool
    (
        "insufficient gas price to replace",
        Reason::ReplacementUnderpriced,
    ),
    (
        "could not replace existing tx",
        Reason::ReplacementUnderpriced,
    ),
    ("replacementnotallowed", Reason::ReplacementUnderpriced),
    // geth when its pool is full
    ("txpool is full", Reason::PoolFull),
    ("sub-pool is full", Reason::PoolFull),
    ("pool size constraints", Reason::PoolFull),
    ("out of capacity", Reason::PoolFull),
    ("account limit exceeded", Reason::PoolFull),
    ("in-flight transaction limit", Reason::PoolFull),
    ("spammer", Reason::PoolFull),
    (
        "future transaction tries to replace pending",
        Reason::PoolFull,
    ),
    // geth, reth, erigon, anvil, newer Nethermind
    ("underpriced", Reason::Underpriced),
    ("less than block base fee", Reason::Underpriced),
    ("gas price below", Reason::Underpriced),
    ("below chain minimum", Reason::Underpriced),
    ("feetoolow", Reason::Underpriced),
    ("fee too low", Reason::Underpriced),
    // Hardhat
    ("too low for the next block", Reason::Underpriced),
    ("below the minimum", Reason::Underpriced),
    // all but Besu and Hardhat
    ("insufficient funds", Reason::InsufficientFunds),
    ("insufficientfunds", Reason::InsufficientFunds),
    ("overdraws from account", Reason::InsufficientFunds),
];

/// As [`MESSAGES`], of messages that are sentences.
const SENTENCES: [(&str, Reason); 2] = [
    // Besu
    (
        "upfront cost exceeds account balance",
        Reason::InsufficientFunds,
    ),
    // Hardhat
    ("doesn't have enough funds", Reason::InsufficientFunds),
];

// === impl SendError ===

impl SendError {
    fn classified(message: String) -> Self {
        // An unknown type of transaction is no known transaction.
        let text = message.to_ascii_lowercase().replace("unknown", "");
        let mut known = MESSAGES.iter().chain(&SENTENCES);
        let Some((_, reason)) = known.find(|(part, _)| text.contains(part)) else {
            return Self::Refused(message);
        };
        match reason {
            Reason::AlreadyKnown => Self::AlreadyKnown(message),
            Reason::NonceTooLow => Self::NonceTooLow(message),
            Reason::ReplacementUnderpriced => Self::ReplacementUnderpriced(message),
            Reason::Underpriced => Self::Underpriced(message),
            Reason::InsufficientFunds => Self::InsufficientFunds(message),
            Reason::PoolFull => Self::PoolFull(message),
        }
    }
}

impl From<RpcError> for SendError {
    fn from(error: RpcError) -> Self {
        match error {
            // Of the service before the node, or of the request's form: nothing about the transaction.
            RpcError::Node { code, .. } if is_about_request(code) => Self::Rpc(error),
            RpcError::Node { message, .. } => Self::classified(message),
            other => Self::Rpc(other),
        }
    }
}

/// Whether an error's code says that the method was not even tried (JSON-RPC 2.0, section 5.1). Other codes mean
/// different things to different nodes: −32005 is a limit on requests to most, and too much gas to Besu.
fn is_about_request(code: i64) -> bool {
    const PARSE_ERROR: i64 = -32700;
    const INVALID_REQUEST: i64 = -32600;
    const METHOD_NOT_FOUND: i64 = -32601;
    matches!(code, PARSE_ERROR | INVALID_REQUEST | METHOD_NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The class that a node's message is given.
    fn class(message: &str) -> &'static str {
        let error = RpcError::Node {
            method: "eth_sendRawTransaction",
            code: -32000,
            message: message.to_owned(),
            data: None,
        };
        let error = SendError::from(error);
        assert!(error.to_string().ends_with(message), "{error}");
        match error {
            SendError::AlreadyKnown(_) => "already known",
            SendError::NonceTooLow(_) => "nonce too low",
            SendError::ReplacementUnderpriced(_) => "replacement underpriced",
            SendError::Underpriced(_) => "underpriced",
            SendError::InsufficientFunds(_) => "insufficient funds",
            SendError::PoolFull(_) => "pool full",
            SendError::Refused(_) => "refused",
            SendError::Rpc(_) => "rpc",
        }
    }

    fn all(cases: &[(&str, &str)]) {
        for (message, expected) in cases {
            assert_eq!(class(message), *expected, "{message}");
        }
    }

    #[test]
    fn geth() {
        all(&[
            ("already known", "already known"),
            ("nonce too low: next nonce 5, tx nonce 3", "nonce too low"),
            (
                "replacement transaction underpriced",
                "replacement underpriced",
            ),
            (
                "replacement transaction underpriced: new tx gas fee cap 1 <= 2 queued",
                "replacement underpriced",
            ),
            ("transaction underpriced", "underpriced"),
            (
                "transaction gas price below minimum: gas tip cap 0, minimum needed 1",
                "underpriced",
            ),
            (
                "max fee per gas less than block base fee: address 0x71562b71999873DB5b286dF957af199Ec94617F7, maxFeePerGas: 1, baseFee: 875000000",
                "underpriced",
            ),
            (
                "insufficient funds for gas * price + value: balance 0, tx cost 21000, overshot 21000",
                "insufficient funds",
            ),
            ("insufficient funds for transfer", "insufficient funds"),
            ("txpool is full", "pool full"),
            ("account limit exceeded: pooled 16 txs", "pool full"),
            (
                "in-flight transaction limit reached for delegated accounts",
                "pool full",
            ),
            ("future transaction tries to replace pending", "pool full"),
            ("nonce too high: tx nonce 9, gapped nonce 5", "refused"),
            ("exceeds block gas limit", "refused"),
            (
                "intrinsic gas too low: gas 1, minimum needed 21000",
                "refused",
            ),
            (
                "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)",
                "refused",
            ),
            (
                "max priority fee per gas higher than max fee per gas",
                "refused",
            ),
            (
                "oversized data: transaction size 140000, limit 131072",
                "refused",
            ),
            (
                "invalid sender: invalid chain id for signer: have 1 want 2",
                "refused",
            ),
            ("address already reserved", "refused"),
        ]);
    }

    #[test]
    fn reth() {
        all(&[
            ("already known", "already known"),
            ("[0x12]: already imported", "already known"),
            ("nonce too low: next nonce 5, tx nonce 3", "nonce too low"),
            (
                "replacement transaction underpriced",
                "replacement underpriced",
            ),
            (
                "insufficient gas price to replace existing transaction",
                "replacement underpriced",
            ),
            ("transaction underpriced", "underpriced"),
            ("max fee per gas less than block base fee", "underpriced"),
            ("transaction feeCap 6 below chain minimum", "underpriced"),
            (
                "insufficient funds for gas * price + value: have 0 want 21000",
                "insufficient funds",
            ),
            ("transaction overdraws from account", "insufficient funds"),
            ("txpool is full", "pool full"),
            (
                "transaction discarded outright due to pool size constraints",
                "pool full",
            ),
            ("exceeds block gas limit", "refused"),
        ]);
    }

    #[test]
    fn nethermind() {
        all(&[
            ("AlreadyKnown", "already known"),
            ("OwnNonceAlreadyUsed", "already known"),
            (
                "OldNonce, Current nonce: 2, nonce of rejected tx: 1",
                "nonce too low",
            ),
            ("ReplacementNotAllowed", "replacement underpriced"),
            (
                "FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 50, BaseFee: 100, MaxPriorityFeePerGas:200, Block number: 5",
                "underpriced",
            ),
            (
                "FeeTooLow, FeePerGas needs to be higher than 100 to be added to the TxPool. Affordable FeePerGas of rejected tx: 50.",
                "underpriced",
            ),
            ("FeeTooLowToCompete", "underpriced"),
            (
                "InsufficientFunds, Account balance: 1, cumulative cost: 2",
                "insufficient funds",
            ),
            ("NonceGap, Future nonce. Expected nonce: 4", "refused"),
            ("GasLimitExceeded", "refused"),
            // Since 1.32, in the words of geth.
            ("already known", "already known"),
            ("nonce too low", "nonce too low"),
            (
                "replacement transaction underpriced",
                "replacement underpriced",
            ),
            ("transaction underpriced", "underpriced"),
            (
                "insufficient funds for gas * price + value",
                "insufficient funds",
            ),
        ]);
    }

    #[test]
    fn erigon() {
        all(&[
            ("ALREADY_EXISTS: already known", "already known"),
            (
                "INTERNAL_ERROR: existing tx with same hash",
                "already known",
            ),
            (
                "INTERNAL_ERROR: existing txn with same hash",
                "already known",
            ),
            ("INTERNAL_ERROR: nonce too low", "nonce too low"),
            (
                "INTERNAL_ERROR: could not replace existing tx",
                "replacement underpriced",
            ),
            ("FEE_TOO_LOW: underpriced", "underpriced"),
            ("FEE_TOO_LOW: fee too low", "underpriced"),
            ("INTERNAL_ERROR: insufficient funds", "insufficient funds"),
            ("INTERNAL_ERROR: baseFee sub-pool is full", "pool full"),
            ("INTERNAL_ERROR: spammer", "pool full"),
            ("INVALID: invalid sender", "refused"),
        ]);
    }

    #[test]
    fn besu() {
        all(&[
            ("Known transaction", "already known"),
            ("Nonce too low", "nonce too low"),
            (
                "Replacement transaction underpriced",
                "replacement underpriced",
            ),
            (
                "Gas price below configured minimum gas price",
                "underpriced",
            ),
            ("Gas price below current base fee", "underpriced"),
            ("Upfront cost exceeds account balance", "insufficient funds"),
            (
                "Transaction nonce is too distant from current sender nonce",
                "refused",
            ),
            ("Transaction fee cap exceeded", "refused"),
            ("Transaction gas limit exceeds block gas limit", "refused"),
        ]);
    }

    #[test]
    fn anvil() {
        all(&[
            ("transaction already imported", "already known"),
            ("nonce too low", "nonce too low"),
            (
                "replacement transaction underpriced",
                "replacement underpriced",
            ),
            ("max fee per gas less than block base fee", "underpriced"),
            (
                "Insufficient funds for gas * price + value",
                "insufficient funds",
            ),
            ("Nonce too high", "refused"),
            ("intrinsic gas too low", "refused"),
        ]);
    }

    #[test]
    fn hardhat() {
        all(&[
            ("Known transaction: 0x1234", "already known"),
            (
                "Nonce too low. Expected nonce to be 1 but got 0. Note that transactions can't be queued when automining.",
                "nonce too low",
            ),
            (
                "Replacement transaction underpriced. A gasPrice/maxFeePerGas of at least 2 is necessary to replace the existing transaction with nonce 0.",
                "replacement underpriced",
            ),
            (
                "Transaction maxFeePerGas (1) is too low for the next block, which has a baseFeePerGas of 875000000",
                "underpriced",
            ),
            (
                "Transaction gas price is 1, which is below the minimum of 8000000000",
                "underpriced",
            ),
            (
                "Sender doesn't have enough funds to send tx. The max upfront cost is: 2 and the sender's balance is: 1.",
                "insufficient funds",
            ),
            (
                "Transaction gas limit is 60000000 and exceeds block gas limit of 30000000",
                "refused",
            ),
        ]);
    }

    #[test]
    fn a_request_that_was_not_tried_says_nothing_of_the_transaction() {
        let error = RpcError::Node {
            method: "eth_sendRawTransaction",
            code: -32601,
            message: "the method is not known transaction".to_owned(),
            data: None,
        };
        assert!(matches!(SendError::from(error), SendError::Rpc(_)));
    }

    #[test]
    fn an_unknown_type_is_no_known_transaction() {
        let error = SendError::classified("unknown transaction type: 2".to_owned());
        assert!(matches!(error, SendError::Refused(_)), "{error:?}");
    }
}
