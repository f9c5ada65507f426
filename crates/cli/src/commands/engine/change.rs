//! `proofmill engine register`, `unregister`, `preload`, `evict`, `pin` and `cancel`

use std::path::{Path, PathBuf};

use proofmill_api::engine::proto::register_request::Source;
use proofmill_api::engine::proto::{Circuit, RegisterRequest, SystemFiles, Tier};
use serde_json::json;

use super::failure::state;
use super::{bytes, connect, refused};
use crate::args::engine::{CircuitArgs, JobArgs, KeyTier, Preload, Register};
use crate::failure::Failure;
use crate::output;

pub(crate) async fn register(args: Register) -> Result<(), Failure> {
    let source = match (&args.zkey, &args.constraints, &args.key) {
        (Some(zkey), _, _) => Source::Zkey(absolute(zkey)?),
        (None, Some(constraints), Some(key)) => Source::System(SystemFiles {
            constraints: absolute(constraints)?,
            key: absolute(key)?,
        }),
        _ => {
            return Err(Failure::usage(
                "--zkey, or --constraints and --key, are needed",
            ));
        }
    };
    let request = RegisterRequest {
        name: args.name,
        source: Some(source),
    };
    let client = connect(&args.query.engine).await?;
    let circuit = client
        .register(request)
        .await
        .map_err(|error| refused(&error))?;
    print_circuit(&circuit, args.query.json)
}

/// An absolute path, because the engine may run in another directory.
pub(in crate::commands) fn absolute(path: &Path) -> Result<String, Failure> {
    let path: PathBuf = std::fs::canonicalize(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    path.into_os_string()
        .into_string()
        .map_err(|path| Failure::new(format!("{}: not text", path.display())))
}

pub(crate) async fn unregister(args: &CircuitArgs) -> Result<(), Failure> {
    let client = connect(&args.query.engine).await?;
    let outcome = client.unregister(&args.circuit).await;
    outcome.map_err(|error| refused(&error))?;
    if args.query.json {
        return output::line(json!({ "unregistered": args.circuit }).to_string());
    }
    output::line(format!("{} is forgotten", args.circuit))
}

pub(crate) async fn preload(args: &Preload) -> Result<(), Failure> {
    let tier = match args.tier {
        KeyTier::Warm => Tier::Warm,
        KeyTier::Hot => Tier::Hot,
    };
    let client = connect(&args.query.engine).await?;
    let circuit = client.preload(&args.circuit, tier).await;
    print_circuit(&circuit.map_err(|error| refused(&error))?, args.query.json)
}

pub(crate) async fn evict(args: &CircuitArgs) -> Result<(), Failure> {
    let client = connect(&args.query.engine).await?;
    let freed_bytes = client
        .evict(&args.circuit)
        .await
        .map_err(|error| refused(&error))?;
    if args.query.json {
        return output::line(json!({ "circuit": args.circuit, "bytes": freed_bytes }).to_string());
    }
    output::line(format!(
        "{}: {} given back",
        args.circuit,
        bytes(freed_bytes)
    ))
}

pub(crate) async fn pin(args: &CircuitArgs, pinned: bool) -> Result<(), Failure> {
    let client = connect(&args.query.engine).await?;
    let circuit = client.pin(&args.circuit, pinned).await;
    print_circuit(&circuit.map_err(|error| refused(&error))?, args.query.json)
}

pub(crate) async fn cancel(args: &JobArgs) -> Result<(), Failure> {
    let client = connect(&args.query.engine).await?;
    let job = client
        .cancel(&args.job)
        .await
        .map_err(|error| refused(&error))?;
    if args.query.json {
        return output::line(serde_json::to_string(&job)?);
    }
    output::line(output::plain(&format!("{}: {}", job.id, state(&job))))
}

fn print_circuit(circuit: &Circuit, json: bool) -> Result<(), Failure> {
    if json {
        return output::line(serde_json::to_string(circuit)?);
    }
    output::line(output::plain(&format!(
        "{}: {}, {} variables, {} public; its key is {}{}, {} when hot, a proof takes {} more; {} are \
         needed to load the key and prove; id {}",
        circuit.name,
        circuit.curve,
        circuit.variables,
        circuit.public_inputs,
        Tier::short_name(circuit.tier),
        if circuit.pinned { " and pinned" } else { "" },
        bytes(circuit.hot_bytes),
        bytes(circuit.work_bytes),
        bytes(circuit.needed_bytes),
        circuit.id,
    )))
}
