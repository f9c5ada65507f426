//! A machine as the back end of a device.

use std::collections::HashMap;

use proofmill_kernels::Domain;

use super::machine::Machine;
use super::modules::Module;
use super::msm::ResidentBases;
use super::transforms::{self, MAX_TRANSFORM_LOG, Tables};
use crate::cpu::check_lengths;
use crate::device::{BasesId, Capabilities, Outcome, TransformKind};
use crate::error::Error;
use crate::group::{
    DeviceField, DeviceGroup, Group, Points, PointsVisitor, ScalarField, Scalars, Transform,
    TransformVisitor,
};
use crate::queue::Backend;
use crate::ticket::Cancellation;

/// Runs jobs on a machine.
pub(crate) struct CudaBackend<M: Machine> {
    machine: M,
    bases: HashMap<BasesId, Box<dyn Resident<M>>>,
    tables: Tables<M::Buffer>,
    /// Scalars of a round of a product.
    chunk: usize,
}

/// Resident bases of any group.
trait Resident<M> {
    fn msm(
        &self,
        machine: &mut M,
        scalars: &Scalars,
        cancellation: &Cancellation,
    ) -> Result<Outcome, Error>;
}

struct Load<'a, M> {
    machine: &'a mut M,
    memory_limit: usize,
    chunk: usize,
}

struct Run<'a, M: Machine> {
    machine: &'a mut M,
    tables: &'a mut Tables<M::Buffer>,
    cancellation: &'a Cancellation,
}

// === impl CudaBackend ===

impl<M: Machine> CudaBackend<M> {
    /// A back end on a machine. It uploads a product's scalars `chunk` at a time.
    pub(crate) fn new(machine: M, chunk: usize) -> Self {
        Self {
            machine,
            bases: HashMap::new(),
            tables: Tables::new(),
            chunk,
        }
    }

    /// The capabilities of any machine that runs these kernels.
    pub(crate) fn caps(name: String, memory: Option<u64>) -> Capabilities {
        Capabilities {
            name,
            groups: Group::ALL
                .iter()
                .copied()
                .filter(|group| Module::Points(*group).exists())
                .collect(),
            fields: ScalarField::ALL.to_vec(),
            // A base's number is doubled to make room for its sign.
            max_bases: 1 << 30,
            max_transform_log: MAX_TRANSFORM_LOG,
            memory,
            host_memory: 0,
        }
    }
}

impl<M: Machine> Backend for CudaBackend<M> {
    fn load(&mut self, id: BasesId, points: &Points, memory_limit: usize) -> Result<(), Error> {
        let resident = points.visit(Load {
            machine: &mut self.machine,
            memory_limit,
            chunk: self.chunk,
        })?;
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
        cancellation: &Cancellation,
    ) -> Result<Outcome, Error> {
        self.bases
            .get(&bases)
            .ok_or(Error::UnknownBases(bases))?
            .msm(&mut self.machine, scalars, cancellation)
    }

    fn transform(
        &mut self,
        transform: Transform,
        cancellation: &Cancellation,
    ) -> Result<Scalars, Error> {
        transform.run(&mut Run {
            machine: &mut self.machine,
            tables: &mut self.tables,
            cancellation,
        })
    }
}

impl<M: Machine> PointsVisitor for Load<'_, M> {
    type Output = Result<Box<dyn Resident<M>>, Error>;

    fn visit<G: DeviceGroup>(self, points: &[G::Affine]) -> Self::Output {
        let Self {
            machine,
            memory_limit,
            chunk,
        } = self;
        let bases = ResidentBases::<G, _>::load(machine, points, memory_limit, chunk)?;
        Ok(Box::new(bases))
    }
}

impl<G: DeviceGroup, M: Machine> Resident<M> for ResidentBases<G, M::Buffer> {
    fn msm(
        &self,
        machine: &mut M,
        scalars: &Scalars,
        cancellation: &Cancellation,
    ) -> Result<Outcome, Error> {
        let scalars = scalars.expect::<G::ScalarField>()?;
        check_lengths(scalars.len(), self.len())?;
        let sum = ResidentBases::msm(self, machine, scalars, cancellation)?;
        Ok(Outcome::Sum(Box::new(sum.sum())))
    }
}

impl<M: Machine> TransformVisitor<Error> for Run<'_, M> {
    fn run<F: DeviceField>(
        &mut self,
        domain: &Domain<F>,
        kind: TransformKind,
        values: &mut [F],
    ) -> Result<(), Error> {
        let (machine, tables) = (&mut *self.machine, &mut *self.tables);
        transforms::transform(machine, tables, domain, kind, values, self.cancellation)
    }
}
