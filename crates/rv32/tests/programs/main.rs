//! The built programs of `programs/built`, compared with the same computation in Rust.

mod cycles;
mod fibonacci;
mod interpreter;
mod json;
mod sha256;
mod sort;
mod support;
