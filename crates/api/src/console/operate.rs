//! Requests of operators: actions, bundles of dead letters, and the audit log's latest entries.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::Shared;
use super::guard::MaybeVisitor;
use super::visitors::Role;
use crate::actions::{Action, DeadFilter};
use crate::audit::{Actor, AuditEntry};
use crate::control;
use crate::operations::OperationError;
use crate::refused::Refused;
use crate::types::{BundleQuery, DeadSummary};

/// Most entries of the audit log, and most dead letters, that are shown.
const ROWS_MAX: usize = 200;

/// Dead letters that a filter selects.
#[derive(Serialize)]
struct Selected {
    /// Number of all that it selects.
    total: usize,
    /// The first of them.
    letters: Vec<DeadSummary>,
}

/// Carries out an action of an operator.
pub(super) async fn act(
    State(shared): State<Shared>,
    Extension(visitor): Extension<MaybeVisitor>,
    action: Result<Json<Action>, JsonRejection>,
) -> Result<Response, Refused> {
    let operator = visitor.with_role(Role::Operator)?;
    let Json(action) = action?;
    let actor = Actor::in_console(operator.name.clone());
    Ok(Json(shared.operations.act(&actor, &action).await?).into_response())
}

/// A bundle of dead letters, as a download. It may hold witnesses.
pub(super) async fn bundle(
    State(shared): State<Shared>,
    Extension(visitor): Extension<MaybeVisitor>,
    query: Result<Json<BundleQuery>, JsonRejection>,
) -> Result<Response, Refused> {
    let operator = visitor.with_role(Role::Operator)?;
    let Json(query) = query?;
    let actor = Actor::in_console(operator.name.clone());
    control::bundle_download(&shared.operations, &actor, &query).await
}

/// The latest entries of the audit log.
pub(super) async fn audit(
    State(shared): State<Shared>,
    Extension(visitor): Extension<MaybeVisitor>,
) -> Result<Response, Refused> {
    visitor.with_role(Role::Operator)?;
    let entries: Vec<AuditEntry> = match shared.operations.audit() {
        Some(audit) => audit.latest(ROWS_MAX).await.map_err(|error| {
            let why = format!("the audit log cannot be read: {error}");
            Refused::from(OperationError::Unavailable(why))
        })?,
        None => Vec::new(),
    };
    Ok(Json(entries).into_response())
}

/// The dead letters that a filter selects, as an action on them would find them.
pub(super) async fn dead_letters(
    State(shared): State<Shared>,
    filter: Result<Query<DeadFilter>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(filter) = filter?;
    let mut letters = shared.operations.dead_letters_matching(&filter).await?;
    let total = letters.len();
    letters.truncate(ROWS_MAX);
    Ok(Json(Selected { total, letters }).into_response())
}
