//! Tests of blobs in a bucket, on a real server with S3's interface (`make s3-server` installs it).

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::TryStreamExt;
use proofmill_bus::{
    BlobError, BlobStore, Bucket, Connection, Membership, MissingStream, NatsOptions, Sweeper,
    Swept, open_blobs,
};
use proofmill_nats_server::{NatsServer, free_port};

/// Longer than anything here takes unless it is stuck.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server that keeps nothing after its end, with the bucket `mill`.
struct S3Server {
    child: Child,
    address: SocketAddr,
}

// === impl S3Server ===

impl S3Server {
    fn start() -> Self {
        let program = std::env::var_os("PROOFMILL_S3_SERVER").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("bin/gofakes3"),
            PathBuf::from,
        );
        assert!(
            program.is_file(),
            "{} is not there: run `make s3-server` (it needs Go), or name the program with \
             PROOFMILL_S3_SERVER",
            program.display()
        );
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let child = Command::new(program)
            .args(["-backend", "memory", "-initialbucket", "mill", "-host"])
            .arg(address.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let server = Self { child, address };
        let began = Instant::now();
        while TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err() {
            assert!(began.elapsed() < PATIENCE, "it does not listen");
            std::thread::yield_now();
        }
        server
    }

    fn bucket(&self, url: &str) -> Bucket {
        let settings = [
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "user".into()),
            ("AWS_SECRET_ACCESS_KEY", "geheim".into()),
        ];
        Bucket::new(url, settings.map(|(name, value)| (name.to_owned(), value)))
    }

    fn blobs(&self, url: &str) -> BlobStore {
        BlobStore::in_bucket(&self.bucket(url)).unwrap()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn all(blobs: &BlobStore) -> HashSet<(proofmill_bus::Digest, u64)> {
    blobs.list().try_collect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_blobs_are_readable_until_they_are_deleted() {
    let server = S3Server::start();
    let blobs = server.blobs("s3://mill/a/b");
    let large: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    let digest = blobs.put(large.clone().into()).await.unwrap();
    // Putting the same content again has the same result.
    assert_eq!(blobs.put(large.clone().into()).await.unwrap(), digest);
    let empty = blobs.put(Bytes::new()).await.unwrap();
    let again = server.blobs("s3://mill/a/b/");
    assert_eq!(again.get(&digest).await.unwrap(), large);
    assert_eq!(again.get(&empty).await.unwrap(), "");
    assert_eq!(
        all(&again).await,
        HashSet::from([(digest, 3_000_000), (empty, 0)])
    );
    assert!(again.contains(&digest).await.unwrap());
    again.delete(&digest).await.unwrap();
    again.delete(&digest).await.unwrap();
    assert!(!again.contains(&digest).await.unwrap());
    assert!(matches!(again.get(&digest).await, Err(BlobError::Missing(d)) if d == digest));
}

#[tokio::test(flavor = "multi_thread")]
async fn prefixes_do_not_see_each_other() {
    let server = S3Server::start();
    let (one, other) = (
        server.blobs("s3://mill/one"),
        server.blobs("s3://mill/other"),
    );
    let digest = one.put("in one".into()).await.unwrap();
    assert!(!other.contains(&digest).await.unwrap());
    let swept = swept(&other, &HashSet::new()).await;
    assert_eq!((swept.deleted, swept.kept), (0, 0));
    assert_eq!(one.get(&digest).await.unwrap(), "in one");
}

/// Looks twice, and deletes the blobs that are due.
async fn swept(blobs: &BlobStore, live: &HashSet<proofmill_bus::Digest>) -> Swept {
    let mut sweeper = Sweeper::new(blobs.clone(), Duration::ZERO);
    assert!(sweeper.scan(live).await.unwrap().is_empty());
    let scan = sweeper.scan(live).await.unwrap();
    sweeper.remove(scan, live).await.unwrap()
}

/// A leader that sweeps knows other processes' holds only through the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_keeps_blobs_that_are_live_or_held_elsewhere() {
    let server = S3Server::start();
    let (blobs, elsewhere) = (server.blobs("s3://mill/w"), server.blobs("s3://mill/w"));
    let live = blobs.put("live".into()).await.unwrap();
    let old = blobs.put("old".into()).await.unwrap();
    let (proof, held) = elsewhere.put_held("proof".into()).await.unwrap();
    let mut sweeper = Sweeper::new(blobs.clone(), Duration::ZERO);
    let named = HashSet::from([live]);
    sweeper.scan(&named).await.unwrap();
    elsewhere.renew_held().await.unwrap();
    let scan = sweeper.scan(&named).await.unwrap();
    let swept = sweeper.remove(scan, &named).await.unwrap();
    assert_eq!((swept.deleted, swept.kept, swept.bytes), (1, 2, 3));
    assert!(!blobs.contains(&old).await.unwrap());

    // Renewed between the look and the deletion.
    let scan = sweeper.scan(&named).await.unwrap();
    assert!(!scan.is_empty());
    elsewhere.renew_held().await.unwrap();
    let swept = sweeper.remove(scan, &named).await.unwrap();
    assert_eq!((swept.deleted, swept.kept), (0, 2));
    assert_eq!(blobs.get(&proof).await.unwrap(), "proof");
    assert_eq!(blobs.get(&live).await.unwrap(), "live");

    drop(held);
    sweeper.scan(&named).await.unwrap();
    let scan = sweeper.scan(&named).await.unwrap();
    let swept = sweeper.remove(scan, &named).await.unwrap();
    assert_eq!((swept.deleted, swept.kept), (1, 1));
    assert_eq!(all(&blobs).await, HashSet::from([(live, 4)]));
    // The object of the hold is gone, too.
    assert_eq!(sweeper.scan(&HashSet::new()).await.unwrap().kept(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_settings_are_named() {
    let server = S3Server::start();
    for url in ["http://mill/a", "s3://", "s3://mi ll/a", "s3://mill/../a"] {
        let error = BlobStore::in_bucket(&server.bucket(url)).unwrap_err();
        assert!(error.to_string().contains(url), "{error}");
    }
    let error = server.blobs("s3://another/a").put("x".into()).await;
    let error = std::error::Error::source(&error.unwrap_err())
        .unwrap()
        .to_string();
    assert!(error.contains("NoSuchBucket"), "{error}");
    assert!(!format!("{:?}", server.bucket("s3://mill/a")).contains("geheim"));
}

/// A process that stored payloads elsewhere than the others would not find theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_one_place_for_its_blobs() {
    let (server, nats) = (S3Server::start(), NatsServer::start());
    let creating = Membership::new("creator", MissingStream::Create);
    let creator = creating.name();
    let waiting = Membership::new("worker", MissingStream::Wait { creator });
    let connect = |membership, url: Option<&str>| {
        let blobs = url.map(|url| server.bucket(url));
        let options = NatsOptions {
            membership,
            blobs,
            connect_timeout: PATIENCE,
            ..NatsOptions::new(&nats.url())
        };
        async { Connection::open(options).await.unwrap() }
    };
    let first = connect(creating, Some("s3://mill/w")).await;
    let blobs = open_blobs(&first).await.unwrap();
    let second = connect(waiting, Some("s3://mill/w")).await;
    let digest = open_blobs(&second)
        .await
        .unwrap()
        .put("x".into())
        .await
        .unwrap();
    assert_eq!(blobs.get(&digest).await.unwrap(), "x");
    for other in [None, Some("s3://mill/other")] {
        let third = connect(waiting, other).await;
        let error = open_blobs(&third).await.unwrap_err().to_string();
        assert!(error.contains("give --blobs s3://mill/w"), "{error}");
    }
}
