//! Writes valid inputs for the fuzz targets to start from.

use std::path::Path;

use proofmill_aggregation_fuzz::{recording, seeds};

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let targets = [
        ("decode", seeds::decode()),
        ("sharded", recording::messages()),
    ];
    for (target, inputs) in targets {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), input)?;
        }
    }
    Ok(())
}
