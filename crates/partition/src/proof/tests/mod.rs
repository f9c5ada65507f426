//! Whole proofs, against cheating provers and a second verifier.

mod case;
mod completeness;
mod distributed;
mod journals;
mod naive;
/// The second verifier of aggregates, which the tests of that crate are written around.
#[path = "../../../../aggregation/tests/aggregation/naive.rs"]
mod naive_aggregation;
mod simulation;
mod soundness;
