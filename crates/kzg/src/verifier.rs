//! Reducing requests, and checking claims: one and many.

use std::fmt;

use ark_bls12_381::{Bls12_381, G1Projective, G2Affine};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{One, Zero};
use proofmill_kernels::pairing::{PreparedG2, Product};
use proofmill_kernels::{PreparedBases, msm};

use crate::blob::{Evaluator, challenge};
use crate::cell::Interpolator;
use crate::claim::Opened;
use crate::setup::Setup;
use crate::{
    BLOB_BYTES, CELL_BYTES, CELL_ELEMENTS, Claim, Field, Invalid, POINT_BYTES, Point, Request,
    Scalar, Value, element,
};

/// Memory limit in bytes for the 64 points of the setup, with their multiples.
const BASES_BYTES_MAX: usize = 1 << 20;

/// Checks blobs and cells against their commitments.
///
/// It holds the tables that all checks share: make one and reuse it.
pub struct Verifier {
    /// `τⁱ·G1`, i = 0..64.
    powers: PreparedBases<G1Projective>,
    generator: PreparedG2<Bls12_381>,
    tau: PreparedG2<Bls12_381>,
    tau_64: PreparedG2<Bls12_381>,
    evaluator: Evaluator,
    interpolator: Interpolator,
}

/// A sum of claims: the terms that are paired with each point of the setup.
struct Combination {
    /// Coefficients of `τⁱ·G1` in Σ ρ·[I(τ)].
    opened: Vec<Scalar>,
    /// C and W of each claim, and their weights in Σ ρ·(C + s·W).
    points: Vec<Point>,
    scalars: Vec<Scalar>,
    /// W of each blob, and its weight.
    blobs: (Vec<Point>, Vec<Scalar>),
    /// W of each cell, and its weight.
    cells: (Vec<Point>, Vec<Scalar>),
}

// === impl Verifier ===

impl Default for Verifier {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("powers", &self.powers)
            .finish_non_exhaustive()
    }
}

impl Verifier {
    /// A verifier with the trusted setup of Ethereum's main network.
    pub fn new() -> Self {
        let setup = Setup::load();
        Self {
            powers: PreparedBases::new(&setup.powers, BASES_BYTES_MAX),
            generator: PreparedG2::new(G2Affine::generator()),
            tau: PreparedG2::new(setup.tau),
            tau_64: PreparedG2::new(setup.tau_64),
            evaluator: Evaluator::new(),
            interpolator: Interpolator::new(),
        }
    }

    /// All the work that is a request's own, on this thread.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it cannot hold, whatever the commitment is to.
    pub fn reduce(&self, request: &Request<'_>) -> Result<Claim, Invalid> {
        match *request {
            Request::Blob {
                commitment,
                proof,
                blob,
            } => self.reduce_blob(blob, commitment, proof),
            Request::Cell {
                index,
                commitment,
                proof,
                cell,
            } => self.reduce_cell(index, cell, commitment, proof),
        }
    }

    /// Like [`reduce`](Self::reduce), for a blob: computes its challenge, and its value there.
    ///
    /// # Errors
    ///
    /// As for [`reduce`](Self::reduce).
    pub fn reduce_blob(
        &self,
        blob: &[u8; BLOB_BYTES],
        commitment: &[u8; POINT_BYTES],
        proof: &[u8; POINT_BYTES],
    ) -> Result<Claim, Invalid> {
        let values = element::scalars(blob)?;
        let (commitment_point, proof) = points(commitment, proof)?;
        let challenge = challenge(blob, commitment);
        Ok(Claim {
            commitment: commitment_point,
            proof,
            shift: challenge,
            opened: Opened::Blob(self.evaluator.evaluate(values, challenge)),
        })
    }

    /// Like [`reduce`](Self::reduce), for cell `index` of an extended blob: interpolates the polynomial with its
    /// values.
    ///
    /// # Errors
    ///
    /// As for [`reduce`](Self::reduce).
    pub fn reduce_cell(
        &self,
        index: u64,
        cell: &[u8; CELL_BYTES],
        commitment: &[u8; POINT_BYTES],
        proof: &[u8; POINT_BYTES],
    ) -> Result<Claim, Invalid> {
        let values = element::scalars(cell)?;
        let interpolated = self.interpolator.interpolate(index, &values);
        let (coefficients, shift) = interpolated.ok_or(Invalid::CellIndex(index))?;
        let (commitment, proof) = points(commitment, proof)?;
        Ok(Claim {
            commitment,
            proof,
            shift,
            opened: Opened::Cell(coefficients),
        })
    }

    /// Checks one claim, without any chance of error.
    ///
    /// # Errors
    ///
    /// [`Invalid::Proof`].
    pub fn check(&self, claim: &Claim) -> Result<(), Invalid> {
        match self.all_hold(&[(claim, Scalar::one())]) {
            true => Ok(()),
            false => Err(Invalid::Proof),
        }
    }

    /// Reduces a request and checks it.
    ///
    /// # Errors
    ///
    /// [`Invalid`], with the reason.
    pub fn verify(&self, request: &Request<'_>) -> Result<(), Invalid> {
        self.check(&self.reduce(request)?)
    }

    /// Whether claims under their weights add up to zero: whether all hold, if the weights were
    /// [drawn](crate::draw_weights) after the claims were fixed.
    pub fn all_hold(&self, claims: &[(&Claim, Scalar)]) -> bool {
        self.value(claims).is_zero()
    }

    /// The sum of claims under weights, any elements of the field: zero if all hold. On all threads of
    /// the current rayon pool.
    ///
    /// It is additive: the value of some claims is that of all less that of the others, under the
    /// same weights.
    pub fn value(&self, claims: &[(&Claim, Scalar)]) -> Value {
        if claims.is_empty() {
            return Value::zero();
        }
        let sum = Combination::of(claims);
        let weighted =
            |(points, weights): &(Vec<Point>, Vec<Scalar>)| msm::<G1Projective>(points, weights);
        let left = msm::<G1Projective>(&sum.points, &sum.scalars) - self.powers.msm(&sum.opened);
        let sums = [left, -weighted(&sum.blobs), -weighted(&sum.cells)];
        let mut product = Product::new();
        for (point, fixed) in G1Projective::normalize_batch(&sums).into_iter().zip([
            &self.generator,
            &self.tau,
            &self.tau_64,
        ]) {
            product.multiply_prepared(point, fixed);
        }
        product.value()
    }
}

/// A request's two points.
fn points(
    commitment: &[u8; POINT_BYTES],
    proof: &[u8; POINT_BYTES],
) -> Result<(Point, Point), Invalid> {
    Ok((
        element::point(commitment, Field::Commitment)?,
        element::point(proof, Field::Proof)?,
    ))
}

// === impl Combination ===

impl Combination {
    fn of(claims: &[(&Claim, Scalar)]) -> Self {
        let mut sum = Self {
            opened: vec![Scalar::zero(); CELL_ELEMENTS],
            points: Vec::with_capacity(2 * claims.len()),
            scalars: Vec::with_capacity(2 * claims.len()),
            blobs: (Vec::new(), Vec::new()),
            cells: (Vec::new(), Vec::new()),
        };
        for (claim, weight) in claims {
            sum.points.extend([claim.commitment, claim.proof]);
            sum.scalars.extend([*weight, *weight * claim.shift]);
            let (proofs, weights) = match &claim.opened {
                Opened::Blob(value) => {
                    sum.opened[0] += *weight * value;
                    &mut sum.blobs
                }
                Opened::Cell(coefficients) => {
                    for (sum, coefficient) in sum.opened.iter_mut().zip(coefficients) {
                        *sum += *weight * coefficient;
                    }
                    &mut sum.cells
                }
            };
            proofs.push(claim.proof);
            weights.push(*weight);
        }
        sum
    }
}
