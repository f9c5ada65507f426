//! The devices that the suite runs on.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use proofmill_accelerator::{
    BasesId, Capabilities, Device, DeviceJob, Error, Group, Points, Ticket, Work, cpu,
};
use proofmill_zkpu::device::{ZkpuOptions, zkpu};

use crate::common::{Server, circuit, circuit_build, model, options};

const MEMORY: u64 = 1 << 28;
/// A simulator fills its memory with noise as it starts.
const CIRCUIT_MEMORY: u64 = 1 << 24;

/// A ZKPU over loopback: the functional model, or the circuit in RTL where `ZKPU_BUILD` names the simulator's folder. Its server lives as long as the test program.
pub(crate) fn over_tcp() -> Box<dyn Device> {
    let server = match circuit_build() {
        Some(build) => Server::of_circuit(circuit(&build, CIRCUIT_MEMORY)),
        None => Server::start(model(MEMORY, 1), 0),
    };
    let device = zkpu(ZkpuOptions::new(options(server.address))).unwrap();
    std::mem::forget(server);
    Box::new(device)
}

/// A ZKPU for its group, and the CPU for all others.
struct Routed {
    zkpu: Box<dyn Device>,
    cpu: Box<dyn Device>,
    on_zkpu: Mutex<HashSet<BasesId>>,
    caps: Capabilities,
}

#[derive(Clone)]
struct Shared(Arc<Routed>);

/// One device for the whole suite.
pub(crate) fn devices() -> Vec<Box<dyn Device>> {
    static DEVICE: OnceLock<Shared> = OnceLock::new();
    let device = DEVICE.get_or_init(|| {
        let (zkpu, cpu) = (over_tcp(), Box::new(cpu().unwrap()));
        let mut caps = zkpu.caps().clone();
        caps.groups = Group::ALL.to_vec();
        Shared(Arc::new(Routed {
            zkpu,
            cpu,
            on_zkpu: Mutex::default(),
            caps,
        }))
    });
    vec![Box::new(device.clone())]
}

/// There are no cards.
pub(crate) fn cards() -> Vec<Box<dyn Device>> {
    Vec::new()
}

/// The reference device: the CPU's kernels.
pub(crate) fn oracle() -> impl Device {
    cpu().unwrap()
}

impl Shared {
    fn of(&self, bases: BasesId) -> &dyn Device {
        match self.0.on_zkpu.lock().unwrap().contains(&bases) {
            true => &*self.0.zkpu,
            false => &*self.0.cpu,
        }
    }
}

impl Device for Shared {
    fn caps(&self) -> &Capabilities {
        &self.0.caps
    }

    fn cost(&self, work: Work) -> Result<Duration, Error> {
        self.0.zkpu.cost(work)
    }

    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
        if points.group() != Group::Bls12_377G1 {
            return self.0.cpu.load_bases(points, memory_limit);
        }
        let id = self.0.zkpu.load_bases(points, memory_limit)?;
        self.0.on_zkpu.lock().unwrap().insert(id);
        Ok(id)
    }

    fn submit(&self, job: DeviceJob) -> Result<Ticket, Error> {
        match &job {
            DeviceJob::Msm { bases, .. } => self.of(*bases).submit(job),
            _ => self.0.cpu.submit(job),
        }
    }

    fn evict(&self, bases: BasesId) -> Result<(), Error> {
        self.of(bases).evict(bases)
    }

    fn busy(&self) -> Duration {
        self.0.zkpu.busy()
    }

    fn failure(&self) -> Option<Error> {
        self.0.zkpu.failure()
    }
}
