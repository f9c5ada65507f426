//! The roles of a workflow on a cluster, and the arguments for connecting to the bus between them.

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

/// Arguments for connecting to the bus.
#[derive(Clone, Debug, Args)]
pub(crate) struct BusArgs {
    /// A NATS server with JetStream, or several of a cluster, separated by commas; tls:// for TLS.
    #[arg(long = "bus", env = "PROOFMILL_BUS", value_name = "URL", help_heading = BUS_HELP)]
    pub(crate) url: Option<String>,
    /// A file with NATS credentials, as `nsc` writes them.
    #[arg(long, env = "PROOFMILL_BUS_CREDS", value_name = "FILE", help_heading = BUS_HELP,
          requires = "url")]
    pub(crate) bus_creds: Option<PathBuf>,
    /// A file with the seed of an nkey.
    #[arg(long, env = "PROOFMILL_BUS_NKEY", value_name = "FILE", help_heading = BUS_HELP,
          requires = "url", conflicts_with = "bus_creds")]
    pub(crate) bus_nkey: Option<PathBuf>,
    /// The NATS user; the password comes from the environment, PROOFMILL_BUS_PASSWORD.
    #[arg(long, env = "PROOFMILL_BUS_USER", value_name = "NAME", help_heading = BUS_HELP,
          requires = "url", conflicts_with_all = ["bus_creds", "bus_nkey"])]
    pub(crate) bus_user: Option<String>,
    /// The word for this process's user in subjects, if it is not --bus-user. Dispatchers need it where the
    /// server has a user for each worker group and authenticates it by --bus-nkey or --bus-creds.
    #[arg(long, env = "PROOFMILL_BUS_IDENTITY", value_name = "WORD", help_heading = BUS_HELP,
          requires = "url")]
    pub(crate) bus_identity: Option<String>,
    /// Certificates (PEM) of the authority that signed the server's; makes TLS required.
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
    /// Copies of everything stored: 1, or 3 on a cluster of three servers or more.
    #[arg(long, env = "PROOFMILL_BUS_REPLICAS", value_name = "N", help_heading = BUS_HELP,
          default_value_t = 1)]
    pub(crate) replicas: usize,
    /// Longest wait for a server that does not answer, or a cluster without a majority of its servers, such
    /// as 30s [default: 5m for a role, 0s for other commands].
    #[arg(long, env = "PROOFMILL_CONNECT_TIMEOUT", value_name = "DURATION", help_heading = BUS_HELP,
          value_parser = parse_duration)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Keep large payloads in this bucket of S3, or of a compatible store, instead of on the server:
    /// s3://BUCKET/PREFIX. AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and so on configure the access.
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
    /// Metrics of the workflows that this process leads.
    #[command(flatten)]
    pub(crate) metrics: MetricsArg,
    /// The keys with which results of parts are checked are kept here if they are fetched from the bus.
    #[command(flatten)]
    pub(crate) keys: KeysArg,
    /// Directory for the audit log: each change that an operator asks for is recorded durably in WORKFLOW/audit.jsonl of it
    /// before it begins, and refused if that fails [default: a log line only].
    #[arg(long, env = "PROOFMILL_AUDIT_LOG", value_name = "DIR")]
    pub(crate) audit_log: Option<PathBuf>,
}

/// `proofmill dispatcher`
#[derive(Debug, Args)]
#[command(after_help = ROLE_EXAMPLES)]
pub(crate) struct Dispatcher {
    /// The workflow file. Without one, the dispatcher is configured by push0's environment variables:
    /// NATS_URL, INPUT_QUEUE, OUTPUT_QUEUE, BINARY and so on (docs/push0.md).
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
    /// Directory of the programs' files [default: .proofmill/NAME/dispatcher-N, with the workflow's name
    /// and the first N that no other process uses].
    #[arg(long, env = "PROOFMILL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeysArg,
}

/// `proofmill collector`
#[derive(Debug, Args)]
#[command(after_help = ROLE_EXAMPLES)]
pub(crate) struct Collector {
    /// The workflow file. Without one, the collector is configured by push0's environment variables:
    /// NATS_URL, STRATEGY, INPUT_QUEUE, OUTPUT_QUEUE and so on (docs/push0.md).
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
    /// The sequencer's directory [default: .proofmill/NAME, by the workflow's name].
    #[arg(long, env = "PROOFMILL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// The same keys as on the proving machines: results are verified with them before they are emitted.
    #[command(flatten)]
    pub(crate) keys: KeysArg,
    /// Metrics of the sinks.
    #[command(flatten)]
    pub(crate) metrics: MetricsArg,
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
    /// Metrics of the sources.
    #[command(flatten)]
    pub(crate) metrics: MetricsArg,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill import-env`
#[derive(Debug, Args)]
pub(crate) struct ImportEnv {
    /// Compose files, merged in order as by `docker compose -f A -f B`; files NAME.env, one for each
    /// process; or a directory of either.
    #[arg(value_name = "FILE_OR_DIR", required = true)]
    pub(crate) from: Vec<PathBuf>,
    /// Write the workflow to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file.
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// Arguments of every role.
#[derive(Clone, Debug, Args)]
pub(crate) struct RoleArgs {
    /// Name of this process in logs [default: the machine's name].
    #[arg(long, env = "PROOFMILL_NAME", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) drain: DrainArg,
}
