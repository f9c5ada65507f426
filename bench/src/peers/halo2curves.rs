//! halo2curves 0.10, with its assembly: `msm_best` and `best_fft`, both on rayon's current pool.
//!
//! Its transform takes no table of roots: it makes one at each call, which is part of its time, as
//! it is for its users.

use ark_ec::short_weierstrass::Projective;
use ark_ec::{AffineRepr, CurveGroup};
use halo2curves::ff::{Field, PrimeField};
use halo2curves::group::Curve;
use halo2curves::group::prime::PrimeCurveAffine;
use halo2curves::{CurveAffine, bls12381, bn256, fft, grumpkin};
use rayon::ThreadPool;

use super::fingerprint::{self, field_bytes};
use crate::msm;
use crate::ntt::{self, Transform};
use crate::versus::{Contender, PeerAnswer, time};

const NAME: &str = "halo2curves";

/// A type of arkworks that halo2curves has as well.
pub(super) trait Same {
    /// halo2curves'.
    type There: Copy + Send + Sync;

    /// The same value there.
    fn there(&self) -> Self::There;

    /// The canonical bytes of [`fingerprint::field_bytes`].
    fn bytes(there: &Self::There) -> Vec<u8>;
}

/// Prime fields, whose canonical bytes are little-endian on both sides.
macro_rules! same_field {
    ($here:ty, $there:ty) => {
        impl Same for $here {
            type There = $there;

            fn there(&self) -> $there {
                let mut repr = <$there as PrimeField>::Repr::default();
                repr.as_mut().copy_from_slice(&field_bytes(self));
                <$there>::from_repr(repr).expect("canonical bytes of the same field")
            }

            fn bytes(there: &$there) -> Vec<u8> {
                there.to_repr().as_ref().to_vec()
            }
        }
    };
}

same_field!(ark_bls12_381::Fq, bls12381::Fq);
same_field!(ark_bls12_381::Fr, bls12381::Fr);
same_field!(ark_bn254::Fq, bn256::Fq);
same_field!(ark_bn254::Fr, bn256::Fr);

/// Quadratic extensions.
macro_rules! same_extension {
    ($here:ty, $there:ty) => {
        impl Same for $here {
            type There = $there;

            fn there(&self) -> $there {
                <$there>::new(self.c0.there(), self.c1.there())
            }

            fn bytes(there: &$there) -> Vec<u8> {
                let part = <<$here as ark_ff::Field>::BasePrimeField as Same>::bytes;
                [part(there.c0()), part(there.c1())].concat()
            }
        }
    };
}

same_extension!(ark_bls12_381::Fq2, bls12381::Fq2);
same_extension!(ark_bn254::Fq2, bn256::Fq2);

/// A group of arkworks' that halo2curves has as well.
pub(super) trait SameGroup: CurveGroup<BaseField: Same, ScalarField: Same> {
    /// halo2curves' affine points.
    type There: CurveAffine<
            Base = <Self::BaseField as Same>::There,
            ScalarExt = <Self::ScalarField as Same>::There,
        >;
}

impl SameGroup for Projective<ark_bls12_381::g1::Config> {
    type There = bls12381::G1Affine;
}
impl SameGroup for Projective<ark_bls12_381::g2::Config> {
    type There = bls12381::G2Affine;
}
impl SameGroup for Projective<ark_bn254::g1::Config> {
    type There = bn256::G1Affine;
}
impl SameGroup for Projective<ark_bn254::g2::Config> {
    type There = bn256::G2Affine;
}
impl SameGroup for Projective<ark_grumpkin::GrumpkinConfig> {
    type There = grumpkin::G1Affine;
}

/// The product by halo2curves.
pub(super) fn msm<'a, G: SameGroup>(
    input: &'a msm::Input<G>,
    pool: &'a ThreadPool,
) -> anyhow::Result<PeerAnswer<'a>> {
    let there = |point: &G::Affine| match point.xy() {
        None => Some(G::There::identity()),
        Some((x, y)) => Option::from(G::There::from_xy(x.there(), y.there())),
    };
    let points: Option<Vec<G::There>> = input.points.iter().map(there).collect();
    let points = points.ok_or_else(|| anyhow::anyhow!("a point is not on its curve"))?;
    let scalars: Vec<_> = input.scalars.iter().map(Same::there).collect();
    Ok(PeerAnswer::Runs(vec![Contender::in_process(
        NAME,
        move || pool.install(|| time(|| halo2curves::msm::msm_best(&scalars, &points))),
        |sum| {
            let coordinates = sum.to_affine().coordinates();
            let bytes = if bool::from(coordinates.is_some()) {
                let point = coordinates.unwrap();
                let mut bytes = G::BaseField::bytes(point.x());
                bytes.extend(G::BaseField::bytes(point.y()));
                bytes
            } else {
                fingerprint::point_bytes(&G::Affine::zero())
            };
            fingerprint::of_bytes([bytes])
        },
    )]))
}

/// The transform by halo2curves, which has the one from coefficients to the subgroup.
pub(super) fn ntt<'a, F: ark_ff::PrimeField + Same<There: Field>>(
    input: &'a ntt::Input<F>,
    pool: &'a ThreadPool,
) -> anyhow::Result<PeerAnswer<'a>> {
    if input.transform != Transform::Forward {
        return Ok(PeerAnswer::LeftOut(
            "it has a forward transform only".to_owned(),
        ));
    }
    let values: Vec<F::There> = input.values.iter().map(Same::there).collect();
    let omega = input.domain.generator().there();
    let log_n = values.len().trailing_zeros();
    Ok(PeerAnswer::Runs(vec![Contender::in_process(
        NAME,
        move || {
            let mut values = values.clone();
            let (elapsed, ()) = pool.install(|| time(|| fft::best_fft(&mut values, omega, log_n)));
            (elapsed, values)
        },
        |values| fingerprint::of_bytes(values.iter().map(F::bytes)),
    )]))
}
