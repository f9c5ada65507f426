//! The digest of a plan, which must be equal in all processes that work together.

use std::time::Duration;

use super::model::{
    Backoff, CollectorPlan, DispatcherPlan, Distinct, Needs, Plan, Speculation, StageKind,
};
use crate::identity::Identity;

// === impl Plan ===

impl Plan {
    /// A digest that distinguishes the plans of different workflows: the first half of SHA-256 over
    /// everything that the core depends on.
    pub fn digest(&self) -> [u8; 16] {
        let mut identity = Identity::new("proofmill plan 1");
        identity.text(&self.workflow);
        identity.size(self.queues.len());
        for queue in &self.queues {
            identity.text(&queue.name);
            identity.size(queue.readers.len());
            queue
                .readers
                .iter()
                .for_each(|stage| identity.size(stage.0));
            identity.flag(queue.many_writers);
            identity.size(queue.q_max);
        }
        identity.size(self.stages.len());
        for stage in &self.stages {
            identity.text(&stage.name);
            for queues in [&stage.inputs, &stage.outputs] {
                identity.size(queues.len());
                queues.iter().for_each(|queue| identity.size(queue.0));
            }
            kind(&mut identity, &stage.kind);
        }
        identity.number(self.retain_blocks);
        identity.option(self.deadline, |identity, deadline| {
            duration(identity, deadline.slot);
            identity.flag(deadline.drop_missed);
        });
        let digest = identity.finish();
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        short
    }
}

fn kind(identity: &mut Identity, kind: &StageKind) {
    match kind {
        StageKind::Dispatcher(plan) => {
            identity.number(0);
            dispatcher(identity, plan);
        }
        StageKind::Collector(plan) => {
            identity.number(1);
            collector(identity, plan);
        }
        StageKind::Sequencer { start } => {
            identity.number(2);
            identity.number(*start);
        }
    }
}

fn dispatcher(identity: &mut Identity, plan: &DispatcherPlan) {
    let DispatcherPlan {
        group,
        needs,
        t_ack,
        r_max,
        backoff,
        batch,
        speculation,
    } = plan;
    identity.text(group);
    let Needs { labels, memory } = needs;
    identity.size(labels.len());
    labels.iter().for_each(|label| identity.text(label));
    identity.number(*memory);
    duration(identity, *t_ack);
    identity.number(u64::from(*r_max));
    let Backoff {
        initial,
        max,
        factor,
        jitter,
    } = backoff;
    duration(identity, *initial);
    duration(identity, *max);
    identity.number(factor.to_bits());
    identity.number(jitter.to_bits());
    identity.size(*batch);
    let Speculation {
        copies,
        accept,
        distinct,
        hedge,
    } = speculation;
    identity.size(*copies);
    identity.size(*accept);
    match distinct {
        Distinct::Worker => identity.number(0),
        Distinct::Label(prefix) => {
            identity.number(1);
            identity.text(prefix);
        }
    }
    identity.option(hedge.as_ref(), |identity, hedge| {
        identity.number(u64::from(hedge.percentile));
        duration(identity, hedge.min);
    });
}

fn collector(identity: &mut Identity, plan: &CollectorPlan) {
    let CollectorPlan {
        strategy: _,
        settings,
        group_by,
        t_collect,
        // Part of `settings`, unless it is the default.
        late: _,
    } = plan;
    identity.text(settings);
    identity.option(group_by.as_ref(), |identity, pointer| {
        identity.text(pointer);
    });
    identity.option(*t_collect, duration);
}

fn duration(identity: &mut Identity, duration: Duration) {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    identity.number(nanos);
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use proofmill_workflow::{LocalHost, validate};

    use super::*;

    /// A workflow with every setting that the core depends on.
    const FILE: &str = r#"
name = "pinned"

[deadline]
slot = "12s"

[[source]]
name = "blocks"
kind = "range"
output = "blocks"

[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
group = "gpus"
memory = "8GiB"
t_ack = "30s"
heartbeat = "5s"
r_max = 3
backoff = { initial = "1s", max = "1m", factor = 2.0, jitter = 0.2 }
hedge = { percentile = 95, min = "10s" }
executor = { kind = "native", prover = "prover" }

[[collector]]
name = "gather"
inputs = ["proofs"]
output = "groups"
strategy = { kind = "match", k = 2, group_by = "/id" }
t_collect = "1m"

[sequencer]
input = "groups"
start = 7
directory = "out"
"#;

    const CHANGES: [(&str, &str); 17] = [
        ("\"pinned\"", "\"other\""),
        ("\"12s\"", "\"13s\""),
        ("\"gpus\"", "\"cpus\""),
        ("8GiB", "9GiB"),
        ("\"30s\"", "\"31s\""),
        ("r_max = 3", "r_max = 4"),
        ("initial = \"1s\"", "initial = \"2s\""),
        ("max = \"1m\"", "max = \"2m\""),
        ("factor = 2.0", "factor = 2.5"),
        ("jitter = 0.2", "jitter = 0.3"),
        ("percentile = 95", "percentile = 90"),
        ("min = \"10s\"", "min = \"11s\""),
        ("k = 2", "k = 3"),
        ("\"/id\"", "\"/no\""),
        ("t_collect = \"1m\"", "t_collect = \"2m\""),
        ("t_collect = \"1m\"", "t_collect = \"1m\"\nlate = \"skip\""),
        ("start = 7", "start = 8"),
    ];

    /// Settings that need more workers than the file has.
    const FURTHER: [fn(&mut DispatcherPlan); 5] = [
        |_| {},
        |plan| plan.needs.labels.extend(["gpu".to_owned()]),
        |plan| plan.speculation.copies = 3,
        |plan| plan.speculation.accept = 2,
        |plan| plan.speculation.distinct = Distinct::Label("site".into()),
    ];

    fn further(change: fn(&mut DispatcherPlan)) -> [u8; 16] {
        let mut plan = plan(FILE);
        let mut kinds = plan.stages.iter_mut().map(|stage| &mut stage.kind);
        let dispatcher = kinds.find_map(|kind| match kind {
            StageKind::Dispatcher(dispatcher) => Some(dispatcher),
            _ => None,
        });
        change(dispatcher.expect("a dispatcher"));
        plan.digest()
    }

    fn plan(text: &str) -> Plan {
        let host = LocalHost::new(["prover"]);
        let (workflow, _) = validate(text, Path::new("pinned.toml"), &host).expect("a workflow");
        Plan::compile(&workflow, &BTreeMap::new()).expect("a plan")
    }

    /// Processes of different releases compare it, and running workflows keep it, so it must never
    /// change.
    #[test]
    fn the_digest_of_a_plan_is_pinned() {
        assert_eq!(
            hex::encode(plan(FILE).digest()),
            "3202b9ec5b00cb1646e57d03e3a8a4dd"
        );
    }

    #[test]
    fn every_setting_that_the_core_goes_by_changes_the_digest() {
        let mut seen = BTreeSet::from([plan(FILE).digest()]);
        for (from, to) in CHANGES {
            assert!(FILE.contains(from), "{from}");
            let changed = plan(&FILE.replacen(from, to, 1)).digest();
            assert!(seen.insert(changed), "{from} -> {to}");
        }
        let settings: BTreeSet<_> = FURTHER.into_iter().map(further).collect();
        assert_eq!(settings.len(), FURTHER.len());
        // The first changes nothing.
        assert_eq!(settings.intersection(&seen).count(), 1);
    }
}
