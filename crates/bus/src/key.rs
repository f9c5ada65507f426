//! Keys of records.

use std::fmt;
use std::sync::Arc;

/// Maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 512;

/// The name of a record: non-empty tokens separated by dots, in printable ASCII without space, `*`
/// and `>`, at most [`MAX_KEY_BYTES`] long. Every key is a valid NATS subject. Cheap to clone;
/// ordered by its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// The reason why a string is not a [`Key`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// The key has no characters.
    #[error("key is empty: give at least one token")]
    Empty,
    /// The key is longer than [`MAX_KEY_BYTES`].
    #[error("key has {0} bytes, the limit is {MAX_KEY_BYTES}: hash or shorten its tokens")]
    TooLong(usize),
    /// A token between two dots, or at either end, is empty.
    #[error("key has an empty token at byte {0}: dots only separate tokens")]
    EmptyToken(usize),
    /// A character outside printable ASCII, or one that NATS reserves.
    #[error("key has {character:?} at byte {at}: use printable ASCII without space, `*` and `>`")]
    Character {
        /// The offending character.
        character: char,
        /// The byte offset of the character.
        at: usize,
    },
}

// === impl Key ===

impl Key {
    /// Checks `text` and makes a key from it.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidKey> {
        let text = text.into();
        if text.is_empty() {
            return Err(InvalidKey::Empty);
        }
        if text.len() > MAX_KEY_BYTES {
            return Err(InvalidKey::TooLong(text.len()));
        }
        let mut token_is_empty = true;
        for (at, character) in text.char_indices() {
            match character {
                '.' if token_is_empty => return Err(InvalidKey::EmptyToken(at)),
                '.' => token_is_empty = true,
                '*' | '>' => return Err(InvalidKey::Character { character, at }),
                c if c.is_ascii_graphic() => token_is_empty = false,
                _ => return Err(InvalidKey::Character { character, at }),
            }
        }
        if token_is_empty {
            return Err(InvalidKey::EmptyToken(text.len()));
        }
        Ok(Self(text))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tokens between the dots.
    pub fn tokens(&self) -> std::str::Split<'_, char> {
        self.0.split('.')
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0)
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Key {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_nats_accepts() {
        for good in [
            "a",
            "a.b.c",
            "task.block-7/part=3:x",
            "$sys._x",
            &"k".repeat(512),
        ] {
            assert_eq!(Key::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn an_error_has_the_position_in_a_bad_key() {
        assert_eq!(Key::new(""), Err(InvalidKey::Empty));
        assert_eq!(Key::new("k".repeat(513)), Err(InvalidKey::TooLong(513)));
        assert_eq!(Key::new(".a"), Err(InvalidKey::EmptyToken(0)));
        assert_eq!(Key::new("a..b"), Err(InvalidKey::EmptyToken(2)));
        assert_eq!(Key::new("a."), Err(InvalidKey::EmptyToken(2)));
        for (text, character, at) in [
            ("a b", ' ', 1),
            ("a.*", '*', 2),
            (">", '>', 0),
            ("a\n", '\n', 1),
            ("aé", 'é', 1),
        ] {
            assert_eq!(Key::new(text), Err(InvalidKey::Character { character, at }));
        }
    }
}
