//! The CPU as a device: the kernels of `proofmill-kernels`, on the global rayon pool.

use std::collections::HashMap;
use std::convert::Infallible;

use proofmill_kernels::{Domain, InstructionSet, MAX_BASES, PreparedBases};

use crate::device::{BasesId, Capabilities, Device, Outcome, TransformKind};
use crate::error::Error;
use crate::group::{
    DeviceField, DeviceGroup, Group, Points, PointsVisitor, ScalarField, Scalars, Transform,
    TransformVisitor,
};
use crate::queue::{Backend, QueuedDevice};
use crate::ticket::Cancellation;

/// This machine's processors. A job uses all threads, and is not interrupted once it runs.
///
/// # Errors
///
/// [`Error::NoDevice`] if the system starts no thread.
pub fn cpu() -> Result<impl Device, Error> {
    QueuedDevice::start(|| {
        let caps = Capabilities {
            name: format!("cpu ({})", InstructionSet::current()),
            groups: Group::ALL.to_vec(),
            fields: ScalarField::ALL.to_vec(),
            max_bases: MAX_BASES,
            max_transform_log: 47,
            memory: None,
            host_memory: 0,
        };
        Ok((Cpu::default(), caps))
    })
}

#[derive(Default)]
struct Cpu {
    bases: HashMap<BasesId, Box<dyn Resident>>,
}

/// Prepared bases of any group.
trait Resident {
    fn msm(&self, scalars: &Scalars) -> Result<Outcome, Error>;
}

struct Prepare {
    memory_limit: usize,
}

/// The CPU's transforms.
struct InPlace;

// === impl Cpu ===

impl Backend for Cpu {
    fn load(&mut self, id: BasesId, points: &Points, memory_limit: usize) -> Result<(), Error> {
        let resident = points.visit(Prepare { memory_limit });
        self.bases.insert(id, resident);
        Ok(())
    }

    fn evict(&mut self, id: BasesId) -> Result<(), Error> {
        self.bases
            .remove(&id)
            .map(drop)
            .ok_or(Error::UnknownBases(id))
    }

    fn msm(
        &mut self,
        bases: BasesId,
        scalars: &Scalars,
        _cancellation: &Cancellation,
    ) -> Result<Outcome, Error> {
        self.bases
            .get(&bases)
            .ok_or(Error::UnknownBases(bases))?
            .msm(scalars)
    }

    fn transform(
        &mut self,
        transform: Transform,
        _cancellation: &Cancellation,
    ) -> Result<Scalars, Error> {
        let Ok(values) = transform.run(&mut InPlace);
        Ok(values)
    }
}

impl PointsVisitor for Prepare {
    type Output = Box<dyn Resident>;

    fn visit<G: DeviceGroup>(self, points: &[G::Affine]) -> Box<dyn Resident> {
        Box::new(PreparedBases::<G>::new(points, self.memory_limit))
    }
}

impl<G: DeviceGroup> Resident for PreparedBases<G> {
    fn msm(&self, scalars: &Scalars) -> Result<Outcome, Error> {
        let scalars = scalars.expect::<G::ScalarField>()?;
        check_lengths(scalars.len(), self.len())?;
        Ok(Outcome::Sum(Box::new(
            PreparedBases::msm(self, scalars).sum(),
        )))
    }
}

impl TransformVisitor<Infallible> for InPlace {
    fn run<F: DeviceField>(
        &mut self,
        domain: &Domain<F>,
        kind: TransformKind,
        values: &mut [F],
    ) -> Result<(), Infallible> {
        match kind {
            TransformKind::Forward => domain.forward(values),
            TransformKind::Inverse => domain.inverse(values),
            TransformKind::CosetForward => domain.coset_forward(values),
            TransformKind::CosetInverse => domain.coset_inverse(values),
            TransformKind::CosetExtend => domain.coset_extend(values),
        }
        Ok(())
    }
}

/// One scalar for each base.
pub(crate) fn check_lengths(scalars: usize, bases: usize) -> Result<(), Error> {
    if scalars == bases {
        return Ok(());
    }
    Err(Error::BadJob(format!(
        "{scalars} scalars for {bases} bases"
    )))
}
