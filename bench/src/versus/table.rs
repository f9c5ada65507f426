//! Tables of comparisons.

use serde_json::{Value, json};

use super::{Comparison, Measured, Options};
use crate::harness::describe;

impl Options {
    /// Prints the comparisons of one command, which all have settings of the same names.
    pub(crate) fn print(&self, title: &str, comparisons: &[Comparison]) {
        if self.markdown {
            print!("{}", markdown(comparisons));
        } else {
            println!("{title}");
            print!("{}", plain(comparisons));
        }
        let mut notes: Vec<String> = vec![format!(
            "{}; ours on {}",
            describe(),
            proofmill_kernels::InstructionSet::current()
        )];
        for comparison in comparisons {
            for note in &comparison.notes {
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
        }
        if self.markdown {
            println!();
        }
        for note in notes {
            println!("{}{note}", if self.markdown { "- " } else { "  " });
        }
        if self.json {
            let mut objects: Vec<Value> = comparisons.iter().map(Comparison::to_json).collect();
            let object = match objects.len() {
                1 => objects.remove(0),
                _ => json!({ "comparisons": objects }),
            };
            println!("{object}");
        }
    }
}

/// Number of columns of [`plain`] that hold figures. They are the last ones.
const FIGURE_COLUMNS: usize = 5;

/// A row for each contender of each comparison.
fn plain(comparisons: &[Comparison]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let heads = comparisons
        .first()
        .map(|first| first.settings.keys().cloned().collect::<Vec<_>>());
    let mut head = heads.unwrap_or_default();
    head.extend(["", "median", "min", "max", "runs", "to ours"].map(str::to_owned));
    rows.push(head);
    for comparison in comparisons {
        let settings: Vec<String> = comparison.settings.values().map(setting_text).collect();
        for measured in std::iter::once(&comparison.ours).chain(&comparison.peers) {
            let ms = &measured.ms;
            let mut row = settings.clone();
            row.push(measured.name.clone());
            row.extend(
                [ms.p50(), ms.quantile(0.0), ms.max()].map(|ms| format!("{} ms", format_ms(ms))),
            );
            row.push(ms.len().to_string());
            row.push(format!("{:.2}×", comparison.ratio(measured)));
            rows.push(row);
            for (name, ms) in &measured.stages {
                let mut row = vec![String::new(); settings.len()];
                row.push(format!("· {name}"));
                row.extend(
                    [ms.p50(), ms.quantile(0.0), ms.max()]
                        .map(|ms| format!("{} ms", format_ms(ms))),
                );
                rows.push(row);
            }
        }
    }
    let columns = rows[0].len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Names are aligned to the left, figures to the right.
            if column + FIGURE_COLUMNS < columns {
                line += &format!(" {cell:<width$}");
            } else {
                line += &format!("  {cell:>width$}");
            }
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// A row for each comparison, a column for each contender: median, spread and ratio to ours.
fn markdown(comparisons: &[Comparison]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for comparison in comparisons {
        for peer in &comparison.peers {
            if !names.contains(&peer.name.as_str()) {
                names.push(&peer.name);
            }
        }
    }
    let Some(first) = comparisons.first() else {
        return String::new();
    };
    let mut head: Vec<String> = first.settings.keys().cloned().collect();
    head.push("ours".to_owned());
    head.extend(names.iter().map(|name| (*name).to_owned()));
    head.push("fastest peer / ours".to_owned());
    let mut out = markdown_row(&head);
    out += &markdown_row(&vec!["---".to_owned(); head.len()]);
    for comparison in comparisons {
        let mut cells: Vec<String> = comparison.settings.values().map(setting_text).collect();
        cells.push(cell(&comparison.ours));
        for name in &names {
            let peer = comparison.peers.iter().find(|peer| peer.name == *name);
            cells.push(peer.map_or("–".to_owned(), |peer| {
                format!("{}, {:.2}×", cell(peer), comparison.ratio(peer))
            }));
        }
        cells.push(comparison.best_peer().map_or("–".to_owned(), |best| {
            format!("**{:.2}×**", comparison.ratio(best))
        }));
        out += &markdown_row(&cells);
    }
    if comparisons
        .iter()
        .any(|comparison| !comparison.ours.stages.is_empty())
    {
        out += &markdown_stages(comparisons);
    }
    out
}

/// Times of our stages: a row for each comparison, a column for each stage.
fn markdown_stages(comparisons: &[Comparison]) -> String {
    let first = &comparisons[0];
    let mut head: Vec<String> = first.settings.keys().cloned().collect();
    head.extend(first.ours.stages.iter().map(|(name, _)| (*name).to_owned()));
    let mut out = format!("\nOurs by stage:\n\n{}", markdown_row(&head));
    out += &markdown_row(&vec!["---".to_owned(); head.len()]);
    for comparison in comparisons {
        let mut cells: Vec<String> = comparison.settings.values().map(setting_text).collect();
        let stages = comparison.ours.stages.iter();
        cells.extend(stages.map(|(_, ms)| format!("{} ms", format_ms(ms.p50()))));
        out += &markdown_row(&cells);
    }
    out
}

fn markdown_row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn cell(measured: &Measured) -> String {
    let ms = &measured.ms;
    format!(
        "{} ms ({}–{})",
        format_ms(ms.p50()),
        format_ms(ms.quantile(0.0)),
        format_ms(ms.max())
    )
}

fn setting_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats milliseconds with three digits, or with all digits of the integer part.
fn format_ms(ms: f64) -> String {
    match ms {
        _ if ms >= 100.0 => format!("{ms:.0}"),
        _ if ms >= 10.0 => format!("{ms:.1}"),
        _ if ms >= 1.0 => format!("{ms:.2}"),
        _ => format!("{ms:.4}"),
    }
}
