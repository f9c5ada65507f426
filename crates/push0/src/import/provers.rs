//! The number of proofs of one block in a queue, which is the size of a group.

use std::collections::{BTreeMap, BTreeSet};

use super::Role;
use super::model::ImportedStage;

/// Most stages that write one of `queues` and that one message from outside reaches: each makes a proof of
/// it. Stages with different sources prove different blocks.
pub(super) fn provers_into(stages: &[ImportedStage], queues: &[&str]) -> u32 {
    let mut written = Vec::new();
    for stage in stages {
        let Some(output) = stage.config.output_queue.as_deref() else {
            continue;
        };
        let inputs = stage.config.input_queues.iter().map(String::as_str);
        match stage.role {
            _ if stage.is_source() => written.push((Vec::new(), output)),
            // A dispatcher becomes one stage for each input, with different messages.
            Role::Dispatcher => written.extend(inputs.map(|input| (vec![input], output))),
            Role::Collector => written.push((inputs.collect(), output)),
        }
    }
    Queues { stages: written }.provers_into(queues)
}

/// The number of messages in a group of `Match`, and a remark about it. If each of several provers brings
/// one message, a group has one of each; if one prover brings several, NUM_INPUTS decides.
pub(super) fn size_of_group(stage: &str, counted: u32, provers: u32) -> (u32, Option<String>) {
    if provers <= 1 {
        return (counted, None);
    }
    if counted < provers {
        let remark = format!(
            "{stage}: a group is the results of one block: {}",
            one_of_each(counted, provers)
        );
        return (provers, Some(remark));
    }
    let remark = format!(
        "{stage}: {provers} stages write its input; a group is the first {counted} messages, as \
         NUM_INPUTS says. Those that come later are late: they go to the dead-letter queue, or \
         where `late` of the collector says"
    );
    (counted, Some(remark))
}

/// A remark about a group that has a proof of each prover.
pub(super) fn one_of_each(counted: u32, group: u32) -> String {
    let made = match group == counted {
        true => format!("{group}, as NUM_INPUTS says"),
        false => format!(
            "{group}, one of each prover (NUM_INPUTS says {counted}, and push0 emits the block once more \
             for each further {counted})"
        ),
    };
    format!(
        "{made}. A block leaves when all are there; with a smaller `k` it leaves sooner, and proofs that \
         come later go to the dead-letter queue, or where `late` of the collector says"
    )
}

/// The queues that each writing stage reads, and the queue that it writes. A source reads none.
struct Queues<'a> {
    stages: Vec<(Vec<&'a str>, &'a str)>,
}

// === impl Queues ===

impl<'a> Queues<'a> {
    fn provers_into(&self, queues: &[&str]) -> u32 {
        let mut by_origin: BTreeMap<&str, u32> = BTreeMap::new();
        for (inputs, output) in &self.stages {
            if !queues.contains(output) {
                continue;
            }
            for origin in self.origins(inputs) {
                *by_origin.entry(origin).or_default() += 1;
            }
        }
        by_origin.into_values().max().unwrap_or(0)
    }

    /// The queues that no stage with inputs writes, and whose messages reach one of `queues`.
    fn origins(&self, queues: &[&'a str]) -> BTreeSet<&'a str> {
        let (mut origins, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut next = queues.to_vec();
        while let Some(queue) = next.pop() {
            if !seen.insert(queue) {
                continue;
            }
            let mut writers = self.stages.iter().filter(|(_, output)| *output == queue);
            let before = next.len();
            next.extend(writers.by_ref().flat_map(|(inputs, _)| inputs));
            if next.len() == before {
                origins.insert(queue);
            }
        }
        origins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provers(stages: &[(&[&'static str], &'static str)], into: &[&'static str]) -> u32 {
        let stages = stages
            .iter()
            .map(|(inputs, output)| (inputs.to_vec(), *output));
        let stages = stages.collect();
        Queues { stages }.provers_into(into)
    }

    #[test]
    fn only_provers_of_the_same_blocks_count_together() {
        let alike: &[(&[&str], &str)] = &[
            (&[], "blocks"),
            (&["blocks"], "proofs"),
            (&["blocks"], "steps"),
            (&["steps"], "proofs"),
        ];
        assert_eq!(provers(alike, &["proofs"]), 2);
        assert_eq!(provers(alike, &["proofs", "steps"]), 3);
        assert_eq!(provers(alike, &["nothing"]), 0);
        let shards: &[(&[&str], &str)] = &[(&["even"], "proofs"), (&["odd"], "proofs")];
        assert_eq!(provers(shards, &["proofs"]), 1);
        let round: &[(&[&str], &str)] = &[(&["a"], "b"), (&["b"], "a"), (&["a", "c"], "d")];
        assert_eq!(provers(round, &["d"]), 1);
    }
}
