use std::sync::mpsc::{Receiver, Sender, channel};

use proofmill_kernels::Domain;

use super::*;
use crate::cost::{LinearCost, WorkKind};
use crate::device::TransformKind;
use crate::group::{DeviceField, DeviceGroup, Scalars, Transform};
use crate::queue::{Backend, QueuedDevice};
use crate::ticket::Cancellation;

/// A back end that reports each job it starts, then waits for the test's order on how to end it.
struct ScriptedBackend {
    name: &'static str,
    /// Seconds that a unit of work costs.
    unit_seconds: f64,
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

impl Backend for ScriptedBackend {
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
        self.obey(cancellation)?;
        Ok(Outcome::Batch(Vec::new()))
    }

    fn transform(
        &mut self,
        transform: Transform,
        cancellation: &Cancellation,
    ) -> Result<Scalars, Error> {
        self.obey(cancellation)?;
        Ok(ark_bn254::Fr::scalars(vec![
            0.into();
            transform.lengths().0
        ]))
    }

    fn measure(&mut self, _: WorkKind) -> Result<LinearCost, Error> {
        Ok(LinearCost {
            fixed_seconds: 0.0,
            unit_seconds: self.unit_seconds,
        })
    }
}

impl ScriptedBackend {
    fn obey(&self, cancellation: &Cancellation) -> Result<(), Error> {
        self.says.send(self.name).unwrap();
        match self.orders.recv().unwrap() {
            Order::Finish => cancellation.check(),
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
}

/// A pool of two equal devices, the receiver of the names of those that start a job, and the senders of orders to each.
fn pool() -> (Pool, Receiver<&'static str>, [Sender<Order>; 2]) {
    pool_of([1.0, 1.0])
}

/// The same with devices whose units of work cost `unit_seconds`.
fn pool_of(unit_seconds: [f64; 2]) -> (Pool, Receiver<&'static str>, [Sender<Order>; 2]) {
    let (says, said) = channel();
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    let orders =
        [("left", unit_seconds[0]), ("right", unit_seconds[1])].map(|(name, unit_seconds)| {
            let (orders, receiver) = channel();
            let says = says.clone();
            let queue = QueuedDevice::start(move || {
                let caps = Capabilities {
                    name: name.into(),
                    groups: vec![Group::Bn254G1],
                    fields: vec![ScalarField::Bn254],
                    max_bases: 10,
                    max_transform_log: 1,
                    memory: Some(1),
                    host_memory: 0,
                };
                let backend = ScriptedBackend {
                    name,
                    unit_seconds,
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

fn job(bases: BasesId) -> DeviceJob {
    DeviceJob::Msm {
        bases,
        scalars: ark_bn254::Fr::scalars(vec![1.into()]),
    }
}

/// A device for one group beside the processors: the pool can do what either can, and each gets what it can do.
#[test]
fn work_goes_to_a_device_that_can_do_it() {
    use ark_bls12_381::{G1Affine, G1Projective};
    let (says, said) = channel();
    let (orders, receiver) = channel();
    let special = QueuedDevice::start(move || {
        let caps = Capabilities {
            name: "special".into(),
            groups: vec![Group::Bn254G1],
            fields: Vec::new(),
            max_bases: 10,
            max_transform_log: 0,
            memory: Some(1),
            host_memory: 0,
        };
        let backend = ScriptedBackend {
            name: "special",
            unit_seconds: 0.0,
            resident: Vec::new(),
            says,
            orders: receiver,
        };
        Ok((backend, caps))
    });
    let processors = crate::cpu::cpu().unwrap();
    let pool = Pool::new(vec![Box::new(special.unwrap()), Box::new(processors)]).unwrap();
    assert_eq!(pool.caps().groups, Group::ALL);
    let work = |group, points| Work::Msm { group, points };
    assert_eq!(pool.check(work(Group::Bls12_377G2, 1 << 20)), Ok(()));
    assert!(matches!(
        pool.check(work(Group::Bn254G1, usize::MAX)),
        Err(Error::BadJob(_))
    ));

    // No order is given to the special device: it must not be asked.
    let points = G1Projective::points(vec![G1Affine::default(); 3]);
    let bases = pool.load_bases(points, 0).unwrap();
    let scalars = ark_bls12_381::Fr::scalars(vec![1.into(); 3]);
    let ticket = pool.submit(DeviceJob::Msm { bases, scalars }).unwrap();
    let sum: G1Projective = ticket.wait().unwrap().into_sum().unwrap();
    assert_eq!(sum, G1Projective::default());

    // It has the group's bases, being the quicker one; when it fails, the processors compute the product.
    let bases = load(&pool);
    let ticket = pool.submit(job(bases)).unwrap();
    assert_eq!(said.recv().unwrap(), "special");
    orders.send(Order::Fail).unwrap();
    let sum: ark_bn254::G1Projective = ticket.wait().unwrap().into_sum().unwrap();
    assert_eq!(sum, ark_bn254::G1Projective::default());
    assert_eq!(pool.failure(), None);
}

#[test]
fn jobs_go_where_their_bases_are() {
    let (pool, said, orders) = pool();
    let (first, second) = (load(&pool), load(&pool));
    for (bases, member, name) in [(first, 0, "left"), (second, 1, "right"), (first, 0, "left")] {
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

fn transform() -> DeviceJob {
    let domain = Domain::new(2).unwrap();
    let values = vec![0.into(); 2];
    DeviceJob::Transform(ark_bn254::Fr::transform(
        domain,
        TransformKind::Forward,
        values,
    ))
}

/// Unfinished jobs of each member.
fn jobs(pool: &Pool) -> Vec<usize> {
    pool.members().iter().map(|member| member.jobs).collect()
}

#[test]
fn jobs_go_to_the_device_that_will_be_done_first() {
    let (pool, _said, orders) = pool_of([3.0, 1.0]);
    let mut tickets = Vec::new();
    // The third would be done at the same time on both: the first device is preferred.
    for expected in [[0, 1], [0, 2], [1, 2], [1, 3]] {
        tickets.push(pool.submit(transform()).unwrap());
        assert_eq!(jobs(&pool), expected);
    }
    let [left, right] = &pool.members()[..] else {
        panic!("two members")
    };
    assert_eq!(left.queued, right.queued);

    orders[0].send(Order::Finish).unwrap();
    for _ in 0..3 {
        orders[1].send(Order::Finish).unwrap();
    }
    for ticket in tickets {
        ticket.wait().unwrap();
    }
}

#[test]
fn bases_go_to_the_quicker_device_until_it_has_its_share() {
    let (pool, _said, _orders) = pool_of([3.4, 1.0]);
    let bases: Vec<BasesId> = (0..9).map(|_| load(&pool)).collect();
    let state = pool.shared.lock();
    let on = |member| {
        let here = bases.iter().map(|id| &state.bases[id].on);
        here.filter(|on| on.contains_key(&member)).count()
    };
    assert_eq!((on(0), on(1)), (2, 7));
}

#[test]
fn the_cost_is_the_quickest_devices_of_those_that_work() {
    let work = Work::Msm {
        group: Group::Bn254G1,
        points: 1,
    };
    let cost = |pool: &Pool| pool.cost(work).unwrap();
    let (slow, _slow_said, _slow_orders) = pool_of([4.0, 4.0]);
    let (pool, said, orders) = pool_of([4.0, 1.0]);
    assert_eq!(cost(&pool) * 4, cost(&slow));

    let bases = load(&pool);
    let ticket = pool.submit(job(bases)).unwrap();
    assert_eq!(said.recv().unwrap(), "right");
    orders[1].send(Order::Fail).unwrap();
    orders[0].send(Order::Finish).unwrap();
    ticket.wait().unwrap();
    assert_eq!(cost(&pool), cost(&slow));

    let ticket = pool.submit(job(bases)).unwrap();
    orders[0].send(Order::Fail).unwrap();
    assert!(ticket.wait().is_err());
    assert!(matches!(pool.cost(work), Err(Error::Failed { .. })));
}

#[test]
fn an_empty_pool_is_refused() {
    assert!(matches!(Pool::new(Vec::new()), Err(Error::NoDevice { .. })));
}
