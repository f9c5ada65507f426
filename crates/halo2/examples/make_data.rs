//! Makes the proofs that tests check, in `tests/data`: of a small circuit, with its key, and of Orchard
//! bundles: `cargo run --release -p proofmill-halo2 --example make_data`.

#[path = "../tests/orchard/bundles.rs"]
#[expect(dead_code, unreachable_pub, reason = "a module of a test")]
mod bundles;
#[path = "../tests/small/circuit.rs"]
#[expect(unreachable_pub, reason = "a module of a test")]
mod circuit;

use std::path::Path;

use orchard::builder::{Builder, BundleType};
use orchard::bundle::Authorized;
use orchard::circuit::{OrchardCircuitVersion, ProvingKey};
use orchard::keys::{FullViewingKey, Scope, SpendingKey};
use orchard::value::NoteValue;
use orchard::{Anchor, Bundle};
use rand_next::rand_core::UnwrapErr;
use rand_next::rngs::SysRng;

/// Outputs of each bundle; there are at least two actions.
const OUTPUTS: [u64; 4] = [1, 2, 3, 4];

/// Makes a bundle with `outputs` outputs, proven and signed for a message of zeros.
fn make(key: &ProvingKey, outputs: u64) -> Bundle<Authorized, i64> {
    let rng = UnwrapErr(SysRng);
    let spending_key = SpendingKey::from_bytes([7; 32]);
    let spending_key = spending_key.expect("bytes of a spending key");
    let recipient = FullViewingKey::from(&spending_key).address_at(0u32, Scope::External);
    let version = bundles::version();
    let anchor = Anchor::from_bytes([0; 32]).expect("an element of the field");
    let builder = Builder::new(
        BundleType::DEFAULT,
        version,
        version.default_flags(),
        anchor,
    );
    let mut builder = builder.expect("flags of this version");
    for number in 0..outputs {
        let value = NoteValue::from_raw(1000 + number);
        let added = builder.add_output(None, recipient, value, [0; 512]);
        added.expect("an output");
    }
    let built = builder.build(rng).expect("a bundle");
    let (bundle, _) = built.expect("a bundle with outputs");
    let proven = bundle.create_proof(key, rng).expect("a proof");
    proven
        .apply_signatures(rng, [0; 32], &[])
        .expect("signatures")
}

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::create_dir_all(&folder)?;
    let keys = circuit::keys();
    std::fs::write(
        folder.join("small.key"),
        format!("{:?}", keys.1.get_vk().pinned()),
    )?;
    let proof = circuit::prove(&keys, &[(3, [1, 2, 3, 4, 5])]);
    std::fs::write(folder.join("small.proof"), proof)?;
    let key = ProvingKey::build(OrchardCircuitVersion::PostNu6_3);
    for outputs in OUTPUTS {
        let bundle = make(&key, outputs);
        let statement = bundles::statement(&bundle);
        println!("{} actions", statement.actions.len());
        let name = format!("orchard-{outputs}");
        std::fs::write(
            folder.join(&name).with_extension("bundle"),
            statement.encode(),
        )?;
        std::fs::write(
            folder.join(&name).with_extension("rest"),
            bundles::rest(&bundle),
        )?;
    }
    Ok(())
}
