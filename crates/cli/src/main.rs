//! The `proofmill` program: parses arguments and calls the command they name. Logic lives in the library crates.

mod access;
mod args;
mod bus;
mod circuit_folder;
mod commands;
mod content;
mod demo;
mod devices;
mod engines;
mod ethproofs;
mod failure;
mod files;
mod frame;
mod hardware;
mod intake;
mod key_safety;
mod memory;
mod output;
mod progress;
mod provers;
mod signals;
mod stages;
mod state;
mod supervise;
mod threads;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use proofmill_api::traces::{self, Settings, SettingsError};

use crate::args::{Cli, Command, Format};
use crate::failure::Failure;

/// Longest wait at exit for a slow reader of standard error to take the last lines.
const STDERR_FLUSH_MAX: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let cli = Cli::parse();
    supervise::begin();
    let format = match cli.global.log_format {
        Format::Human => proofmill_telemetry::LogFormat::Human,
        Format::Json => proofmill_telemetry::LogFormat::Json,
    };
    let result = proofmill_telemetry::init_logs(format, &cli.global.log)
        .map_err(|error| Failure::usage(error.to_string()))
        .and_then(|()| run_traced(cli.command));
    let code = match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code)
        }
    };
    // A reader of standard error that has stalled does not keep the program from exiting.
    proofmill_telemetry::console_flush(STDERR_FLUSH_MAX);
    code
}

/// Runs the command, and exports the spans that it makes if the environment names a collector.
fn run_traced(command: Command) -> Result<(), Failure> {
    if !command.makes_spans() {
        return run(command);
    }
    let refused = |error: SettingsError| Failure::usage(error.to_string());
    let settings = Settings::from_env().map_err(refused)?;
    let exporting = settings.map(traces::start).transpose().map_err(refused)?;
    let result = run(command);
    if let Some(exporting) = exporting {
        exporting.finish();
    }
    result
}

fn run(command: Command) -> Result<(), Failure> {
    if matches!(command, Command::Coordinator(_)) {
        // Its threads pass messages on: what one reads another frees.
        proofmill_memory::share_heap();
    }
    let mut builder = if command.uses_single_thread_runtime() {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let result = runtime.block_on(async {
        match command {
            Command::SupervisePrograms => supervise::run().await,
            Command::Demo(args) => demo::run(args).await,
            Command::Run(args) => commands::run::run(args).await,
            Command::Coordinator(args) => commands::cluster::coordinator(args).await,
            Command::Dispatcher(args) => commands::cluster::dispatcher(args).await,
            Command::Sequencer(args) => commands::cluster::sequencer(args).await,
            Command::Source(args) => commands::cluster::source(args).await,
            Command::Collector(args) => commands::cluster::collector(args).await,
            Command::Console(args) => commands::console::run(args).await,
            Command::ImportEnv(args) => commands::push0::import(&args),
            Command::Check(args) => commands::check::run(&args),
            Command::Status(args) => commands::inspect::status(args).await,
            Command::Top(args) => commands::top::run(args).await,
            Command::Queues(args) => commands::inspect::queues(args).await,
            Command::Tasks(args) => commands::inspect::tasks(args).await,
            Command::Scale(args) => commands::scale::run(args).await,
            Command::Block(args) => commands::block::run(args).await,
            Command::Dlq { command } => commands::dlq::run(command).await,
            Command::Cancel(args) => commands::cancel::run(args).await,
            Command::Pause(args) => commands::pause::pause(args).await,
            Command::Resume(args) => commands::pause::resume(args).await,
            Command::RunNow(args) => commands::pause::run_now(args).await,
            Command::Submit(args) => commands::submit::run(args).await,
            Command::Engine { command } => commands::engine::run(command).await,
            Command::Prove(args) => commands::prove::run(&args).await,
            Command::Verify(args) => commands::verify::run(&args).await,
            Command::Verifier { command } => commands::verifier::run(command).await,
            Command::Zkey { command } => commands::zkey::run(command),
            Command::Calldata(args) => commands::calldata::run(&args),
            Command::Setup(args) => commands::setup::run(&args),
            Command::Partition { command } => commands::partition::run(command).await,
            Command::Rv32 { command } => commands::rv32::run(command).await,
            Command::Vkd { command } => commands::vkd::run(command).await,
            Command::Aggregate { command } => commands::aggregate::run(command),
            Command::Zkpu { command } => commands::zkpu::run(command).await,
            Command::Ethproofs(args) => commands::ethproofs::run(&args).await,
            Command::Doctor(args) => commands::doctor::run(&args).await,
            Command::Completions { shell } => commands::completions::run(shell),
            Command::Man { out } => commands::man::run(&out),
        }
    });
    // A prover in this process cannot be interrupted; after a second Ctrl-C the program does not wait for it.
    runtime.shutdown_background();
    result
}
