//! A queue's connection: two threads that move bytes, and commands that wait.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::host::error::HostError;
use crate::host::initiator::{CommandData, Initiator};
use crate::host::queue::{Callback, Link, Queue};
use crate::nvme::{COMMAND_BYTES, Command};
use crate::tcp::Digests;

/// A connection of one queue. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    to_write: Sender<Vec<u8>>,
}

struct Shared {
    stream: TcpStream,
    state: Mutex<State>,
}

struct State {
    initiator: Initiator,
    callbacks: HashMap<u16, Callback>,
    failure: Option<HostError>,
}

const READ_BYTES: usize = 1 << 16;

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

// === impl Connection ===

impl Connection {
    /// Connects and initializes the connection, without Connect.
    ///
    /// # Errors
    ///
    /// [`HostError::Connect`], [`HostError::Protocol`].
    pub fn open(
        address: SocketAddr,
        timeout: Duration,
        digests: Digests,
        entries: u16,
    ) -> Result<Self, HostError> {
        let failed = |error: std::io::Error| HostError::Connect {
            address: address.into(),
            reason: error.to_string(),
        };
        let deadline = Instant::now() + timeout;
        let mut stream = TcpStream::connect_timeout(&address, timeout).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let mut initiator = Initiator::new(digests, entries);
        stream.set_write_timeout(Some(timeout)).map_err(failed)?;
        stream.write_all(&initiator.hello()).map_err(failed)?;
        let mut bytes = [0; 256];
        while !initiator.is_open() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(failed(std::io::ErrorKind::TimedOut.into()));
            }
            stream.set_read_timeout(Some(left)).map_err(failed)?;
            let count = stream.read(&mut bytes).map_err(failed)?;
            if count == 0 {
                return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
            }
            let ended = initiator.receive(&bytes[..count], &mut Vec::new());
            ended.map_err(HostError::Protocol)?;
        }
        stream.set_read_timeout(None).map_err(failed)?;
        stream.set_write_timeout(None).map_err(failed)?;
        Self::start(stream, initiator).map_err(failed)
    }

    fn start(stream: TcpStream, initiator: Initiator) -> std::io::Result<Self> {
        let (reading, writing) = (stream.try_clone()?, stream.try_clone()?);
        let shared = Arc::new(Shared {
            stream,
            state: Mutex::new(State {
                initiator,
                callbacks: HashMap::new(),
                failure: None,
            }),
        });
        let (to_write, written) = channel();
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let reader = (Arc::clone(&shared), to_write.clone());
        thread("zkpu-read").spawn(move || reader.0.read(reading, &reader.1))?;
        let writer = Arc::clone(&shared);
        thread("zkpu-write").spawn(move || writer.write(writing, &written))?;
        Ok(Self { shared, to_write })
    }

    /// Sets the bytes of data that a command capsule may have.
    pub fn set_capsule_data_max(&self, bytes: usize) {
        self.shared.lock().initiator.set_capsule_data_max(bytes);
    }
}

impl Queue for Connection {
    fn submit(
        &self,
        command: Command,
        data: CommandData,
        callback: Callback,
    ) -> Result<(), HostError> {
        let mut state = self.shared.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let mut bytes = Vec::with_capacity(COMMAND_BYTES * 2);
        let cid = state
            .initiator
            .submit(command, data, &mut bytes)
            .ok_or(HostError::QueueFull)?;
        state.callbacks.insert(cid, callback);
        // The order of the stream is that of the lock. A writer that is gone has set the failure.
        let _ = self.to_write.send(bytes);
        Ok(())
    }

    fn link(&self) -> Arc<dyn Link> {
        self.shared.clone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.end(HostError::Lost("it was closed".into()));
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, mut stream: TcpStream, to_write: &Sender<Vec<u8>>) {
        let mut bytes = vec![0; READ_BYTES];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return self.end(HostError::Lost("the device closed it".into())),
                Ok(count) => {
                    if let Err(error) = self.take(&bytes[..count], to_write) {
                        return self.end(HostError::Protocol(error));
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return self.end(HostError::Lost(error.to_string())),
            }
        }
    }

    fn take(&self, bytes: &[u8], to_write: &Sender<Vec<u8>>) -> Result<(), String> {
        let mut output = Vec::new();
        let mut state = self.lock();
        let ended = state.initiator.receive(bytes, &mut output)?;
        if !output.is_empty() {
            // A writer that is gone has set the failure.
            let _ = to_write.send(output);
        }
        let callbacks: Vec<_> = ended
            .into_iter()
            .filter_map(|(cid, response)| Some((state.callbacks.remove(&cid)?, response)))
            .collect();
        drop(state);
        for (callback, response) in callbacks {
            callback(Ok(response));
        }
        Ok(())
    }

    fn write(&self, mut stream: TcpStream, written: &Receiver<Vec<u8>>) {
        for bytes in written {
            if let Err(error) = stream.write_all(&bytes) {
                return self.end(HostError::Lost(error.to_string()));
            }
        }
    }
}

impl Link for Shared {
    fn end(&self, error: HostError) {
        let mut state = self.lock();
        let failure = state.failure.get_or_insert(error).clone();
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
        for callback in callbacks.into_values() {
            callback(Err(failure.clone()));
        }
    }

    fn failure(&self) -> Option<HostError> {
        self.lock().failure.clone()
    }
}
