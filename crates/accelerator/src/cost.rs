//! Predicted duration of work on a device: a straight line fitted to measurements of small jobs of the same kind.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use proofmill_kernels::{Domain, fixed_base};

use crate::device::{BasesId, Capabilities, TransformKind};
use crate::error::Error;
use crate::group::{DeviceField, DeviceGroup, Group, Points, ScalarField, Scalars, Transform};
use crate::queue::Backend;
use crate::ticket::ticket;

/// Work whose duration [`Device::cost`](crate::Device::cost) predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A product with resident bases. Precomputed multiples of the bases, which would make it faster, are not counted.
    Msm {
        /// The bases' group.
        group: Group,
        /// The number of bases.
        points: usize,
    },
    /// A transform, its values copied to the device and back.
    Transform {
        /// The values' field.
        field: ScalarField,
        /// The kind of transform; a [`TransformKind::CosetExtend`] counts as two.
        kind: TransformKind,
        /// The base-two logarithm of the number of values.
        size_log: u32,
    },
}

/// A kind of work: jobs of one kind differ in size alone, so one [`LinearCost`] predicts them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkKind {
    /// Products; the unit is an addition of points.
    Msm(Group),
    /// Transforms; the unit is a value on one level of one transform.
    Transform(ScalarField),
}

/// Predicted duration of one [`WorkKind`] of work: a fixed part, and a part for each unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinearCost {
    pub(crate) fixed_seconds: f64,
    pub(crate) unit_seconds: f64,
}

/// The costs measured so far on one device, by kind of work.
#[derive(Debug, Default)]
pub(crate) struct Costs(Mutex<HashMap<WorkKind, LinearCost>>);

/// The base-two logarithms of the sizes to measure: `FIRST_LOG` to `LAST_LOG` in steps of `STEP_LOG`. From the
/// second size on, the measurement ends with the first one that takes `RUN_TIME_MIN`, and so stands out from noise.
const FIRST_LOG: u32 = 8;
const STEP_LOG: usize = 2;
const LAST_LOG: u32 = 18;
const RUN_TIME_MIN: Duration = Duration::from_millis(20);
/// Timed runs of a size, after one that warms up. The shortest counts.
const RUNS_PER_SIZE: usize = 3;
/// Number of distinct points in a measured product. Making more would take longer than the product.
const SAMPLE_POINTS: usize = 1 << 8;

// === impl Work ===

impl Work {
    pub(crate) const fn kind(self) -> WorkKind {
        match self {
            Self::Msm { group, .. } => WorkKind::Msm(group),
            Self::Transform { field, .. } => WorkKind::Transform(field),
        }
    }

    /// The amount of work, in the unit of its [`WorkKind`].
    fn units(self) -> f64 {
        match self {
            Self::Msm { group, points } => additions(points, group.scalar_field().bits()),
            Self::Transform { kind, size_log, .. } => {
                let transforms = match kind {
                    TransformKind::CosetExtend => 2.0,
                    _ => 1.0,
                };
                // One level at least: a single value is copied as well.
                transforms * f64::from(size_log.max(1)) * f64::from(size_log).exp2()
            }
        }
    }

    /// Checks that a device of these capabilities can do this work.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if not.
    pub fn check(self, caps: &Capabilities) -> Result<(), Error> {
        let (able, what) = match self {
            Self::Msm { group, points } => (
                caps.groups.contains(&group) && points <= caps.max_bases,
                format!("a product of {points} points of {group}"),
            ),
            Self::Transform {
                field, size_log, ..
            } => (
                caps.fields.contains(&field) && size_log <= caps.max_transform_log,
                format!("a transform of 2^{size_log} scalars of {field}"),
            ),
        };
        if able {
            return Ok(());
        }
        Err(Error::BadJob(format!("{what}: {} cannot do it", caps.name)))
    }
}

/// Additions of a product by Pippenger's method, with windows of the best width.
fn additions(points: usize, scalar_bits: u32) -> f64 {
    let points = points as f64;
    (2..=22)
        .map(|width| {
            let windows = f64::from(scalar_bits.div_ceil(width));
            // Digits are signed, so there is a bucket for two of them, which takes two additions.
            windows * (points + f64::from(width).exp2())
        })
        .fold(f64::INFINITY, f64::min)
}

// === impl WorkKind ===

impl WorkKind {
    const fn of_size(self, size_log: u32) -> Work {
        match self {
            Self::Msm(group) => Work::Msm {
                group,
                points: 1 << size_log,
            },
            Self::Transform(field) => Work::Transform {
                field,
                kind: TransformKind::Forward,
                size_log,
            },
        }
    }

    /// Measures this kind of work on a back end. It runs on the back end's thread.
    pub(crate) fn measure<B: Backend>(self, backend: &mut B) -> Result<LinearCost, Error> {
        let run = |size_log| match self {
            Self::Msm(group) => time_product(backend, group, 1_usize << size_log),
            Self::Transform(field) => time_transform(backend, field, size_log),
        };
        self.fit(run)
    }

    /// Fits a line through the first and the last size measured by `time`.
    fn fit(
        self,
        mut time: impl FnMut(u32) -> Result<Duration, Error>,
    ) -> Result<LinearCost, Error> {
        let mut measured = Vec::new();
        for size_log in (FIRST_LOG..=LAST_LOG).step_by(STEP_LOG) {
            let took = time(size_log)?;
            measured.push((self.of_size(size_log).units(), took.as_secs_f64()));
            if measured.len() > 1 && took >= RUN_TIME_MIN {
                break;
            }
        }
        let ((less, quick), (more, slow)) = (measured[0], measured[measured.len() - 1]);
        let unit_seconds = (slow - quick) / (more - less);
        let fixed_seconds = quick - unit_seconds * less;
        if unit_seconds > 0.0 && fixed_seconds >= 0.0 {
            return Ok(LinearCost {
                fixed_seconds,
                unit_seconds,
            });
        }
        // The fixed part is negligible, or the times are too noisy to separate it.
        Ok(LinearCost {
            fixed_seconds: 0.0,
            unit_seconds: slow / more,
        })
    }
}

fn time_product(
    backend: &mut impl Backend,
    group: Group,
    points: usize,
) -> Result<Duration, Error> {
    let (points, scalars) = group.sample(points);
    let id = BasesId::fresh();
    backend.load(id, &points, 0)?;
    // It is never cancelled: the ticket lives as long as the runs.
    let (_ticket, answer) = ticket("");
    let cancellation = answer.cancellation();
    let best = best(|| backend.msm(id, &scalars, &cancellation).map(drop));
    backend.evict(id)?;
    best
}

fn time_transform(
    backend: &mut impl Backend,
    field: ScalarField,
    size_log: u32,
) -> Result<Duration, Error> {
    let transform = field.sample(size_log)?;
    let (_ticket, answer) = ticket("");
    let cancellation = answer.cancellation();
    best(|| {
        let transform = transform.clone();
        backend.transform(transform, &cancellation).map(drop)
    })
}

/// The shortest of some runs, after one that is not counted.
fn best(mut run: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
    run()?;
    let mut best = Duration::MAX;
    for _ in 0..RUNS_PER_SIZE {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

/// Scalars that look random: the powers of a hash.
fn sample_scalars<F: DeviceField>(count: usize) -> Vec<F> {
    let scalar = F::from_le_bytes_mod_order(blake3::hash(b"a scalar").as_bytes());
    std::iter::successors(Some(scalar), |last| Some(*last * scalar))
        .take(count)
        .collect()
}

/// Points and scalars of a product of `count` points; at most [`SAMPLE_POINTS`] of the points are distinct.
pub(crate) fn sample_product<G: DeviceGroup>(count: usize) -> (Points, Scalars) {
    let scalars = sample_scalars::<G::ScalarField>(count);
    let few = fixed_base(G::generator(), &scalars[..count.min(SAMPLE_POINTS)]);
    let points: Vec<G::Affine> = few.into_iter().cycle().take(count).collect();
    (G::points(points), G::ScalarField::scalars(scalars))
}

/// A forward transform of 2^`size_log` values.
pub(crate) fn sample_transform<F: DeviceField>(size_log: u32) -> Result<Transform, Error> {
    let domain = Domain::new(1 << size_log).map_err(|error| Error::BadJob(error.to_string()))?;
    let values = sample_scalars(1 << size_log);
    Ok(F::transform(domain, TransformKind::Forward, values))
}

// === impl LinearCost ===

impl LinearCost {
    /// The predicted duration of `work`, which must be of this line's kind; `Duration::MAX` if it overflows.
    pub(crate) fn cost(self, work: Work) -> Duration {
        let seconds = self.fixed_seconds + self.unit_seconds * work.units();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

// === impl Costs ===

impl Costs {
    /// The line of `kind`, or `None` if it has not been measured.
    pub(crate) fn get(&self, kind: WorkKind) -> Option<LinearCost> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&kind).copied()
    }

    /// The line of `kind`; the first call measures it. An error is not kept, so the next call measures again.
    pub(crate) fn get_or_measure(
        &self,
        kind: WorkKind,
        measure: impl FnOnce() -> Result<LinearCost, Error>,
    ) -> Result<LinearCost, Error> {
        if let Some(line) = self.get(kind) {
            return Ok(line);
        }
        let line = measure()?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(kind, line);
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCTS: WorkKind = WorkKind::Msm(Group::Bn254G1);
    const TRANSFORMS: WorkKind = WorkKind::Transform(ScalarField::Bn254);

    fn millis(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds / 1e3)
    }

    #[test]
    fn more_is_more_work() {
        for kind in [PRODUCTS, TRANSFORMS] {
            for log in 0..28 {
                let (less, more) = (kind.of_size(log).units(), kind.of_size(log + 1).units());
                assert!(less < more, "{kind:?} of 2^{log}: {less} and {more}");
            }
        }
        let of_kind = |kind| {
            Work::Transform {
                field: ScalarField::Bn254,
                kind,
                size_log: 10,
            }
            .units()
        };
        assert!(of_kind(TransformKind::CosetExtend) > of_kind(TransformKind::CosetForward));
    }

    #[test]
    fn the_cost_of_a_linear_device_is_predicted() {
        for kind in [PRODUCTS, TRANSFORMS] {
            for (fixed, unit) in [(0.0, 1e-3), (3.0, 1e-4), (5.0, 1e-7)] {
                let time = |log: u32| millis(fixed + unit * kind.of_size(log).units());
                let line = kind.fit(|log| Ok(time(log))).unwrap();
                for log in [0, 8, 20, 26] {
                    let (told, took) = (line.cost(kind.of_size(log)), time(log));
                    let ratio = told.as_secs_f64() / took.as_secs_f64();
                    assert!((0.99..1.01).contains(&ratio), "2^{log}: {told:?}, {took:?}");
                }
            }
        }
    }

    #[test]
    fn two_sizes_are_measured_and_no_more_than_it_takes() {
        let sizes = |took: fn(u32) -> f64| {
            let mut sizes = Vec::new();
            let fitted = PRODUCTS.fit(|log| {
                sizes.push(log);
                Ok(millis(took(log)))
            });
            fitted.unwrap();
            sizes
        };
        assert_eq!(sizes(|_| 1e4), [8, 10]);
        assert_eq!(sizes(|log| f64::from(log) + 8.0), [8, 10, 12]);
        assert_eq!(sizes(|_| 0.1), [8, 10, 12, 14, 16, 18]);
    }

    #[test]
    fn noisy_costs_stay_positive_and_increasing() {
        for took in [
            [5.0, 4.0, 3.0, 2.0, 2.0, 1.0],
            [0.0, 1.0, 2.0, 3.0, 4.0, 80.0],
        ] {
            let mut took = took.into_iter();
            let line = TRANSFORMS
                .fit(|_| Ok(millis(took.next().unwrap())))
                .unwrap();
            for log in 8..28 {
                let cost = |log| line.cost(TRANSFORMS.of_size(log));
                assert!(cost(log) < cost(log + 1), "{line:?} at 2^{log}");
            }
        }
    }

    #[test]
    fn an_error_is_passed_on_and_measured_again() {
        let costs = Costs::default();
        let line = LinearCost {
            fixed_seconds: 1.0,
            unit_seconds: 1.0,
        };
        let failed = costs.get_or_measure(PRODUCTS, || Err(Error::Cancelled));
        assert_eq!(failed, Err(Error::Cancelled));
        assert_eq!(costs.get_or_measure(PRODUCTS, || Ok(line)), Ok(line));
        let again = costs.get_or_measure(PRODUCTS, || panic!("it was measured"));
        assert_eq!(again, Ok(line));
        assert_eq!(costs.get(TRANSFORMS), None);
    }
}
