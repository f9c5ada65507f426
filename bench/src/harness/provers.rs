//! Provers of known cost, so that the rest of the time is that of the orchestration.

use std::time::Duration;

use bytes::Bytes;
use proofmill_orchestrator::executor::{
    Context, FromPayload, IntoPayloads, Produced, Prover, ProverError, Resolved,
};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::payload::Encoding;
use serde::Deserialize;
use serde_json::Value;

use super::journal::{Journal, RunEvent};

/// A JSON payload that is passed on as bytes, without decoding.
pub(crate) struct JsonBytes(pub(crate) Bytes);

/// A prover that returns its input after `ms` milliseconds.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sleep {
    /// The time from the stage's parameters; `None` takes the time from each payload.
    ms: Option<f64>,
    /// The file to which each run is recorded; by default none.
    journal: Option<Journal>,
}

#[derive(Deserialize)]
struct Payload {
    ms: f64,
}

/// The executor `sleep` of a workflow file, which takes `ms` milliseconds.
pub(crate) fn sleep(ms: f64) -> String {
    format!("{{ kind = \"native\", prover = \"sleep\", params = {{ ms = {ms:?} }} }}")
}

/// The provers that the experiments' workflows name: `instant`, and `sleep`.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.prover("instant", |_| {
        Ok(Sleep {
            ms: Some(0.0),
            journal: None,
        })
    });
    registry.prover("sleep", |params| match params {
        Value::Null => Ok(Sleep::default()),
        params => Sleep::deserialize(params).map_err(|error| error.to_string()),
    });
    registry
}

/// Blocks the thread for the time that a proof would take.
#[expect(
    clippy::disallowed_methods,
    reason = "provers run on threads of their own, outside the runtime's"
)]
pub(crate) fn work_for(time: Duration) {
    std::thread::sleep(time);
}

// === impl Sleep ===

impl Prover for Sleep {
    type Input = JsonBytes;
    type Output = JsonBytes;

    fn prove(&self, context: &Context, input: JsonBytes) -> Result<JsonBytes, ProverError> {
        let ms = match self.ms {
            Some(ms) => ms,
            None => {
                let payload: Payload = serde_json::from_slice(&input.0)
                    .map_err(|error| ProverError::Permanent(error.to_string()))?;
                payload.ms
            }
        };
        let failed = |error: std::io::Error| ProverError::Retry(error.to_string());
        let write = |event| match &self.journal {
            Some(journal) => journal.write(event, &context.task).map_err(failed),
            None => Ok(()),
        };
        write(RunEvent::Began)?;
        if ms > 0.0 {
            work_for(Duration::from_secs_f64(ms / 1e3));
        }
        write(RunEvent::Ended)?;
        Ok(input)
    }
}

// === impl JsonBytes ===

impl FromPayload for JsonBytes {
    fn from_payload(payload: Resolved) -> Result<Self, String> {
        payload.to_program_input().map(Self)
    }
}

impl IntoPayloads for JsonBytes {
    fn into_payloads(self) -> Result<Produced, String> {
        Ok(Produced::One(Encoding::Json, self.0))
    }
}
