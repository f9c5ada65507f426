//! Statements of the paper about the same quantities (Hekaton, eprint.iacr.org/2024/1208).
//!
//! Figure 7 is a plot whose values are in no table; only those are here that its text states.

use serde::Serialize;

use super::constants::Constants;
use super::phase::Allocation;
use super::simulation::{Job, simulate};
use super::workers::{Faults, Workers};

/// Parts for each core where the paper states a throughput without the size of the circuit.
const PARTS_FOR_EACH_CORE: usize = 8;

/// A statement about so many cores.
#[derive(Clone, Copy, Debug)]
struct Statement {
    cores: usize,
    /// log₂ of the constraints; `None` where the paper does not state them.
    log_constraints: Option<u32>,
    /// Seconds until the end, aggregation included.
    seconds: Option<f64>,
    /// Thousands of constraints for each core-second.
    thousands: f64,
    source: &'static str,
}

/// A statement beside the simulation of as many constraints on as many cores.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Compared {
    pub(super) cores: usize,
    pub(super) log_constraints: Option<u32>,
    pub(super) parts: usize,
    pub(super) paper_seconds: Option<f64>,
    pub(super) paper_thousands_a_core_second: f64,
    pub(super) simulated_seconds: f64,
    pub(super) simulated_thousands_a_core_second: f64,
    pub(super) source: &'static str,
}

const STATEMENTS: [Statement; 4] = [
    Statement {
        cores: 2048,
        log_constraints: Some(27),
        seconds: Some(11.6),
        // 2^27 / (2048 · 11.6 s).
        thousands: 5.65,
        source: "section 8.2, comparison to Pianist: 2^27 \"takes 11.6s to prove on 2048 cores\"",
    },
    Statement {
        cores: 4,
        log_constraints: None,
        seconds: None,
        thousands: 34.0,
        source: "section 8.2, overhead: \"34kcpcs (90% baseline) at 4 threads\"",
    },
    Statement {
        cores: 128,
        log_constraints: None,
        seconds: None,
        thousands: 33.0,
        source: "section 8.2, overhead: 32 times as many, \"33kcpcs (87% baseline)\"",
    },
    Statement {
        cores: 4096,
        log_constraints: None,
        seconds: None,
        thousands: 12.0,
        source: "section 8.2, overhead: 32 times again, \"12kcpcs (64% baseline)\"; 12 of its 38 are 32 %",
    },
];

/// All statements, beside the simulation with these constants.
pub(super) fn compare(constants: &Constants) -> Vec<Compared> {
    let compared = STATEMENTS.iter().filter_map(|statement| {
        let parts = match statement.log_constraints {
            Some(log) => (1u64 << log).div_ceil(constants.constraints.max(1)) as usize,
            None => statement.cores * PARTS_FOR_EACH_CORE,
        };
        let job = Job {
            parts,
            allocation: Allocation::Fixed,
        };
        let workers = Workers::new(statement.cores, &Faults::NONE);
        let seconds = simulate(constants, job, workers, 0.0)?.total_s();
        let constraints = parts as f64 * constants.constraints as f64;
        Some(Compared {
            cores: statement.cores,
            log_constraints: statement.log_constraints,
            parts,
            paper_seconds: statement.seconds,
            paper_thousands_a_core_second: statement.thousands,
            simulated_seconds: seconds,
            simulated_thousands_a_core_second: constraints
                / (1e3 * statement.cores as f64 * seconds),
            source: statement.source,
        })
    });
    compared.collect()
}
