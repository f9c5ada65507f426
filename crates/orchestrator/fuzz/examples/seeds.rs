//! Writes valid inputs for the fuzz targets to start from.

use std::path::Path;

use proofmill_orchestrator_fuzz::seeds;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (target, inputs) in [
        ("bundle", seeds::bundles()),
        ("call", seeds::calls()),
        ("notice", seeds::notices()),
        ("records", seeds::logs()),
    ] {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), input)?;
        }
    }
    Ok(())
}
