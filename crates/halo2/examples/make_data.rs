//! Makes the proofs that tests check, in `tests/data`: of a small circuit, with its key, and of Orchard
//! bundles: `cargo run --release -p proofmill-halo2 --example make_data`.

#[expect(unreachable_pub, reason = "a module of two examples")]
mod bundles;
#[path = "../tests/small/circuit.rs"]
#[expect(unreachable_pub, reason = "a module of a test")]
mod circuit;

use std::path::Path;

use orchard::circuit::ProvingKey;

/// Outputs of each bundle; there are at least two actions.
const OUTPUTS: [u64; 4] = [1, 2, 3, 4];

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let keys = circuit::keys();
    std::fs::write(
        folder.join("small.key"),
        format!("{:?}", keys.1.get_vk().pinned()),
    )?;
    let proof = circuit::prove(&keys, &[(3, [1, 2, 3, 4, 5])]);
    std::fs::write(folder.join("small.proof"), proof)?;
    let key = ProvingKey::build(bundles::VERSION);
    for outputs in OUTPUTS {
        let bundle = bundles::statement(&bundles::make(&key, outputs));
        println!("{} actions", bundle.actions.len());
        std::fs::write(
            folder.join(format!("orchard-{outputs}.bundle")),
            bundle.encode(),
        )?;
    }
    Ok(())
}
