//! The records of the log.
//!
//! | key | value |
//! |---|---|
//! | `circuit.NAME` | a registered circuit |
//! | `job.ID` | an accepted, unfinished job |
//! | `end.ID` | a job's end: its result |
//!
//! Each value is a version byte (1) and the record encoded by postcard. A job's end is appended on
//! condition that none exists, in one batch with the deletion of the job: after a crash exactly one of the
//! two exists.

use proofmill_bus::{Key, Op};
use proofmill_groth16::Curve;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::inputs::InputName;
use crate::interface::{AnyProof, CircuitId, JobId, JobState, PartitionProof, Priority, RequestId};
use crate::registry::Registered;

const VERSION: u8 = 1;

/// Domain separator in the hash of a job's content. It has a version number, so that another version gives
/// other digests.
const CONTENT_DOMAIN: &[u8] = b"proofmill/engine/content/1";

/// An accepted job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    pub(crate) request: RequestId,
    /// Digest of its partitions, by [`content_of`](Self::content_of).
    pub(crate) content: [u8; 32],
    pub(crate) priority: Priority,
    /// The deadline, in milliseconds since 1970.
    pub(crate) deadline_ms: Option<u64>,
    /// Time of acceptance, in milliseconds since 1970.
    pub(crate) submitted_ms: u64,
    pub(crate) partitions: Vec<PartitionRecord>,
}

/// A partition of an accepted job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartitionRecord {
    pub(crate) circuit: CircuitId,
    pub(crate) input: InputRecord,
}

/// The file of a partition's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputRecord {
    pub(crate) name: InputName,
    pub(crate) bytes: u64,
    /// SHA-256 of the file.
    pub(crate) digest: [u8; 32],
    /// Name of the generator that makes the witness; none if the file is the witness.
    pub(crate) generator: Option<String>,
}

/// An ended job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndRecord {
    pub(crate) request: RequestId,
    pub(crate) content: [u8; 32],
    pub(crate) priority: Priority,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) submitted_ms: u64,
    pub(crate) started_ms: Option<u64>,
    pub(crate) ended_ms: u64,
    pub(crate) partitions: u32,
    pub(crate) proven: u32,
    pub(crate) retries: u32,
    /// The names of its circuits.
    pub(crate) circuits: Vec<String>,
    /// A final state.
    pub(crate) state: JobState,
    pub(crate) proofs: Vec<ProofRecord>,
}

/// An encoded proof of an ended job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProofRecord {
    circuit: CircuitId,
    /// The curve's name.
    curve: String,
    /// Encoded as by [`AnyProof::proof_bytes`].
    proof: Vec<u8>,
    /// Encoded as by [`AnyProof::public_bytes`].
    public: Vec<[u8; 32]>,
}

// === impl JobRecord ===

impl JobRecord {
    /// Digest of circuits and inputs, by which repeated requests are recognised. Priority and deadline are
    /// left out, since they may differ when a client asks again.
    pub(crate) fn content_of<'a>(
        partitions: impl IntoIterator<Item = (&'a CircuitId, Option<&'a str>, &'a [u8; 32])>,
    ) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(CONTENT_DOMAIN);
        for (circuit, generator, input) in partitions {
            hasher.update(circuit.0);
            hasher.update(input);
            let generator = generator.unwrap_or_default();
            hasher.update((generator.len() as u64).to_le_bytes());
            hasher.update(generator);
        }
        hasher.finalize().into()
    }

    pub(crate) fn id(&self) -> JobId {
        JobId::of(&self.request)
    }
}

// === impl ProofRecord ===

impl ProofRecord {
    pub(crate) fn of(made: &PartitionProof) -> Self {
        Self {
            circuit: made.circuit,
            curve: made.proof.curve().name().to_owned(),
            proof: made.proof.proof_bytes(),
            public: made.proof.public_bytes(),
        }
    }

    /// Decodes the proof. The error is a message with the reason.
    pub(crate) fn decode(&self) -> Result<PartitionProof, String> {
        let mut curves = Curve::ALL.into_iter();
        let curve = curves.find(|curve| curve.name() == self.curve);
        let curve = curve.ok_or_else(|| format!("unknown curve {:?}", self.curve))?;
        let proof = AnyProof::decode(curve, &self.proof, &self.public);
        Ok(PartitionProof {
            circuit: self.circuit,
            proof: proof.map_err(|error| error.to_string())?,
        })
    }
}

/// A decoded record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Circuit(Registered),
    Job(JobRecord),
    End(EndRecord),
}

// === impl Record ===

impl Record {
    /// Decodes a record. The error is a message with the reason.
    pub(super) fn read(key: &Key, value: &[u8]) -> Result<Self, String> {
        let (version, body) = value.split_first().ok_or("it is empty")?;
        if *version != VERSION {
            return Err(format!(
                "it is of version {version}, and this program reads version {VERSION}"
            ));
        }
        match key.as_str().split_once('.') {
            Some(("circuit", _)) => decode(body).map(Self::Circuit),
            Some(("job", _)) => decode(body).map(Self::Job),
            Some(("end", _)) => decode(body).map(Self::End),
            _ => Err("its key is not one of an engine".to_owned()),
        }
    }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    postcard::from_bytes(body).map_err(|error| error.to_string())
}

fn encode(record: &impl Serialize) -> Result<Vec<u8>, String> {
    postcard::to_extend(record, vec![VERSION]).map_err(|error| error.to_string())
}

fn key(kind: &str, name: impl std::fmt::Display) -> Result<Key, String> {
    Key::new(format!("{kind}.{name}")).map_err(|error| error.to_string())
}

pub(super) fn keep_circuit(circuit: &Registered) -> Result<Vec<Op>, String> {
    Ok(vec![Op::put(
        key("circuit", &circuit.name)?,
        encode(circuit)?,
    )])
}

pub(super) fn forget_circuit(name: &str) -> Result<Vec<Op>, String> {
    Ok(vec![Op::delete(key("circuit", name)?)])
}

pub(super) fn accept(job: &JobRecord) -> Result<Vec<Op>, String> {
    Ok(vec![Op::put_new(key("job", job.id())?, encode(job)?)])
}

pub(super) fn end(end: &EndRecord) -> Result<Vec<Op>, String> {
    let id = JobId::of(&end.request);
    Ok(vec![
        Op::put_new(key("end", id)?, encode(end)?),
        Op::delete(key("job", id)?),
    ])
}

pub(super) fn prune(job: JobId) -> Result<Vec<Op>, String> {
    Ok(vec![Op::delete(key("end", job)?)])
}

#[cfg(test)]
mod tests {
    use ark_ec::AffineRepr;
    use ark_ec::pairing::Pairing;
    use ark_ff::One;
    use proofmill_groth16::{Bn254, Proof};

    use super::*;
    use crate::interface::ProofOf;

    /// SHA-256 of a job's end as encoded in the log. It must not change: state directories of other
    /// releases have this form.
    const END: &str = "941aeee1490c72ff05a5c4b1667d969e5009b23db2bae0ca3f3fc5e3a5e35818";

    #[test]
    fn the_end_of_a_job_keeps_its_form() {
        let proof = Proof::<Bn254> {
            a: <Bn254 as Pairing>::G1Affine::generator(),
            b: <Bn254 as Pairing>::G2Affine::generator(),
            c: <Bn254 as Pairing>::G1Affine::generator(),
        };
        let made = ProofOf {
            proof,
            public: vec![<Bn254 as Pairing>::ScalarField::one()],
        };
        let made = PartitionProof {
            circuit: CircuitId([9; 32]),
            proof: made.into(),
        };
        let record = EndRecord {
            request: RequestId::new("client", "1").unwrap(),
            content: [7; 32],
            priority: Priority::High,
            deadline_ms: Some(5),
            submitted_ms: 1,
            started_ms: Some(2),
            ended_ms: 3,
            partitions: 1,
            proven: 1,
            retries: 2,
            circuits: vec!["circuit".to_owned()],
            state: JobState::Done,
            proofs: vec![ProofRecord::of(&made)],
        };
        let encoded = encode(&record).unwrap();
        assert_eq!(hex::encode(Sha256::digest(&encoded)), END);
        assert_eq!(record.proofs[0].decode(), Ok(made));
    }
}
