//! Writes valid inputs as seeds for the fuzz targets.

use std::path::Path;

use proofmill_ethereum_fuzz::seeds;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (target, inputs) in [
        ("transaction", seeds::transactions()),
        ("answer", seeds::answers()),
    ] {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), input)?;
        }
    }
    Ok(())
}
