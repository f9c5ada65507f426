//! The proving engine's front end: `proofmill.engine.v1` over gRPC, and pages over HTTP.
//!
//! [`Server`] offers an engine on a Unix socket of mode 0600 and, if asked to, on a TCP port. [`Client`] is
//! its client, and [`proto`] has the messages. [`endpoints`] and [`in_process_endpoint`] connect a
//! dispatcher's tasks to engines. [`timeline`] draws events.

mod access;
mod address;
mod answer;
mod client;
mod console;
mod convert;
mod endpoint;
mod history;
mod http;
mod metrics;
mod overview;
pub mod proto;
mod refusal;
mod server;
mod service;
mod streaming;
pub mod timeline;
mod unreachable;
mod watched;

pub use crate::port::TcpOptions;
pub use access::Tokens;
pub use address::{Address, InvalidAddress};
pub use answer::{AnswerError, AnswerKey, ProofTexts, check_answer, check_answer_of_any_curve};
pub use client::{Client, ClientError, Credentials};
pub use endpoint::{endpoints, in_process_endpoint};
pub use server::{ENGINE_SOCKET, ServeError, Server, ServerOptions, in_process};
pub use watched::WatchedEngine;
