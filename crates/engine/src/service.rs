//! Opening and running an engine.

use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofmill_files::make_private_directory;
use proofmill_groth16::snarkjs::CheckedKeyStore;
use proofmill_shutdown::Shutdown;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::budget::Budget;
use crate::events::Events;
use crate::front::CallerSide;
use crate::handle::Handle;
use crate::inputs::Inputs;
use crate::interface::{Error, Mib, PipelineStage};
use crate::key::KeyPolicy;
use crate::memory::default_budget;
use crate::options::{AcceleratorOptions, DeviceOptions, KeyForm, Options};
use crate::pipeline::{Device, Env, Scheduler, pool};
use crate::queue::{Journal, Recovered};
use crate::residency::{CheckedMemory, KeySizes, ResidencyTable, StoredFacts};

/// Most queued commands. Beyond, senders wait.
const COMMANDS_QUEUED_MAX: usize = 1024;

/// An engine that was opened. [`run`](Self::run) does its work.
pub struct Service {
    scheduler: Scheduler,
    /// The directory in use if the options name no state directory; removed when the service ends.
    temporary: Option<TempDir>,
}

// === impl Service ===

impl Service {
    /// Opens the state directory and restores the accepted jobs. Requests about jobs wait until
    /// [`run`](Self::run) is called.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for settings that contradict each other, [`Error::Storage`].
    pub fn open(options: Options) -> BoxFuture<'static, Result<(Self, Handle), Error>> {
        // Boxed, so that it is compiled in this crate and not again in every program that calls it.
        Box::pin(async move {
            check(&options)?;
            let total = options.memory.or_else(default_budget).ok_or_else(|| {
                Error::Invalid(
                    "the amount of this machine's memory is unknown: set the budget".to_owned(),
                )
            })?;
            let total = without_accelerators(total, &options)?;
            let (state, temporary) = state_directory(&options)?;
            let log = options.state_dir.is_some().then(|| state.join("log"));
            // Opening the log locks it: from here on the directory belongs to this engine alone.
            let (journal, recovered) = Journal::open(log.as_deref(), options.accept_loss).await?;
            let precompiled = state.join("precompiled");
            make(&precompiled)?;
            let inputs = Inputs::open(state.join("inputs"), options.limits).map_err(storage)?;
            inputs.keep_only(&named(&recovered)).map_err(storage)?;

            let events = Events::new();
            let shared = pool("engine", options.threads)?;
            let devices = devices(&options, &shared)?;
            let policy = KeyPolicy {
                allow_insecure: options.allow_insecure_keys,
            };
            let residency = ResidencyTable::new(
                Budget::new(total),
                events.clone(),
                shared.clone(),
                stored_facts(&options, &state, &recovered),
                key_form(&options),
                policy,
                options.limits.circuits,
            );
            for circuit in &recovered.circuits {
                residency.insert_known(circuit.clone())?;
            }
            let env = Arc::new(Env {
                events,
                inputs,
                generators: options.generators.clone(),
                interference: options.interference.clone(),
                pool: shared,
            });
            let caller_side = CallerSide {
                env: env.clone(),
                residency: residency.clone(),
                precompiled,
                policy,
                partition_workers: options.partition_workers,
                workers: PipelineStage::ALL.map(|stage| options.workers(stage)),
            };
            let (sender, commands) = mpsc::channel(COMMANDS_QUEUED_MAX);
            let mut scheduler =
                Scheduler::new(&options, env, residency, journal, commands, devices);
            scheduler.recover(recovered);
            let handle = Handle {
                commands: sender,
                caller_side: Arc::new(caller_side),
            };
            let service = Self {
                scheduler,
                temporary,
            };
            Ok((service, handle))
        })
    }

    /// Works until `shutdown` reaches [`Level::Stop`](proofmill_shutdown::Level::Stop). After
    /// [`Level::Drain`](proofmill_shutdown::Level::Drain), or when every handle is gone, it works until
    /// every accepted job has ended. Unfinished jobs are kept in the state directory, and go on when the
    /// engine is opened again; callers that wait for them get [`Error::Stopped`].
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the state can no longer be written.
    pub fn run(self, shutdown: Shutdown) -> BoxFuture<'static, Result<(), Error>> {
        // Boxed, so that it is compiled in this crate and not again in every program that calls it.
        Box::pin(async move {
            let outcome = self.scheduler.run(shutdown).await;
            drop(self.temporary);
            outcome
        })
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// The state directory, created if it does not exist; and, if the options name none, the private directory
/// that takes its place, which is removed when it is dropped.
fn state_directory(options: &Options) -> Result<(PathBuf, Option<TempDir>), Error> {
    let (state, temporary) = match &options.state_dir {
        Some(folder) => (folder.clone(), None),
        None => {
            let folder = temporary().map_err(storage)?;
            (folder.path().to_owned(), Some(folder))
        }
    };
    make(&state)?;
    // Absolute, since paths in it are stored in the log.
    let state = std::fs::canonicalize(state).map_err(storage)?;
    Ok((state, temporary))
}

/// The devices, by number; those without threads of their own use `shared`.
fn devices(options: &Options, shared: &Arc<rayon::ThreadPool>) -> Result<Vec<Device>, Error> {
    let devices = options.devices.iter().enumerate();
    devices
        .map(|(number, device)| Device::new(number, device, shared))
        .collect()
}

/// Stored facts about keys. Without a state directory nothing is stored, except where the options give a
/// path.
fn stored_facts(options: &Options, state: &Path, recovered: &Recovered) -> StoredFacts {
    let durable = options.state_dir.is_some();
    let checked = durable.then(|| state.join("checked-keys"));
    let checked = options.checked_keys.clone().or(checked);
    let figures = durable.then(|| state.join("figures"));
    let ids: Vec<_> = recovered.circuits.iter().map(|it| it.id).collect();
    StoredFacts {
        checked: CheckedMemory::new(checked.map(CheckedKeyStore::in_directory)),
        key_sizes: KeySizes::open(figures, &ids),
    }
}

/// Checks that the settings do not contradict each other.
fn check(options: &Options) -> Result<(), Error> {
    let workers = &options.stage_workers;
    let counts = [
        ("partition_workers", options.partition_workers),
        ("devices", options.devices.len()),
        ("attempts", options.attempts as usize),
        ("witness workers", workers.witness),
        ("evaluate workers", workers.evaluate),
        ("finish workers", workers.finish),
        ("verify workers", workers.verify),
    ];
    if let Some((what, _)) = counts.iter().find(|(_, count)| *count == 0) {
        return Err(Error::Invalid(format!("{what} is 0: at least 1 is needed")));
    }
    let names: HashSet<&str> = options.devices.iter().map(|device| &*device.name).collect();
    if names.len() < options.devices.len() || names.contains("") {
        return Err(Error::Invalid("devices need names of their own".to_owned()));
    }
    if accelerators(options).count() == options.devices.len() {
        return Err(Error::Invalid(
            "processors are needed among the devices, for what accelerators fail at".to_owned(),
        ));
    }
    if options
        .devices
        .iter()
        .any(|device| device.partitions() == 0)
    {
        return Err(Error::Invalid(
            "an accelerator for 0 partitions at once: at least 1 is needed".to_owned(),
        ));
    }
    let prepared = matches!(options.key_form, KeyForm::Prepared { .. });
    if prepared && accelerators(options).next().is_some() {
        return Err(Error::Invalid(
            "prepared keys cannot be brought to accelerators: hold keys plain, or use processors only"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The form of hot keys, as the devices require it.
fn key_form(options: &Options) -> KeyForm {
    match options.key_form {
        KeyForm::Plain if accelerators(options).next().is_some() => KeyForm::Shared,
        form => form,
    }
}

/// The budget less the host memory that accelerators keep as long as the engine runs.
fn without_accelerators(total: u64, options: &Options) -> Result<u64, Error> {
    let kept: u64 = accelerators(options)
        .map(|it| it.device.caps().host_memory)
        .sum();
    total
        .checked_sub(kept)
        .filter(|left| *left > 0)
        .ok_or_else(|| {
            Error::Invalid(format!(
                "the accelerators keep {} of the host's memory, and the budget is {}: set a larger one, \
                 or use fewer of them",
                Mib(kept),
                Mib(total)
            ))
        })
}

fn accelerators(options: &Options) -> impl Iterator<Item = &AcceleratorOptions> {
    let devices = options.devices.iter();
    devices.filter_map(DeviceOptions::accelerator)
}

/// The input files of unfinished jobs.
fn named(recovered: &Recovered) -> HashSet<crate::inputs::InputName> {
    let partitions = recovered.jobs.iter().flat_map(|job| &job.partitions);
    partitions
        .map(|partition| partition.input.name.clone())
        .collect()
}

fn temporary() -> std::io::Result<TempDir> {
    // Mode 0700.
    tempfile::Builder::new()
        .prefix("proofmill-engine-")
        .tempdir()
}

fn make(folder: &Path) -> Result<(), Error> {
    make_private_directory(folder)
        .map_err(|error| storage(format!("{}: {error}", folder.display())))
}

fn storage(error: impl fmt::Display) -> Error {
    Error::Storage(error.to_string())
}
