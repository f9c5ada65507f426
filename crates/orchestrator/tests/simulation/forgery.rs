//! Bytes of a liar's call, with values that no correct program can encode.

use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::remote::Call;
use serde::Serialize;

/// Placeholder for an invalid part; replaced in the encoded bytes.
pub(crate) const PART: &str = "0-part-that-is-none-0";
const NO_PART: &[u8; PART.len()] = b"a.b.c.d e.* > f.g.h.i";

/// Placeholder for nested groups, as an inline payload; replaced in the encoded bytes.
pub(crate) const NESTED: &[u8] = b"groups within groups";

pub(crate) fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("it can be encoded")
}

/// Bytes of a call in which the placeholders are replaced by invalid values.
pub(crate) fn forged(call: &Call, deep: usize) -> Vec<u8> {
    let mut bytes = encoded(call);
    replace(&mut bytes, PART.as_bytes(), NO_PART);
    replace(&mut bytes, &inline(NESTED), &nested(deep));
    bytes
}

/// Encoding of an inline binary payload.
fn inline(content: &[u8]) -> Vec<u8> {
    postcard::to_stdvec(&Payload::binary(content.to_vec())).expect("it can be encoded")
}

/// Encoding of nested groups, each with one member without a name.
fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = [2, 0, 1, 0].repeat(depth - 1);
    bytes.extend([2, 0, 0]);
    bytes
}

/// Replaces `these` bytes by `others`, everywhere.
fn replace(bytes: &mut Vec<u8>, these: &[u8], others: &[u8]) {
    let mut from = 0;
    while let Some(at) = bytes[from..]
        .windows(these.len())
        .position(|window| window == these)
    {
        let at = from + at;
        bytes.splice(at..at + these.len(), others.iter().copied());
        from = at + others.len();
    }
}
