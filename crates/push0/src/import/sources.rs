//! Sources: those of the deployment, and stand-ins for writers from outside.

use std::collections::BTreeMap;

use proofmill_workflow::HttpUrl;

use super::model::{ImportedStage, Writer, unique};
use crate::environment::Start;
use crate::source;

/// `L1_RPC`, if a source can ask it.
pub(super) fn endpoint(variables: &BTreeMap<String, String>) -> Option<HttpUrl> {
    HttpUrl::try_new(variables.get("L1_RPC")?.trim()).ok()
}

/// The whole address with its path, which may contain a key.
pub(super) fn address(url: &HttpUrl) -> String {
    format!("{url}{}", url.path())
}

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn sources(&mut self) {
        for stage in self.stages.iter().filter(|stage| stage.is_source()) {
            let Some(output) = stage.config.output_queue.as_deref() else {
                continue;
            };
            if !self.read.contains(output) {
                self.remarks.push(format!(
                    "{}: no service reads its queue; left out",
                    stage.name
                ));
                continue;
            }
            self.text.table("source");
            self.text.text("name", &stage.name);
            match stage.endpoint.as_ref().filter(|_| self.choice.follow) {
                Some(endpoint) => self.follow(stage, endpoint),
                None => self.submit(stage),
            }
            self.text.text("output", &self.queue(output));
        }
        let fed: Vec<&str> = self
            .read
            .iter()
            .copied()
            .filter(|queue| !self.writers.contains_key(queue))
            .collect();
        for subject in fed {
            let queue = self.queue(subject);
            let name = unique(&format!("{queue}-in"), &mut self.names);
            self.remarks.push(format!(
                "{subject}: none of the services writes it; the source `{name}` takes its messages from \
                 `proofmill submit` and the API"
            ));
            self.text.table("source");
            self.text.text("name", &name);
            self.text.text("kind", "submit");
            self.text.text("output", &queue);
        }
    }

    /// Writes the settings of a source that asks the deployment's endpoint and makes the same messages.
    fn follow(&mut self, stage: &ImportedStage, endpoint: &HttpUrl) {
        self.text.text("kind", "ethereum");
        self.text.text("rpc", &address(endpoint));
        match stage.start_of_source() {
            Some(Start::At(block)) => self.text.number("from", block),
            Some(Start::Behind(blocks)) if blocks > 0 => {
                self.text.line(&format!("from = -{blocks}"));
            }
            _ => self.text.text("from", "head"),
        }
        let collection = stage.config.collection.as_ref();
        let poll = collection.and_then(|collection| collection.collect_timeout);
        let poll = proofmill_workflow::format_duration(poll.unwrap_or(source::PERIOD));
        self.text.text("poll", &poll);
        self.text.number("reorg_depth", source::REMEMBERED as u64);
        self.text.text("payload", "{block}");
        let key = match endpoint.path() {
            "/" => "",
            _ => "; the address with its path, where keys are kept, is in the workflow file now",
        };
        self.remarks.push(format!(
            "{}: follows {endpoint}; each message is a block's bare number, as before{key}",
            stage.name
        ));
    }

    /// Writes the settings of a source that gets submitted blocks.
    fn submit(&mut self, stage: &ImportedStage) {
        self.text.text("kind", "submit");
        let why = if stage.endpoint.is_some() {
            "another source reaches the same stages, and after a reorganisation of the chain what \
             that one brought would be lost"
        } else {
            "a workflow's source asks an endpoint by http:// or https://, without a user in the address"
        };
        self.remarks.push(format!(
            "{}: takes blocks from `proofmill submit` and the API, and L1_RPC is left out: {why}",
            stage.name
        ));
    }
}
