//! Entry points for fuzzing: reading of answers, without a server.

use alloy_primitives::keccak256;
use serde_json::Value;

use super::answer::{
    BYTES, HASH, QUANTITY, bytes, fixed, quantity, quantity_u128, quantity_u256, scalar,
};
use super::block::{Block, BlockId, Header};
use super::call::CallError;
use super::client::read;
use super::error::RpcError;
use super::receipt::Receipt;
use super::send::SendError;
use crate::revert::{ErrorAbi, explain};
use crate::transaction::Recovered;

const METHOD: &str = "eth_hostile";

/// The most characters of an error about an answer.
const ERROR_MAX: usize = 1000;

/// Reads the body of a response as the answer to each method. Returns how many of them it answers.
pub fn read_answer(body: &[u8], errors: &[ErrorAbi]) -> usize {
    match read(METHOD, body) {
        Ok(result) => read_result(&result),
        Err(error) => {
            read_error(error, errors);
            0
        }
    }
}

fn read_result(result: &Value) -> usize {
    let text = |field: &str| result.get(field).and_then(Value::as_str);
    let hash = |field: &str| text(field).and_then(fixed::<32>);
    let number = text("number").and_then(quantity).unwrap_or_default();
    let header = |block| Header::read(METHOD, block, result).map(|header| header.is_some());
    let transaction = hash("transactionHash").unwrap_or_default();
    let read = [
        header(BlockId::Latest),
        header(BlockId::Pending),
        header(BlockId::Number(number)),
        header(BlockId::Hash(hash("hash").unwrap_or_default())),
        Block::read(METHOD, number, result.clone()).map(|block| block.is_some()),
        Receipt::read(METHOD, transaction, result).map(|receipt| receipt.is_some()),
        scalar(METHOD, result, QUANTITY, quantity).map(|_| true),
        scalar(METHOD, result, QUANTITY, quantity_u128).map(|_| true),
        scalar(METHOD, result, QUANTITY, quantity_u256).map(|_| true),
        scalar(METHOD, result, BYTES, bytes).map(|_| true),
        scalar(METHOD, result, HASH, fixed::<32>).map(|_| true),
    ];
    if let Some(raw) = crate::signer::raw_of(result)
        && let Ok(found) = Recovered::decode(&raw)
    {
        assert_eq!(found.hash, keccak256(&raw));
    }
    let are_short = |error: &RpcError| error.to_string().chars().count() <= ERROR_MAX;
    assert!(
        read.iter()
            .all(|read| read.as_ref().err().is_none_or(are_short))
    );
    read.iter().filter(|read| matches!(read, Ok(true))).count()
}

fn read_error(error: RpcError, errors: &[ErrorAbi]) {
    let text = error.to_string();
    assert!(text.chars().count() <= ERROR_MAX && !text.chars().any(char::is_control));
    let RpcError::Node {
        method,
        code,
        message,
        data,
    } = error
    else {
        return;
    };
    let again = || RpcError::Node {
        method,
        code,
        message: message.clone(),
        data: data.clone(),
    };
    let _ = SendError::from(again());
    if let CallError::Reverted { data, .. } = CallError::from(again()) {
        let reason = explain(&data, errors);
        assert!(!reason.is_empty() && !reason.chars().any(char::is_control));
    }
}
