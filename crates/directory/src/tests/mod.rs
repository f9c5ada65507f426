//! Tests of more than one module.

mod answers;
mod batches;
mod case;
mod cheats;
mod crashes;
mod distribution;
mod epochs;
mod hostile;
mod inclusion;
mod store;
mod tree;
mod variables;
mod witness;
