//! Writes valid calls and bodies as seeds for the fuzzer.

use std::fs;

use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::register_request::Source;
use proofmill_api::engine::proto::submit_stream_request::Part;
use proofmill_api::engine::proto::{
    GeneratorInputs, Partition, PreloadRequest, RegisterRequest, StreamEventsRequest,
    StreamedWitness, SubmitRequest, SubmitStreamRequest,
};
use proofmill_api::intake::proto as intake;
use prost::Message;

fn main() {
    calls();
    bodies();
}

/// Messages for the intake, as `bodies` reads them.
fn bodies() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/bodies");
    fs::create_dir_all(folder).expect("the folder can be made");
    let message = intake::SubmitRequest {
        queue: "in".to_owned(),
        block: 7,
        last: Some(9),
        part: Some("a".to_owned()),
        payload: br#"{"group": 7}"#.as_slice().into(),
        requires: Some(intake::Labels {
            labels: vec!["gpu".to_owned()],
        }),
    };
    let streamed = intake::SubmitStreamRequest {
        message: Some(message.clone()),
    };
    let streamed = streamed.encode_length_delimited_to_vec();
    let one = br#"{"block": 7, "payload": {"group": 7}}"#;
    let span = br#"{"first": 6, "last": 9, "part": "a", "requires": ["gpu"], "payload": [1]}"#;
    let lines = [&one[..], b"\n", span, b"\n\n", one].concat();
    let seeds: [(u8, u8, Vec<u8>); 6] = [
        (0, 0, one.to_vec()),
        (0, 1, span.to_vec()),
        (1, 0, lines),
        (2, 0, message.encode_to_vec()),
        (3, 2, [&streamed[..], &streamed].concat()),
        (4, 0, Vec::new()),
    ];
    write(folder, seeds);
}

fn write<const N: usize>(folder: &str, seeds: [(u8, u8, Vec<u8>); N]) {
    for (index, (first, second, message)) in seeds.into_iter().enumerate() {
        let bytes = [&[first, second][..], &message].concat();
        fs::write(format!("{folder}/seed-{index}"), bytes).expect("a seed");
    }
}

/// Calls of the engine, as `calls` reads them.
fn calls() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/calls");
    fs::create_dir_all(folder).expect("the folder can be made");
    let job = |input| SubmitRequest {
        client: "client".to_owned(),
        request_id: "request".to_owned(),
        priority: 3,
        deadline_ms: Some(2_000_000_000_000),
        partitions: vec![Partition {
            circuit: "circuit".to_owned(),
            input: Some(input),
        }],
    };
    let streamed = Input::Streamed(StreamedWitness { bytes: 3 });
    let inputs = Input::Inputs(GeneratorInputs {
        generator: "generator".to_owned(),
        json: b"{}".to_vec(),
    });
    let chunk = SubmitStreamRequest {
        part: Some(Part::Chunk(vec![1, 2, 3])),
    };
    let stream = [
        SubmitStreamRequest {
            part: Some(Part::Job(job(streamed))),
        },
        chunk,
    ];
    let by_length = stream
        .iter()
        .flat_map(Message::encode_length_delimited_to_vec);
    let registration = RegisterRequest {
        name: "circuit".to_owned(),
        source: Some(Source::Zkey("/nowhere.zkey".to_owned())),
    };
    let preload = PreloadRequest {
        circuit: "circuit".to_owned(),
        tier: 3,
    };
    let events = StreamEventsRequest {
        past: true,
        end: true,
        job: "0a".repeat(16),
    };
    // A witness of the circuit of `calls`: 1, 9, 3.
    let witness = [1, 9, 3]
        .iter()
        .flat_map(|value| [&[*value][..], &[0; 31]].concat())
        .collect();
    let seeds: [(u8, u8, Vec<u8>); 9] = [
        (
            0,
            0,
            job(Input::Vector(Vec::clone(&witness))).encode_to_vec(),
        ),
        (3, 0, job(Input::Vector(witness)).encode_to_vec()),
        (0, 0, job(Input::Vector(vec![1; 32])).encode_to_vec()),
        (0, 0, job(inputs).encode_to_vec()),
        (1, 2, by_length.collect()),
        (3, 0, job(Input::Wtns(b"wtns".to_vec())).encode_to_vec()),
        (8, 0, registration.encode_to_vec()),
        (11, 0, preload.encode_to_vec()),
        (6, 0, events.encode_to_vec()),
    ];
    write(folder, seeds);
}
