//! Arguments of `proofmill ethproofs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proofmill_ethproofs::NewCluster;
use proofmill_workflow::{Ethproofs as Table, HttpUrl, Secret};

const EXAMPLES: &str = "\
Examples:
  export ETHPROOFS_TOKEN=...                                   the key of your team, from the site
  proofmill ethproofs register --name mill-1 --zkvm-version 7 --dry-run     what would be sent
  proofmill ethproofs register --name mill-1 --zkvm-version 7 --on-premises
  proofmill ethproofs register --name farm --zkvm-version 7 --machines 4    four machines like this one
  proofmill ethproofs clusters
  proofmill ethproofs update 12 --hardware --gpus 8            this machine has other cards now

Exit codes: 0 done; 1 the site does not take it, or does not answer; 2 the command line is wrong.";

/// `proofmill ethproofs`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ethproofs {
    #[command(subcommand)]
    pub(crate) command: EthproofsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EthproofsCommand {
    /// List the clusters of your team.
    Clusters {
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Tell the site about a cluster and its machines; print its number.
    Register(Register),
    /// Change what the site knows about a cluster.
    Update(Update),
}

/// The site, the key to it, and how its answer is printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct SiteArgs {
    /// Address of the API.
    #[arg(long, value_name = "URL", default_value = Table::URL, value_parser = url, help_heading = "Site")]
    pub(crate) url: HttpUrl,
    /// Variable with your team's key.
    #[arg(
        long,
        value_name = "VARIABLE",
        default_value = "ETHPROOFS_TOKEN",
        help_heading = "Site"
    )]
    token_env: String,
    /// File with your team's key, which only you, and perhaps a group, can read.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "token_env",
        help_heading = "Site"
    )]
    token_file: Option<PathBuf>,
    /// Certificates to trust besides the system's (PEM).
    #[arg(long, value_name = "FILE", help_heading = "Site")]
    pub(crate) ca: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill ethproofs register`
#[derive(Debug, Args)]
pub(crate) struct Register {
    /// Name of the cluster, at most 50 characters.
    #[arg(long, value_parser = name)]
    pub(crate) name: String,
    /// Number of the zkVM's version; the site lists them under "zkVMs".
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) zkvm_version: u32,
    /// Machines of the cluster, all like this one.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["gpus", "hardware"],
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) machines: u32,
    /// GPUs of all machines, with --hardware [default: those of this machine, times the machines; 1 if it has none]
    #[arg(long, value_name = "N", requires = "hardware", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) gpus: Option<u32>,
    /// The hardware in words, at most 200 characters, with --gpus [default: what this machine has]
    #[arg(long, value_name = "TEXT", requires = "gpus", value_parser = hardware)]
    pub(crate) hardware: Option<String>,
    /// The machines stand on your own premises, not at a provider.
    #[arg(long)]
    pub(crate) on_premises: bool,
    /// Print the body of the call, and do not make it.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) site: SiteArgs,
}

/// `proofmill ethproofs update`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("changes").required(true).multiple(true))]
pub(crate) struct Update {
    /// Number of the cluster.
    #[arg(value_name = "CLUSTER")]
    pub(crate) id: u64,
    /// A new name, at most 50 characters.
    #[arg(long, value_parser = name, group = "changes")]
    pub(crate) name: Option<String>,
    /// Another version of the zkVM, by its number at the site.
    #[arg(long, value_name = "NUMBER", group = "changes", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) zkvm_version: Option<u32>,
    /// Another number of GPUs. The site does not take a change between one and several.
    #[arg(long, value_name = "N", group = "changes", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) gpus: Option<u32>,
    /// The hardware in words, at most 200 characters; what this machine has if no words follow. GPUs are counted by
    /// `--gpus`.
    #[arg(long, value_name = "TEXT", group = "changes", num_args = 0..=1, value_parser = hardware)]
    pub(crate) hardware: Option<Option<String>>,
    /// Machines of the cluster, all like this one, for a `--hardware` without words.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "hardware",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) machines: u32,
    /// Whether the cluster takes proofs.
    #[arg(long, value_name = "yes|no", group = "changes", value_parser = yes_or_no)]
    pub(crate) active: Option<bool>,
    #[command(flatten)]
    pub(crate) site: SiteArgs,
}

fn url(text: &str) -> Result<HttpUrl, String> {
    HttpUrl::try_new(text).map_err(|error| error.to_string())
}

fn name(text: &str) -> Result<String, String> {
    words(text, NewCluster::NAME_MAX)
}

fn hardware(text: &str) -> Result<String, String> {
    words(text, NewCluster::HARDWARE_MAX)
}

/// A text for a page of the site.
fn words(text: &str, most: usize) -> Result<String, String> {
    // The site counts units of UTF-16.
    match text.encode_utf16().count() {
        0 => Err("it is empty".into()),
        count if count > most => Err(format!("it has {count} characters, more than {most}")),
        _ if text.chars().any(char::is_control) => Err("it has control characters".into()),
        _ => Ok(text.to_owned()),
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("say yes or no".into()),
    }
}

// === impl SiteArgs ===

impl SiteArgs {
    /// Where the key is.
    pub(crate) fn token(&self) -> Secret {
        match &self.token_file {
            Some(path) => Secret::File(path.clone()),
            None => Secret::Environment(self.token_env.clone()),
        }
    }
}
