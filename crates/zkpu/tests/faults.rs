//! Links that break, targets that die, devices that lie or fall silent.

mod common;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ff::Zero;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use common::{Server, Wire, model, options, points, product, scalars};
use proofmill_accelerator::{BasesId, Device, DeviceField, DeviceGroup, DeviceJob, Error};
use proofmill_zkpu::controller::{
    CoreJob, CoreState, DeviceDescription, DeviceError, FunctionalModel, MsmDevice, Stop,
};
use proofmill_zkpu::curve::encode_result;
use proofmill_zkpu::device::{ZkpuOptions, zkpu};

const MEMORY: u64 = 1 << 24;
const COUNT: usize = 200;

fn load(device: &dyn Device, points: &[G1Affine]) -> BasesId {
    device
        .load_bases(G1Projective::points(points.to_vec()), usize::MAX)
        .unwrap()
}

fn submit(device: &dyn Device, bases: BasesId, values: &[Fr]) -> proofmill_accelerator::Ticket {
    device
        .submit(DeviceJob::Msm {
            bases,
            scalars: Fr::scalars(values.to_vec()),
        })
        .unwrap()
}

/// The wire is cut at random moments, in commands, in data, in answers: every product is right all the same.
#[test]
fn a_link_that_is_cut_at_random_moments_costs_time_and_no_result() {
    let server = Server::start(model(MEMORY, 1), 0);
    let wire = Wire::new(server.address);
    let mut options = ZkpuOptions::new(options(wire.address));
    options.reconnects = 10;
    let device = zkpu(options).unwrap();
    let points = points(COUNT, 1);
    let bases = load(&device, &points);
    let mut rng = StdRng::seed_from_u64(8);
    for round in 0..25 {
        wire.cut_after(rng.gen_range(1..30_000));
        let jobs: Vec<_> = (0..3)
            .map(|i| {
                let values = scalars(COUNT, 100 * round + i);
                (submit(&device, bases, &values), product(&points, &values))
            })
            .collect();
        for (ticket, expected) in jobs {
            assert_eq!(
                ticket.wait().unwrap().into_sum::<G1Projective>().unwrap(),
                expected,
                "round {round}"
            );
        }
    }
    assert!(wire.cuts() >= 15, "{} cuts", wire.cuts());
    assert_eq!(device.failure(), None);
}

/// A target that is killed and started again has lost its memory: the bases are loaded again.
#[test]
fn a_target_that_was_killed_gets_its_bases_again() {
    let server = Server::start(model(MEMORY, 1), 0);
    let port = server.address.port();
    let mut options = ZkpuOptions::new(options(server.address));
    options.reconnects = 10;
    let device = zkpu(options).unwrap();
    let points = points(COUNT, 1);
    let bases = load(&device, &points);
    server.stop();
    let server = Server::start(model(MEMORY, 2), port);
    let values = scalars(COUNT, 3);
    let sum = submit(&device, bases, &values).wait().unwrap();
    assert_eq!(
        sum.into_sum::<G1Projective>().unwrap(),
        product(&points, &values)
    );
    // Killed for good: the device fails, with a reason.
    server.stop();
    let error = submit(&device, bases, &values).wait().unwrap_err();
    assert!(
        matches!(&error, Error::Failed { reason, .. } if reason.contains("attempts failed")),
        "{error}"
    );
    assert_eq!(device.failure(), Some(error));
    assert!(device.evict(bases).is_err());
}

#[test]
fn silence_fences_the_device() {
    let server = Server::start(model(MEMORY, 1), 0);
    let wire = Wire::new(server.address);
    let mut options = ZkpuOptions::new(options(wire.address));
    options.host.keep_alive = Duration::from_secs(20);
    options.host.command_timeout = Duration::from_secs(10);
    let device = zkpu(options).unwrap();
    let bases = load(&device, &points(COUNT, 1));
    wire.silence();
    let error = submit(&device, bases, &scalars(COUNT, 3))
        .wait()
        .unwrap_err();
    assert!(
        matches!(&error, Error::Failed { reason, .. } if reason.contains("no answer in")),
        "{error}"
    );
    assert_eq!(device.failure(), Some(error));
}

/// A model that changes its results, or never ends a job.
struct Liar {
    model: FunctionalModel,
    lie: Lie,
    job: Option<CoreJob>,
    /// The result's area when the second job or a later one was started.
    before: Option<[u8; 192]>,
    /// Jobs that were started.
    jobs: Arc<AtomicU32>,
}

#[derive(Clone, Copy)]
enum Lie {
    /// The result has a bit wrong.
    Bit,
    /// The result is a point, and another one.
    Point,
    /// The job ends well, and no result is written where the first one was.
    Stale,
    /// The job never ends.
    Silence,
}

impl Liar {
    fn new(lie: Lie) -> Self {
        Self {
            model: model(MEMORY, 1),
            lie,
            job: None,
            before: None,
            jobs: Arc::default(),
        }
    }
}

impl MsmDevice for Liar {
    fn description(&self) -> &DeviceDescription {
        self.model.description()
    }

    fn cycles(&self) -> u64 {
        self.model.cycles()
    }

    fn read(&self, first: u64, to: &mut [u8]) -> Result<(), DeviceError> {
        self.model.read(first, to)
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.model.write(first, from)
    }

    fn fill(&mut self, first: u64, length: u64) -> Result<(), DeviceError> {
        self.model.fill(first, length)
    }

    fn start(&mut self, job: CoreJob) {
        self.job = Some(job);
        if self.jobs.fetch_add(1, Ordering::SeqCst) > 0 {
            let mut before = [0; 192];
            self.model.read(job.result, &mut before).unwrap();
            self.before = Some(before);
        }
        self.model.start(job);
    }

    fn poll(&mut self) -> CoreState {
        let state = match self.lie {
            Lie::Silence if self.job.is_some() => return CoreState::Running,
            _ => self.model.poll(),
        };
        if let (CoreState::Ended(_), Some(job)) =
            (state, self.job.take_if(|_| state != CoreState::Running))
        {
            let mut result = [0; 192];
            self.model.read(job.result, &mut result).unwrap();
            match self.lie {
                Lie::Bit => result[0] ^= 1,
                Lie::Stale if self.before.is_some() => result = self.before.unwrap(),
                Lie::Stale => {}
                _ => result = encode_result(&G1Projective::zero()),
            }
            self.model.write(job.result, &result).unwrap();
        }
        state
    }

    fn stop(&mut self) -> Stop {
        self.job = None;
        self.model.stop()
    }
}

/// The reason why a lying device is fenced.
fn fenced(lie: Lie, change: impl FnOnce(&mut ZkpuOptions)) -> String {
    let server = Server::start(Liar::new(lie), 0);
    let mut options = ZkpuOptions::new(options(server.address));
    change(&mut options);
    let device = zkpu(options).unwrap();
    let bases = load(&device, &points(COUNT, 1));
    let values = scalars(COUNT, 3);
    let tickets = [
        submit(&device, bases, &values),
        submit(&device, bases, &values),
    ];
    let reasons = tickets.map(|ticket| match ticket.wait() {
        Err(Error::Failed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    });
    assert_eq!(
        reasons[0], reasons[1],
        "the jobs behind it get the same reason"
    );
    assert!(matches!(device.failure(), Some(Error::Failed { .. })));
    reasons[0].clone()
}

#[test]
fn a_result_that_is_no_point_fences_the_device() {
    assert_eq!(
        fenced(Lie::Bit, |_| {}),
        "the result is not a point of the curve"
    );
}

/// The first product is right; the second job uses the same memory and leaves the first one's result there.
#[test]
fn a_result_that_is_not_written_fences_the_device() {
    let server = Server::start(Liar::new(Lie::Stale), 0);
    let device = zkpu(ZkpuOptions::new(options(server.address))).unwrap();
    let points = points(COUNT, 1);
    let bases = load(&device, &points);
    let values = scalars(COUNT, 3);
    let first = submit(&device, bases, &values).wait().unwrap();
    assert_eq!(
        first.into_sum::<G1Projective>().unwrap(),
        product(&points, &values)
    );
    let second = submit(&device, bases, &scalars(COUNT, 4)).wait();
    assert!(
        matches!(&second, Err(Error::Failed { reason, .. }) if reason.contains("not a point")),
        "{second:?}"
    );
}

#[test]
fn a_result_that_is_another_point_is_found_by_computing_it_again() {
    let reason = fenced(Lie::Point, |options| {
        options.recompute_every = NonZeroU32::new(1)
    });
    assert_eq!(reason, "a result is not that of the CPU");
}

#[test]
fn a_job_without_an_end_fences_the_device() {
    let reason = fenced(Lie::Silence, |options| {
        options.job_timeout = Duration::from_millis(300)
    });
    assert!(reason.contains("no answer after"), "{reason}");
}

/// The limit of a job is long. A target that gives no sign of life is fenced before.
#[test]
fn silence_during_a_job_fences_the_device_before_the_jobs_limit() {
    let liar = Liar::new(Lie::Silence);
    let jobs = liar.jobs.clone();
    let server = Server::start(liar, 0);
    let wire = Wire::new(server.address);
    let mut options = ZkpuOptions::new(options(wire.address));
    options.host.keep_alive = Duration::from_secs(20);
    options.host.command_timeout = Duration::from_secs(10);
    options.job_timeout = Duration::from_secs(3600);
    let device = zkpu(options).unwrap();
    let bases = load(&device, &points(COUNT, 1));
    let ticket = submit(&device, bases, &scalars(COUNT, 3));
    while jobs.load(Ordering::SeqCst) == 0 {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    // The answer to the start passes; the one to the wait never comes.
    std::thread::park_timeout(Duration::from_millis(500));
    wire.silence();
    let error = ticket.wait().unwrap_err();
    assert!(
        matches!(&error, Error::Failed { reason, .. } if reason.contains("keep alive: no answer in")),
        "{error}"
    );
    assert_eq!(device.failure(), Some(error));
}
