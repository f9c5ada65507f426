//! `proofmill engine status`, `circuits` and `jobs`

use std::time::Duration;

use proofmill_api::engine::proto::{self, Circuit, EngineStatus, Job, Priority, Stage, Tier};

use super::failure::state;
use super::{bytes, connect, refused};
use crate::args::engine::EngineQueryArgs;
use crate::commands::inspect::{ago, print_table};
use crate::failure::Failure;
use crate::output;
use crate::progress::{counted, span};

async fn engine_status(args: &EngineQueryArgs) -> Result<EngineStatus, Failure> {
    let client = connect(&args.engine).await?;
    client.status().await.map_err(|error| refused(&error))
}

pub(crate) async fn status(args: &EngineQueryArgs) -> Result<(), Failure> {
    let status = engine_status(args).await?;
    if args.json {
        return output::line(serde_json::to_string(&status)?);
    }
    let counts = status.counts.unwrap_or_default();
    let budget = status.budget.clone().unwrap_or_default();
    let word = if status.draining {
        "draining"
    } else {
        "running"
    };
    output::line(format!(
        "engine: {word} for {}; {} live, {} done, {} failed, {} cancelled, {} expired",
        span(Duration::from_micros(status.uptime_us)),
        counted(status.jobs.len(), "job"),
        counts.done,
        counts.failed,
        counts.cancelled,
        counts.expired,
    ))?;
    output::line(format!(
        "memory: {} of {}, {} at most; {} waited for; {} keys evicted",
        bytes(budget.used),
        bytes(budget.total),
        bytes(budget.peak),
        bytes(budget.waiting_bytes),
        budget.evictions,
    ))?;
    let stages = status.stages.iter().map(|it| {
        [
            Stage::short_name(it.stage).to_owned(),
            format!("{}/{}", it.busy, it.workers),
            it.queued.to_string(),
            it.ended.to_string(),
            seconds(it.busy_us),
        ]
    });
    print_table(["STAGE", "BUSY", "QUEUED", "ENDED", "TIME"], stages)?;
    let devices = status.devices.iter().map(|it| {
        [
            it.name.clone(),
            activity(it).to_owned(),
            it.products.to_string(),
            it.failures.to_string(),
            it.suspected.to_string(),
            seconds(it.busy_us),
        ]
    });
    print_table(
        ["DEVICE", "NOW", "PRODUCTS", "FAILURES", "SUSPECTED", "TIME"],
        devices,
    )?;
    for why in status.devices.iter().filter_map(|it| it.broken.as_deref()) {
        output::line(output::plain(&format!("not used any more: {why}")))?;
    }
    Ok(())
}

/// A device's state in one word.
pub(super) fn activity(device: &proto::DeviceStatus) -> &'static str {
    match (&device.broken, device.busy) {
        (Some(_), _) => "broken",
        (None, true) => "busy",
        (None, false) => "idle",
    }
}

pub(crate) async fn circuits(args: &EngineQueryArgs) -> Result<(), Failure> {
    let client = connect(&args.engine).await?;
    let circuits = client.circuits().await.map_err(|error| refused(&error))?;
    if args.json {
        return output::line(serde_json::to_string(&circuits)?);
    }
    if circuits.is_empty() {
        return output::line("no circuit is registered");
    }
    print_table(
        [
            "CIRCUIT",
            "CURVE",
            "VARIABLES",
            "PUBLIC",
            "KEY",
            "HOLDS",
            "HOT",
            "PROVING",
            "NEEDS",
            "USERS",
            "PROOFS",
        ],
        circuits.iter().map(circuit_row),
    )
}

fn circuit_row(it: &Circuit) -> [String; 11] {
    let tier = Tier::short_name(it.tier);
    let key = match (it.loading, it.pinned) {
        (true, _) => format!("{tier}, loading"),
        (false, true) => format!("{tier}, pinned"),
        (false, false) => tier.to_owned(),
    };
    let about = if it.measured { "" } else { "~" };
    [
        it.name.clone(),
        it.curve.clone(),
        it.variables.to_string(),
        it.public_inputs.to_string(),
        key,
        bytes(it.bytes),
        format!("{about}{}", bytes(it.hot_bytes)),
        bytes(it.work_bytes),
        bytes(it.needed_bytes),
        it.users.to_string(),
        it.proofs.to_string(),
    ]
}

pub(crate) async fn jobs(args: &EngineQueryArgs) -> Result<(), Failure> {
    let status = engine_status(args).await?;
    let jobs: Vec<&Job> = status.jobs.iter().chain(&status.recent).collect();
    if args.json {
        return output::line(serde_json::to_string(&jobs)?);
    }
    if jobs.is_empty() {
        return output::line("no job");
    }
    let rows = jobs.iter().map(|it| {
        [
            it.id.clone(),
            format!("{}/{}", it.client, it.request_id),
            Priority::short_name(it.priority).to_owned(),
            state(it),
            format!("{}/{}", it.proven, it.partitions),
            it.circuits.join(", "),
            ago(it.submitted_ms),
        ]
    });
    print_table(
        [
            "JOB", "REQUEST", "PRIORITY", "STATE", "PROVEN", "CIRCUITS", "ACCEPTED",
        ],
        rows,
    )
}

fn seconds(us: u64) -> String {
    format!("{:.1} s", us as f64 / 1e6)
}
