//! Every figure Proofmill publishes, as a command anyone can run.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod aggregation;
mod aggregation_shards;
mod circom;
mod cluster;
mod console;
mod device;
mod engine;
mod groth16;
mod harness;
mod hostile;
mod ipa;
mod latency;
mod msm;
mod multi_queue;
mod ntt;
mod ordering;
mod pairing;
mod partition;
mod partition_scale;
mod peers;
mod scaling;
mod snarkjs;
#[cfg(feature = "stores")]
mod stores;
mod throughput;
mod verification;
mod verifier;
mod versus;

/// Every figure Proofmill publishes, as a command anyone can run.
///
/// Experiments on the orchestration are real workflows on a real mill: the embedded log with its
/// fsyncs on the disk of --dir, dispatchers, executors, sequencer; with --bus jetstream, a real
/// nats-server and dispatchers in processes of their own. A target that is missed is
/// reported; an invariant that is violated (a task lost, duplicated or out of order) makes the
/// command fail.
///
/// Comparisons of the arithmetic (msm, ntt, groth16, pairing, verify, ipa) let other libraries do the same work
/// in turns with ours, and fail if a result differs.
#[derive(Debug, Parser)]
#[command(name = "proofmill-bench", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// Time that the orchestration adds to a task: publish → completion recorded
    Latency(latency::Args),
    /// Share of their time that many dispatchers spend proving
    Scaling(scaling::Args),
    /// Tasks a second, sustained, every task durable
    Throughput(throughput::Args),
    /// Proposers beside the provers, against one line for both
    MultiQueue(multi_queue::Args),
    /// Chain order of what leaves, with proofs that take random times
    Ordering(ordering::Args),
    /// Duplicates, wrong fields and garbage: what is kept out
    Hostile(hostile::Args),
    /// Multi-scalar multiplication, against other libraries
    Msm(msm::Args),
    /// Number-theoretic transforms, against other libraries
    Ntt(ntt::Args),
    /// Products and transforms on a device: a CUDA card, the processors
    Device(device::Args),
    /// Groth16 proofs, against other provers
    Groth16(groth16::Args),
    /// Products of pairings, against other libraries
    Pairing(pairing::Args),
    /// One proof for many, against other aggregating provers
    Aggregation(aggregation::Args),
    /// One proof for many by several processes, against the same by one
    AggregationShards(aggregation_shards::Args),
    /// A process of one shard, for the experiment above
    #[command(hide = true)]
    AggregationShard(aggregation_shards::ShardArgs),
    /// A circuit proved in parts, against the same circuit in one piece
    Partition(partition::Args),
    /// Proofs in parts on thousands of workers, simulated
    PartitionScale(partition_scale::Args),
    /// Groth16 proofs under one key checked as a batch, against single verifications by others
    Verify(verification::Args),
    /// Batches of Grumpkin inner-product arguments, against a bare product of their size
    Ipa(ipa::Args),
    /// The verification service: streams with false proofs, beside one by one
    Verifier(verifier::Args),
    /// A circom circuit's proof from cold files, against snarkjs
    Snarkjs(snarkjs::Args),
    /// Failures on a cluster, and the cost of recovery
    Cluster(cluster::Args),
    /// Cost of the console on a mill with many live tasks
    Console(console::Args),
    /// Time saved by keys that stay in memory, and the memory they take
    Engine(engine::Args),
    /// A process of dispatchers, for the others
    #[command(hide = true)]
    Role(harness::role::Args),
    /// Compare embedded stores under the log's load
    #[cfg(feature = "stores")]
    Stores(stores::Args),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    if latency::echo()? {
        return Ok(());
    }
    match Cli::parse().experiment {
        Experiment::Latency(args) => block_on(async move { latency::run(&args).await }),
        Experiment::Scaling(args) => block_on(async move { scaling::run(&args).await }),
        Experiment::Throughput(args) => block_on(async move { throughput::run(&args).await }),
        Experiment::MultiQueue(args) => block_on(async move { multi_queue::run(&args).await }),
        Experiment::Ordering(args) => block_on(async move { ordering::run(&args).await }),
        Experiment::Hostile(args) => block_on(async move { hostile::run(&args).await }),
        Experiment::Msm(args) => msm::run(&args),
        Experiment::Ntt(args) => ntt::run(&args),
        Experiment::Device(args) => device::run(&args),
        Experiment::Groth16(args) => groth16::run(&args),
        Experiment::Pairing(args) => pairing::run(&args),
        Experiment::Aggregation(args) => aggregation::run(&args),
        Experiment::AggregationShards(args) => aggregation_shards::run(&args),
        Experiment::AggregationShard(args) => aggregation_shards::serve(&args),
        Experiment::Partition(args) => partition::run(&args),
        Experiment::PartitionScale(args) => partition_scale::run(&args),
        Experiment::Verify(args) => verification::run(&args),
        Experiment::Ipa(args) => ipa::run(&args),
        Experiment::Verifier(args) => verifier::run(&args),
        Experiment::Snarkjs(args) => snarkjs::run(&args),
        Experiment::Cluster(args) => block_on(async move { cluster::run(&args).await }),
        Experiment::Console(args) => block_on(async move { console::run(&args).await }),
        Experiment::Engine(args) => block_on(async move { engine::run(&args).await }),
        Experiment::Role(args) => args.runtime()?.block_on(harness::role::run(&args)),
        #[cfg(feature = "stores")]
        Experiment::Stores(args) => stores::run(&args),
    }
}

/// Runs an experiment as a task of the runtime, so that an event wakes the thread that delivers it, not another.
fn block_on(
    experiment: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async { tokio::spawn(experiment).await? })
}
