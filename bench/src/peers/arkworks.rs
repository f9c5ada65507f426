//! arkworks 0.6: `msm_unchecked` and `Radix2EvaluationDomain`.

use ark_ec::VariableBaseMSM;
use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use proofmill_groth16::{SnarkCurve, VerifyingKey};
use rayon::ThreadPool;

use super::fingerprint;
use crate::msm::Input;
use crate::ntt::{self, Transform};
use crate::versus::{Contender, PeerAnswer, time};

const NAME: &str = "arkworks";

/// Converts a verifying key to ark-groth16's type.
pub(crate) fn verifying_key<E: SnarkCurve>(key: &VerifyingKey<E>) -> ark_groth16::VerifyingKey<E> {
    ark_groth16::VerifyingKey {
        alpha_g1: key.alpha_g1,
        beta_g2: key.beta_g2,
        gamma_g2: key.gamma_g2,
        delta_g2: key.delta_g2,
        gamma_abc_g1: key.instance.clone(),
    }
}

/// The product by arkworks.
pub(crate) fn msm<'a, G: proofmill_kernels::MsmGroup + VariableBaseMSM>(
    input: &'a Input<G>,
    pool: &'a ThreadPool,
) -> PeerAnswer<'a> {
    PeerAnswer::Runs(vec![Contender::in_process(
        NAME,
        || pool.install(|| time(|| G::msm_unchecked(&input.points, &input.scalars))),
        fingerprint::of_point,
    )])
}

/// The transform by arkworks.
pub(crate) fn ntt<'a, F: ark_ff::PrimeField + FftField>(
    input: &'a ntt::Input<F>,
    pool: &'a ThreadPool,
) -> PeerAnswer<'a> {
    let subgroup = Radix2EvaluationDomain::<F>::new(input.values.len());
    let Some(domain) = subgroup.and_then(|subgroup| match input.transform {
        Transform::Forward | Transform::Inverse => Some(subgroup),
        Transform::CosetForward | Transform::CosetInverse => subgroup.get_coset(F::GENERATOR),
    }) else {
        return PeerAnswer::LeftOut("it has no such domain".to_owned());
    };
    PeerAnswer::Runs(vec![Contender::in_process(
        NAME,
        move || {
            let mut values = input.values.clone();
            let (elapsed, ()) = pool.install(|| {
                time(|| match input.transform {
                    Transform::Forward | Transform::CosetForward => {
                        domain.fft_in_place(&mut values);
                    }
                    Transform::Inverse | Transform::CosetInverse => {
                        domain.ifft_in_place(&mut values);
                    }
                })
            });
            (elapsed, values)
        },
        |values| fingerprint::of_values(&values),
    )])
}
