//! One frame of `proofmill engine top`.

use std::time::Duration;

use proofmill_api::engine::proto::owner_use::Owner;
use proofmill_api::engine::proto::{
    BudgetStatus, Circuit, EngineStatus, Job, Priority, Stage, Tier,
};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Gauge, Paragraph, Row, Table, Widget};

use super::bytes;
use super::look::{activity, state};
use crate::output;
use crate::progress::span;

/// Owners of memory that are shown.
const OWNERS: usize = 6;

/// The frame as text, for pipes.
pub(super) fn text(status: &EngineStatus, columns: u16, rows: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    draw(status, None, buffer.area, &mut buffer);
    let lines = buffer.content().chunks(columns.into()).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").trim_end().to_owned()
}

/// Draws an engine as it is `now`; how busy it is, since `before`, or since it began.
pub(super) fn draw(
    now: &EngineStatus,
    before: Option<&EngineStatus>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let budget = now.budget.clone().unwrap_or_default();
    let since = before.map_or(0, |it| it.uptime_us);
    let window = now.uptime_us.saturating_sub(since).max(1);
    let owners = budget.owners.len().clamp(1, OWNERS);
    let live = now.jobs.len().clamp(1, 10);
    let circuits = now.circuits.len().clamp(1, 10);
    let height = |rows: usize| Constraint::Length(u16::try_from(rows + 3).unwrap_or(u16::MAX));
    let [top, memory, middle, keys, queue, recent] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        height(owners.max(now.stages.len()).max(now.devices.len())),
        height(circuits),
        height(live),
        Constraint::Min(4),
    ])
    .areas(area);
    header(now).render(top, buffer);
    gauge(&budget).render(memory, buffer);
    let [stage_area, device_area, owner_area] = Layout::horizontal([
        Constraint::Percentage(32),
        Constraint::Percentage(28),
        Constraint::Percentage(40),
    ])
    .areas(middle);
    stages(now, before, window).render(stage_area, buffer);
    devices(now, before, window).render(device_area, buffer);
    memory_owners(now, &budget).render(owner_area, buffer);
    circuit_table(&now.circuits).render(keys, buffer);
    let title = match now.jobs.len() - now.jobs.len().min(live) {
        0 => "queue".to_owned(),
        more => format!("queue, and {more} more"),
    };
    job_table(title, now.jobs.iter().take(live)).render(queue, buffer);
    job_table("recent".to_owned(), now.recent.iter()).render(recent, buffer);
}

fn header(now: &EngineStatus) -> Paragraph<'static> {
    let counts = now.counts.unwrap_or_default();
    let word = if now.draining { "draining" } else { "running" };
    let text = format!(
        "proofmill engine, {word} for {}   jobs: {} live, {} done, {} failed, {} cancelled, {} \
         expired, {} refused",
        span(Duration::from_micros(now.uptime_us)),
        now.jobs.len(),
        counts.done,
        counts.failed,
        counts.cancelled,
        counts.expired,
        counts.refused,
    );
    Paragraph::new(Line::from(text)).style(Style::new().add_modifier(Modifier::BOLD))
}

fn gauge(budget: &BudgetStatus) -> Gauge<'static> {
    let ratio = budget.used as f64 / budget.total.max(1) as f64;
    let label = format!(
        "memory {} of {}, {} at most, {} waited for, {} evictions",
        bytes(budget.used),
        bytes(budget.total),
        bytes(budget.peak),
        bytes(budget.waiting_bytes),
        budget.evictions,
    );
    Gauge::default()
        .ratio(ratio.clamp(0.0, 1.0))
        .label(label)
        .gauge_style(Style::new().fg(Color::Blue))
}

fn stages(now: &EngineStatus, before: Option<&EngineStatus>, window: u64) -> Table<'static> {
    let rows = now.stages.iter().enumerate().map(|(index, it)| {
        let earlier = before.and_then(|it| it.stages.get(index));
        let capacity = window.saturating_mul(u64::from(it.workers.max(1)));
        let used = it
            .busy_us
            .saturating_sub(earlier.map_or(0, |it| it.busy_us));
        Row::new([
            Stage::short_name(it.stage).to_owned(),
            format!("{}/{}", it.busy, it.workers),
            it.queued.to_string(),
            it.ended.to_string(),
            percent(used, capacity),
        ])
    });
    table(
        "stages".to_owned(),
        ["stage", "busy", "wait", "ended", "used"],
        [9, 5, 5, 7, 5],
        rows,
    )
}

fn devices(now: &EngineStatus, before: Option<&EngineStatus>, window: u64) -> Table<'static> {
    let rows = now.devices.iter().enumerate().map(|(index, it)| {
        let earlier = before.and_then(|it| it.devices.get(index));
        let used = it
            .busy_us
            .saturating_sub(earlier.map_or(0, |it| it.busy_us));
        Row::new([
            shown(&it.name),
            activity(it).to_owned(),
            it.products.to_string(),
            it.failures.to_string(),
            percent(used, window),
        ])
    });
    table(
        "devices".to_owned(),
        ["device", "now", "made", "bad", "used"],
        [8, 6, 6, 4, 5],
        rows,
    )
}

fn memory_owners(now: &EngineStatus, budget: &BudgetStatus) -> Table<'static> {
    let rows = budget.owners.iter().take(OWNERS).map(|it| {
        let owner = match &it.owner {
            Some(Owner::Key(id)) => {
                let circuit = now.circuits.iter().find(|circuit| circuit.id == *id);
                format!("key {}", circuit.map_or(&**id, |it| &*it.name))
            }
            Some(Owner::Partition(at)) => {
                format!("proof {}/{}", start(&at.job), at.partition)
            }
            Some(Owner::Registration(_)) => "registration".to_owned(),
            None => "unknown".to_owned(),
        };
        Row::new([
            shown(&owner),
            bytes(it.bytes),
            percent(it.bytes, budget.total),
        ])
    });
    table(
        "memory".to_owned(),
        ["owner", "bytes", "share"],
        [22, 11, 5],
        rows,
    )
}

fn circuit_table(circuits: &[Circuit]) -> Table<'static> {
    let rows = circuits.iter().map(|it| {
        let key = match (it.loading, it.pinned) {
            (true, _) => "loading".to_owned(),
            (false, true) => format!("{}, pinned", Tier::short_name(it.tier)),
            (false, false) => Tier::short_name(it.tier).to_owned(),
        };
        Row::new([
            shown(&it.name),
            it.curve.clone(),
            it.variables.to_string(),
            key,
            bytes(it.bytes),
            it.users.to_string(),
            it.loads.to_string(),
            it.evictions.to_string(),
            it.proofs.to_string(),
        ])
    });
    table(
        "circuits".to_owned(),
        [
            "circuit",
            "curve",
            "variables",
            "key",
            "holds",
            "users",
            "loads",
            "evicted",
            "proofs",
        ],
        [24, 10, 10, 12, 10, 6, 6, 8, 8],
        rows,
    )
}

fn job_table<'a>(title: String, jobs: impl Iterator<Item = &'a Job>) -> Table<'static> {
    let rows = jobs.map(|it| {
        Row::new([
            start(&it.id),
            shown(&format!("{}/{}", it.client, it.request_id)),
            Priority::short_name(it.priority).to_owned(),
            format!("{}/{}", it.proven, it.partitions),
            took(it),
            bytes(it.bytes),
            shown(&it.circuits.join(" ")),
            shown(&state(it)),
        ])
    });
    table(
        title,
        [
            "job", "request", "priority", "proven", "took", "holds", "circuits", "state",
        ],
        [8, 22, 8, 7, 9, 10, 18, 20],
        rows,
    )
}

/// From its beginning to its end, or to now.
fn took(job: &Job) -> String {
    match (job.started_ms, job.ended_ms) {
        (Some(from), Some(to)) => format!("{:.2} s", to.saturating_sub(from) as f64 / 1e3),
        _ => "-".to_owned(),
    }
}

fn table<const N: usize>(
    title: String,
    head: [&'static str; N],
    widths: [u16; N],
    rows: impl Iterator<Item = Row<'static>>,
) -> Table<'static> {
    Table::new(rows, widths.map(Constraint::Length))
        .header(Row::new(head).style(Style::new().fg(Color::DarkGray)))
        .block(Block::new().borders(Borders::TOP).title(title))
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// The beginning of an id.
fn start(id: &str) -> String {
    id.chars().take(8).collect()
}

/// A text of somebody else's making, on one line.
fn shown(text: &str) -> String {
    output::plain(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use proofmill_api::engine::proto;

    use super::*;

    fn status() -> EngineStatus {
        EngineStatus {
            uptime_us: 10_000_000,
            counts: Some(proto::JobCounts {
                done: 41,
                ..proto::JobCounts::default()
            }),
            stages: vec![proto::StageStatus {
                stage: Stage::Prove.into(),
                workers: 1,
                busy: 1,
                queued: 2,
                ended: 41,
                busy_us: 9_500_000,
            }],
            devices: vec![proto::DeviceStatus {
                name: "cpu".to_owned(),
                busy: true,
                busy_us: 5_000_000,
                ..proto::DeviceStatus::default()
            }],
            budget: Some(BudgetStatus {
                total: 8 << 30,
                used: 2 << 30,
                owners: vec![proto::OwnerUse {
                    owner: Some(Owner::Key("0b".repeat(32))),
                    bytes: 2 << 30,
                }],
                ..BudgetStatus::default()
            }),
            circuits: vec![Circuit {
                name: "multiplier".to_owned(),
                id: "0b".repeat(32),
                tier: Tier::Hot.into(),
                ..Circuit::default()
            }],
            jobs: vec![Job {
                id: "0a".repeat(16),
                client: "rollup".to_owned(),
                request_id: "7\u{1b}[2J".to_owned(),
                state: proto::JobState::Running.into(),
                ..Job::default()
            }],
            ..EngineStatus::default()
        }
    }

    #[test]
    fn a_frame_tells_of_everything() {
        let text = text(&status(), 110, 40);
        for expected in [
            "running for 10 s",
            "41 done",
            "memory 2.0 GiB of 8.0 GiB",
            "95 %",
            "50 %",
            "key multiplier",
            "hot",
            "0a0a0a0a",
            "rollup/7\\u{1b}",
        ] {
            assert!(text.contains(expected), "no {expected:?} in\n{text}");
        }
    }

    #[test]
    fn a_window_is_what_happened_in_it() {
        let before = status();
        let mut now = status();
        now.uptime_us += 1_000_000;
        now.devices[0].busy_us += 250_000;
        let area = Rect::new(0, 0, 110, 40);
        let mut buffer = Buffer::empty(area);
        draw(&now, Some(&before), area, &mut buffer);
        let text: String = buffer.content().iter().map(|it| it.symbol()).collect();
        assert!(text.contains("25 %"), "{text}");
    }

    #[test]
    fn a_tiny_terminal_is_no_reason_to_panic() {
        for (columns, rows) in [(1, 1), (0, 0), (20, 3)] {
            let area = Rect::new(0, 0, columns, rows);
            draw(&status(), None, area, &mut Buffer::empty(area));
        }
    }
}
