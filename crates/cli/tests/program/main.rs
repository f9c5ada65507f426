//! The program as a person, a script or an init system uses it: real processes, real files, real
//! signals.

#![expect(
    clippy::disallowed_methods,
    reason = "nothing else runs on these threads"
)]

mod aggregate;
mod attacks;
mod block;
mod cancel;
mod circom;
mod cluster_console;
mod cluster_metrics;
mod cluster_roles;
mod dead_bundles;
mod demo_aggregate;
mod demo_crashes;
mod demo_headers;
mod doctor;
mod dropped;
mod ending;
mod engine;
mod engine_crashes;
mod engine_jobs;
mod engine_network;
mod ethproofs;
#[path = "../../../ethproofs/tests/mill/site.rs"]
mod ethproofs_site;
mod examples;
mod files;
mod insecure_keys;
mod intake;
mod late;
mod layers;
mod losses;
mod lying_engines;
mod lying_peers;
mod lying_workers;
mod machine;
mod operate;
mod partition;
mod pause;
mod push0;
mod rv32;
mod solidity;
#[path = "../../../telemetry/tests/openmetrics/strict.rs"]
mod strict;
mod support;
mod top;
mod trace_logs;
mod traces;
mod usage;
mod verifier;
mod verifier_http;
mod verifier_network;
mod verifier_streams;
mod verify_files;
mod vkd;
mod vkd_http;
mod waiting;
mod zkpu;
mod zkpu_engine;
#[path = "../../../zkpu/tests/common/mod.rs"]
mod zkpu_target;
