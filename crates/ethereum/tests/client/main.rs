//! The client without a node: transactions that others signed, and servers that answer as the test says.

mod answers;
mod server;
mod signers;
mod transactions;
