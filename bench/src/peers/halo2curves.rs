//! halo2curves 0.10, with its assembly: `msm_best` and `best_fft`, both on rayon's current pool.
//!
//! `best_fft` takes no table of roots but makes one at each call. That is part of the measured time, as
//! it is for the users of halo2curves.

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

/// A field of arkworks that halo2curves has too.
pub(super) trait HasCounterpart {
    /// The type in halo2curves.
    type Counterpart: Copy + Send + Sync;

    /// The same value as halo2curves has it.
    fn counterpart(&self) -> Self::Counterpart;

    /// The canonical bytes of a value, equal to [`fingerprint::field_bytes`] of the same value in arkworks.
    fn bytes(counterpart: &Self::Counterpart) -> Vec<u8>;
}

/// Prime fields, whose canonical bytes are little-endian on both sides.
macro_rules! field_counterpart {
    ($arkworks:ty, $counterpart:ty) => {
        impl HasCounterpart for $arkworks {
            type Counterpart = $counterpart;

            fn counterpart(&self) -> $counterpart {
                let mut repr = <$counterpart as PrimeField>::Repr::default();
                repr.as_mut().copy_from_slice(&field_bytes(self));
                <$counterpart>::from_repr(repr).expect("canonical bytes of the same field")
            }

            fn bytes(counterpart: &$counterpart) -> Vec<u8> {
                counterpart.to_repr().as_ref().to_vec()
            }
        }
    };
}

field_counterpart!(ark_bls12_381::Fq, bls12381::Fq);
field_counterpart!(ark_bls12_381::Fr, bls12381::Fr);
field_counterpart!(ark_bn254::Fq, bn256::Fq);
field_counterpart!(ark_bn254::Fr, bn256::Fr);

/// Quadratic extensions.
macro_rules! extension_counterpart {
    ($arkworks:ty, $counterpart:ty) => {
        impl HasCounterpart for $arkworks {
            type Counterpart = $counterpart;

            fn counterpart(&self) -> $counterpart {
                <$counterpart>::new(self.c0.counterpart(), self.c1.counterpart())
            }

            fn bytes(counterpart: &$counterpart) -> Vec<u8> {
                let part = <<$arkworks as ark_ff::Field>::BasePrimeField as HasCounterpart>::bytes;
                [part(counterpart.c0()), part(counterpart.c1())].concat()
            }
        }
    };
}

extension_counterpart!(ark_bls12_381::Fq2, bls12381::Fq2);
extension_counterpart!(ark_bn254::Fq2, bn256::Fq2);

/// A group of arkworks that halo2curves has too.
pub(super) trait GroupWithCounterpart:
    CurveGroup<BaseField: HasCounterpart, ScalarField: HasCounterpart>
{
    /// Affine points of the group in halo2curves.
    type Counterpart: CurveAffine<
            Base = <Self::BaseField as HasCounterpart>::Counterpart,
            ScalarExt = <Self::ScalarField as HasCounterpart>::Counterpart,
        >;
}

impl GroupWithCounterpart for Projective<ark_bls12_381::g1::Config> {
    type Counterpart = bls12381::G1Affine;
}
impl GroupWithCounterpart for Projective<ark_bls12_381::g2::Config> {
    type Counterpart = bls12381::G2Affine;
}
impl GroupWithCounterpart for Projective<ark_bn254::g1::Config> {
    type Counterpart = bn256::G1Affine;
}
impl GroupWithCounterpart for Projective<ark_bn254::g2::Config> {
    type Counterpart = bn256::G2Affine;
}
impl GroupWithCounterpart for Projective<ark_grumpkin::GrumpkinConfig> {
    type Counterpart = grumpkin::G1Affine;
}

/// The product by halo2curves.
pub(super) fn msm<'a, G: GroupWithCounterpart>(
    input: &'a msm::Input<G>,
    pool: &'a ThreadPool,
) -> anyhow::Result<PeerAnswer<'a>> {
    let counterpart = |point: &G::Affine| match point.xy() {
        None => Some(G::Counterpart::identity()),
        Some((x, y)) => Option::from(G::Counterpart::from_xy(x.counterpart(), y.counterpart())),
    };
    let points: Option<Vec<G::Counterpart>> = input.points.iter().map(counterpart).collect();
    let points = points.ok_or_else(|| anyhow::anyhow!("a point is not on its curve"))?;
    let scalars: Vec<_> = input
        .scalars
        .iter()
        .map(HasCounterpart::counterpart)
        .collect();
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

/// The transform by halo2curves, which supports only the one from coefficients to the subgroup.
pub(super) fn ntt<'a, F: ark_ff::PrimeField + HasCounterpart<Counterpart: Field>>(
    input: &'a ntt::Input<F>,
    pool: &'a ThreadPool,
) -> anyhow::Result<PeerAnswer<'a>> {
    if input.transform != Transform::Forward {
        return Ok(PeerAnswer::LeftOut(
            "it has a forward transform only".to_owned(),
        ));
    }
    let values: Vec<F::Counterpart> = input
        .values
        .iter()
        .map(HasCounterpart::counterpart)
        .collect();
    let omega = input.domain.generator().counterpart();
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
