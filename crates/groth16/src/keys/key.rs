//! Proving and verifying keys.

use std::fmt;

use ark_ec::AffineRepr;
use ark_ff::PrimeField;
use proofmill_kernels::Domain;
use proofmill_r1cs::R1cs;
use serde::{Deserialize, Serialize};

use crate::{ProveError, SnarkCurve, stages};

/// A verifying key: the generators times α, β, γ and δ, and one point for each instance variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey<E: SnarkCurve> {
    /// SHA-256 of the circuit, [`R1cs::digest`](proofmill_r1cs::R1cs::digest); all zeros if it is
    /// not known, as for keys from snarkjs's files.
    pub circuit: [u8; 32],
    /// α in the first group.
    pub alpha_g1: E::G1Affine,
    /// β in the second group.
    pub beta_g2: E::G2Affine,
    /// γ in the second group.
    pub gamma_g2: E::G2Affine,
    /// δ in the second group.
    pub delta_g2: E::G2Affine,
    /// (β·Aⱼ(τ) + α·Bⱼ(τ) + Cⱼ(τ)) / γ for each instance variable j, the leading one first.
    pub instance: Vec<E::G1Affine>,
}

/// The points of a query that are not at infinity, with their variables.
#[derive(Clone, PartialEq, Eq)]
pub struct SparseQuery<A: AffineRepr> {
    /// The variables, ascending.
    pub indices: Vec<u32>,
    /// A point for each of these variables.
    pub points: Vec<A>,
}

/// The number of points in each query of a proving key, without those at infinity. They determine the
/// memory of a resident key and of the products over it. The H query has one point for each of the domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPoints {
    /// Points of the A query.
    pub a: u64,
    /// Points of the B query in the first group.
    pub b_g1: u64,
    /// Points of the B query in the second group.
    pub b_g2: u64,
    /// Points of the L query, which is named C in a `.zkey`.
    pub l: u64,
}

/// A proving key.
///
/// It departs from the paper to save a prover three of seven transforms and the product C·z. With
/// n the domain's size, Z its vanishing polynomial, g·H the coset, Z(g) the constant that Z takes
/// there and L'ᵢ the coset's Lagrange polynomials, the term h(τ)·Z(τ) of a proof's third element can be interpolated
/// on the coset, where A·B − C = h·Z:
///
/// ```text
/// h(τ)·Z(τ) = Z(τ)/Z(g) · ( Σᵢ A(gωⁱ)·B(gωⁱ)·L'ᵢ(τ) − C(τ) )
/// ```
///
/// [`h`](Self::h) holds the L'ᵢ(τ)·Z(τ)/Z(g)/δ, and C(τ), linear in z, is folded into
/// [`l`](Self::l). Every element is a known linear combination of the paper's (with powers of τ up
/// to n − 1 in h, as usual), so soundness is unchanged, and the proofs are the same.
#[derive(Clone, PartialEq, Eq)]
pub struct ProvingKey<E: SnarkCurve> {
    /// The verifying key of this proving key.
    pub vk: VerifyingKey<E>,
    /// The number of variables of the system, instance and witness.
    pub variables: usize,
    /// β in the first group.
    pub beta_g1: E::G1Affine,
    /// δ in the first group.
    pub delta_g1: E::G1Affine,
    /// Aⱼ(τ) for each variable j.
    pub a: SparseQuery<E::G1Affine>,
    /// Bⱼ(τ) for each variable j, in the first group.
    pub b_g1: SparseQuery<E::G1Affine>,
    /// Bⱼ(τ) in the second group, for the same variables.
    pub b_g2: Vec<E::G2Affine>,
    /// (β·Aⱼ(τ) + α·Bⱼ(τ) + Cⱼ(τ)·(1 − Z(τ)/Z(g))) / δ for witness variables; −Cⱼ(τ)·Z(τ)/Z(g)/δ for instance
    /// variables, and for committed variables of [`mirage`](crate::mirage).
    pub l: SparseQuery<E::G1Affine>,
    /// L'ᵢ(τ)·Z(τ)/Z(g)/δ for each point of the coset.
    pub h: Vec<E::G1Affine>,
}

// === impl QueryPoints ===

impl QueryPoints {
    /// The most points possible with `variables` variables, `instance` of them in the instance.
    pub const fn at_most(variables: u64, instance: u64) -> Self {
        Self {
            a: variables,
            b_g1: variables,
            b_g2: variables,
            l: variables.saturating_sub(instance),
        }
    }

    /// Memory in bytes of the unprepared points and of the indices of their variables, with `domain` points in the
    /// domain and `instance` instance variables.
    pub fn plain_bytes<E: SnarkCurve>(&self, domain: u64, instance: u64) -> u64 {
        let g1 = self.a + self.b_g1 + self.l + domain + instance;
        // If the queries of B have different variables, each has its own indices.
        let b_g2_indices = if self.b_g1 == self.b_g2 { 0 } else { self.b_g2 };
        let indices = self.a + self.b_g1 + b_g2_indices + self.l;
        g1 * size_of::<E::G1Affine>() as u64
            + self.b_g2 * size_of::<E::G2Affine>() as u64
            + indices * size_of::<u32>() as u64
    }
}

// === impl SparseQuery ===

impl<A: AffineRepr> SparseQuery<A> {
    /// The values of this query's variables.
    pub(crate) fn gather(&self, z: &[A::ScalarField]) -> Vec<A::ScalarField> {
        self.indices
            .iter()
            .map(|index| z[*index as usize])
            .collect()
    }
}

// === impl ProvingKey ===

impl<E: SnarkCurve> ProvingKey<E> {
    /// The domain for proofs of `r1cs`; an error if the sizes of this key are not those of `r1cs`.
    pub(crate) fn domain_for(
        &self,
        r1cs: &R1cs<E::ScalarField>,
    ) -> Result<Domain<E::ScalarField>, ProveError> {
        domain_for(r1cs, self.variables, self.vk.instance.len(), self.h.len())
    }

    /// Approximate size of the key in memory, in bytes.
    pub fn size_in_bytes(&self) -> usize {
        let g1 = size_of::<E::G1Affine>();
        let g1_points = self.a.points.len()
            + self.b_g1.points.len()
            + self.l.points.len()
            + self.h.len()
            + self.vk.instance.len();
        let indices = self.a.indices.len() + self.b_g1.indices.len() + self.l.indices.len();
        g1_points * g1 + self.b_g2.len() * size_of::<E::G2Affine>() + indices * size_of::<u32>()
    }
}

/// The domain for proofs of `r1cs`; an error if a key of these sizes is for another system. `points` is the size of
/// the H query.
pub(crate) fn domain_for<F: PrimeField>(
    r1cs: &R1cs<F>,
    variables: usize,
    instance: usize,
    points: usize,
) -> Result<Domain<F>, ProveError> {
    let domain = stages::domain(r1cs)?;
    let fits = variables == r1cs.num_variables()
        && instance == r1cs.num_instance()
        && points == domain.size();
    if fits {
        Ok(domain)
    } else {
        Err(ProveError::WrongKey)
    }
}

impl<E: SnarkCurve> fmt::Debug for ProvingKey<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvingKey")
            .field("variables", &self.variables)
            .field("a", &self.a)
            .field("b", &self.b_g1)
            .field("l", &self.l)
            .field("h", &self.h.len())
            .finish_non_exhaustive()
    }
}

impl<A: AffineRepr> fmt::Debug for SparseQuery<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} points", self.points.len())
    }
}
