//! HTTP requests to servers, with and without TLS, for sinks, sources and signers, and the secrets that they are made with.

mod client;
mod secret;
mod tls;

pub use client::{Answer, HttpClient, HttpError};
pub use secret::{Secret, SecretError};
