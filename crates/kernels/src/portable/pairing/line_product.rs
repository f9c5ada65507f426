//! A product of lines that is squared between them.

use super::curve::Curve;
use super::fq2::{self, Fq, Fq2};
use super::tower::{Fq6, Fq12, product_by_five, product_by_three, square};

/// A line `y + x·w + constant·w³` at a point of the first group.
pub(super) struct Line<C: Curve<N>, const N: usize> {
    pub(super) y: Fq2<C, N>,
    pub(super) x: Fq2<C, N>,
    pub(super) constant: Fq2<C, N>,
}

/// A line divided by its term in y.
pub(super) struct MonicLine<C: Curve<N>, const N: usize> {
    pub(super) x: Fq2<C, N>,
    pub(super) constant: Fq2<C, N>,
}

/// A point (x, y) of the first group, y not zero, at which monic lines are evaluated.
pub(super) struct MonicArguments<C: Curve<N>, const N: usize> {
    pub(super) x_by_y: Fq<C, N>,
    pub(super) inverse_of_y: Fq<C, N>,
}

/// A product of lines in Fq12. Two lines are multiplied with each other first: ten products of Fq2
/// for a monic line, and 11½ for another one, where one alone takes ten and 13.
pub(super) struct LineProduct<C: Curve<N>, const N: usize> {
    /// The product; `None` stands for one.
    value: Option<Fq12<C, N>>,
    waiting: Option<Line<C, N>>,
    waiting_monic: Option<MonicLine<C, N>>,
}

// === impl MonicArguments ===

impl<C: Curve<N>, const N: usize> MonicArguments<C, N> {
    /// A line divided by its coefficient of y, at this point.
    #[inline(always)]
    pub(super) fn line(&self, x: &Fq2<C, N>, constant: &Fq2<C, N>) -> MonicLine<C, N> {
        MonicLine {
            x: fq2::scaled::<C, N>(x, &self.x_by_y),
            constant: fq2::scaled::<C, N>(constant, &self.inverse_of_y),
        }
    }
}

// === impl LineProduct ===

impl<C: Curve<N>, const N: usize> LineProduct<C, N> {
    pub(super) const fn one() -> Self {
        Self {
            value: None,
            waiting: None,
            waiting_monic: None,
        }
    }

    pub(super) fn square(&mut self) {
        self.multiply_by_waiting();
        self.value = self.value.map(|value| square::<C, N>(&value));
    }

    pub(super) fn multiply(&mut self, line: Line<C, N>) {
        let Some(other) = self.waiting.take() else {
            self.waiting = Some(line);
            return;
        };
        let product = fq2::product::<C, N>;
        let y = product(&line.y, &other.y);
        let x = product(&line.x, &other.x);
        let constant = product(&line.constant, &other.constant);
        let yx = product(&(line.y + line.x), &(other.y + other.x)) - y - x;
        let yc = product(&(line.y + line.constant), &(other.y + other.constant)) - y - constant;
        let xc = product(&(line.x + line.constant), &(other.x + other.constant)) - x - constant;
        self.multiply_by_five(y + C::times_xi(constant), x, xc, yx, yc);
    }

    pub(super) fn multiply_monic(&mut self, line: MonicLine<C, N>) {
        let Some(other) = self.waiting_monic.take() else {
            self.waiting_monic = Some(line);
            return;
        };
        let product = fq2::product::<C, N>;
        let x = product(&line.x, &other.x);
        let constant = product(&line.constant, &other.constant);
        let xc = product(&(line.x + line.constant), &(other.x + other.constant)) - x - constant;
        self.multiply_by_five(
            Fq2::<C, N>::ONE + C::times_xi(constant),
            x,
            xc,
            line.x + other.x,
            line.constant + other.constant,
        );
    }

    /// The product.
    pub(super) fn value(mut self) -> Fq12<C, N> {
        self.multiply_by_waiting();
        self.value.unwrap_or(Fq12::<C, N>::ONE)
    }

    /// Multiplies by two lines' product, of which the coefficients of 1, w², w⁴, w and w³ are given; w⁵
    /// has none.
    #[inline(always)]
    fn multiply_by_five(
        &mut self,
        c0: Fq2<C, N>,
        c2: Fq2<C, N>,
        c4: Fq2<C, N>,
        c1: Fq2<C, N>,
        c3: Fq2<C, N>,
    ) {
        let even = Fq6::new(c0, c2, c4);
        self.value = Some(match &self.value {
            Some(value) => product_by_five::<C, N>(value, &even, &c1, &c3),
            None => Fq12::<C, N>::new(even, Fq6::new(c1, c3, Fq2::<C, N>::ZERO)),
        });
    }

    fn multiply_by_waiting(&mut self) {
        let one = Fq12::<C, N>::ONE;
        if let Some(line) = self.waiting.take() {
            let value = self.value.as_ref().unwrap_or(&one);
            let product = product_by_three::<C, N>(value, Some(&line.y), &line.x, &line.constant);
            self.value = Some(product);
        }
        if let Some(line) = self.waiting_monic.take() {
            let value = self.value.as_ref().unwrap_or(&one);
            let product = product_by_three::<C, N>(value, None, &line.x, &line.constant);
            self.value = Some(product);
        }
    }
}
