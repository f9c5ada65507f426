//! The fields against arkworks'.

use ark_ff::{AdditiveGroup, Field};
use ark_std::test_rng;

use super::field::Fp;
use super::field2::Quadratic;
use super::vector_field::VectorField;
use crate::InstructionSet;

/// Edge values first, then random ones.
fn samples<F: Field>() -> Vec<F> {
    let mut rng = test_rng();
    let two = F::from(2u64);
    let mut values = vec![
        F::ZERO,
        F::ONE,
        -F::ONE,
        two.pow([52]),
        two.pow([255]),
        -two,
        two.inverse().expect("an odd characteristic"),
    ];
    values.extend((0..1017).map(|_| F::rand(&mut rng)));
    values
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
fn check<V: VectorField>() {
    const LANES: u8 = 0b1010_0101;
    let values = samples::<V::Ark>();
    let mut shifted = values.clone();
    shifted.rotate_left(3);
    for (a, b) in values.chunks_exact(8).zip(shifted.chunks_exact(8)) {
        let (a, b): ([_; 8], [_; 8]) =
            (std::array::from_fn(|i| a[i]), std::array::from_fn(|i| b[i]));
        let each = |f: &dyn Fn(V::Ark, V::Ark) -> V::Ark| {
            std::array::from_fn::<_, 8, _>(|i| f(a[i], b[i]))
        };
        let in_lanes = |yes: &dyn Fn(usize) -> V::Ark, no: &dyn Fn(usize) -> V::Ark| {
            std::array::from_fn::<_, 8, _>(|i| if LANES >> i & 1 == 1 { yes(i) } else { no(i) })
        };
        // SAFETY: the features are enabled on this function; the places are elements of arrays.
        unsafe {
            let x = V::load_ark(a.each_ref().map(std::ptr::from_ref));
            let y = V::load_ark(b.each_ref().map(std::ptr::from_ref));
            assert_eq!(x.to_ark(), a);
            assert_eq!(V::mul(x, y).to_ark(), each(&|a, b| a * b));
            assert_eq!(V::square(x).to_ark(), each(&|a, _| a.square()));
            assert_eq!(V::sub(x, y).to_ark(), each(&|a, b| a - b));
            // Both factors as wide as a difference of tight values.
            let (d, e) = (V::sub(x, y), V::sub(y, V::mul(x, y)));
            assert_eq!(V::mul(d, e).to_ark(), each(&|a, b| (a - b) * (b - a * b)));
            assert_eq!(V::add_reduced(x, y).to_ark(), each(&|a, b| a + b));
            assert_eq!(
                V::sub_two_reduced(x, y, y).to_ark(),
                each(&|a, b| a - b - b)
            );
            assert_eq!(
                V::sub_signed(x, y, LANES).to_ark(),
                in_lanes(&|i| a[i] + b[i], &|i| a[i] - b[i])
            );
            assert_eq!(
                V::sub_signed_reduced(x, y, LANES).to_ark(),
                in_lanes(&|i| a[i] + b[i], &|i| a[i] - b[i])
            );
            assert_eq!(
                V::select(LANES, y, x).to_ark(),
                in_lanes(&|i| a[i], &|i| b[i])
            );
            assert_eq!(V::splat(&a[3]).to_ark(), [a[3]; 8]);

            for (value, ark) in [
                (x, a),
                (V::sub(x, x), [V::Ark::ZERO; 8]),
                (V::sub(y, V::mul(x, y)), each(&|a, b| b - a * b)),
            ] {
                let zeros = ark
                    .iter()
                    .rev()
                    .fold(0, |mask, v| mask << 1 | u8::from(*v == V::Ark::ZERO));
                assert_eq!(value.zero_lanes(), zeros);
            }

            let mut memory = vec![u64::MAX; 8 * (V::WORDS + 1)];
            let places: [*mut u64; 8] =
                std::array::from_fn(|i| memory.as_mut_ptr().add(i * (V::WORDS + 1)));
            x.store(places);
            assert_eq!(V::load(places.map(|p| p.cast_const())).to_ark(), a);
            for row in memory.chunks_exact_mut(V::WORDS + 1) {
                assert_eq!(
                    row[V::WORDS],
                    u64::MAX,
                    "nothing is written beyond an element"
                );
                V::negate_stored(&mut row[..V::WORDS]);
            }
            assert_eq!(
                V::load(places.map(|p| p.cast_const())).to_ark(),
                a.map(|a| -a)
            );
        }
    }
    // SAFETY: the features are enabled on this function.
    unsafe {
        assert_eq!(V::zero().to_ark(), [V::Ark::ZERO; 8]);
        assert_eq!(V::one().to_ark(), [V::Ark::ONE; 8]);
    }
}

#[test]
fn arithmetic_is_that_of_arkworks() {
    if !InstructionSet::Avx512Ifma.is_available() {
        eprintln!("skipped: this machine has no AVX-512 IFMA");
        return;
    }
    // SAFETY: availability was checked.
    unsafe {
        check::<Fp<ark_bls12_381::FqConfig, 8, 6>>();
        check::<Fp<ark_bls12_377::FqConfig, 8, 6>>();
        check::<Fp<ark_bls12_381::FrConfig, 5, 4>>();
        check::<Fp<ark_bls12_377::FrConfig, 5, 4>>();
        check::<Fp<ark_bn254::FqConfig, 5, 4>>();
        check::<Fp<ark_bn254::FrConfig, 5, 4>>();
        check::<Quadratic<ark_bls12_381::Fq2Config, 8, 6>>();
        check::<Quadratic<ark_bls12_377::Fq2Config, 8, 6>>();
        check::<Quadratic<ark_bn254::Fq2Config, 5, 4>>();
    }
}
