//! The messages of `proofmill.engine.v1`, its client and its server, generated from the proto files in
//! `crates/api/proto`.

use std::fmt;

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    rust_2018_idioms,
    reason = "generated"
)]
mod generated {
    tonic::include_proto!("proofmill.engine.v1");
}

pub use generated::*;

/// The encoded proto files, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/engine_descriptor.bin"));

/// Implements for each enumeration the short names of its numbers, and a function that serialises by them.
macro_rules! short_names {
    ($($function:ident: $enum:ident { $($variant:ident $name:literal)* })*) => {
        $(impl $enum {
            /// The name in JSON and files; `unknown` for a number that this version does not have.
            pub fn short_name(number: i32) -> &'static str {
                match Self::try_from(number) {
                    $(Ok(Self::$variant) => $name,)*
                    _ => "unknown",
                }
            }
        })*

        mod named {
            $(pub(super) fn $function<S: serde::Serializer>(
                number: &i32,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(super::$enum::short_name(*number))
            })*
        }
    };
}

short_names! {
    priority: Priority { Low "low" Normal "normal" High "high" Critical "critical" }
    job_state: JobState {
        Queued "queued" Running "running" Done "done"
        Failed "failed" Cancelled "cancelled" Expired "expired"
    }
    tier: Tier { Cold "cold" Warm "warm" Hot "hot" }
    constraints_from: ConstraintsFrom { Zkey "zkey" Precompiled "precompiled" R1cs "r1cs" }
    stage: Stage {
        Witness "witness" Evaluate "evaluate" Prove "prove" Finish "finish" Verify "verify"
    }
    stage_end: StageEnd { Done "done" Failed "failed" Dropped "dropped" }
}

// Types that hold witnesses show only sizes.

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { circuit, input } = self;
        write!(f, "Partition of {circuit:?}: {input:?}")
    }
}

impl fmt::Debug for partition::Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wtns(bytes) => write!(f, "Wtns of {} bytes", bytes.len()),
            Self::Vector(bytes) => write!(f, "Vector of {} bytes", bytes.len()),
            Self::Inputs(inputs) => inputs.fmt(f),
            Self::Streamed(streamed) => streamed.fmt(f),
        }
    }
}

impl fmt::Debug for GeneratorInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { generator, json } = self;
        write!(
            f,
            "GeneratorInputs of {} bytes for {generator:?}",
            json.len()
        )
    }
}

impl fmt::Debug for SubmitStreamRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SubmitStreamRequest: {:?}", self.part)
    }
}

impl fmt::Debug for submit_stream_request::Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => job.fmt(f),
            Self::Chunk(bytes) => write!(f, "Chunk of {} bytes", bytes.len()),
        }
    }
}
