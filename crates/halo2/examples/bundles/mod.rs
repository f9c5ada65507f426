//! Bundles as the `orchard` crate makes them: outputs only, under the newest circuit.

use orchard::builder::{Builder, BundleType};
use orchard::bundle::{Authorized, BundleVersion};
use orchard::circuit::{OrchardCircuitVersion, ProvingKey};
use orchard::keys::{FullViewingKey, Scope, SpendingKey};
use orchard::value::NoteValue;
use orchard::{Anchor, Bundle};
use proofmill_halo2::orchard as statement;
use rand_next::rand_core::UnwrapErr;
use rand_next::rngs::SysRng;

/// The circuit's version.
pub const VERSION: OrchardCircuitVersion = OrchardCircuitVersion::PostNu6_3;

/// Makes a bundle of so many outputs, proven and signed for a message of zeros.
pub fn make(key: &ProvingKey, outputs: u64) -> Bundle<Authorized, i64> {
    let rng = UnwrapErr(SysRng);
    let spending_key = SpendingKey::from_bytes([7; 32]);
    let spending_key = spending_key.expect("bytes of a spending key");
    let recipient = FullViewingKey::from(&spending_key).address_at(0u32, Scope::External);
    let version = BundleVersion::ironwood_v3();
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

/// What the bundle's proof is about, and the proof.
pub fn statement(bundle: &Bundle<Authorized, i64>) -> statement::Bundle {
    let flags = bundle.flags();
    let actions = bundle.actions().iter().map(|action| statement::Action {
        net_value: action.cv_net().to_bytes(),
        nullifier: action.nullifier().to_bytes(),
        randomized_key: action.rk().into(),
        note_commitment: action.cmx().to_bytes(),
    });
    statement::Bundle {
        anchor: bundle.anchor().to_bytes(),
        flags: statement::Flags {
            spends_enabled: flags.spends_enabled(),
            outputs_enabled: flags.outputs_enabled(),
            cross_address_disabled: !flags.cross_address_enabled(),
        },
        actions: actions.collect(),
        proof: bundle.authorization().proof().as_ref().to_vec(),
    }
}
