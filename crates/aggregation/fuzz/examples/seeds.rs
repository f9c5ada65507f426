//! Writes valid inputs for the fuzz target to start from.

use std::path::Path;

use proofmill_aggregation_fuzz::seeds;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/decode");
    std::fs::create_dir_all(&folder)?;
    for (number, input) in seeds::decode().iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), input)?;
    }
    Ok(())
}
