//! An engine that a mill's stages use, as the mill's console asks it: in this process, or in another one.
//!
//! Every answer has a time limit and a limit of bytes: the engine may be anyone's. Its token stays here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proofmill_engine::Handle;
use prost::Message;
use tokio::sync::{Mutex, OnceCell};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::convert;
use super::history::History;
use super::overview::{drawing, overview};
use super::{Address, Client, ClientError, Credentials, proto};

/// Longest wait for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Most bytes of a message of an engine in another process.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Most events of an engine in another process that are drawn: the last ones.
const EVENTS_MAX: usize = 1 << 14;
/// Most bytes of the events that are drawn.
const EVENT_BYTES_MAX: usize = 16 << 20;
/// Time for which a drawing is shown before the engine is asked for another.
const DRAWING_LIFETIME: Duration = Duration::from_secs(4);

/// An engine, and the stages that use it.
pub struct WatchedEngine {
    address: String,
    stages: Vec<String>,
    access: Access,
    /// The latest drawing or the reason for its absence, and the time of the answer.
    drawn: Mutex<Option<(Instant, Drawing)>>,
}

/// The way to an engine.
enum Access {
    /// It is in this process.
    Here {
        handle: Handle,
        history: Arc<History>,
        recording: JoinHandle<()>,
    },
    /// It is in another process.
    There(Box<Remote>),
}

/// An engine in another process.
struct Remote {
    address: Address,
    credentials: Credentials,
    /// Set at the first connection; the client reconnects by itself.
    client: OnceCell<Client>,
}

/// The last of an engine's events, up to a number of them and of their bytes.
struct Latest {
    events: VecDeque<proto::Event>,
    bytes: usize,
    events_max: usize,
    bytes_max: usize,
}

/// An SVG, or the reason for its absence.
type Drawing = Result<Arc<str>, Arc<str>>;

// === impl WatchedEngine ===

impl WatchedEngine {
    /// An engine in this process, whose events are recorded from now on; `stages` are those that use it.
    pub fn here(handle: Handle, stages: Vec<String>) -> Self {
        let (history, events) = (History::new(), handle.events());
        let record = history.clone();
        let recording = tokio::spawn(async move { record.record(events).await });
        let access = Access::Here {
            handle,
            history,
            recording,
        };
        Self::new("in this process".to_owned(), stages, access)
    }

    /// An engine in another process, which is connected to when it is first asked.
    pub fn there(address: Address, credentials: Credentials, stages: Vec<String>) -> Self {
        let shown = address.to_string();
        let remote = Remote {
            address,
            credentials,
            client: OnceCell::new(),
        };
        Self::new(shown, stages, Access::There(Box::new(remote)))
    }

    fn new(address: String, stages: Vec<String>, access: Access) -> Self {
        Self {
            address,
            stages,
            access,
            drawn: Mutex::default(),
        }
    }

    /// The address, or a name for the engine in this process.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The stages that use it.
    pub(crate) fn stages(&self) -> &[String] {
        &self.stages
    }

    /// Its status as JSON. The error is a text for the page.
    pub(crate) async fn status(&self) -> Result<String, String> {
        let status = async {
            match &self.access {
                Access::Here { handle, .. } => {
                    let status = handle.status().await.map_err(|error| error.to_string())?;
                    Ok(convert::status(&status))
                }
                Access::There(remote) => {
                    let client = remote.client().await?;
                    client.status().await.map_err(|error| error.to_string())
                }
            }
        };
        let answered = timeout(ANSWER_TIME_MAX, status).await;
        overview(answered.unwrap_or_else(|_| Err(late()))?)
    }

    /// The drawing of its recent work. Pages that ask at the same time share one question to the engine.
    pub(crate) async fn drawing(&self) -> Drawing {
        let mut drawn = self.drawn.lock().await;
        if let Some((at, drawing)) = &*drawn
            && at.elapsed() < DRAWING_LIFETIME
        {
            return drawing.clone();
        }
        let events = timeout(ANSWER_TIME_MAX, self.events()).await;
        let events = events.unwrap_or_else(|_| Err(late()));
        let made: Drawing = events
            .map(|events| drawing(&events).into())
            .map_err(Arc::from);
        // From the answer on, so that those who waited for it do not ask a late engine again, one after the other.
        *drawn = Some((Instant::now(), made.clone()));
        made
    }

    async fn events(&self) -> Result<Vec<proto::Event>, String> {
        match &self.access {
            Access::Here { history, .. } => Ok(history.read(true, None).past),
            Access::There(remote) => {
                let client = remote.client().await?;
                let latest = latest_events(client, EVENTS_MAX).await;
                latest.map_err(|error| error.to_string())
            }
        }
    }
}

impl Drop for WatchedEngine {
    fn drop(&mut self) {
        if let Access::Here { recording, .. } = &self.access {
            recording.abort();
        }
    }
}

// === impl Remote ===

impl Remote {
    async fn client(&self) -> Result<&Client, String> {
        let connect = || async {
            let client = Client::connect(&self.address, &self.credentials).await?;
            Ok::<_, ClientError>(client.with_answer_bytes_max(MESSAGE_BYTES_MAX))
        };
        let connected = self.client.get_or_try_init(connect).await;
        connected.map_err(|error| match error {
            // These name a file of this machine, and how it is protected: nothing for those who look at a page.
            ClientError::Secret(_) | ClientError::NoToken(_) | ClientError::Access(_) => {
                tracing::warn!(%error, address = %self.address, "the credentials for an engine cannot be used");
                "the credentials for it cannot be used: the log of this process says why".to_owned()
            }
            error => error.to_string(),
        })
    }
}

// === impl Latest ===

impl Latest {
    fn new(events_max: usize, bytes_max: usize) -> Self {
        Self {
            events: VecDeque::new(),
            bytes: 0,
            events_max,
            bytes_max,
        }
    }

    fn push(&mut self, event: proto::Event) {
        self.bytes += event.encoded_len();
        self.events.push_back(event);
        while self.events.len() > self.events_max || self.bytes > self.bytes_max {
            let Some(old) = self.events.pop_front() else {
                break;
            };
            self.bytes -= old.encoded_len();
        }
    }
}

fn late() -> String {
    format!("no answer within {} s", ANSWER_TIME_MAX.as_secs())
}

/// The last of the events that an engine remembers.
async fn latest_events(client: &Client, most: usize) -> Result<Vec<proto::Event>, ClientError> {
    let mut latest = Latest::new(most, EVENT_BYTES_MAX);
    client.each_past_event(|event| latest.push(event)).await?;
    Ok(latest.events.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_us: u64) -> proto::Event {
        proto::Event {
            at_us,
            ..Default::default()
        }
    }

    fn times(latest: &Latest) -> Vec<u64> {
        latest.events.iter().map(|it| it.at_us).collect()
    }

    #[test]
    fn the_last_events_are_kept_up_to_a_number_and_to_bytes() {
        let mut latest = Latest::new(3, 1000);
        (1..=5).for_each(|at_us| latest.push(event(at_us)));
        assert_eq!(times(&latest), [3, 4, 5]);

        let each = event(1).encoded_len();
        let mut latest = Latest::new(100, 2 * each);
        (1..=5).for_each(|at_us| latest.push(event(at_us)));
        assert_eq!((times(&latest), latest.bytes), (vec![4, 5], 2 * each));
        // One that is too large by itself.
        let mut latest = Latest::new(100, each - 1);
        latest.push(event(1));
        assert_eq!((times(&latest), latest.bytes), (vec![], 0));
    }
}
