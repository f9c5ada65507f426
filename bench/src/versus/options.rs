//! The options that all comparisons share.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::str::FromStr;

use anyhow::Context;
use proofmill_kernels::{INSTRUCTION_SET_VARIABLE, InstructionSet};

/// Names that `--against` accepts, beside those of `--peer`.
const PEERS: [&str; 5] = ["arkworks", "blst", "halo2curves", "gnark", "snarkjs"];

/// End of the help text of every comparison, such as `proofmill-bench msm --help`.
pub(crate) const COMPARISON_HELP: &str = "\
All contenders run in turns, each first once unmeasured; what they compute must be the same.
blst and halo2curves take part if the bench is built with `--features peers`; gnark, if `go` is
installed. A peer that has no such group or curve is left out, with a note. A peer of your own is a
command that prints, as the last line of its standard output, one JSON object: {\"ms\": 12.3}, or
{\"ms\": [12.3, 12.5]} if it makes several runs at once.

  --peer 'mcl=./mcl-msm --curve {curve} --log-n {log_n} --threads {threads}'";

/// Arguments of every comparison.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Threads that each contender may use; a list makes a comparison for each
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "LIST",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
    /// Peers: "all", "none", or some of arkworks, blst, halo2curves, gnark
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "all",
        value_name = "NAMES"
    )]
    against: Vec<String>,
    /// A peer given as a command; {curve}, {group}, {log_n} and {threads} are filled in
    #[arg(long = "peer", value_name = "NAME=CMD")]
    pub(crate) commands: Vec<PeerCommand>,
    /// Runs of each contender that count, at most
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) samples: u32,
    /// Begin no further round after so many seconds of one comparison
    #[arg(long, default_value_t = 120)]
    pub(crate) seconds: u64,
    /// Our instructions: "auto", or a name such as "portable"
    #[arg(long, default_value = "auto", value_name = "NAME")]
    instruction_set: String,
    /// A table in Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
    /// One JSON object as the last line
    #[arg(long)]
    pub(crate) json: bool,
}

/// A peer that is a command.
#[derive(Clone, Debug)]
pub(crate) struct PeerCommand {
    /// Name in the table.
    pub(crate) name: String,
    /// Program and arguments, with placeholders.
    pub(crate) words: Vec<String>,
}

/// A curve that several libraries have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Curve {
    /// BLS12-381
    #[value(name = "bls12-381")]
    Bls12_381,
    /// BLS12-377
    #[value(name = "bls12-377")]
    Bls12_377,
    /// BN254, also called alt_bn128
    Bn254,
    /// Grumpkin, BN254's sister
    Grumpkin,
}

/// One of a pairing's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Group {
    /// Over the prime field
    G1,
    /// Over its quadratic extension
    G2,
}

// === impl Options ===

impl Options {
    /// Checks the options that clap cannot check, and selects the instruction set. The kernels
    /// choose it once in a process, from an environment variable, so that a choice other than the
    /// current one starts this program anew in place of the process.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        for name in &self.against {
            let known = ["all", "none"]
                .iter()
                .chain(&PEERS)
                .any(|known| known == name);
            anyhow::ensure!(
                known,
                "no peer is called {name:?}: there are {}",
                PEERS.join(", ")
            );
        }
        let wanted = match self.instruction_set.as_str() {
            "auto" => return Ok(()),
            name => name.parse::<InstructionSet>()?,
        };
        anyhow::ensure!(wanted.is_available(), "this machine has no {wanted}");
        if InstructionSet::current() == wanted {
            return Ok(());
        }
        let program = std::env::current_exe().context("finding this program")?;
        let error = Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(INSTRUCTION_SET_VARIABLE, wanted.to_string())
            .exec();
        Err(error).context("starting this program anew")
    }

    /// The numbers of threads to compare at.
    pub(crate) fn threads(&self) -> impl Iterator<Item = usize> {
        self.threads.iter().map(|threads| usize::from(*threads))
    }

    /// Whether the peer takes part, named or as one of "all".
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.against.iter().any(|wanted| wanted == "all") || self.is_named(name)
    }

    /// The peers that `--against` names, without those of "all".
    pub(crate) fn named_peers(&self) -> impl Iterator<Item = &str> {
        let names = self.against.iter().map(String::as_str);
        names.filter(|name| PEERS.contains(name))
    }

    /// Whether `--against` names the peer.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.against.iter().any(|wanted| wanted == name)
    }
}

// === impl PeerCommand ===

impl FromStr for PeerCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, command) = text
            .split_once('=')
            .ok_or("it is NAME=CMD, such as 'mine=./msm {curve} {log_n} {threads}'")?;
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if name.trim().is_empty() || words.is_empty() {
            return Err("both a name and a command are needed".to_owned());
        }
        Ok(Self {
            name: name.trim().to_owned(),
            words,
        })
    }
}

// === impl Curve ===

impl Curve {
    /// The name in options and tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bls12_381 => "bls12-381",
            Self::Bls12_377 => "bls12-377",
            Self::Bn254 => "bn254",
            Self::Grumpkin => "grumpkin",
        }
    }
}

// === impl Group ===

impl Group {
    /// The name in options and tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::G1 => "g1",
            Self::G2 => "g2",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_name_and_a_command() {
        let peer: PeerCommand = "mcl=./msm -c {curve} --n={log_n}".parse().unwrap();
        assert_eq!(peer.name, "mcl");
        assert_eq!(peer.words, ["./msm", "-c", "{curve}", "--n={log_n}"]);
        for wrong in ["", "mcl", "mcl=", "=./msm", " = "] {
            assert!(wrong.parse::<PeerCommand>().is_err(), "{wrong:?}");
        }
    }
}
