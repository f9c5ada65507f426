//! Failures on a cluster: processes and servers that are killed or stopped, and the cost of recovery.

mod affinity;
mod chaos;
mod collectors;
mod failover;
mod fifo;
mod flood;
mod idle;
mod nodes;
mod outage;
mod pair;
mod parts;
mod priority;
mod recovery;
mod resize;
mod split_brain;

use clap::Subcommand;

/// Arguments of `proofmill-bench cluster`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Everything runs on this machine: nats-server processes with files, dispatchers and collectors in
processes of their own, and coordinators where they are killed. `make nats-server` installs the
server.

  proofmill-bench cluster priority    --bus jetstream
  proofmill-bench cluster affinity    --bus jetstream
  proofmill-bench cluster resize      --bus jetstream
  proofmill-bench cluster collectors  --bus jetstream
  proofmill-bench cluster recovery    --bus jetstream
  proofmill-bench cluster failover    --bus jetstream
  proofmill-bench cluster split-brain --bus jetstream
  proofmill-bench cluster nodes       --bus jetstream --servers 3
  proofmill-bench cluster flood       --bus jetstream
  proofmill-bench cluster outage      --bus jetstream
  proofmill-bench cluster idle        --bus jetstream
  proofmill-bench cluster parts       --bus jetstream
  proofmill-bench cluster chaos --seconds 180")]
pub(crate) struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// Tasks that are submitted newest block first: how many are begun before an older one, beside a FIFO
    /// consumer
    Priority(priority::Args),
    /// Barriers over several collectors, with partition affinity and without: how many fire
    Affinity(affinity::Args),
    /// Collectors come and go under a steady load: how long no barrier fires
    Resize(resize::Args),
    /// A collector is killed in the middle of its groups: how long until they are complete
    Collectors(collectors::Args),
    /// A dispatcher is killed or stopped: how long until another begins what it had
    Recovery(recovery::Args),
    /// The leader is killed: how long until something completes under another
    Failover(failover::Args),
    /// The leader stands still beyond its lease, and wakes up: what is done twice
    SplitBrain(split_brain::Args),
    /// Each of three servers is killed under load and started again: how long nothing leaves
    Nodes(nodes::Args),
    /// Producers bring ten times what can be proven: how full the queue gets, and who waits
    Flood(flood::Args),
    /// The server stops for seconds: how long until work goes on
    Outage(outage::Args),
    /// Roles that wait for work: what memory they have
    Idle(idle::Args),
    /// One proof of a circuit in parts: the share of workers' time that is spent on parts, and memory
    Parts(parts::Args),
    /// Random processes are killed and stopped, the servers among them: what is lost
    Chaos(chaos::Args),
}

/// Runs the chosen experiment.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    match &args.experiment {
        Experiment::Priority(args) => priority::run(args).await,
        Experiment::Affinity(args) => affinity::run(args).await,
        Experiment::Resize(args) => resize::run(args).await,
        Experiment::Collectors(args) => collectors::run(args).await,
        Experiment::Recovery(args) => recovery::run(args).await,
        Experiment::Failover(args) => failover::run(args).await,
        Experiment::SplitBrain(args) => split_brain::run(args).await,
        Experiment::Nodes(args) => nodes::run(args).await,
        Experiment::Flood(args) => flood::run(args).await,
        Experiment::Outage(args) => outage::run(args).await,
        Experiment::Idle(args) => idle::run(args).await,
        Experiment::Parts(args) => parts::run(args).await,
        Experiment::Chaos(args) => chaos::run(args).await,
    }
}
