//! Requests to verify a proof in JSON, and their verdicts.

use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::message::VerificationResult;
use super::operation::{NumberedRequest, Operation, ProofToVerify};
use crate::refused::Refused;

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'a> {
    #[serde(default)]
    request_id: u64,
    kind: String,
    key: Option<String>,
    #[serde(borrow)]
    statement: Option<&'a RawValue>,
    #[serde(borrow)]
    proof: &'a RawValue,
    #[serde(default)]
    source: String,
    #[serde(default)]
    priority: u8,
    deadline_ms: Option<u64>,
}

/// The request in a body. Proof and statement are JSON in the kind's format, or bytes as a string of
/// hexadecimal digits after `0x`.
pub(super) fn read_request(body: &Bytes) -> Result<NumberedRequest, Refused> {
    let bad_request = |why: String| Refused::new(StatusCode::BAD_REQUEST, why);
    let fields: Body<'_> = serde_json::from_slice(body)
        .map_err(|error| bad_request(format!("not a request to verify a proof: {error}")))?;
    let key = fields.key.as_deref().map(str::parse).transpose();
    let statement = fields
        .statement
        .map(|value| content(body, value, "statement"));
    let proof = ProofToVerify {
        kind: fields.kind,
        key: key.map_err(|error| bad_request(format!("`key`: {error}")))?,
        statement: statement.transpose()?.unwrap_or_default(),
        proof: content(body, fields.proof, "proof")?,
        source: fields.source,
        priority: fields.priority,
        deadline: fields.deadline_ms.map(Duration::from_millis),
    };
    Ok(NumberedRequest {
        request_id: fields.request_id,
        operation: Ok(Operation::Verify(proof)),
    })
}

/// The content of a field: its JSON, or the bytes of a string.
fn content(body: &Bytes, value: &RawValue, field: &str) -> Result<Bytes, Refused> {
    let text = value.get();
    if !text.starts_with('"') {
        return Ok(body.slice_ref(text.as_bytes()));
    }
    // Hexadecimal digits need no escapes; a string that has any is refused.
    let digits = text.trim_matches('"').strip_prefix("0x");
    let decoded = digits.and_then(|digits| hex::decode(digits).ok());
    decoded.map(Bytes::from).ok_or_else(|| {
        let why = format!(
            "`{field}`: expected JSON as the kind reads it, or an even number of hexadecimal digits in a \
             string after 0x"
        );
        Refused::new(StatusCode::BAD_REQUEST, why)
    })
}

/// A verdict as JSON, with the name of its status.
pub(super) fn verdict(result: &VerificationResult) -> Value {
    json!({
        "request_id": result.request_id,
        "verdict": result.status().map(|status| status.name()),
        "status": result.status,
        "error_message": result.error_message,
        "time_in_queue_ms": result.time_in_queue_ms,
        "time_in_verify_ms": result.time_in_verify_ms,
        "batch_failure_count": result.batch_failure_count,
        "batch_size": result.batch_size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<NumberedRequest, Refused> {
        read_request(&Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn proofs_are_json_or_hexadecimal_digits() {
        let body =
            r#"{"request_id": 7, "kind": "k", "proof": {"a": [1,  2]}, "statement": "0x00fF"}"#;
        let request = parse(body).unwrap();
        assert_eq!(request.request_id, 7);
        let Ok(Operation::Verify(proof)) = request.operation else {
            panic!("{request:?}");
        };
        assert_eq!(proof.proof, r#"{"a": [1,  2]}"#);
        assert_eq!(*proof.statement, [0, 255]);
    }

    #[test]
    fn malformed_requests_are_refused_with_the_reason() {
        let digest = "0".repeat(63);
        for (body, why) in [
            ("", "EOF"),
            ("{", "EOF"),
            ("[]", "not a request"),
            (r#"{"kind": "k"}"#, "missing field `proof`"),
            (
                r#"{"kind": "k", "proof": 1, "spell": 2}"#,
                "unknown field `spell`",
            ),
            (r#"{"kind": "k", "proof": 1, "priority": 256}"#, "256"),
            (r#"{"kind": "k", "proof": "00"}"#, "`proof`: expected"),
            (r#"{"kind": "k", "proof": "0x0"}"#, "`proof`: expected"),
            (
                r#"{"kind": "k", "proof": "0x\u0030\u0030"}"#,
                "`proof`: expected",
            ),
            (
                r#"{"kind": "k", "proof": 1, "statement": "0xgg"}"#,
                "`statement`: expected",
            ),
            (
                &format!(r#"{{"kind": "k", "proof": 1, "key": "{digest}"}}"#),
                "`key`: a key's digest",
            ),
        ] {
            let refused = parse(body).unwrap_err();
            assert_eq!(refused.status, StatusCode::BAD_REQUEST);
            assert!(refused.why.contains(why), "{}", refused.why);
        }
    }
}
