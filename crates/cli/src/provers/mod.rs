//! The built-in provers, sources and engine clients, registered under the names that workflow files use.

mod bitcoin;
mod chunk;
mod chunk_engine;
mod headers;
mod partition;
mod range;
mod settle;
mod shared_verifier;
mod verify;

pub(crate) use bitcoin::{KeyFiles, Keys, OnProverEvent, ProverEvent};
pub(crate) use chunk::EmittedChunk;
pub(crate) use chunk_engine::ChunkEngine;
pub(crate) use partition::{
    Batches, Job, PARTS_MAX, PartitionProvers, engine_circuit_name, part_engines, published_store,
};
pub(crate) use range::StatedRange;

use std::path::Path;
use std::sync::Arc;

use proofmill_orchestrator::mill::Registry;
use proofmill_workflow::SourceKind;

/// All built-in provers and sources; `keys` is the directory of proving keys.
pub(crate) fn registry(keys: &Path) -> Registry {
    registry_with(
        Keys::in_directory(keys),
        Arc::new(|_| {}),
        PartitionProvers::alone(),
    )
}

/// As [`registry`], with a shared store of keys, a callback for the provers' events, and the provers of circuits in parts.
pub(crate) fn registry_with(
    keys: Keys,
    on_event: OnProverEvent,
    partition: PartitionProvers,
) -> Registry {
    let mut registry = Registry::default();
    let (proving, watching) = (keys.clone(), on_event.clone());
    registry.prover("bitcoin.prove", move |params| {
        bitcoin::Prove::new(params, proving.clone(), watching.clone())
    });
    registry.verifier("bitcoin.verify", move |params| {
        verify::Verify::new(params, keys.clone(), on_event.clone())
    });
    partition.register(&mut registry);
    registry.payload_form("bitcoin.header-chain", settle::header_chain());
    registry.endpoints(Arc::new(proofmill_api::engine::endpoints));
    registry.source(Arc::new(|kind| match kind {
        SourceKind::Headers {
            file,
            start,
            end,
            chunk,
        } => Some(headers::Headers::open(
            file.as_deref(),
            *start,
            *end,
            *chunk,
        )),
        _ => None,
    }));
    registry
}
