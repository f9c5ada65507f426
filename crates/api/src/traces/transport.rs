//! Sending a request to a collector: over gRPC, or over HTTP.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proofmill_bus::with_sources;
use proofmill_http::HttpClient;
use proofmill_workflow::HttpUrl;
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request};

use super::proto::ExportTraceServiceRequest;
use super::proto::trace_service_client::TraceServiceClient;
use super::settings::{Protocol, Settings, SettingsError};

/// Longest answer of a collector that is read, bytes.
const ANSWER_MAX: usize = 64 * 1024;

/// The way to a collector.
pub(super) enum Transport {
    Grpc {
        client: TraceServiceClient<Channel>,
        headers: MetadataMap,
    },
    Http {
        client: HttpClient,
        headers: HeaderMap,
    },
}

/// The reason why a collector has not taken a request.
pub(super) struct NotSent {
    /// Reason, without addresses and headers.
    pub(super) why: String,
    /// Whether the same request may be taken later.
    pub(super) is_temporary: bool,
}

// === impl Transport ===

impl Transport {
    /// The way that the settings name. Connects at the first request. Call within a runtime.
    pub(super) fn open(settings: &Settings) -> Result<Self, SettingsError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let wrong = |_| SettingsError::of_headers(format!("{name:?} is no header"));
            let key = HeaderName::try_from(name.to_ascii_lowercase()).map_err(wrong)?;
            let wrong =
                |_| SettingsError::of_headers(format!("the value of {name:?} is no header"));
            let mut value = HeaderValue::try_from(value).map_err(wrong)?;
            value.set_sensitive(true);
            headers.append(key, value);
        }
        match settings.protocol {
            Protocol::Grpc => Ok(Self::Grpc {
                client: TraceServiceClient::new(channel(settings)?),
                headers: MetadataMap::from_headers(headers),
            }),
            Protocol::Http => {
                let url = HttpUrl::try_new(&settings.endpoint);
                let url = url.map_err(|error| SettingsError::of_endpoint(error.to_string()))?;
                let client = HttpClient::new(url, settings.certificate.as_deref());
                let client =
                    client.map_err(|error| SettingsError::of_endpoint(error.to_string()))?;
                let kind = HeaderValue::from_static("application/x-protobuf");
                headers.insert("content-type", kind);
                Ok(Self::Http { client, headers })
            }
        }
    }

    /// Sends a request, and waits so long for the answer. Returns the number of spans that the collector has refused in it.
    pub(super) async fn send(
        &self,
        request: &ExportTraceServiceRequest,
        timeout: Duration,
    ) -> Result<u64, NotSent> {
        match self {
            Self::Grpc { client, headers } => {
                let mut call = Request::new(request.clone());
                *call.metadata_mut() = headers.clone();
                let mut client = client.clone();
                let answer = tokio::time::timeout(timeout, client.export(call)).await;
                let answer = answer.map_err(|_| NotSent::later("no answer in time"))?;
                let answer = answer.map_err(|status| NotSent {
                    why: format!("{}: {}", status.code(), status.message()),
                    is_temporary: is_temporary(status.code()),
                })?;
                let partial = answer.into_inner().partial_success;
                let refused = partial.map_or(0, |partial| partial.rejected_spans);
                Ok(u64::try_from(refused).unwrap_or(0))
            }
            Self::Http { client, headers } => {
                let body = request.encode_to_vec().into();
                let answer = client.post(headers.clone(), body, ANSWER_MAX, timeout);
                let answer = answer
                    .await
                    .map_err(|error| NotSent::later(&with_sources(&error)))?;
                if answer.status.is_success() {
                    return Ok(0);
                }
                let is_temporary = matches!(
                    answer.status,
                    StatusCode::TOO_MANY_REQUESTS
                        | StatusCode::BAD_GATEWAY
                        | StatusCode::SERVICE_UNAVAILABLE
                        | StatusCode::GATEWAY_TIMEOUT
                );
                Err(NotSent {
                    why: format!("status {}", answer.status),
                    is_temporary,
                })
            }
        }
    }
}

// === impl NotSent ===

impl NotSent {
    fn later(why: &str) -> Self {
        Self {
            why: why.to_owned(),
            is_temporary: true,
        }
    }
}

fn channel(settings: &Settings) -> Result<Channel, SettingsError> {
    let wrong = |error: tonic::transport::Error| SettingsError::of_endpoint(with_sources(&error));
    let endpoint = Endpoint::from_shared(settings.endpoint.clone()).map_err(wrong)?;
    let mut endpoint = endpoint.connect_timeout(settings.timeout);
    if settings.endpoint.starts_with("https://") {
        let mut tls = ClientTlsConfig::new().with_native_roots();
        if let Some(path) = &settings.certificate {
            let pem = std::fs::read(path).map_err(|error| {
                SettingsError::of_certificate(format!("{}: {error}", path.display()))
            })?;
            tls = tls.ca_certificate(Certificate::from_pem(pem));
        }
        endpoint = endpoint.tls_config(tls).map_err(wrong)?;
    }
    Ok(endpoint.connect_lazy())
}

/// Whether OTLP's specification says to try again after this code.
fn is_temporary(code: Code) -> bool {
    matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
    )
}
