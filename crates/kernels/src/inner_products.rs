//! Inner products of every row of one matrix with every row of another.

use ark_bn254::Fq;
use ark_ff::AdditiveGroup;
use rayon::prelude::*;

use crate::InstructionSet;
use crate::instruction_set::checked;
use crate::portable::inner_product::inner_product;
#[cfg(target_arch = "x86_64")]
use crate::x86_64_avx512ifma::inner_products::Columns;

/// The inner product of row i of `left` and row j of `right` at `i·m + j`, where m is the number of
/// rows of `right` and rows have `length` elements: elements of BN254's base field, which is Grumpkin's
/// scalar field. On all threads of the current rayon pool.
///
/// # Panics
///
/// If `length` is zero, or the elements do not make up whole rows.
pub fn inner_products(left: &[Fq], right: &[Fq], length: usize) -> Vec<Fq> {
    inner_products_on(InstructionSet::current(), left, right, length)
}

/// Like [`inner_products`], on a chosen back end.
///
/// # Panics
///
/// As for [`inner_products`], and if this machine lacks the instructions.
pub fn inner_products_on(set: InstructionSet, left: &[Fq], right: &[Fq], length: usize) -> Vec<Fq> {
    assert!(
        length > 0 && left.len().is_multiple_of(length) && right.len().is_multiple_of(length),
        "{} and {} elements in rows of {length}",
        left.len(),
        right.len()
    );
    let columns = right.len() / length;
    let mut products = vec![Fq::ZERO; left.len() / length * columns];
    if products.is_empty() {
        return products;
    }
    let rows = || left.par_chunks_exact(length);
    let places = products.par_chunks_exact_mut(columns);
    match checked(set) {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512Ifma if columns.is_multiple_of(8) => {
            let right = Columns::<ark_bn254::FqConfig>::new(right, length);
            places
                .zip(rows())
                .for_each(|(places, row)| right.multiply(row, places));
        }
        _ => places.zip(rows()).for_each(|(places, row)| {
            for (place, column) in places.iter_mut().zip(right.chunks_exact(length)) {
                *place = inner_product(row, column);
            }
        }),
    }
    products
}
