//! Streams: made if they do not exist, and extended only if a Proofmill process made them.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType, Stream};

use super::with_sources;
use crate::error::RunError;

/// The metadata entry that marks streams made by this program.
const MARK: (&str, &str) = ("proofmill", "push0");

/// Time within which the server recognises a repeated message. Longer than its own default of two minutes,
/// since a program may run for a long time between two tries to publish.
const DUPLICATES: Duration = Duration::from_secs(20 * 60);

/// Most tries to write a stream's subjects, which other processes may be writing too.
const ATTEMPTS: u32 = 20;

/// The streams of a deployment.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    context: Context,
}

// === impl Streams ===

impl Streams {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Opens the stream `name`, which must hold `queues`. If it does not exist it is made. If this program
    /// made it, missing queues are added; streams made by others are left unchanged.
    pub(crate) async fn ensure(&self, name: &str, queues: &[String]) -> Result<Stream, RunError> {
        let fault = |why: String| RunError::Stream {
            stream: name.to_owned(),
            why,
        };
        let mut why = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(20 << attempt.min(5))).await;
            }
            let stream = match self.context.get_stream(name).await {
                Ok(stream) => stream,
                Err(error) if is_absent(&error.kind()) => {
                    match self.context.create_stream(new(name, queues)).await {
                        Ok(stream) => stream,
                        Err(error) => {
                            why = with_sources(&error);
                            continue;
                        }
                    }
                }
                Err(error) => {
                    why = with_sources(&error);
                    continue;
                }
            };
            let mut config = stream.cached_info().config.clone();
            let missing = missing(&config.subjects, queues);
            if missing.is_empty() {
                return Ok(stream);
            }
            if config.metadata.get(MARK.0).map(String::as_str) != Some(MARK.1) {
                let held = config.subjects.join(", ");
                let all = [config.subjects, missing.clone()].concat().join(",");
                return Err(fault(format!(
                    "it holds {held}, not {}: name another stream, or let it hold them \
                     (`nats stream edit {name} --subjects {all}`)",
                    missing.join(", ")
                )));
            }
            config.subjects.extend(missing);
            // Another process may have written its own subjects at the same time, so the stream is read
            // again.
            if let Err(error) = self.context.update_stream(config).await {
                why = with_sources(&error);
            }
        }
        Err(fault(why))
    }

    /// Ensures that a stream holds the dead letters `queue`: the stream `beside` if it holds that subject
    /// or may be extended, or else a stream of its own.
    pub(crate) async fn ensure_dead_letters(
        &self,
        beside: &Stream,
        queue: &str,
    ) -> Result<(), RunError> {
        let config = &beside.cached_info().config;
        let wanted = [queue.to_owned()];
        if missing(&config.subjects, &wanted).is_empty() {
            return Ok(());
        }
        let ours = config.metadata.get(MARK.0).map(String::as_str) == Some(MARK.1);
        let name = if ours {
            config.name.clone()
        } else {
            format!("{}_dlq", config.name)
        };
        self.ensure(&name, &wanted).await.map(|_| ())
    }
}

fn is_absent(kind: &GetStreamErrorKind) -> bool {
    use async_nats::jetstream::ErrorCode;
    matches!(kind, GetStreamErrorKind::JetStream(error)
        if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn new(name: &str, queues: &[String]) -> Config {
    let prefix = format!("{name}.");
    // As in the demo, one wildcard holds every queue of the deployment and its dead letters.
    let subjects = if queues.iter().all(|queue| queue.starts_with(&prefix)) {
        vec![format!("{name}.>")]
    } else {
        queues.to_vec()
    };
    Config {
        name: name.to_owned(),
        description: Some("Proofmill: queues of dispatchers and collectors".to_owned()),
        subjects,
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        duplicate_window: DUPLICATES,
        allow_direct: true,
        metadata: HashMap::from([(MARK.0.to_owned(), MARK.1.to_owned())]),
        ..Config::default()
    }
}

/// The queues that no pattern in `subjects` matches.
fn missing(subjects: &[String], queues: &[String]) -> Vec<String> {
    let held = |queue: &&String| !subjects.iter().any(|subject| holds(subject, queue));
    queues.iter().filter(held).cloned().collect()
}

/// Whether a stream's subject, which may have wildcards, matches a queue.
fn holds(subject: &str, queue: &str) -> bool {
    let mut tokens = queue.split('.');
    let mut pattern = subject.split('.');
    loop {
        match (pattern.next(), tokens.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(token)) if wanted == token => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_hold_what_they_should() {
        for (subject, queue, expected) in [
            ("a.>", "a.b", true),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("*.b", "a.b", true),
            (">", "a", true),
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.b", "a", false),
            ("a", "a.b", false),
        ] {
            assert_eq!(holds(subject, queue), expected, "{subject} {queue}");
        }
    }

    #[test]
    fn a_new_stream_takes_the_wildcard_of_its_name_where_that_fits() {
        let queues = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(new("mo", &queues(&["mo.a", "mo.b"])).subjects, ["mo.>"]);
        assert_eq!(new("mo", &queues(&["mo.a", "b"])).subjects, ["mo.a", "b"]);
    }
}
