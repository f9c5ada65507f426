//! Scaling in a simulated cluster: the real core, its wanted numbers, and machines that an autoscaler starts and stops
//! by them, each with a delay.
//!
//! `incidents` replays what has gone wrong elsewhere: three hundred workers at once, a fallback pool that starves, a
//! lease that is never released. `steady` is a property over seeds: on a steady load the wanted number stays within ±1.
//! `SEED=n cargo test --test scaling steady` runs one seed, `SEEDS=n` more of them.

mod incidents;
#[path = "../simulation/rng.rs"]
mod rng;
mod steady;
mod world;
