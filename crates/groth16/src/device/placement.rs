//! The choice of the parts of a proof that a device computes.

use ark_ec::pairing::Pairing;
use proofmill_accelerator::{
    Device, DeviceField, DeviceGroup, Error, ScalarField, TransformKind, Work,
};

use crate::{ResidentKey, SnarkCurve};

/// The rule that decides which parts of a proof a device computes.
#[derive(Clone, Copy)]
pub enum Offload<'a> {
    /// The device computes all that it can: for tests and measurements.
    Always,
    /// The device computes the parts whose predicted duration on it is shorter than on this one, the
    /// processors.
    WhenFasterThan(&'a dyn Device),
}

/// The parts of a proof that a device computes; the processors compute the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The transforms.
    pub transforms: bool,
    /// The product over the A query.
    pub a: bool,
    /// The product over the B query in the first group.
    pub b_g1: bool,
    /// The product over the B query in the second group.
    pub b_g2: bool,
    /// The product over the L query.
    pub l: bool,
    /// The product over the H query.
    pub h: bool,
}

// === impl Offload ===

impl Offload<'_> {
    /// Whether `device` is to compute `work`. The decision regards this work alone: as device and processors work at
    /// the same time, the cost of a part that is placed badly is mostly hidden.
    ///
    /// # Errors
    ///
    /// Those of [`Device::cost`]. A device that cannot do the work is no error.
    fn selects_device(self, device: &dyn Device, work: Work) -> Result<bool, Error> {
        let able = device.check(work).is_ok();
        match self {
            Self::WhenFasterThan(cpu) if able => Ok(device.cost(work)? < cpu.cost(work)?),
            Self::Always | Self::WhenFasterThan(_) => Ok(able),
        }
    }
}

// === impl Placement ===

impl Placement {
    /// Decides by `offload` which parts of this key's proofs `device` computes.
    ///
    /// # Errors
    ///
    /// Those of [`Device::cost`].
    pub fn of<E: SnarkCurve>(
        key: &ResidentKey<E>,
        device: &dyn Device,
        offload: Offload<'_>,
    ) -> Result<Self, Error> {
        let g1 = |points| {
            let group = <E::G1 as DeviceGroup>::GROUP;
            offload.selects_device(device, Work::Msm { group, points })
        };
        let transform = Work::Transform {
            field: field::<E>(),
            kind: TransformKind::CosetExtend,
            size_log: key.prover().domain_size().ilog2(),
        };
        Ok(Self {
            transforms: offload.selects_device(device, transform)?,
            a: g1(key.a.len())?,
            b_g1: g1(key.b_g1.len())?,
            b_g2: {
                let group = <E::G2 as DeviceGroup>::GROUP;
                let points = key.b_g2.len();
                offload.selects_device(device, Work::Msm { group, points })?
            },
            l: g1(key.l.len())?,
            h: g1(key.h.len())?,
        })
    }

    /// Whether the device computes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn field<E: SnarkCurve>() -> ScalarField {
    <<E as Pairing>::ScalarField as DeviceField>::FIELD
}
