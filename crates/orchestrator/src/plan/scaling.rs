//! The pools of workers whose wanted number the core computes.
//!
//! Pools are no part of [`Plan`](super::Plan) and its digest: they do not affect any other process, so that a
//! coordinator can be restarted with other limits while workers go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proofmill_workflow as file;

/// A pool: workers of one worker group that are started and stopped together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlan {
    /// Name of the pool.
    pub name: Arc<str>,
    /// Worker group of the pool's workers.
    pub group: Arc<str>,
    /// Labels by which a worker belongs to the pool rather than to another one of the group.
    pub labels: BTreeSet<String>,
    /// Fewest workers wanted.
    pub min: u64,
    /// Most workers wanted.
    pub max: u64,
    /// Assignments that each worker of the pool runs at once, at least 1.
    pub slots: u64,
    /// Duration of a run until enough runs of a stage are known.
    pub estimate: Duration,
    /// Time in which the work left is to be done, in a workflow without deadlines.
    pub within: Duration,
    /// Time for which fewer workers must have sufficed before fewer are wanted.
    pub hold: Duration,
    /// The pool that stands in for this one, as an index among the pools; it has no such pool itself.
    pub fallback: Option<usize>,
    /// Time for which workers must have been missing before the fallback pool is asked.
    pub fallback_after: Duration,
}

/// The pools of a checked workflow: those of its tables, then one for each worker group without a table.
pub fn pools(workflow: &file::Workflow) -> Vec<PoolPlan> {
    // Workers of a group may be started by several of its stages; the weakest counts.
    let mut slots: BTreeMap<&str, u32> = BTreeMap::new();
    for stage in &workflow.dispatchers {
        let fewest = slots.entry(&stage.group).or_insert(stage.f_max);
        *fewest = stage.f_max.min(*fewest);
    }
    let named = |group: &str| workflow.scaling.iter().any(|pool| pool.group == group);
    let others = slots.keys().filter(|group| !named(group));
    let others = others.map(|group| file::Scaling::of_group(group));
    let all: Vec<file::Scaling> = workflow.scaling.iter().cloned().chain(others).collect();
    let plan = |pool: &file::Scaling| PoolPlan {
        name: pool.name.as_str().into(),
        group: pool.group.as_str().into(),
        labels: pool.labels.iter().cloned().collect(),
        min: pool.min.into(),
        max: pool.max.into(),
        slots: slots
            .get(pool.group.as_str())
            .copied()
            .unwrap_or(1)
            .max(1)
            .into(),
        estimate: pool.estimate,
        within: pool.within,
        hold: pool.hold,
        fallback: pool
            .fallback
            .as_ref()
            .and_then(|name| all.iter().position(|other| other.name == *name)),
        fallback_after: pool.fallback_after,
    };
    all.iter().map(plan).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_group_without_a_table_has_a_pool_and_fallbacks_are_found_by_name() {
        let text = r#"
name = "pools"
[[source]]
name = "blocks"
kind = "range"
output = "blocks"
[[dispatcher]]
name = "prove"
group = "gpus"
f_max = 3
input = "blocks"
output = "proofs"
executor = { kind = "native", prover = "p" }
[[dispatcher]]
name = "wrap"
group = "gpus"
f_max = 2
input = "proofs"
output = "wrapped"
executor = { kind = "native", prover = "p" }
[[dispatcher]]
name = "check"
input = "wrapped"
executor = { kind = "native", prover = "p" }
[[scaling]]
name = "spot"
group = "gpus"
labels = ["spot"]
max = 30
fallback = "on-demand"
[[scaling]]
name = "on-demand"
group = "gpus"
"#;
        let workflow = file::Workflow::parse(text, Path::new("w.toml")).expect("a workflow");
        let pools = pools(&workflow);
        let seen: Vec<_> = pools
            .iter()
            .map(|pool| {
                (
                    &*pool.name,
                    &*pool.group,
                    pool.max,
                    pool.slots,
                    pool.fallback,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("spot", "gpus", 30, 2, Some(1)),
                ("on-demand", "gpus", 100, 2, None),
                ("check", "check", 100, 1, None),
            ]
        );
    }
}
