//! A sink that sends each emitted message to an HTTP server in a POST request.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use proofmill_workflow::HttpUrl;

use super::secret::Secret;
use super::service::{Emitted, Sink, SinkError};
use crate::payload::Encoding;
use crate::plan::Backoff;
use proofmill_http::{HttpClient, HttpError};

/// Maximum number of bytes of a response that are read, for the reason of a refusal.
const ANSWER_MAX: usize = 64 * 1024;

/// Maximum number of characters of a response that are shown.
const SHOWN: usize = 200;

/// Posts each message, signed, with an idempotency key that is the same for every attempt.
///
/// The header `Proofmill-Signature` is `t=TIME,v1=SIGNATURE`: seconds since 1970-01-01 UTC, and in
/// hexadecimal the HMAC-SHA256 of `TIME.KEY.BODY`, where `KEY` is the header `Idempotency-Key`.
pub struct Webhook {
    client: HttpClient,
    secret: Secret,
    time_limit: Duration,
    backoff: Backoff,
}

// === impl Webhook ===

impl Webhook {
    /// Posts to `url`; for `ca` see [`HttpClient::new`].
    ///
    /// # Errors
    /// As [`HttpClient::new`].
    pub fn new(
        url: HttpUrl,
        ca: Option<&Path>,
        secret: Secret,
        time_limit: Duration,
        backoff: Backoff,
    ) -> Result<Self, HttpError> {
        Ok(Self {
            client: HttpClient::new(url, ca)?,
            secret,
            time_limit,
            backoff,
        })
    }

    async fn post(&self, emitted: &Emitted) -> Result<(), SinkError> {
        let place = self.place(emitted);
        let headers = self.headers(emitted, SystemTime::now());
        let headers = headers.map_err(|why| SinkError::refused(&place, why))?;
        let body = emitted.bytes.clone();
        let answer = self.client.post(headers, body, ANSWER_MAX, self.time_limit);
        let answer = answer
            .await
            .map_err(|error| SinkError::new(&place, error))?;
        let status = answer.status;
        if status.is_success() {
            return Ok(());
        }
        let said = answer.body.unwrap_or_default();
        let said: String = String::from_utf8_lossy(&said).chars().take(SHOWN).collect();
        let why = format!("it answered {status}: {said:?}");
        Err(match status {
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
                SinkError::new(place, why)
            }
            status if status.is_server_error() => SinkError::new(place, why),
            _ => SinkError::refused(place, why),
        })
    }

    fn headers(&self, emitted: &Emitted, now: SystemTime) -> Result<HeaderMap, String> {
        let key = emitted.key();
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = since.as_secs().to_string();
        let signed: [&[u8]; 5] = [time.as_bytes(), b".", key.as_bytes(), b".", &emitted.bytes];
        let signature = format!("t={time},v1={}", self.secret.sign(&signed));
        let kind = match emitted.encoding {
            Encoding::Json => "application/json",
            Encoding::Binary => "application/octet-stream",
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let named = emitted.described().map(|(name, value)| {
            let name = format!("proofmill-{}", name.replace('_', "-"));
            (name, value)
        });
        let own = [
            ("idempotency-key".to_owned(), key),
            ("proofmill-signature".to_owned(), signature),
        ];
        // Not signed: it describes the delivery, and the receiver may not rely on it.
        let trace = emitted.trace.as_ref();
        let parent = trace.map(|trace| ("traceparent".to_owned(), trace.traceparent()));
        let state = trace.and_then(|trace| trace.tracestate());
        let state = state.map(|state| ("tracestate".to_owned(), state.to_string()));
        let context = parent.into_iter().chain(state);
        for (name, value) in named.into_iter().chain(own).chain(context) {
            let fits = "not a header";
            let name = HeaderName::try_from(&name).map_err(|_| format!("{name:?} is {fits}"))?;
            let value =
                HeaderValue::try_from(&value).map_err(|_| format!("{value:?} is {fits}"))?;
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

impl Sink for Webhook {
    fn place(&self, _emitted: &Emitted) -> String {
        format!("webhook {}", self.client.url())
    }

    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(self.post(emitted))
    }

    fn backoff(&self) -> Backoff {
        self.backoff
    }
}
