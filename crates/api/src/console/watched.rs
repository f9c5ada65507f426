//! The present state of a service, for all pages that watch it.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, Sse};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// Time between two looks at the service while a page watches.
const INTERVAL: Duration = Duration::from_millis(500);
/// Longest wait for an answer, after which the pages are told that there is none.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);
/// Time between two signs of life to a page that watches.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The state as JSON; an error's text if the service does not answer.
type Latest = Result<Arc<str>, Arc<str>>;

/// A service that pages watch.
pub(crate) trait Look: Send {
    /// The present state, as JSON.
    fn look(&mut self) -> BoxFuture<'_, Result<String, String>>;

    /// Forgets earlier states: nobody has watched for a while.
    fn forget(&mut self) {}

    /// Time from one look to the next.
    fn interval(&self) -> Duration {
        INTERVAL
    }

    /// Message to pages if the state does not come in time.
    fn no_answer(&self) -> String;
}

/// The state of a service, at which one task looks for all pages, and nobody while no page watches.
pub(crate) struct Watched {
    latest: watch::Sender<Option<Latest>>,
    /// Woken when a page begins to watch.
    begun: Notify,
}

// === impl Watched ===

impl Watched {
    pub(crate) fn new() -> Arc<Self> {
        let (latest, _) = watch::channel(None);
        let begun = Notify::new();
        Arc::new(Self { latest, begun })
    }

    /// Looks at the service until the future is dropped.
    pub(crate) async fn keep(&self, mut service: impl Look) {
        loop {
            if self.latest.receiver_count() == 0 {
                service.forget();
                self.latest.send_replace(None);
                self.begun.notified().await;
                continue;
            }
            let late = service.no_answer();
            let seen = {
                let mut looking = pin!(service.look());
                match timeout(ANSWER_TIME_MAX, &mut looking).await {
                    Ok(seen) => seen,
                    Err(_) => {
                        self.tell(Err(late));
                        // The question stays under way: a second one beside it would not be answered sooner.
                        looking.await
                    }
                }
            };
            self.tell(seen);
            sleep(service.interval()).await;
        }
    }

    /// Gives a state to the pages, which are woken by changes only.
    fn tell(&self, seen: Result<String, String>) {
        let seen: Latest = seen.map(Arc::from).map_err(Arc::from);
        self.latest.send_if_modified(|before| {
            let is_new = before.as_ref() != Some(&seen);
            *before = Some(seen);
            is_new
        });
    }

    /// The reason why the service did not answer when it was last looked at; `None` if it did.
    pub(crate) fn lost(&self) -> Option<Arc<str>> {
        match &*self.latest.borrow() {
            Some(Err(why)) => Some(Arc::clone(why)),
            _ => None,
        }
    }

    /// The state, whole, at once and after every change, until `goes_on` is false. It is asked before each event and sign of
    /// life. A page that reads slowly misses states, and gets the latest.
    pub(crate) fn events<F: Fn() -> bool + Send + 'static>(
        &self,
        goes_on: F,
    ) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<F>> {
        let mut seen = self.latest.subscribe();
        seen.mark_changed();
        self.begun.notify_one();
        let events = stream::unfold((seen, goes_on), |(mut seen, goes_on)| async move {
            loop {
                let has_changed = tokio::select! {
                    changed = seen.changed() => changed.ok().map(|()| true)?,
                    () = sleep(KEEP_ALIVE) => false,
                };
                if !goes_on() {
                    return None;
                }
                if !has_changed {
                    return Some((sign_of_life(), (seen, goes_on)));
                }
                let latest = seen.borrow_and_update().clone();
                let event = match latest {
                    Some(Ok(overview)) => Event::default().event("overview").data(&*overview),
                    Some(Err(error)) => Event::default().event("lost").data(&*error),
                    // Nobody has looked yet.
                    None => continue,
                };
                return Some((event, (seen, goes_on)));
            }
        });
        Sse::new(events.map(Ok))
    }
}

/// An event by which a page knows that its connection is alive. Browsers show pages neither comments nor events without
/// data.
fn sign_of_life() -> Event {
    Event::default().event("alive").data("alive")
}

/// The answer to a question, or `late` if it does not come in time.
pub(crate) async fn answered<T, E>(
    answer: impl Future<Output = Result<T, E>>,
    late: impl FnOnce() -> E,
) -> Result<T, E> {
    let answered = timeout(ANSWER_TIME_MAX, answer).await;
    answered.unwrap_or_else(|_| Err(late()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;
    use tokio::time::Instant;

    /// A service whose first look takes a minute.
    struct Slow(u32);

    impl Look for Slow {
        fn look(&mut self) -> BoxFuture<'_, Result<String, String>> {
            Box::pin(async move {
                self.0 += 1;
                if self.0 == 1 {
                    sleep(Duration::from_secs(60)).await;
                }
                Ok(format!("{{\"look\":{}}}", self.0))
            })
        }

        fn no_answer(&self) -> String {
            "nobody answers".to_owned()
        }
    }

    /// A service that does not change.
    struct Still;

    impl Look for Still {
        fn look(&mut self) -> BoxFuture<'_, Result<String, String>> {
            Box::pin(async { Ok("{}".to_owned()) })
        }

        fn no_answer(&self) -> String {
            "nobody answers".to_owned()
        }
    }

    async fn next_frame(body: &mut axum::body::Body) -> String {
        let frame = body.frame().await.expect("an event").expect("no error");
        let data = frame.into_data().expect("data");
        String::from_utf8(data.to_vec()).expect("text")
    }

    /// The next event that is no sign of life.
    async fn next_event(body: &mut axum::body::Body) -> String {
        loop {
            let text = next_frame(body).await;
            if !text.starts_with("event: alive") {
                return text;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_gets_signs_of_life_while_nothing_changes_until_its_session_ends() {
        let watched = Watched::new();
        let looking = watched.clone();
        let keeping = tokio::spawn(async move { looking.keep(Still).await });
        let began = Instant::now();
        let goes_on = move || began.elapsed() < 3 * KEEP_ALIVE;
        let mut body = watched.events(goes_on).into_response().into_body();
        assert_eq!(next_frame(&mut body).await, "event: overview\ndata: {}\n\n");
        for signs in 1..3_u32 {
            assert_eq!(next_frame(&mut body).await, "event: alive\ndata: alive\n\n");
            assert!(began.elapsed() >= signs * KEEP_ALIVE);
        }
        assert!(body.frame().await.is_none());
        keeping.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn pages_are_told_that_nobody_answers_until_somebody_does() {
        let watched = Watched::new();
        let keeping = tokio::spawn({
            let watched = watched.clone();
            async move { watched.keep(Slow(0)).await }
        });
        let mut body = watched.events(|| true).into_response().into_body();
        let event = next_event(&mut body).await;
        assert!(event.contains("event: lost") && event.contains("nobody answers"));
        assert_eq!(watched.lost().as_deref(), Some("nobody answers"));
        // A page that comes meanwhile is told, too.
        let mut other = watched.events(|| true).into_response().into_body();
        assert!(next_event(&mut other).await.contains("nobody answers"));
        // The first question is the one that is answered: there was no second.
        assert!(next_event(&mut body).await.contains("\"look\":1"));
        assert!(next_event(&mut body).await.contains("\"look\":2"));
        assert_eq!(watched.lost(), None);
        drop((body, other));
        keeping.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_looks_while_nobody_watches() {
        let watched = Watched::new();
        let looking = watched.clone();
        let keeping = tokio::spawn(async move { looking.keep(Slow(1)).await });
        sleep(Duration::from_secs(60)).await;
        let mut body = watched.events(|| true).into_response().into_body();
        // It is the first look.
        assert!(next_event(&mut body).await.contains("\"look\":2"));
        drop(body);
        sleep(Duration::from_secs(60)).await;
        let mut body = watched.events(|| true).into_response().into_body();
        let event = next_event(&mut body).await;
        assert!(
            event.contains("\"look\":3") || event.contains("\"look\":4"),
            "{event}"
        );
        keeping.abort();
    }
}
