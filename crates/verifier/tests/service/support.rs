//! Real proofs, and a service that runs.

use std::sync::Arc;

use ark_ff::{One, UniformRand};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use bytes::Bytes;
use proofmill_groth16::snarkjs::{inputs_to_json, proof_to_json, verifying_key_to_json};
use proofmill_groth16::{Proof, ProvingKey, SnarkCurve, VerifyingKey, prove, setup};
use proofmill_r1cs::{Assignment, R1cs};
use proofmill_shutdown::Trigger;
use proofmill_verifier::kinds::Groth16;
use proofmill_verifier::{Handle, KeyDigest, Options, Request, Service};
use tokio::task::JoinHandle;

/// A circuit `inputs[0] = w², inputs[i] = inputs[i − 1]·w`, with its key.
pub(crate) struct Circuit<E: SnarkCurve> {
    system: R1cs<E::ScalarField>,
    key: ProvingKey<E>,
    inputs: usize,
    rng: StdRng,
}

/// A proof and its public inputs.
pub(crate) struct Proven<E: SnarkCurve> {
    pub(crate) inputs: Vec<E::ScalarField>,
    pub(crate) proof: Proof<E>,
}

/// A service that runs until this is dropped.
pub(crate) struct Running {
    pub(crate) handle: Handle,
    pub(crate) trigger: Trigger,
    pub(crate) task: JoinHandle<()>,
}

// === impl Circuit ===

impl<E: SnarkCurve> Circuit<E> {
    pub(crate) fn new(inputs: usize, seed: u64) -> Self {
        let rng = &mut StdRng::seed_from_u64(seed);
        let one = E::ScalarField::one();
        let witness = 1 + inputs;
        let row = |variable: usize| vec![(one, variable)];
        let before = |input: usize| if input == 0 { witness } else { input };
        let rows = [
            (0..inputs).map(|input| row(before(input))).collect(),
            (0..inputs).map(|_| row(witness)).collect(),
            (0..inputs).map(|input| row(1 + input)).collect(),
        ];
        let system = R1cs::from_rows(1 + inputs, 1, rows).expect("a system");
        Self {
            key: setup(&system, rng).expect("a key"),
            system,
            inputs,
            rng: rng.clone(),
        }
    }

    pub(crate) fn prove(&mut self) -> Proven<E> {
        let witness = E::ScalarField::rand(&mut self.rng);
        let mut inputs = Vec::with_capacity(self.inputs);
        let mut last = witness;
        for _ in 0..self.inputs {
            last *= witness;
            inputs.push(last);
        }
        let assignment = Assignment::new(&inputs, &[witness]);
        let proven = prove(&self.key, &self.system, &assignment, &mut self.rng);
        let (proof, _) = proven.expect("a proof");
        Proven { inputs, proof }
    }

    pub(crate) fn verifying_key(&self) -> VerifyingKey<E> {
        self.key.vk.clone()
    }

    pub(crate) fn key_json(&self) -> Bytes {
        verifying_key_to_json(&self.key.vk).into()
    }

    pub(crate) fn key_bytes(&self) -> Bytes {
        self.key.vk.to_bytes().into()
    }
}

// === impl Proven ===

impl<E: SnarkCurve> Proven<E> {
    /// A request in snarkjs's formats.
    pub(crate) fn json(&self, source: &str, id: &str, kind: &str, key: KeyDigest) -> Request {
        Request::new(source, id, kind, proof_to_json(&self.proof))
            .under(key, inputs_to_json(&self.inputs))
    }

    /// A request in the compact form.
    pub(crate) fn compact(&self, source: &str, id: &str, kind: &str, key: KeyDigest) -> Request {
        Request::new(source, id, kind, self.proof.to_bytes())
            .under(key, Groth16::<E>::compact_statement(&self.inputs))
    }
}

// === impl Running ===

impl Running {
    pub(crate) fn of(options: Options) -> Self {
        let (service, handle) = Service::open(options).expect("threads");
        let (trigger, shutdown) = proofmill_shutdown::channel();
        Self {
            handle,
            trigger,
            task: tokio::spawn(service.run(shutdown)),
        }
    }
}

/// Waits for all of them.
pub(crate) async fn verdicts(
    handle: &Handle,
    requests: Vec<Request>,
) -> Vec<proofmill_verifier::Verdict> {
    let mut pending = Vec::with_capacity(requests.len());
    for request in requests {
        pending.push(handle.submit(request).await.expect("it is taken"));
    }
    let mut verdicts = Vec::with_capacity(pending.len());
    for pending in pending {
        verdicts.push(pending.await);
    }
    verdicts
}

/// An id from a number.
pub(crate) fn id(number: usize) -> Arc<str> {
    number.to_string().into()
}
