//! Writes valid inputs for the fuzz targets to start from.

use std::path::Path;

use proofmill_directory_fuzz::seeds;

fn main() -> std::io::Result<()> {
    let targets: [(&str, Vec<Vec<u8>>); 5] = [
        ("inclusion", seeds::inclusion()),
        ("store", seeds::store()),
        ("record", seeds::record()),
        ("updates", seeds::updates()),
        ("witness", seeds::witness()),
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
