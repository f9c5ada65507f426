//! A product of lines, that is squared between them.

use std::arch::x86_64::__mmask8;

use super::super::field::Fp;
use super::super::vector_field::Layout;
use super::lanes::Element;
use super::lines::{Line, MonicLine};
use super::tower::Tower;

/// A product of lines in Fq12, in one of two layouts: [`Accumulator`](super::accumulator::Accumulator)
/// is eight products, one for each lane; [`Lanes`](super::lanes::Lanes) is one, which is squared faster
/// and takes the lines of a vector one after the other.
///
/// # Safety
///
/// Every function: the instructions of this back end.
pub(super) trait LineProduct<E: Tower<L, N>, const L: usize, const N: usize>: Sized {
    unsafe fn one() -> Self;
    unsafe fn square(&mut self);
    /// Multiplies by the lines in these lanes.
    unsafe fn multiply_by_lines(&mut self, line: &Line<E, L, N>, lanes: __mmask8);
    /// Multiplies by the lines in these lanes; those in others have no term but that in y.
    unsafe fn multiply_by_monic_lines(&mut self, line: &MonicLine<E, L, N>, lanes: __mmask8);
    /// The product, of all lanes, up to a factor that the final exponentiation takes to one.
    unsafe fn value(self) -> Element<E, L, N>
    where
        Fp<E::Base, L, N>: Layout<E::Base, N>;
}
