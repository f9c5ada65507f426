//! One frame of `proofmill top`.

use std::time::Duration;

use proofmill_api::MillView;
use proofmill_orchestrator::core::{BlockState, StageStatus};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Table, Widget};

use super::Look;
use crate::frame::{Column, escaped, frame_text, table};
use crate::progress::span;

/// Terminal width, in columns, at which every figure is shown.
const WIDE_COLUMNS_MIN: u16 = 100;
/// Most tasks of the next block, and most dead letters, that get a row.
const TASKS_MAX: u16 = 6;
const DEAD_MAX: u16 = 6;
/// Rows of a table beside its content: the title and the head.
const TABLE_ROWS: u16 = 2;

/// The frame as text, for pipes.
pub(super) fn text(look: &Look, columns: u16, rows: u16) -> String {
    frame_text(columns, rows, |area, buffer| {
        draw(look, None, None, area, buffer)
    })
}

/// Draws the mill. The last line shows the help for the `keys`, and why there is no later state if it was `lost`.
pub(super) fn draw(
    look: &Look,
    keys: Option<&str>,
    lost: Option<&str>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let view = &look.view;
    let wide = area.width >= WIDE_COLUMNS_MIN;
    let tasks = view.head.as_ref().map_or(0, |head| head.tasks.len().max(1));
    let dead = view.dead.len();
    let rows = |count: usize, max: u16| u16::try_from(count).unwrap_or(max).min(max);
    let stages = rows(view.status.stages.len(), u16::MAX);
    let groups = rows(view.measures.groups.len(), u16::MAX);
    let with_head = |rows: u16| if rows == 0 { 0 } else { rows + TABLE_ROWS };
    let lines = 2 + u16::from(keys.is_some());
    let fixed = lines + with_head(rows(dead, DEAD_MAX)) + with_head(rows(tasks, TASKS_MAX));
    // Stages come first; groups get the rows that are left.
    let room = area.height.saturating_sub(fixed);
    let stages = with_head(stages).min(room);
    let groups = with_head(groups).min(room - stages);
    let [
        top,
        counts,
        stage_area,
        group_area,
        head_area,
        dead_area,
        _,
        help,
    ] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(stages),
        Constraint::Length(groups),
        Constraint::Length(with_head(rows(tasks, TASKS_MAX)).saturating_sub(1)),
        Constraint::Length(with_head(rows(dead, DEAD_MAX))),
        Constraint::Fill(1),
        Constraint::Length(keys.is_some().into()),
    ])
    .areas(area);
    header(look).render(top, buffer);
    Paragraph::new(counted_line(view)).render(counts, buffer);
    stage_table(look, wide).render(stage_area, buffer);
    group_table(view, wide).render(group_area, buffer);
    head_block(view).render(head_area, buffer);
    dead_table(view, wide).render(dead_area, buffer);
    let red = Style::new().fg(Color::Red);
    let grey = Style::new().fg(Color::DarkGray);
    match lost {
        Some(lost) => {
            let line = format!("no answer since: {}   q: end", escaped(lost));
            Paragraph::new(line).style(red).render(help, buffer);
        }
        None => Paragraph::new(keys.unwrap_or_default())
            .style(grey)
            .render(help, buffer),
    }
}

/// The chain: progress, rate, lag, and the time until the lag is worked off.
fn header(look: &Look) -> Paragraph<'static> {
    let status = &look.view.status;
    let word = match (look.is_running, status.draining) {
        (false, _) => "stopped",
        (true, true) => "draining",
        (true, false) => "running",
    };
    let mut text = format!("{}, {word}", escaped(&status.workflow));
    if let Some(next) = status.next_block {
        text.push_str(&format!("   next block {next}"));
    }
    if let Some(rate) = look.rates.blocks {
        text.push_str(&format!("   {rate:.1} blocks/min"));
    }
    if let Some(lag) = look.view.behind {
        text.push_str(&format!("   {lag} behind"));
        if let Some(rate) = look.rates.blocks.filter(|rate| *rate > 0.0 && lag > 0) {
            let left = Duration::from_secs((60.0 * lag as f64 / rate) as u64);
            text.push_str(&format!("   done in {}", span(left)));
        }
    }
    Paragraph::new(Line::from(text)).style(Style::new().add_modifier(Modifier::BOLD))
}

fn counted_line(view: &MillView) -> String {
    let status = &view.status;
    let mut text = format!("{} live, {} dead", status.live, status.dead);
    if status.producers_waiting > 0 {
        text.push_str(&format!(
            "   {} messages wait for room, or for a paused source",
            status.producers_waiting
        ));
    }
    if status.blocks_met + status.blocks_missed > 0 {
        let (met, missed) = (status.blocks_met, status.blocks_missed);
        text.push_str(&format!("   deadline: {met} met, {missed} missed"));
    }
    for source in &view.status.sources {
        let name = escaped(&source.source);
        text.push_str(&format!("   source {name}: next {}", source.next));
        let head = view
            .source_heads
            .iter()
            .find(|head| *head.source == *source.source);
        if let Some(head) = head {
            text.push_str(&format!(", head {}", head.head));
        }
    }
    text
}

fn stage_table(look: &Look, wide: bool) -> Table<'static> {
    let view = &look.view;
    let rows = view.status.stages.iter().map(|stage| {
        let counters = &stage.counters;
        let done = counters.completed + counters.grouped + counters.emitted;
        let rate = look.rates.done.get(&*stage.stage);
        [
            escaped(&stage.stage),
            stage.waiting.to_string(),
            stage.leased.to_string(),
            stage.held.to_string(),
            stage.dead.to_string(),
            done.to_string(),
            rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")),
            counters.failed.to_string(),
            oldest(view, stage),
            reasons(view, stage),
        ]
    });
    let columns = [
        Column::fixed("stage", if wide { 18 } else { 12 }),
        Column::fixed("waiting", 7),
        Column::fixed("leased", 6),
        Column::fixed("held", 5),
        Column::fixed("dead", 5),
        Column::fixed("done", 8).if_wide(),
        Column::fixed("/min", 7),
        Column::fixed("failed", 6).if_wide(),
        Column::fixed("oldest", 9),
        Column::rest("waits for"),
    ];
    table("stages".to_owned(), columns, wide, rows)
}

/// The age of a stage's oldest task.
fn oldest(view: &MillView, stage: &StageStatus) -> String {
    let oldest = view
        .measures
        .oldest
        .iter()
        .find(|it| it.stage == stage.stage);
    oldest.map_or_else(
        || "-".to_owned(),
        |it| span(Duration::from_secs(it.oldest_age_ms / 1000)),
    )
}

/// The reasons that a stage's tasks wait for, most tasks first: `busy 12, queue_full 3`.
fn reasons(view: &MillView, stage: &StageStatus) -> String {
    let waits = view.measures.waiting.iter();
    let mut waits: Vec<_> = waits.filter(|wait| wait.stage == stage.stage).collect();
    waits.sort_by(|a, b| b.tasks.cmp(&a.tasks).then(a.reason.cmp(&b.reason)));
    let waits = waits.iter();
    let waits = waits.map(|wait| format!("{} {}", wait.reason.replace('_', " "), wait.tasks));
    escaped(&waits.collect::<Vec<String>>().join(", "))
}

fn group_table(view: &MillView, wide: bool) -> Table<'static> {
    let rows = view.measures.groups.iter().map(|group| {
        let stages: Vec<&str> = group.stages.iter().map(|stage| &**stage).collect();
        let away = group.paused + group.silent + group.leaving + group.distrusted;
        let parts = group
            .states()
            .into_iter()
            .skip(2)
            .filter(|(_, count)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        [
            escaped(&group.group),
            group.workers().to_string(),
            group.working.to_string(),
            group.idle.to_string(),
            match away {
                0 => "-".to_owned(),
                _ => parts.join(", "),
            },
            format!("{}/{}", group.slots_busy, group.slots),
            escaped(&stages.join(", ")),
        ]
    });
    let columns = [
        Column::fixed("workers of", if wide { 18 } else { 12 }),
        Column::fixed("all", 5),
        Column::fixed("working", 7),
        Column::fixed("idle", 5),
        Column::fixed("away", if wide { 28 } else { 18 }),
        Column::fixed("slots", 9),
        Column::rest("stages"),
    ];
    table("workers".to_owned(), columns, wide, rows)
}

/// The next block: why it is not done.
fn head_block(view: &MillView) -> Paragraph<'static> {
    let Some(head) = &view.head else {
        return Paragraph::default();
    };
    let what = match view.status.next_block {
        Some(_) => "the next to be emitted",
        None => "the lowest in work",
    };
    let title = format!("block {}, {what}: {}", head.block, state(head.state));
    let mut lines: Vec<Line<'static>> = Vec::new();
    let shown = usize::from(TASKS_MAX);
    for task in head.tasks.iter().take(shown) {
        let text = format!("{} waits for {}", task.task, task.waits_for);
        lines.push(Line::from(escaped(&text)));
    }
    if head.tasks.is_empty() {
        lines.extend(head.note.as_deref().map(|note| Line::from(escaped(note))));
    }
    let more = head.tasks.len().saturating_sub(shown);
    let title = match more {
        0 => title,
        _ => format!("{title}; {more} more tasks"),
    };
    Paragraph::new(lines).block(Block::new().borders(Borders::TOP).title(title))
}

fn state(state: BlockState) -> &'static str {
    match state {
        BlockState::NeverSeen => "never seen",
        BlockState::BeforeStart => "before the first",
        BlockState::Forgotten => "forgotten",
        BlockState::Running => "running",
        BlockState::Waiting => "waiting",
        BlockState::Dead => "dead",
        BlockState::Dropped => "dropped",
        BlockState::Skipped => "skipped",
        BlockState::TakenBack => "taken back",
        BlockState::Finished => "finished",
        BlockState::Emitted => "emitted",
    }
}

fn dead_table(view: &MillView, wide: bool) -> Table<'static> {
    let rows = view.dead.iter().take(DEAD_MAX.into()).map(|letter| {
        let age = view.at_ms.saturating_sub(letter.at_ms) / 1000;
        [
            escaped(&letter.task),
            letter.attempts.to_string(),
            span(Duration::from_secs(age)),
            escaped(&letter.reason),
        ]
    });
    let columns = [
        Column::fixed("task", if wide { 28 } else { 20 }),
        Column::fixed("attempts", 8).if_wide(),
        Column::fixed("since", 9),
        Column::rest("reason"),
    ];
    let more = view.status.dead.saturating_sub(DEAD_MAX.into());
    let title = match more {
        0 => "dead letters".to_owned(),
        _ => format!("dead letters, and {more} more"),
    };
    table(title, columns, wide, rows)
}
