//! Generates the code of `proofmill.engine.v1`, `proofmill.mill.v1` and `proofmill.verifier.v1`, of OTLP's collector of
//! traces and of KEDA's `externalscaler`, from their proto files, without protoc.

use std::error::Error;
use std::path::PathBuf;

use tonic_prost_build::Builder;

/// Folder of the proto files.
const FOLDER: &str = "proto";
/// For each service, the file that imports all others.
const ENGINE: &str = "proofmill/engine/v1/engine.proto";
const INTAKE: &str = "proofmill/mill/v1/intake.proto";
const VERIFIER: &str = "proofmill/verifier/v1/verifier.proto";
const TRACES: &str = "otlp/trace_service.proto";
const SCALER: &str = "externalscaler/externalscaler.proto";
/// The codec that encodes and decodes messages.
const CODEC: &str = "crate::grpc::Codec";

/// Messages without witnesses, which `--json` and `/status` serialise.
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

/// Enumeration fields, each with the function that serialises it by name.
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

/// Messages that hold witnesses: `proto.rs` implements `Debug` for them, which shows only sizes.
const SECRET: [&str; 3] = ["Partition", "GeneratorInputs", "SubmitStreamRequest"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    engine()?;
    intake()?;
    verifier()?;
    traces()?;
    compile(builder(), SCALER, "scaler_descriptor.bin")
}

fn engine() -> Result<(), Box<dyn Error>> {
    let path = |name: &str| format!(".proofmill.engine.v1.{name}");
    let mut builder = builder().skip_debug(SECRET.map(path));
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
    compile(builder, ENGINE, "engine_descriptor.bin")
}

fn intake() -> Result<(), Box<dyn Error>> {
    // Payloads are not copied.
    let builder = builder().bytes(".proofmill.mill.v1.SubmitRequest.payload");
    compile(builder, INTAKE, "intake_descriptor.bin")
}

fn verifier() -> Result<(), Box<dyn Error>> {
    // Proofs and keys are not copied.
    let builder = builder().bytes(".proofmill.verifier.v1");
    compile(builder, VERIFIER, "verifier_descriptor.bin")
}

fn traces() -> Result<(), Box<dyn Error>> {
    compile(builder(), TRACES, "traces_descriptor.bin")
}

fn builder() -> Builder {
    tonic_prost_build::configure()
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .codec_path(CODEC)
}

/// Compiles a service, and stores its encoded files for reflection.
fn compile(builder: Builder, service: &str, descriptors: &str) -> Result<(), Box<dyn Error>> {
    let mut compiler = protox::Compiler::new([FOLDER])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_file(service)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join(descriptors), compiler.encode_file_descriptor_set())?;
    builder.compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
