//! The result of one comparison.

use serde_json::{Map, Value, json};

use crate::harness::{Figures, round};

/// The times of one contender.
pub(crate) struct Measured {
    /// Name in the table.
    pub(crate) name: String,
    /// Milliseconds.
    pub(crate) ms: Figures,
    /// Times of the stages, for contenders that report them.
    pub(crate) stages: Vec<(&'static str, Figures)>,
}

/// The result of one comparison.
pub(crate) struct Comparison {
    /// Settings that identify the comparison: curve, size, threads.
    pub(crate) settings: Map<String, Value>,
    /// Times of our contender.
    pub(crate) ours: Measured,
    /// Times of the peers, in the order of the table.
    pub(crate) peers: Vec<Measured>,
    /// Lines below the table.
    pub(crate) notes: Vec<String>,
}

// === impl Comparison ===

impl Comparison {
    /// The peer with the lowest median.
    pub(crate) fn best_peer(&self) -> Option<&Measured> {
        self.peers
            .iter()
            .min_by(|a, b| a.ms.p50().total_cmp(&b.ms.p50()))
    }

    /// A contender's median divided by ours. Above one, we are faster.
    pub(crate) fn ratio(&self, other: &Measured) -> f64 {
        other.ms.p50() / self.ours.ms.p50()
    }

    /// The comparison as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = self.settings.clone();
        let spread = |measured: &Measured| {
            json!({
                "min_ms": round(measured.ms.quantile(0.0)),
                "max_ms": round(measured.ms.max()),
                "samples": measured.ms.len(),
            })
        };
        let by_name = |value: &dyn Fn(&Measured) -> Value| -> Value {
            let all = self.peers.iter();
            Value::Object(
                all.map(|peer| (peer.name.clone(), value(peer)))
                    .collect::<Map<_, _>>(),
            )
        };
        object.insert("samples".to_owned(), self.ours.ms.len().into());
        object.insert("ours_ms".to_owned(), round(self.ours.ms.p50()).into());
        object.insert("ours_spread".to_owned(), spread(&self.ours));
        object.insert(
            "peers_ms".to_owned(),
            by_name(&|peer| round(peer.ms.p50()).into()),
        );
        object.insert("peers_spread".to_owned(), by_name(&spread));
        let best = self.best_peer();
        object.insert(
            "best_peer".to_owned(),
            best.map_or(Value::Null, |best| best.name.clone().into()),
        );
        object.insert(
            "ratio_to_best".to_owned(),
            best.map_or(Value::Null, |best| round(self.ratio(best)).into()),
        );
        if !self.ours.stages.is_empty() {
            let stages: Map<String, Value> = self
                .ours
                .stages
                .iter()
                .map(|(name, ms)| ((*name).to_owned(), round(ms.p50()).into()))
                .collect();
            object.insert("ours_stages_ms".to_owned(), Value::Object(stages));
        }
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &str, ms: &[f64]) -> Measured {
        Measured {
            name: name.to_owned(),
            ms: Figures::of(ms.to_vec()),
            stages: Vec::new(),
        }
    }

    #[test]
    fn the_best_peer_is_the_one_with_the_lowest_median() {
        let comparison = Comparison {
            settings: Map::new(),
            ours: measured("proofmill", &[2.0, 1.0, 9.0]),
            peers: vec![measured("a", &[1.0, 8.0, 8.0]), measured("b", &[5.0])],
            notes: Vec::new(),
        };
        let json = comparison.to_json();
        assert_eq!(json["ours_ms"], 2.0);
        assert_eq!(json["peers_ms"]["a"], 8.0);
        assert_eq!(json["best_peer"], "b");
        assert_eq!(json["ratio_to_best"], 2.5);
        assert_eq!(json["samples"], 3);
    }
}
