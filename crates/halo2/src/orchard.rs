//! The statements that proofs of Zcash's Orchard bundles prove.
//!
//! Verification checks that the bundle's proof is valid for its anchor, its flags and the value commitment,
//! nullifier, randomized key and note commitment of each action.
//!
//! It does not check the RedPallas signatures of the transaction's digest (one for each action under its
//! randomized key, and one that binds the balance of value), that the anchor is a root that the chain had,
//! that no nullifier was seen before, or the notes' ciphertexts. An application that accepts bundles must
//! check these too.
//!
//! The circuit's versions have keys of their own. [`verifying_key`] is the newest. The older ones leave
//! the row of the restriction of transfers to other addresses free, so that a bundle which is
//! [restricted](Flags::cross_address_disabled) must not be verified under them.

use crate::field::{BYTES, element, pallas_coordinates};
use crate::{Scalar, VerifyingKey};

/// Rows of public inputs of an action.
pub const ACTION_INPUTS: usize = 10;
/// Binary logarithm of the circuit's rows.
pub const K: u32 = 11;

/// The key as `orchard` 0.16.0 pins it; `data/make_key.py` made the file.
const PINNED: &str = include_str!("../data/orchard-post-nu6-3.key");

const MAGIC: [u8; 4] = *b"PMOB";
const VERSION: u8 = 1;
const HEAD_BYTES: usize = 4 + 1 + 1 + 2 + BYTES;
const ACTION_BYTES: usize = 4 * BYTES;

/// The public fields of an action that the proof covers (protocol specification, section 4.17.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// cvⁿᵉᵗ, the commitment to the value: a compressed point of Pallas.
    pub net_value: [u8; BYTES],
    /// nfᵒˡᵈ, the nullifier of the note that is spent.
    pub nullifier: [u8; BYTES],
    /// rk, the key that the action is signed with: a compressed point of Pallas, not infinite.
    pub randomized_key: [u8; BYTES],
    /// cmx, the abscissa of the new note's commitment.
    pub note_commitment: [u8; BYTES],
}

/// Permissions of all actions of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Notes of value may be spent.
    pub spends_enabled: bool,
    /// Notes of value may be made.
    pub outputs_enabled: bool,
    /// Value may not go to other addresses.
    pub cross_address_disabled: bool,
}

/// The parts of a bundle that its proof covers, and the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The root of the tree of notes.
    pub anchor: [u8; BYTES],
    /// The permissions of its actions.
    pub flags: Flags,
    /// Its actions.
    pub actions: Vec<Action>,
    /// The proof of all of them.
    pub proof: Vec<u8>,
}

/// The reason why bytes do not decode to a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The bytes do not begin with the magic of a bundle.
    #[error("no Orchard bundle: it begins with other bytes")]
    Magic,
    /// A bundle of another version.
    #[error("a bundle of version {0}: this release reads version {VERSION}")]
    Version(u8),
    /// Unknown flags.
    #[error("flags {0:#04x}: only the lowest three bits mean something")]
    Flags(u8),
    /// The wrong number of bytes.
    #[error("{found} bytes: expected {expected}")]
    Length {
        /// Bytes of a bundle with this number of actions.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The bundle has no actions.
    #[error("a bundle without actions")]
    NoActions,
    /// A number that is not reduced by the modulus.
    #[error("the {field} of action {action} is not below the modulus of Pallas' base field")]
    NotCanonical {
        /// Index of the action, from 0.
        action: usize,
        /// Name of the field.
        field: &'static str,
    },
    /// Bytes that do not encode a point.
    #[error("the {field} of action {action} is no point of Pallas that may be there")]
    NotAPoint {
        /// Index of the action, from 0.
        action: usize,
        /// Name of the field.
        field: &'static str,
    },
}

/// The key of Orchard's circuit since the network upgrade 6.3 (`OrchardCircuitVersion::PostNu6_3` of the
/// `orchard` crate).
pub fn verifying_key() -> VerifyingKey {
    VerifyingKey::from_pinned(PINNED).expect("the key in this crate can be read")
}

// === impl Flags ===

impl Flags {
    fn byte(self) -> u8 {
        u8::from(self.spends_enabled)
            | u8::from(self.outputs_enabled) << 1
            | u8::from(self.cross_address_disabled) << 2
    }

    fn from_byte(byte: u8) -> Option<Self> {
        (byte < 8).then_some(Self {
            spends_enabled: byte & 1 != 0,
            outputs_enabled: byte & 2 != 0,
            cross_address_disabled: byte & 4 != 0,
        })
    }
}

// === impl Bundle ===

impl Bundle {
    /// Bytes of the proof of a bundle with `actions` actions.
    pub const fn proof_bytes(actions: usize) -> usize {
        2720 + 2272 * actions
    }

    /// The public inputs, for [`Verifier::reduce`](crate::Verifier::reduce).
    ///
    /// # Errors
    ///
    /// [`BundleError`] if a field is no element or point.
    pub fn instances(&self) -> Result<Vec<Vec<Vec<Scalar>>>, BundleError> {
        let actions = self.actions.iter().enumerate();
        actions
            .map(|(number, action)| Ok(vec![self.inputs(number, action)?]))
            .collect()
    }

    /// The rows of one action.
    fn inputs(&self, action: usize, fields: &Action) -> Result<Vec<Scalar>, BundleError> {
        let number = |bytes: &[u8; BYTES], field| {
            element(bytes).ok_or(BundleError::NotCanonical { action, field })
        };
        let point = |bytes: &[u8; BYTES], field| {
            pallas_coordinates(bytes).ok_or(BundleError::NotAPoint { action, field })
        };
        let [value_x, value_y] = point(&fields.net_value, "value commitment")?;
        let [key_x, key_y] = point(&fields.randomized_key, "randomized key")?;
        if fields.randomized_key == [0; BYTES] {
            let field = "randomized key";
            return Err(BundleError::NotAPoint { action, field });
        }
        let flag = |flag: bool| Scalar::from(u64::from(flag));
        Ok(vec![
            number(&self.anchor, "anchor")?,
            value_x,
            value_y,
            number(&fields.nullifier, "nullifier")?,
            key_x,
            key_y,
            number(&fields.note_commitment, "note commitment")?,
            flag(self.flags.spends_enabled),
            flag(self.flags.outputs_enabled),
            flag(self.flags.cross_address_disabled),
        ])
    }

    /// Magic, version (1 byte), flags (1 byte: spends, outputs, restricted to own addresses, from the
    /// lowest bit), number of actions (2 bytes, big-endian), anchor; each action's value commitment,
    /// nullifier, key and note commitment; the proof.
    ///
    /// # Panics
    ///
    /// If there are 2¹⁶ actions or more.
    pub fn encode(&self) -> Vec<u8> {
        let count = u16::try_from(self.actions.len()).expect("fewer than 2¹⁶ actions");
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION, self.flags.byte()]);
        bytes.extend(count.to_be_bytes());
        bytes.extend(self.anchor);
        for action in &self.actions {
            bytes.extend(action.net_value);
            bytes.extend(action.nullifier);
            bytes.extend(action.randomized_key);
            bytes.extend(action.note_commitment);
        }
        bytes.extend(&self.proof);
        bytes
    }

    /// Decodes an untrusted bundle; each bundle has one encoding. The content of the fields is checked by
    /// [`instances`](Self::instances), not here.
    ///
    /// # Errors
    ///
    /// [`BundleError`] for any other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, BundleError> {
        let length = |expected| BundleError::Length {
            expected,
            found: bytes.len(),
        };
        let expected =
            |actions: usize| HEAD_BYTES + ACTION_BYTES * actions + Self::proof_bytes(actions);
        let head = bytes.first_chunk::<HEAD_BYTES>();
        let head = head.ok_or(length(expected(1)))?;
        let [m0, m1, m2, m3, version, flags, high, low, anchor @ ..] = *head;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(BundleError::Magic);
        }
        if version != VERSION {
            return Err(BundleError::Version(version));
        }
        let flags = Flags::from_byte(flags).ok_or(BundleError::Flags(flags))?;
        let count = usize::from(u16::from_be_bytes([high, low]));
        if count == 0 {
            return Err(BundleError::NoActions);
        }
        if bytes.len() != expected(count) {
            return Err(length(expected(count)));
        }
        let (actions, proof) = bytes[HEAD_BYTES..].split_at(ACTION_BYTES * count);
        let (fields, _) = actions.as_chunks::<BYTES>();
        let actions = fields.as_chunks::<4>().0.iter().map(|fields| Action {
            net_value: fields[0],
            nullifier: fields[1],
            randomized_key: fields[2],
            note_commitment: fields[3],
        });
        Ok(Self {
            anchor,
            flags,
            actions: actions.collect(),
            proof: proof.to_vec(),
        })
    }
}
