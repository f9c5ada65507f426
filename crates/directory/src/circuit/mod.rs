//! A batch of updates as a circuit in parts.
//!
//! # The statement
//!
//! For the public inputs *old root* and *new root* (two halves of 128 bits each): there is a sequence of at most N
//! updates, each of which inserts an absent key with version 0, or replaces the value of a present key and increments
//! its version by exactly one, that leads from the old root to the new root.
//!
//! No update removes a key, decrements a version, or wraps one around. So a client that sees a key with the same
//! version under the roots of two epochs knows that the value did not change in between.
//!
//! The keys of the circuit are for exactly N updates. A shorter batch is filled up with *idle* updates, which leave
//! the root as it is.
//!
//! # The parts
//!
//! An update is cut into parts of a fixed number of levels. The first part of an update is of the class `leaf`, the
//! last of the class `root`, all others of the class `path`: three keys serve any number of updates. (An update in one
//! part is of the class `update`.) Each part hashes the same levels of two paths, from the leaf before and from the
//! leaf after the update, with the same siblings.
//!
//! | portal | value | from | to |
//! |---|---|---|---|
//! | `("node", update, …)` | the digests of both paths, two halves each | each part but the last of an update | the next part |
//! | `("path", update, part)` | the bits of the path at the levels of a part, packed | the `leaf` part | that part |
//! | `("root", update, half)` | the root before an update | the `root` part of the update before | the update's `root` part |
//!
//! The first update's root before, and the last update's root after, are public inputs.
//!
//! # Possible cheats, and what refuses them
//!
//! | cheat | refused by |
//! |---|---|
//! | skip a version, keep it, or let it wrap around | `present · (old + 1) = new` over two numbers of 64 bits each |
//! | insert with another version than 0 | the same equation with `present = 0` |
//! | insert over a present key | the leaf before an insertion is the all-zero digest, and its path leads to the root before |
//! | replace the value of another key, or of a key that is absent | both leaves bind the same 256 bits of the key, of which the path's bits are the first |
//! | other bits of the path at higher levels | the `leaf` part sets them from the key's digest |
//! | another sibling for one of both paths | both paths have the same variables for siblings; one path to the wrong root is not satisfied |
//! | a path that is too short or too long, a node for a leaf | the number of levels is fixed with the circuit |
//! | an idle update that changes something | its leaf after is its leaf before, bit by bit |
//! | updates in another order, left out or repeated | each root after is the next root before |
//!
//! Siblings are free variables by design: that a path with some siblings leads to the root before is what makes them
//! the tree's (as SHA-256 is collision resistant). Nothing else is free: a test changes every variable.

//! # In other processes
//!
//! [`DistributedCircuit`](proofmill_partition::DistributedCircuit) gives the process that proves a part the private
//! values of that part only. [`UpdateBatch::to_witness`] is a batch as a file, from which any process makes its proof.

mod batch;
mod cost;
mod distribution;
mod encoding;
mod path;
mod shape;
mod synthesis;
mod witness;

pub use batch::{EpochBatches, UpdateBatch};
pub use cost::{BatchCost, ClassCost};
pub use shape::{BatchError, BatchShape, LEVELS_PER_PART};
pub use witness::WitnessError;
