//! Key generation by one party.

use ark_ec::CurveGroup;
use ark_ff::{Field, PrimeField, UniformRand, Zero};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::{Domain, DomainTooLarge, fixed_base};
use proofmill_r1cs::{Matrix, R1cs};
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use crate::keys::key::{ProvingKey, SparseQuery, VerifyingKey};
use crate::{SnarkCurve, mirage, stages};

/// The reason why no key was made for a system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The system has more constraints than the field's largest domain has points.
    #[error(transparent)]
    TooLarge(#[from] DomainTooLarge),
}

/// The secrets that the keys of one setup share: α and β, and the generators that all points are multiples of, so
/// that the points of α and β are the same in every key.
pub(crate) struct SharedSecrets<E: SnarkCurve> {
    alpha: E::ScalarField,
    beta: E::ScalarField,
    g1: E::G1,
    g2: E::G2,
}

/// The secrets of one circuit's keys. With these, or with the [`SharedSecrets`], proofs can be forged.
struct CircuitSecrets<F: Field> {
    tau: F,
    gamma: F,
    delta: F,
    eta: F,
}

/// The scalars that a key's points are multiples of.
struct Scalars<F: Field> {
    a: Zeroizing<Vec<F>>,
    b: Zeroizing<Vec<F>>,
    instance: Zeroizing<Vec<F>>,
    committed: Zeroizing<Vec<F>>,
    l: Zeroizing<Vec<F>>,
    h: Zeroizing<Vec<F>>,
}

/// Makes keys for `r1cs` from fresh randomness. **For development only.**
///
/// The randomness is erased from the variables that held it and from the scalars derived from it here, but
/// not from temporary copies inside the arithmetic (of a multiplication by a fixed base, powers inside a
/// domain). This process knew it in any case, so a verifier must trust that it was not read. A
/// deployment's keys come from a ceremony of many parties, of which one honest party suffices.
///
/// # Errors
///
/// [`SetupError::TooLarge`] if the system exceeds the field's largest domain.
pub fn setup<E: SnarkCurve>(
    r1cs: &R1cs<E::ScalarField>,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<ProvingKey<E>, SetupError> {
    setup_with_progress(r1cs, rng, &|_| {})
}

/// Like [`setup`]; calls `progress` with a description before each of six steps.
///
/// # Errors
///
/// As for [`setup`].
pub fn setup_with_progress<E: SnarkCurve>(
    r1cs: &R1cs<E::ScalarField>,
    rng: &mut (impl RngCore + CryptoRng),
    progress: &dyn Fn(&str),
) -> Result<ProvingKey<E>, SetupError> {
    let shared = SharedSecrets::sample(rng);
    // A plain key is a Mirage key without committed variables and without η.
    Ok(make_keys(&shared, r1cs, 0, rng, progress)?.plain)
}

/// Makes keys for a system whose first `committed` witness variables are committed to. The caller must have
/// checked that the system has that many.
pub(crate) fn make_keys<E: SnarkCurve>(
    shared: &SharedSecrets<E>,
    r1cs: &R1cs<E::ScalarField>,
    committed: usize,
    rng: &mut (impl RngCore + CryptoRng),
    progress: &dyn Fn(&str),
) -> Result<mirage::ProvingKey<E>, SetupError> {
    let domain = stages::domain(r1cs)?;
    let secrets = CircuitSecrets::sample(&domain, rng);
    progress("evaluating the circuit's polynomials (1/6)");
    let scalars = Scalars::new(shared, &secrets, r1cs, committed, &domain);

    let (g1, g2) = (shared.g1, shared.g2);
    let g1_of = |scalar: E::ScalarField| (g1 * scalar).into_affine();
    let g2_of = |scalar: E::ScalarField| (g2 * scalar).into_affine();

    progress("multiplying points for A (2/6)");
    let a = sparse_query(g1, &scalars.a);
    progress("multiplying points for B in the first group (3/6)");
    let b_g1 = sparse_query(g1, &scalars.b);
    progress("multiplying points for B in the second group (4/6)");
    let b_g2 = {
        let scalars = Zeroizing::new(b_g1.gather(&scalars.b));
        fixed_base(g2, &scalars)
    };
    progress("multiplying points for the witness (5/6)");
    let l = sparse_query(g1, &scalars.l);
    let committed = fixed_base(g1, &scalars.committed);
    progress("multiplying points for the quotient (6/6)");
    let h = fixed_base(g1, &scalars.h);

    let vk = VerifyingKey {
        circuit: r1cs.digest(),
        alpha_g1: g1_of(shared.alpha),
        beta_g2: g2_of(shared.beta),
        gamma_g2: g2_of(secrets.gamma),
        delta_g2: g2_of(secrets.delta),
        instance: fixed_base(g1, &scalars.instance),
    };
    Ok(mirage::ProvingKey {
        plain: ProvingKey {
            vk,
            variables: r1cs.num_variables(),
            beta_g1: g1_of(shared.beta),
            delta_g1: g1_of(secrets.delta),
            a,
            b_g1,
            b_g2,
            l,
            h,
        },
        committed,
        eta_g1: g1_of(secrets.eta),
        eta_g2: g2_of(secrets.eta),
    })
}

fn random_nonzero<F: PrimeField>(rng: &mut (impl RngCore + CryptoRng)) -> F {
    loop {
        let value = F::rand(rng);
        if !value.is_zero() {
            return value;
        }
    }
}

// === impl SharedSecrets ===

impl<E: SnarkCurve> SharedSecrets<E> {
    pub(crate) fn sample(rng: &mut (impl RngCore + CryptoRng)) -> Self {
        Self {
            alpha: random_nonzero(rng),
            beta: random_nonzero(rng),
            // Random generators: their discrete logarithms to other bases are unknown.
            g1: E::G1::rand(rng),
            g2: E::G2::rand(rng),
        }
    }
}

impl<E: SnarkCurve> Drop for SharedSecrets<E> {
    fn drop(&mut self) {
        self.alpha.zeroize();
        self.beta.zeroize();
    }
}

// === impl CircuitSecrets ===

impl<F: PrimeField> CircuitSecrets<F> {
    fn sample(domain: &Domain<F>, rng: &mut (impl RngCore + CryptoRng)) -> Self {
        let tau = loop {
            let tau = random_nonzero(rng);
            // If Z(τ) = 0, proofs of any statement would verify. Nor may τ be on the coset, where the
            // Lagrange polynomials degenerate.
            let vanishing = domain.vanishing_at(tau);
            if !vanishing.is_zero() && vanishing != domain.vanishing_on_coset() {
                break tau;
            }
        };
        Self {
            tau,
            gamma: random_nonzero(rng),
            delta: random_nonzero(rng),
            eta: random_nonzero(rng),
        }
    }
}

impl<F: Field> Drop for CircuitSecrets<F> {
    fn drop(&mut self) {
        let Self {
            tau,
            gamma,
            delta,
            eta,
        } = self;
        for secret in [tau, gamma, delta, eta] {
            secret.zeroize();
        }
    }
}

// === impl Scalars ===

impl<F: PrimeField> Scalars<F> {
    fn new<E: SnarkCurve<ScalarField = F>>(
        shared: &SharedSecrets<E>,
        secrets: &CircuitSecrets<F>,
        r1cs: &R1cs<F>,
        committed: usize,
        domain: &Domain<F>,
    ) -> Self {
        let [a, b, c] = evaluate_columns(r1cs, domain, secrets.tau);
        let inverse = |x: F| Zeroizing::new(x.inverse().expect("sampled to be other than zero"));
        let [gamma_inverse, delta_inverse, eta_inverse] =
            [secrets.gamma, secrets.delta, secrets.eta].map(inverse);
        // The coset avoids the domain, so its vanishing value has an inverse.
        let ratio = Zeroizing::new(
            domain.vanishing_at(secrets.tau) * *inverse(domain.vanishing_on_coset()),
        );
        let (instance, variables) = (r1cs.num_instance(), r1cs.num_variables());
        let committed_end = instance + committed;
        let ab_term = |j: usize| shared.beta * a[j] + shared.alpha * b[j];
        let abc_terms = |range: std::ops::Range<usize>, scale: F| -> Zeroizing<Vec<F>> {
            Zeroizing::new(range.map(|j| (ab_term(j) + c[j]) * scale).collect())
        };
        let instance = abc_terms(0..instance, *gamma_inverse);
        let committed = abc_terms(instance.len()..committed_end, *eta_inverse);
        let l = (0..variables).into_par_iter().map(|j| {
            // Instance and committed variables have points of their own; L has only their part of C(τ).
            let folded = if j < committed_end {
                -c[j] * *ratio
            } else {
                ab_term(j) + c[j] * (F::ONE - *ratio)
            };
            folded * *delta_inverse
        });
        let l = Zeroizing::new(l.collect());
        let mut h = Zeroizing::new(domain.coset_lagrange_at(secrets.tau));
        let scale = Zeroizing::new(*ratio * *delta_inverse);
        h.par_iter_mut().for_each(|scalar| *scalar *= *scale);
        Self {
            a,
            b,
            instance,
            committed,
            l,
            h,
        }
    }
}

type Columns<F> = [Zeroizing<Vec<F>>; 3];

/// Aⱼ(τ), Bⱼ(τ) and Cⱼ(τ) for every variable j.
///
/// After the constraints, A has one more row for each instance variable, with that variable alone.
/// These rows make the instance's polynomials linearly independent: otherwise a proof for one public input could hold
/// for another.
fn evaluate_columns<F: PrimeField>(r1cs: &R1cs<F>, domain: &Domain<F>, tau: F) -> Columns<F> {
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
fn sparse_query<G: proofmill_kernels::MsmGroup>(
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
