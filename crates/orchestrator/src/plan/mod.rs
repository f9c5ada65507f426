//! The plan: the workflow as the core uses it, with stages and queues by index and every default
//! resolved.

mod digest;
mod from_workflow;
mod model;
mod scaling;

pub use from_workflow::{PlanError, StrategyMaker};
pub use model::{
    Backoff, CollectorPlan, Deadline, DispatcherPlan, Distinct, Hedge, Late, Needs, Plan, QueueIx,
    QueuePlan, SourcePlan, Speculation, StageIx, StageKind, StagePlan,
};
pub use scaling::{PoolPlan, pools};
