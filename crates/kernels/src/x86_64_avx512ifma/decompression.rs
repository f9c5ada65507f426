//! Points by their x-coordinates, eight side by side.

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::square_root::SquareRoot;
use crate::InstructionSet;
use crate::decompression::{point_of_x, portable};
use crate::instruction_set::checked;

/// For each x-coordinate either point of the curve that has it, if there are any, on this thread.
///
/// # Panics
///
/// If this machine has not the instructions.
pub(crate) fn point_of_x_each<P, V>(xs: &[P::BaseField]) -> Vec<Option<Affine<P>>>
where
    P: SWCurveConfig,
    V: SquareRoot<Ark = P::BaseField>,
{
    checked(InstructionSet::Avx512Ifma);
    if !V::HAS_ROOTS {
        return portable(xs);
    }
    let mut points = Vec::with_capacity(xs.len());
    for xs in xs.chunks(8) {
        // SAFETY: the instructions are there; there is at least one coordinate.
        let (ys, missing) = unsafe { y_of_eight::<P, V>(xs) };
        for (lane, x) in xs.iter().enumerate() {
            points.push(if missing & 1 << lane == 0 {
                Some(Affine::new_unchecked(*x, ys[lane]))
            } else if V::may_miss(&square_of_y::<P>(*x)) {
                point_of_x(*x)
            } else {
                None
            });
        }
    }
    points
}

fn square_of_y<P: SWCurveConfig>(x: P::BaseField) -> P::BaseField {
    P::add_b(x * x * x + P::mul_by_a(x))
}

/// A y for each of one to eight x, and the lanes where none was found.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn y_of_eight<P, V>(xs: &[P::BaseField]) -> ([P::BaseField; 8], u8)
where
    P: SWCurveConfig,
    V: SquareRoot<Ark = P::BaseField>,
{
    let squares: [P::BaseField; 8] =
        std::array::from_fn(|lane| square_of_y::<P>(xs[if lane < xs.len() { lane } else { 0 }]));
    // SAFETY: as the caller promises; the places are elements on the stack.
    unsafe {
        let square = V::load_ark(squares.each_ref().map(|square| &raw const *square));
        let root = V::root(square);
        let found = V::sub(V::square(root), square).zero_lanes();
        (root.to_ark(), !found)
    }
}
