//! blst 0.3: Pippenger's algorithm over affine points. With one thread, we call blst's C function, as
//! its Rust binding does on a machine of one core. With more threads, we call the binding, whose
//! pool always has a thread for each core that this process may use.

use ark_ec::AffineRepr;
use blst::{
    MultiPoint, blst_fp, blst_fp2, blst_fp12, blst_p1, blst_p1_affine, blst_p2, blst_p2_affine,
};
use rayon::ThreadPool;

use super::fingerprint::{self, field_bytes};
use crate::msm::Input;
use crate::pairing;
use crate::versus::{Contender, PeerAnswer, time};

const NAME: &str = "blst";

/// Bits of a scalar.
const SCALAR_BITS: usize = 255;

/// The product in the first group.
pub(super) fn msm_g1<'a>(
    input: &'a Input<ark_bls12_381::G1Projective>,
    pool: &'a ThreadPool,
) -> anyhow::Result<PeerAnswer<'a>> {
    let points: Vec<blst_p1_affine> = input.points.iter().map(p1).collect();
    let scalars = scalar_bytes(&input.scalars);
    Ok(offer(pool, Coordinates::fingerprint, move |threads| {
        if threads == 1 {
            pippenger_g1(&points, &scalars)
        } else {
            points[..].mult(&scalars, SCALAR_BITS)
        }
    }))
}

/// The product in the second group.
pub(super) fn msm_g2<'a>(
    input: &'a Input<ark_bls12_381::G2Projective>,
    pool: &'a ThreadPool,
) -> anyhow::Result<PeerAnswer<'a>> {
    let points: Vec<blst_p2_affine> = input.points.iter().map(p2).collect();
    let scalars = scalar_bytes(&input.scalars);
    Ok(offer(pool, Coordinates::fingerprint, move |threads| {
        if threads == 1 {
            pippenger_g2(&points, &scalars)
        } else {
            points[..].mult(&scalars, SCALAR_BITS)
        }
    }))
}

/// The product of pairings.
pub(super) fn pairing<'a>(
    input: &'a pairing::Input<ark_bls12_381::Bls12_381>,
    pool: &'a ThreadPool,
) -> anyhow::Result<PeerAnswer<'a>> {
    let left: Vec<blst_p1_affine> = input.left.iter().map(p1).collect();
    let right: Vec<blst_p2_affine> = input.right.iter().map(p2).collect();
    let verdict = |product: blst_fp12| {
        let one = product == blst_fp12::default();
        if one { "one" } else { "not one" }.to_owned()
    };
    Ok(offer(pool, verdict, move |threads| {
        let product = if threads == 1 {
            miller_loop(&left, &right)
        } else {
            blst_fp12::miller_loop_n(&right, &left)
        };
        product.final_exp()
    }))
}

/// A contender that calls `work` with the number of threads, if blst can use that many.
fn offer<'a, R>(
    pool: &ThreadPool,
    fingerprint: impl Fn(R) -> String + 'a,
    work: impl Fn(usize) -> R + 'a,
) -> PeerAnswer<'a> {
    let threads = pool.current_num_threads();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if threads != 1 && threads != cores {
        return PeerAnswer::LeftOut(format!("it takes one thread or all {cores}"));
    }
    PeerAnswer::Runs(vec![Contender::in_process(
        NAME,
        move || time(|| work(threads)),
        fingerprint,
    )])
}

/// The product of Miller loops by blst's C function, on this thread.
fn miller_loop(left: &[blst_p1_affine], right: &[blst_p2_affine]) -> blst_fp12 {
    assert_eq!(left.len(), right.len(), "pairs");
    let mut product = blst_fp12::default();
    let left_list = [left.as_ptr(), std::ptr::null()];
    let right_list = [right.as_ptr(), std::ptr::null()];
    // SAFETY: the lists end with a null pointer, which means that what the first one points to is
    // contiguous; both lists have `left.len()` points.
    #[expect(unsafe_code, reason = "the Rust binding has no call for one thread")]
    unsafe {
        blst::blst_miller_loop_n(
            &mut product,
            right_list.as_ptr(),
            left_list.as_ptr(),
            left.len(),
        );
    }
    product
}

fn p1(point: &ark_bls12_381::G1Affine) -> blst_p1_affine {
    if point.is_zero() {
        return blst_p1_affine::default();
    }
    blst_p1_affine {
        x: fp(&point.x),
        y: fp(&point.y),
    }
}

fn p2(point: &ark_bls12_381::G2Affine) -> blst_p2_affine {
    let fp2 = |value: &ark_bls12_381::Fq2| blst_fp2 {
        fp: [fp(&value.c0), fp(&value.c1)],
    };
    if point.is_zero() {
        return blst_p2_affine::default();
    }
    blst_p2_affine {
        x: fp2(&point.x),
        y: fp2(&point.y),
    }
}

/// Converts a field element, which both libraries keep in Montgomery form with the same radix.
fn fp(value: &ark_bls12_381::Fq) -> blst_fp {
    blst_fp { l: value.0.0 }
}

fn scalar_bytes(scalars: &[ark_bls12_381::Fr]) -> Vec<u8> {
    scalars.iter().flat_map(field_bytes).collect()
}

/// A projective point of blst, as a result to compare.
trait Coordinates: Sized {
    /// The affine coordinates in the encoding of [`fingerprint::point_bytes`].
    fn bytes(&self) -> Vec<u8>;

    /// The fingerprint of the point, equal to [`fingerprint::of_point`] of the same point in arkworks.
    fn fingerprint(self) -> String {
        fingerprint::of_bytes([self.bytes()])
    }
}

/// Defines a product by blst's C function for one group. The function takes lists of pointers: a list of
/// a pointer to the first element and a null pointer means that the elements are contiguous.
macro_rules! pippenger {
    ($name:ident, $affine:ty, $point:ty, $scratch:path, $multiply:path, $to_affine:path,
     $infinite:path, $here:ty, |$coordinate:ident| $bytes:expr) => {
        /// The product by blst's C function, on this thread.
        fn $name(points: &[$affine], scalars: &[u8]) -> $point {
            let mut sum = <$point>::default();
            let point_list = [points.as_ptr(), std::ptr::null()];
            let scalar_list = [scalars.as_ptr(), std::ptr::null()];
            assert_eq!(scalars.len(), 32 * points.len(), "a scalar for each point");
            // SAFETY: the lists end with a null pointer, which means that what the first one
            // points to is contiguous; there are as many scalars of 32 bytes as points, and the
            // scratch space, in words of 8 bytes, is as long as blst says it must be.
            #[expect(unsafe_code, reason = "the Rust binding has no call for one thread")]
            unsafe {
                let mut scratch = vec![0_u64; $scratch(points.len()).div_ceil(8)];
                $multiply(
                    &mut sum,
                    point_list.as_ptr(),
                    points.len(),
                    scalar_list.as_ptr(),
                    SCALAR_BITS,
                    scratch.as_mut_ptr(),
                );
            }
            sum
        }

        impl Coordinates for $point {
            fn bytes(&self) -> Vec<u8> {
                let mut affine = <$affine>::default();
                // SAFETY: both are valid points of blst's own types.
                #[expect(unsafe_code, reason = "blst has no safe call for it")]
                unsafe {
                    if $infinite(self) {
                        return fingerprint::point_bytes(&<$here>::identity());
                    }
                    $to_affine(&mut affine, self);
                }
                let [x, y] = [affine.x, affine.y].map(|$coordinate| $bytes);
                [x, y].concat()
            }
        }
    };
}

pippenger!(
    pippenger_g1,
    blst_p1_affine,
    blst_p1,
    blst::blst_p1s_mult_pippenger_scratch_sizeof,
    blst::blst_p1s_mult_pippenger,
    blst::blst_p1_to_affine,
    blst::blst_p1_is_inf,
    ark_bls12_381::G1Affine,
    |coordinate| fp_bytes(&coordinate)
);
pippenger!(
    pippenger_g2,
    blst_p2_affine,
    blst_p2,
    blst::blst_p2s_mult_pippenger_scratch_sizeof,
    blst::blst_p2s_mult_pippenger,
    blst::blst_p2_to_affine,
    blst::blst_p2_is_inf,
    ark_bls12_381::G2Affine,
    |coordinate| coordinate.fp.map(|part| fp_bytes(&part)).concat()
);

fn fp_bytes(value: &blst_fp) -> Vec<u8> {
    field_bytes(&ark_bls12_381::Fq::new_unchecked(ark_ff::BigInt(value.l)))
}
