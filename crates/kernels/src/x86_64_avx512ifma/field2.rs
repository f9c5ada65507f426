//! Eight elements of a quadratic extension of a prime field.

use std::arch::x86_64::*;

use ark_ff::{Fp2, Fp2Config};

use super::field::Fp;
use super::modulus::{Modulus, Scalar};
use super::vector_field::{Layout, VectorField};

/// The extension by a square root of a small negative non-residue.
pub(crate) trait Extension<const L: usize, const N: usize>:
    Fp2Config<Fp = Scalar<Self::Base, N>>
{
    type Base: Modulus<L, N>;
    /// The non-residue is −β, β in 1..6.
    const MINUS_NONRESIDUE: usize;
}

impl Extension<8, 6> for ark_bls12_381::Fq2Config {
    type Base = ark_bls12_381::FqConfig;
    const MINUS_NONRESIDUE: usize = 1;
}

impl Extension<8, 6> for ark_bls12_377::Fq2Config {
    type Base = ark_bls12_377::FqConfig;
    const MINUS_NONRESIDUE: usize = 5;
}

impl Extension<5, 4> for ark_bn254::Fq2Config {
    type Base = ark_bn254::FqConfig;
    const MINUS_NONRESIDUE: usize = 1;
}

/// Eight elements `c0 + c1·√−β`.
pub(crate) struct Quadratic<E: Extension<L, N>, const L: usize, const N: usize> {
    pub(crate) c0: Fp<E::Base, L, N>,
    pub(crate) c1: Fp<E::Base, L, N>,
}

// === impl Quadratic ===

impl<E: Extension<L, N>, const L: usize, const N: usize> Clone for Quadratic<E, L, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: Extension<L, N>, const L: usize, const N: usize> Copy for Quadratic<E, L, N> {}

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Extension<L, N>, const L: usize, const N: usize> Quadratic<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    /// Karatsuba's three products. With five limbs p/R < 1/84, so of the sums, below 2·3.4 (or
    /// below 12 by 2.6), the product is below 1.6.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn product(a: &Self, b: &Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let low = Fp::multiply_by_call(&a.c0, &b.c0);
            let high = Fp::multiply_by_call(&a.c1, &b.c1);
            let cross = Fp::multiply_by_call(
                &Fp::add_raw(a.c0, a.c1).carry(),
                &Fp::add_raw(b.c0, b.c1).carry(),
            );
            Self {
                c0: Self::minus_beta(low, high),
                c1: Fp::reduce_by_call(&Fp::sub_raw::<3>(cross, Fp::add_raw(low, high))),
            }
        }
    }

    /// `(c0 + c1)·(c0 − β·c1) + (β − 1)·c0·c1` and `2·c0·c1`: two products.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn squared(a: &Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let cross = Fp::multiply_by_call(&a.c0, &a.c1);
            let sum = Fp::add_raw(a.c0, a.c1).carry();
            let difference = if E::MINUS_NONRESIDUE == 1 {
                Fp::sub_raw::<2>(a.c0, a.c1).carry()
            } else {
                Self::minus_beta(a.c0, a.c1)
            };
            let mut c0 = Fp::multiply_by_call(&sum, &difference);
            for _ in 1..E::MINUS_NONRESIDUE {
                c0 = Fp::add_raw(c0, cross);
            }
            if E::MINUS_NONRESIDUE > 1 {
                c0 = Fp::reduce_by_call(&c0);
            }
            Self {
                c0,
                c1: Fp::reduce_by_call(&Fp::add_raw(cross, cross)),
            }
        }
    }

    /// `a − β·b`, for `a` below 1.6 and `b` below 1.14: below 8 before the reduction, then tight.
    #[inline(always)]
    unsafe fn minus_beta(a: Fp<E::Base, L, N>, b: Fp<E::Base, L, N>) -> Fp<E::Base, L, N> {
        // SAFETY: as the caller promises.
        unsafe {
            if E::MINUS_NONRESIDUE == 1 {
                Fp::reduce_by_call(&Fp::sub_raw::<2>(a, b))
            } else {
                let mut multiple = b;
                for _ in 1..E::MINUS_NONRESIDUE {
                    multiple = Fp::add_raw(multiple, b);
                }
                Fp::reduce_by_call(&Fp::sub_raw::<6>(a, multiple))
            }
        }
    }
}

impl<E: Extension<L, N>, const L: usize, const N: usize> VectorField for Quadratic<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    type Ark = Fp2<E>;
    const WORDS: usize = 2 * <Fp<E::Base, L, N> as VectorField>::WORDS;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: as the caller promises; so below.
        unsafe {
            Self {
                c0: Fp::zero(),
                c1: Fp::zero(),
            }
        }
    }

    #[inline(always)]
    unsafe fn one() -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::one(),
                c1: Fp::zero(),
            }
        }
    }

    #[inline(always)]
    unsafe fn splat(value: &Self::Ark) -> Self {
        // SAFETY: see above; the places are one and the same element.
        unsafe { Self::load_ark([value; 8]) }
    }

    #[inline(always)]
    unsafe fn load_ark(places: [*const Self::Ark; 8]) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::load_ark(places.map(|p| &raw const (*p).c0)),
                c1: Fp::load_ark(places.map(|p| &raw const (*p).c1)),
            }
        }
    }

    #[inline(always)]
    unsafe fn to_ark(self) -> [Self::Ark; 8] {
        // SAFETY: see above.
        let (c0, c1) = unsafe { (self.c0.to_ark(), self.c1.to_ark()) };
        std::array::from_fn(|lane| Fp2::new(c0[lane], c1[lane]))
    }

    #[inline(always)]
    unsafe fn load(places: [*const u64; 8]) -> Self {
        // SAFETY: see above; the second coordinate lies behind the first.
        unsafe {
            Self {
                c0: Fp::load(places),
                c1: Fp::load(places.map(|p| p.add(Self::WORDS / 2))),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, places: [*mut u64; 8]) {
        // SAFETY: see above.
        unsafe {
            self.c0.store(places);
            self.c1.store(places.map(|p| p.add(Self::WORDS / 2)));
        }
    }

    fn negate_stored(words: &mut [u64]) {
        let (c0, c1) = words.split_at_mut(Self::WORDS / 2);
        Fp::<E::Base, L, N>::negate_stored(c0);
        Fp::<E::Base, L, N>::negate_stored(c1);
    }

    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::product(&a, &b) }
    }

    #[inline(always)]
    unsafe fn mul_by_call(a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::product(&a, &b) }
    }

    #[inline(always)]
    unsafe fn square(a: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::squared(&a) }
    }

    #[inline(always)]
    unsafe fn add_reduced(a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::add_reduced(a.c0, b.c0),
                c1: Fp::add_reduced(a.c1, b.c1),
            }
        }
    }

    #[inline(always)]
    unsafe fn sub(a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::sub(a.c0, b.c0),
                c1: Fp::sub(a.c1, b.c1),
            }
        }
    }

    #[inline(always)]
    unsafe fn sub_two_reduced(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::sub_two_reduced(a.c0, b.c0, c.c0),
                c1: Fp::sub_two_reduced(a.c1, b.c1, c.c1),
            }
        }
    }

    #[inline(always)]
    unsafe fn sub_signed(a: Self, b: Self, lanes: __mmask8) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::sub_signed(a.c0, b.c0, lanes),
                c1: Fp::sub_signed(a.c1, b.c1, lanes),
            }
        }
    }

    #[inline(always)]
    unsafe fn sub_signed_reduced(a: Self, b: Self, lanes: __mmask8) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::sub_signed_reduced(a.c0, b.c0, lanes),
                c1: Fp::sub_signed_reduced(a.c1, b.c1, lanes),
            }
        }
    }

    #[inline(always)]
    unsafe fn zero_lanes(self) -> __mmask8 {
        // SAFETY: see above.
        unsafe { self.c0.zero_lanes() & self.c1.zero_lanes() }
    }

    #[inline(always)]
    unsafe fn select(lanes: __mmask8, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self {
                c0: Fp::select(lanes, a.c0, b.c0),
                c1: Fp::select(lanes, a.c1, b.c1),
            }
        }
    }
}
