//! Streams over the socket: measures the service's overhead beside the work on the proofs.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use proofmill_api::verifier::{
    Answer, AnswerBody, Frames, Request, RequestBody, ResultStatus, Server, ServerOptions, VERSION,
    write_frame,
};
use proofmill_shutdown::Trigger;
use proofmill_verifier::{Kind, KindFigures, Options, Service};
use serde_json::json;
use tokio::io::{AsyncWriteExt, BufReader, BufWriter};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::Args;
use super::proofs::{Item, Subject};
use crate::harness::{Figures, describe, round};

/// Client name of every connection to the socket.
const CLIENT: &str = "local";
/// Target of the overhead, as a share of the time: at most this.
const OVERHEAD_SHARE_MAX: f64 = 0.05;

/// Time and counts of one stream.
struct Stream {
    wall: Duration,
    figures: KindFigures,
}

/// A verifier with a socket, which ends when this is dropped.
struct ServedVerifier {
    handle: proofmill_verifier::Handle,
    folder: tempfile::TempDir,
    _trigger: Trigger,
    task: JoinHandle<()>,
}

/// Measures and reports. The service has one thread, where other work cannot hide its overhead.
pub(super) async fn run<K: Kind>(args: &Args, subject: &Subject<K>) -> anyhow::Result<()> {
    let items = subject.shuffled(args.proofs as usize, 0, 0);
    let mut streams = Vec::new();
    for _ in 0..args.rounds {
        let verifier = ServedVerifier::open(subject, usize::from(args.batch)).await?;
        let frames = verifier.frames(subject, &items).await?;
        streams.push(verifier.stream(subject, &items, frames).await?);
    }
    print(args, subject, &streams);
    Ok(())
}

fn print<K: Kind>(args: &Args, subject: &Subject<K>, streams: &[Stream]) {
    let kind = Kind::name(&subject.kind);
    let median = |of: fn(&Stream) -> f64| Figures::of(streams.iter().map(of).collect()).p50();
    let wall = median(|stream| stream.wall.as_secs_f64() * 1e3);
    let reduce = median(|stream| stream.figures.reduce_us as f64 / 1e3);
    let check = median(|stream| stream.figures.check_us as f64 / 1e3);
    let overhead = median(Stream::overhead);
    println!(
        "{} proofs of kind {kind} over the socket, in batches of at most {}, on one thread",
        args.proofs, args.batch
    );
    println!("  wall {wall:.2} ms, of which reducing {reduce:.2} ms and checking {check:.2} ms");
    println!(
        "  {:.1} % of the time are neither; the target is at most {:.0} %",
        overhead * 100.0,
        OVERHEAD_SHARE_MAX * 100.0
    );
    println!(
        "  medians of {} streams, each to a new service; {}",
        streams.len(),
        describe()
    );
    if args.json {
        println!(
            "{}",
            json!({
                "kind": kind, "machine": describe(), "proofs": args.proofs, "batch": args.batch,
                "wall_ms": round(wall), "reduce_ms": round(reduce), "check_ms": round(check),
                "overhead": round(overhead),
            })
        );
    }
}

// === impl Stream ===

impl Stream {
    /// The share of the time that is spent on neither reduction nor checks.
    fn overhead(&self) -> f64 {
        let work = Duration::from_micros(self.figures.reduce_us + self.figures.check_us);
        1.0 - work.as_secs_f64() / self.wall.as_secs_f64()
    }
}

// === impl ServedVerifier ===

impl ServedVerifier {
    async fn open<K: Kind>(subject: &Subject<K>, batch: usize) -> anyhow::Result<Self> {
        let mut options = Options::of(subject.kinds.clone());
        options.threads = 1;
        options.limits.batch = batch;
        let (service, handle) = Service::open(options)?;
        let folder = tempfile::tempdir()?;
        let options = ServerOptions {
            socket: Some(folder.path().join("verifier.sock")),
            ..ServerOptions::default()
        };
        let server = Server::bind(handle.clone(), options).await?;
        let (trigger, shutdown) = proofmill_shutdown::channel();
        let task = tokio::spawn(async move {
            if let Err(error) = server.run(service, shutdown).await {
                eprintln!("the verifier cannot be offered: {error}");
            }
        });
        Ok(Self {
            handle,
            folder,
            _trigger: trigger,
            task,
        })
    }

    /// Encodes a request for each proof, after registering the keys.
    async fn frames<K: Kind>(
        &self,
        subject: &Subject<K>,
        items: &[Item],
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let kind = Kind::name(&subject.kind);
        let mut keys = Vec::new();
        for (bytes, _) in &subject.keys {
            let digest = self.handle.add_key(CLIENT, kind, bytes.clone()).await?;
            keys.push(digest.to_string());
        }
        let frame = |(number, item): (usize, &Item)| {
            rmp_serde::to_vec_named(&Request {
                version: VERSION,
                request_id: number as u64,
                body: RequestBody::Verify {
                    kind,
                    key: item.key.map(|key| &*keys[key]),
                    statement: &item.statement,
                    proof: &item.proof,
                    source: "a source",
                    priority: 0,
                    deadline_ms: None,
                },
            })
        };
        Ok(items
            .iter()
            .enumerate()
            .map(frame)
            .collect::<Result<_, _>>()?)
    }

    /// Sends the requests and waits for the verdicts. The time runs from the first byte to the last verdict.
    /// Fails if a verdict is not the expected one.
    async fn stream<K: Kind>(
        &self,
        subject: &Subject<K>,
        items: &[Item],
        frames: Vec<Vec<u8>>,
    ) -> anyhow::Result<Stream> {
        let stream = UnixStream::connect(self.folder.path().join("verifier.sock")).await?;
        let (reader, writer) = stream.into_split();
        let mut writer = BufWriter::new(writer);
        let began = Instant::now();
        let sender = tokio::spawn(async move {
            for frame in frames {
                write_frame(&mut writer, &frame).await?;
            }
            writer.flush().await?;
            // Returning the writer keeps the connection open until all requests are answered.
            anyhow::Ok(writer)
        });
        let mut answers = Frames::new(BufReader::new(reader));
        for _ in items {
            let frame = answers.next().await?.context("the answers have ended")?;
            let answer: Answer = rmp_serde::from_slice(&frame)?;
            let AnswerBody::Result(result) = answer.body else {
                bail!("an answer that is no verdict: {:?}", answer.body);
            };
            let item = &items[answer.request_id as usize];
            let expected = match item.is_valid {
                true => ResultStatus::Valid,
                false => ResultStatus::Invalid,
            };
            anyhow::ensure!(
                result.status == expected as u8,
                "a wrong verdict: {result:?}"
            );
        }
        let wall = began.elapsed();
        sender.await??;
        let mut report = self.handle.report();
        let figures = report.kinds.remove(Kind::name(&subject.kind));
        Ok(Stream {
            wall,
            figures: figures.context("a report without the kind")?,
        })
    }
}

impl Drop for ServedVerifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}
