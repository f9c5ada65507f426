//! The peers that are only built with the feature `peers`, by the types they have.

use ark_ff::PrimeField;
use proofmill_kernels::MsmGroup;
use proofmill_kernels::pairing::PairingCurve;
use rayon::ThreadPool;

use crate::msm;
use crate::ntt;
use crate::pairing;
use crate::versus::PeerAnswer;

/// The answer of a peer for a group or a field that it does not support.
fn unsupported<'a>() -> PeerAnswer<'a> {
    if cfg!(feature = "peers") {
        PeerAnswer::LeftOut("it does not have this group or field".to_owned())
    } else {
        PeerAnswer::Missing("this bench was built without `--features peers`".to_owned())
    }
}

/// A group, and the optional peers that can multiply in it.
pub(crate) trait MsmPeers: MsmGroup {
    /// The product by blst.
    fn blst<'a>(_: &'a msm::Input<Self>, _: &'a ThreadPool) -> anyhow::Result<PeerAnswer<'a>> {
        Ok(unsupported())
    }

    /// The product by halo2curves.
    fn halo2curves<'a>(
        _: &'a msm::Input<Self>,
        _: &'a ThreadPool,
    ) -> anyhow::Result<PeerAnswer<'a>> {
        Ok(unsupported())
    }
}

/// A field, and the optional peer that can transform over it.
pub(crate) trait NttPeers: PrimeField {
    /// The transform by halo2curves.
    fn halo2curves<'a>(
        _: &'a ntt::Input<Self>,
        _: &'a ThreadPool,
    ) -> anyhow::Result<PeerAnswer<'a>> {
        Ok(unsupported())
    }
}

/// A pairing, and the optional peer that has it.
pub(crate) trait PairingPeers: PairingCurve {
    /// The product by blst.
    fn blst<'a>(_: &'a pairing::Input<Self>, _: &'a ThreadPool) -> anyhow::Result<PeerAnswer<'a>> {
        Ok(unsupported())
    }
}

#[cfg(not(feature = "peers"))]
mod absent {
    impl<E: super::PairingCurve> super::PairingPeers for E {}
    impl<G: super::MsmGroup> super::MsmPeers for G {}
    impl<F: super::PrimeField> super::NttPeers for F {}
}

#[cfg(feature = "peers")]
mod present {
    use ark_ec::short_weierstrass::Projective;

    use super::{MsmPeers, NttPeers, PairingPeers, PeerAnswer, ThreadPool, msm, ntt, pairing};
    use crate::peers::{blst, halo2curves};

    /// Implements [`MsmPeers`] for the group of a curve, with the peers that support it.
    macro_rules! impl_msm_peers {
        ($curve:ty $(, $peer:ident: $function:path)*) => {
            impl MsmPeers for Projective<$curve> {
                $(fn $peer<'a>(
                    input: &'a msm::Input<Self>,
                    pool: &'a ThreadPool,
                ) -> anyhow::Result<PeerAnswer<'a>> {
                    $function(input, pool)
                })*
            }
        };
    }

    impl_msm_peers!(ark_bls12_381::g1::Config, blst: blst::msm_g1, halo2curves: halo2curves::msm);
    impl_msm_peers!(ark_bls12_381::g2::Config, blst: blst::msm_g2, halo2curves: halo2curves::msm);
    impl_msm_peers!(ark_bls12_377::g1::Config);
    impl_msm_peers!(ark_bls12_377::g2::Config);
    impl_msm_peers!(ark_bn254::g1::Config, halo2curves: halo2curves::msm);
    impl_msm_peers!(ark_bn254::g2::Config, halo2curves: halo2curves::msm);
    impl_msm_peers!(ark_grumpkin::GrumpkinConfig, halo2curves: halo2curves::msm);

    impl PairingPeers for ark_bls12_377::Bls12_377 {}
    impl PairingPeers for ark_bn254::Bn254 {}
    impl PairingPeers for ark_bls12_381::Bls12_381 {
        fn blst<'a>(
            input: &'a pairing::Input<Self>,
            pool: &'a ThreadPool,
        ) -> anyhow::Result<PeerAnswer<'a>> {
            blst::pairing(input, pool)
        }
    }

    impl NttPeers for ark_bls12_377::Fr {}
    impl NttPeers for ark_bls12_381::Fr {
        fn halo2curves<'a>(
            input: &'a ntt::Input<Self>,
            pool: &'a ThreadPool,
        ) -> anyhow::Result<PeerAnswer<'a>> {
            halo2curves::ntt(input, pool)
        }
    }
    impl NttPeers for ark_bn254::Fr {
        fn halo2curves<'a>(
            input: &'a ntt::Input<Self>,
            pool: &'a ThreadPool,
        ) -> anyhow::Result<PeerAnswer<'a>> {
            halo2curves::ntt(input, pool)
        }
    }
}
