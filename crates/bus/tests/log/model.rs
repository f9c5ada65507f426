//! Tests of both logs against a naive model: a list of all accepted batches.

use bytes::Bytes;
use proofmill_bus::{
    AppendError, EmbeddedLog, Entry, Expect, Key, Log, MemoryLog, Op, Options, Seq, until_durable,
};
use proptest::prelude::*;

use crate::scenario::{block_on, entries, key};

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<Op>),
    Get(Key),
    Replay,
    WaitUntilDurable,
    /// Closes and reopens the log; for the log in memory, a crash that loses this fraction (in
    /// 255ths) of the batches that are not durable.
    Reopen(u8),
    /// In memory only: makes this many batches durable.
    Flush(usize),
}

/// Every accepted batch, from the first.
#[derive(Clone, Debug, Default)]
struct Model(Vec<Vec<Op>>);

impl Model {
    fn live(&self) -> Vec<Entry> {
        let ops = self
            .0
            .iter()
            .flatten()
            .zip(1..)
            .map(|(op, seq)| (op, Seq(seq)));
        let mut live: Vec<Entry> = Vec::new();
        for (op, seq) in ops {
            live.retain(|entry| entry.key != *op.key());
            if let Op::Put { key, value, .. } = op {
                live.push(Entry {
                    seq,
                    key: key.clone(),
                    value: value.clone(),
                });
            }
        }
        live
    }

    fn last(&self) -> Seq {
        Seq(self.0.iter().flatten().count() as u64)
    }

    /// Tries the operations one by one, to find the refused one.
    fn append(&mut self, ops: &[Op]) -> Result<Seq, Key> {
        let before = self.0.len();
        for op in ops {
            let taken = self.live().iter().any(|entry| entry.key == *op.key());
            if taken
                && matches!(
                    op,
                    Op::Put {
                        expect: Expect::Absent,
                        ..
                    }
                )
            {
                self.0.truncate(before);
                return Err(op.key().clone());
            }
            self.0.push(vec![op.clone()]);
        }
        self.0.truncate(before);
        if !ops.is_empty() {
            self.0.push(ops.to_vec());
        }
        Ok(self.last())
    }
}

fn any_key() -> impl Strategy<Value = Key> {
    (0..6_u8).prop_map(|n| key(&format!("k.{n}")))
}

fn any_op() -> impl Strategy<Value = Op> {
    let value = prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    prop_oneof![
        3 => (any_key(), value.clone()).prop_map(|(key, value)| Op::put(key, value)),
        2 => (any_key(), value).prop_map(|(key, value)| Op::put_new(key, value)),
        2 => any_key().prop_map(Op::delete),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(any_op(), 0..6).prop_map(Step::Append),
        2 => any_key().prop_map(Step::Get),
        2 => Just(Step::Replay),
        1 => Just(Step::WaitUntilDurable),
        1 => any::<u8>().prop_map(Step::Reopen),
        2 => (0..4_usize).prop_map(Step::Flush),
    ]
}

/// The steps that are the same for every log.
async fn take(log: &dyn Log, model: &mut Model, step: &Step) {
    match step {
        Step::Append(ops) => match (log.append(ops.clone()).await, model.append(ops)) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(AppendError::Conflict { key }), Err(expected)) => assert_eq!(key, expected),
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        },
        Step::Get(key) => {
            let expected = model.live().into_iter().find(|entry| entry.key == *key);
            assert_eq!(log.get(key).await.unwrap(), expected);
        }
        Step::Replay => assert_eq!(entries(log).await, model.live()),
        Step::WaitUntilDurable | Step::Reopen(_) | Step::Flush(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn embedded(steps in prop::collection::vec(any_step(), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        let open = || EmbeddedLog::open(dir.path(), Options::default()).unwrap();
        block_on(async {
            let mut log = open();
            let mut model = Model::default();
            for step in &steps {
                match step {
                    Step::WaitUntilDurable => {
                        until_durable(&mut log.durable(), model.last()).await.unwrap();
                        assert_eq!(log.durable().borrow().seq, model.last());
                    }
                    Step::Reopen(_) => {
                        drop(log);
                        log = open();
                        assert_eq!(log.durable().borrow().seq, model.last());
                        assert_eq!(entries(&log).await, model.live());
                    }
                    step => take(&log, &mut model, step).await,
                }
            }
            assert_eq!(entries(&log).await, model.live());
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn in_memory(steps in prop::collection::vec(any_step(), 1..60)) {
        block_on(async {
            let mut log = MemoryLog::unflushed();
            let mut model = Model::default();
            for step in &steps {
                let pending = log.pending();
                let durable = model.0.len() - pending;
                match step {
                    Step::Flush(batches) => {
                        let kept = durable + pending.min(*batches);
                        let expected = Model(model.0[..kept].to_vec()).last();
                        assert_eq!(log.flush(*batches), expected);
                        assert_eq!(log.durable().borrow().seq, expected);
                    }
                    Step::Reopen(lost) => {
                        let kept = pending - pending * usize::from(*lost) / 255;
                        log = log.crash(kept);
                        model.0.truncate(durable + kept);
                        assert_eq!(log.durable().borrow().seq, model.last());
                    }
                    step => take(&log, &mut model, step).await,
                }
            }
            assert_eq!(entries(&log).await, model.live());
        });
    }
}

#[test]
fn a_failed_log_in_memory_stands_still() {
    block_on(async {
        let log = MemoryLog::unflushed();
        let mut watermark = log.durable();
        log.append(vec![Op::put(key("a"), "1")]).await.unwrap();
        log.append(vec![Op::put(key("b"), "2")]).await.unwrap();
        log.flush(1);
        log.fail("the test says so");
        assert_eq!(log.flush(9), Seq(1));
        until_durable(&mut watermark, Seq(1)).await.unwrap();
        let waited = until_durable(&mut watermark, Seq(2)).await;
        assert!(matches!(waited, Err(AppendError::Failed(failure)) if failure.durable == Seq(1)));
        let refused = log.append(vec![Op::delete(key("a"))]).await;
        assert!(matches!(refused, Err(AppendError::Failed(_))));
        assert_eq!(entries(&log.crash(0)).await.len(), 1);
    });
}
