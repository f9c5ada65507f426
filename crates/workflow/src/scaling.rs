//! The tables `[[scaling]]`: pools of workers, whose wanted number is computed.

use std::time::Duration;

use crate::diagnostic::Code;
use crate::fields::Fields;

/// Maximum number of tables `[[scaling]]`.
pub(crate) const MAX_POOLS: usize = 64;

/// Maximum of `min` and `max`.
const WORKERS_MAX: u32 = 10_000;

/// Maximum of the durations: longer ones would keep workers, or keep them away, for reasons that nobody
/// remembers.
const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// A pool: workers of one worker group that are started and stopped together, such as the pods of a deployment.
/// A worker group that no table names has one pool, with the group's name and the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// Unique among the pools; `[a-z0-9][a-z0-9_-]{0,62}`. By default the group's name.
    pub name: String,
    /// Worker group of the pool's workers.
    pub group: String,
    /// Labels of the pool's workers, by which they are told from workers of the group's other pools; none by default.
    pub labels: Vec<String>,
    /// Fewest workers wanted; 0 by default.
    pub min: u32,
    /// Most workers wanted; from 1 to 10,000, 100 by default.
    pub max: u32,
    /// Duration of a run until enough runs of a stage are known; 1 minute by default.
    pub estimate: Duration,
    /// Time in which the work left is to be done, in a workflow without `[deadline]`; 5 minutes by default.
    pub within: Duration,
    /// Time for which fewer workers must have sufficed before fewer are wanted; 5 minutes by default.
    pub hold: Duration,
    /// Pool that is asked for the workers that this one lacks; none by default.
    pub fallback: Option<String>,
    /// Time for which workers must have been missing before the fallback pool is asked, and for which all must have
    /// been there before it is not asked any more; 5 minutes by default.
    pub fallback_after: Duration,
}

// === impl Scaling ===

impl Scaling {
    /// Name of the section.
    pub(crate) const SECTION: &str = "scaling";

    /// The pool of a worker group that no table names.
    pub fn of_group(group: &str) -> Self {
        Self {
            name: group.to_owned(),
            group: group.to_owned(),
            labels: Vec::new(),
            min: 0,
            max: 100,
            estimate: Duration::from_secs(60),
            within: Duration::from_secs(300),
            hold: Duration::from_secs(300),
            fallback: None,
            fallback_after: Duration::from_secs(300),
        }
    }

    pub(crate) fn read(mut fields: Fields<'_, '_>) -> Option<Self> {
        let group = fields.token("group", "\"gpus\"", true);
        if !fields.has("group") {
            fields.missing("group", "\"gpus\"");
        }
        let default = Self::of_group(group.as_deref().unwrap_or_default());
        let name = fields.token("name", "\"spot\"", true);
        let labels = fields.names("labels", "[\"spot\"]", false);
        let min = fields.number32("min", 0..=WORKERS_MAX);
        let max = fields.number32("max", 1..=WORKERS_MAX);
        let mut duration = |key| {
            let given = fields.duration(key)?;
            if given > DURATION_MAX {
                fields.bad(
                    Code::OutOfRange,
                    key,
                    "more than a week",
                    "give at most \"168h\"",
                );
                return None;
            }
            Some(given)
        };
        let estimate = duration("estimate");
        let within = duration("within");
        let hold = duration("hold");
        let fallback_after = duration("fallback_after");
        let fallback = fields.token("fallback", "\"on-demand\"", true);
        fields.finish();
        group?;
        Some(Self {
            name: name.unwrap_or(default.name),
            labels: labels.unwrap_or(default.labels),
            min: min.unwrap_or(default.min),
            max: max.unwrap_or(default.max),
            estimate: estimate.unwrap_or(default.estimate),
            within: within.unwrap_or(default.within),
            hold: hold.unwrap_or(default.hold),
            fallback,
            fallback_after: fallback_after.unwrap_or(default.fallback_after),
            group: default.group,
        })
    }
}
