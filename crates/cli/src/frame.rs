//! Parts of the frames that `engine top` and `top` draw.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Style};
use ratatui::widgets::{Block, Borders, Row, Table};

use crate::output;

/// A column of a table.
pub(crate) struct Column {
    head: &'static str,
    width: Constraint,
    /// Whether the column is left out on narrow terminals.
    wide: bool,
}

/// A frame as text, for pipes.
pub(crate) fn frame_text(columns: u16, rows: u16, draw: impl FnOnce(Rect, &mut Buffer)) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    draw(buffer.area, &mut buffer);
    let lines = buffer
        .content()
        .chunks(usize::from(columns).max(1))
        .map(|cells| {
            let line: String = cells.iter().map(|cell| cell.symbol()).collect();
            line.trim_end().to_owned()
        });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").trim_end().to_owned()
}

/// A table with a title above it; `wide` keeps the columns that narrow terminals have no room for.
pub(crate) fn table<const N: usize>(
    title: String,
    columns: [Column; N],
    wide: bool,
    rows: impl Iterator<Item = [String; N]>,
) -> Table<'static> {
    let kept = columns.each_ref().map(|column| wide || !column.wide);
    let rows = rows.map(|cells| {
        let cells = cells.into_iter().zip(kept);
        Row::new(cells.filter_map(|(cell, kept)| kept.then_some(cell)))
    });
    let columns: Vec<&Column> = columns.iter().filter(|it| wide || !it.wide).collect();
    let head = Row::new(columns.iter().map(|column| column.head));
    Table::new(rows, columns.iter().map(|column| column.width))
        .header(head.style(Style::new().fg(Color::DarkGray)))
        .block(Block::new().borders(Borders::TOP).title(title))
}

// === impl Column ===

impl Column {
    /// A column of this width.
    pub(crate) const fn fixed(head: &'static str, width: u16) -> Self {
        Self {
            head,
            width: Constraint::Length(width),
            wide: false,
        }
    }

    /// A column that takes the remaining width.
    pub(crate) const fn rest(head: &'static str) -> Self {
        Self {
            head,
            width: Constraint::Fill(1),
            wide: false,
        }
    }

    /// The column, on wide terminals only.
    pub(crate) const fn if_wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

/// A share in words: `12 %`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Text from outside, escaped and on one line.
pub(crate) fn escaped(text: &str) -> String {
    output::plain(text).replace(['\n', '\t'], " ")
}
