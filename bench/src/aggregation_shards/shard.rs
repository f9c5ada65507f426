//! A process of one shard: frames of the leader on standard input, answers on standard output.
//!
//! An empty frame begins an aggregation, and is answered by the shard's part of the commitment to D; every other frame
//! is a message of the leader. The process writes an empty frame when it is ready.

use std::io::{stdin, stdout};

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use proofmill_aggregation::AggregationCurve;
use proofmill_aggregation::sharded::{LeaderMessage, Shard, ShardKey, Sharding};

use super::frames::{read_frame, write_frame};
use super::{Size, case, one_thread};
use crate::versus::Curve;

/// Arguments of the hidden `proofmill-bench aggregation-shard`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShardArgs {
    #[command(flatten)]
    size: Size,
    #[arg(long)]
    number: usize,
}

/// Proves for one shard on one thread, until standard input ends.
pub(crate) fn serve(args: &ShardArgs) -> anyhow::Result<()> {
    one_thread()?.install(|| match args.size.curve {
        Curve::Bls12_381 => serve_on::<Bls12_381>(args),
        _ => serve_on::<Bn254>(args),
    })
}

fn serve_on<E: AggregationCurve>(args: &ShardArgs) -> anyhow::Result<()> {
    let number = args.number;
    let sharding = Sharding::new(args.size.proofs(), args.size.shards as usize)?;
    let case = case::<E>(&args.size)?;
    let key = ShardKey::mirage(&case.srs, &case.parts, sharding, number)?;
    let d = sharding.items(number, &case.committed);
    let fresh = Shard::new(&key, &sharding.items(number, &case.proofs), &d)?;
    drop(case);
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    write_frame(&mut output, &[])?;
    let mut shard = fresh.clone();
    while let Some(frame) = read_frame(&mut input)? {
        let answer = if frame.is_empty() {
            shard = fresh.clone();
            key.commit(&d)?.to_bytes()
        } else {
            let message = LeaderMessage::from_bytes(&frame)?;
            shard.receive(&message)?.to_bytes()
        };
        write_frame(&mut output, &answer)?;
    }
    Ok(())
}
