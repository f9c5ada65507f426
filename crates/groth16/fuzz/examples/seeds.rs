//! Puts the fixtures where the targets of snarkjs's files start from: `cargo +nightly run --example
//! seeds` in this folder.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (target, name) in [
        ("zkey", "circuit.zkey"),
        ("proof_json", "proof.json"),
        ("verification_key_json", "verification_key.json"),
        ("public_json", "public.json"),
    ] {
        let folder = root.join("corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        for curve in ["bn254", "bls12_381"] {
            let file = root.join("../tests/fixtures").join(curve).join(name);
            std::fs::copy(file, folder.join(format!("{curve}-{name}")))?;
        }
    }
    Ok(())
}
