//! An engine's state as pages show it: its status as JSON, and the drawing of its recent work. The engine's own page and
//! the mill's console show the same.

use super::proto;
use super::timeline::{self, Timeline};

/// Most rows of each list of a status.
const ROWS_MAX: usize = 200;
/// Most bytes of a status as JSON.
const JSON_BYTES_MAX: usize = 512 << 10;
/// Partitions in the drawing: the last ones.
const DRAWN_ROWS: usize = 40;

/// The status as JSON, with the first rows of long lists. The error is a text for the page.
pub(crate) fn overview(mut status: proto::EngineStatus) -> Result<String, String> {
    let (Some(budget), Some(_)) = (&mut status.budget, &status.counts) else {
        return Err("the engine's answer lacks its memory or its counts".to_owned());
    };
    budget.owners.truncate(ROWS_MAX);
    status.circuits.truncate(ROWS_MAX);
    status.jobs.truncate(ROWS_MAX);
    status.recent.truncate(ROWS_MAX);
    status.stages.truncate(ROWS_MAX);
    status.devices.truncate(ROWS_MAX);
    let json = serde_json::to_string(&status).map_err(|error| error.to_string())?;
    match json.len() {
        ..=JSON_BYTES_MAX => Ok(json),
        length => Err(format!(
            "the engine's answer has {length} bytes, more than the {JSON_BYTES_MAX} that are shown"
        )),
    }
}

/// The waterfall of the last partitions, an SVG.
pub(crate) fn drawing(events: &[proto::Event]) -> String {
    timeline::waterfall(&Timeline::of(events), DRAWN_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> proto::EngineStatus {
        proto::EngineStatus {
            budget: Some(proto::BudgetStatus::default()),
            counts: Some(proto::JobCounts::default()),
            ..proto::EngineStatus::default()
        }
    }

    #[test]
    fn a_status_without_memory_or_counts_is_no_answer() {
        assert!(overview(status()).is_ok());
        for lacking in [
            proto::EngineStatus {
                budget: None,
                ..status()
            },
            proto::EngineStatus {
                counts: None,
                ..status()
            },
        ] {
            let refused = overview(lacking).expect_err("refused");
            assert!(refused.contains("lacks"), "{refused}");
        }
    }

    #[test]
    fn a_page_gets_few_rows_and_no_endless_texts() {
        let circuit = |name: &str| proto::Circuit {
            name: name.to_owned(),
            ..proto::Circuit::default()
        };
        let many = proto::EngineStatus {
            circuits: vec![circuit("a"); 10 * ROWS_MAX],
            ..status()
        };
        let json: serde_json::Value =
            serde_json::from_str(&overview(many).expect("shown")).expect("JSON");
        assert_eq!(json["circuits"].as_array().map(Vec::len), Some(ROWS_MAX));
        let long = proto::EngineStatus {
            circuits: vec![circuit(&"a".repeat(JSON_BYTES_MAX))],
            ..status()
        };
        let refused = overview(long).expect_err("refused");
        assert!(refused.contains("more than"), "{refused}");
    }
}
