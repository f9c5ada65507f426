//! `proofmill zkpu serve`

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proofmill_shutdown::{Level, channel};
use proofmill_zkpu::circuit::{Circuit, CircuitOptions};
use proofmill_zkpu::controller::{Execution, FunctionalModel, ModelOptions, NvmeController};
use proofmill_zkpu::target::{Target, TargetError, TargetOptions};

use crate::args::zkpu::Serve;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{output, signals};

/// Time without an answer after which a simulator counts as hung.
const SILENCE_MAX: Duration = Duration::from_secs(30);

pub(super) async fn run(args: &Serve) -> Result<(), Failure> {
    // The memory of a new process is another one: hosts that were connected to the one before load their bases again.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let power_on_id = since_epoch.map_or(0, |since| since.as_nanos() as u64);
    let options = TargetOptions {
        allow_remote: args.allow_remote,
        ..TargetOptions::new(args.listen)
    };
    if let Some(simulator) = &args.rtl {
        let options_of_circuit = CircuitOptions {
            simulator: simulator.clone(),
            firmware: firmware(args.firmware.as_deref(), simulator),
            memory_bytes: args.memory,
            power_on_id,
            silence_max: SILENCE_MAX,
        };
        let circuit = super::blocking(move || {
            Circuit::launch(&options_of_circuit).map_err(|error| Failure::of(&error))
        });
        let target = Target::bind_controller(circuit.await?, options).await;
        return serve("the simulated circuit of a ZKPU", target).await;
    }
    let model = FunctionalModel::new(ModelOptions {
        serial: "MODEL".to_owned(),
        memory_bytes: args.memory,
        adders: args.adders,
        power_on_id,
        execution: Execution::Thread,
    });
    serve("a model of a ZKPU", Target::bind(model, options).await).await
}

/// The image that `make` builds beside the simulator, unless another is named.
fn firmware(named: Option<&Path>, simulator: &Path) -> PathBuf {
    let beside = || {
        let build = simulator.parent().unwrap_or_else(|| Path::new(""));
        build.join("../soc/firmware.hex")
    };
    named.map_or_else(beside, Path::to_path_buf)
}

async fn serve<C: NvmeController + Send + 'static>(
    kind: &str,
    target: Result<Target<C>, TargetError>,
) -> Result<(), Failure> {
    let target = target.map_err(|error| {
        let failure = Failure::of(&error);
        match error {
            TargetError::NotLoopback(_) => failure.help("--allow-remote allows it"),
            TargetError::Listen { .. } => failure.help("name another address with --listen"),
        }
    })?;
    let stop = signals::first_signal()?;
    Screen::open().note(&output::plain(&format!(
        "{kind} is served over NVMe/TCP on {}, subsystem {}",
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
