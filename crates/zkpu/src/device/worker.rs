//! The thread of a device: it works off messages in their order, with several jobs in flight.

mod recovery;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;
use ark_ff::Zero;
use proofmill_accelerator::{
    Answer, BasesId, DeviceField, DeviceGroup, DeviceJob, Error, Outcome, Scalars,
};

use crate::curve::{decode_result, encode_scalars};
use crate::device::memory::{Area, Memory};
use crate::device::resident::Resident;
use crate::device::worker::recovery::RESTARTS_MAX;
use crate::device::{Measured, SharedState, ZkpuOptions};
use crate::host::{Areas, HostError, Response, StartRequest, Zkpu};
use crate::nvme::Status;
use crate::nvme::zkpu::RESULT_BYTES;

/// Requests to the thread, and reports of the device.
pub(super) enum Message {
    Load(
        BasesId,
        Arc<Vec<G1Affine>>,
        usize,
        Sender<Result<(), Error>>,
    ),
    Evict(BasesId, Sender<Result<(), Error>>),
    Measure(Sender<Result<Measured, Error>>),
    Run(DeviceJob, Answer),
    /// The Wait command of a job has ended.
    Ended(u64, Result<Response, HostError>),
    /// No more messages come.
    Stop,
}

pub(super) struct Worker {
    driver: Zkpu,
    options: ZkpuOptions,
    name: String,
    state: Arc<SharedState>,
    messages: Sender<Message>,
    memory: Memory,
    bases: HashMap<BasesId, Resident>,
    /// Base sets that are in use, by their number less one.
    numbers: Vec<bool>,
    /// Jobs on the device, in the order of their start.
    flying: VecDeque<Flying>,
    backlog: VecDeque<Message>,
    next_token: u64,
    results: u32,
    busy_since: Instant,
    is_stopping: bool,
}

/// A job on the device.
struct Flying {
    /// Known to the callback of its Wait command; another after a restart.
    token: u64,
    /// The device's number.
    number: u32,
    bases: BasesId,
    scalars: Scalars,
    input: Area,
    result: Area,
    deadline: Instant,
    restarts: u32,
    is_cancelled: bool,
    sink: Sink,
}

/// The receiver of a job's outcome.
enum Sink {
    Answer(Answer),
    /// A part of a batch, which is waited for.
    Here(Sender<Result<Outcome, Error>>),
}

/// Whether a message was worked off.
enum Progress {
    Done,
    /// It must wait until a job has ended.
    Later(Message),
}

/// Time between looks at cancelled tickets.
const CANCEL_INTERVAL: Duration = Duration::from_millis(10);
const MEASURED_POINTS: usize = 1 << 10;

impl Worker {
    pub(super) fn new(
        driver: Zkpu,
        options: ZkpuOptions,
        name: String,
        state: Arc<SharedState>,
        messages: Sender<Message>,
    ) -> Self {
        let capability = *driver.capability();
        Self {
            memory: Memory::new(capability.memory_bytes),
            numbers: vec![false; usize::from(capability.base_sets_max.min(255))],
            driver,
            options,
            name,
            state,
            messages,
            bases: HashMap::new(),
            flying: VecDeque::new(),
            backlog: VecDeque::new(),
            next_token: 0,
            results: 0,
            busy_since: Instant::now(),
            is_stopping: false,
        }
    }

    /// Works until it is told to stop, and what came before is done.
    pub(super) fn run(mut self, received: &Receiver<Message>) {
        while !(self.is_stopping && self.backlog.is_empty() && self.flying.is_empty()) {
            self.receive(received);
            self.watch();
            self.work(received);
        }
    }

    /// Waits for a message; not for long while jobs fly.
    fn receive(&mut self, received: &Receiver<Message>) {
        let message = match self.flying.is_empty() {
            true if self.backlog.is_empty() => {
                received.recv().map_err(|_| RecvTimeoutError::Disconnected)
            }
            _ => received.recv_timeout(CANCEL_INTERVAL),
        };
        match message {
            Ok(Message::Ended(token, response)) => self.ended(token, response),
            Ok(Message::Stop) => self.is_stopping = true,
            Ok(message) => self.backlog.push_back(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_stopping = true,
        }
    }

    /// Cancels jobs whose tickets are gone, and fences a device that is silent.
    fn watch(&mut self) {
        let mut failure = None;
        for job in &mut self.flying {
            let is_unwanted = matches!(&job.sink, Sink::Answer(answer) if answer.is_cancelled());
            if is_unwanted && !job.is_cancelled {
                job.is_cancelled = true;
                if let Err(error) = self.driver.cancel(job.number) {
                    // The job may have ended and left the table; its own answer comes.
                    if error.status().is_none() {
                        failure = Some(error);
                    }
                }
            }
        }
        if let Some(error) = failure {
            return self.recover(error);
        }
        if self
            .flying
            .front()
            .is_some_and(|job| Instant::now() >= job.deadline)
        {
            let after = self.options.job_timeout;
            self.fence(format!("a job has no answer after {after:?}"));
        }
    }

    fn work(&mut self, received: &Receiver<Message>) {
        while let Some(message) = self.backlog.pop_front() {
            if let Some(failure) = self.state.failure.get() {
                refuse(message, failure.clone());
                continue;
            }
            if let Progress::Later(message) = self.take(message, received) {
                self.backlog.push_front(message);
                return;
            }
        }
    }

    fn take(&mut self, message: Message, received: &Receiver<Message>) -> Progress {
        match message {
            Message::Load(id, points, memory_limit, reply) => {
                let loaded = self.load(id, points, memory_limit);
                // The caller waits for it.
                drop(reply.send(loaded));
            }
            Message::Evict(id, reply) => {
                if self.flying.iter().any(|job| job.bases == id) {
                    return Progress::Later(Message::Evict(id, reply));
                }
                drop(reply.send(self.evict(id)));
            }
            Message::Measure(reply) => {
                if !self.flying.is_empty() {
                    return Progress::Later(Message::Measure(reply));
                }
                drop(reply.send(self.measure(received)));
            }
            Message::Run(job, answer) => return self.run_job(job, answer, received),
            Message::Ended(..) | Message::Stop => {}
        }
        Progress::Done
    }

    fn run_job(
        &mut self,
        job: DeviceJob,
        answer: Answer,
        received: &Receiver<Message>,
    ) -> Progress {
        if answer.is_cancelled() {
            answer.complete(Err(Error::Cancelled));
            return Progress::Done;
        }
        match job {
            DeviceJob::Msm { bases, scalars } => {
                if !self.has_room(&scalars) {
                    return Progress::Later(Message::Run(
                        DeviceJob::Msm { bases, scalars },
                        answer,
                    ));
                }
                self.start(bases, scalars, Sink::Answer(answer));
            }
            job => {
                let outcome = self.run_here(job, &answer, received);
                answer.complete(outcome);
            }
        }
        Progress::Done
    }

    /// Whether a job may start now: the device takes one more, and there is memory or nothing that will free some.
    fn has_room(&self, scalars: &Scalars) -> bool {
        let live_max = usize::from(self.driver.capability().jobs_live_max);
        let bytes = scalars.len() as u64 * 32;
        self.flying.is_empty()
            || (self.flying.len() < live_max && self.memory.largest() >= bytes + (1 << 14))
    }

    /// Runs a job and waits for it: parts of batches, and transforms, which are refused.
    fn run_here(
        &mut self,
        job: DeviceJob,
        answer: &Answer,
        received: &Receiver<Message>,
    ) -> Result<Outcome, Error> {
        if answer.is_cancelled() {
            return Err(Error::Cancelled);
        }
        match job {
            DeviceJob::Msm { bases, scalars } => self.product(bases, scalars, received),
            DeviceJob::Transform(transform) => Err(Error::BadJob(format!(
                "{} does no transforms over {}",
                self.name,
                transform.field()
            ))),
            DeviceJob::Batch(jobs) => {
                let outcomes = jobs
                    .into_iter()
                    .map(|job| self.run_here(job, answer, received));
                outcomes.collect::<Result<_, _>>().map(Outcome::Batch)
            }
        }
    }

    /// A product that is waited for.
    fn product(
        &mut self,
        bases: BasesId,
        scalars: Scalars,
        received: &Receiver<Message>,
    ) -> Result<Outcome, Error> {
        while !self.has_room(&scalars) {
            self.receive(received);
            self.watch();
        }
        let (sender, outcome) = std::sync::mpsc::channel();
        self.start(bases, scalars, Sink::Here(sender));
        loop {
            if let Ok(outcome) = outcome.try_recv() {
                return outcome;
            }
            self.receive(received);
            self.watch();
        }
    }

    /// Starts a product; an error goes to its sink.
    fn start(&mut self, bases: BasesId, scalars: Scalars, sink: Sink) {
        if let Some(failure) = self.state.failure.get() {
            return give(sink, Err(failure.clone()));
        }
        match self.check(bases, &scalars) {
            Err(error) => return give(sink, Err(error)),
            Ok(0) => return give(sink, Ok(Outcome::Sum(Box::new(G1Projective::zero().sum())))),
            Ok(_) => {}
        }
        let input = self.memory.take(scalars.len() as u64 * 32);
        let result = self.memory.take(RESULT_BYTES);
        let (Some(input), Some(result)) = (input, result) else {
            [input, result]
                .into_iter()
                .flatten()
                .for_each(|area| self.memory.give(area));
            let bytes = scalars.len() as u64 * 32 + RESULT_BYTES;
            return give(sink, Err(Error::OutOfMemory { bytes }));
        };
        if self.flying.is_empty() {
            self.busy_since = Instant::now();
        }
        self.flying.push_back(Flying {
            token: 0,
            number: 0,
            bases,
            scalars,
            input,
            result,
            deadline: Instant::now(),
            restarts: 0,
            is_cancelled: false,
            sink,
        });
        if let Err(error) = self.launch(self.flying.len() - 1) {
            self.recover(error);
        }
    }

    /// One scalar for each base.
    fn check(&self, bases: BasesId, scalars: &Scalars) -> Result<usize, Error> {
        let resident = self.bases.get(&bases).ok_or(Error::UnknownBases(bases))?;
        let Some(values) = Fr::of_scalars(scalars) else {
            return Err(Error::BadJob(format!(
                "scalars of {} for points of {}",
                scalars.field(),
                Fr::FIELD
            )));
        };
        let count = resident.points().len();
        if values.len() != count {
            return Err(Error::BadJob(format!(
                "{} scalars for {count} bases",
                values.len()
            )));
        }
        Ok(count)
    }

    /// Writes a job's scalars, starts it, and has its end reported.
    fn launch(&mut self, at: usize) -> Result<(), HostError> {
        let flying = self.flying.len() as u32;
        let Some(job) = self.flying.get_mut(at) else {
            return Ok(());
        };
        let Some((resident, scalars)) =
            self.bases.get(&job.bases).zip(Fr::of_scalars(&job.scalars))
        else {
            return Ok(());
        };
        self.driver
            .write(job.input.first, &encode_scalars(scalars))?;
        // Zeros are no result: a device that writes none must not be believed because of an older one.
        self.driver
            .write(job.result.first, &[0; RESULT_BYTES as usize])?;
        let request = StartRequest {
            areas: Areas {
                scalars: job.input.first,
                table: resident.area().first,
                result: job.result.first,
            },
            count: scalars.len() as u32,
            shape: resident.shape(),
            base: resident.base(),
            tag: at as u32,
        };
        job.number = self.driver.start(&request)?;
        self.next_token += 1;
        job.token = self.next_token;
        job.deadline = Instant::now() + self.options.job_timeout * flying;
        let (token, messages) = (job.token, self.messages.clone());
        // The worker may have ended.
        let callback =
            Box::new(move |response| drop(messages.send(Message::Ended(token, response))));
        self.driver.on_end(job.number, callback)
    }

    /// A job has ended, or its connection.
    fn ended(&mut self, token: u64, response: Result<Response, HostError>) {
        // A job that was restarted, or given up, has another token.
        let Some(at) = self.flying.iter().position(|job| job.token == token) else {
            return;
        };
        let response = match response {
            Ok(response) => response,
            Err(error) => return self.recover(error),
        };
        let status = response.completion.status;
        if status.is(Status::JOB_CANCELLED) {
            return self.finish(at, Err(Error::Cancelled));
        }
        if !status.is_success() {
            return self.fence(format!("a job failed: {status}"));
        }
        let result = self.flying[at].result;
        match self.driver.read(result.first, RESULT_BYTES as usize) {
            Err(error) => self.recover(error),
            Ok(bytes) => match decode_result(&bytes) {
                Err(error) => self.fence(error.to_string()),
                Ok(sum) if self.is_wrong(at, &sum) => {
                    self.fence("a result is not that of the CPU".into());
                }
                Ok(sum) => self.finish(at, Ok(Outcome::Sum(Box::new(sum.sum())))),
            },
        }
    }

    /// Computes a result again, if it is its turn.
    fn is_wrong(&mut self, at: usize, sum: &G1Projective) -> bool {
        self.results = self.results.wrapping_add(1);
        let Some(every) = self.options.recompute_every else {
            return false;
        };
        let job = &self.flying[at];
        let inputs = self.bases.get(&job.bases).zip(Fr::of_scalars(&job.scalars));
        let Some((resident, scalars)) = inputs.filter(|_| self.results.is_multiple_of(every.get()))
        else {
            return false;
        };
        proofmill_kernels::msm::<G1Projective>(resident.points(), scalars) != *sum
    }

    /// Takes a job off, wipes its scalars and gives its outcome.
    fn finish(&mut self, at: usize, outcome: Result<Outcome, Error>) {
        let Some(job) = self.flying.remove(at) else {
            return;
        };
        let us = u64::try_from(self.busy_since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.state.busy_us.fetch_add(us, Ordering::Relaxed);
        self.busy_since = Instant::now();
        // Those behind it wait for one job less.
        let mut deadline = self.busy_since;
        for behind in &mut self.flying {
            deadline += self.options.job_timeout;
            behind.deadline = behind.deadline.min(deadline);
        }
        let length = u32::try_from(job.input.length).unwrap_or(!4095);
        let wiped = self.driver.wipe(job.input.first, length);
        self.memory.give(job.input);
        self.memory.give(job.result);
        give(job.sink, outcome);
        if let Err(error) = wiped {
            self.recover(error);
        }
    }

    fn load(
        &mut self,
        id: BasesId,
        points: Arc<Vec<G1Affine>>,
        memory_limit: usize,
    ) -> Result<(), Error> {
        let number = self.numbers.iter().position(|used| !used);
        let base = number.and_then(|at| u8::try_from(at + 1).ok());
        for _ in 0..=RESTARTS_MAX {
            let loaded = Resident::load(
                &self.driver,
                &mut self.memory,
                Arc::clone(&points),
                memory_limit,
                base,
            );
            match loaded {
                Ok(Ok(resident)) => {
                    if let Some(number) = number.filter(|_| resident.base().is_some()) {
                        self.numbers[number] = true;
                    }
                    self.bases.insert(id, resident);
                    return Ok(());
                }
                Ok(Err(error)) => return Err(error),
                Err(error) => self.recover(error),
            }
            if let Some(failure) = self.state.failure.get() {
                return Err(failure.clone());
            }
        }
        self.fence("the connection is lost again and again".into());
        Err(self
            .state
            .failure
            .get()
            .cloned()
            .unwrap_or(Error::Cancelled))
    }

    fn evict(&mut self, id: BasesId) -> Result<(), Error> {
        let resident = self.bases.remove(&id).ok_or(Error::UnknownBases(id))?;
        self.memory.give(resident.area());
        if let Some(base) = resident.base() {
            if let Some(used) = self.numbers.get_mut(usize::from(base) - 1) {
                *used = false;
            }
            if let Err(error) = self.driver.clear_base(base) {
                self.recover(error);
            }
        }
        Ok(())
    }

    /// Times a product of the generator's copies, whose result is known: a wrong one fences the device.
    fn measure(&mut self, received: &Receiver<Message>) -> Result<Measured, Error> {
        let points = Arc::new(vec![G1Affine::generator(); MEASURED_POINTS]);
        let id = BasesId::fresh();
        self.load(id, points, usize::MAX)?;
        let step = -Fr::from(0x1234_5678_9abc_def1_u64);
        let mut scalar = step;
        let scalars = (0..MEASURED_POINTS).map(|_| {
            scalar *= step;
            scalar
        });
        let scalars: Vec<Fr> = scalars.collect();
        let expected = G1Affine::generator() * scalars.iter().sum::<Fr>();
        let scalars = Fr::scalars(scalars);
        let began = Instant::now();
        let outcome = self.product(id, scalars, received);
        let seconds = began.elapsed().as_secs_f64();
        self.evict(id)?;
        if outcome?.into_sum::<G1Projective>()? != expected {
            self.fence("a product whose result is known is wrong".into());
        }
        if let Some(failure) = self.state.failure.get() {
            return Err(failure.clone());
        }
        Ok(Measured {
            seconds,
            points: MEASURED_POINTS as u64,
            adders: self.driver.capability().adders.clamp(1, 2),
        })
    }
}

fn give(sink: Sink, outcome: Result<Outcome, Error>) {
    match sink {
        Sink::Answer(answer) => answer.complete(outcome),
        // The batch waits for it.
        Sink::Here(sender) => drop(sender.send(outcome)),
    }
}

fn refuse(message: Message, failure: Error) {
    match message {
        Message::Load(.., reply) | Message::Evict(_, reply) => drop(reply.send(Err(failure))),
        Message::Measure(reply) => drop(reply.send(Err(failure))),
        Message::Run(_, answer) => answer.complete(Err(failure)),
        Message::Ended(..) | Message::Stop => {}
    }
}
