//! A verifiable key directory (VKD): keys with versions and values in a sparse Merkle tree, and proofs that every
//! epoch of it keeps the rules, after section 8.3 of Hekaton (eprint.iacr.org/2024/1208).
//!
//! A directory maps a key to a version and a value. An update inserts an absent key with version 0, or replaces the
//! value of a present key and increments its version by one. Updates are gathered in epochs, and each epoch has a root.
//! For an epoch the directory publishes a record with a proof of this statement:
//!
//! > There is a sequence of at most N updates, each of which inserts an absent key with version 0, or replaces the value
//! > of a present key and increments its version by exactly one, that leads from the old root to the new root.
//!
//! So a client that sees its key with the same version at two epochs, however far apart, knows that the value did not
//! change in between. It needs two [proofs of the key's state](inclusion::InclusionProof), and the records of the
//! epochs between ([`chain::verify_chain`]).
//!
//! # Example
//!
//! ```
//! use proofmill_directory::store::{DirectoryWriter, KeyDirectory};
//! use proofmill_directory::{KeyDigest, KeyUpdate, ValueDigest};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("directory");
//! let mut writer = DirectoryWriter::create(&path)?;
//! let lines = r#"{"key": "alice", "value": "the key of her first phone"}
//! {"key": "bob", "value_hex": "00ff"}"#;
//! writer.append(KeyUpdate::read_lines(lines.as_bytes())?)?;
//! let epoch = writer.append(vec![KeyUpdate::new("alice", "the key of her second phone")?])?;
//! assert_eq!((epoch.number, epoch.inserted), (2, 0));
//!
//! // A server reads the directory and proves the state of a key.
//! let directory = KeyDirectory::load(&path)?;
//! let found = directory.find(b"alice").ok_or("she is there")?;
//! let proof = directory.prove(b"alice").to_json();
//!
//! // A client has the root of the epoch, and checks what the server says.
//! let proof = proofmill_directory::inclusion::InclusionProof::from_json(&proof)?;
//! let state = proof.verify(&epoch.root_after, &KeyDigest::of(b"alice"))?;
//! let state = state.ok_or("she is there")?;
//! assert_eq!((state.version, state.value), (1, ValueDigest::of(found.value)));
//! # Ok(())
//! # }
//! ```
//!
//! # From updates to a verified chain
//!
//! 1. [`circuit::BatchShape`] has the sizes of a batch, [`circuit::UpdateBatch::blank`] is the circuit to make keys of.
//! 2. [`store::DirectoryWriter::append`] adds an epoch.
//! 3. [`store::KeyDirectory::tree_before`] and [`circuit::EpochBatches`] give its batches with their witness, which
//!    [`proofmill_partition::proof::Prover`] proves.
//! 4. [`chain::EpochRecord`] has the proofs; [`store::KeyDirectory::publish`] keeps it.
//! 5. [`chain::verify_chain`] checks records, [`inclusion::InclusionProof::verify`] a key's state.
//!
//! # The tree
//!
//! The tree has 128 levels. A key's path is the first 128 bits of its digest, and its leaf binds all 256 bits. A key
//! whose path is another key's is refused ([`TreeError::Collision`]); to find two such keys takes some 2⁶⁴ hashes, and
//! 2¹²⁸ to find one for a given key. [`Digest`] has the definition of all digests.
//!
//! # Assumptions
//!
//! SHA-256 is collision resistant, no leaf or node with the digest 0 is known besides the empty leaf, and proofs of
//! circuits in parts are sound (`docs/partition.md`). The proof of an epoch hides its updates; a proof of a key's state
//! shows digests beside the key's path, which whoever guesses a neighbour's key, version and value can recognise.
//!
//! # The verifier alone
//!
//! Without the feature `prover`, which is on by default, there is no [`circuit`], and nothing that makes proofs of
//! epochs.

pub mod chain;
#[cfg(feature = "prover")]
pub mod circuit;
mod digest;
mod frame;
pub mod inclusion;
pub mod store;
mod tree;
mod updates;

pub use digest::{
    DEPTH, DIGEST_BYTES, Digest, DigestError, KeyDigest, ValueDigest, empty_digest, hash_leaf,
    hash_node,
};
pub use frame::FormatError;
pub use tree::{Entry, KEYS_MAX, Record, Transition, Tree, TreeError};
pub use updates::{
    KEY_BYTES_MAX, KeyUpdate, LineError, UPDATE_BYTES_MAX, UPDATES_MAX, UpdatesError,
    VALUE_BYTES_MAX,
};

// The fuzz targets, which tests run too, name the crate as others do.
#[cfg(all(test, feature = "prover"))]
extern crate self as proofmill_directory;
#[cfg(all(test, feature = "prover"))]
mod tests;
