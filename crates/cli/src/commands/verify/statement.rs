//! The files that belong to a proof, by their names.

use std::path::{Component, Path, PathBuf};

/// Names of verifying keys.
pub(super) const VERIFYING_KEYS: [&str; 2] = ["verification_key.json", "vk.json"];
/// Names of keys for aggregates.
pub(super) const AGGREGATE_KEYS: [&str; 1] = ["aggregate.key"];
/// Names of keys for circuits in parts.
pub(super) const PARTITION_KEYS: [&str; 1] = ["verifying.key"];

/// The file with a proof's statement, if there is one: its own name with `public` for `proof`, or
/// `NAME.public.json` beside `NAME.json`.
pub(super) fn statement_of(proof: &Path) -> Option<PathBuf> {
    first_beside(proof, statement_names(proof.file_name()?.to_str()?))
}

/// As [`statement_of`] for a circuit in parts, whose prover writes JSON: first `NAME.json` or `NAME.public.json` beside
/// `NAME.proof`, and `public.json` beside `proof`.
pub(super) fn statement_of_parts(proof: &Path) -> Option<PathBuf> {
    let name = proof.file_name()?.to_str()?;
    let mut names = json_names(name);
    names.extend(statement_names(name));
    first_beside(proof, names)
}

fn first_beside(proof: &Path, names: Vec<String>) -> Option<PathBuf> {
    names
        .into_iter()
        .map(|name| proof.with_file_name(name))
        .find(|path| path != proof && path.exists())
}

fn json_names(proof: &str) -> Vec<String> {
    let stem = proof.strip_suffix(".proof").unwrap_or(proof);
    let mut names = vec![format!("{stem}.public.json"), format!("{stem}.json")];
    if proof == "proof" {
        names.insert(0, "public.json".to_owned());
    }
    names
}

fn statement_names(name: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(place) = name.rfind("proof") {
        let (before, after) = (&name[..place], &name[place + "proof".len()..]);
        names.push(format!("{before}public{after}"));
    }
    if let Some(stem) = name.strip_suffix(".json") {
        names.push(format!("{stem}.public.json"));
    }
    names
}

/// The nearest file with one of these names, beside the proof or in a folder above it, but no higher than `root`; for a
/// relative path no higher than the current folder. Files above those may belong to somebody else.
pub(super) fn nearest_key(proof: &Path, root: Option<&Path>, names: &[&str]) -> Option<PathBuf> {
    let folders = proof.ancestors().skip(1);
    let within = folders.take_while(|folder| match folder.components().next_back() {
        Some(Component::ParentDir) => root.is_some_and(|root| folder.starts_with(root)),
        _ => proof.is_relative() || root.is_some_and(|root| folder.starts_with(root)),
    });
    within
        .flat_map(|folder| names.iter().map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_named_after_its_proof() {
        for (proof, statements) in [
            ("proof.json", &["public.json", "proof.public.json"][..]),
            ("a.proof", &["a.public"]),
            ("proof", &["public"]),
            ("proof_3.json", &["public_3.json", "proof_3.public.json"]),
            (
                "proofs-proof.json",
                &["proofs-public.json", "proofs-proof.public.json"],
            ),
            ("a.json", &["a.public.json"]),
            ("blob.bin", &[]),
        ] {
            assert_eq!(statement_names(proof), statements, "{proof}");
        }
    }

    #[test]
    fn the_statement_of_a_circuit_in_parts_is_json_by_preference() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let found = |proof: &str| statement_of_parts(&path(proof));
        assert_eq!(found("tree.proof"), None);
        for name in ["tree.public", "tree.json", "tree.public.json"] {
            std::fs::write(path(name), "").expect("written");
            assert_eq!(found("tree.proof"), Some(path(name)));
        }
        assert_eq!(found("proof"), None);
        for name in ["public", "public.json"] {
            std::fs::write(path(name), "").expect("written");
            assert_eq!(found("proof"), Some(path(name)));
        }
    }

    #[test]
    fn keys_are_searched_no_higher_than_the_named_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("top/mid/low")).expect("made");
        let proof = path("top/mid/low/proof.json");
        let nearest = |root: &str| nearest_key(&proof, Some(&path(root)), &VERIFYING_KEYS);
        assert_eq!(nearest("top"), None);
        std::fs::write(path("top/vk.json"), "").expect("written");
        assert_eq!(nearest("top"), Some(path("top/vk.json")));
        assert_eq!(nearest("top/mid"), None);
        std::fs::write(path("top/mid/low/verification_key.json"), "").expect("written");
        let own = Some(path("top/mid/low/verification_key.json"));
        assert_eq!(nearest("top"), own);
        assert_eq!(nearest("top/mid/low"), own);
    }
}
