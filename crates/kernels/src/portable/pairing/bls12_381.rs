//! Pairings on BLS12-381 with blst's arithmetic, which is assembly.
//!
//! The Miller loop is this crate's, not blst's, so that any number of pairs share the squarings, lines of
//! points may be precomputed, and a line that does not exist is detected.
#![expect(unsafe_code, reason = "blst is a library in C")]

use ark_bls12_381::{Bls12_381, Config, Fq, Fq2, Fq6, Fq12, G1Affine, G2Affine};
use ark_ec::bls12::Bls12Config;
use ark_ec::pairing::Pairing;
use ark_ff::{AdditiveGroup, BigInt, BitIteratorBE, Field, Zero};
use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12, blst_p2_affine};

/// A point's lines in the order of the loop, each with its constant, its coefficient of x, and that of
/// y.
pub(crate) type Lines = Vec<blst_fp6>;

/// The doublings and additions of the loop: one line for each.
const LINES: usize = 68;

/// Pairs that share squarings. Their lines stay in a core's second-level cache.
const CHUNK: usize = 32;

/// A point of the first group as lines take it: −2x and 2y.
struct Arguments {
    minus_two_x: blst_fp,
    two_y: blst_fp,
}

/// A point's lines. `None` if one of them has no term in y: the point is not in the subgroup.
pub(crate) fn lines(point: &G2Affine) -> Option<Lines> {
    let point = blst_p2_affine {
        x: fp2(&point.x),
        y: fp2(&point.y),
    };
    let mut lines = vec![blst_fp6::default(); LINES];
    // SAFETY: blst writes 68 lines, and reads one point.
    unsafe { blst::blst_precompute_lines(lines.as_mut_ptr(), &raw const point) };
    let without_y = lines.iter().any(|line| line.fp2[2] == blst_fp2::default());
    (!without_y).then_some(lines)
}

/// The product of the pairs' Miller loops, up to a factor that the final exponentiation takes to one.
pub(crate) fn miller_loop(pairs: &[(G1Affine, G2Affine)], fixed: &[(G1Affine, &Lines)]) -> Fq12 {
    let mut product = Fq12::ONE;
    for chunk in fixed.chunks(CHUNK) {
        product *= product_of_lines(chunk);
    }
    // Points of small order: blst's formulas and arkworks' differ after a vertical line.
    let mut others = (Vec::new(), Vec::new());
    for chunk in pairs.chunks(CHUNK) {
        let lines: Vec<Option<Lines>> = chunk.iter().map(|(_, right)| lines(right)).collect();
        let mut with_lines = Vec::with_capacity(chunk.len());
        for ((left, right), lines) in chunk.iter().zip(&lines) {
            if let Some(lines) = lines {
                with_lines.push((*left, lines));
            } else {
                others.0.push(*left);
                others.1.push(*right);
            }
        }
        product *= product_of_lines(&with_lines);
    }
    if !others.0.is_empty() {
        product *= Bls12_381::multi_miller_loop(others.0, others.1).0;
    }
    product
}

/// The final exponentiation as arkworks has it; `None` of zero.
pub(crate) fn final_exponentiation(value: &Fq12) -> Option<Fq12> {
    if value.is_zero() {
        return None;
    }
    let mut power = fp12(value);
    // SAFETY: blst reads one element, and writes it.
    unsafe {
        let power = &raw mut power;
        blst::blst_final_exp(power, power);
    }
    Some(ark_fp12(&power))
}

fn product_of_lines(pairs: &[(G1Affine, &Lines)]) -> Fq12 {
    if pairs.is_empty() {
        return Fq12::ONE;
    }
    let arguments: Vec<Arguments> = pairs.iter().map(|pair| Arguments::new(&pair.0)).collect();
    let mut product = fp12(&Fq12::ONE);
    let mut next = 0;
    let mut multiply = |product: &mut blst_fp12| {
        for ((_, lines), at) in pairs.iter().zip(&arguments) {
            let line = at.line(&lines[next]);
            let product = &raw mut *product;
            // SAFETY: blst reads two elements, and writes the first.
            unsafe { blst::blst_fp12_mul_by_xy00z0(product, product, &raw const line) };
        }
        next += 1;
    };
    for (i, bit) in BitIteratorBE::without_leading_zeros(Config::X)
        .skip(1)
        .enumerate()
    {
        if i > 0 {
            let product = &raw mut product;
            // SAFETY: blst reads one element, and writes it.
            unsafe { blst::blst_fp12_sqr(product, product) };
        }
        multiply(&mut product);
        if bit {
            multiply(&mut product);
        }
    }
    let mut product = ark_fp12(&product);
    // The curve's parameter is negative.
    product.conjugate_in_place();
    product
}

// === impl Arguments ===

impl Arguments {
    fn new(point: &G1Affine) -> Self {
        Self {
            minus_two_x: fp(&-point.x.double()),
            two_y: fp(&point.y.double()),
        }
    }

    /// A line at this point.
    fn line(&self, line: &blst_fp6) -> blst_fp6 {
        let [constant, x, y] = &line.fp2;
        blst_fp6 {
            fp2: [
                *constant,
                scaled(x, &self.minus_two_x),
                scaled(y, &self.two_y),
            ],
        }
    }
}

fn scaled(element: &blst_fp2, factor: &blst_fp) -> blst_fp2 {
    let mut product = blst_fp2::default();
    for (out, coefficient) in product.fp.iter_mut().zip(&element.fp) {
        // SAFETY: blst reads two elements, and writes one.
        unsafe { blst::blst_fp_mul(out, coefficient, factor) };
    }
    product
}

// blst and arkworks have the same tower, and the same words: Montgomery form for R = 2³⁸⁴.

fn fp(element: &Fq) -> blst_fp {
    blst_fp { l: element.0.0 }
}

fn fp2(element: &Fq2) -> blst_fp2 {
    blst_fp2 {
        fp: [fp(&element.c0), fp(&element.c1)],
    }
}

fn fp6(element: &Fq6) -> blst_fp6 {
    blst_fp6 {
        fp2: [fp2(&element.c0), fp2(&element.c1), fp2(&element.c2)],
    }
}

fn fp12(element: &Fq12) -> blst_fp12 {
    blst_fp12 {
        fp6: [fp6(&element.c0), fp6(&element.c1)],
    }
}

fn ark_fp(element: &blst_fp) -> Fq {
    Fq::new_unchecked(BigInt(element.l))
}

fn ark_fp2(element: &blst_fp2) -> Fq2 {
    Fq2::new(ark_fp(&element.fp[0]), ark_fp(&element.fp[1]))
}

fn ark_fp6(element: &blst_fp6) -> Fq6 {
    let [c0, c1, c2] = &element.fp2;
    Fq6::new(ark_fp2(c0), ark_fp2(c1), ark_fp2(c2))
}

fn ark_fp12(element: &blst_fp12) -> Fq12 {
    Fq12::new(ark_fp6(&element.fp6[0]), ark_fp6(&element.fp6[1]))
}
