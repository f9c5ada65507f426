//! Keys that stay in memory for many proofs.

use std::fmt;
use std::sync::Arc;

use ark_ec::AffineRepr;
use ark_ff::PrimeField;
use proofmill_kernels::Domain;
use proofmill_r1cs::R1cs;

use crate::keys::bases::{HeldBases, share};
use crate::keys::file::MappedKey;
use crate::keys::key::domain_for;
use crate::prover::products::ProductMatrices;
use crate::prover::stages::{Circuit, Prover};
use crate::snarkjs::Zkey;
use crate::{ProveError, ProvingKey, QueryPoints, SnarkCurve, SparseQuery, VerifyingKey};

/// A key with its circuit, held for many proofs, whether it is one of ours or from a `.zkey`.
///
/// Its points may be prepared once: kept in the kernels' layout, and with as many of their multiples
/// as a limit allows, which makes every product cheaper. Prepared points replace the plain ones, so that a key is
/// never held twice.
pub struct ResidentKey<E: SnarkCurve> {
    vk: VerifyingKey<E>,
    beta_g1: E::G1Affine,
    delta_g1: E::G1Affine,
    variables: usize,
    a_indices: Vec<u32>,
    pub(crate) a: HeldBases<E::G1>,
    b_indices: Vec<u32>,
    pub(crate) b_g1: HeldBases<E::G1>,
    b_g2_indices: Option<Vec<u32>>,
    pub(crate) b_g2: HeldBases<E::G2>,
    l_indices: Vec<u32>,
    pub(crate) l: HeldBases<E::G1>,
    pub(crate) h: HeldBases<E::G1>,
    circuit: HeldCircuit<E::ScalarField>,
    domain: Domain<E::ScalarField>,
}

enum HeldCircuit<F: PrimeField> {
    AllMatrices(Arc<R1cs<F>>),
    AbMatrices(Box<ProductMatrices<F>>),
}

/// The form in which a key's points are held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidentForm {
    /// One copy of the points: for one proof, or a few.
    Plain,
    /// The points with precomputed multiples, for many proofs. One copy is kept whatever the limit.
    Prepared {
        /// Approximate limit in bytes for all points of the key together.
        memory_limit: usize,
    },
}

// === impl ResidentForm ===

impl ResidentForm {
    /// The limit for points that take `bytes` of `total`.
    pub(crate) fn limit(self, bytes: usize, total: usize) -> Option<usize> {
        match self {
            Self::Plain => None,
            Self::Prepared { memory_limit } => Some(share(memory_limit, bytes, total)),
        }
    }
}

// === impl ResidentKey ===

impl<E: SnarkCurve> ResidentKey<E> {
    /// Holds a key in this crate's format and its circuit.
    ///
    /// # Errors
    ///
    /// [`ProveError::WrongKey`] if the key is for another circuit, [`ProveError::TooLarge`].
    pub fn new(
        key: ProvingKey<E>,
        r1cs: Arc<R1cs<E::ScalarField>>,
        residency: ResidentForm,
    ) -> Result<Self, ProveError> {
        let domain = key.domain_for(&r1cs)?;
        let total = key.size_in_bytes();
        let g1 = |points: Vec<E::G1Affine>| {
            let limit = residency.limit(size_of_val(&points[..]), total);
            HeldBases::<E::G1>::new(points, limit)
        };
        Ok(Self {
            beta_g1: key.beta_g1,
            delta_g1: key.delta_g1,
            variables: key.variables,
            a_indices: key.a.indices,
            a: g1(key.a.points),
            b_indices: key.b_g1.indices,
            b_g1: g1(key.b_g1.points),
            b_g2_indices: None,
            b_g2: {
                let limit = residency.limit(size_of_val(&key.b_g2[..]), total);
                HeldBases::new(key.b_g2, limit)
            },
            l_indices: key.l.indices,
            l: g1(key.l.points),
            h: g1(key.h),
            vk: key.vk,
            circuit: HeldCircuit::AllMatrices(r1cs),
            domain,
        })
    }

    /// A key in this crate's format whose points stay in its file, with its circuit.
    ///
    /// # Errors
    ///
    /// [`ProveError::WrongKey`] if the key is for another circuit, [`ProveError::TooLarge`].
    pub(crate) fn mapped(
        key: MappedKey<E>,
        r1cs: Arc<R1cs<E::ScalarField>>,
    ) -> Result<Self, ProveError> {
        let instance = key.vk.instance.len();
        let domain = domain_for(&r1cs, key.variables, instance, key.h.len())?;
        Ok(Self {
            vk: key.vk,
            beta_g1: key.beta_g1,
            delta_g1: key.delta_g1,
            variables: key.variables,
            a_indices: key.a_indices,
            a: HeldBases::Mapped(key.a),
            b_indices: key.b_indices,
            b_g1: HeldBases::Mapped(key.b_g1),
            b_g2_indices: None,
            b_g2: HeldBases::Mapped(key.b_g2),
            l_indices: key.l_indices,
            l: HeldBases::Mapped(key.l),
            h: HeldBases::Mapped(key.h),
            circuit: HeldCircuit::AllMatrices(r1cs),
            domain,
        })
    }

    /// Holds the key of a `.zkey`, without the points at infinity that stand in it for variables
    /// that do not occur.
    ///
    /// # Errors
    ///
    /// [`ProveError::InvalidKey`] if the parts contradict each other, which does not happen for a key that was read
    /// from a file; [`ProveError::TooLarge`].
    pub fn from_zkey(zkey: Zkey<E>, residency: ResidentForm) -> Result<Self, ProveError> {
        zkey.check().map_err(ProveError::InvalidKey)?;
        let domain = Domain::snarkjs(zkey.h.len())?;
        let (variables, instance) = (zkey.variables(), zkey.instance());
        let vk = zkey.verifying_key();
        let matrices = ProductMatrices::new(&zkey.coefficients, domain.size(), variables)?;
        drop(zkey.coefficients);

        let a = without_infinity(zkey.a, 0);
        let b_g1 = without_infinity(zkey.b_g1, 0);
        let b_g2 = without_infinity(zkey.b_g2, 0);
        let l = without_infinity(zkey.c, instance);
        let g1_bytes = |points: &[E::G1Affine]| size_of_val(points);
        let total = g1_bytes(&a.points)
            + g1_bytes(&b_g1.points)
            + size_of_val(&b_g2.points[..])
            + g1_bytes(&l.points)
            + g1_bytes(&zkey.h);
        let g1 = |points: Vec<E::G1Affine>| {
            let limit = residency.limit(g1_bytes(&points), total);
            HeldBases::<E::G1>::new(points, limit)
        };
        Ok(Self {
            vk,
            beta_g1: zkey.beta_g1,
            delta_g1: zkey.delta_g1,
            variables,
            a_indices: a.indices,
            a: g1(a.points),
            // In a sound key both groups' queries have the same variables.
            b_g2_indices: (b_g1.indices != b_g2.indices).then_some(b_g2.indices),
            b_indices: b_g1.indices,
            b_g1: g1(b_g1.points),
            b_g2: {
                let limit = residency.limit(size_of_val(&b_g2.points[..]), total);
                HeldBases::new(b_g2.points, limit)
            },
            l_indices: l.indices,
            l: g1(l.points),
            h: g1(zkey.h),
            circuit: HeldCircuit::AbMatrices(Box::new(matrices)),
            domain,
        })
    }

    /// A prover that borrows this key.
    pub fn prover(&self) -> Prover<'_, E> {
        let b_g2 = self.b_g2_indices.as_ref().unwrap_or(&self.b_indices);
        Prover {
            vk: &self.vk,
            beta_g1: self.beta_g1,
            delta_g1: self.delta_g1,
            variables: self.variables,
            a: self.a.query(&self.a_indices),
            b_g1: self.b_g1.query(&self.b_indices),
            b_g2: self.b_g2.query(b_g2),
            l: self.l.query(&self.l_indices),
            h: self.h.as_bases(),
            circuit: match &self.circuit {
                HeldCircuit::AllMatrices(r1cs) => Circuit::AllMatrices(r1cs),
                HeldCircuit::AbMatrices(matrices) => Circuit::AbMatrices(matrices),
            },
            domain: self.domain.clone(),
        }
    }

    /// Whether B's queries in both groups have the same variables.
    pub(crate) const fn shares_b_indices(&self) -> bool {
        self.b_g2_indices.is_none()
    }

    /// The verifying key.
    pub const fn vk(&self) -> &VerifyingKey<E> {
        &self.vk
    }

    /// The number of points in each query.
    pub fn points(&self) -> QueryPoints {
        QueryPoints {
            a: self.a.len() as u64,
            b_g1: self.b_g1.len() as u64,
            b_g2: self.b_g2.len() as u64,
            l: self.l.len() as u64,
        }
    }

    /// Size of the key in memory, in bytes: points, indices and matrices.
    pub fn bytes(&self) -> usize {
        let g1 = [&self.a, &self.b_g1, &self.l, &self.h].map(HeldBases::bytes);
        let indices = self.a_indices.len()
            + self.b_indices.len()
            + self.b_g2_indices.as_ref().map_or(0, Vec::len)
            + self.l_indices.len();
        let circuit = match &self.circuit {
            HeldCircuit::AllMatrices(r1cs) => r1cs.memory(),
            HeldCircuit::AbMatrices(matrices) => matrices.bytes(),
        };
        g1.iter().sum::<usize>()
            + self.b_g2.bytes()
            + size_of::<u32>() * indices
            + circuit
            + size_of_val(&self.vk.instance[..])
    }
}

/// The points that are not at infinity; `first` is the variable of the first point.
fn without_infinity<A: AffineRepr>(mut points: Vec<A>, first: usize) -> SparseQuery<A> {
    let indices = (first..)
        .zip(&points)
        .filter(|(_, point)| !point.is_zero())
        .map(|(variable, _)| variable as u32)
        .collect();
    points.retain(|point| !point.is_zero());
    points.shrink_to_fit();
    SparseQuery { indices, points }
}

impl<E: SnarkCurve> fmt::Debug for ResidentKey<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResidentKey")
            .field("curve", &E::CURVE)
            .field("variables", &self.variables)
            .field("a", &self.a)
            .field("b_g1", &self.b_g1)
            .field("b_g2", &self.b_g2)
            .field("l", &self.l)
            .field("h", &self.h)
            .finish_non_exhaustive()
    }
}
