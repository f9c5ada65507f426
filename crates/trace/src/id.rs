//! Identifiers of traces and spans, and their derivation.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Domain separators of the derivations, with their version.
const TRACE_DOMAIN: &str = "proofmill trace 1";
const SPAN_DOMAIN: &str = "proofmill span 1";

/// Identifier of a trace; never zero, except [`TraceId::UNKNOWN`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TraceId(pub(crate) [u8; 16]);

/// Identifier of a span in its trace; never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpanId(pub(crate) [u8; 8]);

// === impl TraceId ===

impl TraceId {
    /// The identifier of no trace: that of a task recorded before there were traces.
    pub const UNKNOWN: Self = Self([0; 16]);

    /// The trace of a block that came without a context: the same in every process and after every restart.
    pub fn of_block(workflow: &str, block: u64) -> Self {
        let mut derivation = Derivation::new(TRACE_DOMAIN);
        derivation.add(workflow.as_bytes());
        derivation.add(&block.to_le_bytes());
        Self(derivation.finish())
    }

    /// Whether it is a trace's.
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }

    /// The 16 bytes.
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }
}

// === impl SpanId ===

impl SpanId {
    /// The identifier of a span of `trace`, from its kind and the names that tell it from other spans of
    /// that kind.
    pub fn derive<'a>(
        trace: TraceId,
        kind: &str,
        names: impl IntoIterator<Item = &'a [u8]>,
    ) -> Self {
        let mut derivation = Derivation::new(SPAN_DOMAIN);
        derivation.add(&trace.0);
        derivation.add(kind.as_bytes());
        names.into_iter().for_each(|name| derivation.add(name));
        Self(derivation.finish())
    }

    /// The 8 bytes.
    pub fn bytes(self) -> [u8; 8] {
        self.0
    }
}

/// SHA-256 over texts, each with its length in front.
struct Derivation(Sha256);

impl Derivation {
    fn new(domain: &str) -> Self {
        let mut derivation = Self(Sha256::new());
        derivation.add(domain.as_bytes());
        derivation
    }

    fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// The first bytes of the digest.
    fn finish<const N: usize>(self) -> [u8; N] {
        let digest = self.0.finalize();
        let mut id = [0; N];
        id.copy_from_slice(&digest[..N]);
        // All zeros would be no identifier; no input is known that leads to them.
        if id == [0; N] {
            id[N - 1] = 1;
        }
        id
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Default for TraceId {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes of two releases must agree, so the values never change.
    #[test]
    fn derivations_are_pinned() {
        let trace = TraceId::of_block("chain", 812);
        assert_eq!(trace.to_string(), PINNED_TRACE);
        let span = SpanId::derive(trace, "task", [&b"prove/812/0"[..]]);
        assert_eq!(span.to_string(), PINNED_SPAN);
    }

    const PINNED_TRACE: &str = "743ac8a4167cc7d3082b9c1268adf75a";
    const PINNED_SPAN: &str = "44d4c682e8523cc3";

    #[test]
    fn names_do_not_run_together() {
        let trace = TraceId::of_block("w", 1);
        let one = SpanId::derive(trace, "attempt", [&b"ab"[..], b"c"]);
        let other = SpanId::derive(trace, "attempt", [&b"a"[..], b"bc"]);
        assert_ne!(one, other);
        assert_ne!(TraceId::of_block("w", 1), TraceId::of_block("w", 2));
        assert_ne!(TraceId::of_block("w", 1), TraceId::of_block("v", 1));
    }
}
