//! Logging in and out, and who one is.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::Shared;
use super::guard::MaybeVisitor;
use crate::connections::Connection;
use crate::refused::Refused;

/// The request of a visitor to log in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    token: String,
}

/// The present visitor, as the page needs it.
#[derive(Serialize)]
struct Present {
    /// Name of the client; none without a session.
    name: Option<Arc<str>>,
    /// `viewer` or `operator`.
    role: Option<&'static str>,
    /// Number that changes must carry.
    csrf: Option<Arc<str>>,
    /// Whether this visitor may look.
    may_look: bool,
    /// Whether there are tokens with which visitors log in.
    may_log_in: bool,
}

/// Name, role and rights of the visitor.
pub(super) async fn session(
    State(shared): State<Shared>,
    Extension(MaybeVisitor(visitor)): Extension<MaybeVisitor>,
) -> Response {
    let may_look = visitor.is_some() || shared.door.visitors.may_look();
    Json(Present {
        name: visitor.as_ref().map(|it| it.name.clone()),
        role: visitor.as_ref().map(|it| it.role.word()),
        csrf: visitor.map(|it| it.csrf),
        may_look,
        may_log_in: shared.door.visitors.may_log_in(),
    })
    .into_response()
}

/// Begins a session for whoever has a token.
pub(super) async fn log_in(
    State(shared): State<Shared>,
    Extension(MaybeVisitor(before)): Extension<MaybeVisitor>,
    connection: Option<Extension<Connection>>,
    login: Result<Json<Login>, JsonRejection>,
) -> Result<Response, Refused> {
    let Json(Login { token }) = login?;
    let peer = connection.and_then(|Extension(connection)| connection.peer());
    if !shared.limiter.begin_attempt(peer) {
        let status = StatusCode::TOO_MANY_REQUESTS;
        return Err(Refused::new(
            status,
            "too many failed logins from here: try again in a minute",
        ));
    }
    let Some((name, role)) = shared.door.visitors.find(token.trim()) else {
        tracing::info!("a login to the console has failed");
        return Err(Refused::new(
            StatusCode::UNAUTHORIZED,
            "this is no token of the console",
        ));
    };
    shared.limiter.note_success(peer);
    if let Some(before) = before {
        shared.door.sessions.end(before.session);
    }
    let id = shared.door.sessions.begin(name, role);
    let id = id.map_err(|why| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, why))?;
    let cookie = shared.door.set_cookie(&id);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Ends the session.
pub(super) async fn log_out(
    State(shared): State<Shared>,
    Extension(MaybeVisitor(visitor)): Extension<MaybeVisitor>,
) -> Response {
    if let Some(visitor) = visitor {
        shared.door.sessions.end(visitor.session);
    }
    let cookie = shared.door.set_cookie("");
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}
