//! The same over gRPC: `proofmill.mill.v1.Intake`, health and reflection.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower_layer::Layer;
use tower_service::Service;

use super::proto::DESCRIPTORS;
use super::proto::intake_server::IntakeServer;
use super::streaming::IntakeService;
use super::taker::Taker;
use crate::control::BODY_MAX;
use crate::grpc::{Bounded, Bounds, MESSAGE_MAX, MessageLimit, reflection};
use crate::refused::Refused;

type Api = IntakeServer<IntakeService>;

/// What answers calls.
#[derive(Clone)]
pub(super) struct Calls {
    services: Bounded<Routes>,
    health: HealthReporter,
}

/// Whether a request is a call.
pub(super) fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes());
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

// === impl Calls ===

impl Calls {
    pub(super) async fn new(taker: &Arc<Taker>) -> Self {
        let (health, health_service) = tonic_health::server::health_reporter();
        let service = IntakeService::new(taker.clone());
        let api = Api::new(service).max_decoding_message_size(BODY_MAX);
        let mut routes = Routes::new(api).add_service(health_service);
        match reflection(DESCRIPTORS) {
            Ok(reflection) => routes = routes.add_service(reflection),
            Err(error) => tracing::error!(%error, "no reflection"),
        }
        let bounds = Bounds::new(limit, taker.room.clone(), taker.pressure.clone());
        let calls = Self {
            services: bounds.layer(routes.prepare()),
            health,
        };
        calls.say(ServingStatus::Serving).await;
        calls
    }

    /// Who asks for its health is told that it ends.
    pub(super) async fn ends(&self) {
        self.say(ServingStatus::NotServing).await;
    }

    async fn say(&self, status: ServingStatus) {
        self.health.set_service_status("", status).await;
        self.health.set_service_status(Api::NAME, status).await;
    }

    /// Answers a call; whatever else comes here is not known.
    pub(super) async fn answer(mut self, request: Request) -> Response {
        if !is_call(request.headers()) {
            let known = "there is POST /v1/queues/NAME/messages, and GET /v1/status";
            return Refused::new(StatusCode::NOT_FOUND, known).into_response();
        }
        match self.services.call(request.map(Body::new)).await {
            Ok(answer) => answer.into_response(),
            Err(never) => match never {},
        }
    }
}

fn limit(path: &str) -> MessageLimit {
    let is_message = path.starts_with("/proofmill.mill.v1.Intake/");
    MessageLimit {
        bytes: if is_message { BODY_MAX } else { MESSAGE_MAX },
        beyond: "",
    }
}
