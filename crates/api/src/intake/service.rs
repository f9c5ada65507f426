//! The intake's listener, and serving on it.

use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::plan::Plan;
use tonic::server::NamedService;
use tonic::service::Routes;

use super::options::{Options, OptionsError};
use super::proto::DESCRIPTORS;
use super::proto::intake_server::IntakeServer;
use super::queues::Queues;
use super::routes::router;
use super::streaming::IntakeService;
use super::taker::Taker;
use crate::access::Clients;
use crate::body_timeout::Pressure;
use crate::connections::ConnectionLimits;
use crate::control::BODY_MAX;
use crate::gate::Gate;
use crate::grpc::{Bounds, Calls, MESSAGE_MAX, MessageLimit};
use crate::port::Port;
use crate::serve::{self, HttpVersions};
use crate::submissions::Submissions;

/// Longest life of a connection; a producer then reconnects.
const LIFETIME: Duration = Duration::from_secs(600);

/// Name of the client whose line in the file of tokens has the token alone.
const SOLE_CLIENT: &str = "submit";

type Api = IntakeServer<IntakeService>;

/// An intake that listens.
pub struct Intake {
    port: Port,
    gate: Gate<Queues>,
    patience: Duration,
    exact: bool,
    connections: ConnectionLimits,
}

/// Router of an intake without tokens and without a port, for calls within the process.
pub async fn in_process(submissions: Submissions, patience: Duration) -> axum::Router {
    let taker = Arc::new(Taker::new(
        submissions,
        patience,
        false,
        Pressure::default(),
    ));
    let calls = calls(&taker).await;
    router(taker, calls, Gate::local())
}

/// The gRPC service `proofmill.mill.v1.Intake`.
async fn calls(taker: &Arc<Taker>) -> Calls {
    let service = IntakeService::new(taker.clone());
    let routes = Routes::new(Api::new(service).max_decoding_message_size(BODY_MAX));
    let bounds = Bounds::new(
        message_limit,
        taker.bodies.room.clone(),
        taker.bodies.pressure.clone(),
    );
    let known = "there is POST /v1/queues/NAME/messages, and GET /v1/status";
    Calls::new(routes, Api::NAME, DESCRIPTORS, &bounds, known).await
}

/// Size limit of the messages of a call.
fn message_limit(path: &str) -> MessageLimit {
    let is_message = path.starts_with("/proofmill.mill.v1.Intake/");
    MessageLimit {
        bytes: if is_message { BODY_MAX } else { MESSAGE_MAX },
        beyond: "",
    }
}

/// Warns of queues in the file of tokens that the workflow does not have.
fn warn_of_unknown_queues(gate: &Gate<Queues>, plan: &Plan) {
    for client in gate.clients() {
        for queue in client.rights.unknown(plan) {
            tracing::warn!(
                client = &*client.name,
                queue,
                "the file of tokens names a queue that the workflow does not have"
            );
        }
    }
}

// === impl Intake ===

impl Intake {
    /// Reads the files and listens. Requests wait until [`Intake::serve`].
    ///
    /// # Errors
    /// [`OptionsError`], which says what to change.
    pub async fn open(options: &Options) -> Result<Self, OptionsError> {
        let Options {
            address,
            tls,
            tokens,
            patience,
            exact,
            connections,
        } = options;
        let port = Port::open(*address, HttpVersions::Both, tls.as_ref(), tokens.is_some()).await?;
        let gate = match tokens {
            Some(path) => {
                let clients = Clients::read(path, Some(SOLE_CLIENT), Queues::parse).await?;
                Gate::with_tokens(clients, "--submit-token")
            }
            None => Gate::local(),
        };
        Ok(Self {
            port,
            gate,
            patience: *patience,
            exact: *exact,
            connections: *connections,
        })
    }

    /// The URL of the intake, such as `http://127.0.0.1:9465`.
    pub fn url(&self) -> String {
        self.port.url()
    }

    /// Takes messages for `submissions` until `stop`; requests that wait then have 5 s to be answered.
    pub async fn serve(self, submissions: Submissions, stop: impl Future<Output = ()>) {
        warn_of_unknown_queues(&self.gate, submissions.plan());
        let pressure = Pressure::default();
        let taker = Taker::new(submissions, self.patience, self.exact, pressure.clone());
        let taker = Arc::new(taker);
        let calls = calls(&taker).await;
        let answer = serve::answers(router(taker, calls.clone(), self.gate));
        let (listener, terms) = self
            .port
            .into_listener(LIFETIME, self.connections, pressure);
        let stop = async {
            stop.await;
            calls.report_stopping().await;
        };
        serve::serve(listener, terms, answer, stop).await;
    }
}
