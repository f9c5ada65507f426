//! Who gets in, and what they may do there, with real servers: TLS, credentials, permissions.

mod credentials;
mod permissions;
mod support;
