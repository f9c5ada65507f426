//! HTTP requests to servers, with and without TLS, for sinks and sources.

mod client;
mod tls;

pub use client::{Answer, HttpClient, HttpError};
