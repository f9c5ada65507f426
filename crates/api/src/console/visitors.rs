//! Visitors of the console: their roles, the tokens with which they log in, and who may look without one.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;

use crate::access::{AccessError, Clients, Token};

/// Name of the operator who logs in with the address that the program prints.
const OPERATOR_OF_THIS_RUN: &str = "operator";

/// The rights of a visitor; each role has those of the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Sees everything, and changes nothing.
    Viewer,
    /// Acts, and sees the audit log.
    Operator,
}

/// Those who may visit.
pub(super) struct Visitors {
    clients: Option<Clients<Role>>,
    /// Whether a visitor may look without having logged in.
    open: bool,
    /// Token of an operator that was made for this run.
    token_of_this_run: Option<String>,
}

// === impl Role ===

impl Role {
    /// The role as a word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }
}

/// The role from the words after a token.
fn role(words: &[&str]) -> Result<Role, String> {
    match words {
        ["viewer"] => Ok(Role::Viewer),
        ["operator"] => Ok(Role::Operator),
        [] => Err("expected `viewer` or `operator` after the token".to_owned()),
        ["viewer" | "operator", other, ..] | [other, ..] => Err(format!(
            "{other:?} is not a role: expected `viewer` or `operator` after the token"
        )),
    }
}

// === impl Visitors ===

impl Visitors {
    /// The clients of a file, with a name, a token and a role on each line. Nobody looks without a token.
    pub(super) async fn of_file(path: &Path) -> Result<Self, AccessError> {
        Ok(Self {
            clients: Some(Clients::read(path, None, role).await?),
            open: false,
            token_of_this_run: None,
        })
    }

    /// Everybody looks, and one operator has a token that is made now.
    pub(super) fn of_this_run() -> Result<Self, String> {
        let token = random_text()?;
        let line = format!("{OPERATOR_OF_THIS_RUN} {token} operator");
        Ok(Self {
            clients: Some(Clients::parse(&line, None, role)?),
            open: true,
            token_of_this_run: Some(token),
        })
    }

    /// Everybody looks, and nobody acts.
    pub(super) fn onlookers() -> Self {
        Self {
            clients: None,
            open: true,
            token_of_this_run: None,
        }
    }

    /// Whether a visitor may look without having logged in.
    pub(super) fn may_look(&self) -> bool {
        self.open
    }

    /// Whether anybody may log in.
    pub(super) fn may_log_in(&self) -> bool {
        self.clients.is_some()
    }

    /// The token that was made for this run.
    pub(super) fn token_of_this_run(&self) -> Option<&str> {
        self.token_of_this_run.as_deref()
    }

    /// Name and role of the client with this token. Timing reveals nothing about tokens.
    pub(super) fn find(&self, word: &str) -> Option<(Arc<str>, Role)> {
        let shown = Token::try_new(word).ok()?;
        let client = self.clients.as_ref()?.find_by_token(&shown)?;
        Some((client.name.clone(), client.rights))
    }
}

/// A random number of 256 bits, in hexadecimal.
pub(super) fn random_text() -> Result<String, String> {
    let mut bytes = [0; 32];
    let filled = ring::default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_a_role() {
        let parse = |text: &str| Clients::parse(text, None, role);
        let clients = parse("alice 0123456789abcdef operator\nbob fedcba9876543210 viewer");
        let clients = clients.expect("clients");
        let roles: Vec<_> = clients.iter().map(|it| (&*it.name, it.rights)).collect();
        assert_eq!(roles, [("alice", Role::Operator), ("bob", Role::Viewer)]);
        for (text, why) in [
            ("alice 0123456789abcdef", "line 1: expected `viewer` or"),
            ("alice 0123456789abcdef admin", "\"admin\" is not a role"),
            (
                "alice 0123456789abcdef viewer operator",
                "\"operator\" is not",
            ),
        ] {
            let refused = parse(text).expect_err("refused");
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn the_token_of_this_run_is_an_operators_and_new_each_time() {
        let visitors = Visitors::of_this_run().expect("random numbers");
        let token = visitors.token_of_this_run().expect("one").to_owned();
        let found = visitors.find(&token);
        assert_eq!(found, Some((OPERATOR_OF_THIS_RUN.into(), Role::Operator)));
        let other = Visitors::of_this_run().expect("random numbers");
        assert!(other.find(&token).is_none() && other.may_look());
        assert!(visitors.find("").is_none() && visitors.find("0123456789abcdef").is_none());
    }

    #[test]
    fn onlookers_look_and_cannot_log_in() {
        let onlookers = Visitors::onlookers();
        assert!(onlookers.may_look() && !onlookers.may_log_in());
        assert!(onlookers.find("0123456789abcdef").is_none());
        let visitors = Visitors::of_this_run().expect("random numbers");
        assert!(visitors.may_log_in());
    }
}
