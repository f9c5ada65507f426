//! Errors of requests to the engine.

use std::fmt;
use std::time::Duration;

use super::{CircuitRef, InvalidName, JobId, RequestId};

/// Most names of circuits or generators that an error message lists.
const NAMES_MAX: usize = 20;

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Unfinished jobs of all clients together.
    Queue,
    /// Unfinished jobs of one client.
    ClientJobs,
    /// Bytes of all inputs on disk together.
    InputBytes,
    /// Open uploads.
    Uploads,
}

/// Reasons for refusing a request to the engine.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request contradicts itself or is malformed: it must be changed.
    #[error("{0}")]
    Invalid(String),
    /// A circuit's name is malformed.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// No circuit of that name or digest is registered.
    #[error(
        "no circuit {circuit} is registered: register it, or name another; {}",
        listed(known)
    )]
    UnknownCircuit {
        /// The circuit that was asked for.
        circuit: CircuitRef,
        /// Names of the registered circuits.
        known: Vec<String>,
    },
    /// No witness generator of that name is configured.
    #[error(
        "no witness generator {name:?} is configured: start the engine with one, or name another; {}",
        listed(known)
    )]
    UnknownGenerator {
        /// The generator that was asked for.
        name: String,
        /// Names of the configured generators.
        known: Vec<String>,
    },
    /// The job was never submitted, or its result was pruned.
    #[error("no job {0} is known: it was never submitted, or its result was kept long enough")]
    UnknownJob(JobId),
    /// The request id was used before with other content.
    #[error(
        "request {request} was submitted before with other content, as job {job}: use a new id"
    )]
    Conflict {
        /// The request.
        request: RequestId,
        /// The job that the id belongs to.
        job: JobId,
    },
    /// The name belongs to another circuit.
    #[error("the name {name:?} is taken by another circuit, {id}: choose another")]
    NameTaken {
        /// The name.
        name: String,
        /// The circuit that has it.
        id: super::CircuitId,
    },
    /// A resource is used up now; later the same request may succeed.
    #[error("{resource}: {used} of {limit}; try again in {} ms", retry_after.as_millis())]
    Exhausted {
        /// The resource that is used up.
        resource: Resource,
        /// The amount in use.
        used: u64,
        /// The most that may be in use.
        limit: u64,
        /// Suggested wait before the next try.
        retry_after: Duration,
    },
    /// A part of the request is over a limit.
    #[error("{what} is {size}, the limit is {limit}")]
    TooLarge {
        /// The part, and its unit.
        what: &'static str,
        /// The size of the part.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The work would never fit into the budget.
    #[error(
        "{what} needs {} of memory and the budget is {}, {} of them pinned: raise the budget, unpin \
         keys, or prove elsewhere",
        Mib(*needed),
        Mib(*total),
        Mib(*pinned)
    )]
    Impossible {
        /// The work that does not fit.
        what: String,
        /// The bytes that the work needs.
        needed: u64,
        /// The size of the budget, in bytes.
        total: u64,
        /// Bytes of keys that are pinned.
        pinned: u64,
    },
    /// A key is in use or pinned, and so cannot be evicted: the circuit's name, and which of the two.
    #[error("the key of {0} is {1}: it is not evicted")]
    InUse(String, &'static str),
    /// A circuit's files cannot be used.
    #[error("{0}")]
    Circuit(String),
    /// The engine drains and accepts nothing new.
    #[error("the engine is shutting down: submit elsewhere, or again once it is back")]
    Draining,
    /// The engine has ended. Accepted jobs are kept, and continue when the engine is started again.
    #[error("the engine has ended; what it accepted goes on when it is started again")]
    Stopped,
    /// A result from before a restart cannot be decoded.
    #[error("{0}")]
    Damaged(String),
    /// The state directory cannot be written.
    #[error("the engine's state cannot be kept: {0}")]
    Storage(String),
}

/// A number of bytes, displayed in mebibytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mib(pub(crate) u64);

/// The end of a sentence that lists names, at most [`NAMES_MAX`] of them.
pub(crate) fn listed(names: &[String]) -> String {
    let shown = names.len().min(NAMES_MAX);
    match (names.len() - shown, &names[..shown]) {
        (_, []) => "there is none".to_owned(),
        (0, [only]) => format!("there is {only}"),
        (0, some) => format!("there are {}", some.join(", ")),
        (more, some) => format!("there are {} and {more} more", some.join(", ")),
    }
}

// === impl Mib ===

impl fmt::Display for Mib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

// === impl Resource ===

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "the queue of jobs is full",
            Self::ClientJobs => "this client has as many jobs as it may",
            Self::InputBytes => "inputs take as many bytes on disk as they may",
            Self::Uploads => "as many uploads are open as may be",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_listed() {
        let names = |count: usize| (0..count).map(|it| format!("c{it}")).collect::<Vec<_>>();
        assert_eq!(listed(&names(0)), "there is none");
        assert_eq!(listed(&names(1)), "there is c0");
        assert_eq!(listed(&names(2)), "there are c0, c1");
        let many = listed(&names(NAMES_MAX + 3));
        assert!(many.ends_with("c19 and 3 more"), "{many}");
    }

    #[test]
    fn memory_is_shown_in_mebibytes() {
        let error = Error::Impossible {
            what: "a proof".to_owned(),
            needed: 3 << 19,
            total: 1 << 20,
            pinned: 0,
        };
        let text = error.to_string();
        assert!(
            text.contains("needs 1.5 MiB of memory and the budget is 1.0 MiB"),
            "{text}"
        );
    }
}
