//! Parts that proving engines prove: keys stay resident there, and an engine's memory budget and devices are used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ark_ff::{BigInteger, PrimeField};
use bytes::Bytes;
use proofmill_api::engine::endpoints;
use proofmill_groth16::KeyError;
use proofmill_groth16::mirage::ProvingKeyInfo;
use proofmill_orchestrator::executor::engine::{
    EngineJob, JobInput, ProofOutput, RouteError, Router, stopped,
};
use proofmill_orchestrator::executor::{Context, ProverError};
use proofmill_partition::proof::PartitionCurve;
use proofmill_workflow::{EngineAddress, EngineExecutor, EnginePriority};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use zeroize::Zeroizing;

/// Longest wait for an engine that answers and has the class.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a value in a witness for an engine.
const VALUE_BYTES: usize = 32;

/// Domain separator in the hash of a job's request.
const REQUEST_DOMAIN: &[u8] = b"proofmill/part/request/1";

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
    settings: EngineSettings,
    addresses: Vec<EngineAddress>,
    /// A router for each class, by the name of its circuit.
    routers: Mutex<BTreeMap<String, Arc<Router>>>,
}

/// Name at engines of the circuit that a class's key is for: by the checksum of the key's file, since classes may have the
/// same constraints.
pub(crate) fn circuit_name<E: PartitionCurve>(key: &Path) -> Result<String, KeyError> {
    let checksum = ProvingKeyInfo::of::<E>(key)?.checksum;
    Ok(format!("part-{}", hex::encode(&checksum[..16])))
}

// === impl Engines ===

impl Engines {
    /// The engines that a stage's parameters name.
    pub(super) fn of(settings: &EngineSettings) -> Result<Self, String> {
        let addresses = settings.endpoints.iter();
        let addresses = addresses.map(|text| {
            let address = EngineAddress::try_new(text, Path::new(""));
            address.map_err(|error| format!("{text}: {error}"))
        });
        let addresses: Vec<EngineAddress> = addresses.collect::<Result<_, _>>()?;
        match addresses.is_empty() {
            true => Err("no engine is named in `endpoints`".to_owned()),
            false => Ok(Self {
                settings: settings.clone(),
                addresses,
                routers: Mutex::default(),
            }),
        }
    }

    fn router(&self, circuit: &str) -> Arc<Router> {
        let mut routers = self.routers.lock().unwrap_or_else(PoisonError::into_inner);
        let router = routers.entry(circuit.to_owned()).or_insert_with(|| {
            let endpoints = endpoints(&EngineExecutor {
                circuit: circuit.to_owned(),
                endpoints: self.addresses.clone(),
                generator: None,
                priority: None,
                token: self.settings.token.clone(),
                ca: self.settings.ca.clone(),
                verifying_key: None,
                patience: PATIENCE,
            });
            Arc::new(Router::new(circuit, endpoints, PATIENCE))
        });
        Arc::clone(router)
    }

    /// Proves the part with this assignment at an engine; `circuit` is its class's name there. For a thread that may block.
    pub(super) fn prove<F: PrimeField>(
        &self,
        context: &Context,
        circuit: &str,
        assignment: &[F],
    ) -> Result<ProofOutput, ProverError> {
        let witness = witness(assignment);
        let request = request(context, circuit, &witness);
        let job = EngineJob {
            circuit: circuit.to_owned(),
            priority: EnginePriority::Normal,
            input: JobInput::Witness(Bytes::copy_from_slice(&witness)),
        };
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

/// The id of a part's job at engines, the same in each attempt.
fn request(context: &Context, circuit: &str, witness: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(REQUEST_DOMAIN);
    for part in [&*context.task.to_string(), circuit] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.update(Sha256::digest(witness));
    let digest = hex::encode(&hasher.finalize()[..16]);
    format!("{}/{}-{digest}", context.task.stage, context.task.block)
}

/// The values as engines read them, little-endian.
fn witness<F: PrimeField>(assignment: &[F]) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(VALUE_BYTES * assignment.len()));
    for value in assignment {
        let value = value.into_bigint().to_bytes_le();
        bytes.extend_from_slice(&value);
        let end = bytes.len() + VALUE_BYTES - value.len();
        bytes.resize(end, 0);
    }
    bytes
}
