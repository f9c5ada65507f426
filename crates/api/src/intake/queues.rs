//! The queues that a client may post to.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::StatusCode;
use proofmill_orchestrator::plan::{Plan, QueueIx};

use crate::gate::Caller;
use crate::refused::Refused;

/// Prefix of a client's right in the file of tokens.
const RIGHT: &str = "queues=";

/// The queues that a client may post to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Queues {
    /// Queues that no stage writes, so that no message can pass for a stage's result.
    #[default]
    Unwritten,
    /// These queues, even if stages write them.
    Named(Arc<BTreeSet<Box<str>>>),
    /// All queues.
    All,
}

// === impl Queues ===

impl Queues {
    /// Parses the words after a token: none, `queues=a,b` or `queues=*`.
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        let expected = |word: &str| {
            format!(
                "{word:?}: expected `{RIGHT}NAME,NAME`, or `{RIGHT}*` for every queue, or nothing"
            )
        };
        let names = match words {
            [] => return Ok(Self::Unwritten),
            [word] => word.strip_prefix(RIGHT).ok_or_else(|| expected(word))?,
            [_, more, ..] => return Err(expected(more)),
        };
        if names == "*" {
            return Ok(Self::All);
        }
        let names: BTreeSet<Box<str>> = names.split(',').map(Box::from).collect();
        if names.iter().any(|name| name.is_empty() || &**name == "*") {
            return Err(expected(words[0]));
        }
        Ok(Self::Named(Arc::new(names)))
    }

    /// Named queues that a workflow does not have.
    pub(super) fn unknown<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a str> {
        let named = match self {
            Self::Named(names) => Some(names.iter()),
            Self::Unwritten | Self::All => None,
        };
        let names = named.into_iter().flatten().map(|name| &**name);
        names.filter(|name| plan.queue_named(name).is_none())
    }
}

// === impl Caller ===

impl Caller<Queues> {
    /// Checks that the caller may post to a queue.
    pub(super) fn check(&self, plan: &Plan, queue: QueueIx) -> Result<(), Refused> {
        let name = &*plan.queue(queue).name;
        let is_written = || {
            plan.stages
                .iter()
                .any(|stage| stage.outputs.contains(&queue))
        };
        let why = match &self.rights {
            Queues::All => return Ok(()),
            Queues::Named(names) if names.contains(name) => return Ok(()),
            Queues::Unwritten if !is_written() => return Ok(()),
            Queues::Named(names) => {
                let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                format!(
                    "its line in the file of tokens has {RIGHT}{}",
                    names.join(",")
                )
            }
            Queues::Unwritten => format!(
                "a stage writes the queue, so that only a token with `{RIGHT}{name}` in the file \
                 of tokens may"
            ),
        };
        let who = match &self.client {
            Some(client) => format!("client {client:?}"),
            None => "a caller without a token".to_owned(),
        };
        let why = format!("{who} may not post to queue {name:?}: {why}");
        Err(Refused::new(StatusCode::FORBIDDEN, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_to_queues_are_parsed() {
        assert_eq!(Queues::parse(&[]), Ok(Queues::Unwritten));
        assert_eq!(Queues::parse(&["queues=*"]), Ok(Queues::All));
        let named = BTreeSet::from(["a".into(), "b".into()]);
        let named = Queues::Named(Arc::new(named));
        assert_eq!(Queues::parse(&["queues=a,b"]), Ok(named));
        for wrong in [
            &["a"][..],
            &["queues="],
            &["queues=a,,b"],
            &["queues=a,*"],
            &["queues=a", "b"],
            &["operator"],
        ] {
            let refused = Queues::parse(wrong).expect_err("refused");
            assert!(refused.contains("expected `queues=NAME,NAME`"), "{refused}");
        }
    }
}
