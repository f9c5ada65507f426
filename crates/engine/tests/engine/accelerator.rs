//! Tests of engines with accelerators: the CUDA kernels compiled for the host, and devices that break.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofmill_accelerator::{
    Answer, BasesId, Capabilities, Device, DeviceJob, Error, Group, Points, Ticket, Work, cpu,
    host_cuda, ticket,
};
use proofmill_engine::{
    AcceleratorOptions, DeviceKind, DeviceOptions, DeviceStatus, Error as EngineError, EventKind,
    Fault as Injected, Interference, JobState, KeyForm, OffloadRule, Options, PipelineStage,
    Service, StageEnd,
};
use proofmill_groth16::Curve;
use proofmill_shutdown::Level;
use tokio::sync::Notify;

use super::support::{BLS12_381, BN254, Chain, Running, Source, ends, options, submission, until};

const SMALL: Chain = Chain {
    curve: Curve::Bn254,
    length: 60,
    source: Source::Precompiled,
};

const SMALL_ZKEY: Chain = Chain {
    curve: Curve::Bls12_381,
    length: 60,
    source: Source::Zkey,
};

const BLS12_377: Chain = Chain {
    curve: Curve::Bls12_377,
    length: 60,
    source: Source::Precompiled,
};

const BLS12_377_ZKEY: Chain = Chain {
    curve: Curve::Bls12_377,
    length: 70,
    source: Source::Zkey,
};

/// An accelerator of that name.
fn accelerator(name: &str, device: Arc<dyn Device>) -> DeviceOptions {
    DeviceOptions {
        name: name.to_owned(),
        kind: DeviceKind::Accelerator(AcceleratorOptions {
            device,
            offload: OffloadRule::Always,
            partitions: 2,
        }),
    }
}

/// Options with these accelerators, and the processors.
fn with_accelerators(accelerators: Vec<DeviceOptions>) -> Options {
    let default = options();
    Options {
        devices: accelerators.into_iter().chain(default.devices).collect(),
        partition_workers: 4,
        ..options()
    }
}

async fn device(running: &Running, name: &str) -> DeviceStatus {
    let status = running.handle.status().await.unwrap();
    let mut devices = status.devices.into_iter();
    devices.find(|device| device.name == name).unwrap()
}

/// A device that computes on the CPU, with an injected fault.
struct Fake {
    cpu: Box<dyn Device>,
    caps: Capabilities,
    fault: Fault,
    submitted: AtomicUsize,
    resident: Mutex<HashSet<BasesId>>,
    /// Notified whenever a job is left unanswered.
    silent: Notify,
    unanswered: Mutex<Vec<Answer>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Refuses jobs from this number on.
    BreaksAt(usize),
    /// Never answers a job.
    IsSilent,
    /// Has room for this many sets of bases.
    HoldsBases(usize),
}

// === impl Fake ===

impl Fake {
    fn new(fault: Fault) -> Arc<Self> {
        Self::of(fault, |_| {})
    }

    fn with_caps(change: impl FnOnce(&mut Capabilities)) -> Arc<Self> {
        Self::of(Fault::None, change)
    }

    fn of(fault: Fault, change: impl FnOnce(&mut Capabilities)) -> Arc<Self> {
        let cpu: Box<dyn Device> = Box::new(cpu().unwrap());
        let mut caps = cpu.caps().clone();
        caps.name = "fake".to_owned();
        change(&mut caps);
        Arc::new(Self {
            cpu,
            caps,
            fault,
            submitted: AtomicUsize::new(0),
            resident: Mutex::default(),
            silent: Notify::new(),
            unanswered: Mutex::default(),
        })
    }

    fn resident(&self) -> usize {
        self.resident.lock().unwrap().len()
    }
}

impl Device for Fake {
    fn caps(&self) -> &Capabilities {
        &self.caps
    }

    fn cost(&self, _: Work) -> Result<Duration, Error> {
        Ok(Duration::ZERO)
    }

    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
        if matches!(self.fault, Fault::HoldsBases(most) if self.resident() >= most) {
            return Err(Error::OutOfMemory { bytes: 1 });
        }
        let id = self.cpu.load_bases(points, memory_limit)?;
        self.resident.lock().unwrap().insert(id);
        Ok(id)
    }

    fn submit(&self, job: DeviceJob) -> Result<Ticket, Error> {
        let number = self.submitted.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::BreaksAt(at) if number >= at => Err(Error::Failed {
                device: "fake".into(),
                reason: "told to".into(),
            }),
            Fault::IsSilent => {
                let (ticket, answer) = ticket("fake");
                self.unanswered.lock().unwrap().push(answer);
                self.silent.notify_one();
                Ok(ticket)
            }
            _ => self.cpu.submit(job),
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

#[tokio::test(flavor = "multi_thread")]
async fn proofs_are_made_on_an_accelerator() {
    let device_there = Arc::new(host_cuda(256, false).unwrap());
    let devices = vec![accelerator("card", device_there)];
    let running = Running::with(with_accelerators(devices), &[SMALL, SMALL_ZKEY]).await;
    // Each twice: the first time the transforms are done before the device has the key.
    for (seed, chain) in (0..).zip([SMALL, SMALL_ZKEY, SMALL, SMALL_ZKEY]) {
        running.prove(chain, &seed.to_string(), seed).await;
    }
    let card = device(&running, "card").await;
    assert_eq!((card.products, card.failures, card.busy), (4, 0, false));
    assert!(card.busy_us > 0);
    assert_eq!(device(&running, "cpu").await.products, 0);
    let status = running.handle.status().await.unwrap();
    assert!(status.budget.peak <= status.budget.total);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accelerator_that_is_never_faster_computes_nothing() {
    let fake = Fake::new(Fault::BreaksAt(0));
    let mut card = accelerator("card", fake.clone());
    if let DeviceKind::Accelerator(options) = &mut card.kind {
        options.device = Arc::new(Slow(fake.clone()));
        options.offload = OffloadRule::WhenFaster;
    }
    let running = Running::with(with_accelerators(vec![card]), &[SMALL]).await;
    running.prove(SMALL, "1", 1).await;
    assert_eq!(fake.resident(), 0);
    assert_eq!(device(&running, "card").await.broken, None);
    running.stop(Level::Drain).await;
}

/// A device whose costs are very high.
struct Slow(Arc<Fake>);

impl Device for Slow {
    fn caps(&self) -> &Capabilities {
        self.0.caps()
    }

    fn cost(&self, _: Work) -> Result<Duration, Error> {
        Ok(Duration::MAX)
    }

    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
        self.0.load_bases(points, memory_limit)
    }

    fn submit(&self, job: DeviceJob) -> Result<Ticket, Error> {
        self.0.submit(job)
    }

    fn evict(&self, bases: BasesId) -> Result<(), Error> {
        self.0.evict(bases)
    }

    fn busy(&self) -> Duration {
        self.0.busy()
    }

    fn failure(&self) -> Option<Error> {
        self.0.failure()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_accelerator_is_fenced_and_the_processors_go_on() {
    // In the middle of the second proof: each takes five products, and later ones transforms too.
    let fake = Fake::new(Fault::BreaksAt(9));
    let options = Options {
        // An attempt that a broken device ended does not count.
        attempts: 1,
        ..with_accelerators(vec![accelerator("card", fake.clone())])
    };
    let running = Running::with(options, &[SMALL]).await;
    let mut events = running.handle.events();
    let partitions = (0..6).map(|seed| SMALL.partition(seed)).collect();
    let job = running.submit(submission("client", "1", partitions)).await;
    let failed = until(&mut events, |event| {
        matches!(
            event,
            EventKind::Ended {
                end: StageEnd::Failed,
                ..
            }
        )
    });
    let EventKind::Ended { stage, worker, .. } = failed.await.kind else {
        unreachable!("what was waited for")
    };
    assert_eq!((stage, &*worker), (PipelineStage::Prove, "card"));
    let result = running.result(job).await;
    assert_eq!(result.state, JobState::Done);
    for (seed, proof) in (0..).zip(result.proofs.iter()) {
        SMALL.check(proof, seed);
    }
    let card = device(&running, "card").await;
    let why = card.broken.unwrap();
    assert!(why.contains("card") && why.contains("told to"), "{why}");
    assert!(card.failures > 0 && card.products < 6 && !card.busy);
    let processors = device(&running, "cpu").await;
    assert_eq!(processors.products + card.products, 6);
    // The broken device gets no more jobs.
    let asked = fake.submitted.load(Ordering::SeqCst);
    running.prove(SMALL, "2", 7).await;
    assert_eq!(fake.submitted.load(Ordering::SeqCst), asked);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_leaves_an_accelerator_that_never_answers() {
    let fake = Fake::new(Fault::IsSilent);
    let devices = vec![accelerator("card", fake.clone())];
    let running = Running::with(with_accelerators(devices), &[SMALL]).await;
    let mut events = running.handle.events();
    let partitions = vec![SMALL.partition(1)];
    let job = running.submit(submission("client", "1", partitions)).await;
    fake.silent.notified().await;
    running.handle.cancel(job).await.unwrap();
    until(&mut events, |event| ends(event, job)).await;
    // The device's memory is given back once the stage is left.
    running.stop(Level::Drain).await;
    let unanswered = fake.unanswered.lock().unwrap();
    assert!(unanswered.iter().all(Answer::is_cancelled));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_partitions_are_evaluated_while_an_accelerator_works() {
    let fake = Fake::new(Fault::IsSilent);
    let options = Options {
        // A partition that waits for the device occupies no thread of the pool.
        threads: 1,
        ..with_accelerators(vec![accelerator("card", fake.clone())])
    };
    let running = Running::with(options, &[SMALL]).await;
    let mut events = running.handle.events();
    let first = submission("client", "1", vec![SMALL.partition(1)]);
    let first = running.submit(first).await;
    fake.silent.notified().await;
    let second = submission("client", "2", vec![SMALL.partition(2)]);
    let second = running.submit(second).await;
    until(&mut events, |event| {
        matches!(event, EventKind::Ended { span, stage: PipelineStage::Evaluate, end: StageEnd::Done, .. }
            if span.job == second)
    })
    .await;
    assert!(device(&running, "card").await.busy);
    for job in [first, second] {
        running.handle.cancel(job).await.unwrap();
    }
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_device_evicts_the_least_recently_used_keys() {
    // Room for two keys, of five bases each.
    let fake = Fake::new(Fault::HoldsBases(10));
    let devices = vec![accelerator("card", fake.clone())];
    let running = Running::with(with_accelerators(devices), &[SMALL, BN254, BLS12_381]).await;
    for (seed, chain) in (0..).zip([SMALL, BN254, SMALL, BLS12_381]) {
        running.prove(chain, &seed.to_string(), seed).await;
        assert!(fake.resident() <= 10);
    }
    assert_eq!(fake.resident(), 10);
    // BN254 was used less recently than the other key on the device; this proof needs no room.
    let loaded = fake.resident.lock().unwrap().clone();
    running.prove(SMALL, "again", 1).await;
    assert_eq!(*fake.resident.lock().unwrap(), loaded);
    running.prove(BN254, "back", 1).await;
    assert_ne!(*fake.resident.lock().unwrap(), loaded);
    let card = device(&running, "card").await;
    assert_eq!((card.products, card.failures), (6, 0));
    // A key that is evicted from the host leaves the device too.
    for chain in [SMALL, BN254, BLS12_381] {
        running.handle.evict(chain.circuit()).await.unwrap();
    }
    assert_eq!(fake.resident(), 0);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn host_memory_of_accelerators_is_subtracted_from_the_budget() {
    let cpu = cpu().unwrap();
    let mut caps = cpu.caps().clone();
    caps.host_memory = 1 << 20;
    let fake = Arc::new(Fake {
        cpu: Box::new(cpu),
        caps,
        fault: Fault::None,
        submitted: AtomicUsize::new(0),
        resident: Mutex::default(),
        silent: Notify::new(),
        unanswered: Mutex::default(),
    });
    let options = with_accelerators(vec![accelerator("card", fake)]);
    let total = options.memory.unwrap();
    let running = Running::start(options.clone()).await;
    let status = running.handle.status().await.unwrap();
    assert_eq!(status.budget.total, total - (1 << 20));
    running.stop(Level::Drain).await;
    let small = Options {
        memory: Some(1 << 20),
        ..options
    };
    let refused = Service::open(small).await.map(drop).unwrap_err();
    assert!(
        refused.to_string().contains("accelerators keep 1.0 MiB"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn accelerators_need_processors_beside_them_and_plain_keys() {
    let card = || accelerator("card", Fake::new(Fault::None));
    let refused = async |options: Options| {
        let refused = Service::open(options).await.map(drop).unwrap_err();
        assert!(matches!(refused, EngineError::Invalid(_)), "{refused}");
        refused.to_string()
    };
    let alone = Options {
        devices: vec![card()],
        ..options()
    };
    assert!(refused(alone).await.contains("processors are needed"));
    let prepared = Options {
        key_form: KeyForm::Prepared { percent: 200 },
        ..with_accelerators(vec![card()])
    };
    assert!(refused(prepared).await.contains("prepared keys"));
}

/// Makes the products of one device wrong.
#[derive(Debug)]
struct WrongOn(&'static str);

impl Interference for WrongOn {
    fn with_products(&self, device: &str, _: u32, _: u32) -> Injected {
        match device == self.0 {
            true => Injected::WrongProduct,
            false => Injected::None,
        }
    }
}

/// Whether or not the constraints are known, so that the witness can be told from the device.
#[tokio::test(flavor = "multi_thread")]
async fn an_accelerator_that_computes_wrongly_is_fenced_when_another_device_proves() {
    for chain in [SMALL, SMALL_ZKEY] {
        let options = Options {
            interference: Some(Arc::new(WrongOn("card"))),
            ..with_accelerators(vec![accelerator("card", Fake::new(Fault::None))])
        };
        let running = Running::with(options, &[chain]).await;
        running.prove(chain, "1", 1).await;
        let card = device(&running, "card").await;
        let why = card.broken.unwrap();
        assert!(why.contains("card: its results are wrong"), "{why}");
        assert_eq!((card.products, card.suspected), (1, 1));
        running.prove(chain, "2", 2).await;
        assert_eq!(device(&running, "card").await.products, 1);
        running.stop(Level::Drain).await;
    }
}

/// An accelerator for the first group of BLS12-377, as a ZKPU is.
#[tokio::test(flavor = "multi_thread")]
async fn an_accelerator_gets_only_proofs_that_it_can_do_something_for() {
    let special = Fake::with_caps(|caps| {
        caps.groups = vec![Group::Bls12_377G1];
        caps.fields = Vec::new();
    });
    let options = with_accelerators(vec![accelerator("card", special.clone())]);
    let running = Running::with(options, &[SMALL, SMALL_ZKEY, BLS12_377, BLS12_377_ZKEY]).await;
    for chain in [SMALL, SMALL_ZKEY] {
        running.prove(chain, &chain.name(), 1).await;
    }
    assert_eq!(special.submitted.load(Ordering::SeqCst), 0);
    for (number, chain) in (1..).zip([BLS12_377, BLS12_377_ZKEY]) {
        running.prove(chain, &chain.name(), 1).await;
        // A, B, L and H in the first group.
        assert_eq!(special.submitted.load(Ordering::SeqCst), 4 * number);
    }
    let card = device(&running, "card").await;
    assert_eq!((card.products, card.broken), (2, None));
    assert_eq!(device(&running, "cpu").await.products, 2);
    running.stop(Level::Drain).await;
}
