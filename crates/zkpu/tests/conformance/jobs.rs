//! Jobs, bases and costs of a ZKPU, beyond the library's cases.

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;
use ark_ff::Zero;
use proofmill_accelerator::{
    Device, DeviceField, DeviceGroup, DeviceJob, Error, Group, Outcome, ScalarField, Ticket,
    TransformKind, Work,
};

use proofmill_zkpu::device::{ZkpuOptions, zkpu};

use crate::common::{Server, model, options};

/// A ZKPU over loopback. Its server lives as long as the test program.
fn over_tcp() -> Box<dyn Device> {
    let server = Server::under_test();
    let device = zkpu(ZkpuOptions::new(options(server.address))).unwrap();
    std::mem::forget(server);
    Box::new(device)
}

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
    let server = Server::start(model(1 << 18, 1), 0);
    let device = zkpu(ZkpuOptions::new(options(server.address))).unwrap();
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
