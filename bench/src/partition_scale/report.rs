//! The tables, the assumptions and the line of JSON.

use serde_json::{Value, json};

use super::constants::Constants;
use super::paper::Compared;
use super::phase::Allocation;
use super::simulation::{Job, Steps};
use super::workers::Faults;
use crate::harness::round;

/// A simulated proof.
pub(super) struct Row {
    pub(super) job: Job,
    pub(super) workers: usize,
    pub(super) outcome: Option<Steps>,
}

// === impl Row ===

impl Row {
    /// Time of the parts alone over the time of all workers.
    fn efficiency(&self, constants: &Constants) -> Option<f64> {
        let work = self.job.parts as f64 * (constants.commit_s + constants.prove_s);
        Some(work / (self.workers as f64 * self.outcome?.total_s()))
    }

    /// Thousands of constraints for each core-second.
    fn thousands(&self, constants: &Constants) -> Option<f64> {
        let constraints = self.job.parts as f64 * constants.constraints as f64;
        Some(constraints / (1e3 * self.workers as f64 * self.outcome?.total_s()))
    }

    fn line(&self, constants: &Constants) -> String {
        let (parts, workers, allocation) = (self.job.parts, self.workers, self.allocation());
        let begin = format!("{parts:>8} {workers:>8}  {allocation:<6}");
        let Some(steps) = self.outcome else {
            return format!("{begin} no proof: parts of dead workers are not made");
        };
        format!(
            "{begin} {:>10} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10} {:>8}",
            seconds(steps.trace_s),
            seconds(steps.commit_s),
            seconds(steps.challenge_s),
            seconds(steps.prove_s),
            seconds(steps.aggregate_s),
            seconds(steps.total_s()),
            format!("{:.1} %", 100.0 * self.efficiency(constants).unwrap_or(0.0)),
            format!("{:.1}", self.thousands(constants).unwrap_or(0.0)),
        )
    }

    const fn allocation(&self) -> &'static str {
        match self.job.allocation {
            Allocation::Pull => "pull",
            Allocation::Fixed => "fixed",
        }
    }

    fn json(&self, constants: &Constants) -> Value {
        json!({
            "parts": self.job.parts,
            "workers": self.workers,
            "allocation": self.job.allocation,
            "steps": self.outcome,
            "total_s": self.outcome.map(|steps| round(steps.total_s())),
            "efficiency": self.efficiency(constants).map(round),
            "thousand_constraints_a_core_second": self.thousands(constants).map(round),
        })
    }
}

fn seconds(value: f64) -> String {
    match value {
        value if value < 0.01 => format!("{:.2} ms", 1e3 * value),
        value if value < 100.0 => format!("{value:.2} s"),
        value => format!("{value:.0} s"),
    }
}

/// Prints everything but the JSON.
pub(super) fn print(constants: &Constants, faults: &Faults, rows: &[Row], statements: &[Compared]) {
    println!("A simulation: nothing was proved.\n");
    println!(
        "{:>8} {:>8}  {:<6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10} {:>8}",
        "parts",
        "workers",
        "",
        "trace",
        "commit",
        "challenge",
        "prove",
        "aggregate",
        "total",
        "efficiency",
        "kcpcs"
    );
    for row in rows {
        println!("{}", row.line(constants));
    }
    println!(
        "\nThe paper's statements, beside the simulation on as many cores (kcpcs: thousands of \
         constraints for each core-second):\n"
    );
    for compared in statements {
        let paper = compared
            .paper_seconds
            .map_or_else(String::new, |value| format!("{}, ", seconds(value)));
        println!(
            "{:>6} cores, {:>6} parts: {}, {:.1} kcpcs; the paper: {paper}{} kcpcs ({})",
            compared.cores,
            compared.parts,
            seconds(compared.simulated_seconds),
            compared.simulated_thousands_a_core_second,
            compared.paper_thousands_a_core_second,
            compared.source,
        );
    }
    println!();
    for assumption in assumptions(constants, faults) {
        println!("- {assumption}");
    }
}

/// The assumptions, one sentence each.
fn assumptions(constants: &Constants, faults: &Faults) -> Vec<String> {
    let mut assumptions = vec![
        format!(
            "All parts are equal: {} constraints, {} s to trace, {} s to commit to, {} s to prove on one core.",
            constants.constraints, constants.trace_s, constants.commit_s, constants.prove_s
        ),
        format!(
            "The leader traces before anything else, and aggregates in {} s for each part, over {} cores, with {} % on \
             one.",
            constants.aggregate_s,
            constants.shards,
            100.0 * constants.aggregate_serial
        ),
        format!(
            "A task takes the coordinator {} s, and the leader's network {} or {} bytes at {} bytes a second; it is under \
             way for {} s.",
            constants.dispatch_s,
            constants.commit_bytes,
            constants.prove_bytes,
            constants.bandwidth,
            constants.latency_s
        ),
        format!(
            "A worker loads {} keys before its first task, in {} s each, all workers at once.",
            constants.classes, constants.key_load_s
        ),
        "Results are not checked, and no task waits for memory or for a disk.".to_owned(),
        "Figure 7 of the paper is a plot without a table: only values that the paper's text states are compared. Its \
         machines and its curve, BLS12-381, are others."
            .to_owned(),
        "Where the paper states no size of the circuit, the simulation has 8 parts for each core. In these rows parts are \
         allocated in advance, as in the paper."
            .to_owned(),
    ];
    if faults.slow > 0.0 {
        assumptions.push(format!(
            "{} % of the workers take {} times as long.",
            100.0 * faults.slow,
            faults.slow_factor
        ));
    }
    if faults.deaths > 0.0 {
        assumptions.push(format!(
            "{} % of the workers die within {} s of the first task. A part that is pulled goes to another worker {} s \
             later; the paper describes no such step for its fixed allocation.",
            100.0 * faults.deaths,
            faults.deaths_within,
            faults.lease_s
        ));
    }
    assumptions
}

/// The line of JSON.
pub(super) fn json(
    constants: &Constants,
    faults: &Faults,
    rows: &[Row],
    statements: &[Compared],
) -> anyhow::Result<Value> {
    Ok(json!({
        "simulation": true,
        "constants": serde_json::to_value(constants)?,
        "faults": serde_json::to_value(faults)?,
        "runs": rows.iter().map(|row| row.json(constants)).collect::<Vec<_>>(),
        "paper": serde_json::to_value(statements)?,
        "assumptions": assumptions(constants, faults),
    }))
}
