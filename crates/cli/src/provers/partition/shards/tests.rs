//! Aggregations over real servers, on a network in memory that loses, silences and forges.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use ark_bn254::Bn254;
use ark_ff::UniformRand;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use futures_util::future::BoxFuture;
use proofmill_aggregation::Srs;
use proofmill_aggregation::sharded::ShardMessage;
use proofmill_groth16::ResidentForm;
use proofmill_groth16::mirage::{CommitmentKey, ProvingKey, Setup};
use proofmill_partition::Partition;
use proofmill_partition::applications::Squarings;
use proofmill_partition::proof::distributed::{
    ChallengedProof, CommitmentKeys, Coordination, ProvedParts, Worker,
};
use proofmill_partition::proof::{ClassKeys, Index};
use tokio::runtime::Runtime;

use super::crew::Network;
use super::leader::Leading;
use super::message::{PIECE_BYTES_MAX, Reply, Request, decode, encode};
use super::server::{SHARDS_MAX, ShardMaker, ShardServer};
use super::work::{Share, make_shard};

type F = ark_bn254::Fr;

const PARTS: usize = 5;

/// A circuit of which all parts are proved.
struct Case {
    index: Arc<Index<Bn254>>,
    srs: Arc<Srs<Bn254>>,
    coordination: Arc<Coordination<Bn254, Squarings<F>>>,
    commitments: Vec<proofmill_groth16::mirage::Commitment<Bn254>>,
    /// Commitment and proof of each part, encoded.
    proved: Vec<Vec<u8>>,
}

/// Keys of shards.
struct Maker(Arc<Index<Bn254>>, Arc<Srs<Bn254>>);

/// A fault of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It gives no reply after so many requests.
    Silent(usize),
    /// Its answer to message n has two elements exchanged.
    False(u32),
    /// It answers with other bytes.
    Garbled,
}

/// Workers in this process.
struct Memory {
    workers: BTreeMap<String, (Arc<ShardServer>, Option<Fault>, AtomicUsize)>,
    /// Workers that were asked to begin a shard.
    begun: Mutex<Vec<String>>,
}

// === impl Case ===

impl Case {
    /// The same one for all tests.
    fn shared() -> &'static Self {
        static CASE: LazyLock<Case> = LazyLock::new(Case::new);
        &CASE
    }

    fn new() -> Self {
        let rng = &mut StdRng::seed_from_u64(7);
        let blank = Squarings::<F>::blank(PARTS, 2, 2).unwrap();
        let circuit = Squarings::new(PARTS, 2, vec![F::rand(rng), F::rand(rng)]).unwrap();
        let partition = Partition::new(&blank).unwrap();
        let srs = Arc::new(Srs::setup(8, rng).unwrap());
        let setup = Setup::new(rng);
        let classes = partition.classes().iter();
        let keys: Vec<ProvingKey<Bn254>> = classes
            .map(|class| setup.key(class.committed_system().unwrap(), rng).unwrap())
            .collect();
        let of_classes = keys.iter().map(ProvingKey::vk).collect();
        let to_commit = keys.iter().map(CommitmentKey::from).collect();
        let to_commit = CommitmentKeys::new(&partition, to_commit).unwrap();
        let held = ClassKeys::hold(&partition, keys, ResidentForm::Plain).unwrap();
        let index = Arc::new(Index::new(partition, of_classes, &srs).unwrap());
        let coordination =
            Coordination::new(Arc::clone(&index), Arc::clone(&srs), circuit, &[3; 32]);
        let coordination = Arc::new(coordination.unwrap());
        let worker = Worker {
            partition: index.partition(),
            keys: &held,
        };
        let parts = 0..PARTS;
        let commitments: Vec<_> = parts
            .clone()
            .map(|part| {
                let task = coordination.commit_task(part).unwrap();
                to_commit.commit(index.partition(), &task).unwrap()
            })
            .collect();
        let challenged = coordination.challenge(commitments.clone()).unwrap();
        let proved = parts.map(|part| {
            let task = challenged.prove_task(part).unwrap();
            let proof = worker.prove(&blank, &task, rng).unwrap();
            [commitments[part].to_bytes(), proof.to_bytes()].concat()
        });
        let proved = proved.collect();
        Self {
            index,
            srs,
            coordination,
            commitments,
            proved,
        }
    }

    fn challenged(&self) -> ChallengedProof<Bn254, Squarings<F>> {
        self.coordination
            .challenge(self.commitments.clone())
            .unwrap()
    }

    /// The proof of one process.
    fn alone(&self) -> Vec<u8> {
        let parts = ProvedParts::<Bn254>::from_bytes(&self.proved.concat()).unwrap();
        self.challenged()
            .aggregate(parts.proofs())
            .unwrap()
            .to_bytes()
    }

    fn server(&self) -> Arc<ShardServer> {
        let maker = Arc::new(Maker(Arc::clone(&self.index), Arc::clone(&self.srs)));
        Arc::new(ShardServer::new(move || Ok(maker.clone())))
    }

    fn network(&self, faults: &[Option<Fault>]) -> Memory {
        let workers = faults.iter().enumerate().map(|(number, fault)| {
            (
                format!("w{number}"),
                (self.server(), *fault, AtomicUsize::new(0)),
            )
        });
        Memory {
            workers: workers.collect(),
            begun: Mutex::default(),
        }
    }

    /// The proof that workers made, if they made one, and those that had a shard.
    fn by_workers(
        &self,
        shards: usize,
        faults: &[Option<Fault>],
    ) -> (Option<Vec<u8>>, Vec<String>) {
        let runtime = Runtime::new().unwrap();
        let network = self.network(faults);
        let leading = Leading {
            network: &network,
            runtime: runtime.handle(),
            shards,
        };
        let mut by_workers = true;
        let proof = self.challenged().aggregate_by(|index, srs, statement| {
            let made = leading.aggregate(index, srs, statement, &self.proved);
            by_workers = made.is_some();
            let parts = ProvedParts::<Bn254>::from_bytes(&self.proved.concat()).unwrap();
            let alone = || {
                index
                    .parts()
                    .aggregate(srs, statement, parts.proofs(), parts.d())
            };
            made.map_or_else(alone, Ok)
        });
        let proof = proof.unwrap().to_bytes();
        let begun = network.begun.lock().unwrap().clone();
        (by_workers.then_some(proof), begun)
    }
}

impl ShardMaker for Maker {
    fn parts(&self) -> (usize, usize) {
        (PARTS, ProvedParts::<Bn254>::encoded_size())
    }

    fn make(
        &self,
        share: Share,
        parts: &[u8],
        messages: &mut dyn Iterator<Item = Vec<u8>>,
        answer: &mut dyn FnMut(Vec<u8>),
    ) -> Result<(), String> {
        make_shard(&self.0, &self.1, share, parts, messages, answer)
    }
}

impl Network for Memory {
    fn find(&self) -> BoxFuture<'_, Vec<String>> {
        let names = self.workers.keys().cloned().collect();
        Box::pin(std::future::ready(names))
    }

    fn ask<'a>(
        &'a self,
        worker: &'a str,
        request: Request,
    ) -> BoxFuture<'a, Result<Reply, String>> {
        Box::pin(async move {
            let (server, fault, requests) = &self.workers[worker];
            let asked = requests.fetch_add(1, Ordering::Relaxed);
            if matches!(fault, Some(Fault::Silent(after)) if asked >= *after) {
                return Err("no reply".to_owned());
            }
            // What passes between processes is bytes.
            let request: Request = decode(&encode(&request))?;
            let step = match &request {
                Request::Begin { .. } => {
                    self.begun.lock().unwrap().push(worker.to_owned());
                    None
                }
                Request::Message { step, .. } => Some(*step),
                _ => None,
            };
            let reply = server.reply(request).await;
            let reply = match (reply, fault) {
                (Reply::Answer(bytes), Some(Fault::False(at))) if step == Some(*at) => {
                    Reply::Answer(exchanged(&bytes))
                }
                (Reply::Answer(mut bytes), Some(Fault::Garbled)) => {
                    bytes.pop();
                    Reply::Answer(bytes)
                }
                (reply, _) => reply,
            };
            decode(&encode(&reply))
        })
    }
}

/// An answer with elements exchanged: valid elements, and a false answer.
fn exchanged(bytes: &[u8]) -> Vec<u8> {
    match ShardMessage::<Bn254>::from_bytes(bytes).unwrap() {
        ShardMessage::Commitments { both, c } => ShardMessage::Commitments { both: c, c: both },
        ShardMessage::CrossProducts(mut elements) => {
            elements.rotate_left(1);
            ShardMessage::CrossProducts(elements)
        }
        ShardMessage::Round {
            with_challenge,
            with_inverse,
        } => ShardMessage::Round {
            with_challenge: with_inverse,
            with_inverse: with_challenge,
        },
        ShardMessage::Folded { left, right, v, w } => ShardMessage::Folded {
            left,
            right,
            v: [v[1], v[0]],
            w,
        },
        ShardMessage::Openings { v, w } => ShardMessage::Openings { v: [v[1], v[0]], w },
    }
    .to_bytes()
}

#[test]
fn workers_make_the_proof_of_one_process() {
    let case = Case::shared();
    let alone = case.alone();
    for (shards, workers, makers) in [(2, 2, 2), (2, 5, 2), (4, 4, 4), (8, 7, 4), (4, 3, 2)] {
        let (made, begun) = case.by_workers(shards, &vec![None; workers]);
        assert_eq!(
            made.as_ref(),
            Some(&alone),
            "{shards} shards, {workers} workers"
        );
        assert_eq!(begun.len(), makers);
    }
    // One worker is no division.
    assert_eq!(case.by_workers(2, &[None]), (None, vec![]));
    assert_eq!(case.by_workers(2, &[]), (None, vec![]));
}

#[test]
fn a_silent_worker_is_replaced() {
    let case = Case::shared();
    let alone = case.alone();
    // Begin, parts and six messages: it falls silent before each of them.
    for after in 0..8 {
        let faults = [Some(Fault::Silent(after)), None, None];
        let (made, begun) = case.by_workers(2, &faults);
        assert_eq!(made.as_ref(), Some(&alone), "silent after {after} requests");
        assert_eq!(begun.last().map(String::as_str), Some("w2"));
    }
    // So is its successor, and the successor's; then nobody is left.
    let silent = |after| Some(Fault::Silent(after));
    let (made, _) = case.by_workers(2, &[silent(3), None, None, silent(5), silent(0)]);
    assert_eq!(made.as_ref(), Some(&alone));
    let (made, _) = case.by_workers(2, &[silent(3), None, silent(5)]);
    assert_eq!(made, None);
}

#[test]
fn a_false_answer_makes_no_aggregate() {
    let case = Case::shared();
    for at in 0..6 {
        let (made, _) = case.by_workers(2, &[None, Some(Fault::False(at)), None]);
        assert_eq!(made, None, "a false answer to message {at}");
    }
    let (made, _) = case.by_workers(2, &[None, Some(Fault::Garbled)]);
    assert_eq!(made, None);
}

#[tokio::test]
async fn a_server_refuses_what_does_not_follow() {
    let case = tokio::task::spawn_blocking(Case::shared).await.unwrap();
    let server = case.server();
    let share = |shard, shards, parts| Share {
        parts,
        shards,
        shard,
    };
    let begin = |id: u8, share| Request::Begin {
        id: [id; 16],
        share,
    };
    let parts = |id: u8, offset, bytes: &[u8]| Request::Parts {
        id: [id; 16],
        offset,
        bytes: bytes.to_vec(),
    };
    let message = |id: u8, step| Request::Message {
        id: [id; 16],
        step,
        bytes: b"no message".to_vec(),
    };
    let refused = async |request| match server.reply(request).await {
        Reply::Refused(why) => why,
        other => panic!("{other:?}"),
    };
    let is_done = async |request| server.reply(request).await == Reply::Done;
    for wrong in [
        share(2, 2, 5),
        share(0, 3, 5),
        share(0, 2, 4),
        share(0, 2, 0),
    ] {
        refused(begin(1, wrong)).await;
    }
    assert!(refused(message(1, 0)).await.contains("no such shard"));
    assert!(is_done(begin(1, share(0, 2, 5))).await);
    assert!(is_done(begin(1, share(0, 2, 5))).await);
    refused(begin(1, share(1, 2, 5))).await;
    assert!(refused(message(1, 0)).await.contains("missing"));
    // Places 0, 2 and 4.
    let bytes = [&case.proved[0][..], &case.proved[2], &case.proved[4]].concat();
    refused(parts(1, 1, &bytes)).await;
    refused(parts(1, 0, &[&bytes[..], &[0]].concat())).await;
    refused(parts(1, 0, &vec![0; PIECE_BYTES_MAX + 1])).await;
    assert!(is_done(parts(1, 0, &bytes[..10])).await);
    assert!(is_done(parts(1, 0, &bytes[..10])).await, "sent again");
    assert!(is_done(parts(1, 10, &bytes[10..])).await);
    refused(message(1, 1)).await;
    refused(message(1, 0)).await;
    assert!(is_done(Request::End { id: [1; 16] }).await);
    assert!(refused(message(1, 0)).await.contains("no such shard"));
    for id in 0..SHARDS_MAX as u8 {
        assert!(is_done(begin(id, share(0, 2, 5))).await);
    }
    assert!(refused(begin(99, share(0, 2, 5))).await.contains("already"));
    for bytes in [&b""[..], b"\x02", b"\x01\xff", b"\x01\x00 "] {
        assert!(decode::<Request>(bytes).is_err(), "{bytes:?}");
    }
}
