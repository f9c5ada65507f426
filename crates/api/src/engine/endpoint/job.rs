//! A stage's job in the engine's terms, for a local or a remote engine.

use proofmill_engine::Priority;
use proofmill_r1cs::iden3::WTNS_FORMAT;
use proofmill_workflow::EnginePriority;

/// Converts the priority that a workflow sets.
pub(super) fn priority(priority: EnginePriority) -> Priority {
    match priority {
        EnginePriority::Low => Priority::Low,
        EnginePriority::Normal => Priority::Normal,
        EnginePriority::High => Priority::High,
        EnginePriority::Critical => Priority::Critical,
    }
}

/// Whether a witness is a `.wtns` file; otherwise it is a vector of numbers.
pub(super) fn is_wtns(witness: &[u8]) -> bool {
    witness.starts_with(&WTNS_FORMAT.magic)
}
