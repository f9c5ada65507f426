//! Memberships: the part of a process in its cluster, as far as the bus has to know it.

/// Membership of a process in a cluster: its name in subjects, and its reaction to a stream that
/// does not exist. The programs that use the bus define their memberships. The actual permissions
/// of a process are those of its user on the server.
///
/// ```
/// use proofmill_bus::{Membership, MissingStream};
///
/// let missing = MissingStream::Wait { creator: "keeper" };
/// let reader = Membership::new("reader", missing).with_user();
/// assert_eq!(reader.name(), "reader");
/// assert!(reader.has_user() && !reader.creates_streams());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    name: &'static str,
    missing_stream: MissingStream,
    has_user: bool,
}

/// Reaction of a process to a stream that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MissingStream {
    /// The process creates the stream. Its leases are in a stream apart from those of all other
    /// processes: see [`Leases`](crate::Leases).
    Create,
    /// The process waits until another has created the stream.
    Wait {
        /// Name of the processes that create streams, for messages.
        creator: &'static str,
    },
    /// The process gets an error.
    Fail {
        /// Name of the processes that create streams, for the error's text.
        creator: &'static str,
    },
}

// === impl Membership ===

impl Membership {
    /// A membership without the user in its subjects. `name` is one token of a subject: ASCII
    /// letters, digits, `_` and `-`.
    pub const fn new(name: &'static str, missing_stream: MissingStream) -> Self {
        Self {
            name,
            missing_stream,
            has_user: false,
        }
    }

    /// The same membership, with the process's user, if it has one, after the name in subjects.
    pub const fn with_user(self) -> Self {
        Self {
            has_user: true,
            ..self
        }
    }

    /// The name in subjects.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Reaction to a stream that does not exist.
    pub const fn missing_stream(self) -> MissingStream {
        self.missing_stream
    }

    /// Whether the process's user, if it has one, follows the name in subjects.
    pub const fn has_user(self) -> bool {
        self.has_user
    }

    /// Whether the process creates streams that do not exist.
    pub const fn creates_streams(self) -> bool {
        matches!(self.missing_stream, MissingStream::Create)
    }
}

impl Default for Membership {
    /// A process named `process`, which creates missing streams.
    fn default() -> Self {
        Self::new("process", MissingStream::Create)
    }
}
