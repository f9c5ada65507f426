//! Arithmetic of a pairing in the quadratic extension `Fq2 = Fq(u)`, eight elements at a time.
//!
//! A *product* is a carried value below `2.6·p` in each coordinate, the range of inputs and outputs of [`dot`]
//! and [`Factor::squared`]. Sums of products are raw and must be settled before they are factors.

use std::arch::x86_64::*;

use super::super::field::Fp;
use super::super::field2::Quadratic;
use super::fq::Wide;
use super::tower::Tower;

/// A carried element with the sum of its coordinates, which Karatsuba's method multiplies.
pub(crate) struct Factor<E: Tower<L, N>, const L: usize, const N: usize> {
    pub(super) c0: Fp<E::Base, L, N>,
    pub(super) c1: Fp<E::Base, L, N>,
    sum: Fp<E::Base, L, N>,
}

// === impl Quadratic ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Quadratic<E, L, N> {
    /// `a + b`, raw.
    #[inline(always)]
    pub(super) unsafe fn plus(self, b: Self) -> Self {
        // SAFETY: as the caller promises; so below.
        unsafe {
            Self {
                c0: self.c0.plus(b.c0),
                c1: self.c1.plus(b.c1),
            }
        }
    }

    /// `a + K·p − b` in each coordinate, raw.
    #[inline(always)]
    pub(super) unsafe fn minus<const K: u64>(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.minus::<K>(b.c0),
                c1: self.c1.minus::<K>(b.c1),
            }
        }
    }

    /// `K·p − a` in each coordinate, raw.
    #[inline(always)]
    pub(super) unsafe fn negated<const K: u64>(self) -> Self {
        // SAFETY: see above.
        unsafe { Self::nothing().minus::<K>(self) }
    }

    /// `c0 − c1·u` of a product.
    #[inline(always)]
    pub(super) unsafe fn conjugated(self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0,
                c1: Fp::zero_limbs().minus::<3>(self.c1).settle(),
            }
        }
    }

    /// Zero in every lane.
    #[inline(always)]
    pub(super) unsafe fn nothing() -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::zero_limbs(),
                c1: Fp::zero_limbs(),
            }
        }
    }

    /// `2^SHIFT · a`, raw.
    #[inline(always)]
    pub(super) unsafe fn shifted<const SHIFT: u32>(self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.shifted::<SHIFT>(),
                c1: self.c1.shifted::<SHIFT>(),
            }
        }
    }

    /// Settles both coordinates: each in `0..32·p`.
    #[inline(always)]
    pub(super) unsafe fn settle(self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.settle(),
                c1: self.c1.settle(),
            }
        }
    }

    /// Like [`settle`](Self::settle), of values below `8·p`: below `1.1·p`.
    #[inline(always)]
    pub(super) unsafe fn reduced(self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.reduce(),
                c1: self.c1.reduce(),
            }
        }
    }

    /// Carries the limbs without changing the value.
    #[inline(always)]
    pub(super) unsafe fn carry(self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.carry(),
                c1: self.c1.carry(),
            }
        }
    }

    /// `ξ·a` of a product, settled.
    #[inline(always)]
    pub(super) unsafe fn times_xi(self) -> Self {
        // SAFETY: see above.
        unsafe { E::times_xi_raw(self).settle() }
    }

    /// The product with elements of the prime field: of carried values, together below `84·p²`.
    #[inline(always)]
    pub(super) unsafe fn scaled(self, by: &Fp<E::Base, L, N>) -> Self {
        // SAFETY: see above.
        unsafe {
            let [c0, c1] = Fp::multiply_two([&self.c0, &self.c1], [by, by]);
            Self { c0, c1 }
        }
    }

    /// The factor of a carried value.
    #[inline(always)]
    pub(super) unsafe fn factor(self) -> Factor<E, L, N> {
        Factor {
            c0: self.c0,
            c1: self.c1,
            // SAFETY: see above.
            sum: unsafe { self.c0.plus(self.c1).carry() },
        }
    }

    /// See [`Fp::permuted`].
    #[inline(always)]
    pub(super) unsafe fn permuted(self, from: __m512i) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.permuted(from),
                c1: self.c1.permuted(from),
            }
        }
    }

    /// See [`Fp::permuted_with`].
    #[inline(always)]
    pub(super) unsafe fn permuted_with(self, other: Self, from: __m512i) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.permuted_with(other.c0, from),
                c1: self.c1.permuted_with(other.c1, from),
            }
        }
    }

    /// `other` in `lanes`, else `self`.
    #[inline(always)]
    pub(super) unsafe fn replaced(self, lanes: __mmask8, other: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::select_limbs(lanes, self.c0, other.c0),
                c1: Fp::select_limbs(lanes, self.c1, other.c1),
            }
        }
    }

    /// The element one in every lane.
    #[inline(always)]
    pub(super) unsafe fn unit() -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::splat_limbs(&<E::Base as super::super::modulus::Modulus<L, N>>::ONE),
                c1: Fp::zero_limbs(),
            }
        }
    }
}

// === impl Factor ===

copied!(Factor);

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Factor<E, L, N> {
    /// `(c0 + c1)·(c0 − β·c1) + (β − 1)·c0·c1` and `2·c0·c1`: two products in Fq. Of a
    /// product: below `1.4·p`.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn squared(&self) -> Quadratic<E, L, N> {
        // SAFETY: as the caller promises.
        unsafe {
            let twice = self.c0.shifted::<1>().carry();
            if E::MINUS_NONRESIDUE == 1 {
                let difference = self.c0.minus::<3>(self.c1).carry();
                let [c0, c1] = Fp::multiply_two([&self.sum, &twice], [&difference, &self.c1]);
                return Quadratic { c0, c1 };
            }
            const { assert!(E::MINUS_NONRESIDUE == 1 || E::MINUS_NONRESIDUE == 5 && L == 8) };
            let difference = self.c0.minus::<20>(self.c1.shifted::<2>().plus(self.c1));
            let difference = difference.carry();
            let [c0, c1] = Fp::multiply_two([&self.sum, &twice], [&difference, &self.c1]);
            Quadratic {
                c0: c0.plus(c1.shifted::<1>()).reduce(),
                c1,
            }
        }
    }

    /// See [`Fp::permuted`].
    #[inline(always)]
    pub(super) unsafe fn permuted(&self, from: __m512i) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.permuted(from),
                c1: self.c1.permuted(from),
                sum: self.sum.permuted(from),
            }
        }
    }

    /// See [`Fp::permuted_with`].
    #[inline(always)]
    pub(super) unsafe fn permuted_with(&self, other: &Self, from: __m512i) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: self.c0.permuted_with(other.c0, from),
                c1: self.c1.permuted_with(other.c1, from),
                sum: self.sum.permuted_with(other.sum, from),
            }
        }
    }
}

/// `Σ a[i]·b[i]`: Karatsuba's three products for each term, summed before the two reductions.
///
/// With five limbs, and factors below `α·p` and `β·p`, K·α·β must be below 84: the first
/// coordinate is below `(2 + K·α·β/84)·p`, the second below `(1 + 2·K·α·β/84)·p`.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(super) unsafe fn dot<E: Tower<L, N>, const K: usize, const L: usize, const N: usize>(
    a: [&Factor<E, L, N>; K],
    b: [&Factor<E, L, N>; K],
) -> Quadratic<E, L, N> {
    const { assert!(K <= 6) };
    // SAFETY: as the caller promises.
    unsafe {
        let mut low = Wide::<E::Base, L, N>::zero();
        for k in 0..K {
            low = low.add_product(&a[k].c0, &b[k].c0);
        }
        let mut high = Wide::<E::Base, L, N>::zero();
        for k in 0..K {
            high = high.add_product(&a[k].c1, &b[k].c1);
        }
        let mut cross = Wide::<E::Base, L, N>::zero();
        for k in 0..K {
            cross = cross.add_product(&a[k].sum, &b[k].sum);
        }
        let c1 = cross.minus(&low.plus(&high));
        let mut c0 = low;
        // u² = −β, so subtract β times, which is once or five times.
        for _ in 0..E::MINUS_NONRESIDUE {
            c0 = c0.minus(&high);
        }
        let [c0, c1] = Wide::reduced_two::<1>(c0, c1);
        Quadratic { c0, c1 }
    }
}
