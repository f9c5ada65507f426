//! Permission errors of the server.
//!
//! The server reports them separately from the operation, which simply gets no answer, so a caller
//! that waits for an answer also waits for a refusal.

use std::sync::Arc;

use tokio::sync::watch;

/// First token of the subjects on which answers are received.
pub(super) const INBOX: &str = "_INBOX";

/// The server denies this process's user a permission that the process needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server does not let this {member} {action} {subject:?}: give its user that permission \
     (deploy/nats/cluster.conf has each role's), or connect as the user of this role"
)]
pub struct Refusal {
    /// Name of the process's membership.
    member: &'static str,
    action: &'static str,
    subject: String,
}

/// The first refusal on a connection, shared by all who wait.
#[derive(Clone, Debug)]
pub(super) struct Refusals {
    /// Name of the process's membership.
    member: &'static str,
    first: Arc<watch::Sender<Option<Refusal>>>,
}

// === impl Refusal ===

impl Refusal {
    /// The subject to which access is denied.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Parses the server's error message; `None` if it is not a permission error.
    fn parse(member: &'static str, said: &str) -> Option<Self> {
        const PUBLISH: &str = "Permissions Violation for Publish to \"";
        const SUBSCRIBE: &str = "Permissions Violation for Subscription to \"";
        let after = |start: &str| Some(said.split_once(start)?.1.split_once('"')?.0.to_owned());
        let (action, subject) = after(PUBLISH)
            .map(|subject| ("publish to", subject))
            .or_else(|| after(SUBSCRIBE).map(|subject| ("listen on", subject)))?;
        Some(Self {
            member,
            action,
            subject,
        })
    }
}

// === impl Refusals ===

impl Refusals {
    pub(super) fn new(member: &'static str) -> Self {
        Self {
            member,
            first: Arc::new(watch::Sender::new(None)),
        }
    }

    /// Handles an error message of the server; remembers it if it is a refusal.
    pub(super) fn note(&self, said: &str) {
        let Some(refusal) = Refusal::parse(self.member, said) else {
            tracing::warn!(said, "the bus complains");
            return;
        };
        if refusal.action == "publish to" && refusal.subject.starts_with(INBOX) {
            // The reply came too late; the asker asks again.
            tracing::debug!(subject = refusal.subject, "an answer was not let through");
            return;
        }
        tracing::error!("{refusal}");
        self.first.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(refusal);
            is_first
        });
    }

    /// Waits for the first refusal.
    pub(super) async fn first(&self) -> Refusal {
        let mut first = self.first.subscribe();
        match first
            .wait_for(Option::is_some)
            .await
            .map(|found| found.clone())
        {
            Ok(Some(refusal)) => refusal,
            // The sender is in `self`, so this is never reached.
            _ => std::future::pending().await,
        }
    }

    /// The result of `work`, unless the server refuses something first.
    pub(super) async fn or<T>(&self, work: impl Future<Output = T>) -> Result<T, Refusal> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            refusal = self.first() => Err(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_server_are_parsed() {
        let parse = |said| Refusal::parse("source", said);
        let refusal = parse("nats: Permissions Violation for Publish to \"a.b\"").unwrap();
        assert_eq!(refusal.subject(), "a.b");
        assert!(
            refusal.to_string().contains("source publish to \"a.b\""),
            "{refusal}"
        );
        let refusal = parse("Permissions Violation for Subscription to \"a.*\" using queue \"q\"");
        let refusal = refusal.unwrap();
        assert!(
            refusal.to_string().contains("listen on \"a.*\""),
            "{refusal}"
        );
        assert_eq!(parse("maximum connections exceeded"), None);
    }
}
