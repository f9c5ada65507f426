//! Several devices as one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::device::{BasesId, Capabilities, Device, Job, Outcome};
use crate::error::Error;
use crate::group::{Group, Points, ScalarField};
use crate::ticket::{Answer, Ticket, ticket};

/// Devices that share jobs.
///
/// Bases go to the device that has the fewest, and a job to the device that has its bases, or else to
/// the one with the fewest jobs. A device that fails gets nothing any more: its jobs run on another,
/// where their bases are loaded again. For that the pool keeps the bases' points in host memory.
pub struct Pool {
    shared: Arc<Shared>,
    caps: Capabilities,
    threads: Vec<JoinHandle<()>>,
}

/// A device of a pool, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What it is and can do.
    pub caps: Capabilities,
    /// Why it is not used any more, if it is not.
    pub failure: Option<Error>,
    /// Jobs that it has and has not finished.
    pub jobs: usize,
}

struct Shared {
    devices: Vec<Box<dyn Device>>,
    state: Mutex<State>,
}

struct State {
    /// For each device the jobs that wait for it; none once the pool is dropped.
    lines: Vec<Option<Sender<(Job, Answer)>>>,
    /// For each device the jobs that it has.
    jobs: Vec<usize>,
    bases: HashMap<BasesId, Placed>,
}

/// Bases, and what the devices that have them call them.
struct Placed {
    points: Points,
    memory_limit: usize,
    on: HashMap<usize, BasesId>,
}

// === impl Pool ===

impl Pool {
    /// A pool of devices, in order of preference.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if there is none.
    pub fn new(devices: Vec<Box<dyn Device>>) -> Result<Self, Error> {
        let caps: Vec<&Capabilities> = devices.iter().map(|device| device.caps()).collect();
        if caps.is_empty() {
            return Err(Error::NoDevice {
                reason: "a pool of none".into(),
            });
        }
        let caps = Capabilities {
            name: format!("a pool of {}", caps.len()),
            groups: common(Group::ALL, &caps, |caps| &caps.groups),
            fields: common(ScalarField::ALL, &caps, |caps| &caps.fields),
            max_bases: caps.iter().map(|caps| caps.max_bases).min().unwrap_or(0),
            max_transform_log: caps
                .iter()
                .map(|caps| caps.max_transform_log)
                .min()
                .unwrap_or(0),
            memory: caps.iter().map(|caps| caps.memory).sum(),
        };
        let (lines, ends): (Vec<_>, Vec<_>) = devices.iter().map(|_| channel()).unzip();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                lines: lines.into_iter().map(Some).collect(),
                jobs: vec![0; devices.len()],
                bases: HashMap::new(),
            }),
            devices,
        });
        let mut pool = Self {
            shared,
            caps,
            threads: Vec::new(),
        };
        for (member, line) in ends.into_iter().enumerate() {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new()
                .name("proofmill-pool".into())
                .spawn(move || shared.serve(member, &line))
                .map_err(|error| Error::NoDevice {
                    reason: format!("a pool's thread does not start: {error}"),
                })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// The devices, in their order.
    pub fn members(&self) -> Vec<Member> {
        let state = self.shared.lock();
        self.shared
            .devices
            .iter()
            .zip(&state.jobs)
            .map(|(device, &jobs)| Member {
                caps: device.caps().clone(),
                failure: device.failure(),
                jobs,
            })
            .collect()
    }
}

impl Device for Pool {
    /// What all of the devices can do, so that each can stand in for another.
    fn caps(&self) -> &Capabilities {
        &self.caps
    }

    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
        let id = BasesId::next();
        let placed = Placed {
            points,
            memory_limit,
            on: HashMap::new(),
        };
        self.shared.lock().bases.insert(id, placed);
        let size = |state: &State, member: usize| -> usize {
            let here = state.bases.values();
            here.filter(|placed| placed.on.contains_key(&member))
                .map(|placed| placed.points.len())
                .sum()
        };
        let attempt = || {
            let member = self.shared.least(size)?;
            self.shared.load(member, id)
        };
        let mut loaded = attempt();
        for _ in 1..self.shared.devices.len() {
            if matches!(loaded, Err(Error::Failed { .. })) {
                loaded = attempt();
            }
        }
        if let Err(error) = loaded {
            self.shared.lock().bases.remove(&id);
            return Err(error);
        }
        Ok(id)
    }

    fn submit(&self, job: Job) -> Result<Ticket, Error> {
        let (ticket, answer) = ticket(&self.caps.name);
        let member = self.shared.place(&job)?;
        self.shared.line_up(member, job, answer);
        Ok(ticket)
    }

    fn evict(&self, bases: BasesId) -> Result<(), Error> {
        let placed = self.shared.lock().bases.remove(&bases);
        let on = placed.ok_or(Error::UnknownBases(bases))?.on;
        for (member, id) in on {
            match self.shared.devices[member].evict(id) {
                // Its memory is gone with it.
                Err(Error::Failed { .. }) => {}
                evicted => evicted?,
            }
        }
        Ok(())
    }

    /// The first device's reason, once all have failed.
    fn failure(&self) -> Option<Error> {
        let failures: Option<Vec<Error>> = self
            .shared
            .devices
            .iter()
            .map(|device| device.failure())
            .collect();
        failures?.into_iter().next()
    }
}

/// Jobs that are lined up are finished first.
impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().lines.fill_with(|| None);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// What all have.
fn common<T: Copy + PartialEq>(
    all: &[T],
    caps: &[&Capabilities],
    has: impl Fn(&Capabilities) -> &Vec<T>,
) -> Vec<T> {
    all.iter()
        .copied()
        .filter(|item| caps.iter().all(|caps| has(caps).contains(item)))
        .collect()
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device with the least load that has not failed.
    fn least(&self, load: impl Fn(&State, usize) -> usize) -> Result<usize, Error> {
        let state = self.lock();
        let works = |member: &usize| self.devices[*member].failure().is_none();
        (0..self.devices.len())
            .filter(works)
            .min_by_key(|&member| load(&state, member))
            .ok_or_else(|| {
                self.devices[0].failure().unwrap_or(Error::NoDevice {
                    reason: "all devices of the pool failed".into(),
                })
            })
    }

    /// The device for a job: where most of its bases are; of several, the one with the fewest jobs.
    fn place(&self, job: &Job) -> Result<usize, Error> {
        let bases = job.bases();
        self.least(|state, member| {
            let elsewhere = |id: &&BasesId| {
                let placed = state.bases.get(*id);
                placed.is_some_and(|placed| !placed.on.contains_key(&member))
            };
            let missing = bases.iter().filter(elsewhere).count();
            // Whoever has a job's bases gets it however long his line: loading them takes longer.
            (missing << 32) + state.jobs[member]
        })
    }

    fn line_up(&self, member: usize, job: Job, answer: Answer) {
        let line = {
            let mut state = self.lock();
            state.jobs[member] += 1;
            state.lines[member].clone()
        };
        if let Some(line) = line {
            // Without a thread at its end the answer says for itself that the device is gone.
            drop(line.send((job, answer)));
        }
    }

    /// Runs a device's jobs, one after the other; those it fails at go to another device.
    fn serve(&self, member: usize, line: &Receiver<(Job, Answer)>) {
        while let Ok((job, answer)) = line.recv() {
            let outcome = self.run(member, job.clone(), &answer);
            self.lock().jobs[member] -= 1;
            match outcome {
                Err(Error::Failed { .. }) => match self.place(&job) {
                    Ok(other) if other != member => self.line_up(other, job, answer),
                    _ => answer.give(outcome),
                },
                outcome => answer.give(outcome),
            }
        }
    }

    fn run(&self, member: usize, mut job: Job, answer: &Answer) -> Result<Outcome, Error> {
        answer.cancellation().check()?;
        let mut names = HashMap::new();
        for id in job.bases() {
            self.load(member, id)?;
            let name = {
                let state = self.lock();
                state
                    .bases
                    .get(&id)
                    .and_then(|placed| placed.on.get(&member).copied())
            };
            names.insert(id, name.ok_or(Error::UnknownBases(id))?);
        }
        job.rename(&|id| names[&id]);
        let ticket = self.devices[member].submit(job)?;
        answer.pass_on(&ticket);
        ticket.wait()
    }

    /// Makes bases resident on a device, unless they are.
    fn load(&self, member: usize, id: BasesId) -> Result<(), Error> {
        let (points, memory_limit) = {
            let state = self.lock();
            let placed = state.bases.get(&id).ok_or(Error::UnknownBases(id))?;
            if placed.on.contains_key(&member) {
                return Ok(());
            }
            (placed.points.clone(), placed.memory_limit)
        };
        let name = self.devices[member].load_bases(points, memory_limit)?;
        let mut state = self.lock();
        if let Some(placed) = state.bases.get_mut(&id)
            && let Entry::Vacant(entry) = placed.on.entry(member)
        {
            entry.insert(name);
            return Ok(());
        }
        drop(state);
        // Evicted, or loaded by another thread as well, meanwhile.
        self.devices[member].evict(name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::group::{DeviceField, DeviceGroup, Scalars, Transform};
    use crate::queue::{Backend, Queue};
    use crate::ticket::Cancellation;

    /// Says who runs what, and answers as it is told.
    struct Told {
        name: &'static str,
        resident: Vec<BasesId>,
        says: Sender<&'static str>,
        orders: Receiver<Order>,
    }

    #[derive(Clone, Copy)]
    enum Order {
        Finish,
        Fail,
        AwaitCancellation,
    }

    impl Backend for Told {
        fn load(&mut self, id: BasesId, _: &Points, _: usize) -> Result<(), Error> {
            self.resident.push(id);
            Ok(())
        }

        fn evict(&mut self, id: BasesId) -> Result<(), Error> {
            let count = self.resident.len();
            self.resident.retain(|resident| *resident != id);
            if self.resident.len() == count {
                return Err(Error::UnknownBases(id));
            }
            Ok(())
        }

        fn msm(
            &mut self,
            id: BasesId,
            _: &Scalars,
            cancellation: &Cancellation,
        ) -> Result<Outcome, Error> {
            if !self.resident.contains(&id) {
                return Err(Error::UnknownBases(id));
            }
            self.says.send(self.name).unwrap();
            match self.orders.recv().unwrap() {
                Order::Finish => cancellation.check().map(|()| Outcome::Batch(Vec::new())),
                Order::AwaitCancellation => loop {
                    cancellation.check()?;
                    std::thread::yield_now();
                },
                Order::Fail => Err(Error::Failed {
                    device: self.name.into(),
                    reason: "told to".into(),
                }),
            }
        }

        fn transform(&mut self, _: Transform, _: &Cancellation) -> Result<Scalars, Error> {
            Err(Error::BadJob("never asked for".into()))
        }
    }

    /// Two devices in a pool, what says who runs, and what tells each how to end.
    fn pool() -> (Pool, Receiver<&'static str>, [Sender<Order>; 2]) {
        let (says, said) = channel();
        let mut devices: Vec<Box<dyn Device>> = Vec::new();
        let orders = ["left", "right"].map(|name| {
            let (orders, receiver) = channel();
            let says = says.clone();
            let queue = Queue::start(move || {
                let caps = Capabilities {
                    name: name.into(),
                    groups: vec![Group::Bn254G1],
                    fields: Vec::new(),
                    max_bases: 10,
                    max_transform_log: 0,
                    memory: Some(1),
                };
                let backend = Told {
                    name,
                    resident: Vec::new(),
                    says,
                    orders: receiver,
                };
                Ok((backend, caps))
            });
            devices.push(Box::new(queue.unwrap()));
            orders
        });
        (Pool::new(devices).unwrap(), said, orders)
    }

    fn load(pool: &Pool) -> BasesId {
        let points = vec![ark_bn254::G1Affine::default()];
        pool.load_bases(ark_bn254::G1Projective::points(points), 0)
            .unwrap()
    }

    fn job(bases: BasesId) -> Job {
        Job::Msm {
            bases,
            scalars: ark_bn254::Fr::scalars(vec![1.into()]),
        }
    }

    #[test]
    fn jobs_go_where_their_bases_are() {
        let (pool, said, orders) = pool();
        let (first, second) = (load(&pool), load(&pool));
        for (bases, member, name) in [(first, 0, "left"), (second, 1, "right"), (first, 0, "left")]
        {
            let ticket = pool.submit(job(bases)).unwrap();
            assert_eq!(said.recv().unwrap(), name);
            assert_eq!(pool.members()[member].jobs, 1);
            orders[member].send(Order::Finish).unwrap();
            ticket.wait().unwrap();
        }
        pool.evict(first).unwrap();
        assert_eq!(pool.evict(first), Err(Error::UnknownBases(first)));
        let gone = pool.submit(job(first)).unwrap().wait().unwrap_err();
        assert_eq!(gone, Error::UnknownBases(first));
        assert_eq!(pool.caps().memory, Some(2));
    }

    #[test]
    fn the_jobs_of_a_device_that_fails_run_elsewhere() {
        let (pool, said, orders) = pool();
        let bases = load(&pool);
        let tickets = [(); 3].map(|()| pool.submit(job(bases)).unwrap());
        assert_eq!(said.recv().unwrap(), "left");
        orders[0].send(Order::Fail).unwrap();
        for ticket in tickets {
            orders[1].send(Order::Finish).unwrap();
            ticket.wait().unwrap();
            assert_eq!(said.recv().unwrap(), "right");
        }
        let members = pool.members();
        assert!(
            matches!(&members[0].failure, Some(Error::Failed { reason, .. }) if reason == "told to")
        );
        assert_eq!(members[1].failure, None);
        assert_eq!(pool.failure(), None);

        let more = load(&pool);
        orders[1].send(Order::Fail).unwrap();
        let last = pool.submit(job(more)).unwrap().wait();
        assert!(matches!(last, Err(Error::Failed { device, .. }) if device == "right"));
        assert!(matches!(pool.failure(), Some(Error::Failed { .. })));
        assert!(matches!(pool.submit(job(more)), Err(Error::Failed { .. })));
    }

    #[test]
    fn cancelling_reaches_the_device() {
        let (pool, said, orders) = pool();
        let bases = load(&pool);
        let running = pool.submit(job(bases)).unwrap();
        let waiting = pool.submit(job(bases)).unwrap();
        said.recv().unwrap();
        orders[0].send(Order::AwaitCancellation).unwrap();
        running.cancel();
        waiting.cancel();
        assert_eq!(running.wait().unwrap_err(), Error::Cancelled);
        assert_eq!(waiting.wait().unwrap_err(), Error::Cancelled);
        assert!(said.try_recv().is_err());
    }

    #[test]
    fn a_pool_of_none_is_refused() {
        assert!(matches!(Pool::new(Vec::new()), Err(Error::NoDevice { .. })));
    }
}
