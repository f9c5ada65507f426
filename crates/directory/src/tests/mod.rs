//! Tests of more than one module.

mod batches;
mod case;
mod cheats;
mod crashes;
mod epochs;
mod hostile;
mod inclusion;
mod store;
mod tree;
mod variables;
