//! Peak memory of an engine that registers a circuit, loads its key and proves, beside the engine's own
//! estimate. The engine proves a small circuit first, so that the memory of the program itself does not count
//! as the circuit's.

use std::path::{Path, PathBuf};

use anyhow::Context;
use proofmill_api::engine::Client;
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::register_request::Source;
use proofmill_api::engine::proto::{JobState, Partition, RegisterRequest, SubmitRequest};
use proofmill_groth16::Curve;

use super::circuits::{EngineCircuit, arguments};
use super::process::EngineConfig;
use super::running::NAME;
use crate::circom::CircuitArgs;
use crate::groth16::Sized;
use crate::harness::{Common, Report, StateDisk, Target, memory, mib, peak, round};

/// Proofs of each circuit, one after the other: the first one loads the key.
const PROOFS: usize = 3;

/// Arguments of `proofmill-bench engine estimates`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder with NAME.wtns for each NAME.zkey
    folder: PathBuf,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    circuit: CircuitArgs,
}

/// Expected and measured memory of an engine, in bytes.
struct Measured {
    /// Memory expected for key and proof, estimated before the key is first loaded.
    expected: u64,
    /// The same estimate after the key was loaded.
    expected_after_loading: u64,
    /// Peak memory, without the memory that the process had before the circuit was registered.
    peak_bytes: u64,
    /// Memory of the key alone: expected and measured.
    key: (u64, u64),
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let program = args.circuit.program()?;
    let mut report = Report::new(
        "Engine: memory of a key and a proof, measured and expected",
        &disk,
    );
    let small = Sized::Chain { constraints: 100 };
    let small = [EngineCircuit::synthesized(
        &args.circuit.folder()?,
        Curve::Bn254,
        small,
    )?];
    let mut runs = Vec::new();
    for zkey in keys(&args.folder)? {
        let stem = zkey.file_stem().context("a name")?.to_string_lossy();
        let config = EngineConfig::new(&program, &disk.state(&stem), arguments(&small));
        let measured = measure(&config, &small[0], &zkey).await?;
        let ratio = measured.expected as f64 / measured.peak_bytes as f64;
        let shown = [
            ("most memory", mib(measured.peak_bytes)),
            ("expected at first", mib(measured.expected)),
            (
                "expected after loading",
                mib(measured.expected_after_loading),
            ),
            ("key", mib(measured.key.1)),
            ("key, expected at first", mib(measured.key.0)),
        ];
        for (what, figure) in shown {
            report.figure(&format!("{stem}: {what}"), figure, "MiB", Target::None, "");
        }
        // An estimate below the measured memory would be unsafe; one far above would waste memory.
        report.figure(
            "expected for each byte",
            ratio,
            "",
            Target::AtLeast(0.9),
            "",
        );
        runs.push(serde_json::json!({
            "circuit": stem,
            "peak_bytes": measured.peak_bytes,
            "expected_bytes": measured.expected,
            "expected_later_bytes": measured.expected_after_loading,
            "key_bytes": measured.key.1,
            "key_expected_bytes": measured.key.0,
            "ratio": round(ratio),
        }));
    }
    report.put("runs", runs);
    report.finish(&args.common)
}

/// Paths of the `.zkey` files in a folder that have a `.wtns` file of the same name, sorted.
fn keys(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut keys = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path().canonicalize()?;
        let is_key = path.extension().is_some_and(|it| it == "zkey");
        if is_key && path.with_extension("wtns").is_file() {
            keys.push(path);
        }
    }
    keys.sort();
    anyhow::ensure!(
        !keys.is_empty(),
        "{}: no NAME.zkey with NAME.wtns",
        folder.display()
    );
    Ok(keys)
}

/// Starts an engine, has it prove with the key, and measures its memory.
async fn measure(
    config: &EngineConfig,
    small: &EngineCircuit,
    zkey: &Path,
) -> anyhow::Result<Measured> {
    let unknown = "the system does not say what memory the engine has";
    let witness = std::fs::read(zkey.with_extension("wtns")).context("reading the witness")?;
    let process = config.start_with(1).await?;
    let (id, client) = (process.id()?, config.client().await?);
    prove(&client, "small", || small.partition()).await?;
    client.evict(&small.name).await?;
    proofmill_memory::reset_peak(id).context(unknown)?;
    let before = memory(id).context(unknown)?;
    let registration = RegisterRequest {
        name: NAME.to_owned(),
        source: Some(Source::Zkey(zkey.to_string_lossy().into_owned())),
    };
    let registered = client.register(registration).await?;
    let partition = || Partition {
        circuit: NAME.to_owned(),
        input: Some(Input::Wtns(witness.clone())),
    };
    prove(&client, "measured", partition).await?;
    // Pages of the program's file that were loaded meanwhile do not count as the circuit's.
    let after = memory(id).context(unknown)?;
    let program =
        (after.resident - after.anonymous).saturating_sub(before.resident - before.anonymous);
    let peak_bytes = peak(id)
        .context(unknown)?
        .saturating_sub(before.resident + program);
    let circuits = client.circuits().await?;
    let after = circuits.iter().find(|it| it.name == NAME);
    let after = after.context("the circuit is gone")?;
    process.kill().await?;
    Ok(Measured {
        expected: registered.needed_bytes,
        expected_after_loading: after.needed_bytes,
        peak_bytes,
        key: (registered.hot_bytes, after.hot_bytes),
    })
}

/// Has an engine make [`PROOFS`] proofs, one after the other.
async fn prove(
    client: &Client,
    what: &str,
    partition: impl Fn() -> Partition,
) -> anyhow::Result<()> {
    for number in 0..PROOFS {
        let request = SubmitRequest {
            request_id: format!("{what}-{number}"),
            partitions: vec![partition()],
            ..SubmitRequest::default()
        };
        let job = client.submit(request).await?.job;
        let result = client.await_result(&job).await?;
        anyhow::ensure!(result.state() == JobState::Done, "{}", result.failure);
    }
    Ok(())
}
