//! A proof of a circom circuit from cold files, against snarkjs.

use std::process::Command;

use anyhow::Context;
use serde_json::{Map, Value};

use crate::circom::{Circuit, CircuitArgs, node_script};
use crate::versus::{Comparison, Contender, Contenders, Options, PeerAnswer, Purpose, Sample};

/// Bytes that the default circuit hashes, which takes 126,888 constraints.
const BYTES: usize = 200;

/// The stages that the summary of `proofmill prove` has, in the order of the table.
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
    #[command(flatten)]
    circuit: CircuitArgs,
    /// Let our program trust the key, which it checked in the unmeasured run before
    #[arg(long)]
    trust_key: bool,
    #[command(flatten)]
    options: Options,
}

/// The circuit's files, and the settings of the comparison.
struct Setting {
    circuit: Circuit,
    trust_key: bool,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.options.prepare()?;
    let setting = Setting {
        circuit: args.circuit.prepare(BYTES)?,
        trust_key: args.trust_key,
    };
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
    fn compare(&self, options: &Options, threads: usize) -> anyhow::Result<Comparison> {
        let mut settings: Map<String, Value> = Map::new();
        settings.insert("circuit".to_owned(), self.circuit.name().into());
        settings.insert("threads".to_owned(), threads.into());
        settings.insert("trust_key".to_owned(), self.trust_key.into());
        let ours = Contender::new("proofmill", |_| self.prove_with_proofmill(threads));
        let mut contenders = Contenders::new(options, settings, ours);
        contenders.add_peer("snarkjs", || {
            let snarkjs = Contender::new("snarkjs", |purpose| self.prove_with_snarkjs(purpose));
            Ok(PeerAnswer::Runs(vec![snarkjs]))
        })?;
        contenders.run()
    }

    /// Makes a proof with `proofmill prove`.
    fn prove_with_proofmill(&self, threads: usize) -> anyhow::Result<Sample> {
        let threads = threads.to_string();
        let mut more_arguments = vec!["--threads", &threads];
        if self.trust_key {
            more_arguments.push("--trust-key");
        }
        let (ms, stdout) = self.circuit.prove(&more_arguments)?;
        let summary: Value = stdout
            .lines()
            .last()
            .and_then(|line| serde_json::from_str(line).ok())
            .context("proofmill printed no summary")?;
        let reported_stages = summary["stages"].as_array().context("no stages")?;
        let stages = STAGES
            .iter()
            .filter_map(|name| {
                let stage = reported_stages
                    .iter()
                    .find(|stage| stage["name"] == **name)?;
                Some((*name, stage["ms"].as_f64()?))
            })
            .collect();
        Ok(Sample {
            ms: vec![ms],
            result: None,
            stages,
        })
    }

    /// Makes a proof with snarkjs. In the check before the measurement, snarkjs also verifies our proof,
    /// and `proofmill` verifies that of snarkjs.
    fn prove_with_snarkjs(&self, purpose: Purpose) -> anyhow::Result<Sample> {
        let ms = self.circuit.prove_with_snarkjs()?;
        if purpose == Purpose::Check {
            let circuit = &self.circuit;
            let mut export = Command::new(&circuit.proofmill);
            export.args(["zkey", "export-vk"]).arg(&circuit.zkey);
            circuit.finish(export.args(["vk.json", "--force"]))?;
            let mut verify = node_script("snarkjs/build/cli.cjs")?;
            verify.args(["groth16", "verify", "vk.json", "ours.public.json"]);
            circuit.finish(verify.arg("ours.proof.json"))?;
            let mut verify = Command::new(&circuit.proofmill);
            verify.args(["verify", "--vk", "vk.json"]);
            circuit.finish(verify.args(["theirs.proof.json", "theirs.public.json"]))?;
        }
        Ok(Sample {
            ms: vec![ms],
            ..Sample::default()
        })
    }
}
