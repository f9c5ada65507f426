//! The simulator's process, and the threads that write to it and read from it.

use std::io::{self, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

use crate::circuit::frames::{Frame, Request};

/// A running simulator. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    requests: Sender<Vec<u8>>,
    answers: Receiver<io::Result<Option<Frame>>>,
    bell: Arc<Notify>,
}

/// News from the simulator.
#[derive(Debug)]
pub(super) enum Heard {
    Frame(Frame),
    /// Nothing more comes, for this reason.
    End(String),
    /// Nothing has come yet.
    Nothing,
}

impl Process {
    /// Starts the command.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes to the process"));
        };
        let (requests, to_write) = channel();
        let (from_read, answers) = channel();
        let bell = Arc::new(Notify::new());
        let started = thread::Builder::new()
            .name("zkpu-sim-write".into())
            .spawn(move || write(input, &to_write))
            .and_then(|_| {
                let bell = Arc::clone(&bell);
                thread::Builder::new()
                    .name("zkpu-sim-read".into())
                    .spawn(move || read(output, &from_read, &bell))
            });
        let mut process = Self {
            child,
            requests,
            answers,
            bell,
        };
        if let Err(error) = started {
            process.kill();
            return Err(error);
        }
        Ok(process)
    }

    /// Rung when something has come.
    pub(super) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// Sends a request. If the process has ended, `hear` tells.
    pub(super) fn send(&self, tag: u32, request: &Request) {
        // An error means that the writer has ended, as it does when the process has.
        let _ = self.requests.send(request.encode(tag));
    }

    /// The next frame that has come, without waiting.
    pub(super) fn hear(&mut self) -> Heard {
        self.wait(Duration::ZERO)
    }

    /// The next frame that comes within a time.
    pub(super) fn wait(&mut self, timeout: Duration) -> Heard {
        match self.answers.recv_timeout(timeout) {
            Ok(Ok(Some(frame))) => Heard::Frame(frame),
            Ok(Err(error)) => Heard::End(error.to_string()),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => Heard::End(self.end()),
        }
    }

    /// Ends the process.
    pub(super) fn kill(&mut self) {
        // Errors mean that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The reason of an end of the output: usually the end of the process. One that lives is of no use any more, and is
    /// killed.
    fn end(&mut self) -> String {
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => format!("the simulator ended ({status})"),
            Err(error) => {
                format!("the simulator closed its output, and cannot be waited for: {error}")
            }
        }
    }

    /// The operating system's number of the process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn write(mut to: ChildStdin, requests: &Receiver<Vec<u8>>) {
    while let Ok(frame) = requests.recv() {
        if let Err(error) = to.write_all(&frame).and_then(|()| to.flush()) {
            tracing::debug!(%error, "the simulator takes no more requests");
            return;
        }
    }
}

fn read(from: ChildStdout, answers: &Sender<io::Result<Option<Frame>>>, bell: &Notify) {
    let mut from = BufReader::new(from);
    loop {
        let frame = Frame::read(&mut from);
        let is_last = !matches!(frame, Ok(Some(_)));
        let is_heard = answers.send(frame).is_ok();
        bell.notify_one();
        if is_last || !is_heard {
            return;
        }
    }
}
