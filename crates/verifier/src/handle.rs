//! The handle for requests to a verifier.

use std::pin::Pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::erased::{AnyKey, AnyProof};
use crate::figures::Report;
use crate::keys::{KeyDigest, KeyError, KeyInfo, Keys};
use crate::kind::UnusableKey;
use crate::request::{MAX_ID_BYTES, Refused, Request, full_source};
use crate::schedule::{Admission, Micros, Submission};
use crate::service::{Shared, Work};
use crate::verdict::{Unavailable, Verdict};

/// A handle of a verifier. All clones refer to the same verifier.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// A future verdict. Dropping it does not cancel the request.
#[derive(Debug)]
pub struct Pending {
    verdict: oneshot::Receiver<Verdict>,
}

// === impl Handle ===

impl Handle {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Verifies a proof.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the request is not accepted.
    pub async fn verify(&self, request: Request) -> Result<Verdict, Refused> {
        Ok(self.submit(request).await?.await)
    }

    /// Hands a proof over, as soon as there is room for it. The verdict of a service that is stopping is
    /// [`Unavailable::Stopped`].
    ///
    /// # Errors
    ///
    /// [`Refused`].
    pub async fn submit(&self, request: Request) -> Result<Pending, Refused> {
        let (sender, verdict) = oneshot::channel();
        let pending = Pending { verdict };
        check(&request, self.shared.options.request_bytes)?;
        let (kind, key) = match self.key_of(&request) {
            Ok(found) => found,
            Err(reason) => {
                let _ = sender.send(Verdict::unavailable(reason));
                return Ok(pending);
            }
        };
        let digest = request.digest();
        let source = request.full_source();
        let until = request
            .deadline
            .map(|deadline| after(self.shared.now(), deadline));
        let request = Arc::new(request);
        let mut sender = Some(sender);
        loop {
            // Before there is found to be no room, so that none is missed.
            let room = self.shared.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            let submission = Submission {
                source: source.clone(),
                id: request.id.clone(),
                digest,
                kind,
                reduced_together: self.shared.options.kinds.get(kind).reduced_together(),
                side_by_side: self.shared.options.kinds.get(kind).side_by_side(),
                priority: request.priority,
                deadline: until,
                bytes: request.bytes(),
            };
            let work = || {
                Work::Proof(AnyProof {
                    request: request.clone(),
                    key: key.clone(),
                })
            };
            if self.try_submit(submission, work, &mut sender)? {
                return Ok(pending);
            }
            match request.deadline {
                None => room.await,
                Some(_) if until.is_some_and(|until| until <= self.shared.now()) => {
                    let _ = sender
                        .take()
                        .map(|sender| sender.send(Verdict::unavailable(Unavailable::Deadline)));
                    return Ok(pending);
                }
                Some(deadline) => {
                    let _ = tokio::time::timeout(deadline, room).await;
                }
            }
        }
    }

    /// Withdraws a request; true if it was under way. The source is that of the [`Request`].
    pub fn cancel(&self, client: &str, source: &str, id: &str) -> bool {
        let mut state = self.shared.state();
        let found = state.scheduler.cancel(&full_source(client, source), id);
        self.shared.advance(&mut state);
        self.shared.hand_out(state);
        found
    }

    /// Withdraws all requests of a source and returns their number.
    pub fn cancel_source(&self, client: &str, source: &str) -> usize {
        let mut state = self.shared.state();
        let found = state.scheduler.cancel_source(&full_source(client, source));
        self.shared.advance(&mut state);
        self.shared.hand_out(state);
        found
    }

    /// Adds a verifying key for a client's requests; the same one again changes nothing.
    ///
    /// # Errors
    ///
    /// [`KeyError`].
    pub async fn add_key(
        &self,
        client: &str,
        kind: &str,
        bytes: bytes::Bytes,
    ) -> Result<KeyDigest, KeyError> {
        let number = self.shared.options.kinds.number(kind)?;
        let found = self.shared.options.kinds.get(number).clone();
        if !found.has_keys() {
            return Err(KeyError::NoKeys(kind.to_owned()));
        }
        let limit = self.shared.options.key_bytes;
        if bytes.len() > limit {
            let found = bytes.len();
            let reason = format!("a key of {found} bytes: at most {limit} are taken");
            return Err(UnusableKey(reason).into());
        }
        let digest = KeyDigest::of(kind, &bytes);
        if self.keys_held().client_has(client, digest) {
            return Ok(digest);
        }
        self.keys_held().check_room(client, bytes.len())?;
        let size = bytes.len();
        let key = self.read_key(move || found.read_key(&bytes)).await?;
        let mut keys = self.keys_held();
        keys.insert(client, digest, number, size, key)?;
        Ok(digest)
    }

    /// Removes a client's key; true if the client had it. Requests under way still use it.
    pub fn remove_key(&self, client: &str, digest: KeyDigest) -> bool {
        self.keys_held().remove(client, digest)
    }

    /// A client's keys.
    pub fn keys(&self, client: &str) -> Vec<KeyInfo> {
        self.keys_held().infos(client, &self.shared.options.kinds)
    }

    /// Whether proofs of a kind need a verifying key.
    ///
    /// # Errors
    ///
    /// [`KeyError::UnknownKind`].
    pub fn has_keys(&self, kind: &str) -> Result<bool, KeyError> {
        let kinds = &self.shared.options.kinds;
        Ok(kinds.get(kinds.number(kind)?).has_keys())
    }

    /// The names of the kinds that are taken.
    pub fn kinds(&self) -> Vec<String> {
        let names = self.shared.options.kinds.names().into_iter();
        names.map(str::to_owned).collect()
    }

    /// Counts so far.
    pub fn report(&self) -> Report {
        let state = self.shared.state();
        let kinds = &self.shared.options.kinds;
        Report {
            kinds: state
                .figures
                .iter()
                .map(|(number, figures)| (kinds.name(*number).to_owned(), figures.clone()))
                .collect(),
            sources: state.scheduler.sources().collect(),
            under_way: state.scheduler.under_way(),
        }
    }

    /// The number of the request's kind, and its key.
    fn key_of(&self, request: &Request) -> Result<(usize, Option<AnyKey>), Unavailable> {
        let kinds = &self.shared.options.kinds;
        let number = kinds.number(&request.kind);
        let number = number.map_err(|error| Unavailable::UnknownKind(error.to_string()))?;
        if !kinds.get(number).has_keys() {
            return Ok((number, None));
        }
        let digest = request.key.ok_or(Unavailable::NoKey)?;
        let key = self.keys_held().get(&request.client, digest, number);
        let key = key.ok_or(Unavailable::UnknownKey(digest))?;
        Ok((number, Some(key)))
    }

    /// Whether there was room, or none was needed.
    fn try_submit(
        &self,
        submission: Submission,
        work: impl FnOnce() -> Work,
        sender: &mut Option<oneshot::Sender<Verdict>>,
    ) -> Result<bool, Refused> {
        let id = submission.id.clone();
        let mut state = self.shared.state();
        let now = self.shared.now();
        let ticket = match state.scheduler.submit(now, submission) {
            Admission::Accepted(ticket) => {
                state.work.insert(ticket, work());
                ticket
            }
            Admission::Joined(ticket) => ticket,
            Admission::Known(verdict) => {
                let _ = sender.take().map(|sender| sender.send(verdict));
                return Ok(true);
            }
            Admission::Conflict => return Err(Refused::Conflict(id)),
            Admission::Closed => {
                let stopped = Verdict::unavailable(Unavailable::Stopped);
                let _ = sender.take().map(|sender| sender.send(stopped));
                return Ok(true);
            }
            Admission::Full => return Ok(false),
        };
        state
            .waiting
            .entry(ticket)
            .or_default()
            .extend(sender.take());
        self.shared.advance(&mut state);
        let is_awaited = state.is_awaited(now);
        self.shared.hand_out(state);
        if is_awaited {
            self.shared.wake();
        }
        Ok(true)
    }

    /// Reads a key on one of the service's threads.
    async fn read_key(
        &self,
        read: impl FnOnce() -> Result<AnyKey, UnusableKey> + Send + 'static,
    ) -> Result<AnyKey, UnusableKey> {
        let (sender, receiver) = oneshot::channel();
        self.shared.spawn(move || {
            let _ = sender.send(read());
        });
        let read = receiver.await;
        read.unwrap_or_else(|_| Err(UnusableKey::because("reading it failed")))
    }

    fn keys_held(&self) -> MutexGuard<'_, Keys> {
        self.shared
            .keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(request: &Request, limit: usize) -> Result<(), Refused> {
    if !(1..=MAX_ID_BYTES).contains(&request.id.len()) {
        return Err(Refused::Id(request.id.len()));
    }
    if request.source.len() > MAX_ID_BYTES {
        return Err(Refused::Source(request.source.len()));
    }
    let found = request.bytes();
    if found > limit {
        return Err(Refused::TooLarge { found, limit });
    }
    Ok(())
}

fn after(now: Micros, time: Duration) -> Micros {
    let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Micros(now.0.saturating_add(time))
}

// === impl Pending ===

impl Future for Pending {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Verdict> {
        Pin::new(&mut self.verdict)
            .poll(context)
            .map(|verdict| verdict.unwrap_or_else(|_| Verdict::unavailable(Unavailable::Stopped)))
    }
}
