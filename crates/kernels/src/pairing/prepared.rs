//! Points of the second group that take part in many products.

use ark_ec::AffineRepr;

use super::PairingCurve;
use super::curve::sealed::PreparedLines;
use crate::InstructionSet;

/// A point of the second group with its lines computed beforehand: a pair with it costs a product
/// half as much as one with a point alone.
///
/// It takes some 20 KB, and some 0.2 ms to make.
#[derive(Clone, Debug)]
pub struct PreparedG2<E: PairingCurve> {
    point: E::G2Affine,
    lines: Option<PreparedLines<E>>,
}

// === impl PreparedG2 ===

impl<E: PairingCurve> PreparedG2<E> {
    /// Prepares a point for this process's back end.
    pub fn new(point: E::G2Affine) -> Self {
        Self::on(InstructionSet::current(), point)
    }

    /// Prepares a point for a chosen back end. Products on other back ends pair the unprepared point.
    ///
    /// # Panics
    ///
    /// If this machine lacks the instructions.
    pub fn on(set: InstructionSet, point: E::G2Affine) -> Self {
        let lines = (!point.is_zero())
            .then(|| E::lines_on(set, point))
            .flatten();
        Self { point, lines }
    }

    /// The point.
    pub const fn point(&self) -> E::G2Affine {
        self.point
    }

    /// The lines, unless the point has none that are of use.
    pub(super) const fn lines(&self) -> Option<&PreparedLines<E>> {
        self.lines.as_ref()
    }
}
