//! Sockets, tasks and timers of a target.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proofmill_shutdown::{Level, Shutdown};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::controller::{Controller, MsmDevice, NvmeController};
use crate::nvme::DiscoveryEntry;
use crate::target::options::TargetOptions;
use crate::target::session::Session;
use crate::target::subsystem::{ConnectionId, Subsystem};

/// A target that listens.
#[derive(Debug)]
pub struct Target<C> {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared<C>>,
}

/// The reason why a target does not start.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The address can be reached from other machines, and that was not allowed.
    #[error(
        "{0} is no loopback address: whoever reaches the port can use the device; allow it if that is meant"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("listening on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

#[derive(Debug)]
struct Shared<C> {
    subsystem: Mutex<Subsystem<C>>,
    options: TargetOptions,
    began: Instant,
    /// Wakes each connection's task.
    bells: Mutex<std::collections::BTreeMap<ConnectionId, Arc<Notify>>>,
    /// The controller may have work.
    busy: Arc<Notify>,
    connections: Arc<Semaphore>,
    next_id: AtomicU64,
}

/// Time between looks at a running job.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Time between looks at the keep alive timer.
const EXPIRE_INTERVAL: Duration = Duration::from_millis(200);
/// Time without a byte after which a discovery connection closes.
const DISCOVERY_IDLE: Duration = Duration::from_secs(120);
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 16;

impl<D: MsmDevice + Send + 'static> Target<Controller<D>> {
    /// Listens, for the state machine over a device.
    ///
    /// # Errors
    ///
    /// [`TargetError`].
    pub async fn bind(device: D, options: TargetOptions) -> Result<Self, TargetError> {
        Self::listen(Subsystem::new(device), options).await
    }
}

impl<C: NvmeController + Send + 'static> Target<C> {
    /// Listens, for any controller.
    ///
    /// # Errors
    ///
    /// [`TargetError`].
    pub async fn bind_controller(
        controller: C,
        options: TargetOptions,
    ) -> Result<Self, TargetError> {
        Self::listen(Subsystem::over(controller), options).await
    }

    async fn listen(
        mut subsystem: Subsystem<C>,
        options: TargetOptions,
    ) -> Result<Self, TargetError> {
        let address = options.address;
        if !address.ip().is_loopback() && !options.allow_remote {
            return Err(TargetError::NotLoopback(address));
        }
        let failed = |source| TargetError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let entry = DiscoveryEntry {
            subsystem: subsystem.controller().subsystem(),
            address: address.ip().to_string(),
            port: address.port().to_string(),
            is_ipv6: address.is_ipv6(),
        };
        subsystem.set_discovery(vec![entry]);
        Ok(Self {
            listener,
            address,
            shared: Arc::new(Shared {
                connections: Arc::new(Semaphore::new(options.connections_max)),
                busy: subsystem.controller().bell().unwrap_or_default(),
                subsystem: Mutex::new(subsystem),
                options,
                began: Instant::now(),
                bells: Mutex::default(),
                next_id: AtomicU64::new(1),
            }),
        })
    }

    /// The name of the subsystem that it serves.
    pub fn subsystem(&self) -> String {
        self.shared.lock().controller().subsystem()
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the shutdown. At `Drain` no new connections are taken and those that are open go on; at `Stop`
    /// they close.
    pub async fn run(self, mut shutdown: Shutdown) {
        let timers = tokio::spawn(Arc::clone(&self.shared).watch(shutdown.clone()));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = shutdown.reached(Level::Drain) => break,
            };
            match accepted {
                Ok((stream, peer)) => self.shared.accept(stream, peer, shutdown.clone()),
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(self.listener);
        shutdown.reached(Level::Stop).await;
        // An error means that the task panicked, which the runtime has reported.
        let _ = timers.await;
    }
}

impl<C: NvmeController + Send + 'static> Shared<C> {
    fn lock(&self) -> MutexGuard<'_, Subsystem<C>> {
        self.subsystem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn bell(&self, id: ConnectionId) -> Arc<Notify> {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(bells.entry(id).or_default())
    }

    /// Wakes the connections that have something to do, and the timer of jobs.
    fn wake(&self, subsystem: &mut Subsystem<C>) {
        let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for id in subsystem.take_woken() {
            if let Some(bell) = bells.get(&id) {
                bell.notify_one();
            }
        }
        if subsystem.controller().is_busy() {
            self.busy.notify_one();
        }
    }

    /// Moves jobs on while there are some, and watches the keep alive timer.
    async fn watch(self: Arc<Self>, mut shutdown: Shutdown) {
        loop {
            let is_busy = {
                let mut subsystem = self.lock();
                subsystem.poll();
                subsystem.expire(self.now_ms());
                let is_busy = subsystem.controller().is_busy();
                self.wake(&mut subsystem);
                is_busy
            };
            let interval = if is_busy {
                POLL_INTERVAL
            } else {
                EXPIRE_INTERVAL
            };
            tokio::select! {
                () = sleep(interval) => {}
                () = self.busy.notified(), if !is_busy => {}
                () = shutdown.reached(Level::Stop) => return,
            }
        }
    }

    fn accept(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, shutdown: Shutdown) {
        let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else {
            tracing::warn!(%peer, "too many connections: one is refused");
            return;
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let id = ConnectionId(shared.next_id.fetch_add(1, Ordering::Relaxed));
            if let Err(error) = shared.serve(id, stream, shutdown).await {
                tracing::debug!(%peer, %error, "a connection ends");
            }
            let mut subsystem = shared.lock();
            subsystem.disconnect(id);
            shared.wake(&mut subsystem);
            shared
                .bells
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&id);
            drop(permit);
        });
    }

    /// Serves one connection until it ends.
    async fn serve(
        &self,
        id: ConnectionId,
        mut stream: TcpStream,
        mut shutdown: Shutdown,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let bell = self.bell(id);
        let mut session = Session::new(id);
        let mut input = vec![0; READ_BYTES];
        let connect_deadline = Instant::now() + self.options.connect_timeout;
        let mut idle_deadline = Instant::now() + DISCOVERY_IDLE;
        loop {
            let must_run_again = {
                let mut subsystem = self.lock();
                let again = session.run(&mut subsystem, self.now_ms());
                self.wake(&mut subsystem);
                again
            };
            let output = session.take_output();
            if !output.is_empty() {
                timeout(self.options.write_timeout, stream.write_all(&output)).await??;
            }
            if session.is_closing() {
                return stream.shutdown().await;
            }
            if must_run_again {
                continue;
            }
            let deadline = match session.is_connected() {
                false => connect_deadline,
                true => idle_deadline,
            };
            tokio::select! {
                read = stream.read(&mut input) => {
                    let count = read?;
                    if count == 0 {
                        return Ok(());
                    }
                    session.push(&input[..count]);
                    idle_deadline = Instant::now() + DISCOVERY_IDLE;
                }
                () = bell.notified() => {}
                () = sleep_until(deadline), if !session.is_connected() || session.is_discovery() => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                () = shutdown.reached(Level::Stop) => return Ok(()),
            }
        }
    }
}
