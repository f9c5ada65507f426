//! The trace context of a message: the NATS headers `traceparent` and `tracestate`.
//!
//! A process passes the context on as it came: it makes no spans.

use async_nats::HeaderMap;
use async_nats::header::HeaderValue;
use proofmill_trace::TraceContext;

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// The context in a message's headers; `None` if there is none, or a malformed one. A repeated `traceparent` is
/// malformed, a repeated `tracestate` is one list. Unlike in HTTP the names of NATS headers have a case, and clients
/// write either `traceparent` or `Traceparent`.
pub(super) fn context_of(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = values(headers, PARENT);
    let parent = parents.pop().filter(|_| parents.is_empty())?;
    let states = values(headers, STATE);
    TraceContext::parse(parent.as_str(), states.into_iter().map(HeaderValue::as_str))
}

/// The values of a header in any case, the same list each time.
fn values<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a HeaderValue> {
    let found = headers.iter().filter_map(|(other, values)| {
        let other: &str = other.as_ref();
        other
            .eq_ignore_ascii_case(name)
            .then_some((other, values.iter()))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(name, _)| *name);
    found.into_iter().flat_map(|(_, values)| values).collect()
}

/// Adds a context to the headers of a message that follows from another one.
pub(crate) fn add_trace(headers: &mut HeaderMap, context: Option<&TraceContext>) {
    let Some(context) = context else { return };
    headers.insert(PARENT, context.traceparent());
    if let Some(state) = context.tracestate() {
        headers.insert(STATE, &**state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, *value);
        }
        headers
    }

    #[test]
    fn a_context_is_read_in_any_case_and_written_as_it_came() {
        for (parent, state) in [(PARENT, STATE), ("Traceparent", "Tracestate")] {
            let read = headers(&[(parent, CALLER), (state, "a=1"), (state, "b=2")]);
            let context = context_of(&read).expect("a context");
            let mut written = HeaderMap::new();
            add_trace(&mut written, Some(&context));
            assert_eq!(written, headers(&[(PARENT, CALLER), (STATE, "a=1,b=2")]));
            assert_eq!(context_of(&written), Some(context));
        }
        let mut nothing = HeaderMap::new();
        add_trace(
            &mut nothing,
            context_of(&headers(&[(STATE, "a=1")])).as_ref(),
        );
        assert!(nothing.is_empty());
    }

    #[test]
    fn a_malformed_or_repeated_traceparent_is_no_context_and_a_malformed_state_is_dropped_alone() {
        for pairs in [
            &[(PARENT, "00-0-0-01"), (STATE, "a=1")][..],
            &[(PARENT, CALLER), (PARENT, CALLER)],
            &[(PARENT, CALLER), ("TraceParent", CALLER)],
            &[(PARENT, "é")],
            &[(PARENT, "")],
        ] {
            assert_eq!(context_of(&headers(pairs)), None, "{pairs:?}");
        }
        let endless = format!("a={}", "b".repeat(1 << 20));
        let many = vec!["k=1"; 10_000].join(",");
        for state in ["a", "é=1", "a=1,a=2", &endless, &many] {
            let context = context_of(&headers(&[(PARENT, CALLER), (STATE, state)]));
            let context = context.expect("a context");
            assert_eq!(context.tracestate(), None);
            assert_eq!(context.traceparent(), CALLER);
        }
        let cased = headers(&[(PARENT, CALLER), (STATE, "a=1"), ("Tracestate", "a=2")]);
        assert_eq!(context_of(&cased).expect("a context").tracestate(), None);
    }
}
