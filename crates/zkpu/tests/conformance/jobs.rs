//! The demands of the accelerator's suite on jobs, tickets, bases and costs, for the one group of a ZKPU.

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;
use ark_ff::Zero;
use proofmill_accelerator::{
    Device, DeviceField, DeviceGroup, DeviceJob, Error, Group, Outcome, ScalarField, Ticket,
    TransformKind, Work,
};

use crate::common::{points, product, scalars};
use crate::devices::over_tcp;

fn run(device: &dyn Device, job: DeviceJob) -> Result<Outcome, Error> {
    device.submit(job).unwrap().wait()
}

fn transform() -> DeviceJob {
    let domain = proofmill_kernels::Domain::<Fr>::new(4).unwrap();
    DeviceJob::Transform(Fr::transform(
        domain,
        TransformKind::Forward,
        vec![Fr::zero(); 4],
    ))
}

fn three(device: &dyn Device) -> proofmill_accelerator::BasesId {
    device
        .load_bases(G1Projective::points(vec![G1Affine::generator(); 3]), 0)
        .unwrap()
}

fn msm(bases: proofmill_accelerator::BasesId, values: &[u64]) -> DeviceJob {
    let scalars = Fr::scalars(values.iter().map(|value| Fr::from(*value)).collect());
    DeviceJob::Msm { bases, scalars }
}

#[test]
fn what_does_not_fit_is_refused_and_the_device_goes_on() {
    let device = over_tcp();
    let bases = three(&*device);
    assert!(matches!(
        run(&*device, msm(bases, &[1, 2])),
        Err(Error::BadJob(_))
    ));
    let other = ark_bn254::Fr::scalars(vec![1.into(); 3]);
    assert!(matches!(
        run(
            &*device,
            DeviceJob::Msm {
                bases,
                scalars: other
            }
        ),
        Err(Error::BadJob(_))
    ));
    assert!(matches!(run(&*device, transform()), Err(Error::BadJob(_))));
    let of_other_group = ark_bn254::G1Projective::points(Vec::new());
    assert!(matches!(
        device.load_bases(of_other_group, 0),
        Err(Error::BadJob(_))
    ));
    let outside =
        G1Affine::new_unchecked(-ark_bls12_377::Fq::from(1u64), ark_bls12_377::Fq::zero());
    let refused = device.load_bases(
        G1Projective::points(vec![G1Affine::generator(), outside]),
        0,
    );
    assert!(matches!(refused, Err(Error::BadJob(reason)) if reason.contains("point 1")));
    device.evict(bases).unwrap();
    assert_eq!(device.evict(bases), Err(Error::UnknownBases(bases)));
    assert_eq!(
        run(&*device, msm(bases, &[1; 3])).unwrap_err(),
        Error::UnknownBases(bases)
    );
    let bases = three(&*device);
    let sum: G1Projective = run(&*device, msm(bases, &[1, 2, 3]))
        .unwrap()
        .into_sum()
        .unwrap();
    assert_eq!(sum, G1Affine::generator() * Fr::from(6));
    assert_eq!(device.failure(), None);
}

#[test]
fn a_batch_runs_in_its_order_and_ends_with_the_first_error() {
    let device = over_tcp();
    let bases = three(&*device);
    let batch = DeviceJob::Batch(vec![
        msm(bases, &[1, 2, 3]),
        DeviceJob::Batch(vec![]),
        msm(bases, &[0, 0, 4]),
    ]);
    let mut outcomes = run(&*device, batch).unwrap().into_batch().unwrap();
    let sum = |outcome: Outcome| outcome.into_sum::<G1Projective>().unwrap();
    assert_eq!(
        sum(outcomes.pop().unwrap()),
        G1Affine::generator() * Fr::from(4)
    );
    assert!(outcomes.pop().unwrap().into_batch().unwrap().is_empty());
    assert_eq!(
        sum(outcomes.pop().unwrap()),
        G1Affine::generator() * Fr::from(6)
    );
    let batch = DeviceJob::Batch(vec![
        msm(bases, &[1, 2, 3]),
        transform(),
        msm(bases, &[1; 3]),
    ]);
    assert!(matches!(run(&*device, batch), Err(Error::BadJob(_))));
}

/// More jobs than the device takes at once, with bases of several shapes; tickets are taken in the other order.
#[test]
fn many_jobs_are_in_flight_and_each_gets_its_own_result() {
    let device = over_tcp();
    let sets: Vec<_> = [(40, 0), (300, 1 << 20), (1000, usize::MAX)]
        .into_iter()
        .map(|(count, limit)| {
            let points = points(count, count as u64);
            let bases = device
                .load_bases(G1Projective::points(points.clone()), limit)
                .unwrap();
            (points, bases)
        })
        .collect();
    let jobs: Vec<(Ticket, G1Projective)> = (0..30_u64)
        .map(|i| {
            let (points, bases) = &sets[i as usize % sets.len()];
            let values = scalars(points.len(), i);
            let expected = product(points, &values);
            let job = DeviceJob::Msm {
                bases: *bases,
                scalars: Fr::scalars(values),
            };
            (device.submit(job).unwrap(), expected)
        })
        .collect();
    for (ticket, expected) in jobs.into_iter().rev() {
        assert_eq!(
            ticket.wait().unwrap().into_sum::<G1Projective>().unwrap(),
            expected
        );
    }
    assert!(device.busy() > std::time::Duration::ZERO);
}

#[test]
fn cancelled_jobs_end_and_the_others_are_right() {
    let device = over_tcp();
    let points = points(2000, 3);
    let bases = device
        .load_bases(G1Projective::points(points.clone()), 0)
        .unwrap();
    let values = scalars(points.len(), 4);
    let job = || DeviceJob::Msm {
        bases,
        scalars: Fr::scalars(values.clone()),
    };
    let tickets: Vec<Ticket> = (0..12).map(|_| device.submit(job()).unwrap()).collect();
    let expected = product(&points, &values);
    let mut cancelled = 0;
    for (i, ticket) in tickets.into_iter().enumerate() {
        match i % 3 {
            0 => drop(ticket),
            1 => {
                ticket.cancel();
                match ticket.wait() {
                    Err(Error::Cancelled) => cancelled += 1,
                    other => {
                        assert_eq!(other.unwrap().into_sum::<G1Projective>().unwrap(), expected)
                    }
                }
            }
            _ => assert_eq!(
                ticket.wait().unwrap().into_sum::<G1Projective>().unwrap(),
                expected
            ),
        }
    }
    assert!(cancelled > 0, "the last ones wait behind others");
    assert_eq!(device.failure(), None);
}

#[test]
fn jobs_that_are_queued_run_even_if_the_device_is_dropped() {
    let device = over_tcp();
    let bases = three(&*device);
    let tickets: Vec<Ticket> = (0..10)
        .map(|i| device.submit(msm(bases, &[i, 0, 0])).unwrap())
        .collect();
    drop(device);
    for ticket in tickets {
        assert!(ticket.wait().is_ok());
    }
}

#[test]
fn memory_that_does_not_suffice_is_an_error_with_its_size() {
    let server = crate::common::Server::start(crate::common::model(1 << 18, 1), 0);
    let options = crate::common::options(server.address);
    let device =
        proofmill_zkpu::device::zkpu(proofmill_zkpu::device::ZkpuOptions::new(options)).unwrap();
    let load = |count| {
        device.load_bases(
            G1Projective::points(vec![G1Affine::generator(); count]),
            usize::MAX,
        )
    };
    assert!(
        matches!(load(4000), Err(Error::BadJob(_))),
        "more than a table can have"
    );
    let first = load(1000).unwrap();
    assert!(matches!(
        load(1000),
        Err(Error::OutOfMemory { bytes: 144_000 })
    ));
    let ticket = device.submit(msm(first, &vec![1; 1000])).unwrap();
    assert_eq!(
        ticket.wait().unwrap().into_sum::<G1Projective>().unwrap(),
        G1Affine::generator() * Fr::from(1000)
    );
    device.evict(first).unwrap();
    load(1000).unwrap();
}

#[test]
fn more_costs_more() {
    let device = over_tcp();
    let cost = |points| {
        device
            .cost(Work::Msm {
                group: Group::Bls12_377G1,
                points,
            })
            .unwrap()
    };
    assert!(cost(1 << 10) < cost(1 << 11));
    assert!(cost(1 << 19) < cost(1 << 20));
    let transform = Work::Transform {
        field: ScalarField::Bls12_377,
        kind: TransformKind::Forward,
        size_log: 3,
    };
    assert!(matches!(device.cost(transform), Err(Error::BadJob(_))));
}
