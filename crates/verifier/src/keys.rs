//! Verifying keys, by their digests.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::erased::AnyKey;
use crate::kind::UnusableKey;
use crate::kinds::Kinds;

/// A key's digest: SHA-256 of the kind's name, a zero byte, and the key's bytes as sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyDigest([u8; 32]);

/// A text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key's digest has 64 hexadecimal digits")]
pub struct NoDigest;

/// Limits of the keys of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    /// Keys of one client.
    pub keys: usize,
    /// The most bytes of one client's keys, as sent.
    pub bytes: usize,
}

/// The reason why a key is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No kind has that name.
    #[error("no kind of proof is called {name:?}: there are {known}")]
    UnknownKind {
        /// The name in the request, cut short if it is long.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The kind has no keys.
    #[error("{0} has no keys")]
    NoKeys(String),
    /// The key cannot be used.
    #[error(transparent)]
    Unusable(#[from] UnusableKey),
    /// The client has as many as it may.
    #[error(
        "{keys} keys of {bytes} bytes: a client may have {} of {} bytes; remove some", limits.keys, limits.bytes
    )]
    TooMany {
        /// Keys that it would have.
        keys: usize,
        /// Bytes that they would have.
        bytes: usize,
        /// The limits exceeded.
        limits: KeyLimits,
    },
}

/// A key in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The key's digest.
    pub digest: KeyDigest,
    /// The kind of proofs that it is for.
    pub kind: String,
    /// The key's length in bytes, as sent.
    pub bytes: usize,
}

/// The keys of all clients. A key that several clients have is held once.
#[derive(Debug)]
pub(crate) struct Keys {
    limits: KeyLimits,
    held: HashMap<KeyDigest, Held>,
    /// The keys of each client, in the order in which they were added.
    by_client: BTreeMap<Arc<str>, Vec<KeyDigest>>,
}

struct Held {
    kind: usize,
    key: AnyKey,
    bytes: usize,
    clients: usize,
}

// === impl Keys ===

impl Keys {
    pub(crate) fn new(limits: KeyLimits) -> Self {
        Self {
            limits,
            held: HashMap::new(),
            by_client: BTreeMap::new(),
        }
    }

    /// The key for a kind, if the client has it.
    pub(crate) fn get(&self, client: &str, digest: KeyDigest, kind: usize) -> Option<AnyKey> {
        let own = self.by_client.get(client)?;
        let held = self.held.get(&digest).filter(|held| held.kind == kind)?;
        own.contains(&digest).then(|| held.key.clone())
    }

    /// Whether the client may add a key of `key_bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`KeyError::TooMany`].
    pub(crate) fn check_room(&self, client: &str, key_bytes: usize) -> Result<(), KeyError> {
        let own = self.list(client);
        let bytes = own.iter().map(|key| key.bytes).sum::<usize>() + key_bytes;
        let keys = own.len() + 1;
        if keys > self.limits.keys || bytes > self.limits.bytes {
            return Err(KeyError::TooMany {
                keys,
                bytes,
                limits: self.limits,
            });
        }
        Ok(())
    }

    /// Whether the client has the key.
    pub(crate) fn client_has(&self, client: &str, digest: KeyDigest) -> bool {
        self.by_client
            .get(client)
            .is_some_and(|own| own.contains(&digest))
    }

    pub(crate) fn insert(
        &mut self,
        client: &str,
        digest: KeyDigest,
        kind: usize,
        bytes: usize,
        key: AnyKey,
    ) -> Result<(), KeyError> {
        if self.client_has(client, digest) {
            return Ok(());
        }
        self.check_room(client, bytes)?;
        let own = self.by_client.entry(client.into()).or_default();
        own.push(digest);
        let held = self.held.entry(digest).or_insert(Held {
            kind,
            key,
            bytes,
            clients: 0,
        });
        held.clients += 1;
        Ok(())
    }

    /// Removes a key; true if there was one. Proofs under way are still verified under it.
    pub(crate) fn remove(&mut self, client: &str, digest: KeyDigest) -> bool {
        let Some(own) = self.by_client.get_mut(client) else {
            return false;
        };
        let Some(place) = own.iter().position(|other| *other == digest) else {
            return false;
        };
        own.remove(place);
        if own.is_empty() {
            self.by_client.remove(client);
        }
        if let Some(held) = self.held.get_mut(&digest) {
            held.clients -= 1;
            if held.clients == 0 {
                self.held.remove(&digest);
            }
        }
        true
    }

    /// The client's keys, in the order in which they were added. Kinds are given by their number.
    fn list(&self, client: &str) -> Vec<Listed> {
        let own = self.by_client.get(client).into_iter().flatten();
        own.filter_map(|digest| {
            let held = self.held.get(digest)?;
            Some(Listed {
                digest: *digest,
                kind: held.kind,
                bytes: held.bytes,
            })
        })
        .collect()
    }

    pub(crate) fn infos(&self, client: &str, kinds: &Kinds) -> Vec<KeyInfo> {
        let listed = self.list(client).into_iter();
        listed
            .map(|key| KeyInfo {
                digest: key.digest,
                kind: kinds.name(key.kind).to_owned(),
                bytes: key.bytes,
            })
            .collect()
    }
}

struct Listed {
    digest: KeyDigest,
    kind: usize,
    bytes: usize,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("kind", &self.kind)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

// === impl KeyDigest ===

impl KeyDigest {
    /// The digest of a key for a kind.
    pub fn of(kind: &str, key: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(kind.as_bytes());
        hash.update([0]);
        hash.update(key);
        Self(hash.finalize().into())
    }

    /// The digest with these 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyDigest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| NoDigest)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            let (high, low) = (high.ok_or(NoDigest)?, low.ok_or(NoDigest)?);
            *byte = (16 * high + low) as u8;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: KeyLimits = KeyLimits {
        keys: 2,
        bytes: 100,
    };

    fn digest(key: &str) -> KeyDigest {
        KeyDigest::of("toy", key.as_bytes())
    }

    fn insert(keys: &mut Keys, client: &str, key: &str, bytes: usize) -> Result<(), KeyError> {
        keys.insert(client, digest(key), 0, bytes, Arc::new(()))
    }

    #[test]
    fn a_client_has_its_own_keys_up_to_its_limit() {
        let mut keys = Keys::new(LIMITS);
        insert(&mut keys, "a", "one", 60).unwrap();
        insert(&mut keys, "b", "one", 60).unwrap();
        insert(&mut keys, "a", "one", 60).unwrap();
        let full = insert(&mut keys, "a", "two", 60);
        assert!(matches!(full, Err(KeyError::TooMany { keys: 2, .. })));
        insert(&mut keys, "a", "three", 40).unwrap();
        let full = insert(&mut keys, "a", "four", 0);
        assert!(matches!(full, Err(KeyError::TooMany { keys: 3, .. })));

        assert!(keys.get("b", digest("one"), 0).is_some());
        assert!(keys.get("b", digest("three"), 0).is_none());
        assert!(keys.get("b", digest("one"), 1).is_none(), "of another kind");

        assert!(keys.remove("a", digest("one")));
        assert!(!keys.remove("a", digest("one")));
        assert!(keys.get("b", digest("one"), 0).is_some());
        assert!(keys.remove("b", digest("one")));
        assert!(!keys.held.contains_key(&digest("one")));
    }

    #[test]
    fn digests_are_read_as_they_are_written() {
        let digest = digest("one");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for text in ["", "00", &digest.to_string()[1..], &"é".repeat(32)] {
            assert_eq!(text.parse::<KeyDigest>(), Err(NoDigest));
        }
        assert_ne!(digest, KeyDigest::of("toyo", b"ne"), "the name is bounded");
    }
}
