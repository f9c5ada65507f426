//! The engines that a mill's stages use, for all pages that watch them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Shared;
use super::watched::Look;
use crate::engine::WatchedEngine;
use crate::engine::timeline::without_picture;
use crate::operations::Operations;

/// Time between two questions to an engine.
const INTERVAL: Duration = Duration::from_secs(2);
/// Longest time for which the answers of some engines wait for those of others. What comes later is shown with the next
/// look.
const COMMON_WAIT: Duration = Duration::from_millis(300);

/// The engines, each with its latest answer.
#[derive(Serialize)]
struct Overview<'a> {
    engines: Vec<Row<'a>>,
}

/// An engine as the page shows it.
#[derive(Serialize)]
struct Row<'a> {
    address: &'a str,
    /// The stages that use it.
    stages: &'a [String],
    /// Its latest status, as its own page shows it.
    status: Option<&'a RawValue>,
    /// The reason why it did not answer when it was last asked; null if it did, or has not been asked.
    failure: Option<&'a str>,
}

/// The engines of a mill, as pages watch them.
pub(super) struct EnginesLook(Vec<Asked>);

/// An engine, the question that is under way, and the latest answer.
struct Asked {
    engine: Arc<WatchedEngine>,
    question: Option<JoinHandle<Result<Box<RawValue>, String>>>,
    latest: Option<Result<Box<RawValue>, String>>,
}

// === impl EnginesLook ===

impl EnginesLook {
    pub(super) fn new(operations: &Operations) -> Self {
        let engines = operations.engines().iter().map(|engine| Asked {
            engine: engine.clone(),
            question: None,
            latest: None,
        });
        Self(engines.collect())
    }
}

impl Look for EnginesLook {
    fn look(&mut self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let answers = self.0.iter_mut().map(Asked::wait);
            // Whoever is late is shown with its answer before.
            let _ = timeout(COMMON_WAIT, join_all(answers)).await;
            let overview = Overview {
                engines: self.0.iter().map(Asked::row).collect(),
            };
            serde_json::to_string(&overview).map_err(|error| error.to_string())
        })
    }

    fn forget(&mut self) {
        self.0.iter_mut().for_each(Asked::forget);
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn no_answer(&self) -> String {
        "the engines are not asked".to_owned()
    }
}

// === impl Asked ===

impl Asked {
    /// Asks, unless a question is under way, and waits for the answer. May be cancelled: the question goes on.
    async fn wait(&mut self) {
        let question = self.question.get_or_insert_with(|| {
            let engine = self.engine.clone();
            tokio::spawn(async move {
                let status = engine.status().await?;
                RawValue::from_string(status).map_err(|error| error.to_string())
            })
        });
        let answer = question.await;
        self.question = None;
        self.latest = Some(answer.unwrap_or_else(|error| Err(error.to_string())));
    }

    fn row(&self) -> Row<'_> {
        let (status, failure) = match &self.latest {
            None => (None, None),
            Some(Ok(status)) => (Some(&**status), None),
            Some(Err(why)) => (None, Some(&**why)),
        };
        Row {
            address: self.engine.address(),
            stages: self.engine.stages(),
            status,
            failure,
        }
    }

    fn forget(&mut self) {
        self.latest = None;
        if let Some(question) = self.question.take() {
            question.abort();
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.forget();
    }
}

/// The drawing of an engine's recent work.
pub(super) async fn drawing(State(shared): State<Shared>, Path(place): Path<usize>) -> Response {
    let Some(engine) = shared.operations.engines().get(place) else {
        return (StatusCode::NOT_FOUND, "no such engine\n").into_response();
    };
    let drawing = engine.drawing().await;
    // A picture that cannot be loaded would say nothing.
    let drawing = drawing.map_or_else(|why| without_picture(&why), |it| it.to_string());
    ([(header::CONTENT_TYPE, "image/svg+xml")], drawing).into_response()
}
