//! The roles of a workflow on a cluster, and how the bus between them is reached.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use proofmill_workflow::parse_duration;

use super::intake::IntakeArgs;
use super::{DrainArg, KeysArg, MetricsArg, WorkersArg};

const BUS_HELP: &str = "Bus";

const ROLE_EXAMPLES: &str = "\
Examples, each line a process, on one machine or on many:
  nats-server --jetstream
  proofmill coordinator workflow.toml --bus nats://127.0.0.1:4222
  proofmill dispatcher  workflow.toml --bus nats://127.0.0.1:4222 --workers prove=2
  proofmill collector   workflow.toml --bus nats://127.0.0.1:4222
  proofmill sequencer   workflow.toml --bus nats://127.0.0.1:4222
  proofmill source      workflow.toml --bus nats://127.0.0.1:4222
  proofmill status      --bus nats://127.0.0.1:4222 --workflow NAME";

/// How the bus is reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct BusArgs {
    /// A NATS server with JetStream, or several of a cluster, separated by commas; tls:// for TLS.
    #[arg(long = "bus", env = "PROOFMILL_BUS", value_name = "URL", help_heading = BUS_HELP)]
    pub(crate) url: Option<String>,
    /// A file with credentials for it, as `nsc` writes them.
    #[arg(long, env = "PROOFMILL_BUS_CREDS", value_name = "FILE", help_heading = BUS_HELP,
          requires = "url")]
    pub(crate) bus_creds: Option<PathBuf>,
    /// A file with the seed of an nkey.
    #[arg(long, env = "PROOFMILL_BUS_NKEY", value_name = "FILE", help_heading = BUS_HELP,
          requires = "url", conflicts_with = "bus_creds")]
    pub(crate) bus_nkey: Option<PathBuf>,
    /// A user of it; the password comes from the environment, PROOFMILL_BUS_PASSWORD.
    #[arg(long, env = "PROOFMILL_BUS_USER", value_name = "NAME", help_heading = BUS_HELP,
          requires = "url", conflicts_with_all = ["bus_creds", "bus_nkey"])]
    pub(crate) bus_user: Option<String>,
    /// The word for this process's user in subjects, if it is not --bus-user: dispatchers need it where
    /// the server has a user for each worker group and knows it by --bus-nkey or --bus-creds.
    #[arg(long, env = "PROOFMILL_BUS_IDENTITY", value_name = "WORD", help_heading = BUS_HELP,
          requires = "url")]
    pub(crate) bus_identity: Option<String>,
    /// Certificates (PEM) of the authority that signed the server's: TLS is then required.
    #[arg(long, env = "PROOFMILL_BUS_CA", value_name = "FILE", help_heading = BUS_HELP,
          requires = "url")]
    pub(crate) bus_ca: Option<PathBuf>,
    /// This client's certificate (PEM).
    #[arg(long, env = "PROOFMILL_BUS_CERT", value_name = "FILE", help_heading = BUS_HELP,
          requires = "bus_key")]
    pub(crate) bus_cert: Option<PathBuf>,
    /// The key of this client's certificate (PEM).
    #[arg(long, env = "PROOFMILL_BUS_KEY", value_name = "FILE", help_heading = BUS_HELP,
          requires = "bus_cert")]
    pub(crate) bus_key: Option<PathBuf>,
    /// First word of every subject, stream and bucket: several clusters may share a server.
    #[arg(long, env = "PROOFMILL_BUS_PREFIX", value_name = "WORD", help_heading = BUS_HELP,
          default_value = "proofmill")]
    pub(crate) bus_prefix: String,
    /// Copies of everything that is stored: 1, or 3 on a cluster of three servers or more.
    #[arg(long, env = "PROOFMILL_BUS_REPLICAS", value_name = "N", help_heading = BUS_HELP,
          default_value_t = 1)]
    pub(crate) replicas: usize,
    /// Wait so long for a server that does not answer, or a cluster without a majority of its servers,
    /// such as 30s [default: 5m; 0s for a command that asks].
    #[arg(long, env = "PROOFMILL_CONNECT_TIMEOUT", value_name = "DURATION", help_heading = BUS_HELP,
          value_parser = parse_duration)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Keep large payloads in this bucket of S3, or of what speaks like it, instead of on the server:
    /// s3://BUCKET/PREFIX. AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and so on say how to reach
    /// it.
    #[arg(long, env = "PROOFMILL_BLOBS", value_name = "URL", help_heading = BUS_HELP,
          requires = "url")]
    pub(crate) blobs: Option<String>,
}

/// `proofmill coordinator`
#[derive(Debug, Args)]
#[command(after_help = ROLE_EXAMPLES)]
pub(crate) struct Coordinator {
    /// The workflow files: each workflow is led by one of the coordinators that were given it.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) bus: BusArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
    /// Of the first workflow, while this process leads it.
    #[command(flatten)]
    pub(crate) metrics: MetricsArg,
}

/// `proofmill dispatcher`
#[derive(Debug, Args)]
#[command(after_help = ROLE_EXAMPLES)]
pub(crate) struct Dispatcher {
    /// The workflow file. Without one, the environment says what to do, as push0's dispatchers are
    /// told: NATS_URL, INPUT_QUEUE, OUTPUT_QUEUE, BINARY and so on (docs/push0.md).
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) bus: BusArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
    /// Work for these stages only [default: all].
    #[arg(long = "stage", value_name = "STAGE", requires = "file")]
    pub(crate) stages: Vec<String>,
    #[command(flatten)]
    pub(crate) workers: WorkersArg,
    /// Where programs have their files [default: .proofmill/NAME/dispatcher-N, by the workflow's
    /// name, N the first that no other process has].
    #[arg(long, env = "PROOFMILL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeysArg,
}

/// `proofmill collector`
#[derive(Debug, Args)]
#[command(after_help = ROLE_EXAMPLES)]
pub(crate) struct Collector {
    /// The workflow file. Without one, the environment says what to do, as push0's collectors are
    /// told: NATS_URL, STRATEGY, INPUT_QUEUE, OUTPUT_QUEUE and so on (docs/push0.md).
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) bus: BusArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
    /// Work for these collectors only [default: all].
    #[arg(long = "stage", value_name = "STAGE", requires = "file")]
    pub(crate) stages: Vec<String>,
}

/// `proofmill sequencer`
#[derive(Debug, Args)]
#[command(after_help = ROLE_EXAMPLES)]
pub(crate) struct Sequencer {
    /// The workflow file.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) bus: BusArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
    /// Where the sequencer's directory is [default: .proofmill/NAME, by the workflow's name].
    #[arg(long, env = "PROOFMILL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Those of the machines that prove: what leaves is verified with them.
    #[command(flatten)]
    pub(crate) keys: KeysArg,
}

/// `proofmill source`
#[derive(Debug, Args)]
#[command(after_help = ROLE_EXAMPLES)]
pub(crate) struct SourceRole {
    /// The workflow file.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) bus: BusArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
    #[command(flatten)]
    pub(crate) intake: IntakeArgs,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill import-env`
#[derive(Debug, Args)]
pub(crate) struct ImportEnv {
    /// Compose files, merged in their order as `docker compose -f A -f B` does; files NAME.env, one for
    /// each process; or a directory of either.
    #[arg(value_name = "FILE_OR_DIR", required = true)]
    pub(crate) from: Vec<PathBuf>,
    /// Write the workflow to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file.
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// What every role takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct RoleArgs {
    /// How this process is called in logs [default: the machine's name].
    #[arg(long, env = "PROOFMILL_NAME", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) drain: DrainArg,
}
