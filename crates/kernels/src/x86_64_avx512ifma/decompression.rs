//! Points by their x-coordinates, eight side by side.

use ark_ec::CurveConfig;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::AdditiveGroup;

use super::square_root::SquareRoot;
use crate::InstructionSet;
use crate::decompression::{point_of_x, portable};
use crate::instruction_set::checked;

/// For each x-coordinate, one of the two points of the curve with it, on this thread; `None` without one.
///
/// # Panics
///
/// If this machine lacks the instructions.
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
    for xs in xs.chunks(16) {
        let (first, second) = xs.split_at(xs.len().min(8));
        // SAFETY: the instructions are there; there is at least one coordinate in each.
        let found = unsafe {
            match second {
                [] => y_of_each::<P, V, 1>([first]).to_vec(),
                _ => y_of_each::<P, V, 2>([first, second]).to_vec(),
            }
        };
        for (xs, (ys, missing)) in [first, second].into_iter().zip(found) {
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
    }
    points
}

fn square_of_y<P: SWCurveConfig>(x: P::BaseField) -> P::BaseField {
    P::add_b(x * x * x + P::mul_by_a(x))
}

/// A y in each lane, and the lanes where none was found.
type Found<P> = ([<P as CurveConfig>::BaseField; 8], u8);

/// A y for each of one to eight x, in each of K lists.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn y_of_each<P, V, const K: usize>(lists: [&[P::BaseField]; K]) -> [Found<P>; K]
where
    P: SWCurveConfig,
    V: SquareRoot<Ark = P::BaseField>,
{
    // SAFETY: as the caller promises; the places are elements on the stack.
    unsafe {
        let mut squares = [V::zero(); K];
        for (square, xs) in squares.iter_mut().zip(lists) {
            let mut lanes = [P::BaseField::ZERO; 8];
            for (lane, value) in lanes.iter_mut().enumerate() {
                *value = square_of_y::<P>(xs[if lane < xs.len() { lane } else { 0 }]);
            }
            *square = V::load_ark(lanes.each_ref().map(std::ptr::from_ref));
        }
        let roots = V::roots(squares);
        let mut found = [([P::BaseField::ZERO; 8], 0); K];
        for (i, (ys, missing)) in found.iter_mut().enumerate() {
            *missing = !V::sub(V::square(roots[i]), squares[i]).zero_lanes();
            *ys = roots[i].to_ark();
        }
        found
    }
}
