//! The libraries we are compared with, each set up on our input and asked for the same result.
//!
//! A peer's function returns a [`PeerAnswer`](crate::versus::PeerAnswer): contenders, or why there is none.
//! Not timed: the conversion of inputs into the peer's types, and its one-time preparation for inputs
//! that stay (tables of roots, prepared keys).

pub(crate) mod arkworks;
#[cfg(feature = "peers")]
mod blst;
pub(crate) mod command;
pub(crate) mod fingerprint;
pub(crate) mod gnark;
#[cfg(feature = "peers")]
mod halo2curves;
mod optional;

pub(crate) use optional::{MsmPeers, NttPeers, PairingPeers};
