//! The controller on a device that the tests direct.

mod compute;
mod jobs;
mod memory;
mod precompute;
mod standard;

use super::*;
use crate::nvme::zkpu::Shape;
use crate::nvme::{Command, Configuration, Fabrics, Status, opcode, property};

/// A device whose jobs end when a test says so. It checks that nothing outside memory is asked for.
#[derive(Debug)]
pub(crate) struct Scripted {
    description: DeviceDescription,
    memory: Vec<u8>,
    pub(crate) cycles: u64,
    pub(crate) running: Option<CoreJob>,
    /// The end of the running job at the next poll.
    pub(crate) end: Option<CoreEnd>,
    pub(crate) stop: Stop,
    pub(crate) started: Vec<CoreJob>,
}

pub(crate) const MEMORY: u64 = 1 << 20;
const FABRICS: Fabrics = Fabrics {
    keep_alive_units: 10,
    command_capsule: 516,
    response_capsule: 1,
};
pub(crate) const SHAPE: Shape = Shape {
    window: 13,
    levels: 1,
};

impl Scripted {
    pub(crate) fn new() -> Self {
        Self {
            description: DeviceDescription {
                serial: "00000000000000AB".into(),
                model: "ZKPU scripted".into(),
                firmware: "1.0".into(),
                memory_bytes: MEMORY,
                adders: 2,
                window_min: 4,
                window_max: 18,
                levels_max: 31,
                count_max: 1 << 26,
                clock_khz: 0,
                power_on_id: 0x55,
                is_functional: true,
            },
            memory: vec![0; MEMORY as usize],
            cycles: 0,
            running: None,
            end: None,
            stop: Stop::Obeyed(CoreCounters::default()),
            started: Vec::new(),
        }
    }

    fn range(&self, first: u64, length: u64) -> std::ops::Range<usize> {
        let end = first
            .checked_add(length)
            .expect("an address that overflows");
        assert!(
            end <= MEMORY,
            "{length} bytes at {first:#x} are outside of memory"
        );
        first as usize..end as usize
    }
}

impl MsmDevice for Scripted {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn cycles(&self) -> u64 {
        self.cycles
    }

    fn read(&self, first: u64, to: &mut [u8]) -> Result<(), DeviceError> {
        to.copy_from_slice(&self.memory[self.range(first, to.len() as u64)]);
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DeviceError> {
        let range = self.range(first, from.len() as u64);
        self.memory[range].copy_from_slice(from);
        Ok(())
    }

    fn fill(&mut self, first: u64, length: u64) -> Result<(), DeviceError> {
        let range = self.range(first, length);
        self.memory[range].fill(0);
        Ok(())
    }

    fn start(&mut self, job: CoreJob) {
        assert_eq!(self.running, None, "the core is idle when a job starts");
        for (first, length) in job.reads().into_iter().chain([job.writes()]) {
            self.range(first, length);
        }
        self.running = Some(job);
        self.started.push(job);
    }

    fn poll(&mut self) -> CoreState {
        match (self.running, self.end) {
            (None, _) => CoreState::Idle,
            (Some(_), None) => CoreState::Running,
            (Some(job), Some(end)) => {
                self.running = None;
                self.end = None;
                if end.error == 0 {
                    let (first, length) = job.writes();
                    let range = self.range(first, length);
                    self.memory[range].fill(0xee);
                }
                CoreState::Ended(end)
            }
        }
    }

    fn stop(&mut self) -> Stop {
        self.running = None;
        self.stop
    }
}

pub(crate) fn end(error: u8) -> CoreEnd {
    CoreEnd {
        error,
        counters: CoreCounters([1000, 20, 3, 4, 5]),
    }
}

/// A controller that is enabled with all command sets.
fn enabled() -> Controller<Scripted> {
    let mut controller = Controller::new(Scripted::new(), FABRICS, 128);
    enable(&mut controller, Configuration::ENABLE_ALL_SETS.0);
    controller
}

fn enable<D: MsmDevice>(controller: &mut Controller<D>, configuration: u32) {
    controller
        .set_property(property::CC, false, configuration.into())
        .unwrap();
}

/// Executes a command; its reply, if it came at once.
fn run<D: MsmDevice>(
    controller: &mut Controller<D>,
    queue: u16,
    command: Command,
    data: &[u8],
) -> Option<Reply> {
    controller.execute(queue, &command, data);
    let reply = controller.next_reply()?;
    assert_eq!((reply.queue, reply.cid), (queue, command.cid));
    Some(reply)
}

/// The status of a command that ends at once.
fn status<D: MsmDevice>(
    controller: &mut Controller<D>,
    queue: u16,
    command: Command,
    data: &[u8],
) -> Status {
    run(controller, queue, command, data)
        .expect("it ends at once")
        .status
}

/// A start of two points: scalars at block 0, the table at 8, the result at 16.
fn start(flags: u32) -> Command {
    let word = 13 | 1 << 8 | flags << 24;
    Command::new(opcode::nvm::START, 1).with_dwords(&[0, 8, 16, 2, word, 77])
}

/// Lets the running job end.
fn finish(controller: &mut Controller<Scripted>, error: u8) {
    controller.device_mut().end = Some(end(error));
    controller.poll();
}
