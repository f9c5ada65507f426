//! `bitcoin.verify`: verifies proven chunks of headers in batches and compares them with the submission; the sequencer
//! runs the same check before emission.

use std::time::{Duration, Instant};

use bytes::Bytes;
use proofmill_bitcoin::Difficulty;
use proofmill_bitcoin::HeaderChainVerifier;
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::origin::Origin;
use proofmill_orchestrator::sink::{EmissionCheck, VerifiedResult};
use serde::Deserialize;
use serde_json::Value;

use super::bitcoin::{DEFAULT_SLOTS, Keys, OnProverEvent, ProverEvent, no_keys};
use super::chunk::{EmittedChunk, ProvenChunk};
use super::shared_verifier::{ClaimedChunk, NotPassed, RegisteredKey};

/// The executor of `bitcoin.verify`: takes proven chunks, returns [`EmittedChunk`]s.
pub(super) struct Verify {
    slots: usize,
    /// Whether blocks are heights of Bitcoin's main chain, and bits are checked by its rule.
    retarget: bool,
    keys: Keys,
    key: RegisteredKey,
    on_event: OnProverEvent,
}

/// A chunk and its origin, or the reason why the chunk is wrong.
type Compared = Result<(ProvenChunk, Origin), String>;

// === impl Verify ===

impl Verify {
    pub(super) fn new(params: &Value, keys: Keys, on_event: OnProverEvent) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Params {
            slots: Option<usize>,
            #[serde(default)]
            retarget: bool,
        }
        let params = Params::deserialize(params).map_err(|error| error.to_string())?;
        Ok(Self {
            slots: params.slots.unwrap_or(DEFAULT_SLOTS),
            retarget: params.retarget,
            keys,
            key: RegisteredKey::default(),
            on_event,
        })
    }

    /// Verifies the proofs of the chunks that passed the comparison as one batch; one verdict for each, in order.
    fn verify(
        &self,
        compared: Vec<Compared>,
        verifier: &HeaderChainVerifier,
        event: fn(usize, Duration) -> ProverEvent,
    ) -> Vec<Result<(ProvenChunk, Origin), NotPassed>> {
        let began = Instant::now();
        let claims: Vec<ClaimedChunk<'_>> = compared
            .iter()
            .flatten()
            .map(|(chunk, origin)| (origin.first, &chunk.proof().statement, &chunk.proof().proof))
            .collect();
        let mut verdicts = self.key.verify(verifier, &claims).into_iter();
        (self.on_event)(event(claims.len(), began.elapsed()));
        let verdict = |compared: Compared| {
            let compared = compared.map_err(NotPassed::Invalid)?;
            let none = || Err(NotPassed::Unknown("no verdict".to_owned()));
            verdicts.next().unwrap_or_else(none).map(|()| compared)
        };
        compared.into_iter().map(verdict).collect()
    }

    fn compare(&self, chunk: Result<ProvenChunk, String>, origin: &Origin) -> Compared {
        let chunk = chunk?;
        chunk.compare(origin, self.retarget)?;
        Ok((chunk, origin.clone()))
    }

    fn compare_passed(&self, passed: &VerifiedResult) -> Compared {
        let emitted = read(&passed.bytes)?;
        let chunk = self.compare(ProvenChunk::of(&emitted), &passed.origin)?;
        // Compare every byte, so that no other field can carry wrong or additional data.
        let expected = chunk.0.emitted(&passed.origin, self.slots)?;
        let expected = serde_json::to_vec(&expected).map_err(|error| error.to_string())?;
        match *expected == *passed.bytes {
            true => Ok(chunk),
            false => Err("its description of the chunk differs from its proof".to_owned()),
        }
    }
}

impl Prover for Verify {
    type Input = Bytes;
    type Output = Json<EmittedChunk>;

    fn prove(&self, context: &Context, input: Bytes) -> Result<Json<EmittedChunk>, ProverError> {
        let batch = vec![(context.clone(), input)];
        let no_verdict = || Err(ProverError::Retry("no verdict".to_owned()));
        self.prove_batch(batch).pop().unwrap_or_else(no_verdict)
    }

    fn prove_batch(
        &self,
        batch: Vec<(Context, Bytes)>,
    ) -> Vec<Result<Json<EmittedChunk>, ProverError>> {
        let compare = |(context, bytes): &(Context, Bytes)| {
            let origin = context.origin().map_err(|error| error.to_string())?;
            self.compare(ProvenChunk::decode(bytes), origin)
        };
        let event = |count, took| ProverEvent::Verified { count, took };
        let verifier = match self.keys.verifier(self.slots, &self.on_event) {
            Ok(verifier) => verifier,
            Err(error) => return batch.iter().map(|_| Err(no_keys(&error))).collect(),
        };
        let compared = batch.iter().map(compare).collect();
        let verdicts = self.verify(compared, &verifier, event);
        let emit = |verdict: Result<(ProvenChunk, Origin), NotPassed>| {
            let (chunk, origin) = verdict?;
            let emitted = chunk.emitted(&origin, self.slots);
            emitted.map(Json).map_err(NotPassed::Invalid)
        };
        let to_error = |objection| match objection {
            NotPassed::Invalid(why) => {
                ProverError::Permanent(format!("the proof does not verify: {why}"))
            }
            NotPassed::Unknown(why) => ProverError::Retry(why),
        };
        let verdicts = verdicts.into_iter();
        verdicts
            .map(|verdict| emit(verdict).map_err(to_error))
            .collect()
    }
}

impl EmissionCheck for Verify {
    fn check(&self, passed: &[VerifiedResult]) -> Vec<Result<(), ProverError>> {
        let verifier = match self.keys.known_verifier(self.slots, &self.on_event) {
            Ok(verifier) => verifier,
            Err(error) => return passed.iter().map(|_| Err(error.clone())).collect(),
        };
        let event = |count, took| ProverEvent::Checked { count, took };
        let compared = passed.iter().map(|one| self.compare_passed(one)).collect();
        let to_error = |objection| match objection {
            NotPassed::Invalid(why) => ProverError::Permanent(why),
            NotPassed::Unknown(why) => ProverError::Retry(why),
        };
        let verdicts = self.verify(compared, &verifier, event).into_iter();
        verdicts
            .map(|verdict| verdict.map(|_| ()).map_err(to_error))
            .collect()
    }

    /// Checks that a chunk follows from the one before. The returned state is the chunk's last hash (32 bytes) and the
    /// difficulty after it.
    fn follow(&self, before: Option<&[u8]>, passed: &VerifiedResult) -> Result<Vec<u8>, String> {
        let emitted = read(&passed.bytes)?;
        let chunk = ProvenChunk::of(&emitted)?;
        let statement = &chunk.proof().statement;
        let mut difficulty = Difficulty::starting_at(passed.origin.first);
        if let Some(before) = before {
            let (last_hash, rest) = before
                .split_first_chunk::<32>()
                .ok_or("the kept state of the chunk before it is damaged")?;
            if *last_hash != statement.prev_hash.0 {
                return Err(format!(
                    "it follows {}, and not the last header of the chunk before it",
                    statement.prev_hash
                ));
            }
            let known = Difficulty::from_bytes(rest);
            let follows = |known: &Difficulty| known.height() == passed.origin.first;
            difficulty = known.filter(follows).unwrap_or(difficulty);
        }
        if self.retarget {
            chunk.check_bits(&mut difficulty)?;
        }
        let mut after = statement.last_hash.0.to_vec();
        after.extend(difficulty.to_bytes());
        Ok(after)
    }
}

fn read(bytes: &[u8]) -> Result<EmittedChunk, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("it is no chunk: {error}"))
}
