//! Receiving witnesses that are larger than a message.

use std::time::Duration;

use proofmill_engine::{Handle, Submission, Upload};
use tonic::{Status, Streaming};
use zeroize::Zeroizing;

use super::convert;
use super::proto::SubmitStreamRequest;
use super::proto::submit_stream_request::Part;
use super::refusal;

/// Most streamed witnesses of one job, since each is an open upload and the engine limits their number.
const STREAMED_MAX: usize = 16;
/// Longest wait for the next message.
const MESSAGE_WAIT_MAX: Duration = Duration::from_secs(60);

/// Receives a submission: the job, then the bytes of its streamed witnesses.
///
/// # Errors
///
/// A part is missing, too large or malformed, or there is no room now. Data received so far is removed.
pub(crate) async fn receive(
    handle: &Handle,
    mut messages: Streaming<SubmitStreamRequest>,
    caller: Option<&str>,
) -> Result<Submission, Status> {
    let Some(Part::Job(job)) = next_part(&mut messages).await? else {
        return Err(Status::invalid_argument(
            "the first message of a stream is the job",
        ));
    };
    let pending = convert::submission(job, caller)?;
    let expected: Vec<u64> = pending.streamed_sizes().collect();
    if expected.len() > STREAMED_MAX {
        return Err(Status::invalid_argument(format!(
            "{} witnesses to be streamed, a job has at most {STREAMED_MAX}: submit several jobs",
            expected.len()
        )));
    }
    let mut uploads = Vec::with_capacity(expected.len());
    for (index, bytes) in expected.into_iter().enumerate() {
        uploads.push(receive_witness(handle, &mut messages, index, bytes).await?);
    }
    if next_part(&mut messages).await?.is_some() {
        return Err(Status::invalid_argument(
            "more came than the job's streamed witnesses have",
        ));
    }
    pending.complete(uploads)
}

/// Receives the streamed witness of index `index`, which has `bytes` bytes.
async fn receive_witness(
    handle: &Handle,
    messages: &mut Streaming<SubmitStreamRequest>,
    index: usize,
    bytes: u64,
) -> Result<Upload, Status> {
    let mut upload = handle.upload().await.map_err(refusal::status_of_error)?;
    while upload.bytes() < bytes {
        let malformed =
            |why: String| Status::invalid_argument(format!("streamed witness {index}: {why}"));
        let left = bytes - upload.bytes();
        let chunk = match next_part(messages).await? {
            Some(Part::Chunk(chunk)) => Zeroizing::new(chunk),
            Some(Part::Job(_)) => {
                return Err(malformed("a second job instead of a chunk".to_owned()));
            }
            None => {
                return Err(malformed(format!(
                    "the stream ended {left} bytes before its end"
                )));
            }
        };
        if chunk.is_empty() {
            return Err(malformed("an empty chunk".to_owned()));
        }
        if chunk.len() as u64 > left {
            let size = chunk.len();
            return Err(malformed(format!(
                "a chunk of {size} bytes where {left} were left"
            )));
        }
        upload
            .write(&chunk)
            .await
            .map_err(refusal::status_of_error)?;
    }
    Ok(upload)
}

async fn next_part(messages: &mut Streaming<SubmitStreamRequest>) -> Result<Option<Part>, Status> {
    let late = |_| Status::deadline_exceeded("the next message of the stream did not come");
    let message = tokio::time::timeout(MESSAGE_WAIT_MAX, messages.message()).await;
    match message.map_err(late)?? {
        None => Ok(None),
        Some(SubmitStreamRequest { part: Some(part) }) => Ok(Some(part)),
        Some(SubmitStreamRequest { part: None }) => Err(Status::invalid_argument(
            "a message with neither job nor chunk",
        )),
    }
}
