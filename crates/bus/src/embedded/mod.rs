//! The log in one directory, used by one process: SQLite for the records, an index of live keys in
//! memory, and two writer threads that commit in groups. A high-water mark beside the database
//! shows whether a log has lost durable records.

mod image;
mod log;
mod loss;
mod mark;
mod options;
mod store;
mod verify;
mod wal;
mod writer;

pub use log::EmbeddedLog;
pub use loss::Loss;
pub use options::{OpenError, Options};
