//! Damage to the bytes of a liar's call.
//!
//! The histories whose digest is pinned were drawn when an event of a call began with one byte, for its
//! kind among those of all roles; now it begins with two, for its role and for its kind there. Damage is
//! drawn in the layout of then, so that those histories stay what they are, and done to the bytes of now.
//! Whoever pins other histories can do without this file.

/// How many kinds of events come before those of each role, and of all.
const KINDS_BEFORE: [u8; 4] = [0, 7, 11, 13];

/// The bytes of a call with one byte for the kind of each event.
pub(crate) struct Flat {
    bytes: Vec<u8>,
    /// Positions of those bytes.
    kinds: Vec<usize>,
}

impl Flat {
    /// `bytes` are those of a call; the lengths are those of what comes before its events, and of each.
    pub(crate) fn of(bytes: &[u8], before: usize, events: &[usize]) -> Self {
        let (head, mut rest) = bytes.split_at(before);
        let mut flat = Self {
            bytes: head.to_vec(),
            kinds: Vec::new(),
        };
        for length in events {
            let (event, after) = rest.split_at(*length);
            flat.kinds.push(flat.bytes.len());
            flat.bytes
                .push(KINDS_BEFORE[usize::from(event[0])] + event[1]);
            flat.bytes.extend(&event[2..]);
            rest = after;
        }
        flat.bytes.extend(rest);
        flat
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes as they are sent.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + self.kinds.len());
        for (at, byte) in self.bytes.into_iter().enumerate() {
            if !self.kinds.contains(&at) {
                bytes.push(byte);
                continue;
            }
            let role = KINDS_BEFORE[1..].iter().position(|before| byte < *before);
            match role {
                Some(role) => bytes.extend([role as u8, byte - KINDS_BEFORE[role]]),
                // No role has it.
                None => bytes.extend([byte, 0]),
            }
        }
        bytes
    }
}
