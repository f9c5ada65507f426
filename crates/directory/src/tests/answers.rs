//! A server's answers about keys, and answers that were changed on the way.

use super::store::update;
use crate::inclusion::{AnswerError, InclusionError, KeyAnswer, KeyState};
use crate::store::DirectoryWriter;
use crate::{DEPTH, Digest, KeyDigest, KeyUpdate};

#[test]
fn an_answer_shows_what_its_proof_shows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory");
    let mut writer = DirectoryWriter::create(&path).unwrap();
    let bytes = KeyUpdate::new("bob", [0, 0xff]).unwrap();
    let updates = vec![update("alice", "a0"), update("alice", "a1"), bytes];
    writer.append(updates).unwrap();
    let (directory, root) = (writer.directory(), writer.directory().root());
    let state = |version, value: &[u8]| KeyState {
        version,
        value: value.to_vec(),
    };
    for (key, expected, shown) in [
        (
            "alice",
            Some(state(1, b"a1")),
            r#"{"version":1,"value":"a1"}"#,
        ),
        (
            "bob",
            Some(state(0, &[0, 0xff])),
            r#"{"version":0,"value_hex":"00ff"}"#,
        ),
        ("eve", None, "null"),
    ] {
        let json = KeyAnswer::new(directory, key.as_bytes()).to_json();
        assert!(json.contains(&format!("\"state\":{shown}")), "{json}");
        let answer: KeyAnswer = serde_json::from_str(&json).unwrap();
        assert_eq!((answer.epoch, answer.root), (1, root));
        let digest = KeyDigest::of(key.as_bytes());
        let verified = answer.verify_at_depth(DEPTH, &root, &digest);
        assert_eq!(verified, Ok(expected.as_ref()));
        let other = answer.verify_at_depth(DEPTH, &Digest::ZERO, &digest);
        assert!(matches!(
            other,
            Err(AnswerError::Proof(InclusionError::Root { .. }))
        ));

        // Another state than the proof's.
        for lie in [None, Some(state(1, b"a0")), Some(state(2, b"a1"))] {
            let lying = KeyAnswer {
                state: lie,
                ..answer.clone()
            };
            let verified = lying.verify_at_depth(DEPTH, &root, &digest);
            match lying.state == answer.state {
                true => assert_eq!(verified, Ok(None)),
                false => assert!(matches!(verified, Err(AnswerError::State(_)))),
            }
        }
    }
}
