//! A proof of a circom circuit from cold files, against snarkjs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Map, Value};

use crate::versus::{Comparison, Contender, Lineup, Offer, Options, Purpose, Sample};

/// The circuit that is proved if no other is named, of 126,888 constraints.
const CIRCUIT: &str = "sha256_200";

/// The stages that `proofmill prove` tells of.
const STAGES: [&str; 12] = [
    "read witness",
    "read key",
    "evaluate",
    "quotient",
    "msm H",
    "msm A",
    "msm B in G1",
    "msm B in G2",
    "msm L",
    "assemble",
    "verify",
    "write",
];

/// Arguments of `proofmill-bench snarkjs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The clock runs from the start of a process to its end: `proofmill prove` and `snarkjs groth16 prove`
read the same key and witness and write a proof and its public signals. snarkjs uses every core.

The circuit is SHA-256 of 200 bytes, by circomlib, unless --zkey and --witness name files of another.
circom and snarkjs are those that the tests run: `make interop-tools` installs them.

  make bench-snarkjs
  proofmill-bench snarkjs --threads 2 --zkey circuit.zkey --witness witness.wtns")]
pub(crate) struct Args {
    /// A key of another circuit
    #[arg(long, value_name = "ZKEY", requires = "witness")]
    zkey: Option<PathBuf>,
    /// A witness of that circuit
    #[arg(long, value_name = "WTNS", requires = "zkey")]
    witness: Option<PathBuf>,
    /// Let our program trust the key, which it checked in the unmeasured run before
    #[arg(long)]
    trust_key: bool,
    /// The program to measure [default: the one beside this]
    #[arg(long, value_name = "FILE")]
    proofmill: Option<PathBuf>,
    /// Where the circuit, its key and the proofs are kept
    #[arg(long, value_name = "DIR", default_value = "target/bench-snarkjs")]
    dir: PathBuf,
    #[command(flatten)]
    options: Options,
}

/// What is proved, and with which programs.
struct Setting {
    zkey: PathBuf,
    witness: PathBuf,
    directory: PathBuf,
    proofmill: PathBuf,
    trust_key: bool,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let setting = Setting::prepare(args)?;
    let comparisons = args
        .options
        .threads()
        .map(|threads| setting.compare(&args.options, threads))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let title = "A proof of a circom circuit, from the start of the process to its end";
    args.options.print(title, &comparisons);
    Ok(())
}

// === impl Setting ===

impl Setting {
    fn prepare(args: &Args) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&args.dir)
            .with_context(|| format!("making {}", args.dir.display()))?;
        let directory = args.dir.canonicalize()?;
        let proofmill = match &args.proofmill {
            Some(program) => program.canonicalize(),
            None => std::env::current_exe().map(|this| this.with_file_name("proofmill")),
        }
        .context("finding proofmill")?;
        anyhow::ensure!(
            proofmill.exists(),
            "{} is not there: build it with `make build`, or name it with --proofmill",
            proofmill.display()
        );
        let mut setting = Self {
            zkey: directory.join(format!("{CIRCUIT}.zkey")),
            witness: directory.join(format!("{CIRCUIT}.wtns")),
            directory,
            proofmill,
            trust_key: args.trust_key,
        };
        match (&args.zkey, &args.witness) {
            (Some(zkey), Some(witness)) => {
                setting.zkey = zkey.canonicalize().context("finding the key")?;
                setting.witness = witness.canonicalize().context("finding the witness")?;
            }
            _ if setting.zkey.exists() => {}
            _ => setting.compile()?,
        }
        Ok(setting)
    }

    /// Makes the circuit, a witness and a key, the key last.
    fn compile(&self) -> anyhow::Result<()> {
        let tools = tools();
        eprintln!("compiling {CIRCUIT} and making its key, once");
        let mut circom = node("circom2/cli.js")?;
        circom
            .args([&format!("circuits/{CIRCUIT}.circom"), "-l", "node_modules"])
            .args(["--r1cs", "--wasm", "-o"])
            .arg(&self.directory);
        // It finds what a circuit includes only from where the circuit is.
        finish(circom.current_dir(&tools))?;
        let mut witness = node("snarkjs/build/cli.cjs")?;
        witness
            .args(["wtns", "calculate"])
            .arg(format!("{CIRCUIT}_js/{CIRCUIT}.wasm"))
            .arg(tools.join("inputs").join(format!("{CIRCUIT}.json")))
            .arg(&self.witness);
        self.finish(&mut witness)?;
        let mut setup = Command::new(&self.proofmill);
        setup.args(["setup", &format!("{CIRCUIT}.r1cs"), "-o"]);
        self.finish(setup.arg(&self.zkey))?;
        Ok(())
    }

    fn compare(&self, options: &Options, threads: usize) -> anyhow::Result<Comparison> {
        let circuit = self.zkey.file_stem().map(|it| it.to_string_lossy());
        let mut settings: Map<String, Value> = Map::new();
        settings.insert("circuit".to_owned(), circuit.unwrap_or_default().into());
        settings.insert("threads".to_owned(), threads.into());
        settings.insert("trust_key".to_owned(), self.trust_key.into());
        let ours = Contender::new("proofmill", |_| self.ours(threads));
        let mut lineup = Lineup::new(options, settings, ours);
        lineup.ask("snarkjs", || {
            let snarkjs = Contender::new("snarkjs", |purpose| self.theirs(purpose));
            Ok(Offer::Runs(vec![snarkjs]))
        })?;
        lineup.run()
    }

    fn ours(&self, threads: usize) -> anyhow::Result<Sample> {
        let mut prove = Command::new(&self.proofmill);
        prove
            .arg("prove")
            .args([&self.zkey, &self.witness])
            .args(["ours.proof.json", "ours.public.json"])
            .args(["--json", "--threads", &threads.to_string()]);
        if self.trust_key {
            prove
                .arg("--trust-key")
                .env("XDG_STATE_HOME", &self.directory);
        }
        let (ms, stdout) = self.finish(&mut prove)?;
        let summary: Value = stdout
            .lines()
            .last()
            .and_then(|line| serde_json::from_str(line).ok())
            .context("proofmill printed no summary")?;
        let told = summary["stages"].as_array().context("no stages")?;
        let stages = STAGES
            .iter()
            .filter_map(|name| {
                let stage = told.iter().find(|stage| stage["name"] == **name)?;
                Some((*name, stage["ms"].as_f64()?))
            })
            .collect();
        Ok(Sample {
            ms: vec![ms],
            result: None,
            stages,
        })
    }

    /// snarkjs proves; the first time it also verifies our proof, and we verify its own.
    fn theirs(&self, purpose: Purpose) -> anyhow::Result<Sample> {
        let mut prove = node("snarkjs/build/cli.cjs")?;
        prove
            .args(["groth16", "prove"])
            .args([&self.zkey, &self.witness])
            .args(["theirs.proof.json", "theirs.public.json"]);
        let (ms, _) = self.finish(&mut prove)?;
        if purpose == Purpose::Check {
            let mut export = Command::new(&self.proofmill);
            export.args(["zkey", "export-vk"]).arg(&self.zkey);
            self.finish(export.arg("vk.json"))?;
            let mut verify = node("snarkjs/build/cli.cjs")?;
            verify.args(["groth16", "verify", "vk.json", "ours.public.json"]);
            self.finish(verify.arg("ours.proof.json"))?;
            let mut verify = Command::new(&self.proofmill);
            verify.args(["verify", "--vk", "vk.json"]);
            self.finish(verify.args(["theirs.proof.json", "theirs.public.json"]))?;
        }
        Ok(Sample {
            ms: vec![ms],
            ..Sample::default()
        })
    }

    /// Runs a program in the directory.
    fn finish(&self, command: &mut Command) -> anyhow::Result<(f64, String)> {
        finish(command.current_dir(&self.directory))
    }
}

/// Runs a program, and tells how long it took and what it printed.
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

/// A tool that the tests run.
fn node(script: &str) -> anyhow::Result<Command> {
    let script = tools().join("node_modules").join(script);
    anyhow::ensure!(
        script.exists(),
        "circom and snarkjs are not installed: run `make interop-tools`"
    );
    let mut command = Command::new("node");
    command.arg(script);
    Ok(command)
}

/// Where the circuits and the tools of the tests are.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/tests/circom")
}
