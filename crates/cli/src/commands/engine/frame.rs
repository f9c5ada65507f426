//! One frame of `proofmill engine top`.

use std::time::Duration;

use proofmill_api::engine::proto::owner_use::Owner;
use proofmill_api::engine::proto::{
    BudgetStatus, Circuit, EngineStatus, Job, JobState, Priority, Stage, Tier,
};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Gauge, Paragraph, Table, Widget};

use super::bytes;
use super::failure::{brief, state};
use super::inspect::activity;
use crate::frame::{Column, escaped, frame_text, percent, table};
use crate::progress::span;

/// Most owners of memory shown.
const OWNERS_MAX: usize = 6;
/// Most circuits shown, and most unfinished jobs.
const CIRCUITS_MAX: usize = 10;
const LIVE_JOBS_MAX: usize = 10;
/// Terminal width, in columns, at which every figure is shown.
const WIDE_COLUMNS_MIN: u16 = 108;
/// Terminal height, in rows, at which tables are separated by an empty row.
const TALL_ROWS_MIN: u16 = 34;

/// The frame as text, for pipes.
pub(super) fn text(status: &EngineStatus, columns: u16, rows: u16) -> String {
    frame_text(columns, rows, |area, buffer| {
        draw(status, None, None, area, buffer);
    })
}

/// Draws the engine's status `now`. Utilization is measured since `before`, or since the engine's start without it. The
/// last line shows the help for the `keys`.
pub(super) fn draw(
    now: &EngineStatus,
    before: Option<&EngineStatus>,
    keys: Option<&str>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let budget = now.budget.clone().unwrap_or_default();
    let since = before.map_or(0, |it| it.uptime_us);
    let window = now.uptime_us.saturating_sub(since).max(1);
    let failed = last_failure(now);
    let owners = budget.owners.len().min(OWNERS_MAX);
    let wanted = [
        owners.max(now.stages.len()).max(now.devices.len()),
        now.circuits.len().min(CIRCUITS_MAX),
        now.jobs.len().min(LIVE_JOBS_MAX),
        now.recent.len(),
    ];
    let lines = u16::from(keys.is_some()) + u16::from(failed.is_some());
    let (gap, shown) = heights(area.height.saturating_sub(2 + lines), wanted);
    let height = |rows: u16| Constraint::Length(rows + 2 + gap);
    let [top, memory, middle, circuits, queue, recent, why, help] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        height(shown[0]),
        height(shown[1]),
        height(shown[2]),
        Constraint::Fill(1),
        Constraint::Length(failed.is_some().into()),
        Constraint::Length(keys.is_some().into()),
    ])
    .areas(area);
    let wide = area.width >= WIDE_COLUMNS_MIN;
    header(now, wide).render(top, buffer);
    gauge(&budget).render(memory, buffer);
    let sides = [27, 25].map(Constraint::Length);
    let [stage_area, device_area, owner_area] = match wide {
        true => Layout::horizontal([32, 28, 40].map(Constraint::Percentage)),
        false => Layout::horizontal([sides[0], sides[1], Constraint::Fill(1)]),
    }
    .areas(middle);
    stages(now, before, window, wide).render(stage_area, buffer);
    devices(now, before, window, wide).render(device_area, buffer);
    memory_owners(now, &budget, wide).render(owner_area, buffer);
    let title = |name: &str, all: usize, rows: u16| match all.saturating_sub(rows.into()) {
        0 => name.to_owned(),
        more => format!("{name}, and {more} more"),
    };
    let name = title("circuits", now.circuits.len(), shown[1]);
    circuit_table(name, &now.circuits, wide).render(circuits, buffer);
    let name = title("queue", now.jobs.len(), shown[2]);
    job_table(name, &now.jobs, wide).render(queue, buffer);
    job_table("recent".to_owned(), &now.recent, wide).render(recent, buffer);
    let grey = Style::new().fg(Color::DarkGray);
    if let Some(text) = failed {
        let red = Style::new().fg(Color::Red);
        Paragraph::new(text).style(red).render(why, buffer);
    }
    Paragraph::new(keys.unwrap_or_default())
        .style(grey)
        .render(help, buffer);
}

/// The most recent failure of a job, in one line; `None` if no recent job failed.
fn last_failure(now: &EngineStatus) -> Option<String> {
    let mut recent = now.recent.iter();
    let job = recent.find(|job| job.state() == JobState::Failed)?;
    Some(escaped(&format!(
        "{} failed: {}",
        id_prefix(&job.id),
        brief(job)?
    )))
}

/// Divides `room` rows among four tables: returns the empty rows after each table, and the rows of each. The first
/// table gets the rows it wants; the others share the rest equally, up to what each wants.
fn heights(room: u16, wanted: [usize; 4]) -> (u16, [u16; 4]) {
    let gap = u16::from(room >= TALL_ROWS_MIN);
    let mut left = room.saturating_sub(4 * (2 + gap));
    let wanted = wanted.map(|rows| u16::try_from(rows.max(1)).unwrap_or(u16::MAX));
    let mut rows = [wanted[0].min(left), 0, 0, 0];
    left -= rows[0];
    loop {
        let before = left;
        // Jobs come before circuits because they change more often.
        for table in [2, 3, 1] {
            if left > 0 && rows[table] < wanted[table] {
                rows[table] += 1;
                left -= 1;
            }
        }
        if left == before {
            return (gap, rows);
        }
    }
}

fn header(now: &EngineStatus, wide: bool) -> Paragraph<'static> {
    let counts = now.counts.unwrap_or_default();
    let word = if now.draining { "draining" } else { "running" };
    let name = if wide { "proofmill engine, " } else { "" };
    let mut text = format!(
        "{name}{word} for {}   jobs: {} live, {} done, {} failed",
        span(Duration::from_micros(now.uptime_us)),
        now.jobs.len(),
        counts.done,
        counts.failed,
    );
    for (count, what) in [
        (counts.cancelled, "cancelled"),
        (counts.expired, "expired"),
        (counts.refused, "refused"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
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

fn stages(
    now: &EngineStatus,
    before: Option<&EngineStatus>,
    window: u64,
    wide: bool,
) -> Table<'static> {
    let rows = now.stages.iter().enumerate().map(|(index, it)| {
        let earlier = before.and_then(|it| it.stages.get(index));
        let capacity = window.saturating_mul(u64::from(it.workers.max(1)));
        let used = it
            .busy_us
            .saturating_sub(earlier.map_or(0, |it| it.busy_us));
        [
            Stage::short_name(it.stage).to_owned(),
            format!("{}/{}", it.busy, it.workers),
            it.queued.to_string(),
            it.ended.to_string(),
            percent(used, capacity),
        ]
    });
    let columns = [
        Column::fixed("stage", 8),
        Column::fixed("busy", 5),
        Column::fixed("wait", 4),
        Column::fixed("ended", 7).if_wide(),
        Column::fixed("used", 5),
    ];
    table("stages".to_owned(), columns, wide, rows)
}

fn devices(
    now: &EngineStatus,
    before: Option<&EngineStatus>,
    window: u64,
    wide: bool,
) -> Table<'static> {
    let rows = now.devices.iter().enumerate().map(|(index, it)| {
        let earlier = before.and_then(|it| it.devices.get(index));
        let used = it
            .busy_us
            .saturating_sub(earlier.map_or(0, |it| it.busy_us));
        [
            escaped(&it.name),
            activity(it).to_owned(),
            it.products.to_string(),
            it.failures.to_string(),
            percent(used, window),
        ]
    });
    let columns = [
        Column::fixed("device", 7),
        Column::fixed("now", 6),
        Column::fixed("made", 6).if_wide(),
        Column::fixed("bad", 3),
        Column::fixed("used", 5),
    ];
    table("devices".to_owned(), columns, wide, rows)
}

fn memory_owners(now: &EngineStatus, budget: &BudgetStatus, wide: bool) -> Table<'static> {
    let rows = budget.owners.iter().take(OWNERS_MAX).map(|it| {
        let owner = match &it.owner {
            Some(Owner::Key(id)) => {
                let circuit = now.circuits.iter().find(|circuit| circuit.id == *id);
                format!("key {}", circuit.map_or(&**id, |it| &*it.name))
            }
            Some(Owner::Partition(at)) => {
                format!("proof {}/{}", id_prefix(&at.job), at.partition)
            }
            Some(Owner::Registration(_)) => "registration".to_owned(),
            None => "unknown".to_owned(),
        };
        [
            escaped(&owner),
            bytes(it.bytes),
            percent(it.bytes, budget.total),
        ]
    });
    let columns = [
        Column::rest("owner"),
        Column::fixed("bytes", 10),
        Column::fixed("share", 5),
    ];
    table("memory".to_owned(), columns, wide, rows)
}

fn circuit_table(title: String, circuits: &[Circuit], wide: bool) -> Table<'static> {
    let rows = circuits.iter().map(|it| {
        let key = match (it.loading, it.pinned) {
            (true, _) => "loading".to_owned(),
            (false, true) => format!("{}, pinned", Tier::short_name(it.tier)),
            (false, false) => Tier::short_name(it.tier).to_owned(),
        };
        [
            escaped(&it.name),
            it.curve.clone(),
            it.variables.to_string(),
            key,
            bytes(it.bytes),
            it.users.to_string(),
            it.loads.to_string(),
            it.evictions.to_string(),
            it.proofs.to_string(),
        ]
    });
    let columns = [
        Column::rest("circuit"),
        Column::fixed("curve", 10).if_wide(),
        Column::fixed("variables", 10).if_wide(),
        Column::fixed("key", 12),
        Column::fixed("holds", 10),
        Column::fixed("users", 5),
        Column::fixed("loads", 6).if_wide(),
        Column::fixed("evicted", 7),
        Column::fixed("proofs", 8),
    ];
    table(title, columns, wide, rows)
}

fn job_table(title: String, jobs: &[Job], wide: bool) -> Table<'static> {
    let rows = jobs.iter().map(|it| {
        [
            id_prefix(&it.id),
            escaped(&format!("{}/{}", it.client, it.request_id)),
            Priority::short_name(it.priority).to_owned(),
            format!("{}/{}", it.proven, it.partitions),
            took(it),
            bytes(it.bytes),
            escaped(&it.circuits.join(" ")),
            escaped(&state(it)),
        ]
    });
    let columns = [
        Column::fixed("job", 8),
        Column::fixed("request", if wide { 22 } else { 14 }),
        Column::fixed("priority", 8).if_wide(),
        Column::fixed("proven", 6),
        Column::fixed("took", 8),
        Column::fixed("holds", 10).if_wide(),
        Column::fixed("circuits", if wide { 16 } else { 12 }),
        Column::rest("state"),
    ];
    table(title, columns, wide, rows)
}

/// Duration of an ended job; `-` for others.
fn took(job: &Job) -> String {
    match (job.started_ms, job.ended_ms) {
        (Some(from), Some(to)) => format!("{:.2} s", to.saturating_sub(from) as f64 / 1e3),
        _ => "-".to_owned(),
    }
}

/// The first eight characters of an id.
fn id_prefix(id: &str) -> String {
    id.chars().take(8).collect()
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
    fn a_frame_shows_everything() {
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

    /// The frame of a busy engine on a terminal of 80 columns and 24 rows.
    fn small() -> Vec<String> {
        let mut now = status();
        now.stages = vec![now.stages[0]; 5];
        now.circuits = vec![now.circuits[0].clone(); 12];
        now.jobs = vec![now.jobs[0].clone(); 30];
        let why = "partition 0 of circuit mul: node made no witness (exit status: 1): Error: Assert Failed.";
        let failed = Job {
            id: "0c".repeat(16),
            state: JobState::Failed.into(),
            failure: format!("{why}\nat a.js:1\nat b.js:2"),
            partitions: 1,
            circuits: vec!["mul".to_owned()],
            ..Job::default()
        };
        now.recent = vec![failed; 9];
        let area = Rect::new(0, 0, 80, 24);
        let mut buffer = Buffer::empty(area);
        draw(&now, None, Some("q: end"), area, &mut buffer);
        let rows = buffer.content().chunks(80);
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>())
            .collect()
    }

    #[test]
    fn a_small_terminal_has_room_for_everything_and_the_keys() {
        let rows = small();
        let whole = rows.join("\n");
        for expected in [
            "stages",
            "devices",
            "memory",
            "circuits, and 1",
            "queue, and 2",
            "recent",
            "95 %",
            "key multipl",
            "running",
        ] {
            assert!(whole.contains(expected), "no {expected:?} in\n{whole}");
        }
        for head in [
            "stage ", "device ", "owner", "circuit ", "evicted", "proofs", "took",
        ] {
            assert!(whole.contains(head), "no {head:?} in\n{whole}");
        }
        assert!(rows[23].starts_with("q: end"), "{whole}");
        // The failure of a job is shown in one line.
        assert!(
            rows[22].starts_with("0c0c0c0c failed: node made no witness"),
            "{whole}"
        );
        assert!(rows[22].contains("Error: Assert Failed."), "{whole}");
        assert!(!whole.contains("b.js"), "{whole}");
    }

    #[test]
    fn rows_are_divided_among_the_tables() {
        assert_eq!(heights(21, [5, 12, 30, 9]), (0, [5, 2, 3, 3]));
        assert_eq!(heights(21, [5, 1, 0, 9]), (0, [5, 1, 1, 6]));
        assert_eq!(heights(3, [5, 1, 1, 1]), (0, [0, 0, 0, 0]));
        assert_eq!(heights(42, [6, 10, 10, 50]).0, 1);
    }

    #[test]
    fn utilization_is_measured_since_the_earlier_status() {
        let before = status();
        let mut now = status();
        now.uptime_us += 1_000_000;
        now.devices[0].busy_us += 250_000;
        let area = Rect::new(0, 0, 110, 40);
        let mut buffer = Buffer::empty(area);
        draw(&now, Some(&before), None, area, &mut buffer);
        let text: String = buffer.content().iter().map(|it| it.symbol()).collect();
        assert!(text.contains("25 %"), "{text}");
    }

    #[test]
    fn tiny_terminals_do_not_panic() {
        for (columns, rows) in [(1, 1), (0, 0), (20, 3)] {
            let area = Rect::new(0, 0, columns, rows);
            draw(
                &status(),
                None,
                Some("q: end"),
                area,
                &mut Buffer::empty(area),
            );
        }
    }
}
