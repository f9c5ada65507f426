//! The groups the kernels work in.

use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::{Projective, SWCurveConfig};

use crate::portable::batch_add;

/// A group of points in short Weierstrass form, whose affine points can be added in batches that
/// share one inversion.
pub trait MsmGroup: CurveGroup {
    /// `left[i] += right[i]` for every `i`, at about six multiplications each.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    fn batch_add_assign(left: &mut [Self::Affine], right: &[Self::Affine]);
}

impl<P: SWCurveConfig> MsmGroup for Projective<P> {
    fn batch_add_assign(left: &mut [Self::Affine], right: &[Self::Affine]) {
        batch_add::batch_add_assign(left, right);
    }
}
