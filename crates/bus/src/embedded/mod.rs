//! The log in one directory, in one process: SQLite for the records, an index of live keys in
//! memory, and two writer threads that commit in groups. Beside the database lies a mark of what has
//! been promised, so that a log that has lost something is noticed.

mod image;
mod lock;
mod log;
mod loss;
mod mark;
mod options;
mod store;
mod verify;
mod wal;
mod writer;

pub use lock::{DirectoryLock, LockError, open_lock_file};
pub use log::EmbeddedLog;
pub use loss::Loss;
pub use options::{OpenError, Options};
