//! Identity of a peer of the coordinator, as ensured by the transport.
//!
//! On a cluster a worker's process publishes on a subject that ends with its worker group and its
//! user, and the server lets each user publish on its own subjects only. A worker's name contains
//! both, so that no process can name a worker of another user, and the core can derive a worker's
//! user from its name alone.

use std::sync::Arc;

/// Identity of a peer of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {
    /// The coordinator's own process, which may act for every worker.
    Local,
    /// A user of the bus, for the workers of one group.
    Remote {
        /// The worker group.
        group: Arc<str>,
        /// The user.
        user: Arc<str>,
    },
}

// === impl Principal ===

impl Principal {
    /// Whether a worker with this name belongs to the principal: `NAME@GROUP.USER`, or
    /// `NAME@GROUP.USER.PROCESS`.
    pub fn owns(&self, worker: &str) -> bool {
        match self {
            Self::Local => true,
            Self::Remote { group, user } => {
                group_and_user(worker).is_some_and(|found| found == (&**group, &**user))
            }
        }
    }

    /// Whether the principal's workers may work for the group.
    pub fn may_join(&self, group: &str) -> bool {
        match self {
            Self::Local => true,
            Self::Remote { group: own, .. } => **own == *group,
        }
    }
}

/// The identity of a worker for quorum counting: two results of one task count only if their
/// identities differ. It is group and user for a worker on a cluster, whatever name the worker
/// chooses, and the name for a worker in the coordinator's own process.
pub fn quorum_id(worker: &str) -> &str {
    match group_and_user(worker) {
        Some((group, user)) => {
            let from = worker.len() - address(worker).map_or(0, str::len);
            &worker[from..from + group.len() + 1 + user.len()]
        }
        None => worker,
    }
}

/// The full name of a principal's worker; `worker` is its name within the process.
pub fn worker_name(worker: &str, group: &str, user: &str, process: &str) -> String {
    format!("{worker}@{group}.{user}.{process}")
}

fn address(worker: &str) -> Option<&str> {
    worker.rsplit_once('@').map(|(_, address)| address)
}

fn group_and_user(worker: &str) -> Option<(&str, &str)> {
    let mut tokens = address(worker)?.split('.');
    let (group, user) = (tokens.next()?, tokens.next()?);
    (!group.is_empty() && !user.is_empty()).then_some((group, user))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(group: &str, user: &str) -> Principal {
        Principal::Remote {
            group: group.into(),
            user: user.into(),
        }
    }

    #[test]
    fn a_principal_owns_workers_that_carry_its_group_and_user() {
        let principal = remote("prove", "alice");
        assert!(principal.owns("prove-0@prove.alice"));
        assert!(principal.owns(&worker_name("prove-0", "prove", "alice", "host-7")));
        for other in [
            "prove-0",
            "prove-0@prove",
            "prove-0@prove.bob",
            "prove-0@verify.alice",
            "prove-0@prove.alice@verify.bob",
            "prove-0@prove.alicex",
            "",
        ] {
            assert!(!principal.owns(other), "{other}");
        }
        assert!(Principal::Local.owns("anything"));
        assert!(principal.may_join("prove") && !principal.may_join("verify"));
    }

    #[test]
    fn a_quorum_id_is_the_user_and_not_the_worker() {
        let of = |name, process| worker_name(name, "prove", "alice", process);
        assert_eq!(quorum_id(&of("a", "x")), quorum_id(&of("b", "y")));
        assert_eq!(quorum_id(&of("a", "x")), "prove.alice");
        assert_eq!(quorum_id("prove-0@prove.alice"), "prove.alice");
        assert_ne!(
            quorum_id(&worker_name("a", "prove", "bob", "x")),
            "prove.alice"
        );
        assert_ne!(quorum_id("prove-0"), quorum_id("prove-1"));
    }
}
