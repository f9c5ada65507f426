//! Circuits that circom compiles, each with a key and a witness. They are made once and kept in a folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use crate::harness::Program;

/// The circuit to prove, and the directory of its files.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CircuitArgs {
    /// A key of another circuit
    #[arg(long, value_name = "ZKEY", requires = "witness")]
    zkey: Option<PathBuf>,
    /// A witness of that circuit
    #[arg(long, value_name = "WTNS", requires = "zkey")]
    witness: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
    /// Where the circuit, its key and the proofs are kept
    #[arg(long, value_name = "DIR", default_value = "target/bench-snarkjs")]
    circuits: PathBuf,
}

/// A circuit's files, and the programs that work on them.
#[derive(Clone, Debug)]
pub(crate) struct Circuit {
    pub(crate) zkey: PathBuf,
    pub(crate) witness: PathBuf,
    /// Directory in which the programs run and write their output.
    pub(crate) directory: PathBuf,
    pub(crate) proofmill: PathBuf,
}

// === impl CircuitArgs ===

impl CircuitArgs {
    /// The directory in which circuits and their keys are kept, made if it is missing.
    pub(crate) fn folder(&self) -> anyhow::Result<PathBuf> {
        folder(&self.circuits)
    }

    /// The path of the `proofmill` program.
    pub(crate) fn program(&self) -> anyhow::Result<PathBuf> {
        Ok(self.program.find()?.canonicalize()?)
    }

    /// The circuit named on the command line; by default circomlib's SHA-256 of `bytes` bytes, which is
    /// compiled if it is missing.
    pub(crate) fn prepare(&self, bytes: usize) -> anyhow::Result<Circuit> {
        let directory = self.folder()?;
        let proofmill = self.program()?;
        let name = format!("sha256_{bytes}");
        let mut circuit = Circuit {
            zkey: directory.join(format!("{name}.zkey")),
            witness: directory.join(format!("{name}.wtns")),
            directory,
            proofmill,
        };
        match (&self.zkey, &self.witness) {
            (Some(zkey), Some(witness)) => {
                circuit.zkey = zkey.canonicalize().context("finding the key")?;
                circuit.witness = witness.canonicalize().context("finding the witness")?;
            }
            _ if circuit.zkey.exists() => {}
            _ => circuit.compile(&name, bytes)?,
        }
        Ok(circuit)
    }
}

// === impl Circuit ===

impl Circuit {
    /// The name of the circuit: that of its key file, without the ending.
    pub(crate) fn name(&self) -> String {
        let stem = self.zkey.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Compiles the circuit, then makes a witness, then a key. The key is the last file, so that the
    /// others exist if it does.
    fn compile(&self, name: &str, bytes: usize) -> anyhow::Result<()> {
        let tests_folder = tests_folder();
        eprintln!("compiling {name} and making its key, once");
        let mut circom = node_script("circom2/cli.js")?;
        circom
            .args([&format!("circuits/{name}.circom"), "-l", "node_modules"])
            .args(["--r1cs", "--wasm", "-o"])
            .arg(&self.directory);
        // circom resolves the includes of a circuit relative to its own working directory.
        finish(circom.current_dir(&tests_folder))?;
        let bytes: Vec<usize> = (0..bytes).map(|byte| byte % 256).collect();
        let input = self.directory.join(format!("{name}.json"));
        std::fs::write(&input, serde_json::json!({ "bytes": bytes }).to_string())?;
        let mut witness = node_script("snarkjs/build/cli.cjs")?;
        witness
            .args(["wtns", "calculate"])
            .arg(format!("{name}_js/{name}.wasm"))
            .args([&input, &self.witness]);
        self.finish(&mut witness)?;
        let mut setup = Command::new(&self.proofmill);
        setup.args(["setup", &format!("{name}.r1cs"), "-o"]);
        self.finish(setup.arg(&self.zkey))?;
        Ok(())
    }

    /// Makes a proof with snarkjs; returns the process's time in milliseconds.
    pub(crate) fn prove_with_snarkjs(&self) -> anyhow::Result<f64> {
        let mut prove = node_script("snarkjs/build/cli.cjs")?;
        prove
            .args(["groth16", "prove"])
            .args([&self.zkey, &self.witness])
            .args(["theirs.proof.json", "theirs.public.json"]);
        Ok(self.finish(&mut prove)?.0)
    }

    /// Makes a proof with `proofmill prove` and further arguments; returns the process's time in
    /// milliseconds, and its output.
    pub(crate) fn prove(&self, more_arguments: &[&str]) -> anyhow::Result<(f64, String)> {
        let mut prove = Command::new(&self.proofmill);
        prove
            .arg("prove")
            .args([&self.zkey, &self.witness])
            .args(["ours.proof.json", "ours.public.json", "--json"])
            .args(more_arguments)
            // `proofmill` keeps the list of checked keys there.
            .env("XDG_STATE_HOME", &self.directory);
        self.finish(&mut prove)
    }

    /// Runs a program in [`Circuit::directory`]; returns its time in milliseconds, and its output.
    pub(crate) fn finish(&self, command: &mut Command) -> anyhow::Result<(f64, String)> {
        finish(command.current_dir(&self.directory))
    }
}

/// Runs a program; returns its time in milliseconds, and its output.
fn finish(command: &mut Command) -> anyhow::Result<(f64, String)> {
    let began = Instant::now();
    let output = command
        .output()
        .with_context(|| format!("starting {:?}", command.get_program()))?;
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    anyhow::ensure!(
        output.status.success(),
        "{command:?}: {}\n{stdout}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok((ms, stdout))
}

/// A command that runs a script of the npm packages `circom2` and `snarkjs` with node. Fails if they
/// are not installed.
pub(crate) fn node_script(script: &str) -> anyhow::Result<Command> {
    let script = tests_folder().join("node_modules").join(script);
    anyhow::ensure!(
        script.exists(),
        "circom and snarkjs are not installed: run `make interop-tools`"
    );
    let mut command = Command::new("node");
    command.arg(script);
    Ok(command)
}

/// The folder with the circuits of the tests, in which circom and snarkjs are installed too.
fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/tests/circom")
}

/// The absolute path of a folder, which is made if it is missing.
pub(crate) fn folder(path: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
    Ok(path.canonicalize()?)
}
