//! Starting the program, watching it, ending it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proofmill_bitcoin::{Header, mainnet_headers};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longest wait for anything in a test, sized for a loaded machine; after it the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Longest run of a program that a test waits for; after it the program is killed, and the test fails.
const LONGEST_RUN: Duration = Duration::from_secs(600);

/// Messages of commands that nobody carried out: no process led the workflow at that moment, or the server did not answer
/// in time.
const UNANSWERED: [&str; 3] = [
    "no process leads the workflow now",
    "no workflow is led on this bus",
    "cannot connect to nats://",
];

/// Lines of each program that a test shows when it fails.
const LAST_LINES: usize = 40;

/// A folder that is gone after the test.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("t")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("a folder")
}

/// The program in `folder`, with the keys that all tests share and no settings from outside.
pub(crate) fn proofmill(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proofmill"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROOFMILL") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(folder)
        .env(
            "PROOFMILL_KEYS",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("keys"),
        )
        .env("COLUMNS", "100")
        .stdin(Stdio::null());
    command
}

/// Result of a program that has ended: exit code and output.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs to the end.
#[track_caller]
pub(crate) fn run<S: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Finished {
    finish(proofmill(folder).args(args))
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn finish(command: &mut Command) -> Finished {
    let deadline = Instant::now() + LONGEST_RUN;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (open, closed) = channel::<()>();
    let stdout = drain(child.stdout.take().expect("piped"), open.clone());
    let stderr = drain(child.stderr.take().expect("piped"), open);
    let is_read = closed.recv_timeout(LONGEST_RUN) == Err(RecvTimeoutError::Disconnected);
    let take = |bytes: &Mutex<Vec<u8>>| std::mem::take(&mut *bytes.lock().expect("the bytes"));
    let status = loop {
        match child.try_wait().expect("a status") {
            Some(status) if is_read => break status,
            _ if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            _ => {
                // It may have ended, and something that it started may have its output.
                let _ = child.kill();
                let _ = child.wait();
                let said = [take(&stdout), take(&stderr)];
                let said = said.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                panic!("not ended within {LONGEST_RUN:?}: {command:?}: {said:?}");
            }
        }
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Finished {
        code: status.code(),
        stdout: text(take(&stdout)),
        stderr: text(take(&stderr)),
    }
}

/// Reads a pipe to its end on a thread, which drops `open` then. Returns what has been read so far.
fn drain(mut pipe: impl Read + Send + 'static, open: Sender<()>) -> Arc<Mutex<Vec<u8>>> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let read = bytes.clone();
    std::thread::spawn(move || {
        let mut chunk = [0; 1 << 14];
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            let mut read = read.lock().expect("the bytes");
            read.extend_from_slice(&chunk[..count]);
        }
        drop(open);
    });
    bytes
}

/// Runs a command about a cluster to its end, and runs it again while nobody carries it out: a coordinator that waits for
/// its turn of the processor for longer than its lease lasts leads nothing for a moment.
#[track_caller]
pub(crate) fn answered(mut ask: impl FnMut() -> Finished) -> Finished {
    eventually("a leader's answer", || {
        let ran = ask();
        let says = |what: &&str| ran.stdout.contains(*what) || ran.stderr.contains(*what);
        (!UNANSWERED.iter().any(says)).then_some(ran)
    })
}

// === impl Finished ===

impl Finished {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn failed(self, code: i32, what: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(what), "no {what:?} in {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// The last line of standard output, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

#[derive(Default)]
struct Seen {
    lines: Mutex<(Vec<String>, bool)>,
    more: Condvar,
}

/// A program that runs, its standard error being read. It is killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    seen: Arc<Seen>,
    reader: Option<JoinHandle<()>>,
}

// === impl Running ===

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = child.stderr.take().expect("piped");
        let seen = Arc::new(Seen::default());
        let kept = seen.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                kept.lines.lock().expect("the lines").0.push(line);
                kept.more.notify_all();
            }
            kept.lines.lock().expect("the lines").1 = true;
            kept.more.notify_all();
        });
        Self {
            child,
            seen,
            reader: Some(reader),
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = kill_process(self.pid(), signal);
    }

    /// Waits for a line of standard error that holds `what`.
    #[track_caller]
    pub(crate) fn line(&self, what: &str) -> String {
        self.lines(what, 1)
    }

    /// Waits for the `count`-th line that holds `what`.
    #[track_caller]
    pub(crate) fn lines(&self, what: &str, count: usize) -> String {
        self.try_lines(what, count)
            .unwrap_or_else(|| panic!("it ended without {what:?}: {:#?}", self.stderr()))
    }

    /// As [`Running::lines`]; `None` if the program ends before.
    #[track_caller]
    pub(crate) fn try_lines(&self, what: &str, count: usize) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut lines = self.seen.lines.lock().expect("the lines");
        loop {
            let found = lines
                .0
                .iter()
                .filter(|line| line.contains(what))
                .nth(count - 1);
            if let Some(line) = found {
                return Some(line.clone());
            }
            if lines.1 {
                return None;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what:?} in {:#?}", lines.0);
            lines = self
                .seen
                .more
                .wait_timeout(lines, left)
                .expect("the lines")
                .0;
        }
    }

    /// Shows what the program said last: a test that fails may have waited for something that it could not do.
    fn show_last_lines(&self) {
        let lines = self.stderr();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        eprintln!("process {} said last: {last:#?}", self.child.id());
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.seen.lines.lock().expect("the lines").0.clone()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> (ExitStatus, Finished) {
        let status = eventually("the program ends", || {
            self.child.try_wait().expect("a status")
        });
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .expect("piped")
            .read_to_string(&mut stdout)
            .expect("text");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader");
        }
        let stderr = self.stderr().join("\n");
        (
            status,
            Finished {
                code: status.code(),
                stdout,
                stderr,
            },
        )
    }

    /// Kills the program, and returns its output so far.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.signal(Signal::KILL);
        let status = self.child.wait().expect("a status");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader");
        }
        assert!(
            status.success() || status.signal().is_some(),
            "{status} {:?}",
            self.stderr()
        );
        self.stderr()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            self.show_last_lines();
        }
    }
}

/// Waits until `check` returns a value.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The URL in a line that the program has said.
pub(crate) fn url(line: &str) -> &str {
    let words = line.split_whitespace();
    let mut urls = words.filter(|word| word.starts_with("http"));
    urls.next().expect("a URL")
}

/// The status and the body of what a server answers to a message for a queue; `url` is where it takes
/// messages for the queue NAME.
pub(crate) fn post(url: &str, queue: &str, message: &str) -> (u16, String) {
    post_with(url, queue, "", message)
}

/// The same with more headers, each with the end of its line.
pub(crate) fn post_with(url: &str, queue: &str, headers: &str, message: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").expect("a URL without TLS");
    let (address, path) = rest.split_once('/').expect("a path");
    let path = path.replace("NAME", queue);
    let mut stream = TcpStream::connect(address).expect("connected");
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{message}",
        message.len()
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

/// Headers `first ..= last` of the main chain.
pub(crate) fn headers(first: usize, last: usize) -> Vec<Header> {
    mainnet_headers()[first..=last].to_vec()
}

/// As raw bytes.
pub(crate) fn raw(headers: &[Header]) -> Vec<u8> {
    headers
        .iter()
        .flat_map(|header| *header.as_bytes())
        .collect()
}

/// The files of a folder, by name, with what they hold; none if it is not there.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("an entry"))
        // One that is being written when the program is killed has a name of its own.
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| {
            let name = entry.file_name().into_string().expect("text");
            (name, std::fs::read(entry.path()).expect("read"))
        })
        .collect();
    files.sort();
    files
}

/// The names of the files of a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    files(folder).into_iter().map(|(name, _)| name).collect()
}

/// The name of the file of an emitted span.
pub(crate) fn emitted(first: u64, last: u64) -> String {
    format!("{first:010}-{last:010}.json")
}

/// A folder of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
        .canonicalize()
        .expect("there")
}
