//! The time axis, from left to right, with long idle times left out.

use super::model::{Row, Timeline};

/// Width of an idle time that is left out, in pixels.
pub(super) const CUT_WIDTH: f64 = 24.0;
/// An idle time is left out if it is longer than the total busy time divided by this number.
const CUT_DIVISOR: u64 = 5;

/// The mapping of microseconds to pixels.
pub(super) struct Scale {
    from_us: u64,
    pieces: Vec<Piece>,
}

/// A section of the axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) from_us: u64,
    pub(super) to_us: u64,
    /// Pixels from the beginning of the axis.
    pub(super) left: f64,
    pub(super) right: f64,
    /// Whether the section is an idle time that is left out.
    pub(super) cut: bool,
}

// === impl Scale ===

impl Scale {
    /// The scale for a timeline with these rows, `width` pixels wide.
    pub(super) fn new(timeline: &Timeline, rows: &[Row], width: f64) -> Self {
        let (from_us, to_us) = (
            timeline.from_us,
            timeline.to_us.max(timeline.from_us.saturating_add(1)),
        );
        let busy = busy(timeline, rows);
        let worked: u64 = busy.iter().map(|(from, to)| to - from).sum();
        let is_long = |from: u64, to: u64| worked > 0 && to - from > worked / CUT_DIVISOR;
        let mut parts: Vec<(u64, u64, bool)> = Vec::new();
        let mut until = from_us;
        let end_of_axis = (to_us, to_us);
        for (from, to) in busy.into_iter().chain([end_of_axis]) {
            if from > until && is_long(until, from) {
                parts.push((until, from, true));
                until = from;
            }
            match parts.last_mut() {
                Some((_, end, false)) => *end = to,
                _ if to > until => parts.push((until, to, false)),
                _ => {}
            }
            until = until.max(to);
        }
        let cuts = parts.iter().filter(|(.., cut)| *cut).count() as f64;
        let kept = parts.iter().filter(|(.., cut)| !cut);
        let kept: u64 = kept.map(|(from, to, _)| to - from).sum();
        let per_us = (width - cuts * CUT_WIDTH).max(1.0) / kept.max(1) as f64;
        let mut left = 0.0;
        let pieces = parts.into_iter().map(|(from_us, to_us, cut)| {
            let pixels = if cut {
                CUT_WIDTH
            } else {
                (to_us - from_us) as f64 * per_us
            };
            let piece = Piece {
                from_us,
                to_us,
                left,
                right: left + pixels,
                cut,
            };
            left = piece.right;
            piece
        });
        Self {
            from_us,
            pieces: pieces.collect(),
        }
    }

    /// The position of a time, in pixels from the beginning of the axis.
    pub(super) fn x(&self, at_us: u64) -> f64 {
        let index = self.pieces.partition_point(|piece| piece.to_us < at_us);
        let Some(piece) = self.pieces.get(index).or(self.pieces.last()) else {
            return 0.0;
        };
        let length = piece.to_us.saturating_sub(piece.from_us).max(1) as f64;
        let part = at_us.saturating_sub(piece.from_us) as f64 / length;
        piece.left + (piece.right - piece.left) * part.min(1.0)
    }

    /// The sections of the axis, from left to right.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The total of the time that is shown, in microseconds.
    pub(super) fn kept_us(&self) -> u64 {
        let kept = self.pieces.iter().filter(|piece| !piece.cut);
        kept.map(|piece| piece.to_us - piece.from_us).sum()
    }

    /// The time at the beginning of the axis.
    pub(super) fn zero_us(&self) -> u64 {
        self.from_us
    }
}

/// Disjoint intervals in which work was done or waited for, in order.
fn busy(timeline: &Timeline, rows: &[Row]) -> Vec<(u64, u64)> {
    let loads = timeline.loads.iter().map(|it| (it.began_us, it.ended_us));
    let work = timeline
        .workers
        .iter()
        .flat_map(|it| it.busy.iter().copied());
    let waits = rows.iter().filter_map(|row| {
        let since = row.accepted_us.or(row.admitted_us)?;
        Some((since, row.bars.first()?.began_us))
    });
    let clip = |(from, to): (u64, u64)| {
        let within = |at: u64| at.clamp(timeline.from_us, timeline.to_us.max(timeline.from_us));
        (within(from), within(to.max(from)))
    };
    let mut all: Vec<(u64, u64)> = loads.chain(work).chain(waits).map(clip).collect();
    all.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => merged.push((from, to)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::super::model::Worker;
    use super::*;
    use crate::engine::proto::Stage;

    /// A timeline of one worker that was busy at these times.
    fn timeline(from_us: u64, to_us: u64, busy: &[(u64, u64)]) -> Timeline {
        Timeline {
            from_us,
            to_us,
            workers: vec![Worker {
                stage: Stage::Prove,
                name: "cpu".to_owned(),
                busy: busy.to_vec(),
            }],
            ..Timeline::default()
        }
    }

    #[test]
    fn the_scale_is_linear_if_nothing_is_left_out() {
        let scale = Scale::new(
            &timeline(1000, 2000, &[(1000, 1900), (1950, 2000)]),
            &[],
            500.0,
        );
        assert_eq!(scale.pieces().len(), 1);
        for (at, x) in [
            (1000, 0.0),
            (1500, 250.0),
            (2000, 500.0),
            (9000, 500.0),
            (0, 0.0),
        ] {
            assert!((scale.x(at) - x).abs() < 1e-9, "{at}: {}", scale.x(at));
        }
    }

    #[test]
    fn a_long_gap_takes_a_few_pixels() {
        let hour = 3_600_000_000;
        let busy = [(100, 200), (hour, hour + 100)];
        let scale = Scale::new(&timeline(0, 2 * hour, &busy), &[], 1000.0);
        let cuts: Vec<_> = scale.pieces().iter().filter(|it| it.cut).collect();
        assert_eq!(cuts.len(), 3, "before, between and after: {cuts:?}");
        assert_eq!(scale.kept_us(), 200);
        let per_us = (1000.0 - 3.0 * CUT_WIDTH) / 200.0;
        assert!((scale.x(200) - scale.x(100) - 100.0 * per_us).abs() < 1e-6);
        assert!((scale.x(hour) - scale.x(200) - CUT_WIDTH).abs() < 1e-6);
        assert!((scale.x(2 * hour) - 1000.0).abs() < 1e-6);
        // A later time is never further left.
        let times = [0, 50, 100, 150, 200, hour / 2, hour, hour + 50, 2 * hour];
        assert!(times.map(|at| scale.x(at)).is_sorted());
    }

    #[test]
    fn an_empty_timeline_has_an_axis() {
        let scale = Scale::new(&Timeline::default(), &[], 100.0);
        assert!(scale.x(7).is_finite());
        assert!(scale.pieces().iter().all(|piece| !piece.cut));
    }
}
