//! The groups the kernels work in.

use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::Projective;
use ark_ff::PrimeField;

use crate::InstructionSet;
use crate::decompression;
use crate::instruction_set::checked;
use crate::msm::multiply::multiply;
use crate::msm::multiply_each;
use crate::msm::plan::Costs;
use crate::msm::point_kernel::PointKernel;
use crate::msm::prepared::{Prepared, PreparedByKernel};
use crate::msm::{calibrate, fold};
use crate::portable::batch_add;
use crate::portable::points::PortablePoints;
use crate::subgroup::{self, Criterion};
#[cfg(target_arch = "x86_64")]
use crate::x86_64_avx512ifma::{
    decompression::point_of_x_each as vector_point_of_x_each, field::Fp, field2::Quadratic,
    fold::fold as vector_fold, multiply_each::multiply_each as vector_multiply_each,
    points::VectorPoints, subgroup::in_subgroup_each as vector_in_subgroup_each,
};

/// A group of points in short Weierstrass form: G1 and G2 of BLS12-381, BLS12-377 and BN254;
/// Grumpkin, Pallas and Vesta.
pub trait MsmGroup: CurveGroup + sealed::Kernels {
    /// `left[i] += right[i]` for every `i`, at about six multiplications each.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    fn batch_add_assign(left: &mut [Self::Affine], right: &[Self::Affine]);
}

/// In a module of its own so that no other crate can implement [`MsmGroup`].
#[expect(
    unreachable_pub,
    reason = "what a public trait stands on must be public"
)]
mod sealed {
    use super::{Costs, InstructionSet, Prepared, PrimeField};
    use ark_ec::CurveGroup;

    /// A function that returns the scalar of an index, out of Montgomery form.
    pub type ScalarAt<'a, G> = &'a (
            dyn Fn(usize) -> <<G as ark_ec::PrimeGroup>::ScalarField as PrimeField>::BigInt + Sync
        );

    /// A group's back ends.
    pub trait Kernels: CurveGroup {
        fn multiply(
            set: InstructionSet,
            bases: &[Self::Affine],
            scalar: ScalarAt<'_, Self>,
        ) -> Self;

        fn prepare(
            set: InstructionSet,
            bases: &[Self::Affine],
            memory_limit: usize,
        ) -> Box<dyn Prepared<Self>>;

        fn point_bytes(set: InstructionSet) -> usize;

        fn calibrate(set: InstructionSet, bases: &[Self::Affine]) -> Costs;

        /// `numbers[i]·points[i]`, on this thread.
        fn multiply_each_here(
            set: InstructionSet,
            points: &[Self::Affine],
            numbers: &[u128],
        ) -> Vec<Self::Affine>;

        /// `scalars[i]·points[i]`, on this thread.
        fn scale_each_here(
            set: InstructionSet,
            points: &[Self::Affine],
            scalars: &[Self::ScalarField],
        ) -> Vec<Self::Affine>;

        /// `left[i] + scalar·right[i]`, on this thread.
        fn fold_here(
            set: InstructionSet,
            left: &[Self::Affine],
            right: &[Self::Affine],
            scalar: Self::ScalarField,
        ) -> Vec<Self::Affine>;

        /// Whether each point of the curve is in the subgroup, on this thread.
        fn in_subgroup_each_here(set: InstructionSet, points: &[Self::Affine]) -> Vec<bool>;

        /// For each x-coordinate, one of the two points of the curve with it, on this thread; `None` without one.
        fn point_of_x_each_here(
            set: InstructionSet,
            xs: &[Self::BaseField],
        ) -> Vec<Option<Self::Affine>>;
    }
}

/// Implements the groups: a curve's configuration, the field its coordinates are vectors of, and the
/// number of its test for the subgroup, if it has points outside.
macro_rules! groups {
    ($($curve:ty, $vector:ty, $criterion:expr;)*) => {$(
        impl MsmGroup for Projective<$curve> {
            fn batch_add_assign(left: &mut [Self::Affine], right: &[Self::Affine]) {
                batch_add::batch_add_assign(left, right);
            }
        }

        impl sealed::Kernels for Projective<$curve> {
            fn multiply(
                set: InstructionSet,
                bases: &[Self::Affine],
                scalar: sealed::ScalarAt<'_, Self>,
            ) -> Self {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        multiply::<VectorPoints<$curve, $vector>>(bases, scalar)
                    }
                    _ => multiply::<PortablePoints<$curve>>(bases, scalar),
                }
            }

            fn prepare(
                set: InstructionSet,
                bases: &[Self::Affine],
                memory_limit: usize,
            ) -> Box<dyn Prepared<Self>> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => Box::new(
                        PreparedByKernel::<VectorPoints<$curve, $vector>>::new(bases, memory_limit),
                    ),
                    _ => Box::new(PreparedByKernel::<PortablePoints<$curve>>::new(bases, memory_limit)),
                }
            }

            fn point_bytes(set: InstructionSet) -> usize {
                match set {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => VectorPoints::<$curve, $vector>::POINT_BYTES,
                    _ => PortablePoints::<$curve>::POINT_BYTES,
                }
            }

            fn calibrate(set: InstructionSet, bases: &[Self::Affine]) -> Costs {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        calibrate::measure::<VectorPoints<$curve, $vector>>(bases)
                    }
                    _ => calibrate::measure::<PortablePoints<$curve>>(bases),
                }
            }

            fn multiply_each_here(
                set: InstructionSet,
                points: &[Self::Affine],
                numbers: &[u128],
            ) -> Vec<Self::Affine> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        vector_multiply_each::<$curve, $vector>(points, numbers)
                    }
                    _ => multiply_each::portable(points, numbers),
                }
            }

            fn scale_each_here(
                set: InstructionSet,
                points: &[Self::Affine],
                scalars: &[Self::ScalarField],
            ) -> Vec<Self::Affine> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        multiply_each::by_halves(
                            points,
                            scalars,
                            vector_multiply_each::<$curve, $vector>,
                        )
                    }
                    _ => multiply_each::scaled(points, scalars),
                }
            }

            fn fold_here(
                set: InstructionSet,
                left: &[Self::Affine],
                right: &[Self::Affine],
                scalar: Self::ScalarField,
            ) -> Vec<Self::Affine> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        vector_fold::<$curve, $vector>(left, right, scalar)
                    }
                    _ => fold::portable(left, right, scalar),
                }
            }

            fn in_subgroup_each_here(set: InstructionSet, points: &[Self::Affine]) -> Vec<bool> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        vector_in_subgroup_each::<$curve, $vector>(points, $criterion)
                    }
                    _ => subgroup::portable($criterion, points),
                }
            }

            fn point_of_x_each_here(
                set: InstructionSet,
                xs: &[Self::BaseField],
            ) -> Vec<Option<Self::Affine>> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => vector_point_of_x_each::<$curve, $vector>(xs),
                    _ => decompression::portable::<$curve>(xs),
                }
            }
        }
    )*};
}

groups! {
    ark_bls12_381::g1::Config, Fp<ark_bls12_381::FqConfig, 8, 6>,
        Criterion::of_bls12_g1::<ark_bls12_381::Config>();
    ark_bls12_381::g2::Config, Quadratic<ark_bls12_381::Fq2Config, 8, 6>,
        Criterion::of_bls12_g2::<ark_bls12_381::Config>();
    ark_bls12_377::g1::Config, Fp<ark_bls12_377::FqConfig, 8, 6>,
        Criterion::of_bls12_g1::<ark_bls12_377::Config>();
    ark_bls12_377::g2::Config, Quadratic<ark_bls12_377::Fq2Config, 8, 6>,
        Criterion::of_bls12_g2::<ark_bls12_377::Config>();
    ark_bn254::g1::Config, Fp<ark_bn254::FqConfig, 5, 4>,
        Criterion::WholeCurve;
    ark_bn254::g2::Config, Quadratic<ark_bn254::Fq2Config, 5, 4>,
        Criterion::of_bn_g2::<ark_bn254::Config>();
    ark_grumpkin::GrumpkinConfig, Fp<ark_bn254::FrConfig, 5, 4>,
        Criterion::WholeCurve;
    ark_pallas::PallasConfig, Fp<ark_pallas::FqConfig, 5, 4>,
        Criterion::WholeCurve;
    ark_vesta::VestaConfig, Fp<ark_pallas::FrConfig, 5, 4>,
        Criterion::WholeCurve;
}
