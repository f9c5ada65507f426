//! Answers of the site, and what follows from them.
//!
//! Source: the routes of <https://github.com/ethproofs/ethproofs> (`app/api/v0/proofs/*/route.ts`,
//! `lib/middleware/*`, commit 98b7a6f1). A block that is proved stays proved: further calls about it are answered with
//! 409, whether an earlier answer was lost or another process was first.

use std::time::Duration;

use proofmill_http::HttpError;
use serde::Deserialize;

/// Most bytes of an answer that are read.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Most characters of an answer that are shown.
const SHOWN_MAX: usize = 200;

/// Longest wait that the site's limiter can ask for.
const LIMITED_MAX: Duration = Duration::from_secs(600);

/// Wait if the limiter names none: its window.
const LIMITED: Duration = Duration::from_secs(60);

/// Answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The site has answered.
    Status {
        /// Status of the response.
        status: u16,
        /// Body of the response, at most [`ANSWER_BYTES_MAX`] bytes; empty if it could not be read.
        body: Vec<u8>,
    },
    /// There is no answer, for this reason; the site may have the report nevertheless.
    Nothing(String),
    /// The call could not be made, for this reason, and never can.
    Impossible(String),
}

/// Meaning of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The site has taken the report.
    Accepted,
    /// The site has the block's proof already.
    Known,
    /// The site does not take this report, for this reason; calling again would not help.
    Refused(String),
    /// The site takes no report of this token or cluster until a person has mended the settings.
    Misconfigured(String),
    /// The site asks for a pause of its limiter's.
    Limited(Duration),
    /// Calling again may help.
    Failed(String),
}

#[derive(Deserialize)]
struct LimitedBody {
    #[serde(rename = "retryAfter")]
    retry_after: f64,
}

// === impl Answer ===

impl Answer {
    /// The answer to a request.
    pub(crate) fn of(answered: Result<proofmill_http::Answer, HttpError>) -> Self {
        match answered {
            Ok(answer) => Self::Status {
                status: answer.status.as_u16(),
                body: answer.body.unwrap_or_default().to_vec(),
            },
            Err(HttpError::Setup(why)) => Self::Impossible(why),
            Err(error) => Self::Nothing(error.to_string()),
        }
    }

    /// Meaning of the answer.
    pub fn verdict(&self) -> Verdict {
        let (status, body) = match self {
            Self::Nothing(why) => return Verdict::Failed(why.clone()),
            Self::Impossible(why) => return Verdict::Refused(why.clone()),
            Self::Status { status, body } => (*status, body),
        };
        verdict(status, body)
    }
}

/// Meaning of a response.
pub(crate) fn verdict(status: u16, body: &[u8]) -> Verdict {
    let answered = || format!("it answered {status}: {:?}", beginning(body));
    match status {
        200..=299 => Verdict::Accepted,
        409 => Verdict::Known,
        429 => Verdict::Limited(pause(body)),
        408 | 425 | 500..=599 => Verdict::Failed(answered()),
        // The key or the cluster is not known, or the address is another one's.
        300..=399 | 401 | 403 | 404 | 405 => Verdict::Misconfigured(answered()),
        _ => Verdict::Refused(answered()),
    }
}

fn pause(body: &[u8]) -> Duration {
    let named = serde_json::from_slice::<LimitedBody>(body).ok();
    let named = named.and_then(|body| Duration::try_from_secs_f64(body.retry_after).ok());
    named
        .unwrap_or(LIMITED)
        .clamp(Duration::from_secs(1), LIMITED_MAX)
}

/// The beginning of an answer, for people.
fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(body)
        .chars()
        .take(SHOWN_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: u16, body: &str) -> Verdict {
        let body = body.as_bytes().to_vec();
        Answer::Status { status, body }.verdict()
    }

    #[test]
    fn the_site_s_own_answers() {
        assert_eq!(verdict(200, r#"{"proof_id":7}"#), Verdict::Accepted);
        assert_eq!(verdict(409, "Proof already proved"), Verdict::Known);
        for (status, text) in [
            (401, "Invalid API key"),
            (404, "Cluster not found"),
            (308, ""),
        ] {
            let verdict = verdict(status, text);
            assert!(matches!(verdict, Verdict::Misconfigured(why) if why.contains(text)));
        }
        let refused = verdict(
            400,
            "Invalid request: proving_time must be a positive number",
        );
        assert!(matches!(refused, Verdict::Refused(why) if why.contains("proving_time")));
        assert!(matches!(verdict(413, ""), Verdict::Refused(_)));
        assert!(matches!(verdict(503, "x"), Verdict::Failed(_)));
    }

    #[test]
    fn a_limiter_s_pause_is_kept_within_bounds() {
        let seconds = |body: &str| match verdict(429, body) {
            Verdict::Limited(pause) => pause.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!(seconds(r#"{"error":"x","retryAfter":17}"#), 17);
        assert_eq!(seconds(r#"{"retryAfter":-4}"#), 60);
        assert_eq!(seconds(r#"{"retryAfter":0}"#), 1);
        assert_eq!(seconds(r#"{"retryAfter":1e300}"#), 60);
        assert_eq!(seconds(r#"{"retryAfter":86400}"#), 600);
        assert_eq!(seconds("<html>"), 60);
    }

    #[test]
    fn long_answers_are_cut() {
        let Verdict::Failed(why) = verdict(500, &"x".repeat(10_000)) else {
            panic!("a failure");
        };
        assert!(why.len() < 300, "{}", why.len());
    }
}
