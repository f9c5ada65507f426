//! A workflow over many processes, which die and stop, with a real NATS server between them.

#![expect(
    clippy::disallowed_methods,
    reason = "provers take their time, and processes are waited for"
)]

mod chaos;
mod collectors;
mod emitted;
mod failover;
mod ports;
mod roles;
mod spread;
mod support;
