//! Blobs in a JetStream object store.

use std::fmt;
use std::time::SystemTime;

use async_nats::jetstream::object_store as nats;
use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use tokio::io::AsyncReadExt;

use super::connection::{Connection, patiently, with_sources};
use super::options::ConnectError;
use super::stream::ensure_fits;
use crate::blob::BlobStore;

const STORE: &str = "JetStream";

/// The blobs of this cluster, in the server's object store, which is made if it is not there.
///
/// # Errors
/// [`ConnectError`].
pub async fn open_blobs(connection: &Connection) -> Result<BlobStore, ConnectError> {
    let options = connection.options();
    let bucket = format!("{}_blobs", options.prefix);
    let resource = |why: String| ConnectError::Resource {
        what: format!("the object store {bucket}"),
        why,
    };
    let context = &connection.context;
    let config = nats::Config {
        bucket: bucket.clone(),
        description: Some("Proofmill: large payloads".into()),
        num_replicas: options.replicas,
        ..nats::Config::default()
    };
    let store = patiently(|| async {
        match context.get_object_store(&bucket).await {
            Ok(store) => Ok(store),
            Err(_) => context.create_object_store(config.clone()).await,
        }
    });
    let store = store
        .await
        .map_err(|error| resource(with_sources(&error)))?;
    let stream = patiently(|| context.get_stream(format!("OBJ_{bucket}"))).await;
    let stream = stream.map_err(|error| resource(with_sources(&error)))?;
    ensure_fits(&stream.cached_info().config, options.replicas).map_err(resource)?;
    Ok(BlobStore::over(std::sync::Arc::new(JetStreamObjects {
        store,
        bucket,
    })))
}

/// The part of an object store that blobs need.
struct JetStreamObjects {
    store: nats::ObjectStore,
    bucket: String,
}

impl fmt::Debug for JetStreamObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JetStreamObjects({})", self.bucket)
    }
}

impl fmt::Display for JetStreamObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the JetStream object store {}", self.bucket)
    }
}

impl JetStreamObjects {
    async fn meta(&self, location: &Path) -> Result<ObjectMeta> {
        use nats::InfoErrorKind;
        match self.store.info(location.as_ref()).await {
            Ok(info) if info.deleted => Err(missing(location, "it was deleted".into())),
            Ok(info) => Ok(meta_of(&info)),
            Err(error) if error.kind() == InfoErrorKind::NotFound => {
                Err(missing(location, Box::new(error)))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn meta_of(info: &nats::ObjectInfo) -> ObjectMeta {
    let modified = info
        .modified
        .map_or(SystemTime::UNIX_EPOCH, SystemTime::from);
    ObjectMeta {
        location: Path::from(info.name.as_str()),
        last_modified: modified.into(),
        size: info.size as u64,
        e_tag: info.digest.clone(),
        version: None,
    }
}

fn missing(location: &Path, source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::NotFound {
        path: location.to_string(),
        source,
    }
}

fn failed(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic {
        store: STORE,
        source: Box::new(source),
    }
}

fn unsupported(operation: &str) -> Error {
    Error::NotImplemented {
        operation: operation.into(),
        implementer: STORE.into(),
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
        let content = bytes::Bytes::from(payload);
        let put = self.store.put(location.as_ref(), &mut &content[..]).await;
        let info = put.map_err(failed)?;
        Ok(PutResult {
            e_tag: info.digest,
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
        let meta = self.meta(location).await?;
        options.check_preconditions(&meta)?;
        let content = if options.head {
            stream::empty().boxed()
        } else {
            let got = self.store.get(location.as_ref()).await;
            let mut object = got.map_err(|error| match error.kind() {
                nats::GetErrorKind::NotFound => missing(location, Box::new(error)),
                _ => failed(error),
            })?;
            let mut content = Vec::with_capacity(object.info().size);
            object.read_to_end(&mut content).await.map_err(failed)?;
            stream::iter([Ok(content.into())]).boxed()
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
        use nats::DeleteErrorKind;
        let store = self.store.clone();
        let deleted = locations.then(move |location| {
            let store = store.clone();
            async move {
                let location = location?;
                match store.delete(location.as_ref()).await {
                    Ok(()) => Ok(location),
                    Err(error) if error.kind() == DeleteErrorKind::NotFound => {
                        Err(missing(&location, Box::new(error)))
                    }
                    Err(error) => Err(failed(error)),
                }
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let store = self.store.clone();
        let prefix = prefix.cloned();
        let listed = stream::once(async move {
            let mut found = Vec::new();
            let mut list = store.list().await.map_err(failed)?;
            while let Some(info) = list.next().await {
                let meta = meta_of(&info.map_err(failed)?);
                if prefix
                    .as_ref()
                    .is_none_or(|prefix| meta.location.prefix_matches(prefix))
                {
                    found.push(Ok(meta));
                }
            }
            Ok::<_, Error>(stream::iter(found))
        });
        listed
            .map(|listed| match listed {
                Ok(found) => found.boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            })
            .flatten()
            .boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(unsupported("a listing by folder"))
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(unsupported("a copy"))
    }
}
