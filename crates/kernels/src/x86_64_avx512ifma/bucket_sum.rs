//! `Σ (i + 1)·Bᵢ` over buckets, eight runs of them at a time.
//!
//! The buckets are cut into eight runs, one for each lane. From the last bucket of a run to its
//! first, the running sum R takes the bucket, and the total T takes R: T is then the run's sum with
//! weights from 1, and a run that begins at bucket f adds f·R.
//!
//! R and T are projective and added by complete formulas (Renes, Costello, Batina, "Complete
//! addition formulas for prime order elliptic curves", EUROCRYPT 2016, algorithms 7 and 8, for
//! a = 0), since equal, opposite and infinite sums are common where few buckets are taken.

use ark_ec::short_weierstrass::{Projective, SWCurveConfig};
use ark_ff::AdditiveGroup;

use super::points::Stored;
use super::vector_field::VectorField;

/// Eight points (X : Y : Z) with x = X/Z, y = Y/Z; the point at infinity is (0 : 1 : 0).
#[derive(Clone, Copy)]
struct Homogeneous<V> {
    x: V,
    y: V,
    z: V,
}

/// `Σ (i + 1)·points[first + i]` over those i where `occupied[i]`.
///
/// # Safety
///
/// The instructions of this back end; the range is of points that are there.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn sum_buckets<P, V>(
    points: &Stored<V>,
    first: usize,
    occupied: &[bool],
) -> Projective<P>
where
    P: SWCurveConfig,
    V: VectorField<Ark = P::BaseField>,
{
    let run = occupied.len().div_ceil(8);
    // SAFETY: as the caller promises; lanes whose bucket is not there or is empty read the spare
    // source and are masked.
    unsafe {
        let base = points.as_ptr();
        let triple_b = V::splat(&(P::COEFF_B + P::COEFF_B + P::COEFF_B));
        let mut running = Homogeneous::<V>::infinity();
        let mut total = Homogeneous::<V>::infinity();
        for step in (0..run).rev() {
            let mut filled = 0u8;
            let x: [*const u64; 8] = std::array::from_fn(|lane| {
                let bucket = lane * run + step;
                let index = if occupied.get(bucket).copied().unwrap_or(false) {
                    filled |= 1 << lane;
                    first + bucket
                } else {
                    points.spare_source()
                };
                base.add(index * 2 * V::WORDS)
            });
            if filled != 0 {
                let sum =
                    running.add_affine(V::load(x), V::load(x.map(|p| p.add(V::WORDS))), triple_b);
                running = Homogeneous::select(filled, running, sum);
            }
            total = total.add(running, triple_b);
        }
        let (running, total) = (running.to_ark::<P>(), total.to_ark::<P>());
        // Σ lane · R by running sums, then all runs' lengths at once.
        let mut from_here = Projective::ZERO;
        let mut weighted = Projective::ZERO;
        for sum in running.iter().skip(1).rev() {
            from_here += sum;
            weighted += from_here;
        }
        total.iter().sum::<Projective<P>>() + weighted * P::ScalarField::from(run as u64)
    }
}

/// # Safety
///
/// Every function: the instructions of this back end. Coordinates are tight.
impl<V: VectorField> Homogeneous<V> {
    #[inline(always)]
    unsafe fn infinity() -> Self {
        // SAFETY: as the caller promises; so below.
        unsafe {
            Self {
                x: V::zero(),
                y: V::one(),
                z: V::zero(),
            }
        }
    }

    #[inline(always)]
    unsafe fn select(lanes: u8, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                x: V::select(lanes, a.x, b.x),
                y: V::select(lanes, a.y, b.y),
                z: V::select(lanes, a.z, b.z),
            }
        }
    }

    /// Adds points with z = 1, stored. 13 products.
    #[inline(always)]
    unsafe fn add_affine(self, x: V, y: V, triple_b: V) -> Self {
        // SAFETY: see above.
        unsafe {
            let xx = V::mul_by_call(self.x, x);
            let yy = V::mul_by_call(self.y, y);
            let xy = V::mul_by_call(V::add_reduced(x, y), V::add_reduced(self.x, self.y));
            let xy = V::sub_two_reduced(xy, xx, yy);
            let yz = V::add_reduced(V::mul_by_call(y, self.z), self.y);
            let xz = V::add_reduced(V::mul_by_call(x, self.z), self.x);
            Self::combine(
                xx,
                yy,
                V::mul_by_call(triple_b, self.z),
                xy,
                yz,
                V::mul_by_call(triple_b, xz),
            )
        }
    }

    /// Adds points. 14 products.
    #[inline(always)]
    unsafe fn add(self, other: Self, triple_b: V) -> Self {
        // SAFETY: see above.
        unsafe {
            let xx = V::mul_by_call(self.x, other.x);
            let yy = V::mul_by_call(self.y, other.y);
            let zz = V::mul_by_call(self.z, other.z);
            let xy = Self::cross(self.x, self.y, other.x, other.y, xx, yy);
            let yz = Self::cross(self.y, self.z, other.y, other.z, yy, zz);
            let xz = Self::cross(self.x, self.z, other.x, other.z, xx, zz);
            Self::combine(
                xx,
                yy,
                V::mul_by_call(triple_b, zz),
                xy,
                yz,
                V::mul_by_call(triple_b, xz),
            )
        }
    }

    /// `(a + b)·(c + d) − ac − bd`.
    #[inline(always)]
    unsafe fn cross(a: V, b: V, c: V, d: V, ac: V, bd: V) -> V {
        // SAFETY: see above.
        unsafe {
            let product = V::mul_by_call(V::add_reduced(a, b), V::add_reduced(c, d));
            V::sub_two_reduced(product, ac, bd)
        }
    }

    /// The sum from X₁X₂, Y₁Y₂, 3b·Z₁Z₂, X₁Y₂ + X₂Y₁, Y₁Z₂ + Y₂Z₁ and 3b·(X₁Z₂ + X₂Z₁).
    #[inline(always)]
    unsafe fn combine(xx: V, yy: V, bzz: V, xy: V, yz: V, bxz: V) -> Self {
        // SAFETY: see above.
        unsafe {
            let triple_xx = V::add_reduced(V::add_reduced(xx, xx), xx);
            let sum = V::add_reduced(yy, bzz);
            let difference = V::sub_signed_reduced(yy, bzz, 0);
            Self {
                x: V::sub_signed_reduced(
                    V::mul_by_call(xy, difference),
                    V::mul_by_call(yz, bxz),
                    0,
                ),
                y: V::add_reduced(
                    V::mul_by_call(difference, sum),
                    V::mul_by_call(bxz, triple_xx),
                ),
                z: V::add_reduced(V::mul_by_call(sum, yz), V::mul_by_call(triple_xx, xy)),
            }
        }
    }

    /// The points as arkworks', which are Jacobian: x = X/Z², y = Y/Z³.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn to_ark<P: SWCurveConfig<BaseField = V::Ark>>(self) -> [Projective<P>; 8] {
        // SAFETY: see above.
        let (x, y, z) = unsafe {
            let x = V::mul_by_call(self.x, self.z);
            let y = V::mul_by_call(self.y, V::mul_by_call(self.z, self.z));
            (x.to_ark(), y.to_ark(), self.z.to_ark())
        };
        // Where z is zero so are the others: arkworks goes by z alone.
        std::array::from_fn(|lane| Projective::new_unchecked(x[lane], y[lane], z[lane]))
    }
}
