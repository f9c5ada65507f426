//! The verifier as a [`tower_service::Service`], for programs that compose those.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::handle::Handle;
use crate::request::{Refused, Request};
use crate::verdict::Verdict;

/// Always ready: the returned future waits for room itself, and no request is dropped.
impl tower_service::Service<Request> for Handle {
    type Response = Verdict;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Verdict, Refused>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let handle = self.clone();
        Box::pin(async move { handle.verify(request).await })
    }
}
