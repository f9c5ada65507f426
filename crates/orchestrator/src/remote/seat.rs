//! Seats: the sender identity that the server ensures by the subject a client may publish on.

use std::fmt;
use std::sync::Arc;

use super::role::Role;
use crate::principal::Principal;

/// The role of a client; for workers also their group and their user. Written as tokens of a
/// subject: `source`, `dispatcher.GROUP.USER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    role: Role,
    workers: Option<(Arc<str>, Arc<str>)>,
}

// === impl Seat ===

impl Seat {
    /// The seat of a role that has no workers.
    pub fn of(role: Role) -> Self {
        Self {
            role,
            workers: None,
        }
    }

    /// The seat of a user's workers of one group. Both names are single tokens of a subject.
    pub fn of_workers(group: &str, user: &str) -> Self {
        Self {
            role: Role::Dispatcher,
            workers: Some((group.into(), user.into())),
        }
    }

    /// The seat that a call on this subject comes from; `None` for any other subject.
    pub fn on_subject(subject: &str) -> Option<Self> {
        // PREFIX.leader.WORKFLOW.SEAT
        let mut tokens = subject.split('.').skip(3);
        let role = tokens.next()?;
        let rest: Vec<&str> = tokens.collect();
        if rest.iter().any(|token| token.is_empty()) {
            return None;
        }
        let plain = [
            Role::Collector,
            Role::Sequencer,
            Role::Source,
            Role::Operator,
            Role::Console,
        ];
        match rest[..] {
            [group, user] if role == Role::Dispatcher.name() => Some(Self::of_workers(group, user)),
            [] => {
                let role = plain.into_iter().find(|plain| plain.name() == role)?;
                Some(Self::of(role))
            }
            _ => None,
        }
    }

    /// The role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Principal whose workers the seat may act for; `None` for a role without workers.
    pub fn principal(&self) -> Option<Principal> {
        let (group, user) = self.workers.clone()?;
        Some(Principal::Remote { group, user })
    }

    /// The name of the client `client` within the seat; `None` if the client belongs to another
    /// seat, or its name is not a single token.
    pub fn name_of<'a>(&self, client: &'a str) -> Option<&'a str> {
        let name = client.strip_prefix(&self.to_string())?.strip_prefix('.')?;
        let is_token = !name.is_empty() && !name.contains(['.', '*', '>', ' ']);
        is_token.then_some(name)
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.role)?;
        match &self.workers {
            Some((group, user)) => write!(f, ".{group}.{user}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_read_from_the_subject_of_a_call() {
        let console = Seat::of(Role::Console);
        for seat in [
            Seat::of(Role::Source),
            console,
            Seat::of_workers("prove", "alice"),
        ] {
            let subject = format!("proofmill.leader.w.{seat}");
            assert_eq!(Seat::on_subject(&subject), Some(seat));
        }
        for subject in [
            "proofmill.leader.w",
            "proofmill.leader.w.dispatcher",
            "proofmill.leader.w.dispatcher.prove",
            "proofmill.leader.w.dispatcher..alice",
            "proofmill.leader.w.dispatcher.prove.alice.more",
            "proofmill.leader.w.source.more",
            "proofmill.leader.w.coordinator",
            "",
        ] {
            assert_eq!(Seat::on_subject(subject), None, "{subject}");
        }
    }

    #[test]
    fn a_client_speaks_from_the_seat_that_its_name_begins_with() {
        let seat = Seat::of_workers("prove", "alice");
        assert_eq!(seat.name_of("dispatcher.prove.alice.n-1"), Some("n-1"));
        for client in [
            "dispatcher.prove.alice",
            "dispatcher.prove.alice.",
            "dispatcher.prove.alicen-1",
            "dispatcher.prove.bob.n-1",
            "dispatcher.verify.alice.n-1",
            "dispatcher.prove.alice.a.b",
            "dispatcher.prove.alice.*",
            "dispatcher.prove.alice.>",
            "source.n-1",
        ] {
            assert_eq!(seat.name_of(client), None, "{client}");
        }
    }
}
