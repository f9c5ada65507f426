//! Messages to be put into a queue.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Part, TaskId};
use crate::origin::Origins;
use crate::payload::Payload;
use crate::plan::{Needs, Plan, QueueIx, StageIx};
use crate::record::TaskRecord;
use crate::traces::TaskTrace;

/// Maximum length of a grouping value in bytes: it is written with every message of its group.
pub const GROUPING_MAX: usize = 1024;

/// Maximum length in bytes of the reason why a message has no grouping value.
pub(crate) const REASON_MAX: usize = 8 * 1024;

/// A message for a queue, ready for the core: everything that needs the payload's content is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// First block that the message is about.
    pub first: u64,
    /// Last block that the message is about, inclusive.
    pub last: u64,
    /// The part of the block that the message is about.
    pub part: Part,
    /// The content.
    pub payload: Payload,
    /// Capabilities required of a worker; `None` for those of the stage.
    pub needs: Option<Needs>,
    /// For each reader of the queue that groups by a field, the value, or the reason why there is
    /// none.
    pub grouping: Vec<(StageIx, Result<Arc<str>, String>)>,
}

/// A message at one reader: a task, or a task that the reader cannot take and the reason.
pub(crate) type Routed = (StageIx, Result<TaskRecord, (TaskRecord, String)>);

/// The tasks of a message: one for each reader of its queue.
///
/// The identity of each task depends on the plan and the message alone. A reader of several queues,
/// or of a queue with several writers, distinguishes messages by a part that names their origin.
/// `origins` is the core's own record of the payload's origins, which is never taken from the
/// message; `trace` is the place of the tasks in their trace.
pub(crate) fn tasks_of(
    plan: &Plan,
    queue: QueueIx,
    writer: &str,
    message: &Message,
    (origins, trace): (&Origins, &TaskTrace),
    at_ms: u64,
) -> Vec<Routed> {
    let queue_plan = plan.queue(queue);
    let part = if queue_plan.many_writers {
        message.part.of(writer)
    } else {
        message.part.clone()
    };
    queue_plan
        .readers
        .iter()
        .map(|reader| {
            let stage = plan.stage(*reader);
            let part = if stage.inputs.len() > 1 {
                part.of(&queue_plan.name)
            } else {
                part.clone()
            };
            let grouping = message.grouping.iter().find(|(stage, _)| stage == reader);
            let task = TaskRecord {
                id: TaskId {
                    stage: stage.name.clone(),
                    block: message.first,
                    part,
                },
                queue: queue_plan.name.clone(),
                last: message.last,
                group: grouping.and_then(|(_, value)| value.as_ref().ok().cloned()),
                needs: message.needs.clone(),
                payload: message.payload.clone(),
                at_ms,
                origins: origins.clone(),
                trace: trace.clone(),
            };
            match grouping {
                Some((_, Err(why))) => (*reader, Err((task, why.clone()))),
                _ => (*reader, Ok(task)),
            }
        })
        .collect()
}

/// The grouping values of a JSON payload for each reader of `queue` that groups by a field.
///
/// A value is a string or an integer; for anything else, or if it is missing, the result is the
/// reason why the message will be rejected.
pub fn grouping(
    plan: &Plan,
    queue: QueueIx,
    json: Option<&[u8]>,
) -> Vec<(StageIx, Result<Arc<str>, String>)> {
    let pointers: Vec<(StageIx, &Arc<str>)> = plan
        .queue(queue)
        .readers
        .iter()
        .filter_map(|reader| {
            let pointer = plan.stage(*reader).collector()?.group_by.as_ref()?;
            Some((*reader, pointer))
        })
        .collect();
    if pointers.is_empty() {
        return Vec::new();
    }
    let parsed = match json {
        None => Err("the payload is binary: a grouping field needs JSON".to_owned()),
        Some(bytes) => serde_json::from_slice::<serde_json::Value>(bytes)
            .map_err(|error| format!("the payload is not JSON: {error}")),
    };
    pointers
        .into_iter()
        .map(|(reader, pointer)| {
            let value = parsed
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|json| at(json, pointer))
                .map_err(|why| why.chars().take(REASON_MAX / 4).collect());
            (reader, value)
        })
        .collect()
}

fn at(json: &serde_json::Value, pointer: &str) -> Result<Arc<str>, String> {
    use serde_json::Value;
    let wrong = |kind: &str| {
        Err(format!(
            "grouping field {pointer:?} is {kind}; expected a string or an integer"
        ))
    };
    match json.pointer(pointer) {
        None => Err(format!("grouping field {pointer:?} is missing")),
        Some(Value::String(text)) if text.len() > GROUPING_MAX => Err(format!(
            "grouping field {pointer:?} has {} bytes; the limit is {GROUPING_MAX}",
            text.len()
        )),
        Some(Value::String(text)) => Ok(text.as_str().into()),
        Some(Value::Number(number)) if !number.is_f64() => Ok(number.to_string().into()),
        Some(Value::Number(_)) => wrong("a fraction"),
        Some(Value::Null) => wrong("null"),
        Some(Value::Bool(_)) => wrong("a boolean"),
        Some(Value::Array(_)) => wrong("an array"),
        Some(Value::Object(_)) => wrong("an object"),
    }
}
