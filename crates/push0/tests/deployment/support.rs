//! A test deployment: a server, processes, and queues that can be read.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{ConnectOptions, HeaderMap};
use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::shutdown::{self, Level};
use proofmill_push0::{Environment, Notices, collector, dispatcher};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

/// The variable that makes this test program run as a role.
pub(crate) const ROLE: &str = "PUSH0_TEST_ROLE";

/// The stream, and the first token of every queue, as in the public demo.
pub(crate) const STREAM: &str = "modularorchestrator";

/// Longest wait for anything on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// Longest wait for one answer of the server, which a machine that stalls delays for several seconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// The line that a role prints when it was told to drain.
pub(crate) const DRAINS: &str = "told to drain";

/// Runs the test program as a role.
pub(crate) async fn run_role(role: &str) {
    let filter = "info,async_nats=warn";
    proofmill_telemetry::init_logs(proofmill_telemetry::LogFormat::Human, filter).unwrap();
    let (trigger, shutdown) = shutdown::channel();
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    tokio::spawn(async move {
        terminate.recv().await;
        trigger.raise(Level::Drain);
        proofmill_telemetry::console_line(DRAINS);
        terminate.recv().await;
        trigger.raise(Level::Stop);
    });
    let notices: Notices = Arc::new(|text| proofmill_telemetry::console_line(text.to_owned()));
    let ran = match Environment::read(|name| std::env::var(name).ok()) {
        Ok(config) if role == "dispatcher" => dispatcher::run(config, shutdown, notices).await,
        Ok(config) => collector::run(config, shutdown, notices).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = &ran {
        proofmill_telemetry::console_line(format!("error: {error}"));
    }
    proofmill_telemetry::console_flush(Duration::from_secs(1));
    std::process::exit(ran.is_err().into());
}

/// A server, and a directory for programs.
pub(crate) struct Deployment {
    pub(crate) nats: NatsServer,
    pub(crate) context: Context,
    pub(crate) directory: tempfile::TempDir,
}

/// A process. Killed when dropped.
pub(crate) struct Role {
    child: Child,
    log: PathBuf,
}

/// A message as it is stored.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) headers: HeaderMap,
    pub(crate) payload: String,
}

// === impl Deployment ===

impl Deployment {
    pub(crate) async fn start() -> Self {
        let nats = NatsServer::start();
        let options = ConnectOptions::new().connection_timeout(ANSWER_LIMIT);
        let client = options.connect(nats.url()).await.unwrap();
        let mut context = jetstream::new(client);
        context.set_timeout(ANSWER_LIMIT);
        Self {
            nats,
            context,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// The stream as the demo makes it.
    pub(crate) async fn with_stream() -> Self {
        let deployment = Self::start().await;
        let config = jetstream::stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![format!("{STREAM}.>")],
            ..Default::default()
        };
        deployment.context.create_stream(config).await.unwrap();
        deployment
    }

    /// A program that `sh` runs: `$in` and `$out` are its files, `$input` is the content of the first.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        let text = format!(
            "#!/bin/sh\nset -e\nwhile [ $# -gt 1 ]; do\n  case \"$1\" in\n    --input-path) in=$2 ;;\n    \
             --output-path) out=$2 ;;\n    *) exit 64 ;;\n  esac\n  shift 2\ndone\ninput=$(cat \"$in\")\n{script}\n"
        );
        std::fs::write(&path, text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        path
    }

    /// Starts a role. Its queues are given without the stream's name.
    pub(crate) fn role(&self, role: &str, variables: &[(&str, &str)]) -> Role {
        let log = tempfile::Builder::new()
            .prefix(role)
            .suffix(".log")
            .tempfile_in(self.directory.path())
            .unwrap();
        let (file, log) = log.keep().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "role", "--nocapture"])
            .env(ROLE, role)
            .env("NATS_URL", self.nats.url())
            .env("INPUT_STREAM", STREAM)
            .env("OUTPUT_STREAM", STREAM)
            .env("TMPDIR", self.directory.path())
            .env("DIR", self.directory.path())
            .env("INHERIT_ENV", "DIR,WHO")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        for (name, value) in variables {
            if matches!(*name, "INPUT_QUEUE" | "OUTPUT_QUEUE") {
                let queues: Vec<String> = value.split(',').map(subject).collect();
                command.env(name, queues.join(","));
            } else {
                command.env(name, value);
            }
        }
        Role {
            child: command.spawn().unwrap(),
            log,
        }
    }

    pub(crate) fn dispatcher(&self, binary: &Path, variables: &[(&str, &str)]) -> Role {
        let mut all = vec![
            ("EXECUTOR_TYPE", "JsonExecutor"),
            ("BINARY", binary.to_str().unwrap()),
        ];
        all.extend(variables);
        self.role("dispatcher", &all)
    }

    pub(crate) async fn publish(&self, queue: &str, payload: impl Into<String>) {
        let payload: String = payload.into();
        let stored = self.context.publish(subject(queue), payload.into()).await;
        stored.unwrap().await.unwrap();
    }

    /// The messages of a queue, once there are at least so many; then waits a little for surplus ones.
    pub(crate) async fn read(&self, queue: &str, at_least: usize) -> Vec<Stored> {
        let begun = Instant::now();
        loop {
            let stored = self.look(queue).await;
            if stored.len() >= at_least {
                tokio::time::sleep(Duration::from_millis(700)).await;
                return self.look(queue).await;
            }
            assert!(
                begun.elapsed() < LIMIT,
                "{queue} has {} of {at_least} messages; the roles said:\n{}",
                stored.len(),
                self.logs()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The payloads of a queue, sorted.
    pub(crate) async fn payloads(&self, queue: &str, at_least: usize) -> Vec<String> {
        let stored = self.read(queue, at_least).await.into_iter();
        let mut payloads: Vec<String> = stored.map(|stored| stored.payload).collect();
        payloads.sort();
        payloads
    }

    /// The messages of a queue now.
    pub(crate) async fn look(&self, queue: &str) -> Vec<Stored> {
        let begun = Instant::now();
        loop {
            match self.try_look(queue).await {
                Ok(found) => return found,
                // The server may be away for a moment.
                Err(why) => assert!(begun.elapsed() < LIMIT, "{queue} cannot be read: {why}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn try_look(&self, queue: &str) -> Result<Vec<Stored>, String> {
        let stream = match self.context.get_stream(STREAM).await {
            Ok(stream) => stream,
            Err(error) => {
                return match error.kind() {
                    GetStreamErrorKind::JetStream(error)
                        if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                    {
                        Ok(Vec::new())
                    }
                    _ => Err(error.to_string()),
                };
            }
        };
        let state = &stream.cached_info().state;
        let mut found = Vec::new();
        for sequence in state.first_sequence.max(1)..=state.last_sequence {
            let message = match stream.get_raw_message(sequence).await {
                Ok(message) => message,
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => continue,
                Err(error) => return Err(error.to_string()),
            };
            if message.subject.as_str() == subject(queue) {
                found.push(Stored {
                    headers: message.headers,
                    payload: String::from_utf8(message.payload.to_vec()).unwrap(),
                });
            }
        }
        Ok(found)
    }

    /// Waits until `wanted` returns true.
    pub(crate) async fn until(&self, what: &str, mut wanted: impl AsyncFnMut() -> bool) {
        let begun = Instant::now();
        while !wanted().await {
            assert!(
                begun.elapsed() < LIMIT,
                "not so: {what}; the roles said:\n{}",
                self.logs()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a consumer has this number of unacknowledged messages.
    pub(crate) async fn until_held(&self, consumer: &str, held: usize) {
        let what = format!("{consumer} holds {held}");
        self.until(&what, async || {
            let Ok(stream) = self.context.get_stream(STREAM).await else {
                return false;
            };
            let info = stream.consumer_info(consumer).await;
            info.is_ok_and(|info| info.num_ack_pending == held && info.num_pending == 0)
        })
        .await;
    }

    /// Waits until the metrics page of a role has a line that is `wanted`.
    pub(crate) async fn until_shown(&self, port: u16, wanted: impl Fn(&str) -> bool) {
        self.until("the metrics page shows it", async || {
            let page = scrape(port).await.unwrap_or_default();
            page.lines().any(&wanted)
        })
        .await;
    }

    fn logs(&self) -> String {
        let mut logs = String::new();
        for entry in std::fs::read_dir(self.directory.path()).unwrap().flatten() {
            if entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "log")
            {
                logs.push_str(&std::fs::read_to_string(entry.path()).unwrap_or_default());
            }
        }
        logs
    }
}

/// The subject of a queue.
pub(crate) fn subject(queue: &str) -> String {
    format!("{STREAM}.{queue}")
}

// === impl Role ===

impl Role {
    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < LIMIT, "it does not end: {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One response of the metrics page.
pub(crate) async fn scrape(port: u16) -> Option<String> {
    scrape_at("127.0.0.1", port).await
}

/// The same, at another address of this machine.
pub(crate) async fn scrape_at(address: &str, port: u16) -> Option<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect((address, port)).await.ok()?;
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    Some(text)
}
