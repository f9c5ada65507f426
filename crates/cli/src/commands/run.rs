//! `proofmill run`

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofmill_api::console::{Console, ConsoleError};
use proofmill_api::engine::WatchedEngine;
use proofmill_api::metrics::Workflows;
use proofmill_api::{AuditLog, Operations, PortError, Submissions, control};
use proofmill_orchestrator::conversation::TaskSelection;
use proofmill_orchestrator::core::{StageStatus, Status, TaskPhase};
use proofmill_orchestrator::mill::{Mill, Options, Summary};
use proofmill_orchestrator::port::OperatorPort;
use proofmill_orchestrator::remote::Role;
use proofmill_orchestrator::shutdown::Level;
use proofmill_telemetry::console_line;
use proofmill_workflow::{SourceKind, Workflow};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::args::console::ConsoleArgs;
use crate::args::{MetricsArg, Run};
use crate::commands::check;
use crate::ethproofs::BesideMill;
use crate::failure::Failure;
use crate::progress::{Bar, Screen, blocks, counted, span};
use crate::provers::{Keys, OnProverEvent, PartitionProvers, ProverEvent};
use crate::signals::{DescribeWait, count_and_first_names};
use crate::{bus, engines, intake, output, provers, signals, state};

/// Interval between reads of the status for the display.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);

/// Interval between lines of progress where there are no bars.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: Run) -> Result<(), Failure> {
    let began = Instant::now();
    let (workflow, warnings) =
        check::validate(&args.file).map_err(|found| check::refused(&args.file, &found))?;
    check::warn(&warnings);
    for (stage, _) in &args.workers.workers {
        if workflow.dispatcher(stage).is_none() {
            let names: Vec<&str> = workflow
                .dispatchers
                .iter()
                .map(|known| known.name.as_str())
                .collect();
            return Err(Failure::usage(format!(
                "--workers: no dispatcher {stage:?}; there are {}",
                names.join(", ")
            )));
        }
    }
    let directory = args
        .state
        .unwrap_or_else(|| PathBuf::from(state::ROOT).join(&workflow.name));
    let submits = workflow
        .sources
        .iter()
        .any(|source| source.kind == SourceKind::Submit);
    let workers: BTreeMap<String, usize> = args.workers.workers.into_iter().collect();
    let bus = match &args.bus.url {
        None => None,
        Some(url) => {
            bus::print(url);
            Some(bus::connect(&args.bus, Role::Coordinator, &workflow.name).await?)
        }
    };
    let options = || Options {
        workers: workers.clone(),
        bus: bus.clone(),
        accept_loss: args.accept_loss,
        keep_running: args.stay || submits || args.intake.submit.is_some(),
        ..Options::in_directory(&directory)
    };
    state::claim(&directory, &workflow.name)?;
    let screen = Screen::open();
    let intake = intake::open(&args.intake, &screen).await?;
    let partition = match &bus {
        Some(connection) => PartitionProvers::on(connection, &args.keys.keys),
        None => PartitionProvers::alone(),
    };
    let keys = Keys::in_directory(&args.keys.keys);
    let registry = provers::registry_with(keys, key_notes(&screen), partition);
    let mill = state::open(&workflow, &registry, options).await?;
    print_losses(&mill);
    state::save(&directory, &workflow, &args.file)?;
    let ethproofs = BesideMill::start(&mill, &directory).await?;

    let describe_wait = describe_leased_tasks(mill.handle().operator());
    let shutdown = signals::listen_with_description(screen.clone(), args.drain, describe_wait)?;
    let ports = (&args.metrics, &args.console);
    let engines = engines::of_workflow(&workflow);
    let workflows = Workflows::default();
    if let Some(ethproofs) = &ethproofs {
        let of = &mill.handle().plan().workflow;
        ethproofs.reporter().show(of, &workflows);
    }
    let servers = serve_control(&mill, &directory, ports, engines, workflows, &screen).await?;
    let intake_task = intake.map(|intake| {
        let handle = mill.handle().clone();
        let submissions = Submissions::new(handle.source(), mill.blobs().clone());
        let mut draining = shutdown.clone();
        tokio::spawn(intake.serve(submissions, async move {
            tokio::select! {
                () = draining.reached(Level::Drain) => {}
                () = handle.gone() => {}
            }
        }))
    });
    let watch_task = tokio::spawn(watch(mill.handle().operator(), screen.clone()));
    let result = mill.run(shutdown).await;
    let took = began.elapsed();
    watch_task.abort();
    if let Some(intake_task) = intake_task {
        // The coordinator has ended, so no request is waiting; the task's result does not matter.
        let _ = intake_task.await;
    }
    if let Some(ethproofs) = ethproofs {
        ethproofs.finish().await;
    }
    servers.end().await;
    screen.close();
    let summary = result?;
    print_summary(&summary, took);
    let emitted = emitted(&workflow, &directory, &summary);
    if let Some(emitted) = &emitted {
        console_line(output::plain(&format!(
            "emitted, in chain order: {}",
            emitted.display()
        )));
    }
    if args.json {
        let mut summary = serde_json::to_value(&summary)?;
        summary["directory"] = serde_json::to_value(emitted)?;
        output::line(summary.to_string())?;
    }
    run_result(&summary, &directory)
}

/// Describes the leased tasks and their workers, for a drain.
fn describe_leased_tasks(port: OperatorPort) -> DescribeWait {
    Arc::new(move || {
        let port = port.clone();
        Box::pin(async move {
            let selection = TaskSelection {
                phase: Some(TaskPhase::Leased),
                ..TaskSelection::default()
            };
            let leased_tasks = port.tasks_up_to(selection, usize::MAX).await.ok()?;
            let count = leased_tasks.len();
            let leased_tasks = leased_tasks.iter().map(|task| {
                let worker = task.worker.as_deref().unwrap_or("a worker");
                format!("{} at {worker}", task.task)
            });
            count_and_first_names("task", count, leased_tasks)
        })
    })
}

/// The folder of the sequencer's output; `None` if nothing has been emitted.
fn emitted(workflow: &Workflow, state: &Path, summary: &Summary) -> Option<PathBuf> {
    let sequencer = workflow.sequencer.as_ref()?;
    let directory = state.join(sequencer.directory.as_ref()?);
    let has_emitted = summary.status.next_block > Some(sequencer.start);
    has_emitted.then_some(directory)
}

/// Prints the losses that `--accept-loss` accepted.
pub(crate) fn print_losses(mill: &Mill) {
    for loss in mill.accepted_losses() {
        console_line(output::plain(&format!("accepted loss: {loss}")));
    }
}

/// A callback that prints a note when keys are being made, which takes a while and holds up everything else.
pub(crate) fn key_notes(screen: &Screen) -> OnProverEvent {
    let screen = screen.clone();
    Arc::new(move |event| {
        if let ProverEvent::Keys(text) = event {
            screen.note(&format!("keys: {text}"));
        }
    })
}

/// The tasks that serve the control socket and metrics while a mill runs. Dropping it aborts them.
pub(crate) struct BackgroundServers(Vec<JoinHandle<()>>);

impl BackgroundServers {
    /// Aborts the tasks and waits until they have ended.
    pub(crate) async fn end(mut self) {
        for serving in &mut self.0 {
            serving.abort();
            // The task was aborted; its result does not matter.
            let _ = serving.await;
        }
    }
}

impl Drop for BackgroundServers {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Serves the control socket, and metrics and the console if they are asked for. `engines` are those that the stages use;
/// `workflows` may have further metrics.
pub(crate) async fn serve_control(
    mill: &Mill,
    directory: &std::path::Path,
    (metrics, console): (&MetricsArg, &ConsoleArgs),
    engines: Vec<WatchedEngine>,
    workflows: Workflows,
    screen: &Screen,
) -> Result<BackgroundServers, Failure> {
    let handle = mill.handle();
    let operations = Operations::new(handle.operator(), handle.source(), mill.blobs().clone())
        .with_audit(AuditLog::in_directory(directory))
        .with_workflow(Arc::new(mill.workflow().clone()))
        .with_engines(engines);
    let directory = directory.to_owned();
    let warnings = screen.clone();
    let shown = operations.clone();
    let mut serving = vec![tokio::spawn(async move {
        if let Err(error) = control::serve(&directory, operations).await {
            warnings.note(&format!(
                "warning: {error}; `status` and similar commands cannot reach this mill"
            ));
        }
    })];
    if let Some(console) = open_console(console, screen).await? {
        serving.push(tokio::spawn(console.serve(shown)));
    }
    if let Some(address) = metrics.metrics {
        let listener = bind("metrics", address).await?;
        screen.note(&format!(
            "metrics on http://{}/metrics",
            listener.local_addr()?
        ));
        workflows.add(&handle.plan().workflow);
        let (led, handle) = (workflows.clone(), handle.clone());
        serving.push(tokio::spawn(async move { led.lead(&handle).await }));
        serving.push(tokio::spawn(proofmill_api::metrics::serve(
            listener, workflows,
        )));
    }
    Ok(BackgroundServers(serving))
}

/// Opens the console if the arguments ask for one, and prints its addresses.
async fn open_console(args: &ConsoleArgs, screen: &Screen) -> Result<Option<Console>, Failure> {
    let Some(options) = args.options() else {
        return Ok(None);
    };
    let console = Console::open(&options).await.map_err(|error| {
        let is_exposed = matches!(error, ConsoleError::Port(PortError::Exposed(_)));
        let failure = Failure::from(error);
        match is_exposed {
            true => failure.help(
                "give --console-cert, --console-key and --console-tokens, or serve it on 127.0.0.1",
            ),
            false => failure,
        }
    })?;
    screen.note(&format!("console on {}", console.url()));
    if let Some(login) = console.login_url() {
        screen.note(&format!("to act in it, open {login}"));
    }
    Ok(Some(console))
}

/// Listens on a TCP address for `what`.
pub(crate) async fn bind(what: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Failure::new(format!("cannot serve {what} on {address}: {error}")))
}

/// Shows the progress of each stage until the mill ends.
async fn watch(port: OperatorPort, screen: Screen) {
    let mut bars: Vec<Bar> = Vec::new();
    let mut line_at = Instant::now() + LINE_INTERVAL;
    let mut last_line = String::new();
    while let Ok(status) = port.status().await {
        if screen.has_bars() {
            if bars.is_empty() {
                bars = status
                    .stages
                    .iter()
                    .map(|stage| screen.bar(&stage.stage, None))
                    .collect();
            }
            for (bar, stage) in bars.iter().zip(&status.stages) {
                let counters = &stage.counters;
                let done = counters.completed + counters.grouped + counters.emitted;
                let text = format!(
                    "done, {} waiting, {} leased, {} held, {} dead, {} retries",
                    stage.waiting, stage.leased, stage.held, stage.dead, counters.retried
                );
                bar.set(done, &text);
            }
        } else if Instant::now() >= line_at {
            line_at = Instant::now() + LINE_INTERVAL;
            let line = one_line(&status);
            if line != last_line {
                screen.note(&line);
                last_line = line;
            }
        }
        tokio::time::sleep(REFRESH_INTERVAL).await;
    }
}

fn one_line(status: &Status) -> String {
    let stages: Vec<String> = status
        .stages
        .iter()
        .map(|stage| {
            let counters = &stage.counters;
            let done = counters.completed + counters.grouped + counters.emitted;
            format!(
                "{} {done} done {} waiting {} leased",
                stage.stage, stage.waiting, stage.leased
            )
        })
        .collect();
    let next = status
        .next_block
        .map_or_else(String::new, |next| format!("; next block {next}"));
    format!("{}{next}; {} dead", stages.join(", "), status.dead)
}

fn print_summary(summary: &Summary, took: Duration) {
    for (name, source) in &summary.sources {
        let left = if source.ended { "" } else { "; more to come" };
        console_line(format!(
            "source {name}: {} accepted, {} known already, {} rejected{left}",
            source.accepted, source.duplicates, source.rejected
        ));
    }
    console_line(format!("{}; {}", one_line(&summary.status), span(took)));
}

/// Result of a run: success, or a failure for an interrupted run (130), dead tasks (1) or tasks that cannot go on (1).
pub(crate) fn run_result(summary: &Summary, state: &std::path::Path) -> Result<(), Failure> {
    let status = &summary.status;
    let shown = state.display();
    if summary.interrupted {
        let ended = summary.sources.values().all(|source| source.ended);
        let message = match status.live {
            0 if ended => return Ok(()),
            0 => "stopped before the sources ended; nothing is lost".to_owned(),
            live => format!(
                "stopped with {} unfinished; nothing is lost",
                counted(live, "task")
            ),
        };
        return Err(Failure::interrupted(message).help("run the same command again to go on"));
    }
    if status.dead > 0 {
        let (dead, are) = (
            counted(status.dead, "task"),
            if status.dead == 1 { "is" } else { "are" },
        );
        return Err(
            Failure::new(format!("{dead} {are} in the dead-letter queue"))
                .help(format!("proofmill dlq list --state {shown}")),
        );
    }
    if status.live > 0 {
        let failure = Failure::new(stuck_message(status));
        return Err(failure.help(format!(
            "proofmill tasks --state {shown} lists them; a block that is missing can be submitted: \
             proofmill submit --help"
        )));
    }
    Ok(())
}

/// Most gaps named at the end of a run.
const SHOWN_GAPS_MAX: usize = 5;

/// The message for a run that cannot go on: the missing blocks, and the messages that wait for others.
fn stuck_message(status: &Status) -> String {
    let mut text = "no task can continue".to_owned();
    let gaps = &status.gaps;
    if !gaps.is_empty() {
        let named = gaps.iter().take(SHOWN_GAPS_MAX).map(|gap| blocks(*gap).0);
        let mut named: Vec<String> = named.collect();
        if gaps.len() > SHOWN_GAPS_MAX {
            named.push("others".to_owned());
        }
        let are = match &gaps[..] {
            [gap] => blocks(*gap).1,
            _ => "have",
        };
        text.push_str(&format!(
            ": {} {are} not reached the sequencer",
            named.join(", ")
        ));
    }
    let held = |stage: &&StageStatus| stage.held > 0;
    let holding = status.stages.iter().filter(held).map(|stage| {
        let messages = counted(stage.held, "message");
        let lowest = stage.lowest;
        let from = lowest.map_or_else(String::new, |lowest| format!(", from block {lowest} on"));
        format!("{messages} in {}{from}", stage.stage)
    });
    let holding: Vec<String> = holding.collect();
    let (messages, verb) = (
        counted(status.live, "message"),
        if status.live == 1 { "waits" } else { "wait" },
    );
    text.push_str(&format!(
        "; {messages} {verb} for others that did not arrive"
    ));
    if !holding.is_empty() {
        text.push_str(&format!(" ({})", holding.join("; ")));
    }
    text
}
