//! Spans as OTLP's messages.

use proofmill_trace::{Link, Span, SpanKind, SpanStatus, Value};

use super::proto as otlp;
use super::proto::status::StatusCode;
use super::proto::{
    AnyValue, ExportTraceServiceRequest, InstrumentationScope, KeyValue, Resource, ResourceSpans,
    ScopeSpans, Status, any_value,
};

/// The flag of OTLP that a span's trace is sampled.
const SAMPLED: u32 = 1;

/// A request for these spans, of a process with these attributes.
pub(super) fn request(
    resource: &[(String, String)],
    spans: Vec<Span>,
) -> ExportTraceServiceRequest {
    let attributes = resource.iter().map(|(key, value)| {
        let value = any_value::Value::StringValue(value.clone());
        attribute(key, value)
    });
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: attributes.collect(),
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: "proofmill".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                }),
                spans: spans.into_iter().map(span).collect(),
            }],
        }],
    }
}

fn span(span: Span) -> otlp::Span {
    let kind = match span.kind {
        SpanKind::Internal => otlp::span::SpanKind::Internal,
        SpanKind::Consumer => otlp::span::SpanKind::Consumer,
        SpanKind::Producer => otlp::span::SpanKind::Producer,
    };
    let attributes = span.attributes.into_iter().map(|(key, value)| {
        let value = match value {
            Value::Text(text) => any_value::Value::StringValue(text),
            Value::Int(number) => any_value::Value::IntValue(number),
            Value::Bool(flag) => any_value::Value::BoolValue(flag),
        };
        attribute(key, value)
    });
    let status = match span.status {
        SpanStatus::Unset => None,
        SpanStatus::Failed(message) => Some(Status {
            message,
            code: StatusCode::Error.into(),
        }),
    };
    let parent = span.parent.map(|parent| parent.bytes().to_vec());
    otlp::Span {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        trace_state: span
            .state
            .map(|state| state.to_string())
            .unwrap_or_default(),
        parent_span_id: parent.unwrap_or_default(),
        flags: SAMPLED,
        name: span.name,
        kind: kind.into(),
        start_time_unix_nano: span.start_ns,
        end_time_unix_nano: span.end_ns,
        attributes: attributes.collect(),
        links: span.links.iter().map(link).collect(),
        status,
    }
}

fn link(link: &Link) -> otlp::span::Link {
    otlp::span::Link {
        trace_id: link.trace.bytes().to_vec(),
        span_id: link.span.bytes().to_vec(),
        ..otlp::span::Link::default()
    }
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}
