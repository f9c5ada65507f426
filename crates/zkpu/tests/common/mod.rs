//! A target on a thread, a wire that can be cut, and points.
#![allow(dead_code, reason = "each test program uses a part")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown as Half, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_shutdown::{Level, Trigger};
use proofmill_zkpu::circuit::{Circuit, CircuitOptions};
use proofmill_zkpu::controller::{
    CoreJob, CoreState, DeviceDescription, DeviceError, Execution, FunctionalModel, ModelOptions,
    MsmDevice, NvmeController, Stop,
};
use proofmill_zkpu::curve::{decode_result, encode_result};
use proofmill_zkpu::host::HostOptions;
use proofmill_zkpu::target::{Target, TargetOptions};

/// Memory of the devices that the conformance suite is for. A simulator fills its own with noise as it starts.
pub(crate) const MODEL_MEMORY: u64 = 1 << 28;
const CIRCUIT_MEMORY: u64 = 1 << 24;

/// A target that serves a device.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    trigger: Trigger,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves on a port of loopback; 0 takes a free one.
    pub(crate) fn start(device: impl MsmDevice + Send + 'static, port: u16) -> Self {
        Self::serve(port, async move |options| {
            Target::bind(device, options).await.unwrap()
        })
    }

    /// Serves the device that the conformance suite is for on a free port: the functional model, or the circuit in RTL where
    /// [`circuit_build`] names the simulator's folder.
    pub(crate) fn under_test() -> Self {
        match circuit_build() {
            Some(build) => Self::of_circuit(circuit(&build, CIRCUIT_MEMORY)),
            None => Self::start(model(MODEL_MEMORY, 1), 0),
        }
    }

    /// Serves a simulated circuit on a free port.
    pub(crate) fn of_circuit(circuit: Circuit) -> Self {
        Self::serve(0, async move |options| {
            Target::bind_controller(circuit, options).await.unwrap()
        })
    }

    fn serve<C: NvmeController + Send + 'static>(
        port: u16,
        bind: impl AsyncFnOnce(TargetOptions) -> Target<C> + Send + 'static,
    ) -> Self {
        let (trigger, shutdown) = proofmill_shutdown::channel();
        let (sender, address) = channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let options = TargetOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
                let target = bind(options).await;
                sender.send(target.address()).unwrap();
                target.run(shutdown).await;
            });
        });
        Self {
            address: address.recv().unwrap(),
            trigger,
            thread: Some(thread),
        }
    }

    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.trigger.raise(Level::Stop);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A functional model with a thread for its core.
pub(crate) fn model(memory_bytes: u64, power_on_id: u64) -> FunctionalModel {
    FunctionalModel::new(ModelOptions {
        serial: "TEST".into(),
        memory_bytes,
        adders: 2,
        power_on_id,
        execution: Execution::Thread,
    })
}

/// The folder with the simulator `soc-two/zkpu_sim` and the firmware `soc/firmware.hex`, if the tests are to use it.
pub(crate) fn circuit_build() -> Option<PathBuf> {
    std::env::var_os("ZKPU_BUILD").map(PathBuf::from)
}

/// A simulated circuit.
pub(crate) fn circuit(build: &Path, memory_bytes: u64) -> Circuit {
    let options = CircuitOptions {
        simulator: build.join("soc-two/zkpu_sim"),
        firmware: build.join("soc/firmware.hex"),
        memory_bytes,
        power_on_id: 1,
        silence_max: Duration::from_secs(10),
    };
    Circuit::launch(&options).unwrap()
}

/// Options with long limits: a busy machine may give a process no time for seconds, and the simulated circuit takes seconds
/// for a megabyte.
pub(crate) fn options(address: SocketAddr) -> HostOptions {
    HostOptions {
        command_timeout: Duration::from_secs(120),
        connect_timeout: Duration::from_secs(60),
        keep_alive: Duration::from_secs(240),
        ..HostOptions::new(address)
    }
}

pub(crate) fn points(count: usize, seed: u64) -> Vec<G1Affine> {
    let mut rng = StdRng::seed_from_u64(seed);
    let scalars: Vec<Fr> = (0..count).map(|_| Fr::rand(&mut rng)).collect();
    proofmill_kernels::fixed_base(G1Projective::rand(&mut rng), &scalars)
}

pub(crate) fn scalars(count: usize, seed: u64) -> Vec<Fr> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count).map(|_| Fr::rand(&mut rng)).collect()
}

/// The product by the definition.
pub(crate) fn product(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
    points
        .iter()
        .zip(scalars)
        .map(|(point, scalar)| *point * scalar)
        .sum::<G1Projective>()
        .into_affine()
        .into()
}

/// A model that adds the generator to its results when it is told to.
pub(crate) struct Wrong {
    model: FunctionalModel,
    is_wrong: Arc<AtomicBool>,
    job: Option<CoreJob>,
}

impl Wrong {
    pub(crate) fn new(memory_bytes: u64, is_wrong: &Arc<AtomicBool>) -> Self {
        Self {
            model: model(memory_bytes, 1),
            is_wrong: Arc::clone(is_wrong),
            job: None,
        }
    }
}

impl MsmDevice for Wrong {
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
        self.model.start(job);
    }

    fn poll(&mut self) -> CoreState {
        let state = self.model.poll();
        if let (CoreState::Ended(_), Some(job)) = (state, self.job)
            && self.is_wrong.load(Ordering::SeqCst)
        {
            let mut bytes = [0; 192];
            self.model.read(job.result, &mut bytes).unwrap();
            let sum = decode_result(&bytes).unwrap() + G1Projective::generator();
            self.model.write(job.result, &encode_result(&sum)).unwrap();
        }
        state
    }

    fn stop(&mut self) -> Stop {
        self.model.stop()
    }
}

/// A wire to a target that a test cuts, or through which nothing more comes.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    state: Arc<WireState>,
}

struct WireState {
    to: SocketAddr,
    /// Bytes that still pass, both ways together, before all connections are cut.
    left: AtomicUsize,
    is_silent: AtomicBool,
    /// Number of cuts.
    cuts: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl Wire {
    pub(crate) fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(WireState {
            to,
            left: AtomicUsize::new(usize::MAX),
            is_silent: AtomicBool::new(false),
            cuts: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for host in listener.incoming() {
                let Ok(host) = host else { return };
                // While the target is down, connections end at once.
                let Ok(target) = TcpStream::connect(shared.to) else {
                    continue;
                };
                shared
                    .open
                    .lock()
                    .unwrap()
                    .extend([host.try_clone().unwrap(), target.try_clone().unwrap()]);
                for (from, to) in [(&host, &target), (&target, &host)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || shared.copy(from, to));
                }
            }
        });
        Self { address, state }
    }

    /// Cuts all connections when so many bytes have passed.
    pub(crate) fn cut_after(&self, bytes: usize) {
        self.state.left.store(bytes, Ordering::SeqCst);
    }

    /// Cuts all connections now.
    pub(crate) fn cut(&self) {
        self.state.cut();
    }

    /// Swallows all that comes, the ends of connections too, as a network does whose cable is out.
    pub(crate) fn silence(&self) {
        self.state.is_silent.store(true, Ordering::SeqCst);
    }

    pub(crate) fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

impl WireState {
    /// Ends all connections.
    fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            // It may have ended.
            let _ = stream.shutdown(Half::Both);
        }
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = vec![0; 1 << 14];
        while let Ok(count) = from.read(&mut bytes) {
            if count == 0 {
                break;
            }
            if self.is_silent() {
                continue;
            }
            let left = self.left.load(Ordering::SeqCst);
            let passing = count.min(left);
            if left != usize::MAX {
                self.left.store(left - passing, Ordering::SeqCst);
            }
            if to.write_all(&bytes[..passing]).is_err() {
                break;
            }
            if passing < count {
                self.left.store(usize::MAX, Ordering::SeqCst);
                self.cut();
                break;
            }
        }
        if self.is_silent() {
            return;
        }
        let _ = from.shutdown(Half::Both);
        let _ = to.shutdown(Half::Both);
    }

    fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::SeqCst)
    }
}
