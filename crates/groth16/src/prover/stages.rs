//! The prover's steps, with the time and memory of each. [`Prover::prove`] runs them one after the other;
//! an engine may run one proof's transforms beside another's multiplications.
//!
//! A proof holds, beside the key and the assignment, vectors of 32 bytes for each scalar, with n the size of the
//! domain: 64·n bytes from [`evaluate`](Prover::evaluate) on (96·n during [`quotient`](Prover::quotient) with a
//! `.zkey`'s key), and 32·n bytes after that until [`multiply_h`](Prover::multiply_h) is done. A multiplication also
//! needs working memory. The peak is in the product over the B query of the second group. Working memory of a product
//! for each point of its query:
//!
//! | curve, points held | product in G1 | in G2 |
//! |---|---|---|
//! | BN254, plain | 160 bytes | 320 bytes |
//! | BN254, prepared | 32 bytes | 68 bytes |
//! | BLS12-381, plain | 320 bytes | 640 bytes |
//! | BLS12-381, prepared | 68 bytes | 136 bytes |
//!
//! Elements of BLS12-377 have the sizes of those of BLS12-381, which its numbers are taken from.
//!
//! A plain point itself takes 72 and 136 bytes over BN254, 104 and 200 over BLS12-381, and its index
//! 4. Measured with AVX-512 IFMA, 131,000 constraints and random values by
//! `cargo run -p proofmill-groth16 --example measure_zkey -- chain bn254 131000`, with
//! `RESIDENT_BYTES=217000000` before it for prepared points (330000000 with `bls12-381`).

use std::fmt;
use std::time::{Duration, Instant};

use ark_ec::CurveGroup;
use ark_ff::{PrimeField, UniformRand};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::{Domain, DomainTooLarge};
use proofmill_r1cs::{R1cs, R1csError, Unsatisfied};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::keys::bases::{Bases, Query};
use crate::prover::products::ProductMatrices;
use crate::{Proof, ProveError, ProvingKey, SnarkCurve, VerifyingKey};

/// A step of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProverStage {
    /// A·z and B·z, and checking them against C·z where C is known.
    Evaluate,
    /// The transforms.
    Quotient,
    /// The product over the A query.
    MsmA,
    /// The product over the B query in the first group.
    MsmBG1,
    /// The product over the B query in the second group.
    MsmBG2,
    /// The product over the L query.
    MsmL,
    /// The product over the H query, the one with full-size scalars.
    MsmH,
    /// Blinding and conversion.
    Assemble,
}

/// Memory and duration of one step of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageReport {
    /// The step.
    pub stage: ProverStage,
    /// The most bytes of vectors that this proof held while the step ran, without the key, the assignment
    /// and the working memory of a multiplication.
    pub bytes: usize,
    /// Wall-clock time of the step.
    pub duration: Duration,
}

/// A borrowed view of a key and its circuit, of any kind and storage, that makes proofs. Making the view
/// copies no points.
pub struct Prover<'k, E: SnarkCurve> {
    pub(crate) vk: &'k VerifyingKey<E>,
    pub(crate) beta_g1: E::G1Affine,
    pub(crate) delta_g1: E::G1Affine,
    pub(crate) variables: usize,
    pub(crate) a: Query<'k, E::G1>,
    pub(crate) b_g1: Query<'k, E::G1>,
    pub(crate) b_g2: Query<'k, E::G2>,
    pub(crate) l: Query<'k, E::G1>,
    pub(crate) h: Bases<'k, E::G1>,
    pub(crate) circuit: Circuit<'k, E::ScalarField>,
    pub(crate) domain: Domain<E::ScalarField>,
}

/// The matrices of the circuit that a prover knows, which depend on the kind of key.
#[derive(Clone, Copy)]
pub(crate) enum Circuit<'k, F: PrimeField> {
    /// All three matrices; the key is one of ours, with C folded into its L query.
    AllMatrices(&'k R1cs<F>),
    /// A and B, from a `.zkey`.
    AbMatrices(&'k ProductMatrices<F>),
}

/// A·z and B·z on the domain, padded with zeros; A·z is followed by the instance.
pub struct Evaluations<F: PrimeField> {
    a: Zeroizing<Vec<F>>,
    b: Zeroizing<Vec<F>>,
}

/// The scalars of the H query.
pub struct Quotient<F: PrimeField> {
    pub(crate) values: Zeroizing<Vec<F>>,
}

/// The multi-scalar products a proof is assembled from.
#[derive(Clone)]
pub struct Products<E: SnarkCurve> {
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

// === impl ProverStage ===

impl ProverStage {
    /// The stage's name in messages and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evaluate => "evaluate",
            Self::Quotient => "quotient",
            Self::MsmA => "msm A",
            Self::MsmBG1 => "msm B in G1",
            Self::MsmBG2 => "msm B in G2",
            Self::MsmL => "msm L",
            Self::MsmH => "msm H",
            Self::Assemble => "assemble",
        }
    }
}

impl fmt::Display for ProverStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Prover ===

impl<'k, E: SnarkCurve> Prover<'k, E> {
    /// A prover with a key in this crate's format whose points are unprepared. For many proofs, hold the key
    /// as a [`ResidentKey`](crate::ResidentKey).
    ///
    /// # Errors
    ///
    /// [`ProveError::WrongKey`], [`ProveError::TooLarge`].
    pub fn new(key: &'k ProvingKey<E>, r1cs: &'k R1cs<E::ScalarField>) -> Result<Self, ProveError> {
        let domain = key.domain_for(r1cs)?;
        let b = &key.b_g1.indices[..];
        Ok(Self {
            vk: &key.vk,
            beta_g1: key.beta_g1,
            delta_g1: key.delta_g1,
            variables: key.variables,
            a: Query::plain(&key.a.indices, &key.a.points),
            b_g1: Query::plain(b, &key.b_g1.points),
            b_g2: Query::plain(b, &key.b_g2),
            l: Query::plain(&key.l.indices, &key.l.points),
            h: Bases::Plain(&key.h),
            circuit: Circuit::AllMatrices(r1cs),
            domain,
        })
    }

    /// The verifying key.
    pub const fn vk(&self) -> &'k VerifyingKey<E> {
        self.vk
    }

    /// The number of variables an assignment has, the leading one included.
    pub const fn variables(&self) -> usize {
        self.variables
    }

    /// The size of the domain.
    pub fn domain_size(&self) -> usize {
        self.domain.size()
    }

    /// All steps, on all threads of the current rayon pool. The proof is blinded: it reveals the
    /// public inputs and nothing else.
    ///
    /// # Errors
    ///
    /// As for [`evaluate`](Self::evaluate).
    pub fn prove(
        &self,
        z: &[E::ScalarField],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<(Proof<E>, Vec<StageReport>), ProveError> {
        self.prove_observed(z, rng, |_| {})
    }

    /// Like [`prove`](Self::prove); `enter` is called at the beginning of each step.
    ///
    /// # Errors
    ///
    /// As for [`evaluate`](Self::evaluate).
    pub fn prove_observed(
        &self,
        z: &[E::ScalarField],
        rng: &mut (impl RngCore + CryptoRng),
        enter: impl FnMut(ProverStage),
    ) -> Result<(Proof<E>, Vec<StageReport>), ProveError> {
        let reports = Vec::with_capacity(8);
        let mut steps = Steps { enter, reports };
        let evaluations = steps.run(ProverStage::Evaluate, || self.evaluate(z))?;
        let quotient = steps.run(ProverStage::Quotient, || Ok(self.quotient(evaluations)))?;
        // The product that needs the quotient comes first, so that the quotient's memory is freed early.
        let h = steps.run(ProverStage::MsmH, || Ok(self.multiply_h(quotient)))?;
        let products = Products {
            a: steps.run(ProverStage::MsmA, || self.multiply_a(z))?,
            b_g1: steps.run(ProverStage::MsmBG1, || self.multiply_b_g1(z))?,
            b_g2: steps.run(ProverStage::MsmBG2, || self.multiply_b_g2(z))?,
            l: steps.run(ProverStage::MsmL, || self.multiply_l(z))?,
            h,
        };
        let proof = steps.run(ProverStage::Assemble, || Ok(self.assemble(&products, rng)))?;
        Ok((proof, steps.reports))
    }

    /// A·z and B·z. Where C is known too, an assignment that does not satisfy the constraints is
    /// refused here; with a `.zkey`'s key it yields a proof that does not verify.
    ///
    /// # Errors
    ///
    /// [`ProveError::Assignment`] if `z` is for another circuit, [`ProveError::Unsatisfied`].
    pub fn evaluate(
        &self,
        z: &[E::ScalarField],
    ) -> Result<(Evaluations<E::ScalarField>, StageReport), ProveError> {
        let start = Instant::now();
        self.check_length(z)?;
        if z.first()
            .is_none_or(|one| *one != E::ScalarField::from(1u64))
        {
            return Err(Unsatisfied { row: 0 }.into());
        }
        let zeros = || Zeroizing::new(vec![E::ScalarField::from(0u64); self.domain.size()]);
        let (mut a, mut b) = (zeros(), zeros());
        match self.circuit {
            Circuit::AllMatrices(r1cs) => {
                let [a_matrix, b_matrix, _] = r1cs.matrices();
                r1cs.multiply(a_matrix, z, &mut a)?;
                r1cs.multiply(b_matrix, z, &mut b)?;
                r1cs.is_satisfied_given(z, &a, &b)?;
                let (start, instance) = (r1cs.num_constraints(), r1cs.num_instance());
                a[start..start + instance].copy_from_slice(&z[..instance]);
            }
            Circuit::AbMatrices(matrices) => matrices.multiply(z, &mut a, &mut b),
        }
        let evaluations = Evaluations { a, b };
        Ok((evaluations, self.report(ProverStage::Evaluate, 2, start)))
    }

    /// The values of A·B on the coset, by two inverse and two forward transforms; with a `.zkey`'s
    /// key those of A·B − C, by three of each.
    ///
    /// # Panics
    ///
    /// If the evaluations are not this prover's.
    pub fn quotient(
        &self,
        evaluations: Evaluations<E::ScalarField>,
    ) -> (Quotient<E::ScalarField>, StageReport) {
        let start = Instant::now();
        let mut factors = self.factors(evaluations);
        for factor in factors.as_mut_slice() {
            self.domain.coset_extend(factor);
        }
        let held = factors.len();
        let quotient = self.combine(factors);
        (quotient, self.report(ProverStage::Quotient, held, start))
    }

    /// The vectors to be extended to the coset for the quotient: A·z and B·z, and with a `.zkey`'s key their
    /// product.
    pub(crate) fn factors(
        &self,
        evaluations: Evaluations<E::ScalarField>,
    ) -> Vec<Zeroizing<Vec<E::ScalarField>>> {
        let Evaluations { a, b } = evaluations;
        match self.circuit {
            Circuit::AllMatrices(_) => vec![a, b],
            Circuit::AbMatrices(_) => {
                let mut c = Zeroizing::new(Vec::new());
                a.par_iter()
                    .zip(&b[..])
                    .map(|(a, b)| *a * b)
                    .collect_into_vec(&mut c);
                vec![a, b, c]
            }
        }
    }

    /// The quotient, from the values of its factors on the coset.
    ///
    /// # Panics
    ///
    /// If there are fewer than two factors.
    pub(crate) fn combine(
        &self,
        factors: Vec<Zeroizing<Vec<E::ScalarField>>>,
    ) -> Quotient<E::ScalarField> {
        let mut factors = factors.into_iter();
        let (Some(mut a), Some(b)) = (factors.next(), factors.next()) else {
            panic!("a quotient has two factors at least");
        };
        match factors.next() {
            None => a.par_iter_mut().zip(&b[..]).for_each(|(a, b)| *a *= b),
            Some(c) => a
                .par_iter_mut()
                .zip(&b[..])
                .zip(&c[..])
                .for_each(|((a, b), c)| {
                    *a *= b;
                    *a -= c;
                }),
        }
        Quotient { values: a }
    }

    /// The product over the H query.
    ///
    /// # Panics
    ///
    /// If the quotient is not this prover's.
    pub fn multiply_h(&self, quotient: Quotient<E::ScalarField>) -> (E::G1, StageReport) {
        let start = Instant::now();
        let product = self.h.multiply(&quotient.values);
        (product, self.report(ProverStage::MsmH, 1, start))
    }

    /// The product over the A query.
    ///
    /// # Errors
    ///
    /// [`ProveError::Assignment`] if `z` is for another circuit, also of the following products.
    pub fn multiply_a(&self, z: &[E::ScalarField]) -> Result<(E::G1, StageReport), ProveError> {
        self.multiply(ProverStage::MsmA, &self.a, z)
    }

    /// The product over the B query in the first group.
    pub fn multiply_b_g1(&self, z: &[E::ScalarField]) -> Result<(E::G1, StageReport), ProveError> {
        self.multiply(ProverStage::MsmBG1, &self.b_g1, z)
    }

    /// The product over the B query in the second group.
    pub fn multiply_b_g2(&self, z: &[E::ScalarField]) -> Result<(E::G2, StageReport), ProveError> {
        self.multiply(ProverStage::MsmBG2, &self.b_g2, z)
    }

    /// The product over the L query.
    pub fn multiply_l(&self, z: &[E::ScalarField]) -> Result<(E::G1, StageReport), ProveError> {
        self.multiply(ProverStage::MsmL, &self.l, z)
    }

    /// The proof, blinded with fresh randomness.
    pub fn assemble(
        &self,
        products: &Products<E>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> (Proof<E>, StageReport) {
        let start = Instant::now();
        let (r, s) = (
            Zeroizing::new(E::ScalarField::rand(rng)),
            Zeroizing::new(E::ScalarField::rand(rng)),
        );
        let (r, s) = (*r, *s);
        let a = products.a + self.vk.alpha_g1 + self.delta_g1 * r;
        let b_g1 = products.b_g1 + self.beta_g1 + self.delta_g1 * s;
        let b = products.b_g2 + self.vk.beta_g2 + self.vk.delta_g2 * s;
        let c = products.l + products.h + a * s + b_g1 * r - self.delta_g1 * (r * s);
        let proof = Proof {
            a: a.into_affine(),
            b: b.into_affine(),
            c: c.into_affine(),
        };
        (proof, self.report(ProverStage::Assemble, 0, start))
    }

    fn multiply<G: proofmill_kernels::MsmGroup<ScalarField = E::ScalarField>>(
        &self,
        stage: ProverStage,
        query: &Query<'_, G>,
        z: &[E::ScalarField],
    ) -> Result<(G, StageReport), ProveError> {
        let start = Instant::now();
        self.check_length(z)?;
        let (product, bytes) = query.multiply(z);
        let duration = start.elapsed();
        Ok((
            product,
            StageReport {
                stage,
                bytes,
                duration,
            },
        ))
    }

    pub(crate) fn check_length(&self, z: &[E::ScalarField]) -> Result<(), R1csError> {
        if z.len() == self.variables {
            return Ok(());
        }
        Err(R1csError::Length {
            expected: self.variables,
            found: z.len(),
        })
    }

    /// A report of a stage that held `vectors` vectors of the domain's size.
    fn report(&self, stage: ProverStage, vectors: usize, start: Instant) -> StageReport {
        StageReport {
            stage,
            bytes: vectors * self.domain.size() * size_of::<E::ScalarField>(),
            duration: start.elapsed(),
        }
    }
}

/// The steps of a proof so far.
struct Steps<O> {
    enter: O,
    reports: Vec<StageReport>,
}

// === impl Steps ===

impl<O: FnMut(ProverStage)> Steps<O> {
    fn run<T>(
        &mut self,
        stage: ProverStage,
        step: impl FnOnce() -> Result<(T, StageReport), ProveError>,
    ) -> Result<T, ProveError> {
        (self.enter)(stage);
        let (value, report) = step()?;
        self.reports.push(report);
        Ok(value)
    }
}

impl<E: SnarkCurve> fmt::Debug for Prover<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prover")
            .field("curve", &E::CURVE)
            .field("variables", &self.variables)
            .field("domain", &self.domain.size())
            .finish_non_exhaustive()
    }
}

// The types below hold values of the witness, so that `Debug` shows sizes only.

impl<F: PrimeField> fmt::Debug for Evaluations<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Evaluations of {} points", self.a.len())
    }
}

impl<F: PrimeField> fmt::Debug for Quotient<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quotient of {} points", self.values.len())
    }
}

impl<E: SnarkCurve> fmt::Debug for Products<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Products").finish_non_exhaustive()
    }
}
