//! The circuit, keys and proofs of header chains. One program: the prover is compiled into it once.

mod circuit;
mod proofs;
