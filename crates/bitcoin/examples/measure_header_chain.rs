//! Measures key generation, proving and batch verification of Bitcoin's first 32 headers for each
//! number of slots given:
//!
//! ```text
//! cargo run --release -p proofmill-bitcoin --example measure_header_chain -- 1 2 3 4 5 8 10
//! ```

use std::time::{Duration, Instant};

use proofmill_bitcoin::mainnet_headers;
use proofmill_bitcoin::{HeaderChainKeys, prove_chunk, verify_chunks};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!(
        "slots chunks constraints domain keygen_s key_MB load_s  prove_s per_chunk_s  witness \
         eval  ntt  msm_a msm_b msm_l msm_h  verify_all_ms verify_one_ms total_s peak_MB"
    );
    for argument in std::env::args().skip(1) {
        measure(argument.parse()?)?;
    }
    Ok(())
}

fn measure(slots: usize) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let (keys, generate) = timed(|| {
        HeaderChainKeys::load_or_generate(directory.path(), slots, &|step| eprintln!("{step}"))
    });
    let key_bytes = std::fs::metadata(keys?.key_path())?.len();
    let (keys, load) =
        timed(|| HeaderChainKeys::load_or_generate(directory.path(), slots, &|_| {}));
    let keys = keys?;

    let headers = mainnet_headers();
    let mut stages = [Duration::ZERO; 7];
    let (chunks, prove) = timed(|| {
        headers
            .chunks(slots)
            .map(|headers| {
                let chunk = prove_chunk(&keys, headers)?;
                let t = &chunk.timings.prove;
                let times = [
                    chunk.timings.witness,
                    t.evaluate,
                    t.quotient,
                    t.msm_a,
                    t.msm_b,
                    t.msm_l,
                    t.msm_h,
                ];
                stages
                    .iter_mut()
                    .zip(times)
                    .for_each(|(sum, time)| *sum += time);
                Ok((chunk.statement, chunk.proof))
            })
            .collect::<Result<Vec<_>, Failure>>()
    });
    let chunks = chunks?;
    let (verdicts, verify) = timed(|| verify_chunks(keys.verifier(), &chunks));
    if verdicts.iter().any(Result::is_err) {
        return Err("a proof does not verify".into());
    }
    let (_, verify_one) = timed(|| verify_chunks(keys.verifier(), &chunks[..1]));

    let count = chunks.len() as f64;
    print!(
        "{slots:5} {:6} {:11} {:6} {:8.2} {:6.1} {:6.2} {:8.2} {:11.2} ",
        chunks.len(),
        keys.r1cs().num_constraints(),
        keys.proving_key().h.len(),
        generate.as_secs_f64(),
        key_bytes as f64 / 1e6,
        load.as_secs_f64(),
        prove.as_secs_f64(),
        prove.as_secs_f64() / count,
    );
    stages
        .iter()
        .for_each(|time| print!(" {:.3}", time.as_secs_f64() / count));
    println!(
        " {:13.1} {:13.1} {:7.2} {:7.0}",
        verify.as_secs_f64() * 1e3,
        verify_one.as_secs_f64() * 1e3,
        (generate + prove + verify).as_secs_f64(),
        peak_megabytes(),
    );
    Ok(())
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = run();
    (result, start.elapsed())
}

/// Peak resident memory of this process in MB; needs Linux's `/proc`.
fn peak_megabytes() -> f64 {
    proofmill_memory::peak().unwrap_or(0) as f64 / (1 << 10) as f64 / 1e3
}
