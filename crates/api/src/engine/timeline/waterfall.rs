//! A waterfall drawing: a row for each partition, with time from left to right, in seconds from the first
//! event. Long idle times are left out, and marked.

use std::fmt::Write;

use proofmill_orchestrator::text::beginning_of;

use super::model::{Row, Timeline};
use super::scale::{CUT_WIDTH, Scale};
use crate::engine::proto::{Stage, StageEnd, Tier};

/// Widths of the names at the left, of the time axis, and of the figures at the right, in pixels.
const NAMES_WIDTH: f64 = 190.0;
const AXIS_WIDTH: f64 = 900.0;
const FIGURES_WIDTH: f64 = 190.0;
/// Heights of a row and of a bar in it, in pixels.
const ROW_HEIGHT: f64 = 16.0;
const BAR_HEIGHT: f64 = 11.0;
/// Height above the first row, in pixels.
const HEAD_HEIGHT: f64 = 66.0;
/// Least distance between two labels of the axis, in pixels.
const LABEL_DISTANCE_MIN: f64 = 48.0;

/// Most bytes of a reason that is shown in place of a drawing.
const REASON_BYTES_MAX: usize = 200;

/// Colours of waiting and of loading.
const WAIT_COLOUR: &str = "#d8dce2";
const LOAD_COLOUR: &str = "#b08a3e";

struct Drawing<'a> {
    timeline: &'a Timeline,
    scale: &'a Scale,
    out: String,
    y: f64,
}

/// The SVG of a timeline, with the last `rows` partitions.
pub fn waterfall(timeline: &Timeline, rows: usize) -> String {
    let left_out = timeline.rows.len().saturating_sub(rows);
    let shown = &timeline.rows[left_out..];
    let scale = Scale::new(timeline, shown, AXIS_WIDTH);
    let mut drawing = Drawing {
        timeline,
        scale: &scale,
        out: String::new(),
        y: HEAD_HEIGHT,
    };
    drawing.loads();
    shown.iter().for_each(|row| drawing.partition(row));
    drawing.y += ROW_HEIGHT / 2.0;
    drawing.workers();
    let height = drawing.y + 2.0 * ROW_HEIGHT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width = NAMES_WIDTH + AXIS_WIDTH + FIGURES_WIDTH,
    );
    title(&mut out, timeline);
    legend(&mut out, left_out, timeline.missed);
    grid(&mut out, &scale, drawing.y);
    out.push_str(&drawing.out);
    out.push_str("</svg>\n");
    out
}

fn colour(stage: Stage) -> &'static str {
    match stage {
        Stage::Unspecified => "#888888",
        Stage::Witness => "#4f81bd",
        Stage::Evaluate => "#3f9c78",
        Stage::Prove => "#c2504d",
        Stage::Finish => "#8064a2",
        Stage::Verify => "#5c6773",
    }
}

/// The title.
fn title(out: &mut String, timeline: &Timeline) {
    let partitions = match timeline.rows.len() {
        1 => "1 partition".to_owned(),
        count => format!("{count} partitions"),
    };
    let text = format!(
        "Proving engine: {partitions} over {}",
        time(timeline.length_us())
    );
    let _ = writeln!(
        out,
        "<title>{text}</title>\
         <text x=\"4\" y=\"16\" font-size=\"13\" font-weight=\"bold\">{text}</text>\
         <text x=\"4\" y=\"{}\" fill=\"#444444\">seconds</text>",
        HEAD_HEIGHT - 10.0
    );
}

/// The legend.
fn legend(out: &mut String, left_out: usize, missed: u64) {
    let stages = [
        Stage::Witness,
        Stage::Evaluate,
        Stage::Prove,
        Stage::Finish,
        Stage::Verify,
    ];
    let entries = stages
        .map(|stage| (colour(stage), Stage::short_name(stage.into())))
        .into_iter()
        .chain([(WAIT_COLOUR, "waiting"), (LOAD_COLOUR, "loading a key")]);
    let mut x = NAMES_WIDTH;
    for (colour, name) in entries {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"26\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"35\">{name}</text>",
            x + 14.0
        );
        x += 34.0 + 6.5 * name.len() as f64;
    }
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("{left_out} earlier partitions are not shown"));
    }
    if missed > 0 {
        notes.push(format!("{missed} events are missing"));
    }
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"35\" fill=\"#888888\">{}</text>",
        notes.join("; ")
    );
}

/// Lines at round times, and marks at times that are left out.
fn grid(out: &mut String, scale: &Scale, bottom: f64) {
    let step = round_step(scale.kept_us().max(1));
    let mut labelled = f64::NEG_INFINITY;
    for piece in scale.pieces() {
        if piece.cut {
            idle_mark(
                out,
                NAMES_WIDTH + piece.left,
                piece.to_us - piece.from_us,
                bottom,
            );
            continue;
        }
        let (from, to) = (
            piece.from_us - scale.zero_us(),
            piece.to_us - scale.zero_us(),
        );
        let mut next = from.checked_next_multiple_of(step);
        while let Some(at) = next.filter(|at| *at <= to) {
            next = at.checked_add(step);
            let x = NAMES_WIDTH + scale.x(scale.zero_us() + at);
            let _ = write!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#eeeeee\"/>",
                HEAD_HEIGHT - 6.0,
            );
            if x - labelled >= LABEL_DISTANCE_MIN {
                labelled = x;
                let _ = write!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{}\" fill=\"#444444\">{}</text>",
                    HEAD_HEIGHT - 10.0,
                    seconds(at, step)
                );
            }
            out.push('\n');
        }
    }
}

/// The mark of a time that is left out.
fn idle_mark(out: &mut String, x: f64, length_us: u64, bottom: f64) {
    let (top, middle) = (HEAD_HEIGHT - 6.0, x + CUT_WIDTH / 2.0 + 3.0);
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{CUT_WIDTH}\" height=\"{:.1}\" fill=\"#f4f4f4\"/>\
         <line x1=\"{:.1}\" y1=\"{top}\" x2=\"{:.1}\" y2=\"{bottom}\" stroke=\"#aaaaaa\" \
         stroke-dasharray=\"3 3\"/>\
         <text transform=\"translate({middle:.1} {bottom}) rotate(-90)\" fill=\"#666666\">idle {}</text>",
        bottom - top,
        x + CUT_WIDTH / 2.0,
        x + CUT_WIDTH / 2.0,
        time(length_us)
    );
}

/// A time on an axis with lines at multiples of `step`: seconds, with as many decimal places as needed.
fn seconds(us: u64, step: u64) -> String {
    let places = (0..6).find(|places| step.is_multiple_of(10u64.pow(6 - places)));
    let places = places.unwrap_or(6) as usize;
    format!("{:.places$}", us as f64 / 1e6)
}

/// The smallest step of 1, 2 or 5 times a power of ten of which at most ten fit into `length`.
fn round_step(length: u64) -> u64 {
    let mut power = 1;
    loop {
        for digit in [1, 2, 5] {
            let step: u64 = digit * power;
            if length / step <= 10 {
                return step;
            }
        }
        power *= 10;
    }
}

/// A time in a suitable unit, to a tenth of a millisecond or a hundredth of a second.
fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", (us as f64 / 1e2).round() / 10.0),
        _ => format!("{} s", (us as f64 / 1e4).round() / 100.0),
    }
}

/// A picture with the reason why there is none.
pub(crate) fn without_picture(why: &str) -> String {
    let (width, height) = (NAMES_WIDTH + AXIS_WIDTH + FIGURES_WIDTH, BAR_HEIGHT + 8.0);
    let why = escaped(beginning_of(why, REASON_BYTES_MAX));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/><text x=\"4\" y=\"{BAR_HEIGHT}\">{why}</text></svg>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

// === impl Drawing ===

impl Drawing<'_> {
    fn x(&self, at: u64) -> f64 {
        NAMES_WIDTH + self.scale.x(at)
    }

    fn name(&mut self, name: &str) {
        let y = self.y + BAR_HEIGHT - 2.0;
        let _ = writeln!(self.out, "<text x=\"4\" y=\"{y}\">{}</text>", escaped(name));
    }

    fn figures(&mut self, text: &str) {
        let (x, y) = (NAMES_WIDTH + AXIS_WIDTH + 6.0, self.y + BAR_HEIGHT - 2.0);
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\" fill=\"#444444\">{text}</text>"
        );
    }

    /// A bar in this row. `outline` marks a stage that did not succeed.
    fn bar(&mut self, (from, to): (u64, u64), colour: &str, outline: bool, title: &str) {
        let (x, y) = (self.x(from), self.y);
        let width = (self.x(to) - x).max(0.5);
        let stroke = if outline {
            " stroke=\"#ff0000\" stroke-width=\"1.5\""
        } else {
            ""
        };
        let _ = writeln!(
            self.out,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" \
             fill=\"{colour}\"{stroke}><title>{} {}</title></rect>",
            escaped(title),
            time(to.saturating_sub(from)),
        );
    }

    fn loads(&mut self) {
        if self.timeline.loads.is_empty() {
            return;
        }
        self.name("keys");
        for load in &self.timeline.loads {
            let tier = Tier::short_name(load.tier.into());
            let title = format!("{} to {tier}", load.circuit);
            self.bar((load.began_us, load.ended_us), LOAD_COLOUR, false, &title);
        }
        self.y += ROW_HEIGHT;
    }

    fn partition(&mut self, row: &Row) {
        let job = row.job.get(..8).unwrap_or(&row.job);
        let circuit: String = row.circuit.chars().take(16).collect();
        self.name(&format!("{job}/{} {circuit}", row.partition));
        let mut until = row.accepted_us.or(row.admitted_us);
        for bar in &row.bars {
            if let Some(since) = until.filter(|since| *since < bar.began_us) {
                self.bar((since, bar.began_us), WAIT_COLOUR, false, "waiting");
            }
            until = Some(bar.ended_us);
            let title = format!("{} on {}", Stage::short_name(bar.stage.into()), bar.worker);
            let bad = matches!(bar.end, StageEnd::Failed | StageEnd::Dropped);
            self.bar((bar.began_us, bar.ended_us), colour(bar.stage), bad, &title);
        }
        let ends = (row.bars.first(), row.bars.last());
        if let (Some(first), Some(last)) = ends {
            self.figures(&time(last.ended_us.saturating_sub(first.began_us)));
        }
        self.y += ROW_HEIGHT;
    }

    fn workers(&mut self) {
        for worker in &self.timeline.workers {
            let stage = Stage::short_name(worker.stage.into());
            if worker.name == stage {
                self.name(stage);
            } else {
                self.name(&format!("{stage}: {}", worker.name));
            }
            for busy in &worker.busy {
                self.bar(*busy, colour(worker.stage), false, stage);
            }
            let (used, gap) = worker.use_and_longest_gap();
            let used = (used * 100.0).round();
            self.figures(&format!("{used} % busy, gaps ≤ {}", time(gap)));
            self.y += ROW_HEIGHT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::events;
    use super::*;
    use crate::engine::proto;
    use crate::engine::proto::event::Kind;

    #[test]
    fn partitions_gaps_and_workers_are_drawn() {
        let svg = waterfall(&Timeline::of(&events()), 40);
        for expected in [
            "0a0a0a0a/0 multiplier",
            "0a0a0a0a/1 multiplier",
            "<title>waiting 10 µs</title>",
            "prove: cpu",
            "95 % busy, gaps ≤ 10 µs",
            "<title>multiplier to hot 40 µs</title>",
        ] {
            assert!(svg.contains(expected), "no {expected:?} in {svg}");
        }
        let short = waterfall(&Timeline::of(&events()), 1);
        assert!(
            short.contains("1 earlier partitions are not shown"),
            "{short}"
        );
        assert!(!short.contains("0a0a0a0a/0"), "{short}");
    }

    #[test]
    fn times_at_the_ends_of_their_range_are_drawn() {
        let event = |at_us, missed| proto::Event {
            at_us,
            kind: Some(Kind::Missed(proto::MissedEvent { events: missed })),
        };
        let timeline = Timeline::of(&[event(0, u64::MAX), event(u64::MAX, 1)]);
        let svg = waterfall(&timeline, 40);
        assert!(svg.ends_with("</svg>\n"), "{svg}");
        assert!(svg.matches("<line").count() < 40, "{svg}");
        let svg = waterfall(&Timeline::of(&[event(u64::MAX, 0)]), 40);
        assert!(svg.ends_with("</svg>\n"), "{svg}");
    }

    #[test]
    fn there_is_a_title_and_an_axis_in_seconds_from_zero() {
        let svg = waterfall(&Timeline::of(&events()), 40);
        for expected in [
            "<title>Proving engine: 2 partitions over 300 µs</title>",
            ">seconds</text>",
            ">0.00000</text>",
            ">0.00030</text>",
        ] {
            assert!(svg.contains(expected), "no {expected:?} in {svg}");
        }
        assert!(!svg.contains(">idle "), "{svg}");
    }

    #[test]
    fn an_idle_hour_between_two_proofs_is_left_out_and_marked() {
        use crate::engine::proto::event::Kind;
        let hour = 3_600_000_000;
        // Without the partition that is still being proved, the engine is idle in between.
        let events = || {
            events().into_iter().filter(|event| match &event.kind {
                Some(Kind::Began(began)) => began.span.as_ref().is_some_and(|it| it.partition == 0),
                _ => true,
            })
        };
        let mut twice: Vec<_> = events().collect();
        twice.extend(events().map(|event| {
            let kind = event.kind.map(|kind| match kind {
                Kind::Ended(mut ended) => {
                    ended.began_us += hour;
                    Kind::Ended(ended)
                }
                Kind::Key(mut key) => {
                    key.began_us = key.began_us.map(|at| at + hour);
                    Kind::Key(key)
                }
                kind => kind,
            });
            crate::engine::proto::Event {
                at_us: event.at_us + hour,
                kind,
            }
        }));
        let svg = waterfall(&Timeline::of(&twice), 40);
        assert!(svg.contains(">idle 3600 s</text>"), "{svg}");
        // Otherwise the work of a third of a millisecond would be narrower than a pixel.
        let widths = svg
            .split("width=\"")
            .skip(1)
            .filter_map(|it| it.split('"').next()?.parse().ok());
        let wide: Vec<f64> = widths
            .filter(|width: &f64| (100.0..AXIS_WIDTH).contains(width))
            .collect();
        assert!(wide.len() >= 4, "{wide:?} in {svg}");
    }

    #[test]
    fn labels_have_as_many_places_as_they_need() {
        let shown = [(0, 2_000_000), (1_500_000, 500_000), (20, 10), (3, 1)];
        let shown = shown.map(|(at, step)| seconds(at, step));
        assert_eq!(shown, ["0", "1.5", "0.00002", "0.000003"]);
    }

    #[test]
    fn an_empty_timeline_can_be_drawn() {
        assert!(waterfall(&Timeline::of(&[]), 40).ends_with("</svg>\n"));
    }

    #[test]
    fn times_are_short() {
        let shown = [999, 1_040, 482_790, 2_000_000, 1_239_999].map(time);
        assert_eq!(shown, ["999 µs", "1 ms", "482.8 ms", "2 s", "1.24 s"]);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(
            [1, 10, 11, 999, 12_345].map(round_step),
            [1, 1, 2, 100, 2_000]
        );
    }
}
