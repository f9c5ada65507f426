//! Signers of transactions: a key in this process, or a server that has it.

mod local;
mod remote;

use alloy_primitives::Address;

use crate::rpc::RpcError;
use crate::transaction::{DecodeError, Signed, Transaction};

pub use local::{KeyError, Local};
pub use remote::Remote;
pub(crate) use remote::raw_of;

/// Signer of an account's transactions.
#[derive(Debug)]
pub enum Signer {
    /// A key in this process.
    Local(Local),
    /// A server that has the key.
    Remote(Remote),
}

/// The reason why a transaction is not signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The key cannot sign.
    #[error("the key cannot sign it: {0}")]
    Key(String),
    /// The server could not be asked, or refused.
    #[error("the signer: {0}")]
    Rpc(#[from] RpcError),
    /// The server's answer is not a signed transaction.
    #[error("the signer's answer is not a transaction that can be sent: {0}")]
    Decode(#[from] DecodeError),
    /// The server signed another transaction than it was asked to.
    #[error("the signer signed another {field} than it was asked to: {signed} instead of {asked}")]
    Other {
        /// The field that differs.
        field: &'static str,
        /// Its value in the request.
        asked: String,
        /// Its value in the answer.
        signed: String,
    },
}

// === impl Signer ===

impl Signer {
    /// The account.
    pub fn address(&self) -> Address {
        match self {
            Self::Local(local) => local.address(),
            Self::Remote(remote) => remote.address(),
        }
    }

    /// Signs a transaction. A local key gives the same signature each time, a server may not.
    ///
    /// # Errors
    /// [`SignError`].
    pub async fn sign(&self, transaction: &Transaction) -> Result<Signed, SignError> {
        match self {
            Self::Local(local) => local.sign(transaction),
            Self::Remote(remote) => remote.sign(transaction).await,
        }
    }
}
