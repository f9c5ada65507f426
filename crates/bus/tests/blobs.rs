//! The blob store in a directory.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::TryStreamExt;
use proofmill_bus::{BlobError, BlobStore, Digest};

fn path(dir: &Path, digest: &Digest) -> PathBuf {
    let name = digest.to_string();
    dir.join(&name[..2]).join(&name[2..])
}

fn age(path: &Path, hours: u64) {
    let then = SystemTime::now() - Duration::from_secs(hours * 3600);
    fs::File::open(path).unwrap().set_modified(then).unwrap();
}

async fn all(blobs: &BlobStore) -> HashSet<(Digest, u64)> {
    blobs.list().try_collect().await.unwrap()
}

#[tokio::test]
async fn what_is_put_is_there_and_private() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("blobs");
    let blobs = BlobStore::open(&dir).unwrap();
    let large = Bytes::from(vec![5; 3_000_000]);
    let digest = blobs.put(large.clone()).await.unwrap();
    assert_eq!(digest, Digest::of(&large));
    let empty = blobs.put(Bytes::new()).await.unwrap();
    assert_eq!(blobs.put(large.clone()).await.unwrap(), digest);

    let again = BlobStore::open(&dir).unwrap();
    assert_eq!(again.get(&digest).await.unwrap(), large);
    assert_eq!(again.get(&empty).await.unwrap(), Bytes::new());
    assert_eq!(
        all(&again).await,
        HashSet::from([(digest, 3_000_000), (empty, 0)])
    );
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&path(&dir, &digest)), 0o600);

    assert!(again.contains(&digest).await.unwrap());
    again.delete(&digest).await.unwrap();
    again.delete(&digest).await.unwrap();
    assert!(!again.contains(&digest).await.unwrap());
    assert!(matches!(again.get(&digest).await, Err(BlobError::Missing(d)) if d == digest));
}

#[tokio::test]
async fn a_corrupt_blob_is_an_error_until_it_is_put_again() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = BlobStore::open(dir.path()).unwrap();
    let content = Bytes::from_static(b"a proving task's input");
    let digest = blobs.put(content.clone()).await.unwrap();
    for damage in [
        &b""[..],
        b"a proving task's inpuT",
        b"a proving task's input and more",
    ] {
        fs::write(path(dir.path(), &digest), damage).unwrap();
        match blobs.get(&digest).await {
            Err(BlobError::Corrupt { expected, found }) => {
                assert_eq!((expected, found), (digest, Digest::of(damage)));
            }
            other => panic!("{other:?}"),
        }
    }
    blobs.put(content.clone()).await.unwrap();
    assert_eq!(blobs.get(&digest).await.unwrap(), content);
}

#[tokio::test]
async fn a_sweep_takes_only_what_is_old_and_unreferenced() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = BlobStore::open(dir.path()).unwrap();
    let mut digests = Vec::new();
    for n in 0..4_u8 {
        digests.push(blobs.put(Bytes::from(vec![n; 10])).await.unwrap());
    }
    let [live, young, old, renewed] = digests[..] else {
        unreachable!()
    };
    for digest in [live, old, renewed] {
        age(&path(dir.path(), &digest), 3);
    }
    blobs.put(Bytes::from(vec![3; 10])).await.unwrap();
    // What an interrupted put leaves, old and new, and what is not ours.
    let unfinished = PathBuf::from(format!("{}#1", path(dir.path(), &old).display()));
    let unfinished_now = PathBuf::from(format!("{}#1", path(dir.path(), &live).display()));
    let foreign = dir.path().join("notes.txt");
    for file in [&unfinished, &unfinished_now, &foreign] {
        fs::write(file, "x").unwrap();
    }
    age(&unfinished, 3);
    age(&foreign, 3);

    let swept = blobs
        .sweep(&HashSet::from([live]), Duration::from_secs(3600))
        .await
        .unwrap();
    assert_eq!((swept.deleted, swept.bytes, swept.kept), (1, 10, 3));
    assert_eq!(
        all(&blobs).await,
        HashSet::from([(live, 10), (young, 10), (renewed, 10)])
    );
    assert!(!unfinished.exists() && unfinished_now.exists() && foreign.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_during_sweeps_is_never_lost() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = BlobStore::open(dir.path()).unwrap();
    let content = Bytes::from_static(b"put again and again");
    let digest = Digest::of(&content);
    let sweeper = tokio::spawn({
        let blobs = blobs.clone();
        async move {
            let mut deleted = 0;
            for _ in 0..300 {
                let swept = blobs
                    .sweep(&HashSet::new(), Duration::from_secs(60))
                    .await
                    .unwrap();
                deleted += swept.deleted;
                tokio::task::yield_now().await;
            }
            deleted
        }
    });
    while !sweeper.is_finished() {
        blobs.put(content.clone()).await.unwrap();
        assert_eq!(blobs.get(&digest).await.unwrap(), content);
        age(&path(dir.path(), &digest), 1);
    }
    sweeper.await.unwrap();
}
