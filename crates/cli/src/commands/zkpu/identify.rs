//! `proofmill zkpu identify`

use proofmill_zkpu::nvme::zkpu::{ZkpuCapability, ZkpuHealth};
use serde_json::{Value, json};

use super::connect;
use crate::args::zkpu::Identify;
use crate::commands::engine::bytes;
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &Identify) -> Result<(), Failure> {
    let driver = connect(&args.device)?;
    let (identity, capability) = (driver.identity(), driver.capability());
    let health = driver.health().map_err(|error| Failure::of(&error))?;
    if args.json {
        let answer = json!({
            "model": identity.model,
            "serial": identity.serial,
            "firmware": identity.firmware,
            "subsystem": identity.subsystem,
            "capability": capability_json(capability),
            "health": health_json(&health),
        });
        return output::line(answer.to_string());
    }
    let text = format!(
        "device     {}, serial {}, firmware {}\n\
         subsystem  {}\n\
         {}{}",
        identity.model,
        identity.serial,
        identity.firmware,
        identity.subsystem,
        capability_shown(capability),
        health_shown(&health),
    );
    output::raw(output::plain(&text).as_bytes())
}

fn personalities(capability: &ZkpuCapability) -> Vec<&'static str> {
    let all = [
        (ZkpuCapability::MEMORY_PERSONALITY, "memory"),
        (ZkpuCapability::COMPUTE_PERSONALITY, "compute"),
    ];
    let has = all.into_iter().filter(|(flag, _)| capability.has(*flag));
    has.map(|(_, name)| name).collect()
}

fn capability_json(capability: &ZkpuCapability) -> Value {
    json!({
        "protocol": capability.version,
        "functional_model": capability.has(ZkpuCapability::FUNCTIONAL_MODEL),
        "personalities": personalities(capability),
        "memory_bytes": capability.memory_bytes,
        "points_max": capability.count_max,
        "adders": capability.adders,
        "windows": [capability.window_min, capability.window_max],
        "levels_max": capability.levels_max,
        "jobs_live_max": capability.jobs_live_max,
        "base_sets_max": capability.base_sets_max,
        "clock_khz": capability.clock_khz,
        "power_on_id": capability.power_on_id.to_string(),
    })
}

fn capability_shown(capability: &ZkpuCapability) -> String {
    let kind = match capability.has(ZkpuCapability::FUNCTIONAL_MODEL) {
        true => "a functional model",
        false => "a circuit",
    };
    format!(
        "kind       {kind} with {} adders; windows of {} to {} bits, {} levels at most; personalities: {}\n\
         memory     {}; products of {} points at most, {} jobs at a time, {} base sets\n",
        capability.adders,
        capability.window_min,
        capability.window_max,
        capability.levels_max,
        personalities(capability).join(", "),
        bytes(capability.memory_bytes),
        capability.count_max,
        capability.jobs_live_max,
        capability.base_sets_max,
    )
}

fn health_json(health: &ZkpuHealth) -> Value {
    let counters = &health.counters;
    let [busy, operations, conflicts, replicas, stalls] = counters.core;
    json!({
        "busy": health.is_busy,
        "fenced": health.is_fenced,
        "fault": health.fault,
        "jobs": {
            "accepted": counters.jobs_accepted,
            "completed": counters.jobs_completed,
            "failed": counters.jobs_failed,
            "timed_out": counters.jobs_timed_out,
            "cancelled": counters.jobs_cancelled,
            "live": health.jobs_live,
        },
        "points": counters.points,
        "core": {
            "busy_cycles": busy,
            "operations": operations,
            "conflicts": conflicts,
            "replicas": replicas,
            "stalls": stalls,
        },
        "bytes_from_host": counters.bytes_from_host,
        "bytes_to_host": counters.bytes_to_host,
        "commands": counters.commands,
        "commands_failed": counters.commands_failed,
        "resets": counters.resets,
    })
}

fn health_shown(health: &ZkpuHealth) -> String {
    let counters = &health.counters;
    let state = match (health.is_fenced, health.is_busy) {
        (true, _) => format!("fenced, fault {}", health.fault),
        (false, true) => "busy".to_owned(),
        (false, false) => "idle".to_owned(),
    };
    format!(
        "state      {state}; {} jobs completed, {} failed, {} timed out, {} cancelled\n\
         work       {} points in {} cycles; {} from the host, {} to it\n",
        counters.jobs_completed,
        counters.jobs_failed,
        counters.jobs_timed_out,
        counters.jobs_cancelled,
        counters.points,
        counters.core[0],
        bytes(counters.bytes_from_host),
        bytes(counters.bytes_to_host),
    )
}
