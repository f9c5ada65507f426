//! One file or folder for each command, except the demo, which is in `crate::demo`.

pub(crate) mod aggregate;
pub(crate) mod block;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod inspect;
pub(crate) mod partition;
pub(crate) mod prove;
pub(crate) mod push0;
pub(crate) mod run;
pub(crate) mod rv32;
pub(crate) mod setup;
pub(crate) mod submit;
pub(crate) mod verifier;
pub(crate) mod verify;
pub(crate) mod vkd;
pub(crate) mod zkey;
pub(crate) mod zkpu;
