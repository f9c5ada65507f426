//! Whole bundles of the `orchard` crate in two files: the statement with its proof, as Proofmill encodes
//! them, and what else a bundle has.

use orchard::bundle::{Authorized, BundleVersion, Flags};
use orchard::note::{ExtractedNoteCommitment, Nullifier, TransmittedNoteCiphertext};
use orchard::note_encryption::NoteBytesData;
use orchard::value::ValueCommitment;
use orchard::{Action, Anchor, Bundle, Proof};
use proofmill_halo2::orchard as statement;

/// Bytes of a note's ephemeral key, of its ciphertexts, and of a signature.
const KEY: usize = 32;
const NOTE: usize = 580;
const OUTGOING: usize = 80;
const SIGNATURE: usize = 64;
const ACTION: usize = KEY + NOTE + OUTGOING + SIGNATURE;

/// The rules that the bundles are made by.
pub fn version() -> BundleVersion {
    BundleVersion::ironwood_v3()
}

/// The statement of the bundle's proof, and the proof.
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

/// The flags in the `orchard` crate's form, if its rules know them.
pub fn flags(flags: statement::Flags) -> Option<Flags> {
    let byte = u8::from(flags.spends_enabled)
        | u8::from(flags.outputs_enabled) << 1
        | u8::from(!flags.cross_address_disabled) << 2;
    Flags::from_byte(byte, version())
}

/// The balance of value in 8 little-endian bytes; of each action its note's ephemeral key and two
/// ciphertexts, and its signature; the signature of the balance.
pub fn rest(bundle: &Bundle<Authorized, i64>) -> Vec<u8> {
    let mut bytes = bundle.value_balance().to_le_bytes().to_vec();
    for action in bundle.actions() {
        let note = action.encrypted_note();
        bytes.extend(note.epk_bytes);
        bytes.extend(note.enc_ciphertext.0);
        bytes.extend(note.out_ciphertext);
        bytes.extend(<[u8; SIGNATURE]>::from(action.authorization()));
    }
    let binding = bundle.authorization().binding_signature();
    bytes.extend(<[u8; SIGNATURE]>::from(binding));
    bytes
}

/// The bundle again.
pub fn read(statement: &statement::Bundle, rest: &[u8]) -> Bundle<Authorized, i64> {
    let (balance, rest) = rest.split_first_chunk().expect("a balance");
    let (actions, binding) = rest.split_at(ACTION * statement.actions.len());
    let actions = statement.actions.iter().zip(actions.chunks(ACTION));
    let mut actions = actions.map(|(action, rest)| read_action(action, rest));
    let first = actions.next().expect("an action");
    let binding: [u8; SIGNATURE] = binding.try_into().expect("a signature");
    Bundle::try_from_parts(
        (first, actions.collect()).into(),
        flags(statement.flags).expect("flags of this version"),
        i64::from_le_bytes(*balance),
        Anchor::from_bytes(statement.anchor).expect("an element"),
        Authorized::from_parts(Proof::new(statement.proof.clone()), binding.into()),
        version(),
    )
    .expect("a bundle")
}

fn read_action(
    action: &statement::Action,
    rest: &[u8],
) -> Action<<Authorized as orchard::bundle::Authorization>::SpendAuth> {
    let (ephemeral, rest) = rest.split_first_chunk::<KEY>().expect("a key");
    let (note, rest) = rest.split_first_chunk::<NOTE>().expect("a ciphertext");
    let (outgoing, signature) = rest.split_first_chunk::<OUTGOING>().expect("another");
    let signature: [u8; SIGNATURE] = signature.try_into().expect("a signature");
    Action::from_parts(
        Nullifier::from_bytes(&action.nullifier).expect("an element"),
        action.randomized_key.try_into().expect("a key"),
        ExtractedNoteCommitment::from_bytes(&action.note_commitment).expect("an element"),
        TransmittedNoteCiphertext {
            epk_bytes: *ephemeral,
            enc_ciphertext: NoteBytesData(*note),
            out_ciphertext: *outgoing,
        },
        ValueCommitment::from_bytes(&action.net_value).expect("a point"),
        signature.into(),
    )
    .expect("an action")
}
