//! A sink that runs a program for each emitted message.

use futures_util::future::BoxFuture;

use super::service::{Emitted, Sink, SinkError};
use crate::executor::trace_of;
use crate::plan::Backoff;
use proofmill_process::{Outcome, ProcessExecutor, TaskContext};

/// Runs a program for each message; exit status 0 means that it accepted the message. If the future
/// of a run is dropped, the program and its process group are ended.
pub struct Exec {
    program: ProcessExecutor,
    backoff: Backoff,
    /// The message that was not accepted yet, and the number of attempts.
    tried: Option<(String, u32)>,
}

// === impl Exec ===

impl Exec {
    /// Runs `program`, whose [`InputChannel`](proofmill_process::InputChannel) has no output.
    pub fn new(program: ProcessExecutor, backoff: Backoff) -> Self {
        Self {
            program,
            backoff,
            tried: None,
        }
    }

    async fn run(&mut self, emitted: &Emitted) -> Result<(), SinkError> {
        let key = emitted.key();
        let attempt = match self.tried.take() {
            Some((tried, count)) if tried == key => count.saturating_add(1),
            _ => 1,
        };
        self.tried = Some((key.clone(), attempt));
        let described = emitted.described();
        let named =
            described.map(|(name, value)| (format!("PROOFMILL_{}", name.to_uppercase()), value));
        let context = trace_of(emitted.trace.as_ref());
        let key_variable = ("PROOFMILL_IDEMPOTENCY_KEY".to_owned(), key.clone());
        let program = self
            .program
            .with_env(named.into_iter().chain([key_variable]).chain(context));
        let context = TaskContext {
            id: key,
            attempt,
            block: emitted.first,
        };
        let run = program.run(&context, &emitted.bytes, std::future::pending());
        let attempt = run.await;
        let place = self.place(emitted);
        match attempt.outcome {
            Outcome::Succeeded(_) => {
                self.tried = None;
                Ok(())
            }
            Outcome::Permanent { reason } => Err(SinkError::refused(place, reason)),
            outcome => Err(SinkError::new(place, outcome)),
        }
    }
}

impl Sink for Exec {
    fn place(&self, _emitted: &Emitted) -> String {
        format!("program {}", self.program.spec().program.display())
    }

    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(self.run(emitted))
    }

    fn backoff(&self) -> Backoff {
        self.backoff
    }
}
