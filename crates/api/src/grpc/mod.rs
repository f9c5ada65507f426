//! The common parts of the gRPC services: limits on calls and messages, refusals, decoding.

mod bounds;
mod calls;
mod codec;
mod frames;
mod retry;
mod services;
mod timeout;

pub(crate) use bounds::{Bounds, MessageLimit};
pub(crate) use calls::{Calls, is_call};
pub(crate) use codec::Codec;
pub(crate) use retry::{retry_after, retryable_status, try_again};
pub(crate) use services::{MESSAGE_MAX, is_health_check, reflection};
pub(crate) use timeout::{TIMEOUT_MAX, timeout_of_call};
