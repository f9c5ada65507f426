//! Provers whose cost is known, so that what is left is the orchestration's.

use std::time::Duration;

use bytes::Bytes;
use proofmill_orchestrator::executor::{
    Context, FromPayload, IntoPayloads, Produced, Prover, ProverError, Resolved,
};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::payload::Encoding;
use serde::Deserialize;

/// JSON as it stands, in and out.
pub(crate) struct JsonBytes(pub(crate) Bytes);

/// Gives its input back after `ms` milliseconds: those of the stage's params, or of the payload.
struct Sleep {
    ms: Option<f64>,
}

#[derive(Deserialize)]
struct Params {
    ms: f64,
}

/// The provers that the experiments' workflows name: `instant`, and `sleep`.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.prover("instant", |_| Ok(Sleep { ms: Some(0.0) }));
    registry.prover("sleep", |params| {
        if params.as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(Sleep { ms: None });
        }
        let params: Params =
            serde_json::from_value(params.clone()).map_err(|error| error.to_string())?;
        Ok(Sleep {
            ms: Some(params.ms),
        })
    });
    registry
}

/// Takes a proof's time.
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

    fn prove(&self, _: &Context, input: JsonBytes) -> Result<JsonBytes, ProverError> {
        let ms = match self.ms {
            Some(ms) => ms,
            None => {
                let payload: Params = serde_json::from_slice(&input.0)
                    .map_err(|error| ProverError::Permanent(error.to_string()))?;
                payload.ms
            }
        };
        if ms > 0.0 {
            work_for(Duration::from_secs_f64(ms / 1e3));
        }
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
