//! Refusals of requests.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use tonic::{Code, Status};

use crate::grpc::{retryable_status, try_again};
use crate::operations::OperationError;

/// Suggested wait after a temporary refusal.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// A refusal: a status and `{"error": …}` over HTTP, and over gRPC the closest code.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) why: String,
}

// === impl Refused ===

impl Refused {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { status, why }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = Json(serde_json::json!({ "error": self.why }));
        let mut response = (self.status, body).into_response();
        let temporary = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        if temporary.contains(&self.status) {
            let seconds = HeaderValue::from(RETRY_WAIT.as_secs());
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let Refused { status, why } = refused;
        let code = match status {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => Code::InvalidArgument,
            StatusCode::UNAUTHORIZED => Code::Unauthenticated,
            StatusCode::FORBIDDEN => Code::PermissionDenied,
            StatusCode::NOT_FOUND => Code::NotFound,
            StatusCode::REQUEST_TIMEOUT => Code::DeadlineExceeded,
            StatusCode::CONFLICT => Code::AlreadyExists,
            StatusCode::TOO_MANY_REQUESTS => return try_again(why, RETRY_WAIT),
            StatusCode::SERVICE_UNAVAILABLE => {
                return retryable_status(Code::Unavailable, why, RETRY_WAIT);
            }
            _ => Code::Internal,
        };
        Self::new(code, why)
    }
}

impl From<OperationError> for Refused {
    fn from(error: OperationError) -> Self {
        let code = match error {
            OperationError::NotFound(_) => StatusCode::NOT_FOUND,
            OperationError::Invalid(_) => StatusCode::BAD_REQUEST,
            OperationError::Conflict(_) => StatusCode::CONFLICT,
            OperationError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(code, error.to_string())
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

impl From<PathRejection> for Refused {
    fn from(rejection: PathRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}
