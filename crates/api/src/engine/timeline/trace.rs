//! The trace-event format of Chrome and Perfetto ("Trace Event Format", Google).

use serde_json::{Value, json};

use super::model::{Row, Timeline};
use crate::engine::proto::{Stage, StageEnd, Tier};

/// The three groups of tracks.
const WORKERS: u32 = 1;
const PARTITIONS: u32 = 2;
const KEYS: u32 = 3;

/// The trace as JSON: a track for each worker, a track for each partition, which shows its waiting, and a
/// track for each key.
pub fn trace(timeline: &Timeline) -> String {
    let mut events = vec![
        name_event("process_name", WORKERS, 0, "workers"),
        name_event("process_name", PARTITIONS, 0, "partitions"),
        name_event("process_name", KEYS, 0, "keys"),
    ];
    for (track, worker) in (1_u32..).zip(&timeline.workers) {
        let stage = Stage::short_name(worker.stage.into());
        let name = format!("{stage} {}", worker.name);
        events.push(name_event("thread_name", WORKERS, track, &name));
    }
    for (track, row) in (1_u32..).zip(&timeline.rows) {
        partition(timeline, track, row, &mut events);
    }
    let mut keys: Vec<&str> = timeline.loads.iter().map(|it| &*it.circuit).collect();
    keys.sort_unstable();
    keys.dedup();
    for (track, key) in (1_u32..).zip(&keys) {
        events.push(name_event("thread_name", KEYS, track, key));
        for load in timeline.loads.iter().filter(|it| it.circuit == *key) {
            let name = format!("load {}", Tier::short_name(load.tier.into()));
            let span = (load.began_us, load.ended_us);
            let args = json!({ "bytes": load.bytes });
            events.push(slice(KEYS, track, &name, "key", span, args));
        }
    }
    let whole = json!({
        "displayTimeUnit": "ms",
        "otherData": { "missed_events": timeline.missed },
        "traceEvents": events,
    });
    whole.to_string()
}

/// Appends the slices of a partition, and those of the workers that ran its stages.
fn partition(timeline: &Timeline, track: u32, row: &Row, events: &mut Vec<Value>) {
    let name = format!("{}/{} {}", row.job, row.partition, row.circuit);
    events.push(name_event("thread_name", PARTITIONS, track, &name));
    let mut until = row.accepted_us.or(row.admitted_us);
    for bar in &row.bars {
        if let Some(since) = until.filter(|since| *since < bar.began_us) {
            let span = (since, bar.began_us);
            events.push(slice(PARTITIONS, track, "waiting", "wait", span, json!({})));
        }
        until = Some(bar.ended_us);
        let stage = Stage::short_name(bar.stage.into());
        let span = (bar.began_us, bar.ended_us);
        let end = match bar.end {
            StageEnd::Unspecified => "under way",
            end => StageEnd::short_name(end.into()),
        };
        let args = json!({
            "job": row.job,
            "partition": row.partition,
            "attempt": bar.attempt,
            "circuit": row.circuit,
            "worker": bar.worker,
            "end": end,
            "bytes": bar.bytes,
        });
        events.push(slice(PARTITIONS, track, stage, "stage", span, args.clone()));
        let worker = timeline
            .workers
            .iter()
            .position(|it| it.stage == bar.stage && it.name == bar.worker);
        if let Some(index) = worker.and_then(|index| u32::try_from(index + 1).ok()) {
            events.push(slice(WORKERS, index, &row.circuit, "stage", span, args));
        }
    }
}

fn name_event(kind: &str, process: u32, track: u32, name: &str) -> Value {
    json!({ "ph": "M", "name": kind, "pid": process, "tid": track, "args": { "name": name } })
}

fn slice(
    process: u32,
    track: u32,
    name: &str,
    category: &str,
    (from, to): (u64, u64),
    args: Value,
) -> Value {
    json!({
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": process,
        "tid": track,
        "ts": from,
        "dur": to.saturating_sub(from),
        "args": args,
    })
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::events;
    use super::*;

    #[test]
    fn every_stage_and_every_wait_is_a_slice() {
        let text = trace(&Timeline::of(&events()));
        let whole: Value = serde_json::from_str(&text).unwrap();
        let slices: Vec<(u64, &str, u64, u64)> = whole["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["ph"] == "X")
            .map(|it| {
                let number = |key: &str| it[key].as_u64().unwrap();
                (
                    number("pid"),
                    it["name"].as_str().unwrap(),
                    number("ts"),
                    number("dur"),
                )
            })
            .collect();
        for expected in [
            (2, "waiting", 100, 100),
            (2, "prove", 200, 100),
            (1, "multiplier", 200, 100),
            (2, "waiting", 300, 10),
            (2, "finish", 310, 90),
            (2, "prove", 310, 90),
            (3, "load hot", 110, 40),
        ] {
            assert!(slices.contains(&expected), "no {expected:?} in {slices:?}");
        }
    }
}
