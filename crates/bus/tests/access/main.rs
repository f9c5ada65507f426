//! Tests of access with real servers: TLS and credentials.

mod credentials;
mod support;
