//! The transcript of a proof: everything read is hashed, and each challenge is a hash of all that precedes it.

use ark_ec::AffineRepr;

use crate::field::{BYTES, bytes, element, point, wide};
use crate::{Invalid, Point, Scalar};

/// Prefix bytes hashed before a challenge, a point and a scalar (`transcript.rs` of halo2_proofs).
const CHALLENGE: u8 = 0;
const POINT: u8 = 1;
const SCALAR: u8 = 2;

/// Reads a proof.
pub(crate) struct Transcript<'a> {
    state: blake2b_simd::State,
    proof: &'a [u8],
    at: usize,
}

// === impl Transcript ===

impl<'a> Transcript<'a> {
    pub(crate) fn new(proof: &'a [u8]) -> Self {
        let state = blake2b_simd::Params::new()
            .hash_length(64)
            .personal(b"Halo2-Transcript")
            .to_state();
        Self {
            state,
            proof,
            at: 0,
        }
    }

    /// Hashes a point that both sides know; infinity has no coordinates to hash.
    pub(crate) fn add_point(&mut self, point: &Point) -> Result<(), Invalid> {
        let (x, y) = point.xy().ok_or(Invalid::InfiniteInstance)?;
        self.state.update(&[POINT]);
        self.state.update(&bytes(&x));
        self.state.update(&bytes(&y));
        Ok(())
    }

    /// Hashes a scalar that both sides know.
    pub(crate) fn add_scalar(&mut self, scalar: &Scalar) {
        self.state.update(&[SCALAR]);
        self.state.update(&bytes(scalar));
    }

    /// The next challenge.
    pub(crate) fn challenge(&mut self) -> Scalar {
        self.state.update(&[CHALLENGE]);
        wide(self.state.finalize().as_array())
    }

    /// The next 32 bytes, and where they are.
    fn next(&mut self) -> Result<(&'a [u8; BYTES], usize), Invalid> {
        let at = self.at;
        let next = self.proof.get(at..).and_then(<[u8]>::first_chunk);
        self.at += BYTES;
        next.map(|bytes| (bytes, at)).ok_or(Invalid::Short(at))
    }

    /// The next point, which is not infinite.
    pub(crate) fn point(&mut self) -> Result<Point, Invalid> {
        let (bytes, at) = self.next()?;
        let point = point(bytes).ok_or(Invalid::NotAPoint(at))?;
        self.add_point(&point)?;
        Ok(point)
    }

    /// The next scalar, which is below the modulus.
    pub(crate) fn scalar(&mut self) -> Result<Scalar, Invalid> {
        let (bytes, at) = self.next()?;
        let scalar = element(bytes).ok_or(Invalid::NotCanonical(at))?;
        self.add_scalar(&scalar);
        Ok(scalar)
    }

    /// Reads `count` points.
    pub(crate) fn points(&mut self, count: usize) -> Result<Vec<Point>, Invalid> {
        (0..count).map(|_| self.point()).collect()
    }

    /// Reads `count` scalars.
    pub(crate) fn scalars(&mut self, count: usize) -> Result<Vec<Scalar>, Invalid> {
        (0..count).map(|_| self.scalar()).collect()
    }

    /// Checks that no bytes of the proof are left.
    pub(crate) fn expect_end(&self) -> Result<(), Invalid> {
        match self.proof.len().saturating_sub(self.at) {
            0 => Ok(()),
            left => Err(Invalid::Long(left)),
        }
    }
}
