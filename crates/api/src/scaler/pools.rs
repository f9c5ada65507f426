//! The pools of a mill, read for all callers together, and the choice of one by a trigger's metadata.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::core::PoolStatus;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tonic::Status;

use crate::client::Client;
use crate::operations::Operations;

/// Age up to which numbers are used again: however many callers there are, the mill is asked twice a second at most.
const FRESH: Duration = Duration::from_millis(500);

/// Longest wait for the mill's answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Most pools, and characters of a name, that a refusal repeats.
const NAMES_MAX: usize = 16;
const NAME_MAX: usize = 63;

/// A mill whose pools are scaled.
#[derive(Clone)]
pub enum ScaledMill {
    /// A mill that this process runs.
    Here(Operations),
    /// A mill that another process runs, or a workflow that one leads on a cluster.
    Elsewhere(Client),
}

/// The pools of a mill at a moment.
#[derive(Deserialize)]
pub(super) struct Pools {
    workflow: Arc<str>,
    scaling: Vec<PoolStatus>,
}

/// The latest pools; an error's text if the mill does not answer.
type Latest = (Instant, Result<Arc<Pools>, String>);

/// Reads the pools of a mill.
pub(super) struct PoolReader {
    mill: ScaledMill,
    latest: Mutex<Option<Latest>>,
}

// === impl PoolReader ===

impl PoolReader {
    pub(super) fn new(mill: ScaledMill) -> Self {
        Self {
            mill,
            latest: Mutex::new(None),
        }
    }

    /// The pools, at most [`FRESH`] old. Callers that come while the mill is being asked wait for the same answer.
    pub(super) async fn read(&self) -> Result<Arc<Pools>, Status> {
        let mut latest = self.latest.lock().await;
        let found = match &*latest {
            Some((at, found)) if at.elapsed() < FRESH => found.clone(),
            _ => {
                let asked = timeout(ANSWER_TIME_MAX, self.mill.pools()).await;
                let asked =
                    asked.unwrap_or_else(|_| Err("the mill did not answer in time".to_owned()));
                let found = asked.map(Arc::new);
                *latest = Some((Instant::now(), found.clone()));
                found
            }
        };
        found.map_err(Status::unavailable)
    }
}

// === impl ScaledMill ===

impl ScaledMill {
    async fn pools(&self) -> Result<Pools, String> {
        match self {
            Self::Here(operations) => {
                let status = operations
                    .status()
                    .await
                    .map_err(|error| error.to_string())?;
                Ok(Pools {
                    workflow: status.workflow,
                    scaling: status.scaling,
                })
            }
            Self::Elsewhere(client) => {
                let status = client.status().await.map_err(|error| error.to_string())?;
                serde_json::from_value(status)
                    .map_err(|error| format!("the mill's answer is of another release: {error}"))
            }
        }
    }
}

// === impl Pools ===

impl Pools {
    /// The pool that a trigger's metadata names: `pool`, or `group` if the worker group has one pool, or neither if
    /// the workflow has one. `workflow`, if it is given, must be this one. Other keys are KEDA's.
    pub(super) fn find(&self, metadata: &HashMap<String, String>) -> Result<&PoolStatus, Status> {
        let given = |key: &str| metadata.get(key).filter(|value| !value.is_empty());
        if let Some(workflow) = given("workflow")
            && **workflow != *self.workflow
        {
            let (asked, here) = (clipped(workflow), &self.workflow);
            return Err(Status::not_found(format!(
                "there is no workflow {asked:?} here: it is {here:?}"
            )));
        }
        let (pool, group) = (given("pool"), given("group"));
        let is_meant = |it: &&PoolStatus| {
            pool.is_none_or(|pool| **pool == *it.pool)
                && group.is_none_or(|group| **group == *it.group)
        };
        let mut meant = self.scaling.iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(found), None) => Ok(found),
            (None, _) => {
                let shown = |name: Option<&String>| name.map_or_else(String::new, |it| clipped(it));
                Err(Status::not_found(format!(
                    "there is no pool {:?} of group {:?}: there are {}",
                    shown(pool),
                    shown(group),
                    self.names()
                )))
            }
            (Some(_), Some(_)) => Err(Status::invalid_argument(format!(
                "the trigger's metadata fits several pools: name one with `pool`: {}",
                self.names()
            ))),
        }
    }

    fn names(&self) -> String {
        let pools = self.scaling.iter().take(NAMES_MAX);
        let mut names: Vec<&str> = pools.map(|pool| &*pool.pool).collect();
        match self.scaling.len() {
            0 => return "none".to_owned(),
            count if count > NAMES_MAX => names.push("others"),
            _ => {}
        }
        names.join(", ")
    }
}

fn clipped(name: &str) -> String {
    name.chars().take(NAME_MAX).collect()
}
