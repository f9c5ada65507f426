//! Key generation by one party.

use ark_ec::CurveGroup;
use ark_ff::{Field, UniformRand, Zero};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::{Domain, DomainTooLarge, fixed_base};
use proofmill_r1cs::{Matrix, R1cs};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::keys::{ProvingKey, SparseQuery, VerifyingKey};
use crate::{Engine, stages};

/// A system keys cannot be made for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// It has more constraints than the field's largest domain has points.
    #[error(transparent)]
    TooLarge(#[from] DomainTooLarge),
}

/// The secrets whose knowledge lets one forge proofs.
struct ToxicWaste<F: Field> {
    tau: F,
    alpha: F,
    beta: F,
    gamma: F,
    delta: F,
}

impl<F: Field> Drop for ToxicWaste<F> {
    fn drop(&mut self) {
        for secret in [
            &mut self.tau,
            &mut self.alpha,
            &mut self.beta,
            &mut self.gamma,
            &mut self.delta,
        ] {
            secret.zeroize();
        }
    }
}

/// Makes keys for `r1cs` from fresh randomness. **For development only.**
///
/// The randomness is erased from the variables that held it and from the scalars derived from it
/// here; copies that the arithmetic made on its way (temporaries of a multiplication by a fixed base,
/// powers inside a domain) are left to be overwritten. This process knew it in any case: a verifier
/// must trust that nobody looked. A deployment's keys come from a ceremony of many parties, of whom
/// one honest one suffices.
///
/// # Errors
///
/// [`SetupError::TooLarge`] if the system exceeds the field's largest domain.
pub fn setup<E: Engine>(
    r1cs: &R1cs<E::ScalarField>,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<ProvingKey<E>, SetupError> {
    setup_with_progress(r1cs, rng, &|_| {})
}

/// As [`setup`], telling `progress` what is about to be computed, six times.
///
/// # Errors
///
/// As for [`setup`].
pub fn setup_with_progress<E: Engine>(
    r1cs: &R1cs<E::ScalarField>,
    rng: &mut (impl RngCore + CryptoRng),
    progress: &dyn Fn(&str),
) -> Result<ProvingKey<E>, SetupError> {
    let domain = stages::domain(r1cs)?;
    let waste = ToxicWaste::sample(&domain, rng);
    let one = E::ScalarField::ONE;

    progress("evaluating the circuit's polynomials (1/6)");
    let [a, b, c] = evaluate_columns(r1cs, &domain, waste.tau);
    let inverse = |x: E::ScalarField| x.inverse().expect("sampled to be other than zero");
    let (gamma_inverse, delta_inverse) = (
        Zeroizing::new(inverse(waste.gamma)),
        Zeroizing::new(inverse(waste.delta)),
    );
    // The coset avoids the domain, so its vanishing value has an inverse.
    let ratio =
        Zeroizing::new(domain.vanishing_at(waste.tau) * inverse(domain.vanishing_on_coset()));
    let instance = r1cs.num_instance();
    let full = |j: usize| waste.beta * a[j] + waste.alpha * b[j];
    let instance_scalars: Zeroizing<Vec<_>> = Zeroizing::new(
        (0..instance)
            .map(|j| (full(j) + c[j]) * *gamma_inverse)
            .collect(),
    );
    let l_scalars: Zeroizing<Vec<_>> = Zeroizing::new(
        (0..r1cs.num_variables())
            .into_par_iter()
            .map(|j| {
                let folded = if j < instance {
                    -c[j] * *ratio
                } else {
                    full(j) + c[j] * (one - *ratio)
                };
                folded * *delta_inverse
            })
            .collect(),
    );
    let mut h_scalars = Zeroizing::new(domain.coset_lagrange_at(waste.tau));
    let scale = Zeroizing::new(*ratio * *delta_inverse);
    h_scalars
        .par_iter_mut()
        .for_each(|scalar| *scalar *= *scale);

    // Random generators: nobody knows their logarithms to other people's bases.
    let (g1, g2) = (E::G1::rand(rng), E::G2::rand(rng));
    let g1_of = |scalar: E::ScalarField| (g1 * scalar).into_affine();
    let g2_of = |scalar: E::ScalarField| (g2 * scalar).into_affine();

    progress("multiplying points for A (2/6)");
    let a = query(g1, &a);
    progress("multiplying points for B in the first group (3/6)");
    let b_g1 = query(g1, &b);
    progress("multiplying points for B in the second group (4/6)");
    let b_g2 = {
        let scalars = Zeroizing::new(b_g1.gather(&b));
        fixed_base(g2, &scalars)
    };
    progress("multiplying points for the witness (5/6)");
    let l = query(g1, &l_scalars);
    progress("multiplying points for the quotient (6/6)");
    let h = fixed_base(g1, &h_scalars);

    let vk = VerifyingKey {
        circuit: r1cs.digest(),
        alpha_g1: g1_of(waste.alpha),
        beta_g2: g2_of(waste.beta),
        gamma_g2: g2_of(waste.gamma),
        delta_g2: g2_of(waste.delta),
        instance: fixed_base(g1, &instance_scalars),
    };
    Ok(ProvingKey {
        vk,
        variables: r1cs.num_variables(),
        beta_g1: g1_of(waste.beta),
        delta_g1: g1_of(waste.delta),
        a,
        b_g1,
        b_g2,
        l,
        h,
    })
}

impl<F: ark_ff::PrimeField> ToxicWaste<F> {
    fn sample(domain: &Domain<F>, rng: &mut (impl RngCore + CryptoRng)) -> Self {
        let mut nonzero = || loop {
            let value = F::rand(rng);
            if !value.is_zero() {
                return value;
            }
        };
        let tau = loop {
            let tau = nonzero();
            // Where Z(τ) = 0 every proof of anything would verify; neither may τ be on the coset,
            // where the Lagrange polynomials degenerate.
            let vanishing = domain.vanishing_at(tau);
            if !vanishing.is_zero() && vanishing != domain.vanishing_on_coset() {
                break tau;
            }
        };
        Self {
            tau,
            alpha: nonzero(),
            beta: nonzero(),
            gamma: nonzero(),
            delta: nonzero(),
        }
    }
}

type Columns<F> = [Zeroizing<Vec<F>>; 3];

/// Aⱼ(τ), Bⱼ(τ) and Cⱼ(τ) for every variable j.
///
/// After the constraints, A has one more row for each instance variable, with that variable alone:
/// it makes the instance's polynomials linearly independent, without which a public input could be
/// traded for another.
fn evaluate_columns<F: ark_ff::PrimeField>(
    r1cs: &R1cs<F>,
    domain: &Domain<F>,
    tau: F,
) -> Columns<F> {
    let lagrange = Zeroizing::new(domain.lagrange_at(tau));
    let column_sums = |matrix: &&Matrix| {
        let mut sums = Zeroizing::new(vec![F::zero(); r1cs.num_variables()]);
        for (row, weight) in lagrange.iter().enumerate().take(matrix.rows()) {
            for (column, coefficient) in matrix.row(row) {
                sums[column] += *weight * r1cs.coefficients()[coefficient];
            }
        }
        sums
    };
    let sums: Vec<_> = r1cs.matrices().par_iter().map(column_sums).collect();
    let [mut a, b, c]: Columns<F> = sums
        .try_into()
        .unwrap_or_else(|_| unreachable!("one vector for each of three matrices"));
    for (sum, weight) in a
        .iter_mut()
        .zip(&lagrange[r1cs.num_constraints()..])
        .take(r1cs.num_instance())
    {
        *sum += weight;
    }
    [a, b, c]
}

/// The multiples of `base` by those scalars that are not zero.
fn query<G: proofmill_kernels::MsmGroup>(
    base: G,
    scalars: &[G::ScalarField],
) -> SparseQuery<G::Affine> {
    let indices: Vec<u32> = (0..scalars.len())
        .filter(|i| !scalars[*i].is_zero())
        .map(|i| i as u32)
        .collect();
    let dense: Zeroizing<Vec<_>> =
        Zeroizing::new(indices.iter().map(|i| scalars[*i as usize]).collect());
    let points = fixed_base(base, &dense);
    SparseQuery { indices, points }
}
