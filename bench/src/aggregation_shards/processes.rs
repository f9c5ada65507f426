//! The processes of all shards, from the leader's side.

use std::io::BufReader;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::Size;
use super::frames::{HEAD_BYTES, read_frame, write_frame};
use crate::harness::processor_time_of;

/// Processes that each prove for one shard on one thread.
pub(super) struct Processes {
    children: Vec<(Child, ChildStdin)>,
    frames: Receiver<Frame>,
    /// Bytes sent and received, lengths of frames included.
    pub(super) bytes: usize,
    /// Frames sent to one shard.
    pub(super) messages: usize,
}

/// A frame of a shard, and the time when it was there.
pub(super) struct Frame {
    pub(super) shard: usize,
    pub(super) content: anyhow::Result<Vec<u8>>,
    pub(super) at: Instant,
}

// === impl Processes ===

impl Processes {
    /// Starts a process for each shard.
    pub(super) fn start(size: &Size) -> anyhow::Result<Self> {
        let (sender, frames) = channel();
        let started = (0..size.shards as usize).map(|number| start_one(size, number, &sender));
        Ok(Self {
            children: started.collect::<anyhow::Result<_>>()?,
            frames,
            bytes: 0,
            messages: 0,
        })
    }

    /// Waits until all have made their keys and proofs.
    pub(super) fn await_all(&mut self) -> anyhow::Result<()> {
        for _ in 0..self.children.len() {
            self.next()?.content?;
        }
        Ok(())
    }

    /// Sends the same content to every shard.
    pub(super) fn send(&mut self, content: &[u8]) -> anyhow::Result<()> {
        for (_, input) in &mut self.children {
            write_frame(input, content)?;
            self.bytes += HEAD_BYTES + content.len();
        }
        self.messages += 1;
        Ok(())
    }

    /// The next frame of any shard.
    pub(super) fn next(&mut self) -> anyhow::Result<Frame> {
        let frame = self.frames.recv().context("all shards have ended")?;
        if let Ok(content) = &frame.content {
            self.bytes += HEAD_BYTES + content.len();
        }
        Ok(frame)
    }

    /// Processor time of each, with a resolution of 10 ms.
    pub(super) fn processor_times(&self) -> Vec<Duration> {
        let children = self.children.iter();
        children
            .map(|(child, _)| processor_time_of(child.id()).unwrap_or_default())
            .collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for (mut child, input) in self.children.drain(..) {
            // The end of its input is the end of a shard.
            drop(input);
            let _ = child.wait();
        }
    }
}

fn start_one(
    size: &Size,
    number: usize,
    frames: &Sender<Frame>,
) -> anyhow::Result<(Child, ChildStdin)> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut child = Command::new(program)
        .arg("aggregation-shard")
        .args(["--log-n", &size.log_n.to_string()])
        .args(["--shards", &size.shards.to_string()])
        .args(["--curve", size.curve.name()])
        .args(["--number", &number.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting a shard")?;
    let input = child.stdin.take().context("a pipe was asked for")?;
    let output = child.stdout.take().context("a pipe was asked for")?;
    let (mut output, frames) = (BufReader::new(output), frames.clone());
    std::thread::spawn(move || {
        loop {
            let content = read_frame(&mut output).transpose();
            let has_ended = !matches!(content, Some(Ok(_)));
            let content =
                content.unwrap_or_else(|| Err(anyhow::anyhow!("shard {number} has ended")));
            let frame = Frame {
                shard: number,
                content,
                at: Instant::now(),
            };
            if frames.send(frame).is_err() || has_ended {
                break;
            }
        }
    });
    Ok((child, input))
}
