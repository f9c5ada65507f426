//! `proofmill zkpu serve`

use std::time::{SystemTime, UNIX_EPOCH};

use proofmill_shutdown::{Level, channel};
use proofmill_zkpu::controller::{Execution, FunctionalModel, ModelOptions};
use proofmill_zkpu::target::{Target, TargetError, TargetOptions};

use crate::args::zkpu::Serve;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{output, signals};

pub(super) async fn run(args: &Serve) -> Result<(), Failure> {
    // The memory of a new process is another one: hosts that were connected to the one before load their bases again.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let power_on_id = since_epoch.map_or(0, |since| since.as_nanos() as u64);
    let model = FunctionalModel::new(ModelOptions {
        serial: "MODEL".to_owned(),
        memory_bytes: args.memory,
        adders: args.adders,
        power_on_id,
        execution: Execution::Thread,
    });
    let options = TargetOptions {
        allow_remote: args.allow_remote,
        ..TargetOptions::new(args.listen)
    };
    let target = Target::bind(model, options).await;
    let target = target.map_err(|error| {
        let failure = Failure::of(&error);
        match error {
            TargetError::NotLoopback(_) => failure.help("--allow-remote allows it"),
            TargetError::Listen { .. } => failure.help("name another address with --listen"),
        }
    })?;
    let stop = signals::first_signal()?;
    Screen::open().note(&output::plain(&format!(
        "a model of a ZKPU is served over NVMe/TCP on {}, subsystem {}",
        target.address(),
        target.subsystem(),
    )));
    let (trigger, shutdown) = channel();
    tokio::spawn(async move {
        stop.await;
        trigger.raise(Level::Stop);
    });
    target.run(shutdown).await;
    Ok(())
}
