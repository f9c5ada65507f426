//! Documents, valid and with changed bytes, compared with `serde_json`.

use std::fmt;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::support::{program, run, words};

/// Number of values and greatest depth of a value read by `serde_json`.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    values: u32,
    depth: u32,
}

impl Shape {
    const SCALAR: Self = Self {
        values: 1,
        depth: 0,
    };

    fn around(parts: &[Self]) -> Self {
        Self {
            values: 1 + parts.iter().map(|part| part.values).sum::<u32>(),
            depth: 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0),
        }
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::SCALAR)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::SCALAR)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::SCALAR)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::SCALAR)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::SCALAR)
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::SCALAR)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Shape, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = access.next_element()? {
            parts.push(part);
        }
        Ok(Shape::around(&parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Shape, A::Error> {
        let mut parts = Vec::new();
        while let Some((_, part)) = access.next_entry::<String, Shape>()? {
            parts.push(part);
        }
        Ok(Shape::around(&parts))
    }
}

/// Appends a random value.
fn value(random: &mut StdRng, depth: u32, text: &mut String) {
    const SCALARS: [&str; 12] = [
        "0",
        "-0",
        "17",
        "-3.25",
        "1e5",
        "0.5E-3",
        "true",
        "false",
        "null",
        r#""""#,
        r#""a\"b\\\/\n""#,
        r#""\u00e9 é""#,
    ];
    const SPACES: [&str; 4] = ["", "", " ", "\n\t\r "];
    let space = |random: &mut StdRng| *SPACES.choose(random).unwrap();
    text.push_str(space(random));
    match random.random_range(0..if depth == 0 { 3 } else { 10 }) {
        0..3 => text.push_str(SCALARS.choose(random).unwrap()),
        kind => {
            let is_object = kind % 2 == 0;
            text.push(if is_object { '{' } else { '[' });
            text.push_str(space(random));
            for index in 0..random.random_range(0..4) {
                if index > 0 {
                    text.push(',');
                }
                if is_object {
                    text.push_str(&format!("{}\"m\"{}:", space(random), space(random)));
                }
                value(random, depth - 1, text);
            }
            text.push(if is_object { '}' } else { ']' });
        }
    }
    text.push_str(space(random));
}

#[test]
fn documents_are_judged_as_by_serde_json() {
    const BYTES: &[u8] = b"[]{},:\"\\ 0123.-+etrufalsn\n";
    let program = program("json");
    let mut random = StdRng::seed_from_u64(5);
    let (mut valid, mut invalid) = (0, 0);
    for index in 0..3_000 {
        let mut text = String::new();
        value(&mut random, 8, &mut text);
        let mut bytes = text.into_bytes();
        if index % 3 != 0 {
            // Other bytes could make numbers too large, or text that is not UTF-8, which only serde_json refuses.
            let at = random.random_range(0..bytes.len());
            if !bytes[at].is_ascii() {
                continue;
            }
            bytes[at] = *BYTES.choose(&mut random).unwrap();
        }
        let outcome = run(&program, &bytes);
        let text = String::from_utf8_lossy(&bytes);
        match serde_json::from_slice::<Shape>(&bytes) {
            Ok(shape) => {
                assert_eq!(outcome.code, 0, "{text}");
                assert_eq!(
                    words(&outcome.output),
                    [shape.values, shape.depth],
                    "{text}"
                );
                valid += 1;
            }
            Err(_) => {
                assert_eq!((outcome.code, outcome.output.len()), (1, 0), "{text}");
                invalid += 1;
            }
        }
    }
    assert!(valid > 500 && invalid > 500, "{valid} {invalid}");
}

#[test]
fn faults_have_their_exit_codes() {
    let program = program("json");
    let invalid = [
        "",
        " ",
        "01",
        "1.",
        ".5",
        "-",
        "+1",
        "1e",
        "tru",
        "nul",
        "truex",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{1:2}",
        "{\"a\":1,}",
        "[}",
        "{]",
        "]",
        "[[]",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "1 1",
        "[1]]",
    ];
    for text in invalid {
        assert_eq!(run(&program, text.as_bytes()).code, 1, "{text}");
    }
    let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    let deepest = run(&program, &nested(1024));
    assert_eq!(
        (deepest.code, words(&deepest.output)),
        (0, vec![1024, 1024])
    );
    assert_eq!(run(&program, &nested(1025)).code, 2);
}
