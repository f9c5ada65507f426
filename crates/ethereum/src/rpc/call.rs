//! Calls of contracts without a transaction.

use alloy_primitives::{Address, Bytes, U256};
use serde_json::{Value, json};

use super::error::RpcError;

/// A call of a contract, as if by a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The caller; the zero address if `None`.
    pub from: Option<Address>,
    /// The contract; `None` to run `data` as the code that creates one.
    pub to: Option<Address>,
    /// The input: a function's selector and its ABI-encoded arguments.
    pub data: Bytes,
    /// Amount sent with the call, in wei.
    pub value: U256,
    /// The most gas that it may use; the node's own limit if `None`.
    pub gas: Option<u64>,
}

/// The reason why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The contract reverted the call.
    #[error("the call was reverted: {message}")]
    Reverted {
        /// Data of the revert, for [`revert::explain`](crate::revert::explain); empty if it gave nothing, or if the
        /// node does not pass it on.
        data: Bytes,
        /// The node's message.
        message: String,
    },
    /// The call ended without result and without revert: it ran out of gas or met an invalid instruction.
    #[error("the call did not end well: {message}")]
    Halted {
        /// The node's message.
        message: String,
    },
    /// The node could not be asked, or refused the request itself.
    #[error(transparent)]
    Rpc(RpcError),
}

/// Parts of messages, in lower case, with which nodes report that a call was reverted. The code 3 says it too (geth,
/// erigon, reth, anvil, nethermind).
const REVERTED: [&str; 4] = [
    "execution reverted",
    "reverted with",
    "transaction reverted",
    "vm execution error",
];

/// Parts of messages, in lower case, of calls that ended in another way.
const HALTED: [&str; 11] = [
    "out of gas",
    "outofgas",
    "gas required exceeds",
    "invalid opcode",
    "invalidopcode",
    "opcodenotfound",
    "invalidfeopcode",
    "invalid jump",
    "stack underflow",
    "stack limit reached",
    "evm error",
];

// === impl Call ===

impl Call {
    /// The parameter of requests.
    pub(super) fn parameter(&self) -> Value {
        let mut parameter = json!({
            "data": self.data.to_string(),
            "value": format!("{:#x}", self.value),
        });
        if let Some(from) = self.from {
            parameter["from"] = json!(from.to_checksum(None));
        }
        if let Some(to) = self.to {
            parameter["to"] = json!(to.to_checksum(None));
        }
        if let Some(gas) = self.gas {
            parameter["gas"] = json!(format!("{gas:#x}"));
        }
        parameter
    }
}

// === impl CallError ===

impl From<RpcError> for CallError {
    fn from(error: RpcError) -> Self {
        let RpcError::Node {
            method,
            code,
            message,
            data,
        } = error
        else {
            return Self::Rpc(error);
        };
        let text = message.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
        if code == 3 || has(&REVERTED) {
            let data = data.unwrap_or_default();
            return Self::Reverted { data, message };
        }
        if has(&HALTED) {
            return Self::Halted { message };
        }
        Self::Rpc(RpcError::Node {
            method,
            code,
            message,
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i64, message: &str, data: Option<&[u8]>) -> CallError {
        CallError::from(RpcError::Node {
            method: "eth_call",
            code,
            message: message.to_owned(),
            data: data.map(Bytes::copy_from_slice),
        })
    }

    #[test]
    fn reverts_are_told_from_other_ends_and_other_errors() {
        for (code, message, data) in [
            (3, "execution reverted: no", Some(&[8, 0xc3][..])),
            (3, "execution reverted", Some(&[])),
            // Before geth 1.10 and at gateways that drop codes and data.
            (-32000, "execution reverted", None),
            (-32000, "Execution reverted", Some(&[1])),
            (-32015, "VM execution error.", Some(&[2])),
            (
                -32603,
                "Error: VM Exception while processing transaction: reverted with reason string 'no'",
                Some(&[3]),
            ),
            (
                -32603,
                "Error: Transaction reverted without a reason string",
                None,
            ),
        ] {
            let CallError::Reverted {
                data: found,
                message: text,
            } = error(code, message, data)
            else {
                panic!("{message}");
            };
            assert_eq!((&found[..], &text[..]), (data.unwrap_or_default(), message));
        }
        for message in [
            "out of gas",
            "gas required exceeds allowance (21000)",
            "invalid opcode: INVALID",
            "EVM error: OutOfGas",
            "stack limit reached 1024 (1023)",
        ] {
            let found = error(-32000, message, None);
            assert!(matches!(found, CallError::Halted { .. }), "{found:?}");
        }
        for message in [
            "header not found",
            "insufficient funds for transfer",
            "limit exceeded",
        ] {
            let found = error(-32000, message, None);
            assert!(
                matches!(found, CallError::Rpc(RpcError::Node { .. })),
                "{found:?}"
            );
        }
    }
}
