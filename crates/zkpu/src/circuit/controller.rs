//! The controller: what the transport asks, as requests to the simulator and replies from its answers.

mod transport;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use crate::circuit::frames::{Answer, Frame, Request};
use crate::circuit::launch::{self, Registers};
use crate::circuit::process::Process;
use crate::controller::Reply;
use crate::nvme::opcode::{admin, feature};
use crate::nvme::{Command, Configuration, ControllerStatus, Status, property};
use crate::target::FABRICS;

/// A simulation to start.
#[derive(Clone, Debug)]
pub struct CircuitOptions {
    /// The simulator, `zkpu_sim`.
    pub simulator: PathBuf,
    /// The firmware's image.
    pub firmware: PathBuf,
    /// Device memory in bytes, a multiple of 4,096.
    pub memory_bytes: u64,
    /// Identifier that differs after every loss of memory.
    pub power_on_id: u64,
    /// Time without an answer after which a simulator that has work counts as hung, and is killed. One that works answers
    /// every few milliseconds.
    pub silence_max: Duration,
}

/// The reason why a simulation does not start.
#[derive(Debug, thiserror::Error)]
pub enum CircuitError {
    /// A file is not there.
    #[error(
        "{0} is not there: `make -C hardware/zkpu soc-real-sim` builds the simulator and the firmware"
    )]
    Missing(PathBuf),
    /// The process cannot be started.
    #[error("starting {program}")]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It started, and does not answer as a ZKPU does.
    #[error("the simulator {program}: {reason}")]
    Unusable {
        /// The program.
        program: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// A controller whose commands the simulated circuit executes.
#[derive(Debug)]
pub struct Circuit {
    process: Process,
    registers: Registers,
    silence_max: Duration,
    /// CC as the host wrote it.
    configuration: Configuration,
    is_ready: bool,
    /// The reason why the circuit is no more.
    failure: Option<String>,
    keep_alive_ms: u32,
    resets: u64,
    pending: BTreeMap<u32, Pending>,
    /// Requests that wait until fewer bytes are under way.
    held: VecDeque<(u32, Request)>,
    bytes_under_way: u32,
    next_tag: u32,
    /// Tag of the last reset.
    reset_tag: u32,
    replies: VecDeque<Reply>,
    watch: Watch,
}

/// When the simulator was last heard, and whether it must be asked.
#[derive(Debug)]
struct Watch {
    heard: Instant,
    asked: Instant,
    is_asked: bool,
    /// The core may work though no command is outstanding.
    may_work: bool,
}

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
struct Pending {
    purpose: Purpose,
    /// Bytes of data that it moves.
    bytes: u32,
    is_sent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Command {
        queue: u16,
        cid: u16,
        kind: Kind,
    },
    /// A property of which the host waits for the value.
    Get {
        cid: u16,
    },
    /// A property that is written, for the host or for itself.
    Set {
        cid: Option<u16>,
    },
    /// A reset, for the host's Property Set or for itself.
    Reset {
        cid: Option<u16>,
    },
    Renewal,
    Status,
    /// A command that nobody waits for any more.
    Abandoned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Identify Controller, into which the fabric's fields go.
    Identity,
    /// An event request, which may wait for ever.
    Event,
    Other,
}

/// Entries of the largest queue. The simulator takes 48 commands of a queue.
const QUEUE_ENTRIES_MAX: u16 = 32;
/// Bytes of commands under way at once. The simulator's host memory is a circle of 32 MiB.
const BYTES_UNDER_WAY_MAX: u32 = 8 << 20;
/// Time between questions to a simulator that works.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// IOSQES and IOCQES: the queues behind the transport are the simulator's, with entries of 64 and 16 bytes.
const ENTRY_SIZES: u32 = 6 << 16 | 4 << 20;
const ENTRY_SIZES_MASK: u32 = 0xff << 16;
const CNS_CONTROLLER: u32 = 1;

impl Circuit {
    /// Starts a simulator and asks it what it is. It is then disabled, as after power-on. Blocks for up to half a minute.
    ///
    /// # Errors
    ///
    /// [`CircuitError`].
    pub fn launch(options: &CircuitOptions) -> Result<Self, CircuitError> {
        for file in [&options.simulator, &options.firmware] {
            if !file.is_file() {
                return Err(CircuitError::Missing(file.clone()));
            }
        }
        let mut program = Program::new(&options.simulator);
        program
            .arg(&options.firmware)
            .arg(options.memory_bytes.to_string())
            .arg(options.power_on_id.to_string());
        let mut process = Process::start(program).map_err(|source| CircuitError::Start {
            program: options.simulator.clone(),
            source,
        })?;
        let registers = launch::ask(&mut process).map_err(|reason| CircuitError::Unusable {
            program: options.simulator.clone(),
            reason,
        })?;
        let now = Instant::now();
        Ok(Self {
            process,
            registers,
            silence_max: options.silence_max,
            configuration: Configuration::default(),
            is_ready: false,
            failure: None,
            keep_alive_ms: 0,
            resets: 0,
            pending: BTreeMap::new(),
            held: VecDeque::new(),
            bytes_under_way: 0,
            next_tag: launch::TAGS,
            reset_tag: 0,
            replies: VecDeque::new(),
            watch: Watch {
                heard: now,
                asked: now,
                is_asked: false,
                may_work: false,
            },
        })
    }

    /// The reason why the circuit is no more; `None` while it is.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The operating system's number of the simulator's process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Sends a request, or holds it until fewer bytes are under way. Gives its tag.
    fn ask(&mut self, request: Request, purpose: Purpose) -> u32 {
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        let bytes = match &request {
            Request::Command {
                to_circuit,
                from_circuit,
                ..
            } => (to_circuit.len() as u32).max(*from_circuit),
            _ => 0,
        };
        if !self.has_work() && !self.watch.may_work {
            // It was at rest: the time for its answer begins now.
            self.watch.heard = Instant::now();
        }
        self.pending.insert(
            tag,
            Pending {
                purpose,
                bytes,
                is_sent: false,
            },
        );
        self.held.push_back((tag, request));
        self.send_held();
        tag
    }

    fn send_held(&mut self) {
        while let Some((tag, _)) = self.held.front() {
            let Some(pending) = self.pending.get_mut(tag) else {
                self.held.pop_front();
                continue;
            };
            if self.bytes_under_way + pending.bytes > BYTES_UNDER_WAY_MAX {
                return;
            }
            pending.is_sent = true;
            self.bytes_under_way += pending.bytes;
            if let Some((tag, request)) = self.held.pop_front() {
                self.process.send(tag, &request);
            }
        }
    }

    /// Whether an answer must come: something other than an event request is pending.
    fn has_work(&self) -> bool {
        self.pending.values().any(|pending| {
            pending.purpose != Purpose::Abandoned
                && !matches!(
                    pending.purpose,
                    Purpose::Command {
                        kind: Kind::Event,
                        ..
                    }
                )
        })
    }

    /// Forgets the commands of a queue, or of all: their answers tell nobody.
    fn abandon(&mut self, of_queue: Option<u16>) {
        self.replies
            .retain(|reply| of_queue.is_some_and(|queue| reply.queue != queue));
        self.pending.retain(|_, pending| {
            let goes = match pending.purpose {
                Purpose::Command { queue, .. } => of_queue.is_none_or(|of_queue| of_queue == queue),
                _ => false,
            };
            if goes {
                pending.purpose = Purpose::Abandoned;
            }
            // What was not sent never is; what was sent counts until its answer comes.
            !goes || pending.is_sent
        });
    }

    fn reset(&mut self, configuration: Configuration, cid: Option<u16>) {
        self.is_ready = false;
        let value = match configuration.is_enabled() {
            true => configuration.0 & !ENTRY_SIZES_MASK | ENTRY_SIZES,
            false => 0,
        };
        let request = Request::Reset {
            configuration: value,
        };
        self.reset_tag = self.ask(request, Purpose::Reset { cid });
    }

    fn configure(&mut self, cid: u16, configuration: Configuration) -> Option<()> {
        let was = std::mem::replace(&mut self.configuration, configuration);
        match (was.is_enabled(), configuration.is_enabled()) {
            (true, false) => {
                self.abandon(None);
                self.resets += 1;
                self.reset(configuration, Some(cid));
            }
            (false, true) => self.reset(configuration, Some(cid)),
            (_, is_enabled) if was.shutdown() != configuration.shutdown() => {
                self.is_ready &= configuration.shutdown() == 0;
                let request = Request::SetRegister {
                    offset: property::CC,
                    value: match is_enabled {
                        true => configuration.0 & !ENTRY_SIZES_MASK | ENTRY_SIZES,
                        false => configuration.0,
                    },
                };
                self.ask(request, Purpose::Set { cid: Some(cid) });
            }
            _ => return Some(()),
        }
        None
    }

    fn reply(&mut self, queue: u16, cid: u16, status: Status, result: [u32; 2], data: Vec<u8>) {
        self.replies.push_back(Reply {
            queue,
            cid,
            status,
            result,
            data,
        });
    }

    fn hear(&mut self, frame: Frame) {
        self.watch.heard = Instant::now();
        let Some(pending) = self.pending.remove(&frame.tag) else {
            tracing::warn!(tag = frame.tag, "an answer of the simulator to no request");
            return;
        };
        self.bytes_under_way -= pending.bytes;
        match (pending.purpose, frame.answer) {
            (
                Purpose::Command { queue, cid, kind },
                Answer::Completion {
                    result,
                    status,
                    mut data,
                },
            ) => {
                if kind == Kind::Identity && data.len() == crate::nvme::IDENTIFY_BYTES {
                    FABRICS.put(&mut data, QUEUE_ENTRIES_MAX);
                }
                self.watch.may_work = true;
                self.reply(queue, cid, status, result, data);
            }
            (Purpose::Command { queue, cid, .. }, Answer::Dropped) => {
                self.reply(queue, cid, Status::ABORTED_SQ_DELETION, [0, 0], Vec::new());
            }
            (Purpose::Command { queue, cid, .. }, Answer::Refused(reason)) => {
                tracing::warn!(reason, "the simulator refuses a command");
                self.reply(queue, cid, Status::INTERNAL_ERROR, [0, 0], Vec::new());
            }
            (Purpose::Get { cid }, Answer::Value(value)) => {
                self.reply(0, cid, Status::SUCCESS, [value, 0], Vec::new());
            }
            (Purpose::Set { cid }, Answer::Written) => self.written(cid),
            (Purpose::Reset { cid }, Answer::Done { is_ok }) => {
                if frame.tag == self.reset_tag {
                    self.is_ready = is_ok && self.configuration.is_enabled();
                }
                self.written(cid);
            }
            (Purpose::Status, Answer::Status { is_core_busy }) => {
                self.watch.is_asked = false;
                self.watch.may_work = is_core_busy;
            }
            (Purpose::Renewal, Answer::Done { is_ok: true }) | (Purpose::Abandoned, _) => {}
            // A queue that was to be renewed for a host that has gone on to disable the controller.
            (Purpose::Renewal, Answer::Refused(_)) => {}
            (purpose, _) => self.fail(&format!("the simulator's answer is none to {purpose:?}")),
        }
        self.send_held();
    }

    fn written(&mut self, cid: Option<u16>) {
        if let Some(cid) = cid {
            self.reply(0, cid, Status::SUCCESS, [0, 0], Vec::new());
        }
    }

    /// Asks a simulator that should work whether it does, and gives it up if it is silent.
    fn look(&mut self) {
        if !self.has_work() && !self.watch.may_work {
            return;
        }
        let now = Instant::now();
        if now.duration_since(self.watch.heard) > self.silence_max {
            let seconds = self.silence_max.as_secs();
            return self.fail(&format!("the simulator has not answered for {seconds} s"));
        }
        if !self.watch.is_asked && now.duration_since(self.watch.asked) > ASK_INTERVAL {
            self.watch.asked = now;
            self.watch.is_asked = true;
            self.ask(Request::Status, Purpose::Status);
        }
    }

    /// The circuit is no more: all that waits for it ends, and the controller's status is fatal.
    fn fail(&mut self, reason: &str) {
        if self.failure.is_some() {
            return;
        }
        tracing::error!(reason, "the circuit has failed; serve it anew");
        self.process.kill();
        self.failure = Some(reason.to_owned());
        self.is_ready = false;
        self.held.clear();
        self.bytes_under_way = 0;
        self.watch.may_work = false;
        for pending in std::mem::take(&mut self.pending).into_values() {
            match pending.purpose {
                Purpose::Command { queue, cid, .. } => {
                    self.reply(queue, cid, Status::INTERNAL_ERROR, [0, 0], Vec::new());
                }
                Purpose::Get { cid } => {
                    let fatal = [ControllerStatus::FATAL, 0];
                    self.reply(0, cid, Status::SUCCESS, fatal, Vec::new());
                }
                Purpose::Set { cid } | Purpose::Reset { cid } => self.written(cid),
                Purpose::Renewal | Purpose::Status | Purpose::Abandoned => {}
            }
        }
    }

    /// The keep alive timer is the transport's; a circuit on PCIe has none.
    fn keep_alive(&mut self, command: &Command) -> Option<Result<u32, Status>> {
        let [selector, value, ..] = command.cdw10;
        if command.opcode == admin::KEEP_ALIVE {
            return Some(Ok(0));
        }
        if selector as u8 != feature::KEEP_ALIVE {
            return None;
        }
        match command.opcode {
            admin::SET_FEATURES if selector >> 31 == 1 => Some(Err(Status::FEATURE_NOT_SAVEABLE)),
            admin::SET_FEATURES => {
                self.keep_alive_ms = value;
                Some(Ok(0))
            }
            admin::GET_FEATURES => Some(match selector >> 8 & 7 {
                0 => Ok(self.keep_alive_ms),
                1 | 2 => Ok(0),
                3 => Ok(4),
                _ => Err(Status::INVALID_FIELD),
            }),
            _ => None,
        }
    }
}
