//! The fields Fq6 and Fq12 over the products of [`fq2`](super::fq2).

use std::ops::{Add, Neg, Sub};

use ark_ff::{Field, Fp6, Fp12};

use super::curve::Curve;
use super::fq2::{self, Fq2};

/// arkworks' Fq12.
pub(super) type ArkFq12<C, const N: usize> = Fp12<<C as Curve<N>>::Twelve>;

/// Fq6 = Fq2(v), v³ = ξ.
#[derive(Clone, Copy)]
pub(super) struct Fq6<C: Curve<N>, const N: usize> {
    pub(super) c0: Fq2<C, N>,
    pub(super) c1: Fq2<C, N>,
    pub(super) c2: Fq2<C, N>,
}

/// Fq12 = Fq6(w), w² = v.
#[derive(Clone, Copy)]
pub(super) struct Fq12<C: Curve<N>, const N: usize> {
    pub(super) c0: Fq6<C, N>,
    pub(super) c1: Fq6<C, N>,
}

// === impl Fq6 ===

impl<C: Curve<N>, const N: usize> Fq6<C, N> {
    const ZERO: Self = Self::new(Fq2::ZERO, Fq2::ZERO, Fq2::ZERO);
    const ONE: Self = Self::new(Fq2::ONE, Fq2::ZERO, Fq2::ZERO);

    #[inline(always)]
    pub(super) const fn new(c0: Fq2<C, N>, c1: Fq2<C, N>, c2: Fq2<C, N>) -> Self {
        Self { c0, c1, c2 }
    }

    #[inline(always)]
    fn double(self) -> Self {
        self + self
    }

    const fn of_arkworks(value: &Fp6<C::Six>) -> Self {
        Self::new(Fq2(value.c0), Fq2(value.c1), Fq2(value.c2))
    }

    const fn to_arkworks(self) -> Fp6<C::Six> {
        Fp6::new(self.c0.0, self.c1.0, self.c2.0)
    }
}

impl<C: Curve<N>, const N: usize> Add for Fq6<C, N> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::new(self.c0 + other.c0, self.c1 + other.c1, self.c2 + other.c2)
    }
}

impl<C: Curve<N>, const N: usize> Sub for Fq6<C, N> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::new(self.c0 - other.c0, self.c1 - other.c1, self.c2 - other.c2)
    }
}

impl<C: Curve<N>, const N: usize> Neg for Fq6<C, N> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(-self.c0, -self.c1, -self.c2)
    }
}

// === impl Fq12 ===

impl<C: Curve<N>, const N: usize> Fq12<C, N> {
    pub(super) const ONE: Self = Self::new(Fq6::ONE, Fq6::ZERO);

    #[inline(always)]
    pub(super) const fn new(c0: Fq6<C, N>, c1: Fq6<C, N>) -> Self {
        Self { c0, c1 }
    }

    pub(super) const fn of_arkworks(value: &ArkFq12<C, N>) -> Self {
        Self::new(Fq6::of_arkworks(&value.c0), Fq6::of_arkworks(&value.c1))
    }

    pub(super) const fn to_arkworks(self) -> ArkFq12<C, N> {
        Fp12::new(self.c0.to_arkworks(), self.c1.to_arkworks())
    }

    /// The power by q⁶: in the cyclotomic subgroup the inverse.
    pub(super) fn conjugate(&self) -> Self {
        Self::new(self.c0, -self.c1)
    }

    /// The power by `q^times`.
    pub(super) fn frobenius(&self, times: usize) -> Self {
        let mut power = self.to_arkworks();
        power.frobenius_map_in_place(times);
        Self::of_arkworks(&power)
    }
}

/// `v·a`.
#[inline(always)]
fn times_v<C: Curve<N>, const N: usize>(a: Fq6<C, N>) -> Fq6<C, N> {
    Fq6::new(C::times_xi(a.c2), a.c0, a.c1)
}

/// `a·b`, six products of Fq2.
fn product6<C: Curve<N>, const N: usize>(a: &Fq6<C, N>, b: &Fq6<C, N>) -> Fq6<C, N> {
    let products = [
        fq2::product::<C, N>(&a.c0, &b.c0),
        fq2::product::<C, N>(&a.c1, &b.c1),
        fq2::product::<C, N>(&a.c2, &b.c2),
    ];
    let cross = |i: usize, j: usize| {
        let (left, right) = ([a.c0, a.c1, a.c2], [b.c0, b.c1, b.c2]);
        let product = fq2::product::<C, N>(&(left[i] + left[j]), &(right[i] + right[j]));
        product - products[i] - products[j]
    };
    Fq6::new(
        products[0] + C::times_xi(cross(1, 2)),
        cross(0, 1) + C::times_xi(products[2]),
        cross(0, 2) + products[1],
    )
}

/// `a·(b₀ + b₁·v)`, five products of Fq2.
fn product6_by_two<C: Curve<N>, const N: usize>(
    a: &Fq6<C, N>,
    b0: &Fq2<C, N>,
    b1: &Fq2<C, N>,
) -> Fq6<C, N> {
    let first = fq2::product::<C, N>(&a.c0, b0);
    let second = fq2::product::<C, N>(&a.c1, b1);
    let crossed = fq2::product::<C, N>(&(a.c0 + a.c1), &(*b0 + *b1));
    Fq6::new(
        first + C::times_xi(fq2::product::<C, N>(&a.c2, b1)),
        crossed - first - second,
        second + fq2::product::<C, N>(&a.c2, b0),
    )
}

/// `a·b`, 18 products of Fq2.
pub(super) fn product<C: Curve<N>, const N: usize>(a: &Fq12<C, N>, b: &Fq12<C, N>) -> Fq12<C, N> {
    let low = product6::<C, N>(&a.c0, &b.c0);
    let high = product6::<C, N>(&a.c1, &b.c1);
    let crossed = product6::<C, N>(&(a.c0 + a.c1), &(b.c0 + b.c1));
    Fq12::new(low + times_v::<C, N>(high), crossed - low - high)
}

/// `a·(b + c·w + d·v·w)`: 17 products of Fq2.
pub(super) fn product_by_five<C: Curve<N>, const N: usize>(
    a: &Fq12<C, N>,
    b: &Fq6<C, N>,
    c: &Fq2<C, N>,
    d: &Fq2<C, N>,
) -> Fq12<C, N> {
    let low = product6::<C, N>(&a.c0, b);
    let high = product6_by_two::<C, N>(&a.c1, c, d);
    let sum = Fq6::new(b.c0 + *c, b.c1 + *d, b.c2);
    let crossed = product6::<C, N>(&(a.c0 + a.c1), &sum);
    Fq12::new(low + times_v::<C, N>(high), crossed - low - high)
}

/// `a·(b + c·w + d·v·w)` with b in Fq2; `None` stands for b = 1. It takes 13 products of Fq2, or 10 with b = 1.
pub(super) fn product_by_three<C: Curve<N>, const N: usize>(
    a: &Fq12<C, N>,
    b: Option<&Fq2<C, N>>,
    c: &Fq2<C, N>,
    d: &Fq2<C, N>,
) -> Fq12<C, N> {
    let low = b.map_or(a.c0, |b| {
        let by_b = |coefficient| fq2::product::<C, N>(coefficient, b);
        Fq6::new(by_b(&a.c0.c0), by_b(&a.c0.c1), by_b(&a.c0.c2))
    });
    let high = product6_by_two::<C, N>(&a.c1, c, d);
    let sum = *c + b.copied().unwrap_or(Fq2::<C, N>::ONE);
    let crossed = product6_by_two::<C, N>(&(a.c0 + a.c1), &sum, d);
    Fq12::new(low + times_v::<C, N>(high), crossed - low - high)
}

/// `a²`, 12 products of Fq2.
pub(super) fn square<C: Curve<N>, const N: usize>(a: &Fq12<C, N>) -> Fq12<C, N> {
    // (a₀ + a₁)·(a₀ + v·a₁) = a₀² + v·a₁² + (1 + v)·a₀·a₁
    let crossed = product6::<C, N>(&a.c0, &a.c1);
    let sum = product6::<C, N>(&(a.c0 + a.c1), &(a.c0 + times_v::<C, N>(a.c1)));
    Fq12::new(sum - crossed - times_v::<C, N>(crossed), crossed.double())
}

/// `a²` in the cyclotomic subgroup, six products of Fq2: Granger, Scott, "Faster Squaring in the
/// Cyclotomic Subgroup of Sixth Degree Extensions" (PKC 2010).
pub(super) fn cyclotomic_square<C: Curve<N>, const N: usize>(a: &Fq12<C, N>) -> Fq12<C, N> {
    // The squares of three elements of Fq4 = Fq2(y), y² = ξ.
    let [a0, a1] = square4::<C, N>(&a.c0.c0, &a.c1.c1);
    let [b0, b1] = square4::<C, N>(&a.c1.c0, &a.c0.c2);
    let [c0, c1] = square4::<C, N>(&a.c0.c1, &a.c1.c2);
    // 3·square ∓ 2·coefficient.
    let less = |square: Fq2<C, N>, coefficient: Fq2<C, N>| (square - coefficient).double() + square;
    let more = |square: Fq2<C, N>, coefficient: Fq2<C, N>| (square + coefficient).double() + square;
    Fq12::new(
        Fq6::new(less(a0, a.c0.c0), less(b0, a.c0.c1), less(c0, a.c0.c2)),
        Fq6::new(
            more(C::times_xi(c1), a.c1.c0),
            more(a1, a.c1.c1),
            more(b1, a.c1.c2),
        ),
    )
}

/// `(a + b·y)²`, y² = ξ.
#[inline(always)]
fn square4<C: Curve<N>, const N: usize>(a: &Fq2<C, N>, b: &Fq2<C, N>) -> [Fq2<C, N>; 2] {
    let crossed = fq2::product::<C, N>(a, b);
    let sum = fq2::product::<C, N>(&(*a + *b), &(C::times_xi(*b) + *a));
    [sum - crossed - C::times_xi(crossed), crossed.double()]
}

/// `1/a`, unless a is zero.
pub(super) fn inverse<C: Curve<N>, const N: usize>(a: &Fq12<C, N>) -> Option<Fq12<C, N>> {
    // 1/(a₀ + a₁·w) = (a₀ − a₁·w)/(a₀² − v·a₁²)
    let squares = [&a.c0, &a.c1].map(|half| product6::<C, N>(half, half));
    let norm = inverse6::<C, N>(&(squares[0] - times_v::<C, N>(squares[1])))?;
    Some(Fq12::new(
        product6::<C, N>(&a.c0, &norm),
        -product6::<C, N>(&a.c1, &norm),
    ))
}

/// `1/a`, unless a is zero: the adjoint over the norm to Fq2.
fn inverse6<C: Curve<N>, const N: usize>(a: &Fq6<C, N>) -> Option<Fq6<C, N>> {
    let product = fq2::product::<C, N>;
    let square = fq2::square::<C, N>;
    let adjoint = [
        square(&a.c0) - C::times_xi(product(&a.c1, &a.c2)),
        C::times_xi(square(&a.c2)) - product(&a.c0, &a.c1),
        square(&a.c1) - product(&a.c0, &a.c2),
    ];
    let crossed = product(&a.c2, &adjoint[1]) + product(&a.c1, &adjoint[2]);
    let norm = product(&a.c0, &adjoint[0]) + C::times_xi(crossed);
    if norm.is_zero() {
        return None;
    }
    let inverse = norm.inverted()?;
    let [c0, c1, c2] = adjoint.map(|coefficient| product(&coefficient, &inverse));
    Some(Fq6::new(c0, c1, c2))
}
