//! The proof in an emitted message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use proofmill_workflow::JsonPointer;
use serde_json::Value;

/// Place of a proof and of its cycles in a message.
#[derive(Clone, Debug, Default)]
pub struct Extract {
    /// Field of the proof: a string, hexadecimal after `0x`, else Base64. Without it the whole message is the proof.
    pub proof: Option<JsonPointer>,
    /// Field of the number of cycles.
    pub cycles: Option<JsonPointer>,
}

/// The reason why a message has no proof to report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The message is not JSON.
    #[error("the emitted message is not JSON, and `proof` or `cycles` names a field of it")]
    NotJson,
    /// There is no such string.
    #[error("the emitted message has no string at {0}")]
    NoProof(String),
    /// The string is neither Base64 nor hexadecimal.
    #[error("{0} in the emitted message is neither Base64 nor hexadecimal after `0x`")]
    NotBytes(String),
}

// === impl Extract ===

impl Extract {
    /// The proof in `message`, and its cycles if the message has them.
    ///
    /// # Errors
    /// [`Unreadable`]; a missing number of cycles is none.
    pub fn read(&self, message: &Bytes) -> Result<(Bytes, Option<u64>), Unreadable> {
        if self.proof.is_none() && self.cycles.is_none() {
            return Ok((message.clone(), None));
        }
        let json: Value = serde_json::from_slice(message).map_err(|_| Unreadable::NotJson)?;
        let cycles = self.cycles.as_ref().and_then(|field| field.resolve(&json));
        let cycles = cycles.and_then(Value::as_u64).filter(|it| *it > 0);
        let Some(field) = &self.proof else {
            return Ok((message.clone(), cycles));
        };
        let text = field.resolve(&json).and_then(Value::as_str);
        let text = text.ok_or_else(|| Unreadable::NoProof(field.to_string()))?;
        let bytes = match text.strip_prefix("0x") {
            Some(digits) => hex::decode(digits).ok(),
            None => STANDARD.decode(text).ok(),
        };
        let bytes = bytes.ok_or_else(|| Unreadable::NotBytes(field.to_string()))?;
        Ok((bytes.into(), cycles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> Option<JsonPointer> {
        Some(JsonPointer::try_new(text).expect("a pointer"))
    }

    #[test]
    fn a_message_is_the_proof_or_has_it_in_a_field() {
        let message = Bytes::from_static(br#"{"p":"AAH/","h":"0x00ff","n":{"cycles":12}}"#);
        let whole = Extract::default().read(&message);
        assert_eq!(whole, Ok((message.clone(), None)));
        let read = |proof: &str, cycles: &str| {
            let extract = Extract {
                proof: pointer(proof),
                cycles: pointer(cycles),
            };
            extract.read(&message)
        };
        let proof = Bytes::from_static(&[0, 1, 255]);
        assert_eq!(read("/p", "/n/cycles"), Ok((proof.clone(), Some(12))));
        assert_eq!(read("/p", "/p"), Ok((proof, None)));
        assert_eq!(
            read("/h", "/none"),
            Ok((Bytes::from_static(&[0, 255]), None))
        );
        assert_eq!(read("/n", "/p"), Err(Unreadable::NoProof("/n".into())));
    }

    #[test]
    fn messages_of_another_kind_are_refused() {
        let extract = Extract {
            proof: pointer("/p"),
            cycles: None,
        };
        let read = |text: &'static str| extract.read(&Bytes::from_static(text.as_bytes()));
        assert_eq!(read("\u{1}"), Err(Unreadable::NotJson));
        for text in [r#"{"p":"0x1"}"#, r#"{"p":"!!"}"#, r#"{"p":"0xzz"}"#] {
            assert_eq!(read(text), Err(Unreadable::NotBytes("/p".into())), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(extract.read(&deep.into()), Err(Unreadable::NotJson));
    }
}
