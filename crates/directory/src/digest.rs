//! Digests: of keys, values, leaves and nodes.
//!
//! | digest | is |
//! |---|---|
//! | of a key | SHA-256(T ‖ key), T for `proofmill/directory/key/1` |
//! | of a value | SHA-256(T ‖ value), T for `proofmill/directory/value/1` |
//! | of the leaf of a key | SHA-256(T ‖ the key's digest ‖ the value's digest ‖ version), T for `proofmill/directory/leaf/1`; the version is 8 bytes, big-endian |
//! | of the leaf of no key | 32 zero bytes |
//! | of a node | one compression of left ‖ right from SHA-256's standard initial state |
//!
//! T is SHA-256(tag) twice, 64 bytes, as in BIP 340: one block, so that the digest of a leaf is a standard SHA-256 of
//! which a circuit hashes two blocks.
//!
//! A node has no padding block. Two different blocks with the same digest would, with the same padding behind them,
//! collide under SHA-256 too. Leaves and nodes cannot be confused, since every path has as many levels as the tree.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::digest::generic_array::GenericArray;
use sha2::{Digest as _, Sha256, compress256};

/// The levels of a directory's tree.
pub const DEPTH: u32 = 128;

/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 32;

const KEY_TAG: &[u8] = b"proofmill/directory/key/1";
const VALUE_TAG: &[u8] = b"proofmill/directory/value/1";
const LEAF_TAG: &[u8] = b"proofmill/directory/leaf/1";

/// SHA-256's initial state, FIPS 180-4 section 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// The bits of a leaf's message: a block of tags, two digests, the version.
pub(crate) const LEAF_MESSAGE_BITS: u32 = 8 * (64 + 2 * DIGEST_BYTES as u32 + 8);

/// The digest of an empty subtree by its height; a leaf has height 0.
static EMPTY: LazyLock<[Digest; DEPTH as usize + 1]> = LazyLock::new(|| {
    let mut digests = [Digest::ZERO; DEPTH as usize + 1];
    for height in 1..digests.len() {
        digests[height] = hash_node(&digests[height - 1], &digests[height - 1]);
    }
    digests
});

/// The state after the block of tags of a leaf.
static LEAF_STATE: LazyLock<[u32; 8]> = LazyLock::new(|| {
    let tag = Sha256::digest(LEAF_TAG);
    let mut state = INITIAL;
    compress256(
        &mut state,
        &[GenericArray::clone_from_slice(&[tag, tag].concat())],
    );
    state
});

/// A digest of 32 bytes: a root, a node or a leaf. As text it is 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; DIGEST_BYTES]);

/// The digest of a key. Its first bits are the key's path from the root.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyDigest(pub Digest);

/// The digest of a value.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueDigest(pub Digest);

/// Text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lower-case hexadecimal digits")]
pub struct DigestError;

/// The digest of a node from those of its children.
pub fn hash_node(left: &Digest, right: &Digest) -> Digest {
    let mut block = GenericArray::default();
    block[..DIGEST_BYTES].copy_from_slice(&left.0);
    block[DIGEST_BYTES..].copy_from_slice(&right.0);
    let mut state = INITIAL;
    compress256(&mut state, &[block]);
    Digest::of_words(state)
}

/// The digest of the leaf of a present key.
pub fn hash_leaf(key: &KeyDigest, version: u64, value: &ValueDigest) -> Digest {
    let mut blocks = [GenericArray::default(), GenericArray::default()];
    blocks[0][..DIGEST_BYTES].copy_from_slice(&key.0.0);
    blocks[0][DIGEST_BYTES..].copy_from_slice(&value.0.0);
    blocks[1][..8].copy_from_slice(&version.to_be_bytes());
    blocks[1][8] = 0x80;
    blocks[1][60..].copy_from_slice(&LEAF_MESSAGE_BITS.to_be_bytes());
    let mut state = *LEAF_STATE;
    compress256(&mut state, &blocks);
    Digest::of_words(state)
}

/// The digest of a subtree without keys, by its height from 0, the leaf's, to [`DEPTH`], the tree's.
///
/// # Panics
///
/// If `height` exceeds [`DEPTH`].
pub fn empty_digest(height: u32) -> Digest {
    EMPTY[height as usize]
}

/// The state from which a leaf's message without its block of tags is hashed.
#[cfg(feature = "prover")]
pub(crate) fn leaf_state() -> [u32; 8] {
    *LEAF_STATE
}

fn tagged(tag: &[u8], message: &[u8]) -> Digest {
    let tag = Sha256::digest(tag);
    let hasher = Sha256::new().chain_update(tag).chain_update(tag);
    Digest(hasher.chain_update(message).finalize().into())
}

// === impl Digest ===

impl Digest {
    /// The digest of no leaf.
    pub const ZERO: Self = Self([0; DIGEST_BYTES]);

    fn of_words(words: [u32; 8]) -> Self {
        let mut bytes = [0; DIGEST_BYTES];
        for (four, word) in bytes.chunks_exact_mut(4).zip(words) {
            four.copy_from_slice(&word.to_be_bytes());
        }
        Self(bytes)
    }

    /// The digest as SHA-256 counts it: eight words, big-endian.
    #[cfg(feature = "prover")]
    pub(crate) fn words(&self) -> [u32; 8] {
        let words = self.0.as_chunks::<4>().0;
        std::array::from_fn(|i| u32::from_be_bytes(words[i]))
    }

    /// The two halves as numbers, big-endian.
    pub fn halves(&self) -> [u128; 2] {
        let halves = self.0.as_chunks::<16>().0;
        [0, 1].map(|i| u128::from_be_bytes(halves[i]))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; DIGEST_BYTES];
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        match lower && hex::decode_to_slice(text, &mut bytes).is_ok() {
            true => Ok(Self(bytes)),
            false => Err(DigestError),
        }
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

// === impl KeyDigest ===

impl KeyDigest {
    /// The digest of a key, any bytes.
    pub fn of(key: &[u8]) -> Self {
        Self(tagged(KEY_TAG, key))
    }

    /// The path in a tree of `depth` levels: the first bits of the digest, from the most significant bit on; the
    /// others are 0.
    pub(crate) fn path(&self, depth: u32) -> u128 {
        let [first, _] = self.0.halves();
        first & u128::MAX.checked_shl(DEPTH - depth).unwrap_or(0)
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

// === impl ValueDigest ===

impl ValueDigest {
    /// The digest of a value, any bytes.
    pub fn of(value: &[u8]) -> Self {
        Self(tagged(VALUE_TAG, value))
    }
}

impl fmt::Debug for ValueDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for ValueDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves are standard SHA-256; a node is SHA-256's compression of one block, whose initial state is that of the
    /// circuit.
    #[test]
    fn digests_are_those_of_the_description() {
        let (key, value) = (KeyDigest::of(b"alice"), ValueDigest::of(b"key of alice"));
        let message = [&key.0.0[..], &value.0.0, &7u64.to_be_bytes()].concat();
        assert_eq!(hash_leaf(&key, 7, &value), tagged(LEAF_TAG, &message));
        assert_eq!(8 * (64 + message.len() as u32), LEAF_MESSAGE_BITS);

        // The compression of the block of a padded message of 55 bytes is the SHA-256 of that message.
        let message = [7u8; 55];
        let mut block = [0; 64];
        block[..55].copy_from_slice(&message);
        block[55] = 0x80;
        block[56..].copy_from_slice(&(8 * 55u64).to_be_bytes());
        let [left, right] = [0, 32].map(|from| {
            let half: [u8; 32] = block[from..from + 32].try_into().unwrap();
            Digest(half)
        });
        let expected: [u8; 32] = Sha256::digest(message).into();
        assert_eq!(hash_node(&left, &right), Digest(expected));
    }

    #[test]
    fn only_lower_case_digits_of_the_right_number_are_a_digest() {
        let digest = Digest(std::array::from_fn(|i| 8 * i as u8 + 3));
        let text = digest.to_string();
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(text.to_uppercase().parse::<Digest>(), Err(DigestError));
        for wrong in ["", "00", &text[1..], &format!("{text}00"), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Digest>(), Err(DigestError), "{wrong}");
        }
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
    }

    #[test]
    fn a_path_is_the_first_bits() {
        let key = KeyDigest(Digest([0b1010_0110; 32]));
        assert_eq!(key.path(1), 1 << 127);
        assert_eq!(key.path(4), 0b1010 << 124);
        assert_eq!(key.path(128), u128::from_be_bytes([0b1010_0110; 16]));
    }
}
