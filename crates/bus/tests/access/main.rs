//! Tests of access with real servers: TLS, credentials, permissions.

mod credentials;
mod permissions;
mod support;
