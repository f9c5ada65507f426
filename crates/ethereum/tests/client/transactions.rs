//! Transactions that ethers and viem signed: signed alike, decoded, and refused in every other form.

use proofmill_ethereum::{
    Address, B256, Bytes, DecodeError, Local, RAW_MAX, Recovered, Signed, Transaction, U256,
};
use proptest::prelude::*;
use serde_json::Value;

/// The private key of account 0 of anvil and Hardhat.
pub(crate) const ANVIL_KEY: &str =
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// The signer with a key of 64 digits.
pub(crate) fn local(digits: &str) -> Local {
    let mut key = [0; 32];
    hex::decode_to_slice(digits, &mut key).expect("a key");
    Local::from_bytes(&key, "the test").expect("a key")
}

struct Vector {
    key: String,
    address: Address,
    transaction: Transaction,
    signed: Signed,
}

fn vectors() -> Vec<Vector> {
    let parsed: Vec<Value> = serde_json::from_str(include_str!("vectors.json")).expect("vectors");
    let of = |vector: &Value| {
        let text = |field: &str| vector[field].as_str().expect(field).to_owned();
        let number = |field: &str| text(field).parse::<U256>().expect(field);
        Vector {
            key: text("key")[2..].to_owned(),
            address: text("address").parse().expect("an address"),
            transaction: Transaction {
                chain_id: number("chain").to(),
                nonce: number("nonce").to(),
                to: vector["to"]
                    .as_str()
                    .map(|to| to.parse().expect("an address")),
                value: number("value"),
                data: text("data").parse().expect("data"),
                gas_limit: number("gas").to(),
                max_fee_per_gas: number("fee").to(),
                max_priority_fee_per_gas: number("tip").to(),
            },
            signed: Signed {
                hash: text("hash").parse().expect("a hash"),
                raw: text("raw").parse().expect("a raw transaction"),
            },
        }
    };
    parsed.iter().map(of).collect()
}

#[test]
fn signatures_are_those_of_ethers_and_viem() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 16);
    assert_eq!(vectors[0].key, ANVIL_KEY);
    for vector in vectors {
        let local = local(&vector.key);
        assert_eq!(local.address(), vector.address);
        let signed = local.sign(&vector.transaction).expect("signed");
        assert_eq!(signed, vector.signed, "{:?}", vector.transaction);
    }
}

#[test]
fn their_transactions_are_decoded() {
    for vector in vectors() {
        let found = Recovered::decode(&vector.signed.raw).expect("a transaction");
        assert_eq!(found.transaction, vector.transaction);
        assert_eq!(
            (found.sender, found.hash),
            (vector.address, vector.signed.hash)
        );
    }
}

/// The items of a raw transaction's list.
fn items(raw: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &raw[1..];
    let header = alloy_rlp::Header::decode(&mut rest).expect("a list");
    assert!(header.list && header.payload_length == rest.len());
    let mut items = Vec::new();
    while !rest.is_empty() {
        let before = rest;
        let header = alloy_rlp::Header::decode(&mut rest).expect("an item");
        rest = &rest[header.payload_length..];
        items.push(before[..before.len() - rest.len()].to_vec());
    }
    items
}

/// A raw transaction of these items.
fn raw_of(items: &[Vec<u8>]) -> Vec<u8> {
    let payload = items.concat();
    let mut raw = vec![2];
    let payload_length = payload.len();
    alloy_rlp::Header {
        list: true,
        payload_length,
    }
    .encode(&mut raw);
    raw.extend(payload);
    raw
}

/// A text in RLP.
fn text(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    alloy_rlp::Encodable::encode(bytes, &mut encoded);
    encoded
}

#[test]
fn every_other_form_is_refused() {
    let raw = vectors()[0].signed.raw.to_vec();
    let good = items(&raw);
    assert_eq!((good.len(), raw_of(&good)), (12, raw.clone()));
    let with = |index: usize, item: Vec<u8>| {
        let mut items = good.clone();
        items[index] = item;
        Recovered::decode(&raw_of(&items)).expect_err("another form")
    };
    let is_encoding = |error: &DecodeError| matches!(error, DecodeError::Encoding(_));

    // Numbers with leading zeros, in a longer form, or too large.
    assert!(is_encoding(&with(1, vec![0x00])));
    assert!(is_encoding(&with(0, vec![0x83, 0, 0x7a, 0x69])));
    assert!(is_encoding(&with(1, vec![0x81, 0x05])));
    assert!(is_encoding(&with(4, text(&[1; 9]))));
    assert!(is_encoding(&with(3, text(&[1; 17]))));
    assert!(is_encoding(&with(6, text(&[1; 33]))));
    // A receiver that is no address; a list where a text belongs, and the reverse.
    assert!(is_encoding(&with(5, text(&[1; 19]))));
    assert!(is_encoding(&with(7, vec![0xc0])));
    assert!(is_encoding(&with(8, vec![0x80])));
    // Fields that no node takes.
    assert_eq!(
        with(1, text(&[0xff; 8])),
        DecodeError::Field("its nonce is not below 2⁶⁴ − 1 (EIP-2681)")
    );
    assert_eq!(
        with(2, text(&[0xff; 8])),
        DecodeError::Field("its priority fee is above its whole fee")
    );
    // An access list with one address and no keys.
    let mut entry = Vec::new();
    let address = text(&[1; 20]);
    let inner = [address, vec![0xc0]].concat();
    entry.push(0xc0 + inner.len() as u8);
    entry.extend(inner);
    let list = [vec![0xc0 + entry.len() as u8], entry].concat();
    assert_eq!(with(8, list), DecodeError::Field("it has an access list"));
    // Signatures: a parity that is none, zero, and numbers that are not below the order.
    assert!(is_encoding(&with(9, vec![0x02])));
    assert!(is_encoding(&with(9, vec![0x1b])));
    assert_eq!(with(10, vec![0x80]), DecodeError::Signature);
    assert_eq!(with(11, vec![0x80]), DecodeError::Signature);
    assert_eq!(with(10, text(&[0xff; 32])), DecodeError::Signature);
    assert_eq!(with(11, text(&[0xff; 32])), DecodeError::Signature);
}

#[test]
fn the_other_signature_of_the_same_key_is_refused() {
    // (r, n − s) with the other parity signs the same: a node refuses it (EIP-2).
    let order: U256 = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
        .parse()
        .expect("a number");
    let raw = vectors()[0].signed.raw.to_vec();
    let mut items = items(&raw);
    let s = U256::from_be_slice(&items[11][1..]);
    let large = order - s;
    items[9] = if items[9] == [0x80] {
        vec![1]
    } else {
        vec![0x80]
    };
    items[11] = text(&large.to_be_bytes::<32>());
    assert_eq!(
        Recovered::decode(&raw_of(&items)),
        Err(DecodeError::Signature)
    );
}

#[test]
fn other_types_lengths_and_ends_are_refused() {
    let raw = vectors()[0].signed.raw.to_vec();
    for first in (0..=255).filter(|first| *first != 2) {
        let mut other = raw.clone();
        other[0] = first;
        assert_eq!(Recovered::decode(&other), Err(DecodeError::Type));
    }
    assert_eq!(Recovered::decode(&[]), Err(DecodeError::Type));
    for end in 1..raw.len() {
        Recovered::decode(&raw[..end]).expect_err("it is cut");
    }
    Recovered::decode(&[&raw[..], &[0]].concat()).expect_err("it is followed");
    let mut items = items(&raw);
    items.push(vec![0x80]);
    Recovered::decode(&raw_of(&items)).expect_err("it has another item");
    assert_eq!(
        Recovered::decode(&vec![2; RAW_MAX + 1]),
        Err(DecodeError::TooLong(RAW_MAX + 1))
    );
}

#[test]
fn a_changed_byte_is_another_transaction_or_none() {
    let vector = &vectors()[0];
    let raw = vector.signed.raw.to_vec();
    for at in 0..raw.len() {
        for bit in 0..8 {
            let mut other = raw.clone();
            other[at] ^= 1 << bit;
            if let Ok(found) = Recovered::decode(&other) {
                assert_ne!(found.sender, vector.address, "byte {at}, bit {bit}");
                assert_ne!(found.hash, vector.signed.hash);
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_signed_is_decoded(
        chain_id in 0..u64::MAX / 2,
        nonce in 0..u64::MAX,
        to in proptest::option::of(any::<[u8; 20]>()),
        value in any::<[u64; 4]>(),
        data in proptest::collection::vec(any::<u8>(), 0..300),
        gas_limit in any::<u64>(),
        fees in any::<(u128, u128)>(),
        key in 1_u64..,
    ) {
        let transaction = Transaction {
            chain_id,
            nonce,
            to: to.map(Address::from),
            value: U256::from_limbs(value),
            data: Bytes::from(data),
            gas_limit,
            max_fee_per_gas: fees.0.max(fees.1),
            max_priority_fee_per_gas: fees.0.min(fees.1),
        };
        let local = local(&hex::encode(B256::from(U256::from(key))));
        let signed = local.sign(&transaction).expect("signed");
        let found = Recovered::decode(&signed.raw).expect("decoded");
        prop_assert_eq!(found.transaction, transaction);
        prop_assert_eq!((found.sender, found.hash), (local.address(), signed.hash));
    }
}
