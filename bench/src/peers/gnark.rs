//! gnark and gnark-crypto, by a Go program (`bench/peers/gnark`). It is built when it is first needed,
//! and runs beside this process. For each line that we send, it does one run. `main.go` documents
//! the protocol.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::fingerprint::{field_bytes, point_bytes};
use crate::versus::{Contender, PeerAnswer, Purpose, Sample};

/// The folder with the sources of the program.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/gnark");

/// The input of a job, as `input.go` reads it.
pub(crate) struct InputFile(BufWriter<NamedTempFile>);

/// Starts a process for each list of arguments in `names`, all with the same input, and returns them as
/// contenders.
pub(crate) fn offer<'a>(
    names: &[(&str, &[&str])],
    threads: usize,
    input: impl FnOnce(&mut InputFile) -> anyhow::Result<()>,
) -> anyhow::Result<PeerAnswer<'a>> {
    if Command::new("go").arg("version").output().is_err() {
        return Ok(PeerAnswer::Missing(
            "it is built with `go`, which is not installed".to_owned(),
        ));
    }
    let program = build()?;
    let file = NamedTempFile::new().context("creating a file for its input")?;
    let mut writer = InputFile(BufWriter::new(file));
    input(&mut writer)?;
    let file = writer.0.into_inner().context("writing its input")?;
    let contenders = names
        .iter()
        .map(|(name, arguments)| {
            let mut peer = Peer::start(&program, arguments, file.path(), threads)?;
            Ok(Contender::new(*name, move |purpose| peer.run(purpose)))
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(PeerAnswer::Runs(contenders))
}

/// Builds the program in the folder of this one. `go` does nothing if its sources have not changed.
fn build() -> anyhow::Result<PathBuf> {
    let ours = std::env::current_exe().context("finding this program")?;
    let folder = ours.parent().context("this program is in no folder")?;
    let program = folder.join("proofmill-bench-gnark");
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(SOURCES)
        .status()
        .with_context(|| format!("building {SOURCES}"))?;
    anyhow::ensure!(status.success(), "`go build` in {SOURCES} failed: {status}");
    Ok(program)
}

/// A process of the program, and the pipes to it.
struct Peer {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

// === impl Peer ===

impl Peer {
    /// Starts a process, and waits until it has prepared its input.
    fn start(
        program: &Path,
        arguments: &[&str],
        input: &Path,
        threads: usize,
    ) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .arg(input)
            .env("GOMAXPROCS", threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let requests = child.stdin.take();
        let answers = child.stdout.take().context("its output is piped")?;
        let mut peer = Self {
            child,
            requests,
            answers: BufReader::new(answers),
        };
        let ready = peer.answer()?;
        anyhow::ensure!(ready["ready"] == true, "it is not ready, and says {ready}");
        Ok(peer)
    }

    fn run(&mut self, purpose: Purpose) -> anyhow::Result<Sample> {
        let requests = self.requests.as_mut().context("its input is piped")?;
        requests.write_all(b"run\n").context("asking for a run")?;
        let answer = self.answer()?;
        let ms = answer["ms"].as_f64().context("an answer without a time")?;
        let result = answer["result"].as_str().map(str::to_owned);
        Ok(Sample {
            ms: vec![ms],
            result: result.filter(|_| purpose == Purpose::Check),
            stages: Vec::new(),
        })
    }

    fn answer(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        let length = self.answers.read_line(&mut line)?;
        anyhow::ensure!(length > 0, "it ended; its reason is above");
        serde_json::from_str(&line).with_context(|| format!("an answer that is no JSON: {line}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process ends when its standard input ends.
        self.requests = None;
        let _ = self.child.wait();
    }
}

// === impl InputFile ===

impl InputFile {
    /// Writes a number of 64 bits, such as the length of the list that follows.
    pub(crate) fn number(&mut self, number: usize) -> anyhow::Result<()> {
        self.bytes(&(number as u64).to_le_bytes())
    }

    /// Writes a number of 32 bits.
    pub(crate) fn index(&mut self, index: usize) -> anyhow::Result<()> {
        self.bytes(&u32::try_from(index)?.to_le_bytes())
    }

    /// Writes a list of field elements with its length.
    pub(crate) fn fields<F: ark_ff::Field>(&mut self, values: &[F]) -> anyhow::Result<()> {
        self.number(values.len())?;
        values
            .iter()
            .try_for_each(|value| self.bytes(&field_bytes(value)))
    }

    /// Writes a list of points with its length.
    pub(crate) fn points<A: ark_ec::AffineRepr>(&mut self, points: &[A]) -> anyhow::Result<()> {
        self.number(points.len())?;
        points.iter().try_for_each(|point| self.point(point))
    }

    /// Writes a point without a length.
    pub(crate) fn point<A: ark_ec::AffineRepr>(&mut self, point: &A) -> anyhow::Result<()> {
        self.bytes(&point_bytes(point))
    }

    fn bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.0.write_all(bytes).context("writing its input")
    }
}
