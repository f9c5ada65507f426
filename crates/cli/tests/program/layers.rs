//! The layers of the workspace: a crate uses crates of the tiers below its own only.
//!
//! A crate's tier is `[package.metadata.proofmill] tier` in its `Cargo.toml`; ARCHITECTURE.md has the map. Dependencies
//! of tests are free: they are no part of what a crate is built of.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};

/// Output of `cargo metadata` about the workspace's crates.
fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--locked",
            "--format-version",
            "1",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata failed: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn packages(metadata: &Value) -> &Vec<Value> {
    metadata["packages"].as_array().unwrap()
}

/// A line for each crate without a tier, and for each dependency on a crate that is not of a lower tier.
fn violations(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut tiers: BTreeMap<&str, u64> = BTreeMap::new();
    for package in packages(metadata) {
        let name = package["name"].as_str().unwrap();
        match package["metadata"]["proofmill"]["tier"].as_u64() {
            Some(tier) => {
                tiers.insert(name, tier);
            }
            None => found.push(format!("{name} has no tier")),
        }
    }
    for package in packages(metadata) {
        let name = package["name"].as_str().unwrap();
        let Some(tier) = tiers.get(name) else {
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let is_of_tests = dependency["kind"] == "dev";
            match tiers.get(used) {
                Some(other) if !is_of_tests && other >= tier => {
                    found.push(format!("{name} of tier {tier} uses {used} of tier {other}"));
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn crates_use_crates_of_lower_tiers_only() {
    let metadata = metadata();
    assert!(packages(&metadata).len() > 20, "the whole workspace");
    assert_eq!(violations(&metadata), [""; 0]);
}

#[test]
fn a_dependency_on_the_same_tier_or_one_above_is_found() {
    let metadata = metadata();
    for (user, used, is_allowed) in [
        ("proofmill-kernels", "proofmill-api", false),
        ("proofmill-kernels", "proofmill-shutdown", false),
        ("proofmill-verifier", "proofmill-engine", false),
        ("proofmill-verifier", "proofmill-kernels", true),
    ] {
        for (kind, is_free) in [
            (Value::Null, false),
            (json!("build"), false),
            (json!("dev"), true),
        ] {
            let mut changed = metadata.clone();
            let packages = changed["packages"].as_array_mut().unwrap();
            let package = packages.iter_mut().find(|package| package["name"] == user);
            let dependencies = package.unwrap()["dependencies"].as_array_mut().unwrap();
            dependencies.push(json!({ "name": used, "kind": kind }));
            let found = violations(&changed);
            assert_eq!(
                found.is_empty(),
                is_allowed || is_free,
                "{user} uses {used}: {found:?}"
            );
        }
    }
}

#[test]
fn a_crate_without_a_tier_is_found() {
    let mut metadata = metadata();
    metadata["packages"][0]["metadata"] = Value::Null;
    assert!(violations(&metadata)[0].ends_with("has no tier"));
}
