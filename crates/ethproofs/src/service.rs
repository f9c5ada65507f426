//! The thread of a reporter: it takes events, makes calls, and keeps files.

use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc as thread;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hyper::header::{AUTHORIZATION, HeaderMap};
use proofmill_files::{DirectoryLock, make_private_directory, open_regular};
use proofmill_http::{HttpClient, SecretError};
use proofmill_workflow as file;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::answer::{ANSWER_BYTES_MAX, Answer, Verdict};
use crate::call::{Call, Proof, Step, body};
use crate::extract::Extract;
use crate::journal::{Journal, Record};
use crate::numbers::Numbers;
use crate::reporter::{DropReason, Event, Now, Output, Reporter, ReporterOptions, TICK_MAX};
use crate::reports::{EarlierEmission, Inbox, Message, Reports};
use crate::score::Score;
use crate::spool::{Kept, Spool};
use crate::token::Token;

/// Most events that are handled before calls and time are looked at again.
const TURN: usize = 256;

/// Longest time in which reports are sent at the end of the process; the others are sent by the next one.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(3);

/// Shortest time between two looks at the scores.
const SCORES_INTERVAL: Duration = Duration::from_secs(1);

/// Shortest time between two log lines about a site that takes nothing.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Settings of a reporter.
#[derive(Debug)]
pub struct Settings {
    /// Address of the API, below which `/proofs/queued` and the others are.
    pub url: file::HttpUrl,
    /// File of further certificates to trust (PEM).
    pub ca: Option<PathBuf>,
    /// The team's key.
    pub token: Token,
    /// The cluster's number at the site.
    pub cluster_id: u64,
    /// Name of the verifying key or image at the site.
    pub verifier_id: Option<String>,
    /// Longest time of one call.
    pub time_limit: Duration,
    /// Place of the proof in an emitted message.
    pub extract: Extract,
    /// Limits.
    pub options: ReporterOptions,
    /// Folder of this reporter's files; made if necessary.
    pub folder: PathBuf,
}

/// The reason why a reporter cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The key cannot be used.
    #[error(transparent)]
    Token(#[from] SecretError),
    /// The address, or its certificates, cannot be used.
    #[error("the address of Ethproofs: {0}")]
    Address(String),
    /// The folder cannot be used.
    #[error("cannot keep reports to Ethproofs in {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// There is no thread.
    #[error("the system gives no thread for the reports to Ethproofs")]
    Thread(#[source] io::Error),
}

/// A running reporter. Dropping it leaves it running until the process ends.
#[derive(Debug)]
pub struct Reporting {
    reports: Reports,
    stop: oneshot::Sender<()>,
    /// In a lock only so that this can be shared between threads.
    stopped: Mutex<thread::Receiver<()>>,
}

/// Starts a reporter on a thread of its own.
///
/// # Errors
/// [`StartError`]: the settings cannot be used. The site itself is not asked.
pub fn start(settings: Settings) -> Result<Reporting, StartError> {
    let service = Service::open(settings)?;
    let (reports, inbox) = Reports::open(service.numbers.clone());
    let (stop, stopping) = oneshot::channel();
    let (report_stop, stopped) = thread::channel();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().map_err(StartError::Thread)?;
    let run = move || {
        runtime.block_on(service.run(inbox, stopping));
        // The process may be ending without waiting.
        let _ = report_stop.send(());
    };
    let named = std::thread::Builder::new().name("ethproofs".to_owned());
    named.spawn(run).map_err(StartError::Thread)?;
    Ok(Reporting {
        reports,
        stop,
        stopped: Mutex::new(stopped),
    })
}

// === impl Settings ===

impl Settings {
    /// The settings of a workflow. Reads the key.
    ///
    /// # Errors
    /// [`StartError::Token`].
    pub fn of(workflow: &file::Ethproofs, folder: &Path) -> Result<Self, StartError> {
        Ok(Self {
            url: workflow.url.clone(),
            ca: workflow.ca.clone(),
            token: Token::read(&workflow.token)?,
            cluster_id: workflow.cluster_id,
            verifier_id: workflow.verifier_id.clone(),
            time_limit: workflow.time_limit,
            extract: Extract {
                proof: workflow.proof.clone(),
                cycles: workflow.cycles.clone(),
            },
            options: ReporterOptions {
                every: workflow.every,
                calls_per_minute: workflow.calls_per_minute,
                blocks_max: workflow.queue as usize,
                bytes_max: workflow.keep,
            },
            folder: folder.to_owned(),
        })
    }
}

// === impl Reporting ===

impl Reporting {
    /// Takes events for the reporter.
    pub fn reports(&self) -> Reports {
        self.reports.clone()
    }

    /// Sends what can be sent within 3 s. The rest is kept for the next process.
    pub fn finish(self) {
        // A thread that has ended has nothing left.
        let _ = self.stop.send(());
        let stopped = self.stopped.into_inner();
        let stopped = stopped.unwrap_or_else(PoisonError::into_inner);
        let _ = stopped.recv_timeout(FLUSH_TIME_MAX + Duration::from_secs(1));
    }
}

/// The reporter with its files and its connection.
struct Service {
    settings: Settings,
    /// For each step, in the order of [`Step::ALL`].
    clients: [Arc<HttpClient>; 3],
    reporter: Reporter,
    journal: Journal,
    spool: Spool,
    numbers: Arc<Numbers>,
    calls: FuturesUnordered<BoxFuture<'static, (u64, Answer)>>,
    begun: Instant,
    /// Time at which the scores were last looked at.
    scored: Option<Instant>,
    warned: Option<Instant>,
    _lock: DirectoryLock,
}

// === impl Service ===

impl Service {
    fn open(settings: Settings) -> Result<Self, StartError> {
        let [queued, proving, proved] = Step::ALL.map(|step| client(&settings, step));
        let clients = [queued?, proving?, proved?];
        let failed = |source| StartError::Folder {
            path: settings.folder.clone(),
            source,
        };
        make_private_directory(&settings.folder).map_err(failed)?;
        let lock = DirectoryLock::acquire(&settings.folder).map_err(failed)?;
        let lock = lock.map_err(|held| failed(io::Error::other(held.to_string())))?;
        let (spool, kept) = Spool::open(&settings.folder).map_err(failed)?;
        let mut score = Score::new(settings.options.every);
        let journal = Journal::open(&settings.folder, &mut score, wall_ms()).map_err(failed)?;
        let reporter = Reporter::restored(settings.options.clone(), score, kept);
        Ok(Self {
            clients,
            reporter,
            journal,
            spool,
            numbers: Arc::default(),
            calls: FuturesUnordered::new(),
            begun: Instant::now(),
            scored: None,
            warned: None,
            settings,
            _lock: lock,
        })
    }

    async fn run(mut self, mut inbox: Inbox, mut stopping: oneshot::Receiver<()>) {
        self.handle(Event::Tick);
        let mut turn = Vec::with_capacity(TURN);
        let mut open = true;
        let mut until = None;
        loop {
            let due = self.due();
            let end = until.unwrap_or(due);
            tokio::select! {
                count = inbox.take(&mut turn, TURN), if open => {
                    open = count > 0;
                    for message in turn.drain(..) {
                        self.take(message);
                    }
                }
                Some((call, answer)) = self.calls.next(), if !self.calls.is_empty() => {
                    self.handle(Event::Answered { call, answer });
                }
                () = tokio::time::sleep_until(due.min(end)) => self.handle(Event::Tick),
                // A dropped handle lets the reporter run on.
                Ok(()) = &mut stopping, if until.is_none() => {
                    until = Some(Instant::now() + FLUSH_TIME_MAX);
                    inbox.close();
                }
            }
            let idle = self.calls.is_empty() && self.reporter.due_ms() > Some(self.mono_ms());
            let is_flushed =
                !open && (idle || self.reporter.due_ms().is_none() && self.calls.is_empty());
            if until.is_some_and(|until| is_flushed || Instant::now() >= until) {
                return;
            }
            if !open && until.is_none() {
                // Nobody reports any more, and nobody waits for the end.
                until = Some(Instant::now() + FLUSH_TIME_MAX);
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Accepted(block, at_ms) => self.handle(Event::Accepted { block, at_ms }),
            Message::Begun(block, at_ms) => self.handle(Event::Begun { block, at_ms }),
            Message::Emitted(emission) => {
                let (block, proved_ms) = (emission.first, emission.proved_ms);
                self.emitted(block, proved_ms, || Ok(emission.message));
            }
            Message::Earlier(emission) => self.emitted_before(&emission),
            Message::Lost(block) => self.emitted(block, 0, || Err(ErrorKind::NotFound.into())),
        }
    }

    /// Keeps the proof of an emitted block, and lets it be reported.
    fn emitted(&mut self, block: u64, proved_ms: u64, message: impl FnOnce() -> io::Result<Bytes>) {
        if !self.reporter.reports(block) {
            return;
        }
        let kept = match self.reporter.emitted(block, proved_ms) {
            Ok(None) => return,
            Ok(Some(proving_ms)) => self.keep(block, proved_ms, proving_ms, message),
            Err(reason) => Err(reason),
        };
        self.handle(match kept {
            Ok(kept) => Event::Kept(kept),
            Err(reason) => Event::Unkept { block, reason },
        });
    }

    /// Reports a block of which an earlier process told that it was accepted, and nothing of its proof.
    fn emitted_before(&mut self, emission: &EarlierEmission) {
        let (block, proved_ms) = (emission.block, emission.proved_ms);
        if !self.reporter.lacks_proof(block) {
            return;
        }
        let most = self.settings.options.bytes_max;
        let file = emission.files.iter().find(|path| path.is_file());
        let message = || match file {
            Some(path) => read(path, most),
            None => Err(ErrorKind::NotFound.into()),
        };
        let proving_ms = proved_ms.saturating_sub(emission.begun_ms).max(1);
        let kept = self.keep(block, proved_ms, proving_ms, message);
        self.handle(match kept {
            Ok(kept) => Event::Kept(kept),
            Err(reason) => Event::Unkept { block, reason },
        });
    }

    fn keep(
        &self,
        block: u64,
        proved_ms: u64,
        proving_ms: u64,
        message: impl FnOnce() -> io::Result<Bytes>,
    ) -> Result<Kept, DropReason> {
        let lost = |error: io::Error| {
            tracing::warn!(block, %error, "a proof cannot be reported to Ethproofs");
            DropReason::Lost
        };
        let (proof, cycles) = self
            .settings
            .extract
            .read(&message().map_err(lost)?)
            .map_err(|error| {
                tracing::warn!(block, %error, "a proof cannot be reported to Ethproofs");
                DropReason::Unreadable
            })?;
        let kept = Kept {
            block,
            proof: Proof {
                proving_ms,
                cycles,
                bytes: proof.len() as u64,
            },
            proved_ms,
        };
        self.spool.keep(&kept, &proof).map_err(lost)?;
        Ok(kept)
    }

    fn handle(&mut self, event: Event) {
        let now = Now {
            mono_ms: self.mono_ms(),
            wall_ms: wall_ms(),
        };
        let outputs = self.reporter.handle(now, event);
        let mut records: Vec<Record> = Vec::new();
        for output in outputs {
            match output {
                Output::Call(call) => self.calls.push(self.call(call)),
                Output::Forget { block } => self.spool.remove(block),
                Output::Record(record) => records.push(record),
                Output::Dropped {
                    block,
                    step,
                    reason,
                } => {
                    self.numbers.count_drop(step, reason);
                    if step == Step::Proved {
                        tracing::warn!(
                            block,
                            reason = reason.name(),
                            "a proof is not reported to Ethproofs"
                        );
                    }
                }
                Output::Ended {
                    block,
                    step,
                    verdict,
                } => self.ended(block, step, &verdict),
            }
        }
        if !records.is_empty()
            && let Err(error) = self.journal.append(&records, self.reporter.score())
            && self.may_warn()
        {
            tracing::warn!(%error, "the score of Ethproofs cannot be kept: a restart will not know it");
        }
        self.publish(now);
    }

    /// Makes a call.
    fn call(&self, call: Call) -> BoxFuture<'static, (u64, Answer)> {
        let id = call.id;
        let proof = match call.step {
            Step::Proved => self.spool.read(call.block),
            _ => Ok(Vec::new()),
        };
        let proof = match proof {
            Ok(proof) => proof,
            Err(error) => {
                let why = format!("its file cannot be read: {error}");
                let answer = match error.kind() {
                    ErrorKind::NotFound | ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
                        Answer::Impossible(why)
                    }
                    // The system may have what it lacks later.
                    _ => Answer::Nothing(why),
                };
                return Box::pin(std::future::ready((id, answer)));
            }
        };
        let verifier_id = self.settings.verifier_id.as_deref();
        let body = body(&call, self.settings.cluster_id, verifier_id, &proof);
        let client = self.clients[call.step as usize].clone();
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, self.settings.token.header());
        let time_limit = self.settings.time_limit;
        Box::pin(async move {
            let answered = client.post(headers, body.into(), ANSWER_BYTES_MAX, time_limit);
            (id, Answer::of(answered.await))
        })
    }

    fn ended(&mut self, block: u64, step: Step, verdict: &Verdict) {
        self.numbers.count_call(step, verdict);
        match verdict {
            Verdict::Accepted | Verdict::Known => {
                tracing::debug!(block, %step, "Ethproofs has the report");
                if self.reporter.failures() == 0 && self.warned.take().is_some() {
                    tracing::info!("Ethproofs takes reports again");
                }
            }
            Verdict::Refused(why) => {
                tracing::warn!(block, %step, why, "Ethproofs refuses a report");
            }
            Verdict::Limited(pause) => tracing::debug!(?pause, "Ethproofs asks for a pause"),
            Verdict::Misconfigured(why) if self.may_warn() => {
                let waiting = self.reporter.pending();
                tracing::error!(
                    why,
                    ?waiting,
                    "Ethproofs takes no report: mend `url`, the key or `cluster_id` of [ethproofs]; proving goes on"
                );
            }
            Verdict::Failed(why) if self.may_warn() => {
                let waiting = self.reporter.pending();
                tracing::warn!(
                    why,
                    ?waiting,
                    "Ethproofs takes no report now; they are kept, and proving goes on"
                );
            }
            Verdict::Misconfigured(_) | Verdict::Failed(_) => {}
        }
    }

    fn may_warn(&mut self) -> bool {
        let is_due = self
            .warned
            .is_none_or(|warned| warned.elapsed() >= WARNING_INTERVAL);
        if is_due {
            self.warned = Some(Instant::now());
        }
        is_due
    }

    /// Shows the numbers of now.
    fn publish(&mut self, now: Now) {
        let is_due = self
            .scored
            .is_none_or(|scored| scored.elapsed() >= SCORES_INTERVAL);
        let scores = is_due.then(|| self.reporter.scores(now.wall_ms));
        if is_due {
            self.scored = Some(Instant::now());
        }
        let reporter = &self.reporter;
        self.numbers.set(|numbers| {
            numbers.pending = reporter.pending();
            numbers.pending_bytes = reporter.pending_bytes();
            numbers.failing = reporter.failures();
            numbers.scores = scores.unwrap_or(numbers.scores);
        });
    }

    fn due(&self) -> Instant {
        let latest = Instant::now() + TICK_MAX;
        let scores = Instant::now() + SCORES_INTERVAL;
        let due = self.reporter.due_ms();
        let due = due.and_then(|ms| self.begun.checked_add(Duration::from_millis(ms)));
        due.unwrap_or(latest).min(latest).min(scores)
    }

    fn mono_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

fn client(settings: &Settings, step: Step) -> Result<Arc<HttpClient>, StartError> {
    let url = settings.url.below(&format!("/proofs/{step}"));
    let url = url.map_err(|error| StartError::Address(error.to_string()))?;
    let client = HttpClient::new(url, settings.ca.as_deref());
    let client = client.map_err(|error| StartError::Address(error.to_string()))?;
    Ok(Arc::new(client))
}

/// The content of a file of at most `most` bytes.
fn read(path: &Path, most: u64) -> io::Result<Bytes> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(bytes.into())
}

fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().as_millis();
    u64::try_from(since).unwrap_or(u64::MAX)
}
