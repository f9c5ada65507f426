//! The prover.

use std::time::{Duration, Instant};

use ark_ff::UniformRand;
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::{DomainTooLarge, msm};
use proofmill_r1cs::{Assignment, R1cs, R1csError, Unsatisfied};
use zeroize::Zeroizing;

use crate::stages::{self, Products};
use crate::{Engine, Proof, ProvingKey};

/// Why there is no proof. Each is permanent: the same call fails again.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The assignment does not satisfy the constraints: what it states is false.
    #[error("nothing to prove: {0}")]
    Unsatisfied(#[from] Unsatisfied),
    /// The assignment is for another system.
    #[error(transparent)]
    Assignment(#[from] R1csError),
    /// The key is for another system.
    #[error("the proving key is for another circuit: load the key whose digest is the circuit's")]
    WrongKey,
    /// The system exceeds the field's largest domain.
    #[error(transparent)]
    TooLarge(#[from] DomainTooLarge),
}

/// How long each stage of a proof took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// A·z and B·z, and checking them against C·z.
    pub evaluate: Duration,
    /// The transforms.
    pub quotient: Duration,
    /// The product over the A query.
    pub msm_a: Duration,
    /// The products over the B queries, both groups.
    pub msm_b: Duration,
    /// The product over the L query.
    pub msm_l: Duration,
    /// The product over the H query, the one with full-size scalars.
    pub msm_h: Duration,
    /// Blinding and conversion.
    pub assemble: Duration,
}

// === impl Timings ===

impl Timings {
    /// The sum of all stages.
    pub fn total(&self) -> Duration {
        self.evaluate
            + self.quotient
            + self.msm_a
            + self.msm_b
            + self.msm_l
            + self.msm_h
            + self.assemble
    }
}

/// Proves that `assignment` satisfies `r1cs`, whose key is `key`, on all threads of the current
/// rayon pool. The proof is blinded: it reveals the public inputs and nothing else.
///
/// # Errors
///
/// [`ProveError`]; in particular an assignment that does not satisfy the system is refused before
/// any group operation.
pub fn prove<E: Engine>(
    key: &ProvingKey<E>,
    r1cs: &R1cs<E::ScalarField>,
    assignment: &Assignment<E::ScalarField>,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<(Proof<E>, Timings), ProveError> {
    let domain = stages::domain(r1cs)?;
    if key.variables != r1cs.num_variables()
        || key.vk.instance.len() != r1cs.num_instance()
        || key.h.len() != domain.size()
    {
        return Err(ProveError::WrongKey);
    }
    let mut timings = Timings::default();
    let mut clock = Instant::now();
    let mut lap = |slot: &mut Duration| {
        *slot = clock.elapsed();
        clock = Instant::now();
    };
    let z = assignment.z();

    let evaluations = stages::evaluate(r1cs, &domain, z)?;
    if z.first()
        .is_none_or(|one| *one != E::ScalarField::from(1u64))
    {
        return Err(Unsatisfied { row: 0 }.into());
    }
    r1cs.is_satisfied_given(z, &evaluations.a, &evaluations.b)?;
    lap(&mut timings.evaluate);
    let quotient = stages::quotient(&domain, evaluations);
    lap(&mut timings.quotient);
    let a = key.a.multiply(z);
    lap(&mut timings.msm_a);
    let b_scalars = key.b_g1.gather(z);
    let b_g1 = msm::<E::G1>(&key.b_g1.points, &b_scalars);
    let b_g2 = msm::<E::G2>(&key.b_g2, &b_scalars);
    lap(&mut timings.msm_b);
    let l = key.l.multiply(z);
    lap(&mut timings.msm_l);
    let h = stages::multiply_quotient(key, &quotient);
    lap(&mut timings.msm_h);
    let (r, s) = (
        Zeroizing::new(E::ScalarField::rand(rng)),
        Zeroizing::new(E::ScalarField::rand(rng)),
    );
    let proof = stages::assemble(
        key,
        &Products {
            a,
            b_g1,
            b_g2,
            l,
            h,
        },
        *r,
        *s,
    );
    lap(&mut timings.assemble);
    Ok((proof, timings))
}
