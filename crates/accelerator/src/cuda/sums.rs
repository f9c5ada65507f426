//! The sum of the buckets: chunks, then a tree of nodes, then the rest on the host.

use super::arguments::{FoldNodes, SumChunks};
use super::coordinates::sum_words;
use super::machine::{Buffer, Machine, launch_for};
use super::modules::Module;
use super::plan::WindowPlan;
use crate::error::Error;
use crate::group::DeviceGroup;

/// The base-two logarithm of the buckets that one thread sums up.
const CHUNK_LOG: u32 = 4;

/// The weighted sum of the buckets.
pub(crate) fn sum_buckets<G: DeviceGroup, M: Machine>(
    machine: &mut M,
    buckets: &M::Buffer,
    plan: &WindowPlan,
) -> Result<G, Error> {
    let module = Module::Points(G::GROUP);
    let words = sum_words::<G>();
    let chunk_log = CHUNK_LOG.min(plan.window_bits - 1);
    let levels = plan.window_bits - 1 - chunk_log;
    let windows = plan.shared_windows as usize;
    let chunks = plan.buckets() >> chunk_log;

    // Two parts of each chunk; a level halves the nodes and adds one part, so it is never more.
    let mut nodes = machine.allocate(2 * chunks * words)?;
    let mut folded = machine.allocate(2 * chunks * words)?;
    let arguments = SumChunks {
        buckets: buckets.address(),
        sums: nodes.address(),
        chunks: chunks as u32,
        chunk_log,
    };
    launch_for(machine, module, &arguments, chunks)?;
    for level in 0..levels {
        let parts = 2 + level as usize;
        let to_nodes = chunks >> (level + 1);
        let arguments = FoldNodes {
            from: nodes.address(),
            to: folded.address(),
            parts: parts as u32,
            nodes: to_nodes as u32,
        };
        launch_for(machine, module, &arguments, (parts + 1) * to_nodes)?;
        std::mem::swap(&mut nodes, &mut folded);
    }

    let parts = 2 + levels as usize;
    let mut sums = vec![0_u32; parts * windows * words];
    machine.download(&nodes, &mut sums)?;
    let sums: Vec<G> = sums
        .chunks_exact(words)
        .map(G::read_sum)
        .collect::<Option<_>>()
        .ok_or_else(|| machine.failed("a sum is no point of the curve"))?;
    let mut total = G::zero();
    for window in (0..windows).rev() {
        for _ in 0..plan.window_bits {
            total.double_in_place();
        }
        total += window_sum(|part| sums[part * windows + window], levels, chunk_log);
    }
    Ok(total)
}

/// W + 2^l·Σ 2^k·Rₖ of a window's parts W, S, R₀, R₁, …
fn window_sum<G: DeviceGroup>(part: impl Fn(usize) -> G, levels: u32, chunk_log: u32) -> G {
    let mut sum = G::zero();
    for level in (0..levels as usize).rev() {
        sum.double_in_place();
        sum += part(2 + level);
    }
    for _ in 0..chunk_log {
        sum.double_in_place();
    }
    sum + part(0)
}
