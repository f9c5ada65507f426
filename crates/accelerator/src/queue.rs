//! A device as a thread that works off a queue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::cost::{Costs, LinearCost, Work, WorkKind};
use crate::device::{BasesId, Capabilities, Device, DeviceJob, Outcome};
use crate::error::Error;
use crate::group::{Points, Scalars, Transform};
use crate::ticket::{Answer, Cancellation, Ticket, ticket};

/// The implementation of a device: it runs one command at a time, on the queue's thread.
pub(crate) trait Backend: 'static {
    /// Makes bases resident.
    fn load(&mut self, id: BasesId, points: &Points, memory_limit: usize) -> Result<(), Error>;
    /// Frees bases.
    fn evict(&mut self, id: BasesId) -> Result<(), Error>;
    /// A product.
    fn msm(
        &mut self,
        bases: BasesId,
        scalars: &Scalars,
        cancellation: &Cancellation,
    ) -> Result<Outcome, Error>;
    /// A transform.
    fn transform(
        &mut self,
        transform: Transform,
        cancellation: &Cancellation,
    ) -> Result<Scalars, Error>;

    /// Measures the cost of a kind of work on this back end.
    fn measure(&mut self, kind: WorkKind) -> Result<LinearCost, Error>
    where
        Self: Sized,
    {
        kind.measure(self)
    }
}

/// A [`Device`] of a [`Backend`].
pub(crate) struct QueuedDevice {
    caps: Capabilities,
    commands: Mutex<Option<Sender<Command>>>,
    state: Arc<SharedState>,
    thread: Option<JoinHandle<()>>,
}

/// State that the thread writes and callers of the device read.
#[derive(Default)]
struct SharedState {
    failure: OnceLock<Error>,
    costs: Costs,
    /// Microseconds of work on jobs.
    busy_us: AtomicU64,
}

enum Command {
    Load(BasesId, Points, usize, Sender<Result<(), Error>>),
    Evict(BasesId, Sender<Result<(), Error>>),
    Measure(WorkKind, Sender<Result<LinearCost, Error>>),
    Run(DeviceJob, Answer),
}

// === impl QueuedDevice ===

impl QueuedDevice {
    /// Starts the thread, which makes the back end with `open` and reports its capabilities.
    ///
    /// # Errors
    ///
    /// The error of `open`; [`Error::NoDevice`] if the thread does not start or `open` panics.
    pub(crate) fn start<B: Backend>(
        open: impl FnOnce() -> Result<(B, Capabilities), Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let (opened, opening) = channel();
        let (commands, queue) = channel();
        let state = Arc::new(SharedState::default());
        let notes = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("proofmill-device".into())
            .spawn(move || match open() {
                Ok((backend, caps)) => {
                    if opened.send(Ok(caps)).is_ok() {
                        work(backend, &queue, &notes);
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            })
            .map_err(|error| Error::NoDevice {
                reason: format!("its thread does not start: {error}"),
            })?;
        let caps = opening.recv().unwrap_or_else(|_| {
            Err(Error::NoDevice {
                reason: "it stopped while it was opened".into(),
            })
        })?;
        Ok(Self {
            caps,
            commands: Mutex::new(Some(commands)),
            state,
            thread: Some(thread),
        })
    }

    fn send(&self, command: Command) -> Result<(), Error> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands
            .as_ref()
            .and_then(|commands| commands.send(command).ok())
            .ok_or_else(|| self.gone())
    }

    /// Sends a command and waits for its answer.
    fn ask<T>(
        &self,
        command: impl FnOnce(Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = channel();
        self.send(command(reply))?;
        answer.recv().unwrap_or_else(|_| Err(self.gone()))
    }

    fn gone(&self) -> Error {
        self.failure().unwrap_or_else(|| Error::Failed {
            device: self.caps.name.clone(),
            reason: "its thread ended".into(),
        })
    }
}

impl Device for QueuedDevice {
    fn caps(&self) -> &Capabilities {
        &self.caps
    }

    fn cost(&self, work: Work) -> Result<Duration, Error> {
        work.check(&self.caps)?;
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let kind = work.kind();
        let line = match self.state.costs.get(kind) {
            Some(line) => line,
            None => self.ask(|reply| Command::Measure(kind, reply))?,
        };
        Ok(line.cost(work))
    }

    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
        let caps = &self.caps;
        if !caps.groups.contains(&points.group()) {
            return Err(Error::BadJob(format!(
                "{} does not work in {}",
                caps.name,
                points.group()
            )));
        }
        if points.len() > caps.max_bases {
            return Err(Error::BadJob(format!(
                "{} bases: {} takes at most {}",
                points.len(),
                caps.name,
                caps.max_bases
            )));
        }
        let id = BasesId::fresh();
        self.ask(|reply| Command::Load(id, points, memory_limit, reply))?;
        Ok(id)
    }

    fn submit(&self, job: DeviceJob) -> Result<Ticket, Error> {
        let (ticket, answer) = ticket(&self.caps.name);
        self.send(Command::Run(job, answer))?;
        Ok(ticket)
    }

    fn evict(&self, bases: BasesId) -> Result<(), Error> {
        self.ask(|reply| Command::Evict(bases, reply))
    }

    fn busy(&self) -> Duration {
        Duration::from_micros(self.state.busy_us.load(Ordering::Relaxed))
    }

    fn failure(&self) -> Option<Error> {
        self.state.failure.get().cloned()
    }
}

/// Dropping the queue blocks until the commands in it have run.
impl Drop for QueuedDevice {
    fn drop(&mut self) {
        let commands = self.commands.get_mut();
        *commands.unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(thread) = self.thread.take() {
            // Callers that waited for an answer already have the error of a panic.
            drop(thread.join());
        }
    }
}

/// Runs commands until there are no more, or the device fails: then the rest is refused.
fn work(mut backend: impl Backend, queue: &Receiver<Command>, state: &SharedState) {
    let SharedState {
        failure,
        costs,
        busy_us,
    } = state;
    let fence = |error: Error| {
        if matches!(error, Error::Failed { .. }) {
            failure.get_or_init(|| error.clone());
        }
        error
    };
    while let Ok(command) = queue.recv() {
        let refused = failure.get().cloned().map_or(Ok(()), Err);
        match command {
            Command::Load(id, points, memory_limit, reply) => {
                let loaded = refused.and_then(|()| backend.load(id, &points, memory_limit));
                drop(reply.send(loaded.map_err(fence)));
            }
            Command::Evict(id, reply) => {
                let evicted = refused.and_then(|()| backend.evict(id));
                drop(reply.send(evicted.map_err(fence)));
            }
            Command::Measure(kind, reply) => {
                let measured =
                    refused.and_then(|()| costs.get_or_measure(kind, || backend.measure(kind)));
                drop(reply.send(measured.map_err(fence)));
            }
            Command::Run(job, answer) => {
                let cancellation = answer.cancellation();
                let began = Instant::now();
                let outcome = refused.and_then(|()| run(&mut backend, job, &cancellation));
                let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                busy_us.fetch_add(us, Ordering::Relaxed);
                answer.complete(outcome.map_err(fence));
            }
        }
    }
}

fn run(
    backend: &mut impl Backend,
    job: DeviceJob,
    cancellation: &Cancellation,
) -> Result<Outcome, Error> {
    cancellation.check()?;
    match job {
        DeviceJob::Msm { bases, scalars } => backend.msm(bases, &scalars, cancellation),
        DeviceJob::Transform(transform) => {
            let (values, points) = transform.lengths();
            if values != points {
                return Err(Error::BadJob(format!(
                    "{values} values on a domain of {points} points"
                )));
            }
            backend
                .transform(transform, cancellation)
                .map(Outcome::Values)
        }
        DeviceJob::Batch(jobs) => jobs
            .into_iter()
            .map(|job| run(backend, job, cancellation))
            .collect::<Result<_, _>>()
            .map(Outcome::Batch),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::group::{DeviceField, DeviceGroup};

    /// A back end that starts a job, then waits for the test's order on how to end it.
    struct ScriptedBackend {
        /// The number of calls of `measure`.
        measured: u32,
        started: Sender<()>,
        orders: Receiver<Order>,
    }

    enum Order {
        Finish,
        Fail,
        Panic,
    }

    impl Backend for ScriptedBackend {
        fn load(&mut self, _: BasesId, _: &Points, _: usize) -> Result<(), Error> {
            Ok(())
        }

        fn evict(&mut self, _: BasesId) -> Result<(), Error> {
            Ok(())
        }

        fn msm(
            &mut self,
            _: BasesId,
            _: &Scalars,
            cancellation: &Cancellation,
        ) -> Result<Outcome, Error> {
            self.started.send(()).unwrap();
            match self.orders.recv().unwrap() {
                Order::Finish => cancellation.check().map(|()| Outcome::Batch(Vec::new())),
                Order::Fail => Err(failed()),
                Order::Panic => panic!("told to"),
            }
        }

        fn transform(&mut self, _: Transform, _: &Cancellation) -> Result<Scalars, Error> {
            Err(Error::BadJob("never asked for".into()))
        }

        fn measure(&mut self, _: WorkKind) -> Result<LinearCost, Error> {
            self.measured += 1;
            Ok(LinearCost {
                fixed_seconds: f64::from(self.measured),
                unit_seconds: 1.0,
            })
        }
    }

    fn failed() -> Error {
        Error::Failed {
            device: "told".into(),
            reason: "told to".into(),
        }
    }

    /// A device, the receiver of its job starts, and the sender of orders on how to end them.
    fn scripted_device() -> (QueuedDevice, Receiver<()>, Sender<Order>) {
        let (started, starts) = channel();
        let (orders, receiver) = channel();
        let queue = QueuedDevice::start(move || {
            let caps = Capabilities {
                name: "told".into(),
                groups: vec![crate::Group::Bn254G1],
                fields: Vec::new(),
                max_bases: 1,
                max_transform_log: 0,
                memory: None,
                host_memory: 0,
            };
            let orders = receiver;
            let backend = ScriptedBackend {
                measured: 0,
                started,
                orders,
            };
            Ok((backend, caps))
        });
        (queue.unwrap(), starts, orders)
    }

    fn job() -> DeviceJob {
        DeviceJob::Msm {
            bases: BasesId::fresh(),
            scalars: ark_bn254::Fr::scalars(Vec::new()),
        }
    }

    #[test]
    fn a_cancelled_job_does_not_start_or_is_interrupted() {
        let (device, starts, orders) = scripted_device();
        let running = device.submit(job()).unwrap();
        let waiting = device.submit(job()).unwrap();
        let dropped = device.submit(job()).unwrap();
        let last = device.submit(job()).unwrap();
        starts.recv().unwrap();
        running.cancel();
        waiting.cancel();
        drop(dropped);
        orders.send(Order::Finish).unwrap();
        assert!(matches!(running.wait(), Err(Error::Cancelled)));
        assert!(matches!(waiting.wait(), Err(Error::Cancelled)));
        orders.send(Order::Finish).unwrap();
        assert!(last.wait().is_ok());
        assert_eq!(starts.try_iter().count(), 1);
    }

    #[test]
    fn a_device_that_failed_takes_no_more_and_says_why() {
        let (device, starts, orders) = scripted_device();
        let first = device.submit(job()).unwrap();
        let second = device.submit(job()).unwrap();
        starts.recv().unwrap();
        orders.send(Order::Fail).unwrap();
        assert_eq!(first.wait().unwrap_err(), failed());
        assert_eq!(second.wait().unwrap_err(), failed());
        assert_eq!(device.failure(), Some(failed()));
        assert_eq!(device.submit(job()).unwrap_err(), failed());
        assert_eq!(device.evict(BasesId::fresh()), Err(failed()));
    }

    #[test]
    fn a_device_that_panics_answers_everybody() {
        let (device, starts, orders) = scripted_device();
        let first = device.submit(job()).unwrap();
        let second = device.submit(job()).unwrap();
        starts.recv().unwrap();
        orders.send(Order::Panic).unwrap();
        assert!(matches!(first.wait(), Err(Error::Failed { .. })));
        assert!(matches!(second.wait(), Err(Error::Failed { .. })));
        assert!(matches!(
            device.evict(BasesId::fresh()),
            Err(Error::Failed { .. })
        ));
    }

    #[test]
    fn bases_that_the_device_cannot_take_are_refused() {
        let (device, _starts, _orders) = scripted_device();
        let load = |points: Points| device.load_bases(points, 0);
        let other = ark_bls12_381::G1Projective::points(Vec::new());
        assert!(matches!(load(other), Err(Error::BadJob(_))));
        let many = vec![ark_bn254::G1Affine::default(); 2];
        assert!(matches!(
            load(ark_bn254::G1Projective::points(many)),
            Err(Error::BadJob(_))
        ));
        let one = vec![ark_bn254::G1Affine::default()];
        assert!(load(ark_bn254::G1Projective::points(one)).is_ok());
    }

    #[test]
    fn a_cost_is_measured_once_and_what_cannot_be_done_has_none() {
        let (device, starts, orders) = scripted_device();
        let product = |group, points| device.cost(Work::Msm { group, points });
        let group = crate::Group::Bn254G1;
        assert!(matches!(product(group, 2), Err(Error::BadJob(_))));
        let other = crate::Group::Bls12_381G1;
        assert!(matches!(product(other, 1), Err(Error::BadJob(_))));
        let field = crate::ScalarField::Bn254;
        let transform = Work::Transform {
            field,
            kind: crate::TransformKind::Forward,
            size_log: 0,
        };
        assert!(matches!(device.cost(transform), Err(Error::BadJob(_))));

        let first = product(group, 1).unwrap();
        assert!(product(group, 0).unwrap() < first);
        assert_eq!(product(group, 1), Ok(first));

        // Measured costs are returned while a job runs.
        let running = device.submit(job()).unwrap();
        starts.recv().unwrap();
        assert_eq!(product(group, 1), Ok(first));
        orders.send(Order::Finish).unwrap();
        running.wait().unwrap();
    }

    #[test]
    fn a_device_that_does_not_open_says_why() {
        let refused = QueuedDevice::start::<ScriptedBackend>(|| {
            Err(Error::NoDevice {
                reason: "told to".into(),
            })
        });
        assert!(matches!(refused, Err(Error::NoDevice { reason }) if reason == "told to"));
        let panicked = QueuedDevice::start::<ScriptedBackend>(|| panic!("told to"));
        assert!(matches!(panicked, Err(Error::NoDevice { .. })));
    }
}
