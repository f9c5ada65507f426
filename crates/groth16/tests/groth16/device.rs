//! Tests of proofs on devices: the CPU's device, the CUDA kernels compiled for the host, several at
//! once, and devices that fail.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_accelerator::{
    Answer, BasesId, Capabilities, Device, DeviceGroup, DeviceJob, Error, Points, Pool, Ticket,
    Work, cpu, host_cuda, ticket,
};
use proofmill_groth16::{
    Bls12_381, Bn254, Curve, DeviceKey, Offload, Placement, PreparedVerifyingKey, ProveError,
    ProverStage, ResidentForm, ResidentKey, SnarkCurve, setup, verify, with_curve,
};

use super::resident::chain;
use super::zkey;

/// A key and an assignment for it.
type Subject<E> = (
    Arc<ResidentKey<E>>,
    Vec<<E as ark_ec::pairing::Pairing>::ScalarField>,
);

/// A key in this crate's format.
fn own_key<E: SnarkCurve>(residency: ResidentForm) -> Subject<E> {
    let rng = &mut StdRng::seed_from_u64(3);
    let (system, assignment) = chain::<E>(60, rng);
    let key = setup(&system, rng).unwrap();
    let key = ResidentKey::new(key, Arc::new(system), residency).unwrap();
    (Arc::new(key), assignment.z().to_vec())
}

/// A key from snarkjs.
fn snarkjs_key<E: SnarkCurve>() -> Subject<E> {
    let key = ResidentKey::from_zkey(zkey::key::<E>(), ResidentForm::Plain).unwrap();
    (Arc::new(key), zkey::witness::<E>())
}

fn load<E: SnarkCurve>(key: &Arc<ResidentKey<E>>, device: &Arc<dyn Device>) -> DeviceKey<E> {
    let (key, device) = (Arc::clone(key), Arc::clone(device));
    DeviceKey::load(key, device, Offload::Always, 0).unwrap()
}

/// Checks that the device makes valid proofs and reports each step once.
fn assert_proves<E: SnarkCurve>(device: &DeviceKey<E>, z: &[E::ScalarField]) {
    let rng = &mut StdRng::seed_from_u64(4);
    let (proof, reports) = device.prove(z, rng).unwrap();
    let vk = device.key().vk();
    let inputs = &z[1..vk.instance.len()];
    let verdict = verify(&PreparedVerifyingKey::from(vk.clone()), inputs, &proof);
    assert_eq!(verdict, Ok(()), "{device:?}");
    let stages: HashSet<ProverStage> = reports.iter().map(|report| report.stage).collect();
    assert_eq!((reports.len(), stages.len()), (8, 8), "{reports:?}");
}

fn check_devices<E: SnarkCurve>() {
    let hosts = || host_cuda(64, false).unwrap();
    let pool = Pool::new(vec![Box::new(cpu().unwrap()), Box::new(hosts())]).unwrap();
    let devices: [Arc<dyn Device>; 3] =
        [Arc::new(cpu().unwrap()), Arc::new(hosts()), Arc::new(pool)];
    let mut subjects = vec![own_key::<E>(ResidentForm::Plain)];
    if E::CURVE != Curve::Bls12_377 {
        subjects.push(snarkjs_key::<E>());
    }
    for (key, z) in subjects {
        for device in &devices {
            let on = load(&key, device);
            // The CUDA kernels leave BLS12-377's second group to the processors.
            let expected = Placement {
                b_g2: device.caps().groups.contains(&E::G2::GROUP),
                ..EVERYTHING
            };
            assert_eq!(on.placement(), expected);
            assert_proves(&on, &z);
        }
    }
}

const EVERYTHING: Placement = Placement {
    transforms: true,
    a: true,
    b_g1: true,
    b_g2: true,
    l: true,
    h: true,
};

#[test]
fn every_device_proves_over_every_curve() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_devices::<E>());
    }
}

#[test]
fn what_the_device_does_not_compute_the_processors_do() {
    let none = Placement::default();
    assert!(none.is_empty());
    let one = |set: fn(&mut Placement)| {
        let mut placement = none;
        set(&mut placement);
        placement
    };
    let device: Arc<dyn Device> = Arc::new(cpu().unwrap());
    for (key, z) in [
        own_key::<Bn254>(ResidentForm::Plain),
        snarkjs_key::<Bn254>(),
    ] {
        for placement in [
            none,
            one(|on| on.transforms = true),
            one(|on| on.a = true),
            one(|on| on.b_g1 = true),
            one(|on| on.b_g2 = true),
            one(|on| on.l = true),
            one(|on| on.h = true),
        ] {
            let on = DeviceKey::place(key.clone(), device.clone(), placement, 1 << 20).unwrap();
            assert_proves(&on, &z);
        }
    }
}

#[test]
fn a_wrong_witness_is_refused_as_without_a_device() {
    let (key, mut z) = own_key::<Bn254>(ResidentForm::Plain);
    let device = load(&key, &(Arc::new(cpu().unwrap()) as Arc<dyn Device>));
    let rng = &mut StdRng::seed_from_u64(5);
    let first = z[1];
    *z.last_mut().unwrap() += first;
    let refused = device.prove(&z, rng).unwrap_err();
    assert!(matches!(refused, ProveError::Unsatisfied(_)), "{refused}");
    let refused = device.prove(&z[1..], rng).unwrap_err();
    assert!(matches!(refused, ProveError::Assignment(_)), "{refused}");
}

#[test]
fn prepared_points_are_on_no_device() {
    let (key, z) = own_key::<Bn254>(ResidentForm::Prepared { memory_limit: 0 });
    let device: Arc<dyn Device> = Arc::new(cpu().unwrap());
    let refused = DeviceKey::load(key.clone(), device.clone(), Offload::Always, 0).unwrap_err();
    assert!(matches!(refused, ProveError::Prepared), "{refused}");
    // The points need not be unprepared if the device only computes transforms.
    let placement = Placement {
        transforms: true,
        ..Placement::default()
    };
    assert_proves(&DeviceKey::place(key, device, placement, 0).unwrap(), &z);
}

/// A device that works on the CPU, and fails at a chosen job.
struct FaultyDevice {
    cpu: Box<dyn Device>,
    /// The index of a job, and the fault that happens at it.
    fault: Option<(usize, Fault)>,
    submitted: AtomicUsize,
    resident: Mutex<HashSet<BasesId>>,
    /// Jobs that are never answered.
    unanswered: Mutex<Vec<Answer>>,
    cost: fn(Work) -> Duration,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Refuses,
    Breaks,
    IsSilent,
}

// === impl FaultyDevice ===

impl FaultyDevice {
    fn new(fault: Option<(usize, Fault)>) -> Arc<Self> {
        Self::of_cost(fault, |_| Duration::ZERO)
    }

    fn of_cost(fault: Option<(usize, Fault)>, cost: fn(Work) -> Duration) -> Arc<Self> {
        Arc::new(Self {
            cpu: Box::new(cpu().unwrap()),
            fault,
            submitted: AtomicUsize::new(0),
            resident: Mutex::default(),
            unanswered: Mutex::default(),
            cost,
        })
    }
}

impl Device for FaultyDevice {
    fn caps(&self) -> &Capabilities {
        self.cpu.caps()
    }

    fn cost(&self, work: Work) -> Result<Duration, Error> {
        Ok((self.cost)(work))
    }

    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
        let id = self.cpu.load_bases(points, memory_limit)?;
        self.resident.lock().unwrap().insert(id);
        Ok(id)
    }

    fn submit(&self, job: DeviceJob) -> Result<Ticket, Error> {
        let number = self.submitted.fetch_add(1, Ordering::SeqCst);
        let fault = self.fault.filter(|(at, _)| *at == number);
        let (mine, answer) = ticket("fake");
        match fault {
            None => self.cpu.submit(job),
            Some((_, Fault::Refuses)) => Err(Error::Failed {
                device: "fake".into(),
                reason: "told to".into(),
            }),
            Some((_, Fault::Breaks)) => {
                drop(answer);
                Ok(mine)
            }
            Some((_, Fault::IsSilent)) => {
                self.unanswered.lock().unwrap().push(answer);
                Ok(mine)
            }
        }
    }

    fn evict(&self, bases: BasesId) -> Result<(), Error> {
        self.resident.lock().unwrap().remove(&bases);
        self.cpu.evict(bases)
    }

    fn busy(&self) -> Duration {
        self.cpu.busy()
    }

    fn failure(&self) -> Option<Error> {
        None
    }
}

#[test]
fn a_device_that_fails_is_named_and_the_processors_go_on() {
    let (key, z) = own_key::<Bls12_381>(ResidentForm::Plain);
    let rng = &mut StdRng::seed_from_u64(6);
    // Two transforms and five products.
    for job in 0..7 {
        for fault in [Fault::Refuses, Fault::Breaks] {
            let device = FaultyDevice::new(Some((job, fault)));
            let on = load(&key, &(device.clone() as Arc<dyn Device>));
            let error = on.prove(&z, rng).unwrap_err();
            assert!(
                matches!(&error, ProveError::Device(Error::Failed { device, .. }) if device == "fake"),
                "{fault:?} at job {job}: {error}"
            );
            assert!(error.to_string().contains("fake"), "{error}");
        }
    }
    let (proof, _) = key.prover().prove(&z, rng).unwrap();
    let vk = PreparedVerifyingKey::from(key.vk().clone());
    assert_eq!(verify(&vk, &z[1..key.vk().instance.len()], &proof), Ok(()));
}

#[test]
fn a_proof_that_is_dropped_cancels_its_jobs() {
    let (key, z) = snarkjs_key::<Bn254>();
    // The fourth is the first product, after the transforms.
    let device = FaultyDevice::new(Some((3, Fault::IsSilent)));
    let on = load(&key, &(device.clone() as Arc<dyn Device>));
    let (evaluations, _) = key.prover().evaluate(&z).unwrap();
    {
        let started = on.start(&z, evaluations).unwrap();
        let mut finish = pin!(started.finish(&z));
        let mut context = Context::from_waker(Waker::noop());
        assert!(finish.as_mut().poll(&mut context).is_pending());
        assert!(!device.unanswered.lock().unwrap()[0].is_cancelled());
    }
    assert!(device.unanswered.lock().unwrap()[0].is_cancelled());
}

#[test]
fn bases_are_evicted_with_the_key_and_when_loading_fails() {
    let (key, _) = own_key::<Bn254>(ResidentForm::Plain);
    let device = FaultyDevice::new(None);
    let on = load(&key, &(device.clone() as Arc<dyn Device>));
    assert_eq!(device.resident.lock().unwrap().len(), 5);
    drop(on);
    assert!(device.resident.lock().unwrap().is_empty());
}

#[test]
fn work_goes_to_the_device_that_is_done_sooner() {
    // A call costs as much as twenty points.
    let on_device: fn(Work) -> Duration = |work| match work {
        Work::Msm { points, .. } => Duration::from_micros(20 + points as u64),
        Work::Transform { size_log, .. } => Duration::from_micros(20 + (1 << size_log)),
    };
    let on_cpu: fn(Work) -> Duration = |work| match work {
        Work::Msm { group, points } => {
            let second = group.name().ends_with("g2");
            Duration::from_micros(points as u64 * if second { 4 } else { 2 })
        }
        Work::Transform { .. } => Duration::from_micros(30),
    };
    let (key, _) = own_key::<Bn254>(ResidentForm::Plain);
    let placed = |device: fn(Work) -> Duration, cpu: fn(Work) -> Duration| {
        let (device, cpu) = (
            FaultyDevice::of_cost(None, device),
            FaultyDevice::of_cost(None, cpu),
        );
        Placement::of(&key, &*device, Offload::WhenFasterThan(&*cpu)).unwrap()
    };
    let without_transforms = Placement {
        transforms: false,
        ..EVERYTHING
    };
    assert_eq!(placed(on_device, on_cpu), without_transforms);
    assert_eq!(placed(on_device, |_| Duration::from_millis(1)), EVERYTHING);
    // At equal cost, the processors compute.
    assert!(placed(|_| Duration::ZERO, |_| Duration::ZERO).is_empty());
    // For few points, the cost of a call alone is higher.
    let few: fn(Work) -> Duration = |work| match work {
        Work::Msm { .. } => Duration::from_micros(90),
        Work::Transform { .. } => Duration::from_micros(1),
    };
    let transforms = placed(few, |_| Duration::from_micros(50));
    assert!(transforms.transforms && !transforms.h && !transforms.b_g2);
}
