//! A key in this process.

use std::fmt;
use std::path::Path;

use alloy_primitives::{Address, Signature};
use k256::ecdsa::SigningKey;
use zeroize::Zeroizing;

use super::SignError;
use crate::transaction::{Signed, Transaction};

/// A secp256k1 key. Its memory is overwritten when it is dropped, and `Debug` shows the address only.
pub struct Local {
    key: SigningKey,
    address: Address,
}

/// The reason why a key cannot be used. Never shows the key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read, or other users can access it.
    #[error(transparent)]
    File(#[from] proofmill_bus::SecretError),
    /// The variable is not set.
    #[error("the variable {0} is missing: set it to the key")]
    NoVariable(String),
    /// The text is not a key.
    #[error("{place} holds no key: it must be 64 hexadecimal digits, with or without 0x")]
    Form {
        /// The file or the variable.
        place: String,
    },
    /// The number is no key of the curve.
    #[error("{place} holds no key of secp256k1: zero, or not below the group's order")]
    Range {
        /// The file or the variable.
        place: String,
    },
}

// === impl Local ===

impl Local {
    /// Reads a key in hexadecimal, with or without `0x`, from a file that only its owner, and perhaps a group, can
    /// access.
    ///
    /// # Errors
    /// [`KeyError`].
    pub async fn from_file(path: &Path) -> Result<Self, KeyError> {
        let text = proofmill_bus::read_secret(path).await?;
        Self::parse(&text, || path.display().to_string())
    }

    /// Reads a key in hexadecimal, with or without `0x`, from an environment variable.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_environment(name: &str) -> Result<Self, KeyError> {
        let value = std::env::var_os(name).ok_or_else(|| KeyError::NoVariable(name.to_owned()))?;
        let value = Zeroizing::new(value.into_encoded_bytes());
        let text = std::str::from_utf8(&value).unwrap_or_default();
        Self::parse(text, || format!("the variable {name}"))
    }

    /// The key with these 32 bytes, most significant first; `place` names their origin in errors.
    ///
    /// # Errors
    /// [`KeyError::Range`].
    pub fn from_bytes(bytes: &[u8; 32], place: &str) -> Result<Self, KeyError> {
        let key = SigningKey::from_bytes(bytes.into()).map_err(|_| KeyError::Range {
            place: place.to_owned(),
        })?;
        let address = Address::from_public_key(key.verifying_key());
        Ok(Self { key, address })
    }

    fn parse(text: &str, place: impl Fn() -> String) -> Result<Self, KeyError> {
        let text = text.trim_ascii();
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let mut bytes = Zeroizing::new([0; 32]);
        hex::decode_to_slice(digits, bytes.as_mut_slice())
            .map_err(|_| KeyError::Form { place: place() })?;
        Self::from_bytes(&bytes, &place())
    }

    /// The key's account.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Signs a transaction. The signature is the same each time (RFC 6979).
    ///
    /// # Errors
    /// [`SignError::Key`].
    pub fn sign(&self, transaction: &Transaction) -> Result<Signed, SignError> {
        let hash = transaction.signing_hash();
        let signed = self.key.sign_prehash_recoverable(hash.as_slice());
        let signature = signed.map_err(|error| SignError::Key(error.to_string()))?;
        Ok(transaction.with_signature(Signature::from(signature)))
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Local({})", self.address)
    }
}
