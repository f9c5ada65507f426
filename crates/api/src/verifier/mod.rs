//! The verifier's front end: frames of MessagePack over a Unix socket or a pair of pipes;
//! `proofmill.verifier.v1` over gRPC and single requests over HTTP, on a TCP port; metrics on another port.
//!
//! Conversations are independent of the encoding of their requests; [`converse`] runs one in frames.

mod calls;
mod console;
mod conversation;
mod frame;
mod framed;
mod http;
mod json;
mod message;
mod metrics;
mod operation;
mod pipes;
mod port_state;
pub mod proto;
mod routes;
mod server;
mod simulator;
mod tcp;

pub use conversation::Peer;
pub use frame::{FrameError, Frames, MAX_FRAME_BYTES, write_frame};
pub use framed::converse;
pub use message::{
    Answer, AnswerBody, MessageError, Request, RequestBody, ResultStatus, VERSION,
    VerificationResult, decode_request,
};
pub use pipes::{PipePair, make_pipes};
pub use server::{Server, ServerOptions, VERIFIER_SOCKET, VerifierServeError};
