//! Writes calls that are right, for the fuzzer to begin with.

use std::fs;

use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::register_request::Source;
use proofmill_api::engine::proto::submit_stream_request::Part;
use proofmill_api::engine::proto::{
    GeneratorInputs, Partition, PreloadRequest, RegisterRequest, StreamEventsRequest,
    StreamedWitness, SubmitRequest, SubmitStreamRequest,
};
use prost::Message;

fn main() {
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
    // Of the circuit of `calls`: 1, 9, 3.
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
    for (index, (call, framing, message)) in seeds.into_iter().enumerate() {
        let bytes = [&[call, framing][..], &message].concat();
        fs::write(format!("{folder}/seed-{index}"), bytes).expect("a seed");
    }
}
