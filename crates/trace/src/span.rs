//! One ended interval of a trace.

use std::sync::Arc;

use crate::id::{SpanId, TraceId};

/// Maximum length of a text in an attribute or a status, bytes. Longer ones are cut.
pub const TEXT_MAX: usize = 512;

/// Maximum number of links of a span.
pub const LINKS_MAX: usize = 128;

/// One ended interval of a trace. Times are nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace.
    pub trace: TraceId,
    /// The span's own identifier.
    pub id: SpanId,
    /// The span that caused it; `None` for a root.
    pub parent: Option<SpanId>,
    /// Name: the kind of work, of few different values.
    pub name: String,
    /// Role of the span.
    pub kind: SpanKind,
    /// Beginning.
    pub start_ns: u64,
    /// End; never before the beginning.
    pub end_ns: u64,
    /// Names and values, in no order. Never a payload, a witness or a secret.
    pub attributes: Vec<(&'static str, Value)>,
    /// Outcome.
    pub status: SpanStatus,
    /// Spans that led to this one besides its parent, at most [`LINKS_MAX`].
    pub links: Vec<Link>,
    /// The `tracestate` that came with the block.
    pub state: Option<Arc<str>>,
}

/// Role of a span, as OpenTelemetry's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside.
    Internal,
    /// A message was taken in.
    Consumer,
    /// A message was put out.
    Producer,
}

/// Outcome of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanStatus {
    /// Nothing is known to have failed.
    Unset,
    /// It failed, for this reason.
    Failed(String),
}

/// A span that led to another one, perhaps in another trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The trace of the span.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
}

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text of at most [`TEXT_MAX`] bytes.
    Text(String),
    /// A number.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

// === impl Span ===

impl Span {
    /// A span without attributes, from `start_ms` to `end_ms`, milliseconds since 1970-01-01 UTC.
    pub fn new(
        trace: TraceId,
        id: SpanId,
        parent: Option<SpanId>,
        name: impl Into<String>,
        (start_ms, end_ms): (u64, u64),
    ) -> Self {
        let start_ns = start_ms.saturating_mul(1_000_000);
        Self {
            trace,
            id,
            parent,
            name: name.into(),
            kind: SpanKind::Internal,
            start_ns,
            end_ns: end_ms.saturating_mul(1_000_000).max(start_ns),
            attributes: Vec::new(),
            status: SpanStatus::Unset,
            links: Vec::new(),
            state: None,
        }
    }

    /// The span with a text attribute, cut to [`TEXT_MAX`] bytes.
    #[must_use]
    pub fn with_text(mut self, name: &'static str, text: &str) -> Self {
        self.attributes.push((name, Value::Text(cut(text))));
        self
    }

    /// The span with a number as attribute; one that does not fit is the highest that does.
    #[must_use]
    pub fn with_number(mut self, name: &'static str, number: impl TryInto<i64>) -> Self {
        let number = number.try_into().unwrap_or(i64::MAX);
        self.attributes.push((name, Value::Int(number)));
        self
    }

    /// The span with a truth value as attribute.
    #[must_use]
    pub fn with_flag(mut self, name: &'static str, flag: bool) -> Self {
        self.attributes.push((name, Value::Bool(flag)));
        self
    }

    /// The span of work that failed, for a reason that is cut to [`TEXT_MAX`] bytes.
    #[must_use]
    pub fn failed(mut self, reason: &str) -> Self {
        self.status = SpanStatus::Failed(cut(reason));
        self
    }
}

/// The beginning of a text, of at most [`TEXT_MAX`] bytes.
fn cut(text: &str) -> String {
    let end = (0..=TEXT_MAX.min(text.len())).rev();
    let end = end.into_iter().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let trace = TraceId::of_block("w", 1);
        let id = SpanId::derive(trace, "task", []);
        let span = Span::new(trace, id, None, "x", (5, 3)).failed(&"é".repeat(TEXT_MAX));
        assert_eq!((span.start_ns, span.end_ns), (5_000_000, 5_000_000));
        let SpanStatus::Failed(reason) = span.status else {
            panic!("it failed");
        };
        assert_eq!(reason.len(), TEXT_MAX);
        let odd = Span::new(trace, id, None, "x", (0, 0)).with_text("t", &format!("a{reason}"));
        let Value::Text(text) = &odd.attributes[0].1 else {
            panic!("a text");
        };
        assert_eq!(text.len(), TEXT_MAX - 1);
    }
}
