//! Blobs in a JetStream stream.
//!
//! A blob is cut into pieces of equal size. Each piece is a message with its own subject, of which the
//! stream keeps the last message: putting a blob again replaces all its pieces. The first piece is
//! written last and states the blob's length; without it the blob does not exist. A put only
//! publishes, and a user who may only publish cannot remove anything. In the server's own object
//! stores such a user could, with a single header.

use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use async_nats::header::HeaderMap;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{Config, DirectGetErrorKind, LastRawMessageErrorKind, Stream};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};

use super::connection::{Connection, HEADER_BYTES_MAX, PAYLOAD_BYTES_MIN, RetryDeadline, retry};
use super::options::ConnectError;
use super::refusal::Refusal;
use super::resource::open_stream;
use crate::blob::{BlobStore, Bucket, ConditionalDelete};

const STORE_NAME: &str = "JetStream";

/// Size of every piece but the last, in bytes. It fits into a message of every supported server.
const PIECE_BYTES: usize = PAYLOAD_BYTES_MIN - HEADER_BYTES_MAX;

/// Number of pieces sent or fetched concurrently.
const PIECES_AT_ONCE: usize = 8;

/// Last token of the subject of a hold, and the suffix of that object's name.
const HOLD_TOKEN: &str = "held";
const HOLD_SUFFIX: &str = ".held";

/// Name of the header of the first piece that has the length of the whole blob, in bytes.
pub(super) const SIZE_HEADER: &str = "Proofmill-Size";

/// Metadata of the stream: the address of the bucket, if blobs are in one.
const PLACE_METADATA: &str = "proofmill-blobs";

/// The blobs of this cluster: on the server, or in the bucket that the connection's options name.
/// The stream's metadata records which, so that every process uses the same.
///
/// # Errors
/// [`ConnectError`].
pub fn open_blobs(connection: &Connection) -> BoxFuture<'_, Result<BlobStore, ConnectError>> {
    // Boxed, so that it is compiled in this crate and not again in every caller's.
    Box::pin(async move {
        let bucket = connection.options().blobs.as_ref();
        let place = bucket.map(|bucket| (PLACE_METADATA.to_owned(), bucket.url().to_owned()));
        let config = Config {
            name: format!("{}_blobs", connection.options().prefix),
            description: Some("Proofmill: large payloads".into()),
            subjects: vec![connection.subject(&["blob", "*", "*"])],
            max_messages_per_subject: 1,
            allow_direct: true,
            metadata: place.into_iter().collect(),
            ..Config::default()
        };
        let stream = open_stream(connection, config).await?;
        let found = &stream.cached_info().config;
        let place = found.metadata.get(PLACE_METADATA).map(String::as_str);
        if place != bucket.map(Bucket::url) {
            return Err(ConnectError::Resource {
                what: format!("the stream {}", found.name),
                why: match place {
                    Some(place) => {
                        format!("this cluster's blobs are in a bucket: give --blobs {place}")
                    }
                    None => "this cluster's blobs are on the server: leave --blobs out".into(),
                },
            });
        }
        if let Some(bucket) = bucket {
            return Ok(BlobStore::in_bucket(bucket)?);
        }
        Ok(BlobStore::over_conditional(JetStreamObjects {
            connection: connection.clone(),
            stream,
        }))
    })
}

/// The part of an object store that blobs need.
#[derive(Clone)]
struct JetStreamObjects {
    connection: Connection,
    stream: Stream,
}

impl fmt::Debug for JetStreamObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JetStreamObjects({self})")
    }
}

impl fmt::Display for JetStreamObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the stream {}", self.stream.cached_info().config.name)
    }
}

// === impl JetStreamObjects ===

impl JetStreamObjects {
    /// The subject of a piece, or, with `*`, of all pieces of an object. A hold is a message beside
    /// the blob's pieces.
    fn subject(&self, location: &Path, piece: &str) -> String {
        let (location, piece) = match location.as_ref().strip_suffix(HOLD_SUFFIX) {
            Some(blob) => (blob, HOLD_TOKEN),
            None => (location.as_ref(), piece),
        };
        let name = match location.split_once('/') {
            Some((workflow, rest)) if rest.contains('/') => {
                format!("{workflow}-{}", rest.replace('/', ""))
            }
            _ => location.replace('/', ""),
        };
        self.connection.subject(&["blob", &name, piece])
    }

    /// Publishes a piece. Retries if a server has failed, which is safe: it is the same message.
    async fn publish(&self, subject: String, message: PublishMessage) -> Result<(), PublishError> {
        let context = &self.connection.context;
        let publish = || async {
            let sent = context.send_publish(subject.clone(), message.clone());
            sent.await?.await.map(drop)
        };
        retry(publish).await
    }

    async fn put(&self, location: &Path, content: Bytes) -> Result<()> {
        let size = content.len();
        let piece = |number: usize| {
            let begin = number * PIECE_BYTES;
            content.slice(begin..size.min(begin + PIECE_BYTES))
        };
        let rest = stream::iter(1..size.div_ceil(PIECE_BYTES)).map(|number| {
            let message = PublishMessage::build().payload(piece(number));
            self.publish(self.subject(location, &number.to_string()), message)
        });
        let all = async {
            rest.buffer_unordered(PIECES_AT_ONCE)
                .try_collect::<()>()
                .await?;
            let first = PublishMessage::build()
                .payload(piece(0))
                .header(SIZE_HEADER, size.to_string());
            self.publish(self.subject(location, "0"), first).await
        };
        self.or_refusal(all).await?.map_err(failed)
    }

    /// Fetches a piece. Any server with a copy may answer; since a copy may lag, only the stream's
    /// leader is believed that a piece does not exist.
    async fn piece(&self, location: &Path, number: usize) -> Result<StreamMessage> {
        let deadline = RetryDeadline::new();
        loop {
            let looked = self.or_refusal(self.look_for(location, number));
            match looked.await? {
                Ok(found) => return Ok(found),
                Err(error @ Error::NotFound { .. }) => return Err(error),
                Err(error) if !deadline.pause(&error.to_string()).await => return Err(error),
                Err(_) => {}
            }
        }
    }

    async fn look_for(&self, location: &Path, number: usize) -> Result<StreamMessage> {
        let subject = self.subject(location, &number.to_string());
        let found = self.stream.direct_get_last_for_subject(&*subject).await;
        match found {
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => {}
            found => return found.map_err(failed),
        }
        let found = self.stream.get_last_raw_message_by_subject(&subject).await;
        found.map_err(|error| match error.kind() {
            LastRawMessageErrorKind::NoMessageFound => Error::NotFound {
                path: location.to_string(),
                source: Box::new(error),
            },
            _ => failed(error),
        })
    }

    async fn content(&self, location: &Path, first: Bytes, size: usize) -> Result<Bytes> {
        if size <= PIECE_BYTES {
            return Ok(first);
        }
        // Memory is not reserved for the stated length, which is not yet confirmed by the pieces.
        let mut content = BytesMut::from(first);
        let rest =
            stream::iter(1..size.div_ceil(PIECE_BYTES)).map(|number| self.piece(location, number));
        let mut rest = rest.buffered(PIECES_AT_ONCE);
        while let Some(piece) = rest.try_next().await? {
            content.extend_from_slice(&piece.payload);
        }
        Ok(content.freeze())
    }

    /// Removes all pieces, except those newer than `seen`, a stream sequence.
    async fn remove(&self, location: &Path, seen: Option<u64>) -> Result<()> {
        let purge = self.stream.purge().filter(self.subject(location, "*"));
        let purge = match seen {
            Some(seen) => purge.sequence(seen.saturating_add(1)).into_future(),
            None => purge.into_future(),
        };
        let purged = self.or_refusal(purge).await?;
        purged.map(|_| ()).map_err(failed)
    }

    /// Every object, and the remains of interrupted puts.
    async fn all(&self) -> Result<Vec<ObjectMeta>> {
        let config = pull::OrderedConfig {
            headers_only: true,
            ..pull::OrderedConfig::default()
        };
        let consumer = self.or_refusal(self.stream.create_consumer(config));
        let mut consumer = consumer.await?.map_err(failed)?;
        let mut found: BTreeMap<Path, (ObjectMeta, bool)> = BTreeMap::new();
        if consumer.info().await.map_err(failed)?.num_pending == 0 {
            return Ok(Vec::new());
        }
        let mut messages = consumer.messages().await.map_err(failed)?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(failed)?;
            let info = message.info().map_err(|source| Error::Generic {
                store: STORE_NAME,
                source,
            })?;
            if let Some((location, piece)) = named(&message.subject) {
                let time = SystemTime::from(info.published);
                let size = message.headers.as_ref().and_then(size_of).unwrap_or(0);
                let size = if piece == 0 { size } else { 0 };
                let meta = meta(location.clone(), time, size, info.stream_sequence);
                // The first piece is the object; other pieces only show the age of an unfinished
                // put.
                match found.get(&location) {
                    Some((_, true)) if piece != 0 => {}
                    _ => {
                        found.insert(location, (meta, piece == 0));
                    }
                }
            }
            if info.pending == 0 {
                break;
            }
        }
        Ok(found.into_values().map(|(meta, _)| meta).collect())
    }

    async fn or_refusal<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let done = self.connection.or_refusal(work).await;
        done.map_err(|refusal: Refusal| failed(refusal))
    }
}

/// The object's location and the number of the piece that a subject names; `None` for other
/// subjects.
pub(super) fn named(subject: &str) -> Option<(Path, usize)> {
    let mut tokens = subject.rsplitn(3, '.');
    let piece = tokens.next()?;
    let name = tokens.next()?;
    let (workflow, name) = match name.rsplit_once('-') {
        Some((workflow, name)) => (format!("{workflow}/"), name),
        None => (String::new(), name),
    };
    let (folder, name) = name.split_at_checked(2)?;
    let blob = format!("{workflow}{folder}/{name}");
    match piece {
        HOLD_TOKEN => Some((Path::from(format!("{blob}{HOLD_SUFFIX}")), 0)),
        piece => Some((Path::from(blob), piece.parse().ok()?)),
    }
}

pub(super) fn size_of(headers: &HeaderMap) -> Option<u64> {
    headers.get(SIZE_HEADER)?.as_str().parse().ok()
}

fn meta(location: Path, time: SystemTime, size: u64, sequence: u64) -> ObjectMeta {
    ObjectMeta {
        location,
        last_modified: time.into(),
        size,
        e_tag: None,
        version: Some(sequence.to_string()),
    }
}

fn failed(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic {
        store: STORE_NAME,
        source: Box::new(source),
    }
}

fn unsupported(operation: &str) -> Error {
    Error::NotImplemented {
        operation: operation.into(),
        implementer: STORE_NAME.into(),
    }
}

impl ConditionalDelete for JetStreamObjects {
    fn delete_if_unchanged<'a>(
        &'a self,
        location: &'a Path,
        seen: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>> {
        let seen = seen.map(str::parse).transpose();
        Box::pin(async move { self.remove(location, seen.map_err(failed)?).await })
    }
}

#[async_trait]
impl ObjectStore for JetStreamObjects {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if options.mode != PutMode::Overwrite {
            return Err(unsupported("a conditional put"));
        }
        self.put(location, Bytes::from(payload)).await?;
        Ok(PutResult {
            e_tag: None,
            version: None,
            extensions: Default::default(),
        })
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(unsupported("an upload in parts"))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if options.range.is_some() {
            return Err(unsupported("a range"));
        }
        let first = self.piece(location, 0).await?;
        let size = size_of(&first.headers).unwrap_or(first.payload.len() as u64);
        let meta = meta(location.clone(), first.time.into(), size, first.sequence);
        options.check_preconditions(&meta)?;
        let content = if options.head {
            stream::empty().boxed()
        } else {
            let size = usize::try_from(size).map_err(failed)?;
            let content = self.content(location, first.payload, size).await?;
            stream::iter([Ok(content)]).boxed()
        };
        Ok(GetResult {
            range: 0..meta.size,
            meta,
            payload: GetResultPayload::Stream(content),
            attributes: Attributes::default(),
            extensions: Default::default(),
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let deleted = locations.then(move |location| {
            let store = store.clone();
            async move {
                let location = location?;
                store.remove(&location, None).await?;
                Ok(location)
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned());
        let listed = stream::once(async move {
            let mut found = store.all().await?;
            found.retain(|meta| {
                let prefix = prefix.as_ref();
                prefix.is_none_or(|prefix| meta.location.prefix_matches(prefix))
            });
            Ok::<_, Error>(stream::iter(found).map(Ok))
        });
        listed.try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(unsupported("a listing by folder"))
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(unsupported("a copy"))
    }
}
