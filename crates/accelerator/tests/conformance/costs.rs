//! Tests of the devices' predicted costs.

use proofmill_accelerator::{Device, Group, ScalarField, TransformKind, Work, host_cuda};

use crate::devices::oracle;

#[test]
fn more_costs_more_on_every_device() {
    for device in [
        Box::new(oracle()) as Box<dyn Device>,
        Box::new(host_cuda(1 << 10, false).unwrap()),
    ] {
        let name = &device.caps().name;
        for group in [Group::Bls12_381G1, Group::Bn254G2] {
            let cost = |points| device.cost(Work::Msm { group, points }).unwrap();
            assert!(cost(1 << 10) < cost(1 << 11), "{group} on {name}");
            assert!(cost(1 << 20) < cost(1 << 21), "{group} on {name}");
        }
        let cost = |size_log| {
            let work = Work::Transform {
                field: ScalarField::Bn254,
                kind: TransformKind::Forward,
                size_log,
            };
            device.cost(work).unwrap()
        };
        assert!(cost(10) < cost(11), "{name}");
        assert!(cost(20) < cost(21), "{name}");
    }
}
