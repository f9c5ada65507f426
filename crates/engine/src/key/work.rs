//! The computation of one partition, over one of the curves.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ark_ec::AffineRepr;
use ark_std::rand::rngs::OsRng;
use proofmill_accelerator::Error;
use proofmill_groth16::{
    PartialProducts, Proof, ProveError, QuotientInput, SnarkCurve, mirage, verify,
};
use proofmill_r1cs::iden3::{SCALAR_BYTES, WTNS_FORMAT, Witness, WtnsFile, canonical_from_le};
use rayon::prelude::*;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::accelerator::Accelerator;
use super::hot::{HotKey, Verifier};
use super::traits::{StepError, Work, ensure_wanted};
use crate::interface::{AnyProof, CircuitId, PartitionProof, ProofOf};

/// Scalars that one parallel task decodes.
const CHUNK_SCALARS: usize = 1 << 12;

pub(super) struct TypedWork<E: SnarkCurve> {
    key: Arc<HotKey<E>>,
    step: Step<E>,
}

/// Progress of a partition, with only the data that the next stage needs.
enum Step<E: SnarkCurve> {
    Begun,
    Read(Witness<E::ScalarField>),
    Evaluated(Witness<E::ScalarField>, QuotientInput<E::ScalarField>),
    Proved(Witness<E::ScalarField>, PartialProducts<E>),
    Finished(Finished<E>),
    /// A stage failed, or all are done; the data is dropped.
    Ended,
}

/// A proof before it is verified.
struct Finished<E: SnarkCurve> {
    public: Vec<E::ScalarField>,
    /// The commitment to the committed values, without randomness, if the key is one of Mirage.
    commitment: Option<mirage::Commitment<E>>,
    proof: Proof<E>,
}

/// A future that is polled on a pool's threads, and occupies none of them while it waits.
struct OnPool<'a, F> {
    pool: &'a rayon::ThreadPool,
    future: Pin<Box<F>>,
}

// === impl TypedWork ===

impl<E: SnarkCurve> TypedWork<E> {
    pub(super) fn new(key: Arc<HotKey<E>>) -> Self {
        Self {
            key,
            step: Step::Begun,
        }
    }

    fn take(&mut self) -> Step<E> {
        std::mem::replace(&mut self.step, Step::Ended)
    }

    /// The commitment that belongs to a plain proof with a key of Mirage.
    fn commitment(
        &self,
        z: &[E::ScalarField],
    ) -> Result<Option<mirage::Commitment<E>>, ProveError> {
        let Verifier::Committed { key, .. } = &self.key.verifier else {
            return Ok(None);
        };
        let prover = key.prover();
        let values = prover.committed_of(z)?;
        let opening = mirage::Opening::new(values, E::ScalarField::default());
        prover.commit_with(values, &opening).map(Some)
    }

    fn decode(&self, bytes: &[u8]) -> Result<Witness<E::ScalarField>, StepError> {
        if bytes.starts_with(&WTNS_FORMAT.magic) {
            return WtnsFile::parse(bytes)
                .and_then(|file| file.read::<E::ScalarField>())
                .map_err(|error| StepError::Permanent(error.to_string()));
        }
        let variables = self.key.key.prover().variables();
        if bytes.len() != variables * SCALAR_BYTES {
            return Err(StepError::Permanent(format!(
                "a vector of {} bytes: the circuit has {variables} variables of {SCALAR_BYTES} bytes",
                bytes.len()
            )));
        }
        let mut values = Zeroizing::new(vec![E::ScalarField::default(); variables]);
        let bad = values
            .par_chunks_mut(CHUNK_SCALARS)
            .zip(bytes.par_chunks(CHUNK_SCALARS * SCALAR_BYTES))
            .enumerate()
            .find_map_first(|(chunk, (values, bytes))| {
                let encoded = bytes.chunks_exact(SCALAR_BYTES);
                for (i, (value, bytes)) in values.iter_mut().zip(encoded).enumerate() {
                    match canonical_from_le(bytes) {
                        Some(decoded) => *value = decoded,
                        None => return Some(chunk * CHUNK_SCALARS + i),
                    }
                }
                None
            });
        match bad {
            Some(variable) => Err(StepError::Permanent(format!(
                "the value of variable {variable} is not below the field's prime"
            ))),
            None => Ok(Witness::new(std::mem::take(&mut *values))),
        }
    }
}

impl<E: SnarkCurve> Work for TypedWork<E>
where
    AnyProof: From<ProofOf<E>>,
{
    fn read_witness(&mut self, bytes: &[u8]) -> Result<(), StepError> {
        self.step = Step::Read(self.decode(bytes)?);
        Ok(())
    }

    fn evaluate(&mut self, stop: &CancellationToken) -> Result<(), StepError> {
        let Step::Read(witness) = self.take() else {
            return Err(out_of_order());
        };
        let prover = self.key.key.prover();
        let (evaluations, _) = prover.evaluate(witness.values()).map_err(refused)?;
        ensure_wanted(stop)?;
        let evaluated = if self.key.transforms_on_accelerator() {
            evaluations.into()
        } else {
            prover.quotient(evaluations).0.into()
        };
        self.step = Step::Evaluated(witness, evaluated);
        ensure_wanted(stop)
    }

    fn prove(&mut self, stop: &CancellationToken) -> Result<(), StepError> {
        let Step::Evaluated(witness, evaluated) = self.take() else {
            return Err(out_of_order());
        };
        let prover = self.key.key.prover();
        let z = witness.values();
        let quotient = match evaluated {
            QuotientInput::Quotient(quotient) => quotient,
            QuotientInput::Evaluations(evaluations) => prover.quotient(evaluations).0,
        };
        ensure_wanted(stop)?;
        // The product that needs the quotient comes first, so that the quotient's memory is free
        // afterwards.
        let (h, _) = prover.multiply_h(quotient);
        ensure_wanted(stop)?;
        let (a, _) = prover.multiply_a(z).map_err(refused)?;
        ensure_wanted(stop)?;
        let (b_g1, _) = prover.multiply_b_g1(z).map_err(refused)?;
        ensure_wanted(stop)?;
        let (l, _) = prover.multiply_l(z).map_err(refused)?;
        let products = PartialProducts {
            a,
            b_g1,
            b_g2: None,
            l,
            h,
        };
        self.step = Step::Proved(witness, products);
        ensure_wanted(stop)
    }

    fn prove_on(
        &mut self,
        accelerator: &Accelerator,
        pool: &rayon::ThreadPool,
        stop: &CancellationToken,
    ) -> Result<(), StepError> {
        let Step::Evaluated(witness, evaluated) = self.take() else {
            return Err(out_of_order());
        };
        let failed = |error| failed_on(accelerator, error);
        let key = self.key.on(accelerator).map_err(failed)?;
        ensure_wanted(stop)?;
        let z = witness.values();
        let started = pool.install(|| key.start(z, evaluated)).map_err(failed)?;
        let finish = OnPool {
            pool,
            future: Box::pin(started.finish(z)),
        };
        // Dropping the future cancels the jobs that were submitted to the device.
        let finished = tokio::runtime::Handle::current().block_on(async {
            tokio::select! {
                biased;
                () = stop.cancelled() => Err(StepError::Stopped),
                finished = finish => finished.map_err(failed),
            }
        });
        let (products, _) = finished?;
        self.step = Step::Proved(witness, products);
        ensure_wanted(stop)
    }

    fn finish(&mut self, stop: &CancellationToken) -> Result<(), StepError> {
        let Step::Proved(witness, products) = self.take() else {
            return Err(out_of_order());
        };
        let prover = self.key.key.prover();
        let completed = products.complete(&prover, witness.values());
        let (products, _) = completed.map_err(refused)?;
        ensure_wanted(stop)?;
        let (proof, _) = prover.assemble(&products, &mut OsRng);
        self.step = Step::Finished(Finished {
            public: witness.values()[1..prover.vk().instance.len()].to_vec(),
            commitment: self.commitment(witness.values()).map_err(refused)?,
            proof,
        });
        Ok(())
    }

    fn verify(&mut self, circuit: CircuitId) -> Result<PartitionProof, StepError> {
        let Step::Finished(finished) = self.take() else {
            return Err(out_of_order());
        };
        let Finished {
            public,
            commitment,
            proof,
        } = finished;
        let verified = match (&self.key.verifier, &commitment) {
            (Verifier::Plain(key), _) => verify(key, &public, &proof),
            (Verifier::Committed { verifying, .. }, Some(commitment)) => {
                let inputs = mirage::Inputs::from(&public[..]);
                mirage::verify(verifying, inputs, commitment, &proof)
            }
            (Verifier::Committed { .. }, None) => return Err(out_of_order()),
        };
        verified.map_err(|_| StepError::Invalid)?;
        let proof = ProofOf { proof, public }.into();
        Ok(PartitionProof { circuit, proof })
    }

    fn corrupt_product(&mut self) {
        if let Step::Proved(_, products) = &mut self.step {
            products.a += E::G1Affine::generator();
        }
    }
}

/// An error of the prover concerns the witness, since the key was checked against its circuit.
fn refused(error: ProveError) -> StepError {
    StepError::Permanent(error.to_string())
}

/// The error of an accelerator. Another device may succeed, unless the error concerns the witness.
fn failed_on(accelerator: &Accelerator, error: ProveError) -> StepError {
    let why = format!("on device {}: {error}", accelerator.name);
    match error {
        ProveError::Device(Error::Failed { .. } | Error::NoDevice { .. }) => StepError::Broken(why),
        ProveError::Device(Error::OutOfMemory { .. }) => {
            // Makes room for the next attempt: this partition's jobs do not fit beside all keys on the
            // device.
            accelerator.evict_one(&accelerator.lock_loading());
            StepError::Retry(why)
        }
        ProveError::Device(_) => StepError::Retry(why),
        error => refused(error),
    }
}

fn out_of_order() -> StepError {
    StepError::Permanent("a stage was run out of its order".to_owned())
}

impl<F: Future<Output: Send> + Send> Future for OnPool<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let waker = context.waker().clone();
        let this = &mut *self;
        this.pool.install(|| {
            let mut context = Context::from_waker(&waker);
            this.future.as_mut().poll(&mut context)
        })
    }
}
