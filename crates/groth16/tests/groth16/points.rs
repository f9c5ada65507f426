//! Points that every decoder must refuse.

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

/// A point of the curve that is not in the subgroup of prime order.
pub(crate) fn outside_subgroup<P: SWCurveConfig>() -> Affine<P> {
    (1u64..)
        .find_map(|x| {
            let point = Affine::<P>::get_point_from_x_unchecked(x.into(), false)?;
            (!point.is_in_correct_subgroup_assuming_on_curve()).then_some(point)
        })
        .expect("a curve with a cofactor has one")
}
