//! The driver and the target over TCP on loopback: both personalities, events, timeouts, refusals.

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ark_bls12_377::G1Projective;
use common::{Server, model, options, points, product, scalars};
use proofmill_zkpu::curve::{decode_result, encode_scalars, table};
use proofmill_zkpu::host::{Areas, HostError, PrecomputeRequest, StartRequest, Zkpu, discover};
use proofmill_zkpu::nvme::Status;
use proofmill_zkpu::nvme::zkpu::{JobState, Shape, ZkpuCapability};
use proofmill_zkpu::target::{Target, TargetError, TargetOptions};
use proofmill_zkpu::tcp::Digests;

const MEMORY: u64 = 1 << 25;
const COUNT: usize = 1 << 8;
const SHAPE: Shape = Shape {
    window: 13,
    levels: 20,
};
const AREAS: Areas = Areas {
    scalars: 0,
    table: 1 << 20,
    result: 1 << 18,
};
const LIMIT: Duration = Duration::from_secs(60);

fn request() -> StartRequest {
    StartRequest {
        areas: AREAS,
        count: COUNT as u32,
        shape: SHAPE,
        base: None,
        tag: 5,
    }
}

/// Writes a product's inputs and gives its sum.
fn prepare(zkpu: &Zkpu) -> G1Projective {
    let (points, scalars) = (points(COUNT, 1), scalars(COUNT, 2));
    zkpu.write(AREAS.scalars, &encode_scalars(&scalars))
        .unwrap();
    zkpu.write(AREAS.table, &table(&points, SHAPE)).unwrap();
    product(&points, &scalars)
}

fn result(zkpu: &Zkpu) -> G1Projective {
    let bytes = zkpu.read(AREAS.result, 192).unwrap();
    zkpu.wipe(AREAS.result, 512).unwrap();
    decode_result(&bytes).unwrap()
}

#[test]
fn products_by_both_personalities_with_every_digest() {
    let server = Server::start(model(MEMORY, 7), 0);
    for bits in 0..4 {
        let mut options = options(server.address);
        options.digests = Digests {
            header: bits & 1 != 0,
            data: bits & 2 != 0,
        };
        let zkpu = Zkpu::connect(&options).unwrap();
        let capability = zkpu.capability();
        assert_eq!(
            (capability.memory_bytes, capability.power_on_id),
            (MEMORY, 7)
        );
        assert!(capability.has(ZkpuCapability::FUNCTIONAL_MODEL));
        let expected = prepare(&zkpu);

        // Start, and the asynchronous event.
        let job = zkpu.start(&request()).unwrap();
        let entry = zkpu.wait_for_event(job, LIMIT).unwrap();
        assert_eq!(
            (entry.state, entry.tag, entry.count),
            (JobState::Done, 5, COUNT as u32)
        );
        assert!(zkpu.events() >= 1);
        assert_eq!(result(&zkpu), expected);

        // Start with wait; a base set; Wait.
        let job = zkpu.start_and_wait(&request(), LIMIT).unwrap();
        assert_eq!(
            zkpu.jobs().unwrap().find(job).unwrap().state,
            JobState::Done
        );
        assert_eq!(result(&zkpu), expected);
        zkpu.set_base(3, AREAS.table, COUNT as u32, SHAPE).unwrap();
        let job = zkpu
            .start(&StartRequest {
                base: Some(3),
                ..request()
            })
            .unwrap();
        let cycles = zkpu.wait(job, LIMIT).unwrap();
        assert_eq!(result(&zkpu), expected);

        // Execute Program, with its ranges as data and by a range set.
        assert_eq!(
            zkpu.execute(&request(), 0, LIMIT).unwrap(),
            u64::from(cycles)
        );
        assert_eq!(result(&zkpu), expected);
        let set = zkpu.create_range_set(&request().ranges().unwrap()).unwrap();
        zkpu.execute(&request(), set, LIMIT).unwrap();
        assert_eq!(result(&zkpu), expected);
        zkpu.delete_range_set(set).unwrap();

        // The blocks of namespace 1 are the bytes of namespace 2.
        zkpu.write_blocks(1 << 19, &[9; 700]).unwrap();
        assert_eq!(
            zkpu.read((1 << 19) + 696, 8).unwrap(),
            [9, 9, 9, 9, 0, 0, 0, 0]
        );
        assert_eq!(zkpu.read_blocks(1 << 19, 512).unwrap(), [9; 512]);
        let health = zkpu.health().unwrap();
        assert_eq!(
            (health.counters.jobs_completed, health.base_sets),
            (5 * (bits + 1), 1)
        );
        zkpu.shut_down().unwrap();
    }
}

#[test]
fn the_device_makes_a_table_of_a_plain_one() {
    let server = Server::start(model(MEMORY, 7), 0);
    let zkpu = Zkpu::connect(&options(server.address)).unwrap();
    assert!(zkpu.capability().has(ZkpuCapability::PRECOMPUTE));
    let expected = prepare(&zkpu);
    let made_by_host = table(&points(COUNT, 1), SHAPE);
    zkpu.wipe(AREAS.table, made_by_host.len() as u32).unwrap();
    let plain = Shape { levels: 1, ..SHAPE };
    let plain_table = table(&points(COUNT, 1), plain);
    let request_of = |plain| PrecomputeRequest {
        plain,
        table: AREAS.table,
        count: COUNT as u32,
        shape: SHAPE,
        tag: 6,
    };
    let first = 1 << 19;
    zkpu.write(first, &plain_table).unwrap();
    let job = zkpu.precompute_and_wait(&request_of(first), LIMIT).unwrap();
    let entry = *zkpu.jobs().unwrap().find(job).unwrap();
    assert_eq!((entry.state, entry.tag), (JobState::Done, 6));
    let made = zkpu.read(AREAS.table, made_by_host.len()).unwrap();
    assert!(made == made_by_host);
    zkpu.start_and_wait(&request(), LIMIT).unwrap();
    assert_eq!(result(&zkpu), expected);
    let refused = zkpu.precompute_and_wait(&request_of(AREAS.table), LIMIT);
    let status = refused.unwrap_err().status().expect("a status");
    assert!(status.is(Status::OVERLAPPING_AREAS));
}

#[test]
fn refusals_tell_the_command_and_the_status() {
    let server = Server::start(model(MEMORY, 7), 0);
    let zkpu = Zkpu::connect(&options(server.address)).unwrap();
    let mut wrong = request();
    wrong.count = 0;
    assert_eq!(
        zkpu.start(&wrong).unwrap_err().status(),
        Some(Status::INVALID_COUNT)
    );
    assert_eq!(
        zkpu.cancel(9).unwrap_err().status(),
        Some(Status::UNKNOWN_JOB)
    );
    assert_eq!(
        zkpu.write(MEMORY - 4, &[0; 8]).unwrap_err().status(),
        Some(Status::LBA_OUT_OF_RANGE)
    );
    // A scalar that is not below the order is the core's error 4.
    let _ = prepare(&zkpu);
    zkpu.write(AREAS.scalars, &[0xff; 32]).unwrap();
    let error = zkpu.start_and_wait(&request(), LIMIT).unwrap_err();
    assert!(
        matches!(
            error,
            HostError::Refused {
                status: Status::CORE_ERROR,
                result: 4,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.to_string(), "run a job: core error (1, c1)");
    assert_eq!(zkpu.failure(), None);
}

#[test]
fn one_host_at_a_time_and_the_next_one_after_it() {
    let server = Server::start(model(MEMORY, 7), 0);
    let first = Zkpu::connect(&options(server.address)).unwrap();
    // It asks again until its limit.
    let mut impatient = options(server.address);
    impatient.connect_timeout = Duration::from_secs(10);
    let busy = Zkpu::connect(&impatient).unwrap_err();
    assert_eq!(busy.status(), Some(Status::CONNECT_BUSY));
    first.write(0, &[1; 64]).unwrap();
    first
        .set_base(
            1,
            0,
            1,
            Shape {
                window: 13,
                levels: 1,
            },
        )
        .unwrap();
    drop(first);
    let second = Zkpu::connect(&options(server.address)).unwrap();
    assert_eq!(second.read(0, 64).unwrap(), [1; 64], "memory stays");
    assert_eq!(second.health().unwrap().base_sets, 0, "sets do not");
}

#[test]
fn the_discovery_service_answers_beside_the_controller() {
    let server = Server::start(model(MEMORY, 7), 0);
    let _zkpu = Zkpu::connect(&options(server.address)).unwrap();
    let found = discover(&options(server.address)).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].subsystem, "nqn.2026-01.org.proofmill:zkpu:TEST");
    assert_eq!(found[0].port, server.address.port().to_string());
}

/// The keep alive timeout is one second: an idle host stays for four, since its driver gives signs of life. On a
/// machine that stands still meanwhile a sign may come too late, so there are more attempts.
#[test]
fn an_idle_host_stays_connected() {
    let server = Server::start(model(MEMORY, 7), 0);
    let stays = || {
        let mut options = options(server.address);
        options.keep_alive = Duration::from_secs(1);
        let zkpu = Zkpu::connect(&options).unwrap();
        std::thread::park_timeout(Duration::from_secs(4));
        zkpu.failure().is_none() && zkpu.health().is_ok()
    };
    assert!((0..5).any(|_| stays()), "no attempt of five");
}

#[tokio::test]
async fn an_address_that_others_reach_must_be_allowed() {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let refused = Target::bind(model(1 << 12, 1), TargetOptions::new(address)).await;
    assert!(matches!(refused, Err(TargetError::NotLoopback(_))));
    let mut options = TargetOptions::new(address);
    options.allow_remote = true;
    assert!(Target::bind(model(1 << 12, 1), options).await.is_ok());
}

#[test]
fn nobody_at_the_address_is_an_error() {
    let server = Server::start(model(1 << 12, 7), 0);
    let address = server.address;
    server.stop();
    assert!(matches!(
        Zkpu::connect(&options(address)),
        Err(HostError::Connect { .. })
    ));
}
