//! The driver: it brings a device up and gives its commands names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::bring_up::{Device, by_kernel, over_tcp};
use crate::host::error::HostError;
use crate::host::initiator::{CommandData, Response};
use crate::host::jobs::{PrecomputeRequest, Range, StartRequest, descriptors};
use crate::host::options::{Address, HostOptions};
use crate::host::queue::{Callback, Queue};
use crate::host::watch::{Ends, Watch, job_table};
use crate::nvme::opcode::{admin, log, memory, nvm};
use crate::nvme::zkpu::{BLOCK_BYTES, JobEntry, JobTable, Shape, ZkpuCapability, ZkpuHealth};
use crate::nvme::{Command, Configuration, IdentifyController, PropertyFields, Status, property};

/// A device that is connected, identified and ready.
#[derive(Debug)]
pub struct Zkpu {
    admin: Arc<dyn Queue>,
    io: Arc<dyn Queue>,
    identity: IdentifyController,
    capability: ZkpuCapability,
    /// Most bytes of a transfer.
    transfer_bytes: u32,
    ends: Arc<Ends>,
    /// Ends the thread of events when the driver goes. Without one the kernel keeps the events.
    watch: Option<Watch>,
    timeout: Duration,
}

const HEALTH_BYTES: u32 = 512;
/// Time between two attempts to connect to a device that another host uses.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);
/// Time between two looks at the job table, where the kernel keeps the events.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const SHUTDOWN_NORMAL: u32 = 1 << 14;

// === impl Zkpu ===

impl Zkpu {
    /// Connects, enables the controller with all command sets, identifies the device, and makes one I/O queue. A device that
    /// another host uses is asked again until the limit for a connection: it may not know yet that the host has left.
    ///
    /// # Errors
    ///
    /// [`HostError`]; [`HostError::Unusable`] for a device of another kind or version.
    pub fn connect(options: &HostOptions) -> Result<Self, HostError> {
        let deadline = Instant::now() + options.connect_timeout;
        loop {
            match Self::connect_now(options) {
                Err(error)
                    if error.status().is_some_and(|it| it.is(Status::CONNECT_BUSY))
                        && Instant::now() < deadline =>
                {
                    std::thread::park_timeout(BUSY_INTERVAL);
                }
                connected => return connected,
            }
        }
    }

    fn connect_now(options: &HostOptions) -> Result<Self, HostError> {
        let device = match &options.address {
            Address::Tcp(address) => over_tcp(*address, options)?,
            Address::Passthrough(path) => by_kernel(path, options)?,
        };
        let ends = Arc::new(Ends::default());
        let watch = |device: &Device| {
            Watch::start(
                Arc::clone(&device.admin),
                device.io.link(),
                Arc::clone(&ends),
                options.keep_alive,
                options.command_timeout,
            )
        };
        let watch = device.has_events.then(|| watch(&device)).transpose()?;
        Ok(Self {
            admin: device.admin,
            io: device.io,
            identity: device.identity,
            capability: device.capability,
            transfer_bytes: device.transfer_bytes,
            ends,
            watch,
            timeout: options.command_timeout,
        })
    }

    /// The Identify Controller data.
    pub fn identity(&self) -> &IdentifyController {
        &self.identity
    }

    /// The capabilities of the device.
    pub fn capability(&self) -> &ZkpuCapability {
        &self.capability
    }

    /// The error that ended the connection.
    pub fn failure(&self) -> Option<HostError> {
        let failure = |queue: &dyn Queue| queue.link().failure();
        failure(&*self.io).or_else(|| failure(&*self.admin))
    }

    /// Whether an I/O command with this many bytes of data comes to the device as it is ([`Queue::passes_on`]).
    pub fn passes_on(&self, command: &Command, bytes: u32) -> bool {
        self.io.passes_on(command, bytes)
    }

    /// Closes the connections: the device cancels what it does for this host.
    pub fn close(&self) {
        for queue in [&self.io, &self.admin] {
            queue.link().end(HostError::Lost("it was closed".into()));
        }
    }

    /// Writes device memory. The first byte and the length are multiples of 4 (of 512 without the compute personality).
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn write(&self, first: u64, bytes: &[u8]) -> Result<(), HostError> {
        if !self.capability.has(ZkpuCapability::COMPUTE_PERSONALITY) {
            return self.write_blocks(first, bytes);
        }
        let part_bytes = self.transfer_bytes as usize;
        // Two transfers are under way at a time: one is sent while the other is executed.
        let mut last = None;
        for (i, part) in bytes.chunks(part_bytes).enumerate() {
            let at = first + (i * part_bytes) as u64;
            let command = bytes_of(memory::WRITE, at, part.len() as u32);
            let pending = self.io.send(
                "write memory",
                command,
                CommandData::ToController(part.to_vec()),
            )?;
            if let Some(before) = last.replace(pending) {
                before.wait(self.timeout)?;
            }
        }
        last.map_or(Ok(()), |pending| pending.wait(self.timeout).map(drop))
    }

    /// Reads device memory, with the same multiples.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn read(&self, first: u64, length: usize) -> Result<Vec<u8>, HostError> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let part = (length - bytes.len()).min(self.transfer_bytes as usize) as u32;
            let at = first + bytes.len() as u64;
            if self.capability.has(ZkpuCapability::COMPUTE_PERSONALITY) {
                let command = bytes_of(memory::READ, at, part);
                bytes.extend(
                    self.io
                        .call(
                            "read memory",
                            command,
                            CommandData::ToHost(part),
                            self.timeout,
                        )?
                        .data,
                );
            } else {
                bytes.extend(self.read_blocks(at, part)?);
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Writes whole blocks by the memory personality's Write.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn write_blocks(&self, first: u64, bytes: &[u8]) -> Result<(), HostError> {
        for (i, part) in bytes.chunks(self.transfer_bytes as usize).enumerate() {
            let at = first + i as u64 * u64::from(self.transfer_bytes);
            let mut whole = part.to_vec();
            whole.resize(part.len().next_multiple_of(BLOCK_BYTES as usize), 0);
            let command = blocks(at, whole.len() as u32, true);
            self.io.call(
                "write blocks",
                command,
                CommandData::ToController(whole),
                self.timeout,
            )?;
        }
        Ok(())
    }

    /// Reads whole blocks by the memory personality's Read; at most a megabyte, or what a command of the kernel may have.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn read_blocks(&self, first: u64, length: u32) -> Result<Vec<u8>, HostError> {
        let length = length.next_multiple_of(BLOCK_BYTES as u32);
        let command = blocks(first, length, false);
        Ok(self
            .io
            .call(
                "read blocks",
                command,
                CommandData::ToHost(length),
                self.timeout,
            )?
            .data)
    }

    /// Fills memory with zero; nothing on a device without the compute personality.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn wipe(&self, first: u64, length: u32) -> Result<(), HostError> {
        if !self.capability.has(ZkpuCapability::COMPUTE_PERSONALITY) {
            return Ok(());
        }
        let command = bytes_of(memory::FILL, first, length.next_multiple_of(4));
        self.io
            .call("fill memory", command, CommandData::None, self.timeout)
            .map(drop)
    }

    /// Gives a table a number.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn set_base(
        &self,
        number: u8,
        table: u64,
        count: u32,
        shape: Shape,
    ) -> Result<(), HostError> {
        let word = u32::from(shape.window) | u32::from(shape.levels) << 8;
        let command = Command::new(nvm::SET_BASE, 1).with_dwords(&[
            number.into(),
            (table / BLOCK_BYTES) as u32,
            0,
            count,
            word,
        ]);
        self.io
            .call("set a base", command, CommandData::None, self.timeout)
            .map(drop)
    }

    /// Takes a table's number away.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn clear_base(&self, number: u8) -> Result<(), HostError> {
        let command = Command::new(nvm::SET_BASE, 1).with_dwords(&[number.into()]);
        self.io
            .call("clear a base", command, CommandData::None, self.timeout)
            .map(drop)
    }

    /// Starts a job by the memory personality and gives its number.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn start(&self, request: &StartRequest) -> Result<u32, HostError> {
        let command = start_command(request, false)?;
        let response = self
            .io
            .call("start a job", command, CommandData::None, self.timeout)?;
        Ok(response.completion.result[0])
    }

    /// Starts a job and waits for its end, at most for `timeout`. The answer is its number.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn start_and_wait(
        &self,
        request: &StartRequest,
        timeout: Duration,
    ) -> Result<u32, HostError> {
        let command = start_command(request, true)?;
        let response = self
            .io
            .call("run a job", command, CommandData::None, timeout)?;
        Ok(response.completion.result[0])
    }

    /// Makes a table of multiples from a plain one in device memory, and waits for its end, at most for `timeout`. The answer
    /// is the job's number. Only for devices with [`ZkpuCapability::PRECOMPUTE`].
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn precompute_and_wait(
        &self,
        request: &PrecomputeRequest,
        timeout: Duration,
    ) -> Result<u32, HostError> {
        let command = request.command(true).ok_or_else(off_block)?;
        let response = self
            .io
            .call("precompute", command, CommandData::None, timeout)?;
        Ok(response.completion.result[0])
    }

    /// Waits for a job by the command Wait. The answer is the core's cycles, at most 2^32 - 1.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn wait(&self, job: u32, timeout: Duration) -> Result<u32, HostError> {
        let command = Command::new(nvm::WAIT, 1).with_dwords(&[job]);
        let response = self
            .io
            .call("wait for a job", command, CommandData::None, timeout)?;
        Ok(response.completion.result[0])
    }

    /// Lets `callback` have the end of a job, by the command Wait.
    ///
    /// # Errors
    ///
    /// As for [`Queue::submit`].
    pub fn on_end(&self, job: u32, callback: Callback) -> Result<(), HostError> {
        self.io.submit(
            Command::new(nvm::WAIT, 1).with_dwords(&[job]),
            CommandData::None,
            callback,
        )
    }

    /// Waits until an asynchronous event shows the end of a job that has no waiter; where the kernel keeps the events, until
    /// the job table shows it.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn wait_for_event(&self, job: u32, timeout: Duration) -> Result<JobEntry, HostError> {
        let ended = |table: &JobTable| {
            table
                .find(job)
                .filter(|entry| !entry.state.is_live())
                .copied()
        };
        if self.watch.is_some() {
            return self.ends.wait("wait for an event", timeout, ended);
        }
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(entry) = ended(&self.jobs()?) {
                return Ok(entry);
            }
            if Instant::now() >= deadline {
                return Err(HostError::TimedOut {
                    command: "wait for an event",
                    after: timeout,
                });
            }
            std::thread::park_timeout(POLL_INTERVAL);
        }
    }

    /// Events of ended jobs that came.
    pub fn events(&self) -> u64 {
        self.ends.events()
    }

    /// Cancels a job; the core is idle, or runs another, afterwards.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn cancel(&self, job: u32) -> Result<(), HostError> {
        let command = Command::new(nvm::CANCEL, 1).with_dwords(&[job]);
        self.io
            .call("cancel a job", command, CommandData::None, self.timeout)
            .map(drop)
    }

    /// Makes a memory range set and gives its number.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn create_range_set(&self, ranges: &[Range]) -> Result<u16, HostError> {
        let command =
            Command::new(admin::RANGE_SET_MANAGEMENT, 3).with_dwords(&[0, ranges.len() as u32]);
        let data = CommandData::ToController(descriptors(ranges));
        let response = self
            .admin
            .call("create a range set", command, data, self.timeout)?;
        Ok(response.completion.result[0] as u16)
    }

    /// Deletes a memory range set.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn delete_range_set(&self, id: u16) -> Result<(), HostError> {
        let command =
            Command::new(admin::RANGE_SET_MANAGEMENT, 3).with_dwords(&[1 | u32::from(id) << 16]);
        self.admin
            .call(
                "delete a range set",
                command,
                CommandData::None,
                self.timeout,
            )
            .map(drop)
    }

    /// Runs a job by Execute Program with a range set, or with its ranges as data for 0, and waits for its end. The
    /// answer is the core's cycles. Through the kernel's driver the data's length, which is where a pointer to metadata would
    /// be, does not reach the device: with 0 a range set is made for the job.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn execute(
        &self,
        request: &StartRequest,
        range_set: u16,
        timeout: Duration,
    ) -> Result<u64, HostError> {
        let command = request.execute(range_set);
        let data = if range_set == 0 {
            let too_long = || HostError::Unusable("an area of 4 GiB or more".into());
            let ranges = request.ranges().ok_or_else(too_long)?;
            let data = CommandData::ToController(descriptors(&ranges));
            if !self.passes_on(&command, data.length()) {
                let made = self.create_range_set(&ranges)?;
                let executed = self.execute(request, made, timeout);
                self.delete_range_set(made)?;
                return executed;
            }
            data
        } else {
            CommandData::None
        };
        let response = self
            .io
            .call("execute the program", command, data, timeout)?;
        Ok(response.completion.wide())
    }

    /// Reads the job table; a pending event of ended jobs is kept.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn jobs(&self) -> Result<JobTable, HostError> {
        job_table(&*self.admin, true, self.timeout)
    }

    /// Reads health and counters.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn health(&self) -> Result<ZkpuHealth, HostError> {
        let selector = u32::from(log::ZKPU) | 1 << 15 | (HEALTH_BYTES / 4 - 1) << 16;
        let command = Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[selector]);
        let response = self.admin.call(
            "get health",
            command,
            CommandData::ToHost(HEALTH_BYTES),
            self.timeout,
        )?;
        ZkpuHealth::decode(&response.data)
            .ok_or_else(|| HostError::Protocol("a health page that cannot be read".into()))
    }

    /// Sets a feature.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn set_feature(&self, id: u8, value: u32) -> Result<(), HostError> {
        let command = Command::new(admin::SET_FEATURES, 0).with_dwords(&[id.into(), value]);
        self.admin
            .call("set a feature", command, CommandData::None, self.timeout)
            .map(drop)
    }

    /// Sends any command to the I/O queue, as a passthrough does.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn io_command(&self, command: Command, data: CommandData) -> Result<Response, HostError> {
        self.io.call("an I/O command", command, data, self.timeout)
    }

    /// Sends any command to the admin queue.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn admin_command(
        &self,
        command: Command,
        data: CommandData,
    ) -> Result<Response, HostError> {
        self.admin
            .call("an admin command", command, data, self.timeout)
    }

    /// Shuts the controller down: its jobs are cancelled.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn shut_down(&self) -> Result<(), HostError> {
        let value = Configuration::ENABLE_ALL_SETS.0 | SHUTDOWN_NORMAL;
        let command = PropertyFields::set(property::CC, value);
        self.admin
            .call("shut down", command, CommandData::None, self.timeout)
            .map(drop)
    }
}

fn start_command(request: &StartRequest, waits: bool) -> Result<Command, HostError> {
    request.start(waits).ok_or_else(off_block)
}

fn off_block() -> HostError {
    HostError::Unusable("an area does not begin at a block".into())
}

/// A command of the memory namespace.
fn bytes_of(opcode: u8, first: u64, length: u32) -> Command {
    Command::new(opcode, 2).with_dwords(&[first as u32, (first >> 32) as u32, length])
}

/// Write or Read of blocks.
fn blocks(first: u64, length: u32, is_write: bool) -> Command {
    let opcode = if is_write { nvm::WRITE } else { nvm::READ };
    let block = first / BLOCK_BYTES;
    let count = (length / BLOCK_BYTES as u32).max(1);
    Command::new(opcode, 1).with_dwords(&[block as u32, (block >> 32) as u32, count - 1])
}
