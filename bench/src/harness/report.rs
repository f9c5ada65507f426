//! Reports: a table with the paper's figures beside ours, one line of JSON, and violated invariants.

use serde_json::{Map, Value};

use super::emissions::EmissionCounter;
use super::host;
use super::state_disk::{Common, StateDisk};

/// Target of a figure. A missed target is reported but is not an error: the machine may be busy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// The figure shall be this value or lower.
    AtMost(f64),
    /// The figure shall be this value or higher.
    AtLeast(f64),
    /// The figure has no target and is printed for information.
    None,
}

/// Results of an experiment.
pub(crate) struct Report {
    title: String,
    rows: Vec<[String; 4]>,
    notes: Vec<String>,
    json: Map<String, Value>,
    violations: Vec<String>,
}

// === impl Report ===

impl Report {
    pub(crate) fn new(title: &str, disk: &StateDisk) -> Self {
        let mut report = Self {
            title: title.to_owned(),
            rows: Vec::new(),
            notes: Vec::new(),
            json: Map::new(),
            violations: Vec::new(),
        };
        let fsync = &disk.fsync;
        report.note(&format!(
            "{}; one fsync of this disk: P50 {:.3} ms, P99 {:.3} ms",
            host::describe(),
            fsync.p50(),
            fsync.p99()
        ));
        report.put("fsync_p50_ms", round(fsync.p50()));
        report.put("fsync_p99_ms", round(fsync.p99()));
        report.put("load", host::load().map_or(Value::Null, Value::from));
        report
    }

    /// Adds a row to the table: the figure with its unit, its target, and the figure that the push0
    /// paper reports.
    pub(crate) fn figure(
        &mut self,
        name: &str,
        ours: f64,
        unit: &str,
        target: Target,
        push0: &str,
    ) {
        let show = |value: f64| {
            let number = if value.fract() == 0.0 || value.abs() >= 1000.0 {
                format!("{value:.0}")
            } else if value.abs() >= 10.0 {
                format!("{value:.1}")
            } else {
                format!("{value:.3}")
            };
            if unit.is_empty() {
                number
            } else {
                format!("{number} {unit}")
            }
        };
        let target = match target {
            Target::AtMost(limit) => format!("≤ {}, {}", show(limit), met(ours <= limit)),
            Target::AtLeast(limit) => format!("≥ {}, {}", show(limit), met(ours >= limit)),
            Target::None => String::new(),
        };
        self.rows
            .push([name.to_owned(), show(ours), target, push0.to_owned()]);
    }

    /// Adds a count that must be zero: another value makes the command fail.
    pub(crate) fn must_be_zero(&mut self, key: &str, name: &str, count: usize) {
        self.put(key, count);
        self.must_be(name, count, 0);
    }

    /// Adds a count that must be `expected`: another value makes the command fail.
    pub(crate) fn must_be(&mut self, name: &str, count: usize, expected: usize) {
        let verdict = format!("must be {expected}");
        self.rows
            .push([name.to_owned(), count.to_string(), verdict, String::new()]);
        if count != expected {
            self.violations
                .push(format!("{name}: {count}, must be {expected}"));
        }
    }

    /// Requires that every block below `end` was emitted once, in order and with the right payload.
    pub(crate) fn emissions(&mut self, emissions: &EmissionCounter, end: u64) {
        let counts = emissions.so_far();
        let tally = &counts.tally;
        self.must_be_zero("lost", "lost", tally.lost(end));
        self.must_be_zero("duplicated", "duplicated", tally.duplicated());
        self.must_be_zero("out_of_order", "out of order", tally.out_of_order());
        self.must_be_zero("wrong", "with another payload", counts.wrong);
    }

    /// Adds a line below the table.
    pub(crate) fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Adds a field to the JSON object.
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.json.insert(key.to_owned(), value.into());
    }

    /// Prints the table, the notes and, with `--json`, the JSON object. Fails if an invariant is
    /// violated.
    pub(crate) fn finish(self, common: &Common) -> anyhow::Result<()> {
        println!("{}", self.title);
        let heads = ["", "ours", "target", "push0"].map(str::to_owned);
        let rows: Vec<&[String; 4]> = std::iter::once(&heads).chain(&self.rows).collect();
        let width = |column: usize| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths = [0, 1, 2, 3].map(width);
        for row in rows {
            let [name, ours, target, push0] = row;
            let line = format!(
                "  {name:<0$}  {ours:>1$}  {target:<2$}  {push0}",
                widths[0], widths[1], widths[2]
            );
            println!("{}", line.trim_end());
        }
        for note in &self.notes {
            println!("  {note}");
        }
        if common.json {
            println!("{}", Value::Object(self.json));
        }
        if self.violations.is_empty() {
            return Ok(());
        }
        anyhow::bail!("an invariant is violated: {}", self.violations.join("; "))
    }
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// Converts bytes to mebibytes.
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Rounds to three decimals, which is more than the precision of the measurements.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
