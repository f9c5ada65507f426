//! A workflow over many processes, which are killed and stopped, with a real NATS server; and the
//! permissions of each role's user there.

#![expect(
    clippy::disallowed_methods,
    reason = "provers take their time, and processes are waited for"
)]

mod chaos;
mod checks;
mod collectors;
mod deployed;
mod emitted;
mod failover;
mod permissions;
mod ports;
mod roles;
mod spread;
mod support;
