//! Numbers of steps on sample inputs, as the README of the crate lists them. They change with the built files.

use super::interpreter::HELLO;
use super::support::{program, run};

#[test]
fn steps_are_those_of_the_readme() {
    let sorted: Vec<u8> = (0..1_000u32)
        .flat_map(|index| index.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    let json = format!(
        "[{}]",
        vec![r#"{"id": 12, "name": "ab", "tags": [true, null]}"#; 20].join(", ")
    );
    let samples: [(&str, &[u8]); 6] = [
        ("fibonacci", &1_000u32.to_le_bytes()),
        ("interpreter", HELLO.as_bytes()),
        ("json", json.as_bytes()),
        ("sha256", b"abc"),
        ("sha256", &[0x61; 1_000]),
        ("sort", &sorted),
    ];
    let rows: String = samples
        .iter()
        .map(|(name, input)| {
            let program = program(name);
            let outcome = run(&program, input);
            assert_eq!(outcome.code, 0);
            let (words, bytes) = (program.code_words().count(), input.len());
            format!(
                "| `{name}` | {words} | {bytes} bytes | {} |\n",
                outcome.steps
            )
        })
        .collect();
    println!("{rows}");
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&rows), "the README has other rows");
}
