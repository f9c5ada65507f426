//! Writes valid inputs for the fuzz targets to start from.

use std::path::Path;

use proofmill_partition_fuzz::seeds;

fn main() -> std::io::Result<()> {
    let targets: [(&str, Vec<Vec<u8>>); 6] = [
        ("decode", seeds::decode()),
        ("proof", seeds::proof()),
        ("journal", seeds::journal()),
        ("keys", seeds::keys()),
        ("share", seeds::share()),
        ("statement", seeds::statement()),
    ];
    for (target, inputs) in targets {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), input)?;
        }
    }
    Ok(())
}
