//! The library's cases of products, for every group: edge cases, skewed scalars, several rounds, copies of the bases.

use ark_bls12_377::{G1Projective as Bls12_377G1, G2Projective as Bls12_377G2};
use ark_bls12_381::{G1Projective as Bls12_381G1, G2Projective as Bls12_381G2};
use ark_bn254::{G1Projective as Bn254G1, G2Projective as Bn254G2};
use proofmill_accelerator::conformance::{Case, products, sized_products};
use proofmill_accelerator::{Device, DeviceGroup};

use crate::devices::{cards, devices, oracle};

fn run(cases: &[Case], devices: &[Box<dyn Device>]) {
    for case in cases {
        for device in devices {
            case.run(&**device)
                .unwrap_or_else(|why| panic!("{} on {}: {why}", case.name(), device.caps().name));
        }
    }
}

fn all<G: DeviceGroup>(counts: &[usize]) {
    let devices = devices();
    run(&products::<G>(), &devices);
    run(&sized_products::<G>(counts, 0), &devices);
}

#[test]
fn bls12_381_g1() {
    all::<Bls12_381G1>(&[1 << 12, 2500]);
}

#[test]
fn bls12_381_g2() {
    all::<Bls12_381G2>(&[1 << 11]);
}

#[test]
fn bls12_377_g1() {
    all::<Bls12_377G1>(&[1 << 12]);
}

/// The processors alone: cards refuse this group.
#[test]
fn bls12_377_g2() {
    let group = Bls12_377G2::GROUP;
    for device in devices() {
        assert!(!device.caps().groups.contains(&group));
        let refused = products::<Bls12_377G2>()[0].run(&*device).unwrap_err();
        assert!(refused.contains("does not work in"), "{refused}");
    }
    let processors: [Box<dyn Device>; 1] = [Box::new(oracle())];
    run(&products::<Bls12_377G2>(), &processors);
}

#[test]
fn bn254_g1() {
    all::<Bn254G1>(&[1 << 12]);
}

#[test]
fn bn254_g2() {
    all::<Bn254G2>(&[1 << 11]);
}

/// Products on cards only, of each size.
fn on_cards<G: DeviceGroup>(logs: &[u32]) {
    let cards = cards();
    if cards.is_empty() {
        return;
    }
    let counts: Vec<usize> = logs.iter().map(|log| 1 << log).collect();
    for memory_limit in [0, 4 << 30] {
        run(&sized_products::<G>(&counts, memory_limit), &cards);
    }
}

/// `make cuda-check` runs this test under compute-sanitizer.
#[test]
fn small_on_cards() {
    on_cards::<Bls12_381G1>(&[0, 5, 10]);
    on_cards::<Bls12_381G2>(&[0, 5, 10]);
    on_cards::<Bls12_377G1>(&[0, 5, 10]);
    on_cards::<Bn254G1>(&[0, 5, 10]);
    on_cards::<Bn254G2>(&[0, 5, 10]);
}

#[test]
fn large_on_cards() {
    on_cards::<Bls12_381G1>(&[16, 20, 24]);
    on_cards::<Bls12_381G2>(&[16, 20]);
    on_cards::<Bls12_377G1>(&[16, 20, 24]);
    on_cards::<Bn254G1>(&[16, 20, 24]);
    on_cards::<Bn254G2>(&[16, 20]);
}

/// A wrong device is found: the suite would be worth nothing otherwise.
mod wrong {
    use std::time::Duration;

    use proofmill_accelerator::conformance::jobs;
    use proofmill_accelerator::{
        BasesId, Capabilities, DeviceJob, Error, Outcome, Points, Sum, Ticket, Work, ticket,
    };

    use super::*;

    /// The processors, whose sums are off by the generator.
    struct Wrong(Box<dyn Device>);

    impl Device for Wrong {
        fn caps(&self) -> &Capabilities {
            self.0.caps()
        }
        fn cost(&self, work: Work) -> Result<Duration, Error> {
            self.0.cost(work)
        }
        fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error> {
            self.0.load_bases(points, memory_limit)
        }
        fn submit(&self, job: DeviceJob) -> Result<Ticket, Error> {
            let (ticket, answer) = ticket("wrong");
            let outcome = self.0.submit(job)?.wait();
            answer.complete(outcome.map(|outcome| match outcome {
                Outcome::Sum(sum) => match *sum {
                    Sum::Bn254G1(sum) => {
                        let off = sum + <Bn254G1 as ark_ec::PrimeGroup>::generator();
                        Outcome::Sum(Box::new(off.sum()))
                    }
                    _ => Outcome::Sum(sum),
                },
                outcome => outcome,
            }));
            Ok(ticket)
        }
        fn evict(&self, bases: BasesId) -> Result<(), Error> {
            self.0.evict(bases)
        }
        fn busy(&self) -> Duration {
            self.0.busy()
        }
        fn failure(&self) -> Option<Error> {
            self.0.failure()
        }
    }

    #[test]
    fn every_product_of_a_wrong_device_fails() {
        let wrong = Wrong(Box::new(oracle()));
        let mut cases = products::<Bn254G1>();
        cases.extend(sized_products::<Bn254G1>(&[300], 0));
        for case in cases {
            let why = case.run(&wrong).unwrap_err();
            assert!(why.contains("another point"), "{}: {why}", case.name());
        }
        for case in jobs::<Bn254G1>() {
            assert!(case.run(&wrong).is_err(), "{}", case.name());
        }
    }
}
