//! The code of `proofmill.engine.v1`, from its proto files, without protoc.

use std::error::Error;
use std::path::PathBuf;

/// The proto files' folder, and the one that imports all others.
const FOLDER: &str = "proto";
const SERVICE: &str = "proofmill/engine/v1/engine.proto";

/// Messages that hold no witness: what they serialise to is what `--json` and `/status` show.
const SHOWN: [&str; 21] = [
    "AdmittedEvent",
    "BeganEvent",
    "BudgetStatus",
    "Circuit",
    "DeviceStatus",
    "EndedEvent",
    "EngineStatus",
    "Event",
    "EvictResponse",
    "Job",
    "JobCounts",
    "JobEvent",
    "KeyEvent",
    "ListCircuitsResponse",
    "MissedEvent",
    "OwnerUse",
    "PartitionOwner",
    "RegistrationOwner",
    "Span",
    "StageStatus",
    "SubmitResponse",
];

/// Fields that are enumerations, and the function that serialises each by its name.
const NAMED: [(&str, &str); 11] = [
    ("Job.priority", "priority"),
    ("Job.state", "job_state"),
    ("JobEvent.priority", "priority"),
    ("JobEvent.state", "job_state"),
    ("Circuit.tier", "tier"),
    ("Circuit.constraints_from", "constraints_from"),
    ("KeyEvent.tier", "tier"),
    ("StageStatus.stage", "stage"),
    ("BeganEvent.stage", "stage"),
    ("EndedEvent.stage", "stage"),
    ("EndedEvent.end", "stage_end"),
];

/// What holds witnesses: `proto.rs` shows their sizes only.
const SECRET: [&str; 3] = ["Partition", "GeneratorInputs", "SubmitStreamRequest"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut compiler = protox::Compiler::new([FOLDER])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_file(SERVICE)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(
        out.join("engine_descriptor.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    let path = |name: &str| format!(".proofmill.engine.v1.{name}");
    let mut builder = tonic_prost_build::configure()
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .skip_debug(SECRET.map(path));
    for message in SHOWN {
        builder = builder.type_attribute(path(message), "#[derive(serde::Serialize)]");
    }
    for oneof in ["Event.kind", "OwnerUse.owner"] {
        builder = builder.type_attribute(path(oneof), "#[serde(rename_all = \"snake_case\")]");
    }
    for (field, function) in NAMED {
        let attribute = format!("#[serde(serialize_with = \"super::named::{function}\")]");
        builder = builder.field_attribute(path(field), attribute);
    }
    builder.compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
