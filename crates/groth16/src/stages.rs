//! The prover's steps. [`prove`](crate::prove) runs them one after the other; an engine may run
//! one proof's transforms beside another's multiplications.

use ark_ec::CurveGroup;
use ark_ff::PrimeField;
use proofmill_kernels::{Domain, DomainTooLarge, msm};
use proofmill_r1cs::{R1cs, R1csError};
use rayon::prelude::*;

use crate::{Engine, Proof, ProvingKey};

/// A·z and B·z on the domain, padded with zeros; A·z is followed by the instance.
#[derive(Clone, Debug)]
pub struct Evaluations<F> {
    /// A·z, the instance, zeros.
    pub a: Vec<F>,
    /// B·z, zeros.
    pub b: Vec<F>,
}

/// The multi-scalar products a proof is assembled from.
#[derive(Clone, Debug)]
pub struct Products<E: Engine> {
    /// Σ zⱼ·Aⱼ(τ).
    pub a: E::G1,
    /// Σ zⱼ·Bⱼ(τ) in the first group.
    pub b_g1: E::G1,
    /// Σ zⱼ·Bⱼ(τ) in the second group.
    pub b_g2: E::G2,
    /// The part of C that is linear in z.
    pub l: E::G1,
    /// The part of C that is quadratic in z.
    pub h: E::G1,
}

/// The domain of a system: a point for each constraint and each instance variable.
///
/// # Errors
///
/// [`DomainTooLarge`] if the field has none.
pub fn domain<F: PrimeField>(r1cs: &R1cs<F>) -> Result<Domain<F>, DomainTooLarge> {
    Domain::new(r1cs.num_constraints() + r1cs.num_instance())
}

/// Stage 1: A·z and B·z.
///
/// # Errors
///
/// [`R1csError::Length`] if `z` is not for this system.
pub fn evaluate<F: PrimeField>(
    r1cs: &R1cs<F>,
    domain: &Domain<F>,
    z: &[F],
) -> Result<Evaluations<F>, R1csError> {
    let [a_matrix, b_matrix, _] = r1cs.matrices();
    let (mut a, mut b) = (
        vec![F::zero(); domain.size()],
        vec![F::zero(); domain.size()],
    );
    r1cs.multiply(a_matrix, z, &mut a)?;
    r1cs.multiply(b_matrix, z, &mut b)?;
    let start = r1cs.num_constraints();
    a[start..start + r1cs.num_instance()].copy_from_slice(&z[..r1cs.num_instance()]);
    Ok(Evaluations { a, b })
}

/// Stage 2: the products A·B on the coset, by two inverse and two forward transforms.
///
/// # Panics
///
/// If the evaluations are not of the domain's size.
pub fn quotient<F: PrimeField>(domain: &Domain<F>, evaluations: Evaluations<F>) -> Vec<F> {
    let Evaluations { mut a, mut b } = evaluations;
    for values in [&mut a, &mut b] {
        domain.inverse(values);
        domain.coset_forward(values);
    }
    a.par_iter_mut().zip(&b).for_each(|(a, b)| *a *= b);
    a
}

/// Stage 3 for the quotient alone: the one product over full-size scalars.
pub fn multiply_quotient<E: Engine>(key: &ProvingKey<E>, quotient: &[E::ScalarField]) -> E::G1 {
    msm::<E::G1>(&key.h, quotient)
}

/// Stage 4: the proof, blinded by `r` and `s`, which must be fresh and uniform.
pub fn assemble<E: Engine>(
    key: &ProvingKey<E>,
    products: &Products<E>,
    r: E::ScalarField,
    s: E::ScalarField,
) -> Proof<E> {
    let a = products.a + key.vk.alpha_g1 + key.delta_g1 * r;
    let b_g1 = products.b_g1 + key.beta_g1 + key.delta_g1 * s;
    let b = products.b_g2 + key.vk.beta_g2 + key.vk.delta_g2 * s;
    let c = products.l + products.h + a * s + b_g1 * r - key.delta_g1 * (r * s);
    Proof {
        a: a.into_affine(),
        b: b.into_affine(),
        c: c.into_affine(),
    }
}
