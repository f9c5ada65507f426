//! The points of a key's queries, plain, prepared or in a mapped file, and their products with scalars. No other
//! module depends on which of the three forms a key has.

use std::fmt;
use std::sync::Arc;

use proofmill_accelerator::{DeviceGroup, Points};
use proofmill_kernels::{MsmGroup, PreparedBases, msm};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::keys::mapped_points::MappedPoints;

/// Borrowed points, in one of three forms.
pub(crate) enum Bases<'k, G: MsmGroup> {
    /// Points in memory, unprepared.
    Plain(&'k [G::Affine]),
    /// Points in the kernels' layout, with multiples.
    Prepared(&'k PreparedBases<G>),
    /// Points in a mapped file.
    Mapped(&'k MappedPoints<G>),
}

/// Borrowed points for some of the variables.
pub(crate) struct Query<'k, G: MsmGroup> {
    indices: &'k [u32],
    bases: Bases<'k, G>,
}

/// Owned points, in the forms of [`Bases`].
pub(crate) enum HeldBases<G: MsmGroup> {
    Plain(Arc<Vec<G::Affine>>),
    Prepared(PreparedBases<G>),
    Mapped(MappedPoints<G>),
}

// === impl Bases ===

impl<G: MsmGroup> Bases<'_, G> {
    pub(crate) fn multiply(&self, scalars: &[G::ScalarField]) -> G {
        match self {
            Self::Plain(points) => msm(points, scalars),
            Self::Prepared(bases) => bases.msm(scalars),
            Self::Mapped(points) => points.multiply(|i| scalars[i]),
        }
    }
}

// === impl Query ===

impl<'k, G: MsmGroup> Query<'k, G> {
    pub(crate) const fn plain(indices: &'k [u32], points: &'k [G::Affine]) -> Self {
        Self {
            indices,
            bases: Bases::Plain(points),
        }
    }

    /// The scalars of this query.
    pub(crate) fn gather(&self, z: &[G::ScalarField]) -> Vec<G::ScalarField> {
        self.indices.par_iter().map(|i| z[*i as usize]).collect()
    }

    /// `Σ z[j] · point(j)`, and the size in bytes of the vectors that were allocated for it.
    pub(crate) fn multiply(&self, z: &[G::ScalarField]) -> (G, usize) {
        match &self.bases {
            Bases::Plain(points) => {
                let scalars = Zeroizing::new(self.gather(z));
                (msm(points, &scalars), size_of_val(&scalars[..]))
            }
            Bases::Prepared(bases) => (bases.msm_indexed(self.indices, z), 0),
            Bases::Mapped(points) => (points.multiply(|i| z[self.indices[i] as usize]), 0),
        }
    }
}

// === impl HeldBases ===

impl<G: MsmGroup> HeldBases<G> {
    /// Prepares points in at most `memory_limit` bytes, or keeps them unprepared if it is `None`.
    pub(crate) fn new(points: Vec<G::Affine>, memory_limit: Option<usize>) -> Self {
        match memory_limit {
            None => Self::Plain(Arc::new(points)),
            Some(limit) => Self::Prepared(PreparedBases::new(&points, limit)),
        }
    }

    pub(crate) fn as_bases(&self) -> Bases<'_, G> {
        match self {
            Self::Plain(points) => Bases::Plain(points.as_slice()),
            Self::Prepared(bases) => Bases::Prepared(bases),
            Self::Mapped(points) => Bases::Mapped(points),
        }
    }

    pub(crate) fn query<'k>(&'k self, indices: &'k [u32]) -> Query<'k, G> {
        Query {
            indices,
            bases: self.as_bases(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Plain(points) => points.len(),
            Self::Prepared(bases) => bases.len(),
            Self::Mapped(points) => points.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Plain(points) => size_of_val(&points[..]),
            Self::Prepared(bases) => bases.bytes(),
            // They are pages of the file, which the system may drop at any time.
            Self::Mapped(_) => 0,
        }
    }
}

impl<G: DeviceGroup> HeldBases<G> {
    /// The points in a device's form, shared; `None` if they are prepared or in a file.
    pub(crate) fn shared(&self) -> Option<Points> {
        match self {
            Self::Plain(points) => Some(G::points(Arc::clone(points))),
            Self::Prepared(_) | Self::Mapped(_) => None,
        }
    }
}

/// The share of a memory limit for points that take `bytes` of `total`: in proportion to their size.
pub(crate) fn share(memory_limit: usize, bytes: usize, total: usize) -> usize {
    let share = memory_limit as u128 * bytes as u128 / total.max(1) as u128;
    usize::try_from(share).unwrap_or(usize::MAX)
}

impl<G: MsmGroup> fmt::Debug for HeldBases<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(points) => write!(f, "{} bases", points.len()),
            Self::Prepared(bases) => fmt::Debug::fmt(bases, f),
            Self::Mapped(points) => write!(f, "{} bases in a file", points.len()),
        }
    }
}
