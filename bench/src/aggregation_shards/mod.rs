//! Aggregates of Mirage proofs made in shards by several processes of one thread, against one process of one thread. Both
//! verify the aggregate that they return, as the prover of a partitioned circuit does either way.
//!
//! Cores slow each other down: they share caches, memory and clock. As many provers at once as there are shards, each with an
//! aggregate of its own, tell what the machine allows; the speed-up over one of them is that of the division itself.

mod frames;
mod processes;
mod shard;

use std::time::{Duration, Instant};

use anyhow::Context;
use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_aggregation::sharded::{Leader, Progress, ShardMessage, Sharding};
use proofmill_aggregation::{AggregationCurve, Commitment, MirageIndex, MirageStatement};
use rayon::ThreadPool;
use serde_json::json;

use crate::aggregation::MirageCase;
use crate::harness::{Figures, describe, processor_time, round};
use crate::versus::Curve;
use processes::Processes;
pub(crate) use shard::{ShardArgs, serve};

/// Arguments of `proofmill-bench aggregation-shards`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    size: Size,
    /// Rounds that count; in each both make the aggregate once, in turns the one or the other first
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// One JSON object as the last line
    #[arg(long)]
    json: bool,
}

/// Number of proofs and of shards, and the curve.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Size {
    /// Proofs, as a power of two
    #[arg(long, default_value_t = 12, value_name = "LOG2",
          value_parser = clap::value_parser!(u8).range(0..=20))]
    log_n: u8,
    /// Shards, a power of two up to the number of proofs: a process of one thread for each
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    shards: u16,
    /// The curve: bls12-381 or bn254
    #[arg(long, value_enum, default_value_t = Curve::Bls12_381)]
    curve: Curve,
}

/// One prover's aggregate.
struct Single {
    bytes: Vec<u8>,
    /// Verification included.
    took: Duration,
    verification: Duration,
    processor: Duration,
}

/// The times of a round.
struct Measured {
    single: Single,
    /// The time of as many provers beside each other as there are shards, on average.
    beside: Duration,
    sharded: Sharded,
}

/// An aggregate made in shards.
struct Sharded {
    bytes: Vec<u8>,
    took: Duration,
    /// Time in which no shard worked: from the last answer to a message until the next is sent, and after the last.
    serial: Duration,
    /// Time from the first to the last answer, in which not all shards worked.
    uneven: Duration,
    /// The most processor time of a shard, and that of the leader.
    processor: Duration,
    exchanged_bytes: usize,
    messages: usize,
}

/// Compares and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    Sharding::new(args.size.proofs(), usize::from(args.size.shards))?;
    match args.size.curve {
        Curve::Bls12_381 => compare::<Bls12_381>(args),
        Curve::Bn254 => compare::<Bn254>(args),
        _ => anyhow::bail!("proofs are aggregated over bls12-381 and bn254"),
    }
}

fn compare<E: AggregationCurve>(args: &Args) -> anyhow::Result<()> {
    let mut processes = Processes::start(&args.size)?;
    let case = case::<E>(&args.size)?;
    let index = MirageIndex::new(&case.srs, case.parts.clone())?;
    processes.await_all()?;
    let pool = one_thread()?;
    let shards = usize::from(args.size.shards);
    let pools: Vec<ThreadPool> = (0..shards)
        .map(|_| one_thread())
        .collect::<Result<_, _>>()?;
    let mut rounds = Vec::new();
    for number in 0..=args.rounds {
        let alone = || pool.install(|| aggregate_alone(&case, &index));
        let mut together =
            || pool.install(|| aggregate_in_shards(&case, &index, &mut processes, shards));
        let (single, sharded) = if number % 2 == 0 {
            let single = alone()?;
            (single, together()?)
        } else {
            let sharded = together()?;
            (alone()?, sharded)
        };
        anyhow::ensure!(
            single.bytes == sharded.bytes,
            "the aggregate of the shards is another"
        );
        // The first round warms up.
        if number > 0 {
            let beside = aggregate_beside_each_other(&case, &index, &pools)?;
            rounds.push(Measured {
                single,
                beside,
                sharded,
            });
        }
    }
    print(args, &rounds);
    Ok(())
}

/// The commitment and the aggregate by one prover, which verifies it.
fn aggregate_alone<E: AggregationCurve>(
    case: &MirageCase<E>,
    index: &MirageIndex<E>,
) -> anyhow::Result<Single> {
    let (began, before) = (Instant::now(), processor_time().unwrap_or_default());
    let commitment = index.commit(&case.srs, &case.committed)?;
    let statement = statement(case, &commitment);
    let aggregate = index.aggregate(&case.srs, statement, &case.proofs, &case.committed)?;
    let aggregated = Instant::now();
    index.verifying_key().verify(statement, &aggregate)?;
    Ok(Single {
        took: began.elapsed(),
        verification: aggregated.elapsed(),
        processor: processor_time().unwrap_or_default() - before,
        bytes: [commitment.to_bytes(), aggregate.to_bytes()].concat(),
    })
}

/// The average time of provers that work beside each other, one in each pool.
fn aggregate_beside_each_other<E: AggregationCurve>(
    case: &MirageCase<E>,
    index: &MirageIndex<E>,
    pools: &[ThreadPool],
) -> anyhow::Result<Duration> {
    let took: Vec<Duration> = std::thread::scope(|scope| {
        let start = |pool: &ThreadPool| pool.install(|| aggregate_alone(case, index));
        let running: Vec<_> = pools
            .iter()
            .map(|pool| scope.spawn(move || start(pool)))
            .collect();
        let ended = running.into_iter().map(|prover| {
            let ended = prover
                .join()
                .map_err(|_| anyhow::anyhow!("a prover panicked"))?;
            Ok(ended?.took)
        });
        ended.collect::<anyhow::Result<_>>()
    })?;
    Ok(took.iter().sum::<Duration>() / pools.len() as u32)
}

/// The same in shards; the aggregate is verified.
fn aggregate_in_shards<E: AggregationCurve>(
    case: &MirageCase<E>,
    index: &MirageIndex<E>,
    processes: &mut Processes,
    shards: usize,
) -> anyhow::Result<Sharded> {
    (processes.bytes, processes.messages) = (0, 0);
    let mut clock = Clock::new(processes);
    let mut parts = Vec::new();
    clock.send(processes, &[])?;
    for _ in 0..shards {
        let (_, content) = clock.next(processes)?;
        parts.push(Commitment::<E>::from_bytes(&content)?);
    }
    let commitment: Commitment<E> = parts.into_iter().sum();
    let statement = statement(case, &commitment);
    let mut leader = Leader::mirage(index.verifying_key(), statement, shards)?;
    let aggregate = 'aggregate: loop {
        let step = leader.step();
        clock.send(processes, &leader.message().to_bytes())?;
        for _ in 0..shards {
            let (shard, content) = clock.next(processes)?;
            let answer = ShardMessage::from_bytes(&content)?;
            if let Progress::Finished(aggregate) = leader.receive(shard, step, answer)? {
                break 'aggregate aggregate;
            }
        }
    };
    let bytes = [commitment.to_bytes(), aggregate.to_bytes()].concat();
    Ok(clock.stop(processes, bytes))
}

fn statement<'a, E: AggregationCurve>(
    case: &'a MirageCase<E>,
    commitment: &'a Commitment<E>,
) -> MirageStatement<'a, E> {
    MirageStatement {
        context: &[],
        inputs: &case.inputs,
        commitment,
    }
}

/// The same case in every process: its reference string has no secrets.
pub(super) fn case<E: AggregationCurve>(size: &Size) -> anyhow::Result<MirageCase<E>> {
    MirageCase::new(size.proofs(), &mut StdRng::seed_from_u64(3))
}

pub(super) fn one_thread() -> anyhow::Result<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.context("starting a thread")
}

fn print(args: &Args, rounds: &[Measured]) {
    let of_rounds = |of: &dyn Fn(&Measured) -> f64| Figures::of(rounds.iter().map(of).collect());
    let single = |of: fn(&Single) -> f64| of_rounds(&|it| of(&it.single));
    let sharded = |of: fn(&Sharded) -> f64| of_rounds(&|it| of(&it.sharded));
    let ratio = |of: fn(&Single, &Sharded) -> f64| of_rounds(&|it| of(&it.single, &it.sharded));
    let single_ms = single(|it| ms(it.took));
    let sharded_ms = sharded(|it| ms(it.took));
    let verification_ms = single(|it| ms(it.verification));
    let speedup = ratio(|a, b| ms(a.took) / ms(b.took));
    let unverified = ratio(|a, b| ms(a.took - a.verification) / ms(b.took));
    let by_processor = ratio(|a, b| ms(a.processor) / ms(b.processor));
    let serial = sharded(|it| it.serial.as_secs_f64() / it.took.as_secs_f64());
    let serial_ms = sharded(|it| ms(it.serial));
    let uneven = sharded(|it| it.uneven.as_secs_f64() / it.took.as_secs_f64());
    let Some(last) = rounds.last() else {
        return;
    };
    let (proofs, shards) = (args.size.proofs(), args.size.shards);
    let beside_ms = of_rounds(&|it| ms(it.beside));
    let allowed = of_rounds(&|it| f64::from(shards) * ms(it.single.took) / ms(it.beside));
    let of_division = of_rounds(&|it| ms(it.beside) / ms(it.sharded.took));
    println!(
        "Aggregation in shards: {proofs} Mirage proofs over {}",
        args.size.curve.name()
    );
    println!(
        "{}; medians (least–most) of {} rounds\n",
        describe(),
        rounds.len()
    );
    let line = |name: &str, of: &Figures, unit: &str| {
        let [least, most] = [of.quantile(0.0), of.max()];
        println!("{name:<44} {:>9.2}{unit} ({least:.2}–{most:.2})", of.p50());
    };
    let percent = |of: &Figures| Figures::of(of.all().iter().map(|of| of * 100.0).collect());
    line("one process of one thread", &single_ms, " ms");
    line("of it, the verification", &verification_ms, " ms");
    line(
        &format!("{shards} processes of one thread"),
        &sharded_ms,
        " ms",
    );
    line(
        &format!("{shards} provers beside each other, one each"),
        &beside_ms,
        " ms",
    );
    line("speed-up, in each round", &speedup, "×");
    let quickest = single_ms.quantile(0.0) / sharded_ms.quantile(0.0);
    println!("{:<44} {quickest:>9.2}×", "speed-up, the quickest of each");
    line("speed-up that the machine allows", &allowed, "×");
    line("over one of those beside each other", &of_division, "×");
    line("over one that does not verify", &unverified, "×");
    line("the same by processor time", &by_processor, "×");
    line("serial: no shard works", &percent(&serial), " %");
    line("serial, with the verification", &serial_ms, " ms");
    line("uneven: not all shards work", &percent(&uneven), " %");
    println!(
        "exchanged with all shards: {} bytes, {} messages to each",
        last.sharded.exchanged_bytes, last.sharded.messages
    );
    if args.json {
        let json = json!({
            "machine": describe(),
            "proofs": proofs,
            "shards": shards,
            "curve": args.size.curve.name(),
            "rounds": rounds.len(),
            "single_ms": round(single_ms.p50()),
            "sharded_ms": round(sharded_ms.p50()),
            "verification_ms": round(verification_ms.p50()),
            "beside_ms": round(beside_ms.p50()),
            "speedup": round(speedup.p50()),
            "speedup_of_quickest": round(quickest),
            "speedup_allowed": round(allowed.p50()),
            "speedup_over_beside": round(of_division.p50()),
            "speedup_over_unverified": round(unverified.p50()),
            "speedup_by_processor_time": round(by_processor.p50()),
            "serial_share": round(serial.p50()),
            "uneven_share": round(uneven.p50()),
            "exchanged_bytes": last.sharded.exchanged_bytes,
        });
        println!("{json}");
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The times of one aggregation in shards.
struct Clock {
    began: Instant,
    processor_before: (Duration, Vec<Duration>),
    /// The first and the last answer to the last message.
    answers: Option<(Instant, Instant)>,
    serial: Duration,
    uneven: Duration,
}

// === impl Clock ===

impl Clock {
    fn new(processes: &Processes) -> Self {
        Self {
            began: Instant::now(),
            processor_before: (
                processor_time().unwrap_or_default(),
                processes.processor_times(),
            ),
            answers: None,
            serial: Duration::ZERO,
            uneven: Duration::ZERO,
        }
    }

    fn send(&mut self, processes: &mut Processes, content: &[u8]) -> anyhow::Result<()> {
        processes.send(content)?;
        self.end_step();
        Ok(())
    }

    fn next(&mut self, processes: &mut Processes) -> anyhow::Result<(usize, Vec<u8>)> {
        let frame = processes.next()?;
        let first = self.answers.map_or(frame.at, |(first, _)| first);
        self.answers = Some((first, frame.at));
        Ok((frame.shard, frame.content?))
    }

    /// Counts the time since the last answer as serial.
    fn end_step(&mut self) {
        let (first, last) = self.answers.take().unwrap_or((self.began, self.began));
        self.serial += last.elapsed();
        self.uneven += last - first;
    }

    fn stop(mut self, processes: &Processes, bytes: Vec<u8>) -> Sharded {
        self.end_step();
        let took = self.began.elapsed();
        let (leader, shards) = self.processor_before;
        let after = processes.processor_times();
        let shards = after
            .iter()
            .zip(shards)
            .map(|(after, before)| *after - before);
        let leader = processor_time().unwrap_or_default() - leader;
        Sharded {
            bytes,
            took,
            serial: self.serial,
            uneven: self.uneven,
            processor: leader + shards.max().unwrap_or_default(),
            exchanged_bytes: processes.bytes,
            messages: processes.messages,
        }
    }
}

// === impl Size ===

impl Size {
    pub(super) fn proofs(&self) -> usize {
        1 << self.log_n
    }
}
