//! Jobs, tickets and bases: refusals, batches, many jobs in flight, cancelling.

use super::case::{Case, ensure};
use super::samples::{PointKind, ScalarKind, expected};
use crate::device::{BasesId, Device, DeviceJob, Outcome};
use crate::error::Error;
use crate::group::{DeviceField, DeviceGroup, ScalarField, Scalars};
use crate::ticket::Ticket;

/// Jobs in flight at once, more than a device takes.
const MANY: usize = 30;
/// Points of the products that are cancelled.
const CANCELLED_POINTS: usize = 2000;

/// Demands on a device's jobs, tickets and bases, in the group `G`.
pub fn jobs<G: DeviceGroup>() -> Vec<Case> {
    let case = |name: &str, run: fn(&dyn Device) -> Result<(), String>| {
        Case::new(
            format!("{}: {name}", G::GROUP),
            move |device: &(dyn Device + 'static)| run(device),
        )
    };
    vec![
        case(
            "scalars that do not fit the bases are refused, and the device goes on",
            refuses_what_does_not_fit::<G>,
        ),
        case(
            "evicted and unknown bases are refused, and the device goes on",
            refuses_unknown_bases::<G>,
        ),
        case(
            "a batch runs in its order and ends with the first error",
            runs_batches::<G>,
        ),
        case(
            "each of many jobs in flight, over three sets of bases, gets its own result",
            keeps_many_apart::<G>,
        ),
        case("cancelled jobs end, and the others are right", cancels::<G>),
    ]
}

/// Bases that are evicted at the end.
struct Loaded<'a> {
    device: &'a dyn Device,
    id: BasesId,
}

impl<'a> Loaded<'a> {
    fn new<G: DeviceGroup>(
        device: &'a dyn Device,
        points: &[G::Affine],
        memory_limit: usize,
    ) -> Result<Self, String> {
        let loaded = device.load_bases(G::points(points.to_vec()), memory_limit);
        let id = loaded.map_err(|error| format!("the bases are not loaded: {error}"))?;
        Ok(Self { device, id })
    }

    /// The generator, thrice.
    fn three<G: DeviceGroup>(device: &'a dyn Device) -> Result<Self, String> {
        Self::new::<G>(device, &[G::generator().into_affine(); 3], 0)
    }

    fn job<G: DeviceGroup>(&self, scalars: &[u64]) -> DeviceJob {
        let scalars = scalars.iter().map(|scalar| (*scalar).into()).collect();
        DeviceJob::Msm {
            bases: self.id,
            scalars: G::ScalarField::scalars(scalars),
        }
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        // A case that evicts them itself, or a device that failed, has none.
        drop(self.device.evict(self.id));
    }
}

fn run(device: &dyn Device, job: DeviceJob) -> Result<Outcome, Error> {
    device.submit(job)?.wait()
}

fn sum<G: DeviceGroup>(outcome: Result<Outcome, Error>) -> Result<G, String> {
    outcome
        .and_then(Outcome::into_sum)
        .map_err(|error| error.to_string())
}

/// Runs a product of small scalars with the generator, and checks it.
fn check_small<G: DeviceGroup>(device: &dyn Device, bases: &Loaded<'_>) -> Result<(), String> {
    let found = sum::<G>(run(device, bases.job::<G>(&[1, 2, 3])))?;
    let expected = G::generator() * G::ScalarField::from(6u64);
    ensure(found == expected, || {
        "the product after a refusal is wrong".into()
    })
}

fn expect_bad_job(outcome: Result<Outcome, Error>, job: &str) -> Result<(), String> {
    ensure(matches!(outcome, Err(Error::BadJob(_))), || {
        format!("{job}: expected a refusal (bad job), and got {outcome:?}")
    })
}

fn refuses_what_does_not_fit<G: DeviceGroup>(device: &dyn Device) -> Result<(), String> {
    let bases = Loaded::three::<G>(device)?;
    expect_bad_job(
        run(device, bases.job::<G>(&[1, 2])),
        "two scalars for three bases",
    )?;
    let foreign = DeviceJob::Msm {
        bases: bases.id,
        scalars: foreign_scalars(G::GROUP.scalar_field()),
    };
    expect_bad_job(run(device, foreign), "scalars of another field")?;
    check_small::<G>(device, &bases)
}

/// Three scalars of another field than `field`.
fn foreign_scalars(field: ScalarField) -> Scalars {
    match field {
        ScalarField::Bn254 => ark_bls12_381::Fr::scalars(vec![1.into(); 3]),
        _ => ark_bn254::Fr::scalars(vec![1.into(); 3]),
    }
}

fn refuses_unknown_bases<G: DeviceGroup>(device: &dyn Device) -> Result<(), String> {
    let gone = Loaded::three::<G>(device)?;
    let bases = Loaded::three::<G>(device)?;
    let evicted = device.evict(gone.id);
    ensure(evicted.is_ok(), || format!("evicting: {evicted:?}"))?;
    let again = device.evict(gone.id);
    ensure(again == Err(Error::UnknownBases(gone.id)), || {
        format!("evicting twice: expected unknown bases, and got {again:?}")
    })?;
    let outcome = run(device, gone.job::<G>(&[1; 3]));
    let is_refused = matches!(&outcome, Err(Error::UnknownBases(id)) if *id == gone.id);
    ensure(is_refused, || {
        format!("a product with evicted bases: expected unknown bases, and got {outcome:?}")
    })?;
    check_small::<G>(device, &bases)
}

fn runs_batches<G: DeviceGroup>(device: &dyn Device) -> Result<(), String> {
    let bases = Loaded::three::<G>(device)?;
    let job = |scalars: &[u64]| bases.job::<G>(scalars);
    let batch = vec![job(&[1, 2, 3]), DeviceJob::Batch(vec![]), job(&[0, 0, 4])];
    let outcomes = run(device, DeviceJob::Batch(batch)).and_then(Outcome::into_batch);
    let outcomes = outcomes.map_err(|error| format!("a batch: {error}"))?;
    let [first, empty, last]: [Outcome; 3] = outcomes
        .try_into()
        .map_err(|found: Vec<_>| format!("{} outcomes of a batch of 3", found.len()))?;
    ensure(empty.into_batch().is_ok_and(|it| it.is_empty()), || {
        "an empty batch has outcomes".into()
    })?;
    for (outcome, expected) in [(first, 6u64), (last, 4)] {
        let found = sum::<G>(Ok(outcome))?;
        ensure(
            found == G::generator() * G::ScalarField::from(expected),
            || "a product of a batch is wrong".into(),
        )?;
    }
    let batch = vec![job(&[1, 2, 3]), job(&[1]), job(&[1; 3])];
    expect_bad_job(
        run(device, DeviceJob::Batch(batch)),
        "a batch with a bad job",
    )?;
    check_small::<G>(device, &bases)
}

/// Tickets are taken in the other order.
fn keeps_many_apart<G: DeviceGroup>(device: &dyn Device) -> Result<(), String> {
    let mut sets = Vec::new();
    for (count, limit) in [(40, 0), (300, 1 << 20), (1000, usize::MAX)] {
        let points = PointKind::Random.make::<G>(count, count as u64);
        let loaded = Loaded::new::<G>(device, &points, limit)?;
        sets.push((points, loaded));
    }
    let mut jobs: Vec<(Ticket, G)> = Vec::new();
    for i in 0..MANY {
        let (points, bases) = &sets[i % sets.len()];
        let scalars = ScalarKind::Random.make::<G::ScalarField>(points.len(), i as u64);
        let expected = expected::<G>(points, &scalars);
        let job = DeviceJob::Msm {
            bases: bases.id,
            scalars: G::ScalarField::scalars(scalars),
        };
        let ticket = device.submit(job).map_err(|error| error.to_string())?;
        jobs.push((ticket, expected));
    }
    for (i, (ticket, expected)) in jobs.into_iter().enumerate().rev() {
        let found = sum::<G>(ticket.wait())?;
        ensure(found == expected, || {
            format!("the result of job {i} is wrong")
        })?;
    }
    Ok(())
}

fn cancels<G: DeviceGroup>(device: &dyn Device) -> Result<(), String> {
    let points = PointKind::Random.make::<G>(CANCELLED_POINTS, 3);
    let bases = Loaded::new::<G>(device, &points, 0)?;
    let scalars = ScalarKind::Random.make::<G::ScalarField>(CANCELLED_POINTS, 4);
    let expected = expected::<G>(&points, &scalars);
    let submit = || {
        device.submit(DeviceJob::Msm {
            bases: bases.id,
            scalars: G::ScalarField::scalars(scalars.clone()),
        })
    };
    let tickets: Result<Vec<Ticket>, Error> = (0..12).map(|_| submit()).collect();
    for (i, ticket) in tickets
        .map_err(|error| error.to_string())?
        .into_iter()
        .enumerate()
    {
        let may_be_cancelled = i % 3 == 1;
        match i % 3 {
            0 => {
                drop(ticket);
                continue;
            }
            1 => ticket.cancel(),
            _ => {}
        }
        match ticket.wait() {
            // A job that has begun may come to its end.
            Err(Error::Cancelled) if may_be_cancelled => {}
            outcome => {
                let found = sum::<G>(outcome)?;
                ensure(found == expected, || {
                    format!("the result of job {i} is wrong")
                })?;
            }
        }
    }
    match device.failure() {
        None => Ok(()),
        Some(error) => Err(format!("the device has failed: {error}")),
    }
}
