//! One file for each command, but for the demo.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod dlq;
pub(crate) mod look;
pub(crate) mod run;
pub(crate) mod submit;
