//! Compilation of the workflow file's model to the core's plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use proofmill_workflow as file;
use serde_json::json;

use super::model::{
    Backoff, CollectorPlan, Deadline, DispatcherPlan, Distinct, Hedge, Late, Needs, Plan, QueueIx,
    QueuePlan, SourcePlan, Speculation, StageIx, StageKind, StagePlan,
};
use crate::grouping::{Expected, Match, Range, Sequential, StrategyFactory};

/// Number of blocks for which ids of finished tasks of side branches are kept.
const RETAIN_BLOCKS: u64 = 100_000;

/// Makes a custom strategy's factory from the `params` of the workflow file.
pub type StrategyMaker =
    Arc<dyn Fn(&serde_json::Value) -> Result<Arc<dyn StrategyFactory>, String> + Send + Sync>;

/// The reason why this program cannot run a valid workflow.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// No strategy of that name was registered.
    #[error("collector {collector:?}: no strategy {name:?} is registered in this program")]
    UnknownStrategy {
        /// The collector.
        collector: String,
        /// The strategy.
        name: String,
    },
    /// The strategy rejected its parameters.
    #[error("collector {collector:?}: strategy {name:?} refused its params: {why}")]
    StrategyParams {
        /// The collector.
        collector: String,
        /// The strategy.
        name: String,
        /// The strategy's message.
        why: String,
    },
}

impl Plan {
    /// Compiles a checked workflow. `custom` holds the strategies registered in code.
    pub fn compile(
        workflow: &file::Workflow,
        custom: &BTreeMap<String, StrategyMaker>,
    ) -> Result<Self, PlanError> {
        let linked = workflow.link();
        // Sources are not stages of the core, which only knows their submissions.
        let mut index = BTreeMap::new();
        for stage in &linked.stages {
            if !matches!(stage.kind, file::StageKind::Source(_)) {
                index.insert(stage.id, StageIx(index.len()));
            }
        }
        let mut stages = Vec::with_capacity(index.len());
        for stage in linked
            .stages
            .iter()
            .filter(|stage| index.contains_key(&stage.id))
        {
            let queue_names = |ids: &[file::QueueId]| -> Vec<Arc<str>> {
                ids.iter()
                    .map(|id| linked.queue(*id).name.as_str().into())
                    .collect()
            };
            let kind = match &stage.kind {
                file::StageKind::Source(_) => continue,
                file::StageKind::Dispatcher(dispatcher) => {
                    StageKind::Dispatcher(dispatcher_plan(dispatcher))
                }
                file::StageKind::Collector(collector) => {
                    let inputs = queue_names(&stage.inputs);
                    StageKind::Collector(collector_plan(collector, &inputs, custom)?)
                }
                file::StageKind::Sequencer(sequencer) => StageKind::Sequencer {
                    start: sequencer.start,
                },
            };
            stages.push(StagePlan {
                name: stage.name.as_str().into(),
                inputs: stage.inputs.iter().map(|queue| QueueIx(queue.0)).collect(),
                outputs: stage.outputs.iter().map(|queue| QueueIx(queue.0)).collect(),
                kind,
            });
        }
        let queues = linked
            .queues
            .iter()
            .map(|queue| QueuePlan {
                name: queue.name.as_str().into(),
                readers: queue.readers.iter().map(|reader| index[reader]).collect(),
                many_writers: queue.writers.len() > 1,
                q_max: usize::try_from(queue.q_max).unwrap_or(usize::MAX),
            })
            .collect();
        Ok(Self {
            workflow: linked.name.as_str().into(),
            stages,
            queues,
            sources: sources_of(&linked),
            retain_blocks: RETAIN_BLOCKS,
            deadline: workflow.deadline.as_ref().map(|deadline| Deadline {
                slot: deadline.slot,
                drop_missed: deadline.on_missed == file::OnMissed::Drop,
            }),
            cuts_blocks: linked
                .stages
                .iter()
                .any(|stage| matches!(&stage.kind, file::StageKind::Dispatcher(it) if it.fan_out)),
        })
    }
}

fn sources_of(linked: &file::LinkedWorkflow) -> Vec<SourcePlan> {
    let sources = linked.stages.iter().filter_map(|stage| {
        let file::StageKind::Source(source) = &stage.kind else {
            return None;
        };
        Some(SourcePlan {
            name: stage.name.as_str().into(),
            output: QueueIx(stage.outputs.first()?.0),
            takes_submissions: source.kind == file::SourceKind::Submit,
        })
    });
    sources.collect()
}

fn dispatcher_plan(dispatcher: &file::Dispatcher) -> DispatcherPlan {
    let policy = &dispatcher.policy;
    DispatcherPlan {
        group: dispatcher.group.as_str().into(),
        needs: Needs {
            labels: dispatcher.requires.iter().cloned().collect(),
            memory: dispatcher.memory,
        },
        t_ack: policy.t_ack,
        r_max: policy.r_max,
        backoff: Backoff::from(&policy.backoff),
        batch: dispatcher.batch as usize,
        speculation: speculation(&dispatcher.speculation),
    }
}

impl From<&file::Backoff> for Backoff {
    fn from(backoff: &file::Backoff) -> Self {
        Self {
            initial: backoff.initial,
            max: backoff.max,
            factor: backoff.factor,
            jitter: backoff.jitter,
        }
    }
}

fn speculation(of: &file::Speculation) -> Speculation {
    Speculation {
        copies: of.copies as usize,
        accept: of.accept as usize,
        distinct: match &of.distinct_label {
            Some(prefix) => Distinct::Label(prefix.as_str().into()),
            None => Distinct::Worker,
        },
        hedge: of.hedge.as_ref().map(|hedge| Hedge {
            percentile: hedge.percentile,
            min: hedge.min,
        }),
    }
}

fn collector_plan(
    collector: &file::Collector,
    inputs: &[Arc<str>],
    custom: &BTreeMap<String, StrategyMaker>,
) -> Result<CollectorPlan, PlanError> {
    let partial = collector.partial;
    let settings = settings_of(collector).to_string().into();
    let mut group_by = None;
    let strategy: Arc<dyn StrategyFactory> = match &collector.strategy {
        file::Strategy::Match {
            k,
            group_by: pointer,
        } => {
            group_by = Some(pointer.as_str().into());
            let expected = match k {
                file::MatchCount::Total(k) => Expected::Total(*k as usize),
                file::MatchCount::PerQueue(counts) => Expected::PerQueue(
                    counts
                        .iter()
                        .map(|(queue, k)| (queue.as_str().into(), *k as usize))
                        .collect(),
                ),
            };
            Arc::new(Match { expected, partial })
        }
        file::Strategy::Sequential { n } => Arc::new(Sequential {
            n: *n,
            inputs: inputs.to_vec(),
            partial,
        }),
        file::Strategy::Range { by } => Arc::new(Range {
            by: by.as_str().into(),
            others: inputs
                .iter()
                .filter(|queue| ***queue != **by)
                .cloned()
                .collect(),
            partial,
        }),
        file::Strategy::Custom { name, params } => {
            let unknown = || PlanError::UnknownStrategy {
                collector: collector.name.clone(),
                name: name.clone(),
            };
            let maker = custom.get(name).ok_or_else(unknown)?;
            maker(params).map_err(|why| PlanError::StrategyParams {
                collector: collector.name.clone(),
                name: name.clone(),
                why,
            })?
        }
    };
    Ok(CollectorPlan {
        strategy,
        settings,
        group_by,
        t_collect: collector.t_collect,
        late: match collector.late {
            file::Late::Dead => Late::Dead,
            file::Late::Emit => Late::Emit,
            file::Late::Skip => Late::Skip,
        },
    })
}

/// A collector's strategy and settings as JSON with sorted keys.
fn settings_of(collector: &file::Collector) -> serde_json::Value {
    let strategy = match &collector.strategy {
        file::Strategy::Match { k, group_by } => {
            let k = match k {
                file::MatchCount::Total(k) => json!(k),
                file::MatchCount::PerQueue(counts) => {
                    let counts: BTreeMap<_, _> = counts.iter().collect();
                    json!(counts)
                }
            };
            json!({ "match": { "k": k, "group_by": group_by.as_str() } })
        }
        file::Strategy::Sequential { n } => json!({ "sequential": { "n": n } }),
        file::Strategy::Range { by } => json!({ "range": { "by": by.as_str() } }),
        file::Strategy::Custom { name, params } => {
            json!({ "custom": { "name": name, "params": params } })
        }
    };
    let mut settings = json!({ "partial": collector.partial, "strategy": strategy });
    // Plans without the setting keep the digest that they had before it was introduced.
    match collector.late {
        file::Late::Dead => {}
        file::Late::Emit => settings["late"] = json!("emit"),
        file::Late::Skip => settings["late"] = json!("skip"),
    }
    settings
}
