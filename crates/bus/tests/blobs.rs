//! Tests of the blob store in a directory.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::TryStreamExt;
use proofmill_bus::{BlobError, BlobStore, Digest, Sweeper, Swept};

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
async fn stored_blobs_are_readable_and_private() {
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

/// Blobs are deleted after a look, a wait, and another look.
async fn sweep(
    sweeper: &mut Sweeper,
    live: &HashSet<Digest>,
    meanwhile: impl AsyncFnOnce(),
) -> Swept {
    let first = sweeper.scan(live).await.unwrap();
    assert!(first.is_empty(), "a first look deletes nothing");
    meanwhile().await;
    let second = sweeper.scan(live).await.unwrap();
    sweeper.remove(second, live).await.unwrap()
}

/// A leader whose clock is an hour ahead once took new blobs for old ones.
#[tokio::test]
async fn no_clock_makes_a_blob_old() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = BlobStore::open(dir.path()).unwrap();
    let digest = blobs.put(Bytes::from_static(b"a proof")).await.unwrap();
    age(&path(dir.path(), &digest), 24);
    let mut sweeper = Sweeper::new(blobs.clone(), Duration::from_secs(3600));
    let swept = sweep(&mut sweeper, &HashSet::new(), async || {}).await;
    assert_eq!((swept.deleted, swept.kept), (0, 1));
    assert!(blobs.contains(&digest).await.unwrap());
}

#[tokio::test]
async fn a_sweep_deletes_only_blobs_that_are_not_named_held_or_put_again() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = BlobStore::open(dir.path()).unwrap();
    let mut digests = Vec::new();
    for n in 0..4_u8 {
        digests.push(blobs.put(Bytes::from(vec![n; 10])).await.unwrap());
    }
    let [live, old, renewed, taken] = digests[..] else {
        unreachable!()
    };
    let (held, hold) = blobs.put_held(Bytes::from(vec![9; 10])).await.unwrap();
    let foreign = dir.path().join("notes.txt");
    fs::write(&foreign, "x").unwrap();
    let mut sweeper = Sweeper::new(blobs.clone(), Duration::ZERO);
    let named = HashSet::from([live, taken]);
    let swept = sweep(&mut sweeper, &named, async || {
        blobs.put(Bytes::from(vec![2; 10])).await.unwrap();
    });
    let swept = swept.await;
    assert_eq!((swept.deleted, swept.bytes, swept.kept), (1, 10, 4));
    let left = [live, renewed, taken, held].map(|digest| (digest, 10));
    assert_eq!(all(&blobs).await, HashSet::from(left));
    assert!(!blobs.contains(&old).await.unwrap() && foreign.exists());

    // A blob that a record refers to since the look is not deleted.
    drop(hold);
    sweeper.scan(&HashSet::new()).await.unwrap();
    let scan = sweeper.scan(&HashSet::new()).await.unwrap();
    let swept = sweeper.remove(scan, &HashSet::from([taken])).await.unwrap();
    assert_eq!((swept.deleted, swept.kept), (3, 1));
    assert_eq!(all(&blobs).await, HashSet::from([(taken, 10)]));
}

/// The sweep at the end of a run that is alone in its directory.
#[tokio::test]
async fn a_sweep_leaves_named_and_held_blobs_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = BlobStore::open(dir.path()).unwrap();
    let live = blobs.put(Bytes::from_static(b"live")).await.unwrap();
    let gone = blobs.put(Bytes::from_static(b"gone")).await.unwrap();
    let (held, _hold) = blobs.put_held(Bytes::from_static(b"held")).await.unwrap();
    // The remains of an interrupted put.
    let unfinished = PathBuf::from(format!("{}#1", path(dir.path(), &live).display()));
    fs::write(&unfinished, "x").unwrap();
    let swept = blobs.sweep_alone(&HashSet::from([live])).await.unwrap();
    assert_eq!((swept.deleted, swept.bytes, swept.kept), (1, 4, 2));
    assert_eq!(all(&blobs).await, HashSet::from([(live, 4), (held, 4)]));
    assert!(!unfinished.exists() && !blobs.contains(&gone).await.unwrap());
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
                let swept = blobs.sweep_alone(&HashSet::new()).await.unwrap();
                deleted += swept.deleted;
                tokio::task::yield_now().await;
            }
            deleted
        }
    });
    // Once at least: the sweeper may be through before this task begins.
    loop {
        let (_, held) = blobs.put_held(content.clone()).await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(blobs.get(&digest).await.unwrap(), content);
        drop(held);
        if sweeper.is_finished() {
            break;
        }
    }
    let last = blobs.sweep_alone(&HashSet::new()).await.unwrap();
    let deleted = sweeper.await.unwrap() + last.deleted;
    assert!(deleted > 0, "what nobody held was swept");
}
