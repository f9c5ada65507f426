//! Transactions with a fee market (EIP-1559), signed and not.

use alloy_consensus::transaction::RlpEcdsaDecodableTx as _;
use alloy_consensus::transaction::RlpEcdsaEncodableTx as _;
use alloy_consensus::{SignableTransaction as _, TxEip1559};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};

/// The first byte of a transaction of EIP-1559.
const TYPE: u8 = 2;

/// The longest raw transaction that is decoded, in bytes: nodes take none that is longer.
pub const RAW_MAX: usize = 128 << 10;

/// A transaction of EIP-1559, without an access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The chain that it is for.
    pub chain_id: u64,
    /// Number of the sender's transactions before it.
    pub nonce: u64,
    /// The receiver; `None` to create a contract.
    pub to: Option<Address>,
    /// Amount sent, in wei.
    pub value: U256,
    /// The input of the receiver's code, or the code that creates a contract.
    pub data: Bytes,
    /// The most gas that it may use.
    pub gas_limit: u64,
    /// The most that is paid for each unit of gas, in wei.
    pub max_fee_per_gas: u128,
    /// The most of it that is paid to the block's proposer, in wei.
    pub max_priority_fee_per_gas: u128,
}

/// A signed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Its hash, by which nodes know it.
    pub hash: B256,
    /// Its bytes, as they are sent.
    pub raw: Bytes,
}

/// A signed transaction, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The transaction.
    pub transaction: Transaction,
    /// The account whose key signed it.
    pub sender: Address,
    /// Its hash.
    pub hash: B256,
}

/// The reason why bytes are not a signed transaction of EIP-1559.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// More than [`RAW_MAX`] bytes.
    #[error("a transaction of {0} bytes is longer than {RAW_MAX}")]
    TooLong(usize),
    /// Another type of transaction.
    #[error("it is no transaction of type 2 (EIP-1559)")]
    Type,
    /// The fields do not decode, or not to the same bytes again.
    #[error("its encoding is invalid: {0}")]
    Encoding(String),
    /// A field that no node takes, or that [`Transaction`] does not have.
    #[error("{0}")]
    Field(&'static str),
    /// The signature is of no key, or has a large `s` (EIP-2).
    #[error("its signature is invalid")]
    Signature,
}

// === impl Transaction ===

impl Transaction {
    /// The hash that is signed.
    pub fn signing_hash(&self) -> B256 {
        self.to_alloy().signature_hash()
    }

    /// This transaction with a signature, which is not checked.
    pub(crate) fn with_signature(&self, signature: Signature) -> Signed {
        let mut raw = Vec::new();
        let transaction = self.to_alloy();
        transaction.eip2718_encode(&signature, &mut raw);
        Signed {
            hash: transaction.tx_hash(&signature),
            raw: raw.into(),
        }
    }

    fn to_alloy(&self) -> TxEip1559 {
        TxEip1559 {
            chain_id: self.chain_id,
            nonce: self.nonce,
            gas_limit: self.gas_limit,
            max_fee_per_gas: self.max_fee_per_gas,
            max_priority_fee_per_gas: self.max_priority_fee_per_gas,
            to: self.to.map_or(TxKind::Create, TxKind::Call),
            value: self.value,
            access_list: Default::default(),
            input: self.data.clone(),
        }
    }

    fn from_alloy(transaction: TxEip1559) -> Result<Self, DecodeError> {
        if !transaction.access_list.is_empty() {
            return Err(DecodeError::Field("it has an access list"));
        }
        if transaction.nonce == u64::MAX {
            return Err(DecodeError::Field(
                "its nonce is not below 2⁶⁴ − 1 (EIP-2681)",
            ));
        }
        if transaction.max_priority_fee_per_gas > transaction.max_fee_per_gas {
            return Err(DecodeError::Field(
                "its priority fee is above its whole fee",
            ));
        }
        Ok(Self {
            chain_id: transaction.chain_id,
            nonce: transaction.nonce,
            to: transaction.to.into_to(),
            value: transaction.value,
            data: transaction.input,
            gas_limit: transaction.gas_limit,
            max_fee_per_gas: transaction.max_fee_per_gas,
            max_priority_fee_per_gas: transaction.max_priority_fee_per_gas,
        })
    }
}

// === impl Recovered ===

impl Recovered {
    /// Decodes a raw transaction, and recovers its sender. Bytes that are not the one encoding of a transaction are
    /// refused, as is a signature of which another form exists (EIP-2).
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(raw: &[u8]) -> Result<Self, DecodeError> {
        if raw.len() > RAW_MAX {
            return Err(DecodeError::TooLong(raw.len()));
        }
        let Some((&TYPE, mut rest)) = raw.split_first() else {
            return Err(DecodeError::Type);
        };
        let signed = TxEip1559::rlp_decode_signed(&mut rest)
            .map_err(|error| DecodeError::Encoding(error.to_string()))?;
        if !rest.is_empty() {
            let why = format!("{} bytes follow it", rest.len());
            return Err(DecodeError::Encoding(why));
        }
        let (transaction, signature, _) = signed.into_parts();
        if signature.normalize_s().is_some() {
            return Err(DecodeError::Signature);
        }
        let transaction = Transaction::from_alloy(transaction)?;
        let again = transaction.with_signature(signature);
        if again.raw[..] != *raw {
            let why = "it is not the shortest encoding".to_owned();
            return Err(DecodeError::Encoding(why));
        }
        let sender = signature
            .recover_address_from_prehash(&transaction.signing_hash())
            .map_err(|_| DecodeError::Signature)?;
        Ok(Self {
            transaction,
            sender,
            hash: again.hash,
        })
    }
}
