//! Parts that proving engines prove: keys stay resident there, and an engine's memory budget and devices are used.

use std::convert::Infallible;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ark_ff::PrimeField;
use proofmill_api::engine::endpoints;
use proofmill_groth16::KeyError;
use proofmill_groth16::mirage::ProvingKeyInfo;
use proofmill_orchestrator::executor::engine::{
    EngineJob, JobInput, ProofOutput, RouteError, Router, request_id, stopped,
};
use proofmill_orchestrator::executor::{Context, ProverError};
use proofmill_partition::proof::PartitionCurve;
use proofmill_r1cs::iden3::write_wtns;
use proofmill_workflow::{EngineAddress, EngineExecutor, EnginePriority};
use serde::Deserialize;
use tokio::runtime::Handle;

use super::shared::Shared;

/// Longest wait for an engine that answers and has the class.
const PATIENCE: Duration = Duration::from_secs(60);

/// Name of the workflows that `partition prove --workflow` writes.
const WORKFLOW: &str = "partition";

/// The engines of a stage, as a workflow names them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EngineSettings {
    /// Addresses of the engines.
    endpoints: Vec<String>,
    /// File with the token to authenticate with.
    token: Option<PathBuf>,
    /// Certificates that the engines' certificates are checked against.
    ca: Option<PathBuf>,
}

/// The engines of a stage, which share the parts of all classes.
pub(super) struct Engines {
    /// The engines, for no circuit yet.
    named: EngineExecutor,
    /// A router for each class, by the name of its circuit.
    routers: Shared<String, Arc<Router>>,
}

/// Name at engines of the circuit that a class's key is for: by the checksum of the key's file, since classes may have the
/// same constraints.
pub(crate) fn circuit_name<E: PartitionCurve>(key: &Path) -> Result<String, KeyError> {
    let checksum = ProvingKeyInfo::of::<E>(key)?.checksum;
    Ok(format!("part-{}", hex::encode(&checksum[..16])))
}

// === impl EngineSettings ===

impl EngineSettings {
    /// The engines as a stage whose executor they are has them.
    pub(super) fn executor(&self, circuit: &str) -> Result<EngineExecutor, String> {
        let addresses = self.endpoints.iter().map(|text| {
            let address = EngineAddress::try_new(text, Path::new(""));
            address.map_err(|error| format!("{text}: {error}"))
        });
        let addresses: Vec<EngineAddress> = addresses.collect::<Result<_, _>>()?;
        if addresses.is_empty() {
            return Err("no engine is named in `endpoints`".to_owned());
        }
        Ok(EngineExecutor {
            circuit: circuit.to_owned(),
            endpoints: addresses,
            generator: None,
            priority: None,
            token: self.token.clone(),
            ca: self.ca.clone(),
            verifying_key: None,
            patience: PATIENCE,
        })
    }
}

// === impl Engines ===

impl Engines {
    /// The engines that a stage's parameters name.
    pub(super) fn of(settings: &EngineSettings) -> Result<Self, String> {
        Ok(Self {
            named: settings.executor("")?,
            routers: Shared::default(),
        })
    }

    fn router(&self, circuit: &str) -> Arc<Router> {
        let make = || {
            let endpoints = endpoints(&EngineExecutor {
                circuit: circuit.to_owned(),
                ..self.named.clone()
            });
            Ok::<_, Infallible>(Arc::new(Router::new(circuit, endpoints, PATIENCE)))
        };
        let Ok(router) = self.routers.get(&circuit.to_owned(), make);
        router
    }

    /// Proves the part with this assignment at an engine; `circuit` is its class's name there. For a thread that may block.
    pub(super) fn prove<F: PrimeField>(
        &self,
        context: &Context,
        circuit: &str,
        assignment: &[F],
    ) -> Result<ProofOutput, ProverError> {
        let witness = write_wtns(Cursor::new(Vec::new()), assignment)
            .map_err(|error| ProverError::Permanent(error.to_string()))?;
        let job = EngineJob {
            circuit: circuit.to_owned(),
            priority: EnginePriority::Normal,
            input: JobInput::Witness(witness.into_inner().into()),
            trace: context.trace.clone(),
        };
        let request = request_id(WORKFLOW, &context.task, context.last, &job);
        let runtime =
            Handle::try_current().map_err(|error| ProverError::Retry(error.to_string()))?;
        let router = self.router(circuit);
        let proved = router.prove(&request, &job, stopped(&context.cancel, None));
        runtime.block_on(proved).map_err(|error| match error {
            RouteError::Permanent(why) => ProverError::Permanent(why),
            RouteError::Retry(_) | RouteError::Cancelled => ProverError::Retry(error.to_string()),
        })
    }
}
