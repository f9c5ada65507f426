//! Checking openings, one and many.

use ark_ec::AffineRepr;
use ark_ff::{One, Zero};
use proofmill_kernels::{InstructionSet, NoRandomness, PreparedBases, msm};

use crate::combination::{Combination, Weights, weighted_products};
use crate::reduce::{DeferredClaim, Invalid, reduce_all};
use crate::{Opening, Point, Scalar, Srs, Sum};

/// Checks openings under one SRS, which stays in memory prepared for multiplication.
///
/// [`verify`](Self::verify) and [`verify_batch`](Self::verify_batch) are all that most callers need.
/// A caller that searches many openings for false ones uses the steps: [`reduce`](Self::reduce) each once,
/// draw [`Weights`], and compare [`value`](Self::value)s of subsets with zero.
#[derive(Debug)]
pub struct Verifier {
    /// The SRS, and G at the end.
    bases: PreparedBases<Sum>,
    log_size: u32,
}

/// The reason why a batch was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// One opening is invalid by itself, before any points are multiplied.
    #[error("opening {index}: {reason}")]
    Opening {
        /// Index of the opening, from 0.
        index: usize,
        /// The reason why the opening is not valid.
        reason: Invalid,
    },
    /// At least one opening is not valid.
    #[error("at least one of {0} openings is not valid")]
    Invalid(usize),
    /// The openings were not checked, as no weights could be drawn.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

// === impl Verifier ===

impl Verifier {
    /// Prepares an SRS in at most `memory_limit` bytes, or in one copy. A copy of 2¹⁵ points takes
    /// 2 MiB; no more than two are kept, the points and their images by the endomorphism. (Multiples
    /// besides would save a twentieth of a single check, and cost batches more: proofs' own points
    /// could not share the buckets.)
    pub fn new(srs: &Srs, memory_limit: usize) -> Self {
        let mut points = srs.points().to_vec();
        points.push(Point::generator());
        let set = InstructionSet::current();
        let two_copies = PreparedBases::<Sum>::bytes_for(set, points.len(), 2);
        Self {
            bases: PreparedBases::new(&points, memory_limit.min(two_copies)),
            log_size: srs.log_size(),
        }
    }

    /// Binary logarithm of the SRS's size.
    pub fn log_size(&self) -> u32 {
        self.log_size
    }

    /// Bytes that the prepared SRS takes.
    pub fn bytes(&self) -> usize {
        self.bases.bytes()
    }

    /// Computes an opening's challenges, all the work that openings cannot share.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the opening is invalid by itself, before any points are multiplied.
    pub fn reduce(&self, opening: &Opening) -> Result<DeferredClaim, Invalid> {
        self.reduce_all(&[opening]).remove(0)
    }

    /// Like [`reduce`](Self::reduce), on all threads of the current rayon pool: several openings are
    /// hashed side by side, and all challenges are inverted together.
    pub fn reduce_all(&self, openings: &[&Opening]) -> Vec<Result<DeferredClaim, Invalid>> {
        let mut reduced = reduce_all(openings);
        for (result, opening) in reduced.iter_mut().zip(openings) {
            if opening.log_size() != self.log_size {
                *result = Err(Invalid::Rounds {
                    expected: self.log_size,
                    found: opening.log_size(),
                });
            }
        }
        reduced
    }

    /// Checks one opening, without any chance of error but that of the argument itself.
    ///
    /// # Errors
    ///
    /// [`Invalid`], with the reason.
    pub fn verify(&self, opening: &Opening) -> Result<(), Invalid> {
        self.check(&self.reduce(opening)?)
    }

    /// Checks one reduced opening.
    ///
    /// # Errors
    ///
    /// [`Invalid`], with the reason.
    ///
    /// # Panics
    ///
    /// If it was reduced for an SRS of another size.
    pub fn check(&self, claim: &DeferredClaim) -> Result<(), Invalid> {
        // The short check first: its error is more specific, and garbage then costs less time.
        self.check_argument(claim)?;
        let mut scalars = weighted_products(&[(&claim.inverses, Scalar::one())], self.log_size);
        scalars.push(Scalar::zero());
        match self.bases.msm(&scalars) == claim.folded_base {
            true => Ok(()),
            false => Err(Invalid::FoldedBase),
        }
    }

    /// Checks the part of a reduced opening that needs only its own points, trusting the prover's G₀. It is a
    /// hundredth of the work and refuses most false openings, but a success does not show that an opening is
    /// valid.
    ///
    /// # Errors
    ///
    /// [`Invalid::Argument`].
    pub fn check_argument(&self, claim: &DeferredClaim) -> Result<(), Invalid> {
        let argument = Combination::of_argument(claim, Point::generator());
        match msm::<Sum>(&argument.points, &argument.scalars).is_zero() {
            true => Ok(()),
            false => Err(Invalid::Argument),
        }
    }

    /// Checks openings together: one product over the SRS for all of them.
    ///
    /// # Errors
    ///
    /// [`BatchError`] if at least one is not valid; by a chance of 2⁻¹²⁸, a batch with one that is not
    /// passes.
    pub fn verify_batch(&self, openings: &[Opening]) -> Result<(), BatchError> {
        let references: Vec<_> = openings.iter().collect();
        let mut claims = Vec::with_capacity(openings.len());
        for (index, reduced) in self.reduce_all(&references).into_iter().enumerate() {
            claims.push(reduced.map_err(|reason| BatchError::Opening { index, reason })?);
        }
        let weights = Weights::draw(claims.len())?;
        let weighted: Vec<_> = claims.iter().zip(weights).collect();
        match self.value(&weighted).is_zero() {
            true => Ok(()),
            false => Err(BatchError::Invalid(openings.len())),
        }
    }

    /// The sum of claims under their weights: zero if all hold. On all threads of the current rayon
    /// pool.
    ///
    /// It is additive: the value of some claims is that of all less that of the others, under the
    /// same weights.
    ///
    /// # Panics
    ///
    /// If a claim was reduced for an SRS of another size.
    pub fn value(&self, claims: &[(&DeferredClaim, Weights)]) -> Sum {
        if claims.is_empty() {
            return Sum::zero();
        }
        let mut combination = Combination::of(claims, self.log_size);
        combination.srs.push(combination.generator);
        self.bases
            .msm_with(&combination.srs, &combination.points, &combination.scalars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::CurveGroup;
    use ark_ff::Field;

    fn opening(srs: &Srs, first: u64) -> Opening {
        let coefficients: Vec<_> = (first..)
            .take(srs.points().len())
            .map(Scalar::from)
            .collect();
        Opening::prove(srs, &coefficients, Scalar::from(first + 1)).unwrap()
    }

    /// A prover who may choose G₀ can open any commitment to any value: the argument's combination can be
    /// solved for G₀, since no challenge depends on it. Aztec's batch check once accepted such openings.
    #[test]
    fn a_free_folded_base_is_refused() {
        let srs = Srs::derive(5);
        let verifier = Verifier::new(&srs, 1 << 20);
        let mut forged = opening(&srs, 3);
        forged.claim.value += Scalar::one();
        forged.folded_base = Point::zero();
        let claim = verifier.reduce(&forged).unwrap();
        let argument = Combination::of_argument(&claim, Point::generator());
        let rest = msm::<Sum>(&argument.points, &argument.scalars);
        let inverse = forged.folded_coefficient.inverse().unwrap();
        forged.folded_base = (rest * inverse).into_affine();

        assert_eq!(verifier.verify(&forged), Err(Invalid::FoldedBase));
        let good = opening(&srs, 4);
        for batch in [vec![forged.clone()], vec![good.clone(), forged, good]] {
            let result = verifier.verify_batch(&batch);
            assert!(matches!(result, Err(BatchError::Invalid(_))), "{result:?}");
        }
    }
}
