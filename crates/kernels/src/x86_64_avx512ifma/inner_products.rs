//! Inner products with eight rows side by side: sums of unreduced products.

use std::arch::x86_64::*;

use super::field::Fp;
use super::modulus::{LIMB_BITS, Modulus, Scalar, limbs};
use super::transpose::store_8x4;
use super::vector_field::VectorField;
use crate::InstructionSet;
use crate::instruction_set::checked;

/// Limbs of an element.
const L: usize = 5;
/// Products that are summed up before a reduction: each is below 1.3·p², and p/R below 1/35, so that
/// their sum is reduced to less than 64·1.3/35 + 1 = 3.4 times p. A limb of the sum has at most ten
/// terms below 2⁵² of each product, which is less than 2⁶² with those of the reduction.
const TERMS: usize = 64;

/// Rows of a matrix, eight side by side.
pub(crate) struct Columns<P> {
    /// `length` vectors for each eight rows: tight, in this back end's form.
    vectors: Vec<Fp<P, 5, 4>>,
    length: usize,
}

// === impl Columns ===

impl<P: Modulus<5, 4>> Columns<P> {
    /// Converts rows of `length` elements, whose number is a multiple of eight.
    ///
    /// # Panics
    ///
    /// If their number is not a multiple of eight, or this machine lacks the instructions.
    pub(crate) fn new(rows: &[Scalar<P, 4>], length: usize) -> Self {
        checked(InstructionSet::Avx512Ifma);
        assert_eq!(rows.len() % (8 * length), 0, "eight rows side by side");
        let mut vectors = Vec::with_capacity(rows.len() / 8);
        for rows in rows.chunks_exact(8 * length) {
            // SAFETY: the instructions are there; eight rows of elements.
            unsafe { load(rows, length, &mut vectors) };
        }
        Self { vectors, length }
    }

    /// The inner products of a row with all of these.
    ///
    /// # Panics
    ///
    /// If the row has another length, or there is not a place for each product.
    pub(crate) fn multiply(&self, row: &[Scalar<P, 4>], products: &mut [Scalar<P, 4>]) {
        assert_eq!(row.len(), self.length, "a row of the same length");
        assert_eq!(
            products.len() * self.length,
            self.vectors.len() * 8,
            "a place for each"
        );
        let row: Vec<[u64; L]> = row.iter().map(|element| limbs(&element.0.0)).collect();
        let vectors = self.vectors.chunks_exact(self.length);
        for (products, vectors) in products.as_chunks_mut::<8>().0.iter_mut().zip(vectors) {
            // SAFETY: a value of this type is only made where the instructions are; there are as many
            // vectors as elements of the row.
            unsafe { multiply_eight(&row, vectors, products) };
        }
    }
}

/// # Safety
///
/// The instructions of this back end; there are `8·length` elements.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn load<P: Modulus<5, 4>>(
    rows: &[Scalar<P, 4>],
    length: usize,
    vectors: &mut Vec<Fp<P, 5, 4>>,
) {
    for i in 0..length {
        let places = std::array::from_fn(|lane| &raw const rows[lane * length + i]);
        // SAFETY: as the caller promises; the places are elements.
        vectors.push(unsafe { Fp::load_ark(places) });
    }
}

/// The row is in arkworks' form, a·2²⁵⁶, and the vectors are b·R: so the sum divided by R is in
/// arkworks' form.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn multiply_eight<P: Modulus<5, 4>>(
    row: &[[u64; L]],
    vectors: &[Fp<P, 5, 4>],
    products: &mut [Scalar<P, 4>; 8],
) {
    // SAFETY: register operations, and writes of the 32 bytes that an element of four words is: the
    // pointer is taken field by field, so no layout is assumed.
    unsafe {
        let mut total = Fp::<P, 5, 4>::zero_limbs();
        for (row, vectors) in row.chunks(TERMS).zip(vectors.chunks(TERMS)) {
            let mut sum = [_mm512_setzero_si512(); 2 * L];
            for (element, vector) in row.iter().zip(vectors) {
                add_product(&mut sum, element, vector);
            }
            // Below 3.4 and 1.13.
            total = Fp::add_raw(total, reduce_sum(sum)).reduce();
        }
        let places = products
            .each_mut()
            .map(|product| (&raw mut product.0.0).cast());
        store_8x4(total.canonical().to_words(), places);
    }
}

/// `sum += element·vector`, without carries.
///
/// # Safety
///
/// The instructions of this back end; so below.
#[inline(always)]
unsafe fn add_product<P: Modulus<5, 4>>(
    sum: &mut [__m512i; 2 * L],
    element: &[u64; L],
    vector: &Fp<P, 5, 4>,
) {
    // SAFETY: register operations only.
    unsafe {
        for (i, limb) in element.iter().enumerate() {
            let limb = _mm512_set1_epi64(*limb as i64);
            for (j, other) in vector.limbs.iter().enumerate() {
                sum[i + j] = _mm512_madd52lo_epu64(sum[i + j], limb, *other);
                sum[i + j + 1] = _mm512_madd52hi_epu64(sum[i + j + 1], limb, *other);
            }
        }
    }
}

/// The sum divided by R, carried: see [`TERMS`].
#[inline(always)]
unsafe fn reduce_sum<P: Modulus<5, 4>>(mut sum: [__m512i; 2 * L]) -> Fp<P, 5, 4> {
    // SAFETY: register operations only.
    unsafe {
        let zero = _mm512_setzero_si512();
        let inverse = _mm512_set1_epi64(P::P_INVERSE as i64);
        for i in 0..L {
            // The low 52 bits of the limb count.
            let quotient = _mm512_madd52lo_epu64(zero, sum[i], inverse);
            for (j, limb) in P::P.iter().enumerate() {
                let limb = _mm512_set1_epi64(*limb as i64);
                sum[i + j] = _mm512_madd52lo_epu64(sum[i + j], quotient, limb);
                sum[i + j + 1] = _mm512_madd52hi_epu64(sum[i + j + 1], quotient, limb);
            }
            // The limb is now 0 mod 2^52: it is dropped, except for its carry.
            sum[i + 1] = _mm512_add_epi64(sum[i + 1], _mm512_srli_epi64::<LIMB_BITS>(sum[i]));
        }
        Fp::from_limbs([sum[5], sum[6], sum[7], sum[8], sum[9]]).carry()
    }
}
