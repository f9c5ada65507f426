//! `proofmill engine timeline`

use std::time::Duration;

use proofmill_api::engine::timeline::{Timeline, trace, waterfall};
use serde_json::json;

use super::{connect, refused};
use crate::args::engine::TimelineArgs;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write_together};
use crate::output;
use crate::progress::{counted, span};

pub(crate) async fn run(args: &TimelineArgs) -> Result<(), Failure> {
    let files = [&args.out, &args.svg];
    let mut plan = FilePlan::default();
    for (what, path) in ["the trace", "the waterfall"].into_iter().zip(files) {
        if let Some(path) = path {
            plan = plan.writes(what, path);
        }
    }
    plan.check(OverwritePolicy::NothingHardToRecreate)?;
    let client = connect(&args.query.engine).await?;
    let events = client
        .past_events()
        .await
        .map_err(|error| refused(&error))?;
    let uptime_us = client
        .status()
        .await
        .map_err(|error| refused(&error))?
        .uptime_us;
    let mut timeline = Timeline::of(&events);
    if let Some(last) = args.last {
        let from = timeline.to_us.saturating_sub(u64::from(last) * 1_000_000);
        timeline = timeline.since(from);
    }
    if let Some(path) = &args.out {
        write_together(&[(path, &trace(&timeline))])?;
    }
    if let Some(path) = &args.svg {
        write_together(&[(path, &waterfall(&timeline, args.rows))])?;
    }
    if args.query.json {
        let workers = timeline.workers.iter().map(|worker| {
            let (used, gap_us) = worker.use_and_longest_gap();
            json!({
                "stage": proofmill_api::engine::proto::Stage::short_name(worker.stage.into()),
                "worker": worker.name,
                "busy": used,
                "longest_gap_ms": gap_us as f64 / 1e3,
            })
        });
        let summary = json!({
            "length_ms": timeline.length_us() as f64 / 1e3,
            "last_event_ms_ago": uptime_us.saturating_sub(timeline.to_us) as f64 / 1e3,
            "partitions": timeline.rows.len(),
            "key_loads": timeline.loads.len(),
            "missed_events": timeline.missed,
            "workers": workers.collect::<Vec<_>>(),
        });
        return output::line(summary.to_string());
    }
    let written: Vec<String> = files
        .into_iter()
        .flatten()
        .map(|path| path.display().to_string())
        .collect();
    output::line(output::plain(&format!(
        "{}: {} over {:.1} s; {}the last event was {} ago",
        written.join(", "),
        counted(timeline.rows.len(), "partition"),
        timeline.length_us() as f64 / 1e6,
        match args.last {
            Some(seconds) => format!("--last {seconds} counts from the last event; "),
            None => String::new(),
        },
        span(Duration::from_micros(
            uptime_us.saturating_sub(timeline.to_us)
        )),
    )))
}
