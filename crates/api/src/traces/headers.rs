//! The trace context of a request.

use std::sync::Arc;

use axum::http::HeaderMap;
use proofmill_trace::TraceContext;

/// The context in a request's headers, or in a gRPC call's metadata; `None` if there is none, or a malformed one.
/// A repeated `traceparent` is malformed, a repeated `tracestate` is one list.
pub fn caller_of(headers: &HeaderMap) -> Option<Arc<TraceContext>> {
    let mut parents = headers.get_all("traceparent").iter();
    let parent = parents.next()?.to_str().ok()?;
    if parents.next().is_some() {
        return None;
    }
    let states = headers.get_all("tracestate").iter();
    // A value that is no text makes the list malformed, as an entry without `=` does.
    let states = states.map(|state| state.to_str().unwrap_or("malformed"));
    TraceContext::parse(parent, states).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_request_has_one_context_or_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(caller_of(&headers), None);
        headers.append("traceparent", HeaderValue::from_static(PARENT));
        headers.append("tracestate", HeaderValue::from_static("a=1"));
        headers.append("tracestate", HeaderValue::from_static("b=2"));
        let caller = caller_of(&headers).expect("a context");
        assert_eq!(caller.traceparent(), PARENT);
        assert_eq!(caller.tracestate().map(|state| &**state), Some("a=1,b=2"));
        let bytes = HeaderValue::from_bytes(b"c=\xff").expect("a header");
        headers.append("tracestate", bytes);
        let caller = caller_of(&headers).expect("a context");
        assert_eq!(caller.tracestate(), None);
        headers.append("traceparent", HeaderValue::from_static(PARENT));
        assert_eq!(caller_of(&headers), None);
    }
}
