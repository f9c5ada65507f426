//! Blobs in S3, or in another service with the same interface.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig};

use super::https::Https;
use super::store::{BlobError, BlobStore};

/// Longest time for which a failing request is retried.
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);

/// A bucket, and the prefix in it under which blobs are stored.
#[derive(Clone)]
pub struct Bucket {
    url: String,
    settings: Vec<(String, String)>,
}

// The settings are not shown: they contain secrets.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({})", self.url)
    }
}

// === impl Bucket ===

impl Bucket {
    /// The bucket and prefix of `url`, `s3://BUCKET/PREFIX`. `settings` configure the access, under
    /// the names that other tools read from the environment: `AWS_ENDPOINT_URL`, `AWS_REGION`,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` and so on; others are
    /// ignored. Without keys the machine's own role is used.
    pub fn new(url: &str, settings: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |(name, _): &(String, String)| name.starts_with("AWS_");
        Self {
            url: url.trim_end_matches('/').to_owned(),
            settings: settings.into_iter().filter(ours).collect(),
        }
    }

    /// The address, as `s3://BUCKET/PREFIX`.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn store(&self) -> Result<Arc<dyn ObjectStore>, String> {
        let rest = self.url.strip_prefix("s3://");
        let rest = rest.ok_or("it is not s3://BUCKET/PREFIX")?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(format!("{name:?} is no bucket's name"));
        }
        let prefix = Path::parse(prefix).map_err(|error| error.to_string())?;
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(name)
            .with_http_connector(Https)
            .with_retry(RetryConfig {
                retry_timeout: RETRY_TIME_MAX,
                ..RetryConfig::default()
            });
        for (name, value) in &self.settings {
            let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() else {
                continue;
            };
            let is_address = matches!(
                key,
                AmazonS3ConfigKey::Endpoint | AmazonS3ConfigKey::S3Endpoint
            );
            if is_address && value.starts_with("http://") {
                // An explicit `http://` permits unencrypted requests.
                builder = builder.with_allow_http(true);
            }
            builder = builder.with_config(key, value);
        }
        let store = builder.build().map_err(|error| error.to_string())?;
        Ok(if prefix.as_ref().is_empty() {
            Arc::new(store)
        } else {
            Arc::new(PrefixStore::new(store, prefix))
        })
    }
}

// === impl BlobStore ===

impl BlobStore {
    /// Blobs in a bucket, which must exist. No request is sent yet.
    ///
    /// # Errors
    /// [`BlobError::Bucket`]: the address or a setting is invalid.
    pub fn in_bucket(bucket: &Bucket) -> Result<Self, BlobError> {
        let store = bucket.store().map_err(|why| BlobError::Bucket {
            url: bucket.url.clone(),
            why,
        })?;
        Ok(Self::over(store))
    }
}
