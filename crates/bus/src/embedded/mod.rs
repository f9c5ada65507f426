//! The log in one directory, in one process: SQLite for the records, an index of live keys in
//! memory, and a writer thread that commits in groups.

mod lock;
mod log;
mod options;
mod store;
mod writer;

pub use lock::{DirectoryLock, LockError};
pub use log::EmbeddedLog;
pub use options::{OpenError, Options};
