//! Cost of the console on a mill with many live tasks: scheduling with pages open beside scheduling without, the time until a
//! page is ready, the longest time that a question keeps the coordinator, the memory, and a scrape of the metrics.

mod http;
mod pages;
mod probes;

use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_api::metrics::{self, Workflows};
use proofmill_api::{Operations, console};
use proofmill_orchestrator::conversation::{Reply, Submit};
use proofmill_orchestrator::plan::{Needs, QueueIx};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::harness::{
    Common, Figures, Progress, Report, RunningMill, StateDisk, Target, json_message, memory, mib,
    one_stage, parse, registry, round,
};
use pages::Pages;
use probes::{Probes, Stamp};

/// A label that no worker has: the tasks of the backlog stay claimable, and no worker gets them.
const ABSENT: &str = "absent";
/// Most unacknowledged submissions of the backlog.
const WINDOW: usize = 256;
/// Scrapes that are measured.
const SCRAPES: usize = 500;
/// Beginning of a window that is not measured, in which pages open or close.
const SETTLING: Duration = Duration::from_millis(500);
/// Longest wait for the record of a result.
const RECORDED_MAX: Duration = Duration::from_secs(5);

/// Arguments of `proofmill-bench console`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Tasks that no worker may run are live while others are submitted at a steady rate; windows without
pages and windows with them take turns. A page is a connection that reads the console's events as
a browser does; every other page shows a block, and asks for it anew after each change. One page
stops reading. The time of scheduling is from a submission to the beginning of its run.

  proofmill-bench console
  proofmill-bench console --tasks 1000000 --pages 100")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Live tasks
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    tasks: u64,
    /// Pages
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    pages: u16,
    /// Tasks a second beside the live ones
    #[arg(long, default_value_t = 100.0)]
    rate: f64,
    /// Windows without pages, and as many with them
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds of a window
    #[arg(long, default_value_t = 5.0)]
    window: f64,
}

/// Figures of the windows of one kind.
#[derive(Default)]
struct Side {
    /// Milliseconds from each submission to the beginning of its run.
    scheduling_ms: Vec<f64>,
    longest_question: Duration,
    anonymous_max: u64,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.common.is_embedded(),
        "the console is measured on the embedded log"
    );
    let settling = SETTLING.as_secs_f64();
    anyhow::ensure!(args.rate > 0.0, "--rate must be above 0");
    anyhow::ensure!(
        args.window > 2.0 * settling && args.window < 3600.0,
        "--window must be above {} s",
        2.0 * settling
    );
    let disk = StateDisk::fresh(&args.common)?;
    let (sender, begun) = mpsc::unbounded_channel();
    let mut registry = registry();
    registry.prover("stamp", move |_| Ok(Stamp::new(sender.clone())));
    let workflow = parse(&workflow(args.tasks), &registry)?;
    let mill = RunningMill::start(&workflow, registry, &disk, &disk.state("console")).await?;
    let queue = mill.queue("tasks")?;
    let mut report = Report::new("Console: pages on a mill with many live tasks", &disk);

    let progress = Progress::new("console: live tasks", args.tasks as usize);
    let few = args.tasks / 10;
    submit_backlog(&mill, queue, 0..few, &progress).await?;
    let scrapes = scrape(&mill).await?;
    submit_backlog(&mill, queue, few..args.tasks, &progress).await?;
    drop(progress);

    let operator = mill.leader.operator();
    let operations = Operations::new(operator, mill.source.clone(), mill.blobs.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(console::serve_read_only(listener, operations));
    let mut probes = Probes::start(mill.source.clone(), queue, args.rate, begun);
    let (mut without, mut with) = (Side::default(), Side::default());
    let (mut ready_ms, mut events) = (Vec::new(), 0);
    let before = anonymous()?;
    for _ in 0..args.rounds {
        measure(&mill, &mut probes, args.window, &mut without).await?;
        let pages = Pages::open(address, args.pages, args.tasks / 2);
        measure(&mill, &mut probes, args.window, &mut with).await?;
        let closed = pages.close().await?;
        ready_ms.extend(closed.ready_ms);
        events += closed.events;
    }
    probes.end().await?;
    serving.abort();

    let live = live_at_the_end(&mill, args.tasks as usize).await?;
    report_windows(&mut report, args, without, with, before);
    let ready = Figures::of(ready_ms);
    report.figure("a page is ready, P50", ready.p50(), "ms", Target::None, "");
    report.figure(
        "a page is ready, longest",
        ready.max(),
        "ms",
        Target::AtMost(1000.0),
        "",
    );
    report.put("page_ready_max_ms", round(ready.max()));
    let name = format!("scrape at {few} live tasks, P99");
    let scraped = scrapes.p99();
    report.figure(&name, scraped, "ms", Target::AtMost(3.0), "1–3 ms at 1,000");
    report.put("scrape_p50_ms", round(scrapes.p50()));
    report.put("scrape_p99_ms", round(scraped));
    report.put("events", events);
    report.must_be("live tasks at the end", live, args.tasks as usize);
    mill.abandon();
    report.finish(&args.common)
}

fn workflow(tasks: u64) -> String {
    let stage = one_stage("console", 4, r#"{ kind = "native", prover = "stamp" }"#);
    let q_max = 2 * tasks;
    format!("{stage}\n[[queue]]\nname = \"tasks\"\nq_max = {q_max}\n")
}

/// The number of live tasks, once the result of the last probe, which has only begun, is recorded, too.
async fn live_at_the_end(mill: &RunningMill, expected: usize) -> anyhow::Result<usize> {
    let until = Instant::now() + RECORDED_MAX;
    loop {
        let live = mill.leader.operator().status().await?.live;
        if live <= expected || Instant::now() >= until {
            return Ok(live);
        }
        tokio::time::sleep(SETTLING / 100).await;
    }
}

/// Submits the tasks of these blocks, which no worker may run.
async fn submit_backlog(
    mill: &RunningMill,
    queue: QueueIx,
    blocks: std::ops::Range<u64>,
    progress: &Progress,
) -> anyhow::Result<()> {
    let mut waiting = std::collections::VecDeque::with_capacity(WINDOW);
    for block in blocks {
        let mut request: Submit = json_message(queue, block, format!("{{\"block\":{block}}}"));
        request.message.needs = Some(Needs {
            labels: [ABSENT.to_owned()].into(),
            ..Needs::default()
        });
        waiting.push_back(mill.source.submit_later(request).await?);
        if waiting.len() == WINDOW
            && let Some(reply) = waiting.pop_front()
        {
            accepted(reply.await?)?;
        }
        if block % 1024 == 0 {
            progress.set(block as usize);
        }
    }
    for reply in waiting {
        accepted(reply.await?)?;
    }
    Ok(())
}

fn accepted(reply: Reply) -> anyhow::Result<()> {
    anyhow::ensure!(
        reply == Reply::Accepted,
        "a task is not accepted: {reply:?}"
    );
    Ok(())
}

/// Milliseconds of scrapes of the metrics.
async fn scrape(mill: &RunningMill) -> anyhow::Result<Figures> {
    let workflows = Workflows::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (led, leader) = (workflows.clone(), mill.leader.clone());
    let leading = tokio::spawn(async move { led.lead(&leader).await });
    let serving = tokio::spawn(metrics::serve(listener, workflows));
    let mut times = Vec::with_capacity(SCRAPES);
    for _ in 0..SCRAPES {
        let began = Instant::now();
        let page = http::get(address, "/metrics").await?;
        times.push(ms(began.elapsed()));
        anyhow::ensure!(
            page.contains("proofmill_tasks_waiting"),
            "the metrics lack the tasks"
        );
    }
    serving.abort();
    leading.abort();
    Ok(Figures::of(times))
}

/// Measures one window.
async fn measure(
    mill: &RunningMill,
    probes: &mut Probes,
    seconds: f64,
    side: &mut Side,
) -> anyhow::Result<()> {
    tokio::time::sleep(SETTLING).await;
    mill.leader.question_times().take_longest();
    let from = Instant::now();
    let until = from + Duration::from_secs_f64(seconds) - SETTLING;
    while Instant::now() < until {
        tokio::time::sleep(SETTLING.min(until.saturating_duration_since(Instant::now()))).await;
        side.anonymous_max = side.anonymous_max.max(anonymous()?);
    }
    let longest = mill.leader.question_times().take_longest();
    side.longest_question = side.longest_question.max(longest);
    side.scheduling_ms.extend(probes.between(from, until));
    Ok(())
}

fn report_windows(report: &mut Report, args: &Args, without: Side, with: Side, before: u64) {
    let (pages, tasks) = (args.pages, args.tasks);
    let longest = ms(with.longest_question);
    let grown = with.anonymous_max.saturating_sub(before);
    let (without, with) = (
        Figures::of(without.scheduling_ms),
        Figures::of(with.scheduling_ms),
    );
    for (name, figures) in [("no page", &without), (&*format!("{pages} pages"), &with)] {
        for (share, value) in [("P50", figures.p50()), ("P99", figures.p99())] {
            let name = format!("submission to run, {name}, {share}");
            report.figure(&name, value, "ms", Target::None, "");
        }
    }
    let ratio = with.p50() / without.p50();
    let name = "P50 with pages / without";
    report.figure(name, ratio, "", Target::AtMost(1.05), "");
    let name = "a question keeps the coordinator, longest";
    report.figure(name, longest, "ms", Target::AtMost(5.0), "");
    let name = "memory that pages add, most";
    report.figure(name, mib(grown), "MiB", Target::AtMost(64.0), "");
    report.note(&format!(
        "{tasks} live tasks; {} submissions measured without pages, {} with {pages}",
        without.len(),
        with.len()
    ));
    report.put("without_p50_ms", round(without.p50()));
    report.put("with_p50_ms", round(with.p50()));
    report.put("without_p99_ms", round(without.p99()));
    report.put("with_p99_ms", round(with.p99()));
    report.put("p50_ratio", round(ratio));
    report.put("longest_question_ms", round(longest));
    report.put("grown_mib", round(mib(grown)));
    report.put("live_tasks", tasks);
    report.put("pages", pages);
}

/// Bytes of anonymous memory of this process.
fn anonymous() -> anyhow::Result<u64> {
    let memory =
        memory(std::process::id()).context("the system does not tell the memory in use")?;
    Ok(memory.anonymous)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
