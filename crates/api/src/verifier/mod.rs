//! The verifier's front end: frames of MessagePack over a Unix socket or a pair of pipes; metrics over
//! HTTP.

mod conversation;
mod frame;
mod http;
mod message;
mod metrics;
mod pipes;
mod server;

pub use conversation::{Peer, converse};
pub use frame::{FrameError, Frames, MAX_FRAME_BYTES, write_frame};
pub use message::{
    Answer, AnswerBody, Ask, AskBody, MessageError, ResultStatus, VERSION, VerificationResult,
    decode_ask,
};
pub use pipes::{PipePair, make_pipes};
pub use server::{Server, ServerOptions, VERIFIER_SOCKET, VerifierServeError};
