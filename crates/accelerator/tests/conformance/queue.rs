//! Tests of jobs, tickets and bases: refusals, batches, cancelling, awaiting.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use ark_bls12_381::{Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;
use proofmill_accelerator::{
    Device, DeviceField, DeviceGroup, DeviceJob, Error, Outcome, Ticket, TransformKind, cuda,
    cuda_cards,
};
use proofmill_kernels::Domain;

use crate::devices::{devices, oracle};

fn all_devices() -> Vec<Box<dyn Device>> {
    let mut all = devices();
    all.push(Box::new(oracle()));
    all
}

/// A transform of `count` scalars over a domain of four.
fn transform(count: u64) -> DeviceJob {
    let domain = Domain::<Fr>::new(4).unwrap();
    let values = (0..count).map(Fr::from).collect();
    DeviceJob::Transform(Fr::transform(domain, TransformKind::Forward, values))
}

fn run(device: &dyn Device, job: DeviceJob) -> Result<Outcome, Error> {
    device.submit(job).unwrap().wait()
}

#[test]
fn what_does_not_fit_is_refused_and_the_device_goes_on() {
    for device in all_devices() {
        let points = vec![G1Affine::generator(); 3];
        let bases = device.load_bases(G1Projective::points(points), 0).unwrap();
        let msm = |scalars| DeviceJob::Msm { bases, scalars };
        let two = Fr::scalars(vec![Fr::from(1), Fr::from(2)]);
        assert!(matches!(run(&*device, msm(two)), Err(Error::BadJob(_))));
        let other = ark_bn254::Fr::scalars(vec![1.into(); 3]);
        assert!(matches!(run(&*device, msm(other)), Err(Error::BadJob(_))));
        assert!(matches!(run(&*device, transform(3)), Err(Error::BadJob(_))));

        device.evict(bases).unwrap();
        assert_eq!(device.evict(bases), Err(Error::UnknownBases(bases)));
        let three = Fr::scalars(vec![1.into(); 3]);
        let gone = run(&*device, msm(three)).unwrap_err();
        assert_eq!(gone, Error::UnknownBases(bases));

        assert!(run(&*device, transform(4)).is_ok());
        assert_eq!(device.failure(), None);
    }
}

#[test]
fn a_batch_runs_in_its_order_and_ends_with_the_first_error() {
    for device in all_devices() {
        let points = vec![G1Affine::generator(); 2];
        let bases = device.load_bases(G1Projective::points(points), 0).unwrap();
        let msm = |a: u64, b: u64| DeviceJob::Msm {
            bases,
            scalars: Fr::scalars(vec![a.into(), b.into()]),
        };
        let batch = DeviceJob::Batch(vec![msm(1, 2), DeviceJob::Batch(vec![]), msm(3, 4)]);
        let mut outcomes = run(&*device, batch).unwrap().into_batch().unwrap();
        let sum = |outcome: Outcome| outcome.into_sum::<G1Projective>().unwrap();
        assert_eq!(
            sum(outcomes.pop().unwrap()),
            G1Affine::generator() * Fr::from(7)
        );
        assert!(outcomes.pop().unwrap().into_batch().unwrap().is_empty());
        assert_eq!(
            sum(outcomes.pop().unwrap()),
            G1Affine::generator() * Fr::from(3)
        );

        let batch = DeviceJob::Batch(vec![msm(1, 2), transform(3), msm(3, 4)]);
        assert!(matches!(run(&*device, batch), Err(Error::BadJob(_))));
    }
}

/// Wakes the thread that waits.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(mut ticket: Ticket) -> Result<Outcome, Error> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut ticket).poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn tickets_can_be_awaited_in_any_order() {
    for device in all_devices() {
        let tickets: Vec<Ticket> = (0..4)
            .map(|_| device.submit(transform(4)).unwrap())
            .collect();
        for ticket in tickets.into_iter().rev() {
            let values = block_on(ticket).unwrap().into_values::<Fr>().unwrap();
            assert_eq!(values[0], Fr::from(6));
        }
    }
}

#[test]
fn jobs_that_are_queued_run_even_if_the_device_is_dropped() {
    for device in all_devices() {
        let ticket = device.submit(transform(4)).unwrap();
        drop(device);
        assert!(ticket.wait().is_ok());
    }
}

#[test]
fn a_missing_card_is_an_error_with_a_reason() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cubins");
    let cards = match cuda_cards() {
        Ok(cards) => cards,
        Err(error) => {
            assert!(matches!(&error, Error::NoDevice { reason } if !reason.is_empty()));
            0
        }
    };
    assert!(matches!(
        cuda(cards, &folder).err(),
        Some(Error::NoDevice { .. })
    ));
}

#[test]
fn outcomes_of_the_wrong_kind_are_refused() {
    let device = oracle();
    let bases = device
        .load_bases(G1Projective::points(vec![G1Affine::generator()]), 0)
        .unwrap();
    let scalars = Fr::scalars(vec![1.into()]);
    let sum = || {
        run(
            &device,
            DeviceJob::Msm {
                bases,
                scalars: scalars.clone(),
            },
        )
        .unwrap()
    };
    assert!(sum().into_sum::<ark_bn254::G1Projective>().is_err());
    assert!(sum().into_values::<Fr>().is_err());
    assert!(sum().into_batch().is_err());
    assert!(sum().into_sum::<G1Projective>().is_ok());
}

/// The library's cases of jobs, tickets and bases.
#[test]
fn every_device_keeps_to_the_rules_of_jobs() {
    for device in all_devices() {
        for case in proofmill_accelerator::conformance::jobs::<G1Projective>() {
            case.run(&*device)
                .unwrap_or_else(|why| panic!("{} on {}: {why}", case.name(), device.caps().name));
        }
    }
}
