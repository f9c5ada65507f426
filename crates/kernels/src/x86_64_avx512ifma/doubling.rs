//! Multiples of points by powers of two.

use super::vector_field::VectorField;
use crate::portable::inversion::invert_all;

/// Stores `2^doublings` times the points `from..from + count` at `to..to + count`.
///
/// In Jacobian coordinates (x = X/Z², y = Y/Z³), 2 products and 5 squares a doubling ("dbl-2009-l"
/// of the Explicit-Formulas Database, a = 0), then back to affine with one inversion for all. No
/// point of the prime-order subgroup doubles to infinity.
///
/// # Safety
///
/// The instructions of this back end; both ranges are of existing points, and no other thread
/// accesses the second.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn double<V: VectorField>(
    base: *mut u64,
    from: usize,
    to: usize,
    count: usize,
    doublings: usize,
) {
    // SAFETY: as the caller promises. Lanes beyond the range repeat its last point.
    unsafe {
        let square = |x: V| V::mul_by_call(x, x);
        let place = |start: usize, group: usize, lane: usize| {
            base.add((start + (group + lane).min(count - 1)) * 2 * V::WORDS)
        };
        let mut points: Vec<[V; 3]> = Vec::with_capacity(count.div_ceil(8));
        let mut products: Vec<V> = Vec::with_capacity(count.div_ceil(8));
        let mut product = V::one();
        for group in (0..count).step_by(8) {
            let places: [*const u64; 8] =
                std::array::from_fn(|lane| place(from, group, lane).cast_const());
            let mut x = V::load(places);
            // Stored values may reach 2; a product reduces them.
            let mut y = V::mul_by_call(V::load(places.map(|p| p.add(V::WORDS))), V::one());
            let mut z = V::one();
            for _ in 0..doublings {
                let a = square(x);
                let b = square(y);
                let c = square(b);
                let half = V::sub_two_reduced(square(V::add_reduced(x, b)), a, c);
                let d = V::add_reduced(half, half);
                let e = V::add_reduced(V::add_reduced(a, a), a);
                let yz = V::mul_by_call(y, z);
                x = V::sub_two_reduced(square(e), d, d);
                let c2 = V::add_reduced(c, c);
                let c4 = V::add_reduced(c2, c2);
                let c8 = V::add_reduced(c4, c4);
                y = V::sub_signed_reduced(V::mul_by_call(e, V::sub(d, x)), c8, 0);
                z = V::add_reduced(yz, yz);
            }
            // A point at infinity's place holds no point; it must not spoil the others' inverse.
            z = V::select(z.zero_lanes(), z, V::one());
            points.push([x, y, z]);
            products.push(product);
            product = V::mul_by_call(product, z);
        }
        let mut lanes = product.to_ark();
        invert_all(&mut lanes, &mut Vec::with_capacity(8));
        let mut rest = V::load_ark(lanes.each_ref().map(std::ptr::from_ref));
        for (i, ([x, y, z], before)) in points.iter().zip(&products).enumerate().rev() {
            let inverse = V::mul_by_call(rest, *before);
            rest = V::mul_by_call(rest, *z);
            let square = square(inverse);
            let places: [*mut u64; 8] = std::array::from_fn(|lane| place(to, 8 * i, lane));
            V::mul_by_call(*x, square).store(places);
            V::mul_by_call(*y, V::mul_by_call(square, inverse))
                .store(places.map(|p| p.add(V::WORDS)));
        }
    }
}
