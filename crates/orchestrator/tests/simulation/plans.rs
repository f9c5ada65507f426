//! Workflows of the histories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::grouping::{
    Expected, Group, Match, Member, OfferDecision, OverdueDecision, Range, Sequential, Strategy,
    StrategyFactory,
};
use proofmill_orchestrator::id::TaskId;
use proofmill_orchestrator::plan::{
    Backoff, CollectorPlan, Deadline, DispatcherPlan, Distinct, Hedge, Late, Needs, Plan, QueueIx,
    QueuePlan, SourcePlan, Speculation, StageIx, StageKind, StagePlan,
};

use crate::rng::Rng;

/// Members that a barrier must have consumed.
#[derive(Clone, Debug)]
pub(crate) enum Barrier {
    /// This many messages of the block that is the key.
    OfBlock(usize),
    /// One message by each of this many queues, of the block that is the key.
    OneByQueue(usize),
    /// Every block of the run, unless partial.
    Run { n: u64, partial: bool },
    /// A range and the messages that cover it.
    Cover,
    /// A pair of blocks.
    Pair,
}

/// A source, and the messages that it brings.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) queue: &'static str,
    /// First and last block of each message, in order.
    pub(crate) spans: Vec<(u64, u64)>,
    pub(crate) recorded: bool,
}

pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) plan: Arc<Plan>,
    pub(crate) sources: Vec<Source>,
    pub(crate) barriers: BTreeMap<&'static str, Barrier>,
    /// Number of messages made of one task, by stage; 1 for other stages.
    pub(crate) fan_out: BTreeMap<&'static str, usize>,
    pub(crate) end: u64,
    pub(crate) junk: bool,
    pub(crate) strict_restart: bool,
    pub(crate) partial: bool,
    /// Whether the source follows a chain that is reorganised.
    pub(crate) chain: bool,
}

struct Builder<'a> {
    rng: &'a mut Rng,
    stages: Vec<StagePlan>,
    queues: Vec<QueuePlan>,
}

pub(crate) const T_ACK_MS: u64 = 3_000;

/// Prefix of the label that tells provers apart.
pub(crate) const PROVER: &str = "prover:";
pub(crate) const PROVERS: u64 = 3;

impl Builder<'_> {
    fn queue(&mut self, name: &str) -> QueueIx {
        if let Some(ix) = self.queues.iter().position(|queue| &*queue.name == name) {
            return QueueIx(ix);
        }
        let q_max = if self.rng.flip() {
            self.rng.within(1, 3)
        } else {
            40
        };
        self.queues.push(QueuePlan {
            name: name.into(),
            readers: Vec::new(),
            many_writers: false,
            q_max: q_max as usize,
        });
        QueueIx(self.queues.len() - 1)
    }

    fn stage(&mut self, name: &str, inputs: &[&str], outputs: &[&str], kind: StageKind) {
        let ix = StageIx(self.stages.len());
        let inputs: Vec<QueueIx> = inputs.iter().map(|queue| self.queue(queue)).collect();
        for queue in &inputs {
            self.queues[queue.0].readers.push(ix);
        }
        let outputs = outputs.iter().map(|queue| self.queue(queue)).collect();
        self.stages.push(StagePlan {
            name: name.into(),
            inputs,
            outputs,
            kind,
        });
    }

    /// Random speculation settings; half of the stages give each task to one worker.
    fn speculation(&mut self) -> Speculation {
        if self.rng.flip() {
            return Speculation::default();
        }
        let copies = self.rng.within(1, PROVERS);
        let distinct = match self.rng.per_mille(300) {
            true => Distinct::Label(PROVER.into()),
            false => Distinct::Worker,
        };
        let hedge = self.rng.flip().then(|| Hedge {
            percentile: self.rng.within(50, 95) as u32,
            min: Duration::from_millis(self.rng.within(1, 300)),
        });
        Speculation {
            copies: copies as usize,
            accept: self.rng.within(1, copies) as usize,
            distinct,
            hedge,
        }
    }

    fn dispatcher(&mut self, name: &str, input: &str, outputs: &[&str], group: &str) {
        let labels: BTreeSet<String> = if self.rng.per_mille(250) {
            ["gpu".to_owned()].into()
        } else {
            BTreeSet::new()
        };
        let plan = DispatcherPlan {
            group: group.into(),
            needs: Needs {
                labels,
                memory: self.rng.within(0, 2),
            },
            t_ack: Duration::from_millis(T_ACK_MS),
            r_max: self.rng.within(0, 4) as u32,
            backoff: Backoff {
                initial: Duration::from_millis(self.rng.within(1, 300)),
                max: Duration::from_secs(2),
                factor: 2.0,
                jitter: 0.2,
            },
            batch: if self.rng.flip() {
                1
            } else {
                self.rng.within(2, 4) as usize
            },
            speculation: self.speculation(),
        };
        self.stage(name, &[input], outputs, StageKind::Dispatcher(plan));
    }

    /// Makes a stage take one result: a stage with fan-out cannot take several.
    fn one_message(&mut self, name: &str) {
        let stages = self.stages.iter_mut();
        for stage in stages.filter(|stage| &*stage.name == name) {
            if let StageKind::Dispatcher(plan) = &mut stage.kind {
                plan.speculation.accept = 1;
            }
        }
    }

    fn collector(
        &mut self,
        name: &str,
        inputs: &[&str],
        output: &[&str],
        strategy: Arc<dyn StrategyFactory>,
        group_by: Option<&str>,
        t_collect: Option<u64>,
    ) {
        let late = [Late::Dead, Late::Skip][self.rng.below(2)];
        let plan = CollectorPlan {
            strategy,
            settings: name.into(),
            group_by: group_by.map(Into::into),
            t_collect: t_collect.map(Duration::from_millis),
            late,
        };
        self.stage(name, inputs, output, StageKind::Collector(plan));
    }

    /// Makes a collector pass late messages on alone.
    fn pass_late_on(&mut self, name: &str) {
        let stages = self.stages.iter_mut();
        for stage in stages.filter(|stage| &*stage.name == name) {
            if let StageKind::Collector(plan) = &mut stage.kind {
                plan.late = Late::Emit;
            }
        }
    }

    fn sequencer(&mut self, input: &str) {
        self.stage("emit", &[input], &[], StageKind::Sequencer { start: 0 });
    }
}

fn singles(end: u64) -> Vec<(u64, u64)> {
    (0..end).map(|block| (block, block)).collect()
}

fn source(name: &'static str, queue: &'static str, spans: Vec<(u64, u64)>) -> Source {
    Source {
        name,
        queue,
        spans,
        recorded: true,
    }
}

/// Number of scenes.
pub(crate) const SCENES: usize = 12;

pub(crate) fn scene(which: usize, rng: &mut Rng) -> Scene {
    let mut end = rng.within(6, 20);
    let shared = rng.flip();
    let second = if shared { "one" } else { "two" };
    let mut b = Builder {
        rng,
        stages: Vec::new(),
        queues: Vec::new(),
    };
    let mut barriers = BTreeMap::new();
    let mut fan_out = BTreeMap::new();
    let mut sources = vec![source("headers", "blocks", singles(end))];
    let mut junk = false;
    let mut strict_restart = true;
    // Number of blocks for which digests of submitted messages are kept, behind the sequencer too.
    let mut retain_blocks = match b.rng.flip() {
        true => 100_000,
        false => b.rng.within(1, 4),
    };
    let name = match which {
        0 => {
            b.dispatcher("witness", "blocks", &["witnesses"], "one");
            b.dispatcher("prove", "witnesses", &["proofs"], second);
            b.sequencer("proofs");
            "linear"
        }
        1 => {
            b.dispatcher("split", "blocks", &["parts"], "one");
            b.dispatcher("prove", "parts", &["proofs"], second);
            let all = Match {
                expected: Expected::Total(3),
                partial: false,
            };
            b.collector(
                "join",
                &["proofs"],
                &["joined"],
                Arc::new(all),
                Some("/g"),
                None,
            );
            b.dispatcher("wrap", "joined", &["wrapped"], "one");
            b.sequencer("wrapped");
            fan_out.insert("split", 3);
            b.one_message("split");
            barriers.insert("join", Barrier::OfBlock(3));
            "fan-out, fan-in"
        }
        2 => {
            sources = vec![
                source("left", "lefts", singles(end)),
                source("right", "rights", singles(end)),
            ];
            b.dispatcher("prove", "lefts", &["a"], "one");
            b.dispatcher("check", "rights", &["b"], second);
            let each = BTreeMap::from([("a".into(), 1), ("b".into(), 1)]);
            let both = Match {
                expected: Expected::PerQueue(each),
                partial: false,
            };
            b.collector("join", &["a", "b"], &["joined"], Arc::new(both), None, None);
            b.sequencer("joined");
            barriers.insert("join", Barrier::OneByQueue(2));
            "join of two queues"
        }
        3 => {
            end = end / 3 * 3;
            sources = vec![
                source("headers", "blocks", singles(end)),
                source(
                    "bounds",
                    "spans",
                    (0..end / 3).map(|i| (3 * i, 3 * i + 2)).collect(),
                ),
            ];
            b.dispatcher("prove", "blocks", &["proofs"], "one");
            b.dispatcher("propose", "spans", &["batches"], second);
            let range = Range {
                by: "batches".into(),
                others: vec!["proofs".into()],
                partial: false,
            };
            b.collector(
                "cover",
                &["batches", "proofs"],
                &["ranges"],
                Arc::new(range),
                None,
                None,
            );
            b.dispatcher("aggregate", "ranges", &["bundles"], second);
            b.sequencer("bundles");
            barriers.insert("cover", Barrier::Cover);
            "proposer beside prover"
        }
        4 | 5 => {
            end = end / 3 * 3;
            let partial = which == 4;
            b.dispatcher("prove", "blocks", &["proofs"], "one");
            let runs = Sequential {
                n: 3,
                inputs: vec!["proofs".into()],
                partial,
            };
            let t_collect = Some(b.rng.within(2_000, 9_000));
            b.collector(
                "runs",
                &["proofs"],
                &["groups"],
                Arc::new(runs),
                None,
                t_collect,
            );
            b.dispatcher("aggregate", "groups", &["bundles"], second);
            b.sequencer("bundles");
            barriers.insert("runs", Barrier::Run { n: 3, partial });
            if partial {
                "runs, partial"
            } else {
                "runs, whole"
            }
        }
        6 => {
            retain_blocks = 4;
            b.dispatcher("prove", "blocks", &["proofs"], "one");
            b.dispatcher("archive", "proofs", &["archived"], second);
            let runs = Sequential {
                n: 2,
                inputs: vec!["archived".into()],
                partial: false,
            };
            b.collector("pack", &["archived"], &[], Arc::new(runs), None, None);
            b.dispatcher("wrap", "proofs", &["wrapped"], "one");
            b.sequencer("wrapped");
            barriers.insert(
                "pack",
                Barrier::Run {
                    n: 2,
                    partial: false,
                },
            );
            end = end / 2 * 2;
            sources = vec![source("headers", "blocks", singles(end))];
            "side branch"
        }
        7 => {
            let of = |odd: u64| (0..end).filter(|n| n % 2 == odd).map(|n| (n, n)).collect();
            sources = vec![
                source("even", "blocks", of(0)),
                source("odd", "blocks", of(1)),
            ];
            b.dispatcher("prove", "blocks", &["proofs"], "one");
            b.sequencer("proofs");
            let blocks = b.queue("blocks");
            b.queues[blocks.0].many_writers = true;
            "two writers"
        }
        8 => {
            b.dispatcher("witness", "blocks", &["witnesses"], "one");
            b.dispatcher("prove", "witnesses", &[], second);
            retain_blocks = 100_000;
            "no sequencer"
        }
        9 => {
            end = end / 2 * 2;
            sources = vec![source("headers", "blocks", singles(end))];
            b.dispatcher("prove", "blocks", &["proofs"], "one");
            let runs = Sequential {
                n: 2,
                inputs: vec!["proofs".into()],
                partial: false,
            };
            b.collector("runs", &["proofs"], &["groups"], Arc::new(runs), None, None);
            b.dispatcher("aggregate", "groups", &["bundles"], second);
            b.sequencer("bundles");
            let whole = Barrier::Run {
                n: 2,
                partial: false,
            };
            barriers.insert("runs", whole);
            "a chain"
        }
        10 => {
            b.dispatcher("fast", "blocks", &["proofs"], "one");
            b.dispatcher("slow", "blocks", &["proofs"], second);
            let first = Match {
                expected: Expected::Total(1),
                partial: false,
            };
            let first = Arc::new(first);
            b.collector("first", &["proofs"], &["firsts"], first, None, None);
            let proofs = b.queue("proofs");
            b.queues[proofs.0].many_writers = true;
            if b.rng.flip() {
                b.pass_late_on("first");
                // A stage that does not lead to the sequencer may run forgotten tasks again.
                retain_blocks = 100_000;
                b.dispatcher("archive", "firsts", &[], "one");
            } else {
                b.sequencer("firsts");
            }
            barriers.insert("first", Barrier::OfBlock(1));
            "the first of two provers"
        }
        _ => {
            end = end / 2 * 2;
            sources = vec![source("headers", "blocks", singles(end))];
            b.dispatcher("prove", "blocks", &["proofs"], "one");
            b.collector(
                "pairs",
                &["proofs"],
                &["paired"],
                Arc::new(Pairs),
                None,
                None,
            );
            b.sequencer("paired");
            barriers.insert("pairs", Barrier::Pair);
            junk = true;
            strict_restart = false;
            "custom strategy"
        }
    };
    if matches!(which, 3..=5) {
        sources[0].spans = singles(end);
    }
    let deadline = b.rng.flip().then(|| Deadline {
        slot: Duration::from_millis(b.rng.within(1, 6_000)),
        drop_missed: b.rng.flip(),
    });
    let queue_named = |name| b.queues.iter().position(|queue| &*queue.name == name);
    let source_plans = sources.iter().filter_map(|source| {
        Some(SourcePlan {
            name: source.name.into(),
            output: QueueIx(queue_named(source.queue)?),
            takes_submissions: false,
        })
    });
    let source_plans = source_plans.collect();
    let plan = Plan {
        workflow: "simulated".into(),
        stages: b.stages,
        queues: b.queues,
        sources: source_plans,
        retain_blocks,
        deadline,
        cuts_blocks: !fan_out.is_empty(),
    };
    let plan = Arc::new(plan);
    let partial = which == 4;
    Scene {
        partial,
        chain: which == 9,
        name,
        plan,
        sources,
        barriers,
        fan_out,
        end,
        junk,
        strict_restart,
    }
}

/// Pairs block 2i with 2i + 1. An odd block that comes first is postponed; a message called junk is skipped.
#[derive(Debug)]
struct Pairs;

struct PairsState {
    even: BTreeMap<u64, TaskId>,
}

impl StrategyFactory for Pairs {
    fn build(&self) -> Box<dyn Strategy> {
        Box::new(PairsState {
            even: BTreeMap::new(),
        })
    }
}

impl Strategy for PairsState {
    fn offer(&mut self, message: &Member) -> OfferDecision {
        let key = (message.first / 2).to_string();
        if message.id.part.as_str().contains("junk") {
            return OfferDecision::Skip("junk".to_owned());
        }
        if message.first.is_multiple_of(2) {
            self.even.insert(message.first, message.id.clone());
            return OfferDecision::InProgress { key };
        }
        let Some(even) = self.even.remove(&(message.first - 1)) else {
            return OfferDecision::Postpone(Duration::from_millis(70));
        };
        OfferDecision::Finished(vec![Group {
            key,
            first: message.first - 1,
            last: message.first,
            members: vec![message.id.clone(), even],
        }])
    }

    fn overdue(&mut self, _: &str) -> OverdueDecision {
        OverdueDecision::Gone
    }

    fn forget(&mut self, id: &TaskId) {
        self.even.retain(|_, held| held != id);
    }
}
