//! The bytes of a liar's call, with what no program of ours can say in them.

use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::remote::Call;
use serde::Serialize;

/// Stands for a part that no program of ours can say, until it is bytes.
pub(crate) const PART: &str = "0-part-that-is-none-0";
const NO_PART: &[u8; PART.len()] = b"a.b.c.d e.* > f.g.h.i";

/// Stands for groups within groups, until it is bytes: an inline payload.
pub(crate) const NESTED: &[u8] = b"groups within groups";

pub(crate) fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("it can be encoded")
}

/// The bytes of a call, with what no program of ours can say in them.
pub(crate) fn forged(call: &Call, deep: usize) -> Vec<u8> {
    let mut bytes = encoded(call);
    replace(&mut bytes, PART.as_bytes(), NO_PART);
    replace(&mut bytes, &inline(NESTED), &nested(deep));
    bytes
}

/// An inline binary payload, as it is encoded.
fn inline(content: &[u8]) -> Vec<u8> {
    postcard::to_stdvec(&Payload::binary(content.to_vec())).expect("it can be encoded")
}

/// Groups within groups, as they would be encoded: each of one member of no name.
fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = [2, 0, 1, 0].repeat(depth - 1);
    bytes.extend([2, 0, 0]);
    bytes
}

/// Puts other bytes in the place of these, everywhere.
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
