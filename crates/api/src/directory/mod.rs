//! A verifiable key directory over HTTP, read only: the last root, keys' states with their proofs, and the records of
//! epochs. Clients check all of it, so that the server need not be trusted; `docs/key-directory.md` says how.

mod routes;
mod server;
mod state;

pub use server::{DirectoryServeError, DirectoryServer};
