//! W3C trace context: the headers `traceparent` and `tracestate`.
//!
//! <https://www.w3.org/TR/trace-context/>, sections 3.2 and 3.3. A malformed `traceparent` is ignored together
//! with its `tracestate`; a malformed `tracestate` is ignored alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{SpanId, TraceId};

/// Length of a `traceparent` of version 00, bytes.
pub const TRACEPARENT_LEN: usize = 55;

/// Maximum length of a `tracestate` that is kept, bytes: the length that the recommendation asks to carry at
/// least. Entries beyond it are dropped, long ones first.
pub const STATE_MAX: usize = 512;

/// Maximum number of entries of a `tracestate`.
const STATE_ENTRIES_MAX: usize = 32;

/// Maximum length of all `tracestate` headers of a request together that is looked at, bytes.
const STATE_READ_MAX: usize = 16 * 1024;

/// Length above which an entry of a `tracestate` is dropped first, bytes.
const STATE_ENTRY_LONG: usize = 128;

/// The flag of a trace that the caller records.
const SAMPLED: u8 = 0x01;

/// The flags that are passed on: those of version 00, and level 2's flag of a random trace id.
const FLAGS_KNOWN: u8 = 0x03;

/// The position of a request in a trace: which trace, which span, and whether it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct TraceContext {
    trace: TraceId,
    span: SpanId,
    flags: u8,
    state: Option<Arc<str>>,
}

/// The fields of a context, before they are checked.
#[derive(Serialize, Deserialize)]
#[serde(rename = "TraceContext")]
struct Fields {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
    state: Option<Arc<str>>,
}

// === impl TraceContext ===

impl TraceContext {
    /// The context of a span of this process, to be passed on.
    pub fn new(trace: TraceId, span: SpanId, is_sampled: bool, state: Option<Arc<str>>) -> Self {
        Self {
            trace,
            span,
            flags: if is_sampled { SAMPLED } else { 0 },
            state,
        }
    }

    /// Reads the header `traceparent` and the headers `tracestate`, in their order. `None` if `traceparent`
    /// is malformed: the request then has no context.
    pub fn parse<'a>(
        traceparent: &str,
        tracestate: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let (trace, span, flags) = parse_parent(traceparent.trim_matches([' ', '\t']).as_bytes())?;
        Some(Self {
            trace,
            span,
            flags,
            state: parse_state(tracestate),
        })
    }

    /// The same context without its `tracestate`.
    #[must_use]
    pub fn without_state(self) -> Self {
        Self {
            state: None,
            ..self
        }
    }

    /// The trace.
    pub fn trace(&self) -> TraceId {
        self.trace
    }

    /// The caller's span.
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// Whether the caller records the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The header `traceparent`, of version 00.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, self.flags)
    }

    /// The variables `TRACEPARENT` and `TRACESTATE` of a program whose spans join the trace.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let state = self.state.as_ref();
        let state = state.map(|state| ("TRACESTATE", state.to_string()));
        std::iter::once(("TRACEPARENT", self.traceparent())).chain(state)
    }

    /// The header `tracestate`, of at most [`STATE_MAX`] bytes; `None` if there is none.
    pub fn tracestate(&self) -> Option<&Arc<str>> {
        self.state.as_ref()
    }
}

impl TryFrom<Fields> for TraceContext {
    type Error = &'static str;

    /// A context comes from other processes and from the log: it is checked like one of a header.
    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        if fields.trace == [0; 16] || fields.span == [0; 8] || fields.flags & !FLAGS_KNOWN != 0 {
            return Err("a trace context has identifiers other than zero, and known flags");
        }
        if let Some(state) = &fields.state
            && parse_state([&**state]).as_deref() != Some(&**state)
        {
            return Err("a trace context has a malformed trace state");
        }
        Ok(Self {
            trace: TraceId(fields.trace),
            span: SpanId(fields.span),
            flags: fields.flags,
            state: fields.state,
        })
    }
}

impl From<TraceContext> for Fields {
    fn from(context: TraceContext) -> Self {
        Self {
            trace: context.trace.0,
            span: context.span.0,
            flags: context.flags,
            state: context.state,
        }
    }
}

/// Reads `VERSION-TRACE-SPAN-FLAGS`. A version above 00 may have more after another dash.
fn parse_parent(text: &[u8]) -> Option<(TraceId, SpanId, u8)> {
    let (known, rest) = text.split_at_checked(TRACEPARENT_LEN)?;
    let [version] = digits(&known[..2])?;
    let is_well_formed = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest[0] == b'-',
    };
    let dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    if !is_well_formed || !dashes {
        return None;
    }
    let trace: [u8; 16] = digits(&known[3..35])?;
    let span: [u8; 8] = digits(&known[36..52])?;
    let [flags] = digits(&known[53..])?;
    // Of a later version only the flag of version 00 is certain.
    let flags = match version {
        0 => flags & FLAGS_KNOWN,
        _ => flags & SAMPLED,
    };
    let is_known = trace != [0; 16] && span != [0; 8];
    is_known.then_some((TraceId(trace), SpanId(span), flags))
}

/// Bytes written as lower-case hexadecimal digits.
fn digits<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let upper = text.iter().any(u8::is_ascii_uppercase);
    (!upper && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(bytes)
}

/// The list of all headers together, shortened to [`STATE_MAX`]; `None` if it is empty or malformed.
fn parse_state<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Arc<str>> {
    let mut entries: Vec<&str> = Vec::new();
    let mut read = 0;
    for header in headers {
        read += header.len();
        if read > STATE_READ_MAX {
            return None;
        }
        for entry in header.split(',') {
            let entry = entry.trim_matches([' ', '\t']);
            if entry.is_empty() {
                continue;
            }
            let (key, value) = entry.split_once('=')?;
            let is_repeated = entries.iter().any(|other| {
                let other = other.split_once('=');
                other.is_some_and(|(other, _)| other == key)
            });
            if !is_key(key) || !is_value(value) || is_repeated {
                return None;
            }
            entries.push(entry);
            if entries.len() > STATE_ENTRIES_MAX {
                return None;
            }
        }
    }
    let length = |entries: &[&str]| {
        let texts: usize = entries.iter().map(|entry| entry.len()).sum();
        texts + entries.len().saturating_sub(1)
    };
    while length(&entries) > STATE_MAX {
        let long = entries
            .iter()
            .rposition(|entry| entry.len() > STATE_ENTRY_LONG);
        entries.remove(long.unwrap_or(entries.len() - 1));
    }
    (!entries.is_empty()).then(|| entries.join(",").into())
}

/// Whether `key` is a key of a `tracestate`: `name`, or `tenant@system`.
fn is_key(key: &str) -> bool {
    let is_name = |name: &str, length: usize, digit_first: bool| {
        let first = name.bytes().next();
        let starts = first
            .is_some_and(|byte| byte.is_ascii_lowercase() || digit_first && byte.is_ascii_digit());
        let rest = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte)
        };
        starts && name.len() <= length && name.bytes().all(rest)
    };
    match key.split_once('@') {
        None => is_name(key, 256, false),
        Some((tenant, system)) => is_name(tenant, 241, true) && is_name(system, 14, false),
    }
}

/// Whether `value` is a value of a `tracestate`.
fn is_value(value: &str) -> bool {
    let is_printable = |byte: u8| (0x20..=0x7e).contains(&byte) && byte != b',' && byte != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(is_printable) && !value.ends_with(' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn state_of(headers: &[&str]) -> Option<String> {
        let context = TraceContext::parse(PARENT, headers.iter().copied()).expect("valid");
        context.tracestate().map(|state| state.to_string())
    }

    #[test]
    fn a_context_is_passed_on_as_it_came() {
        let context = TraceContext::parse(PARENT, ["rojo=1", "congo=t61"]).expect("valid");
        assert_eq!(context.traceparent(), PARENT);
        assert!(context.is_sampled());
        assert_eq!(
            context.tracestate().map(|it| &**it),
            Some("rojo=1,congo=t61")
        );
        let bytes = postcard::to_allocvec(&context).expect("encodes");
        assert_eq!(postcard::from_bytes::<TraceContext>(&bytes), Ok(context));
    }

    #[test]
    fn a_malformed_traceparent_is_no_context() {
        let longer = format!("{PARENT}-more");
        let upper = PARENT.to_uppercase();
        for text in [
            "",
            "00",
            &PARENT[..54],
            &longer,
            &upper,
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é1",
        ] {
            assert_eq!(TraceContext::parse(text, ["a=1"]), None, "{text:?}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-more";
        let context = TraceContext::parse(later, []).expect("readable");
        assert_eq!(context.traceparent(), PARENT);
        let unknown_flags = PARENT.replace("-01", "-f0");
        let context = TraceContext::parse(&unknown_flags, []).expect("readable");
        assert!(!context.is_sampled());
        assert!(context.traceparent().ends_with("-00"));
    }

    #[test]
    fn a_malformed_tracestate_is_ignored_alone() {
        for bad in [
            "a",
            "A=1",
            "a=",
            "a=1,a=2",
            "1a=1",
            "a@B=1",
            "a=b=c",
            "a=\u{e9}",
            "@a=1",
            "a@toolongasystemid=1",
        ] {
            assert_eq!(state_of(&[bad]), None, "{bad:?}");
        }
        let many: Vec<String> = (0..33).map(|number| format!("k{number}=1")).collect();
        assert_eq!(state_of(&[&many.join(",")]), None);
        assert_eq!(
            state_of(&[&many[..32].join(",")]),
            Some(many[..32].join(","))
        );
        assert_eq!(
            state_of(&["a=1, ,b=2\t,", "c@d=3"]).as_deref(),
            Some("a=1,b=2,c@d=3")
        );
        assert_eq!(state_of(&["", " , "]), None);
        let endless = format!("a={}", "b".repeat(STATE_READ_MAX));
        assert_eq!(state_of(&[&endless]), None);
    }

    #[test]
    fn long_entries_are_dropped_first_and_then_the_last_ones() {
        let long = format!("long={}", "x".repeat(200));
        let short: Vec<String> = (0..10)
            .map(|it| format!("k{it}={}", "y".repeat(40)))
            .collect();
        let kept = state_of(&[&short[0], &long, &short[1..].join(",")]).expect("some");
        assert_eq!(kept, short.join(","));
        let short: Vec<String> = (0..20)
            .map(|it| format!("k{it}={}", "y".repeat(40)))
            .collect();
        let kept = state_of(&[&short.join(",")]).expect("some");
        assert!(kept.len() <= STATE_MAX && kept.starts_with("k0=") && !kept.contains("k19="));
    }

    #[test]
    fn a_forged_encoding_is_refused() {
        let fields = |trace, span, flags, state: Option<&str>| Fields {
            trace,
            span,
            flags,
            state: state.map(Into::into),
        };
        let long = "a=1,".repeat(200);
        for forged in [
            fields([0; 16], [1; 8], 0, None),
            fields([1; 16], [0; 8], 0, None),
            fields([1; 16], [1; 8], 8, None),
            fields([1; 16], [1; 8], 1, Some("a=1\r\nx: y")),
            fields([1; 16], [1; 8], 1, Some("")),
            fields([1; 16], [1; 8], 1, Some(&long)),
        ] {
            let bytes = postcard::to_allocvec(&forged).expect("encodes");
            assert!(postcard::from_bytes::<TraceContext>(&bytes).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_ignored(parent in ".{0,80}", state in ".{0,600}") {
            if let Some(context) = TraceContext::parse(&parent, [&*state]) {
                prop_assert!(context.tracestate().is_none_or(|it| it.len() <= STATE_MAX));
            }
        }

        #[test]
        fn what_is_read_is_written_and_read_again(
            trace in prop::array::uniform16(1_u8..),
            span in prop::array::uniform8(1_u8..),
            flags in 0_u8..4,
            keys in prop::collection::btree_set("[a-z][a-z0-9_*/-]{0,20}", 0..40),
            value in "[!-+.-<>-~]{1,60}",
        ) {
            let text = format!("00-{}-{}-{flags:02x}", hex::encode(trace), hex::encode(span));
            let state: Vec<String> = keys.iter().map(|key| format!("{key}={value}")).collect();
            let context = TraceContext::parse(&text, [&*state.join(",")]).expect("valid");
            prop_assert_eq!(context.traceparent(), text.clone());
            let state = context.tracestate().map(|state| state.to_string());
            prop_assert!(state.as_ref().is_none_or(|state| state.len() <= STATE_MAX));
            let again = TraceContext::parse(&text, state.as_deref()).expect("valid");
            prop_assert_eq!(&again, &context);
            let bytes = postcard::to_allocvec(&context).expect("encodes");
            prop_assert_eq!(postcard::from_bytes::<TraceContext>(&bytes), Ok(context));
        }
    }
}
