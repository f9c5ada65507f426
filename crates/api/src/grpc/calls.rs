//! gRPC on a port that also speaks HTTP: a service, health and reflection.

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tonic::body::Body;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower_layer::Layer;
use tower_service::Service;

use super::bounds::{Bounded, Bounds};
use super::services::reflection;
use crate::refused::Refused;

/// The services that answer calls.
#[derive(Clone)]
pub(crate) struct Calls {
    services: Bounded<Routes>,
    health: HealthReporter,
    /// The service's name.
    name: &'static str,
    /// The message for requests to unknown paths, which names the known ones.
    known: &'static str,
}

/// Whether a request is a gRPC call.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes());
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

// === impl Calls ===

impl Calls {
    /// The service `name` of `routes`, which `descriptors` describe, with health and reflection. `known` is the message
    /// for requests to unknown paths.
    pub(crate) async fn new(
        routes: Routes,
        name: &'static str,
        descriptors: &[u8],
        bounds: &Bounds,
        known: &'static str,
    ) -> Self {
        let (health, health_service) = tonic_health::server::health_reporter();
        let mut routes = routes.add_service(health_service);
        match reflection(descriptors) {
            Ok(reflection) => routes = routes.add_service(reflection),
            Err(error) => tracing::error!(%error, "no reflection"),
        }
        let calls = Self {
            services: bounds.layer(routes.prepare()),
            health,
            name,
            known,
        };
        calls.set_health(ServingStatus::Serving).await;
        calls
    }

    /// Reports in health checks that the service is ending.
    pub(crate) async fn report_stopping(&self) {
        self.set_health(ServingStatus::NotServing).await;
    }

    async fn set_health(&self, status: ServingStatus) {
        self.health.set_service_status("", status).await;
        self.health.set_service_status(self.name, status).await;
    }

    /// Answers a call; other requests get an error that lists the known paths.
    pub(crate) async fn answer(mut self, request: Request) -> Response {
        if !is_call(request.headers()) {
            return Refused::new(StatusCode::NOT_FOUND, self.known).into_response();
        }
        match self.services.call(request.map(Body::new)).await {
            Ok(answer) => answer.into_response(),
            Err(never) => match never {},
        }
    }
}
