//! Several devices as one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::cost::Work;
use crate::device::{BasesId, Capabilities, Device, DeviceJob, Outcome};
use crate::error::Error;
use crate::group::{Group, Points, ScalarField};
use crate::ticket::{Answer, Ticket, ticket};

/// Devices that share jobs.
///
/// Placement goes by the devices' predicted costs ([`Device::cost`]). Bases are loaded on the device that
/// would finish soonest with one product of each of its bases, the new ones included. A job runs on the
/// device that has its bases; without bases, on the one that would finish it soonest. Devices get only work that
/// they can do ([`Device::check`]). A device that fails gets no more work: its jobs run on another device that can do
/// them, where their bases are loaded again. For that the pool keeps the bases' points in host memory. The first bases of a group, and the first transform over a field,
/// wait until all devices have measured their cost.
pub struct Pool {
    shared: Arc<Shared>,
    caps: Capabilities,
    threads: Vec<JoinHandle<()>>,
}

/// State of one device of a pool, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The device's name, groups, fields and limits.
    pub caps: Capabilities,
    /// The error after which the pool no longer uses the device; `None` while it is used.
    pub failure: Option<Error>,
    /// Jobs assigned to the device and not finished.
    pub jobs: usize,
    /// Predicted duration of these jobs on the device.
    pub queued: Duration,
}

struct Shared {
    devices: Vec<Box<dyn Device>>,
    state: Mutex<State>,
}

struct State {
    /// The sender into each device's queue of jobs; `None` once the pool is dropped.
    queues: Vec<Option<Sender<QueuedJob>>>,
    loads: Vec<Load>,
    bases: HashMap<BasesId, PooledBases>,
}

/// A device's unfinished jobs: their number, and their predicted duration.
#[derive(Clone, Copy, Default)]
struct Load {
    jobs: usize,
    queued: Duration,
}

/// A job in a device's queue.
struct QueuedJob {
    job: DeviceJob,
    answer: Answer,
    /// Predicted duration on that device.
    cost: Duration,
}

/// Bases of the pool, and their ids on the devices where they are loaded.
struct PooledBases {
    points: Points,
    memory_limit: usize,
    /// Predicted duration of one product with these bases, by device.
    costs: Vec<Duration>,
    on: HashMap<usize, BasesId>,
}

// === impl Pool ===

impl Pool {
    /// A pool of devices, in order of preference.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if `devices` is empty.
    pub fn new(devices: Vec<Box<dyn Device>>) -> Result<Self, Error> {
        let caps: Vec<&Capabilities> = devices.iter().map(|device| device.caps()).collect();
        if caps.is_empty() {
            return Err(Error::NoDevice {
                reason: "a pool of none".into(),
            });
        }
        let caps = Capabilities {
            name: format!("a pool of {}", caps.len()),
            groups: of_any(Group::ALL, &caps, |caps| &caps.groups),
            fields: of_any(ScalarField::ALL, &caps, |caps| &caps.fields),
            max_bases: caps.iter().map(|caps| caps.max_bases).max().unwrap_or(0),
            max_transform_log: caps
                .iter()
                .map(|caps| caps.max_transform_log)
                .max()
                .unwrap_or(0),
            memory: caps.iter().map(|caps| caps.memory).sum(),
            host_memory: caps.iter().map(|caps| caps.host_memory).sum(),
        };
        let (queues, ends): (Vec<_>, Vec<_>) = devices.iter().map(|_| channel()).unzip();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queues: queues.into_iter().map(Some).collect(),
                loads: vec![Load::default(); devices.len()],
                bases: HashMap::new(),
            }),
            devices,
        });
        let mut pool = Self {
            shared,
            caps,
            threads: Vec::new(),
        };
        for (member, queue) in ends.into_iter().enumerate() {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new()
                .name("proofmill-pool".into())
                .spawn(move || shared.serve(member, &queue))
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
            .zip(&state.loads)
            .map(|(device, load)| Member {
                caps: device.caps().clone(),
                failure: device.failure(),
                jobs: load.jobs,
                queued: load.queued,
            })
            .collect()
    }
}

impl Device for Pool {
    /// The capabilities that any of the devices has.
    fn caps(&self) -> &Capabilities {
        &self.caps
    }

    /// Whether one of the devices can do it.
    fn check(&self, work: Work) -> Result<(), Error> {
        self.shared.able(&[work]).map(drop)
    }

    /// The predicted duration on the quickest device.
    fn cost(&self, work: Work) -> Result<Duration, Error> {
        let able = self.shared.able(&[work])?;
        let costs = able.iter().map(|at| self.shared.devices[*at].cost(work));
        costs
            .reduce(|best, next| match (best, next) {
                (Ok(best), Ok(next)) => Ok(best.min(next)),
                (Err(_), next) => next,
                (best, Err(_)) => best,
            })
            .unwrap_or_else(|| Err(self.shared.all_failed(&able)))
    }

    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
        let id = BasesId::fresh();
        let work = [product(&points)];
        let costs = self.shared.costs(&work);
        let placed = PooledBases {
            points,
            memory_limit,
            costs: costs.clone(),
            on: HashMap::new(),
        };
        self.shared.lock().bases.insert(id, placed);
        let products = |state: &State, member: usize| {
            let here = state.bases.values();
            here.filter(|placed| placed.on.contains_key(&member))
                .map(|placed| placed.costs[member])
                .fold(costs[member], Duration::saturating_add)
        };
        let attempt = || {
            let member = self.shared.least_loaded_device(&work, products)?;
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

    fn submit(&self, job: DeviceJob) -> Result<Ticket, Error> {
        let (ticket, answer) = ticket(&self.caps.name);
        let (member, cost) = self.shared.place(&job)?;
        self.shared.enqueue(member, QueuedJob { job, answer, cost });
        Ok(ticket)
    }

    fn evict(&self, bases: BasesId) -> Result<(), Error> {
        let placed = self.shared.lock().bases.remove(&bases);
        let on = placed.ok_or(Error::UnknownBases(bases))?.on;
        for (member, id) in on {
            match self.shared.devices[member].evict(id) {
                // A failed device has lost its memory too.
                Err(Error::Failed { .. }) => {}
                evicted => evicted?,
            }
        }
        Ok(())
    }

    fn busy(&self) -> Duration {
        self.shared.devices.iter().map(|device| device.busy()).sum()
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

/// Dropping the pool blocks until the queued jobs are finished.
impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().queues.fill_with(|| None);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// The work of one product with these bases.
fn product(points: &Points) -> Work {
    Work::Msm {
        group: points.group(),
        points: points.len(),
    }
}

/// The items of `all` that any device has.
fn of_any<T: Copy + PartialEq>(
    all: &[T],
    caps: &[&Capabilities],
    has: impl Fn(&Capabilities) -> &Vec<T>,
) -> Vec<T> {
    all.iter()
        .copied()
        .filter(|item| caps.iter().any(|caps| has(caps).contains(item)))
        .collect()
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The devices that can do all of `work`, failed ones included.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if there are none.
    fn able(&self, work: &[Work]) -> Result<Vec<usize>, Error> {
        let is_able = |member: &usize| {
            let device = &self.devices[*member];
            work.iter().all(|work| device.check(*work).is_ok())
        };
        let able: Vec<usize> = (0..self.devices.len()).filter(is_able).collect();
        if !able.is_empty() {
            return Ok(able);
        }
        let mut refusals = work
            .iter()
            .filter_map(|it| self.devices[0].check(*it).err());
        Err(refusals.next().unwrap_or_else(|| {
            Error::BadJob("no device of the pool can do all parts of the job".into())
        }))
    }

    /// The reason why none of these devices takes work.
    fn all_failed(&self, able: &[usize]) -> Error {
        let mut failures = able.iter().filter_map(|at| self.devices[*at].failure());
        failures.next().unwrap_or(Error::NoDevice {
            reason: "all devices of the pool failed".into(),
        })
    }

    /// Predicted duration of all of `work` on each device; `Duration::MAX` where a device cannot predict it.
    fn costs(&self, work: &[Work]) -> Vec<Duration> {
        let on = |device: &dyn Device| {
            work.iter().try_fold(Duration::ZERO, |sum, work| {
                Some(sum.saturating_add(device.cost(*work).ok()?))
            })
        };
        self.devices
            .iter()
            .map(|device| on(&**device).unwrap_or(Duration::MAX))
            .collect()
    }

    /// The device with the least load that can do all of `work` and has not failed.
    fn least_loaded_device<L: Ord>(
        &self,
        work: &[Work],
        load: impl Fn(&State, usize) -> L,
    ) -> Result<usize, Error> {
        let able = self.able(work)?;
        let state = self.lock();
        let works = |member: &usize| self.devices[*member].failure().is_none();
        let working = able.iter().copied().filter(works);
        working
            .min_by_key(|&member| load(&state, member))
            .ok_or_else(|| self.all_failed(&able))
    }

    /// The device for a job, and the job's predicted duration there. The device is the one that lacks the fewest
    /// of the job's bases; among several, the one that would finish it soonest.
    fn place(&self, job: &DeviceJob) -> Result<(usize, Duration), Error> {
        let bases = job.bases();
        let work = self.lock().work(job);
        let costs = self.costs(&work);
        let member = self.least_loaded_device(&work, |state, member| {
            let elsewhere = |id: &&BasesId| {
                let placed = state.bases.get(*id);
                placed.is_some_and(|placed| !placed.on.contains_key(&member))
            };
            let missing = bases.iter().filter(elsewhere).count();
            let done = state.loads[member].queued.saturating_add(costs[member]);
            // A device that has the job's bases gets it however long its queue: loading the bases takes longer.
            (missing, done)
        })?;
        Ok((member, costs[member]))
    }

    fn enqueue(&self, member: usize, queued: QueuedJob) {
        let queue = {
            let mut state = self.lock();
            let load = &mut state.loads[member];
            load.jobs += 1;
            load.queued = load.queued.saturating_add(queued.cost);
            state.queues[member].clone()
        };
        if let Some(queue) = queue {
            // Without a receiving thread the dropped answer reports that the device stopped.
            drop(queue.send(queued));
        }
    }

    /// Runs a device's jobs, one after the other; those it fails at go to another device.
    fn serve(&self, member: usize, queue: &Receiver<QueuedJob>) {
        while let Ok(QueuedJob { job, answer, cost }) = queue.recv() {
            let outcome = self.run(member, job.clone(), &answer);
            {
                let load = &mut self.lock().loads[member];
                load.jobs -= 1;
                load.queued = load.queued.saturating_sub(cost);
            }
            match outcome {
                Err(Error::Failed { .. }) => match self.place(&job) {
                    Ok((other, cost)) if other != member => {
                        self.enqueue(other, QueuedJob { job, answer, cost });
                    }
                    _ => answer.complete(outcome),
                },
                outcome => answer.complete(outcome),
            }
        }
    }

    fn run(&self, member: usize, mut job: DeviceJob, answer: &Answer) -> Result<Outcome, Error> {
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
        answer.forward_cancellation(&ticket);
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
        // In the meantime the bases were evicted, or another thread has loaded them too.
        self.devices[member].evict(name)
    }
}

// === impl State ===

impl State {
    /// The units of work in a job, without products whose bases were evicted.
    fn work(&self, job: &DeviceJob) -> Vec<Work> {
        match job {
            DeviceJob::Msm { bases, .. } => {
                let placed = self.bases.get(bases);
                placed
                    .map(|placed| product(&placed.points))
                    .into_iter()
                    .collect()
            }
            DeviceJob::Transform(transform) => vec![Work::Transform {
                field: transform.field(),
                kind: transform.kind(),
                size_log: transform.lengths().1.ilog2(),
            }],
            DeviceJob::Batch(jobs) => jobs.iter().flat_map(|job| self.work(job)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
